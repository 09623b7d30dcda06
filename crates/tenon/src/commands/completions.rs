//! `tenon completions`: the completion script of a shell.

use clap_complete::Shell;

use crate::cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Print the completion script of a shell
///
/// For bash: `tenon completions bash > ~/.local/share/bash-completion/completions/tenon`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::definition(), "tenon", &mut script);
    invocation.out.write_all(&script)?;
    Ok(Exit::Success)
}
