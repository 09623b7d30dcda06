//! `tenon context-server`: serves only the `context` surface, over stdin and stdout.
//!
//! The binary also runs this command if it is called `mcp-context-server`, and then reports that name to clients.

use std::path::PathBuf;
use std::time::Duration;

use tenon_server::mcp::stream::{self, StreamLimits};
use tenon_server::mcp::{Handler, Identity};
use tenon_server::stdio;
use tenon_server::surface::{SurfaceSet, ToolNames};
use tenon_server::surfaces::context::ContextSurface;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::block_on;

/// Serve document caches to one MCP client over stdin and stdout
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder with the caches; without it, every cache is missing
    #[arg(long, value_name = "DIR", env = "CONTEXT_CACHE_ROOT")]
    cache_root: Option<PathBuf>,
    /// Timeout of a call
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CONTEXT_TOOL_TIMEOUT_SECS",
        default_value_t = ContextSurface::TIMEOUT.as_secs(),
        value_parser = clap::value_parser!(u64).range(..=MAX_TIMEOUT_SECONDS)
    )]
    timeout: u64,
    /// The name to report to clients
    #[arg(long, default_value = "tenon", hide = true)]
    name: String,
}

/// One day: longer timeouts are useless and could overflow clocks.
const MAX_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;

/// Larger than the longest valid query, so that a query over its limit gets a proper error.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// Serves until the client disconnects.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    tenon_server::log::to_stderr();
    let surface = ContextSurface::new(args.cache_root, Duration::from_secs(args.timeout));
    let surfaces = SurfaceSet::single(surface, ToolNames::default());
    let handler =
        Handler::with_identity(surfaces, Identity { name: args.name.into(), ..Identity::default() });
    let limits = StreamLimits { request_bytes: REQUEST_BYTES, ..StreamLimits::default() };
    block_on(async {
        stream::serve(stdio::stdin(), stdio::stdout(), handler, limits, CancellationToken::new()).await
    })??;
    Ok(Exit::Success)
}
