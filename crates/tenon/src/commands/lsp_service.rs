//! Unix: `tenon lsp-service`, which serves language servers to an embedding program.

use tenon_contract::clock::Clock;
use tenon_contract::root::RootGate;
use tenon_lsp::service::BOOTSTRAP;
use tenon_server::config::read_workspace_file;
use tenon_server::lsp_service::{Bootstrap, NavPipes, serve};
use tenon_server::stdio;
use tenon_server::trust::TrustStore;
use tenon_servers::find::{Finder, Trust};
use tenon_servers::install::Managed;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// Serve language servers to an embedding program over pipes
///
/// Programs run this. Speaks JSON-RPC with `Content-Length` headers on stdin and stdout, and serves the navigation tools over
/// MCP on file descriptors 3 and 4. Reads its settings as JSON from the environment variable `LSP_BOOTSTRAP`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// The contract with hosts: exit code 1 if the service cannot start.
const START_FAILED: Exit = Exit::Contract(1);

pub(crate) fn run(_args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    // First: any file that we open could take descriptor 3 or 4 if the host left it closed.
    let pipes = NavPipes::inherited();
    let text = std::env::var(BOOTSTRAP).ok();
    let bootstrap = match Bootstrap::parse(text.as_deref()) {
        Ok(bootstrap) => bootstrap,
        Err(error) => {
            invocation.eprint(error.to_string());
            return Ok(START_FAILED);
        }
    };
    let gate = match RootGate::new([&bootstrap.root]) {
        Ok(gate) => gate,
        Err(error) => {
            invocation.eprint(format!("{BOOTSTRAP}: workspaceRoot: {error}"));
            return Ok(START_FAILED);
        }
    };
    let finder = finder(invocation, &gate);
    // On one thread: a host sends one request after the other, and with more of them every step of a request would wake
    // another thread. Long work runs on blocking threads.
    let served = block_on(async {
        let notice = |line: &str| invocation.eprint(line);
        serve(bootstrap, gate, finder, pipes, stdio::stdin(), stdio::stdout(), notice).await
    })?;
    if let Err(error) = served {
        tracing::debug!(%error, "the host disconnected");
    }
    Ok(Exit::Success)
}

/// Finds server programs, as far as the user trusts the root. Without Tenon's folders there is no recorded trust.
fn finder(invocation: &Invocation, gate: &RootGate) -> Finder {
    let root = gate.primary().expect("the gate was made with one root");
    let Ok(dirs) = invocation.dirs() else {
        return Finder::from_env(root.to_owned(), Trust::Untrusted);
    };
    let settings = read_workspace_file(root).ok().flatten();
    let store = TrustStore::new(dirs.trust(), Clock::system());
    let is_trusted = store.state(root, settings.as_ref()).is_trusted();
    let trust = if is_trusted { Trust::Trusted } else { Trust::Untrusted };
    Finder::from_env(root.to_owned(), trust)
        .with_managed(Managed::new(dirs.servers()))
        .with_program_check(store.program_check(root))
}
