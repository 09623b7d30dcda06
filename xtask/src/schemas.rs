//! Writes the generated files of the tree anew.
//!
//! A generated file is made and compared by a test whose name starts with `generated_`, next to the
//! code that it is made from (`tenon_testkit::generated`). The same tests write it when
//! `TENON_UPDATE` is set, so there is one description of each file and no way to forget one.

use std::process::ExitCode;

use crate::shell::{self, Failure, cargo, step};

pub(crate) fn run() -> Result<ExitCode, Failure> {
    step("generated files");
    let mut command = cargo();
    command.args(["test", "--workspace", "--quiet", "generated_"]).env("TENON_UPDATE", "1");
    Ok(if shell::run(&mut command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
