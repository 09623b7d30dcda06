//! Costs shared by every call: startup, the round trip over bridge and HTTP, and the memory of an idle daemon.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tenon_testkit::Sandbox;
use tenon_testkit::http::{HttpConnection, Request};

use crate::echo;
use crate::error::BenchError;
use crate::hyper_echo::HyperEcho;
use crate::json_lines::{INITIALIZE, INITIALIZED, JsonLines};
use crate::measure::{Times, beside, row, shown, table};
use crate::output::log;
use crate::product::{HttpServer, Product};

const COLD_STARTS: usize = 10;
const WARM_STARTS: usize = 50;
const PINGS: usize = 5000;
const REQUESTS: usize = 40_000;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

pub(crate) fn run(tenon: &Path) -> Result<(), BenchError> {
    table("Spine");
    let sandbox = Sandbox::with_example("polyglot");
    let product = Product { tenon, sandbox: &sandbox };
    starts(tenon, &product)?;
    pings_over_pipes(&product)?;
    over_http(tenon)?;
    memory(&product)?;
    product.stop()
}

/// Time from starting the bridge to the answer of `tools/list`, without a daemon and with one.
fn starts(tenon: &Path, warm: &Product<'_>) -> Result<(), BenchError> {
    log("starts without a daemon");
    let mut cold_times = Times::default();
    for _ in 0..COLD_STARTS {
        let sandbox = Sandbox::with_example("polyglot");
        let product = Product { tenon, sandbox: &sandbox };
        cold_times.add(one_start(&product)?);
        product.stop()?;
    }
    row("spawn → `tools/list`, no daemon", &spread(&cold_times), "", "120 ms");

    log("starts with a daemon");
    one_start(warm)?;
    let mut warm_times = Times::default();
    for _ in 0..WARM_STARTS {
        warm_times.add(one_start(warm)?);
    }
    row("spawn → `tools/list`, daemon running", &spread(&warm_times), "", "40 ms");
    Ok(())
}

fn one_start(product: &Product<'_>) -> Result<Duration, BenchError> {
    let start = Instant::now();
    let mut bridge = JsonLines::start(&mut product.bridge())?;
    bridge.initialize()?;
    bridge.ask(LIST)?;
    let time = start.elapsed();
    if !bridge.answer().contains("workspace_status") {
        return Err(BenchError::new(format!("`tools/list` answered {}", bridge.answer())));
    }
    bridge.end()?;
    Ok(time)
}

/// One ping over client → bridge → socket → daemon, against one line over the same path to an echo server.
fn pings_over_pipes(product: &Product<'_>) -> Result<(), BenchError> {
    log("pings over the bridge");
    let socket = product.sandbox.dir("run").join("echo");
    echo::unix_socket(&socket)?;
    let mut relay = Command::new(std::env::current_exe()?);
    let mut raw = JsonLines::start(relay.arg("relay").arg(&socket))?;
    let mut bridge = JsonLines::start(&mut product.bridge())?;
    bridge.initialize()?;
    let (echoed, answered) = Times::of_both(PINGS, || raw.ask(PING), || bridge.ask(PING))?;
    raw.end()?;
    bridge.end()?;
    row("ping over the bridge", &spread(&answered), &beside("echo", &answered, &echoed), "1.5× the echo");
    Ok(())
}

/// Pings over HTTP, one after the other and on many connections, against two echo servers: `hyper` in a separate process
/// and a bare thread, which is the lower bound.
fn over_http(tenon: &Path) -> Result<(), BenchError> {
    let sandbox = Sandbox::with_example("polyglot");
    let server = HttpServer::start(&Product { tenon, sandbox: &sandbox })?;
    let request = ping_request(&server)?;
    let echo = HyperEcho::start()?;
    let thread = echo::http()?;

    log("pings over HTTP");
    let mut ours = HttpConnection::open(server.address)?;
    for (address, name, aim) in
        [(echo.address, "`hyper` echo", "1.5× the echo"), (thread, "echo of a bare thread", "")]
    {
        let mut raw = HttpConnection::open(address)?;
        let (echoed, answered) =
            Times::of_both(PINGS, || expect_ok(&mut raw, &request), || expect_ok(&mut ours, &request))?;
        row("ping over HTTP", &spread(&answered), &beside(name, &answered, &echoed), aim);
    }

    for connections in [1, 32] {
        log(&format!("requests on {connections} connections"));
        let raw = requests_per_second(echo.address, &request, connections)?;
        let ours = requests_per_second(server.address, &request, connections)?;
        let what = format!("requests per second, connections: {connections}");
        row(&what, &format!("{ours:.0}"), &format!("`hyper` echo {raw:.0}, {:.2}×", ours / raw), "");
    }
    Ok(())
}

fn expect_ok(connection: &mut HttpConnection, request: &Request) -> io::Result<()> {
    let response = connection.send(request)?;
    match response.status {
        200 => Ok(()),
        status => Err(io::Error::other(format!("status {status}"))),
    }
}

fn requests_per_second(address: SocketAddr, request: &Request, connections: usize) -> io::Result<f64> {
    let start = Instant::now();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..connections)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = HttpConnection::open(address)?;
                    (0..REQUESTS / connections).try_for_each(|_| expect_ok(&mut connection, request))
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client does not panic"))
    })?;
    Ok(REQUESTS as f64 / start.elapsed().as_secs_f64())
}

/// Memory of an idle daemon and an idle bridge.
fn memory(product: &Product<'_>) -> Result<(), BenchError> {
    let mut bridge = JsonLines::start(&mut product.bridge())?;
    bridge.initialize()?;
    bridge.ask(LIST)?;
    // Language servers do not count as the daemon's memory.
    for process in product.sandbox.processes() {
        let (what, aim) = match process.command.get(1).map(String::as_str) {
            Some("daemon") => ("daemon, resident", "20 MB"),
            Some("mcp") => ("bridge, resident", ""),
            _ => continue,
        };
        let mib = process.resident_kib() as f64 / 1024.0;
        row(what, &format!("{mib:.1} MiB"), "", aim);
    }
    bridge.end()?;
    Ok(())
}

fn spread(times: &Times) -> String {
    format!("{} (95 %: {})", shown(times.median()), shown(times.within(0.95)))
}

/// A ping in a new session, with all headers.
fn ping_request(server: &HttpServer) -> Result<Request, BenchError> {
    let request = |body: &str| Request::mcp("/mcp/workspace", Some(&server.token), body);
    let mut connection = HttpConnection::open(server.address)?;
    let opened = connection.send(&request(INITIALIZE))?;
    let session = opened.header("MCP-Session-Id").map(str::to_owned);
    let session =
        session.ok_or_else(|| BenchError::new(format!("`initialize` got status {}", opened.status)))?;
    let inside = |body: &str| {
        request(body).header("MCP-Session-Id", &session).header("MCP-Protocol-Version", "2025-11-25")
    };
    connection.send(&inside(INITIALIZED))?;
    Ok(inside(PING))
}
