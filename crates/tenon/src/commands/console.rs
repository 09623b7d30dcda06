//! `tenon console`: opens the web console of a workspace.

use std::process::{Command, Stdio};

use camino::Utf8Path;

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Open the web console of this workspace
///
/// Makes the workspace's daemon serve the console on a loopback port, prints a link and opens the browser. The link signs one
/// browser in; it works once and for 60 seconds. The console is served until the daemon exits.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the link without opening the browser
    #[arg(long)]
    no_open: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let link = daemon_client::console_link(invocation, &root)?;
    invocation.print(&link)?;
    if !args.no_open && !open_browser(&link) {
        invocation.eprint("hint: no browser was found; open the link yourself, within 60 seconds");
    }
    Ok(Exit::Success)
}

/// Prints the link as the last line of another command. A console that cannot be served does not fail it.
pub(crate) fn print_link(root: &Utf8Path, invocation: &mut Invocation) -> Result<(), Failure> {
    match daemon_client::console_link(invocation, root) {
        Ok(link) => {
            invocation.print(format!("Console: {link}"))?;
            invocation
                .eprint("  hint: the link works once, within 60 seconds; `tenon console` prints a new one");
        }
        Err(failure) => invocation.eprint(format!("warning: the console cannot be served: {failure}")),
    }
    Ok(())
}

/// Whether a browser was started.
fn open_browser(link: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
