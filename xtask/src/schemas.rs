//! Regenerates the generated files of the tree.
//!
//! A test whose name starts with `generated_` compares each generated file with the code next to it
//! (`tenon_testkit::generated`). The same tests write the files when `TENON_UPDATE` is set. Nothing else
//! lists the generated files.

use crate::shell::{self, Error, cargo, heading};

pub(crate) fn run() -> Result<bool, Error> {
    heading("generated files");
    let mut command = cargo();
    command.args(["test", "--workspace", "--quiet", "generated_"]).env("TENON_UPDATE", "1");
    shell::run(&mut command)
}
