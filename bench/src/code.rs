//! Overhead of the `code` surface: the same requests about real code, sent in turns to Tenon (stdio and HTTP) and to the
//! bare language server.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::direct_server::{DirectServer, FilePosition, uri};
use tenon_testkit::http::{HttpConnection, Request};
use tenon_testkit::{RealProject, Sandbox};

use crate::error::BenchError;
use crate::json_lines::{INITIALIZE, INITIALIZED, JsonLines};
use crate::measure::{Times, beside, row, shown, table};
use crate::output::log;
use crate::product::{HttpServer, Product};
use crate::subject::{SUBJECTS, Subject};

const QUESTIONS: usize = 200;
const PAGES: usize = 500;
/// Different positions of one symbol: an answer to a repeated request would come from the cache.
const LISTS: usize = 20;
/// With the declaration, as many as the contract allows.
const MANY_USES: usize = 19_999;
/// How long a server may take to load its project.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(tenon: &Path) -> Result<(), BenchError> {
    table("Code");
    for subject in SUBJECTS {
        let sandbox = Sandbox::with_project(subject.source);
        let many = format!("export const many = 1;\n{}", "many;\n".repeat(MANY_USES));
        if subject.source == RealProject::Rxjs {
            sandbox.tree().write("src/many.ts", &many);
        }
        sandbox.write_user_config(&settings(&subject));
        let product = Product { tenon, sandbox: &sandbox };
        measure(&product, subject)?;
        product.stop()?;
    }
    Ok(())
}

/// Settings that enable only the subject's server.
fn settings(subject: &Subject) -> String {
    let servers = subject.servers();
    let switches = servers.as_object().expect("a table of servers");
    switches.iter().map(|(id, switch)| format!("[servers.{id}]\nenabled = {}\n", switch["enabled"])).collect()
}

fn measure(product: &Product<'_>, subject: Subject) -> Result<(), BenchError> {
    let (name, sandbox) = (subject.name(), product.sandbox);
    log(&name);
    let (declared, used) = subject.places(sandbox);
    let mut bare = DirectServer::start(subject.server, sandbox)?;
    bare.open(used.file)?;
    bare.open(declared.file)?;
    let mut stdio = Bridge::start(product)?;
    let total = settle(&mut bare, &mut stdio, declared, sandbox)?;

    let arguments = at(sandbox, used);
    for tool in ["definition", "hover"] {
        let message = call(tool, &arguments);
        let (ours, theirs) = Times::of_both(
            QUESTIONS,
            || settled(|| stdio.ask(&message)).map(drop),
            || Ok(bare.request(tool, used).map(drop)?),
        )?;
        compare(&format!("{name}: {tool}, stdio"), &ours, &theirs, "bare + 0.5 ms");
    }

    let places = uses(&mut bare, sandbox, declared)?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for &place in &places {
        ours.time(|| all_pages(&mut stdio, sandbox, place))?;
        theirs.time(|| bare.request("references", place))?;
    }
    compare(&format!("{name}: {total} references, all pages"), &ours, &theirs, "1.25× bare");

    second_page(&mut stdio, sandbox, declared, total, &name)?;
    if subject.source == RealProject::Rxjs {
        let many = FilePosition { file: "src/many.ts", line: 0, character: 13 };
        second_page(&mut stdio, sandbox, many, MANY_USES + 1, &name)?;
        stdio.lines.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)?;
        row("`tools/list`", &format!("{} bytes", stdio.lines.answer().trim_end().len()), "", "12 KB");
    }

    let server = HttpServer::start(product)?;
    let mut http = Http::open(&server)?;
    for tool in ["definition", "hover"] {
        let message = call(tool, &arguments);
        let (ours, theirs) = Times::of_both(
            QUESTIONS,
            || settled(|| http.ask(&message)).map(drop),
            || Ok(bare.request(tool, used).map(drop)?),
        )?;
        compare(&format!("{name}: {tool}, HTTP"), &ours, &theirs, "bare + 0.8 ms");
    }
    Ok(stdio.lines.end()?)
}

/// Waits until the bare server finds as many references as Tenon. Returns the count.
fn settle(
    bare: &mut DirectServer<'_>,
    stdio: &mut Bridge,
    declared: FilePosition<'_>,
    sandbox: &Sandbox,
) -> Result<usize, BenchError> {
    let ours = all_pages(stdio, sandbox, declared)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let theirs = bare.request("references", declared)?.as_array().map_or(0, Vec::len);
        if ours == theirs {
            return Ok(ours);
        }
        if Instant::now() > deadline {
            return Err(BenchError::new(format!("Tenon finds {ours} references, the bare server {theirs}")));
        }
    }
}

/// Positions of the landmark in the file that declares it.
fn uses(
    bare: &mut DirectServer<'_>,
    sandbox: &Sandbox,
    declared: FilePosition<'static>,
) -> Result<Vec<FilePosition<'static>>, BenchError> {
    let found = bare.request("references", declared)?;
    let here = uri(sandbox, declared.file);
    let number = |value: &Value| value.as_u64().unwrap_or_default() as usize;
    let places = found.as_array().into_iter().flatten().filter(|one| one["uri"] == *here).map(|one| {
        let start = &one["range"]["start"];
        FilePosition {
            file: declared.file,
            line: number(&start["line"]),
            character: number(&start["character"]),
        }
    });
    // Each character of a symbol is a different request.
    let mut places: Vec<_> = places
        .flat_map(|place| (0..4).map(move |by| FilePosition { character: place.character + by, ..place }))
        .collect();
    places.truncate(LISTS);
    Ok(places)
}

/// Reads all pages of references. Returns how many there are.
fn all_pages(stdio: &mut Bridge, sandbox: &Sandbox, place: FilePosition<'_>) -> Result<usize, BenchError> {
    let mut arguments = at(sandbox, place);
    arguments["includeDeclaration"] = json!(true);
    arguments["pageSize"] = json!(200);
    let mut count = 0;
    loop {
        let message = call("references", &arguments);
        let mut page = settled(|| stdio.ask(&message))?;
        count += page["items"].as_array().map_or(0, Vec::len);
        arguments["cursor"] = page["nextCursor"].take();
        if arguments["cursor"].is_null() {
            return Ok(count);
        }
    }
}

fn second_page(
    stdio: &mut Bridge,
    sandbox: &Sandbox,
    place: FilePosition<'_>,
    total: usize,
    name: &str,
) -> Result<(), BenchError> {
    let mut arguments = at(sandbox, place);
    arguments["includeDeclaration"] = json!(true);
    let first = call("references", &arguments);
    arguments["cursor"] = settled(|| stdio.ask(&first))?["nextCursor"].take();
    let second = call("references", &arguments);
    let times = Times::of(PAGES, || stdio.ask(&second).map(drop))?;
    row(&format!("{name}: page 2 of {total} references"), &shown(times.median()), "", "2 ms");
    Ok(())
}

fn compare(what: &str, ours: &Times, bare: &Times, aim: &str) {
    row(what, &shown(ours.median()), &beside("bare", ours, bare), aim);
}

fn at(sandbox: &Sandbox, place: FilePosition<'_>) -> Value {
    json!({
        "uri": uri(sandbox, place.file),
        "position": { "line": place.line, "character": place.character },
    })
}

fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": format!("vscode.lsp.{tool}"), "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
}

/// Repeats a request until the server is ready. Returns the payload.
fn settled(mut ask: impl FnMut() -> Result<Value, BenchError>) -> Result<Value, BenchError> {
    loop {
        let mut answer = ask()?;
        if answer["error"]["data"]["details"]["retryAfterMs"].is_null() {
            let failed = answer["error"].is_object();
            let payload = answer["result"]["structuredContent"].take();
            return if failed { Err(BenchError::new(answer.to_string())) } else { Ok(payload) };
        }
    }
}

/// A client of `tenon mcp`.
struct Bridge {
    lines: JsonLines,
}

impl Bridge {
    fn start(product: &Product<'_>) -> Result<Self, BenchError> {
        let mut command = product.sandbox.command(product.tenon);
        command
            .args(["mcp", "--surface", "code", "--root"])
            .arg(product.sandbox.root())
            .stderr(Stdio::null());
        let mut lines = JsonLines::start(&mut command)?;
        lines.initialize()?;
        Ok(Self { lines })
    }

    fn ask(&mut self, message: &str) -> Result<Value, BenchError> {
        self.lines.ask(message)?;
        let text = self.lines.answer();
        serde_json::from_str(text).map_err(|error| BenchError::new(format!("{error}: {text}")))
    }
}

/// A session over HTTP.
struct Http {
    connection: HttpConnection,
    token: String,
    session: String,
}

impl Http {
    fn open(server: &HttpServer) -> Result<Self, BenchError> {
        let mut connection = HttpConnection::open(server.address)?;
        let opened = connection.send(&Request::mcp("/mcp/code", Some(&server.token), INITIALIZE))?;
        let session = opened.header("MCP-Session-Id").unwrap_or_default().to_owned();
        let mut http = Self { connection, token: server.token.clone(), session };
        let initialized = http.request(INITIALIZED);
        http.connection.send(&initialized)?;
        Ok(http)
    }

    fn request(&self, body: &str) -> Request {
        Request::mcp("/mcp/code", Some(&self.token), body)
            .header("MCP-Session-Id", &self.session)
            .header("MCP-Protocol-Version", "2025-11-25")
    }

    fn ask(&mut self, message: &str) -> Result<Value, BenchError> {
        let request = self.request(message);
        let response = self.connection.send(&request)?;
        response.messages().into_iter().next().ok_or_else(|| BenchError::new("no response over HTTP"))
    }
}
