//! Unix: `tenon lsp-service`, what an agent that embeds the language servers starts.

use tenon_contract::clock::Clock;
use tenon_contract::root::RootGate;
use tenon_lsp::service::BOOTSTRAP;
use tenon_server::config::{FILE_NAME, read_file};
use tenon_server::lsp_service::{Bootstrap, NavPipes, serve};
use tenon_server::trust::TrustStore;
use tenon_servers::find::{Finder, Trust};
use tenon_servers::install::Managed;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Serve language servers to a program over pipes
///
/// For programs, not for people: JSON-RPC with `Content-Length` headers on stdin and stdout, the navigation tools as MCP on
/// descriptors 3 and 4, settings as JSON in the environment variable `LSP_BOOTSTRAP`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// The contract with hosts: whatever keeps the service from starting is exit code 1.
const UNUSABLE: Exit = Exit::Contract(1);

pub(crate) fn run(_args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    // First of all: nothing of ours may sit on the descriptors that the host may have opened.
    let pipes = NavPipes::inherited();
    let text = std::env::var(BOOTSTRAP).ok();
    let bootstrap = match Bootstrap::parse(text.as_deref()) {
        Ok(bootstrap) => bootstrap,
        Err(error) => {
            invocation.eprint(error.to_string());
            return Ok(UNUSABLE);
        }
    };
    let gate = match RootGate::new([&bootstrap.root]) {
        Ok(gate) => gate,
        Err(error) => {
            invocation.eprint(format!("{BOOTSTRAP}: workspaceRoot: {error}"));
            return Ok(UNUSABLE);
        }
    };
    let finder = finder(invocation, &gate);
    // One host asks one thing after the other. With a second worker, every hop of a question (to the server's writer, from
    // its reader) would wake the other thread; long work has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let served = runtime.block_on(serve(
        bootstrap,
        gate,
        finder,
        pipes,
        tokio::io::stdin(),
        tokio::io::stdout(),
        |line| invocation.eprint(line),
    ));
    // Reading stdin blocks a thread that nobody can stop.
    runtime.shutdown_background();
    if let Err(error) = served {
        tracing::debug!(%error, "the host is gone");
    }
    Ok(Exit::Success)
}

/// What may run is decided by the user's trust in the root, as everywhere. Without folders of our own nobody can have
/// trusted it.
fn finder(invocation: &Invocation, gate: &RootGate) -> Finder {
    let root = gate.primary().expect("a gate made of one root has one");
    let Ok(dirs) = invocation.dirs() else {
        return Finder::from_env(root.to_owned(), Trust::Untrusted);
    };
    let settings = read_file(&root.join(FILE_NAME)).ok().flatten();
    let state = TrustStore::new(dirs.trust(), Clock::system()).state(root, settings.as_ref());
    let trust = if state.is_trusted() { Trust::Trusted } else { Trust::Untrusted };
    Finder::from_env(root.to_owned(), trust).with_managed(Managed::new(dirs.servers()))
}
