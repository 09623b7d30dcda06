//! Clients written with the official SDKs, each run by its own language's test runner.
//!
//! See `tests/clients/README.md` for what they get to know.

use std::process::Command;

use tenon_testkit::{Sandbox, program};

use super::tally::{self, Tally};
use super::{build_programs, runner};
use crate::product::{HttpServer, Product};
use crate::shell::{Failure, built, repository};

pub(super) fn run_clients() -> Result<Tally, Failure> {
    build_programs()?;
    let tenon = built("tenon")?;
    let sandbox = Sandbox::with_example("polyglot");
    let product = Product { tenon: &tenon, sandbox: &sandbox };
    // One daemon for all of them: what it serves over HTTP it also serves to the bridges.
    let server = HttpServer::start(&product)?;
    let clients = repository().join("tests/clients");
    let mut total = Tally::default();

    let mut node = product.sandbox.command(program::tool("node"));
    node.args(["--test", "--test-reporter=tap"]);
    node.args(
        ["ts/workspace.test.ts", "ts/code.test.ts", "ts/agents.test.ts"].map(|file| clients.join(file)),
    );
    total += runner(tell(&mut node, &product, &server), "TypeScript clients", tally::tap)?;

    let mut python = product.sandbox.command(program::python());
    python.arg("-B").arg(clients.join("py/tap.py"));
    total += runner(tell(&mut python, &product, &server), "Python clients", tally::tap)?;

    product.stop()?;
    Ok(total)
}

/// Lets a runner know what to talk to.
fn tell<'a>(command: &'a mut Command, product: &Product<'_>, server: &HttpServer) -> &'a mut Command {
    command
        .env("TENON", product.tenon)
        .env("TENON_WORKSPACE", product.sandbox.root())
        .env("TENON_URL", format!("http://{}/mcp/workspace", server.address))
        .env("TENON_TOKEN", &server.token)
}
