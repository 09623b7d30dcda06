//! `tenon completions`: prints a shell completion script.

use clap_complete::Shell;

use crate::cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Print a shell completion script
///
/// For bash, run `tenon completions bash > ~/.local/share/bash-completion/completions/tenon`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shell to generate the script for
    shell: Shell,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::definition(), "tenon", &mut script);
    invocation.print_data(&script)?;
    Ok(Exit::Success)
}
