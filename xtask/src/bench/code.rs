//! What the `code` surface adds to the language server behind it: the same questions, put to a bare server in the same run.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenon_testkit::Sandbox;
use tenon_testkit::http::{Connection, Request};
use tenon_testkit::program::tool;

use super::lines::{INITIALIZE, INITIALIZED, Lines};
use super::measure::{Times, row, shown, table};
use crate::product::{HttpServer, Product};
use crate::shell::{Failure, say};

const QUESTIONS: usize = 500;
const LISTS: usize = 50;
/// As many uses as the engine's bench finds in real code, and as many as the contract allows.
const USES: usize = 393;
const MANY_USES: usize = 19_999;

pub(super) fn run(tenon: &Path) -> Result<(), Failure> {
    table("Code");
    let sandbox = Sandbox::with_example("polyglot");
    for (file, uses) in [("few.ts", USES), ("many.ts", MANY_USES)] {
        let name = file.trim_end_matches(".ts");
        let text = format!("export const {name} = 1;\n{}", format!("{name};\n").repeat(uses));
        sandbox.tree().write(format!("web/src/{file}"), &text);
    }
    let product = Product { tenon, sandbox: &sandbox };

    say("the bare language server");
    let mut bare = Bare::start(&sandbox)?;
    let bare_definition = bare.times("definition", &sandbox, "label.ts", 12, 78, QUESTIONS)?;
    let bare_hover = bare.times("hover", &sandbox, "label.ts", 12, 78, QUESTIONS)?;
    let bare_references = bare.times("references", &sandbox, "few.ts", 0, 14, LISTS)?;
    bare.end();

    say("over stdio");
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--surface", "code", "--root"]).arg(sandbox.root()).stderr(Stdio::null());
    let mut lines = Lines::start(&mut command)?;
    lines.initialize()?;
    let mut over_stdio = |message: &str| -> Result<Value, Failure> {
        lines.ask(message)?;
        parsed(lines.answer())
    };
    for (tool, bare, aim) in
        [("definition", &bare_definition, "bare + 0.5 ms"), ("hover", &bare_hover, "bare + 0.5 ms")]
    {
        let times = timed(&mut over_stdio, &call(tool, &at(&sandbox, "label.ts", 12, 78)), QUESTIONS)?;
        compared(&format!("{tool}, stdio, p50"), times.median(), bare.median(), aim);
    }
    let mut few = at(&sandbox, "few.ts", 0, 14);
    few["pageSize"] = json!(200);
    settled(&mut over_stdio, &call("references", &few))?;
    // Each of these is a state of its own, so that none is served from what was kept.
    let mut times = Times::default();
    for round in 0..LISTS {
        sandbox.tree().write("web/src/round.ts", &format!("export const round = {round};\n"));
        settled(&mut over_stdio, &call("hover", &at(&sandbox, "few.ts", 0, 14)))?;
        let start = std::time::Instant::now();
        settled(&mut over_stdio, &call("references", &few))?;
        times.add(start.elapsed());
    }
    compared(
        &format!("{USES} references, first page, p50"),
        times.median(),
        bare_references.median(),
        "bare × 1.25",
    );
    for (file, total) in [("few.ts", USES), ("many.ts", MANY_USES)] {
        let mut first = at(&sandbox, file, 0, 14);
        first["pageSize"] = json!(100);
        let page = settled(&mut over_stdio, &call("references", &first))?;
        first["cursor"] = page["result"]["structuredContent"]["nextCursor"].clone();
        let times = timed(&mut over_stdio, &call("references", &first), QUESTIONS)?;
        row(&format!("page 2 of {total} references, p50"), &shown(times.median()), "", "2 ms");
    }
    lines.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)?;
    row("`tools/list`", &format!("{} bytes", lines.answer().trim_end().len()), "", "12 KB");
    lines.end()?;

    say("over HTTP");
    let server = HttpServer::start(&product)?;
    let mut connection = Connection::open(server.address)?;
    let post = |body: &str| Request::mcp("/mcp/code", Some(&server.token), body);
    let opened = connection.send(&post(INITIALIZE))?;
    let session = opened.header("MCP-Session-Id").unwrap_or_default().to_owned();
    let within = |body: &str| {
        post(body).header("MCP-Session-Id", &session).header("MCP-Protocol-Version", "2025-11-25")
    };
    connection.send(&within(INITIALIZED))?;
    let mut over_http = |message: &str| -> Result<Value, Failure> {
        let response = connection.send(&within(message))?;
        response.messages().into_iter().next().ok_or_else(|| Failure::new("no answer over HTTP"))
    };
    for (tool, bare) in [("definition", &bare_definition), ("hover", &bare_hover)] {
        let times = timed(&mut over_http, &call(tool, &at(&sandbox, "label.ts", 12, 78)), QUESTIONS)?;
        compared(&format!("{tool}, HTTP, p50"), times.median(), bare.median(), "bare + 0.8 ms");
    }
    drop(server);
    product.stop()
}

fn compared(what: &str, ours: Duration, bare: Duration, aim: &str) {
    row(what, &shown(ours), &format!("{} bare", shown(bare)), aim);
}

fn uri(sandbox: &Sandbox, file: &str) -> String {
    format!("file://{}/web/src/{file}", sandbox.root().display())
}

fn at(sandbox: &Sandbox, file: &str, line: u32, character: u32) -> Value {
    json!({ "uri": uri(sandbox, file), "position": { "line": line, "character": character } })
}

fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": format!("vscode.lsp.{tool}"), "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
}

fn parsed(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::new(format!("{error}: {text}")))
}

/// Asks until there is an answer.
fn settled(ask: &mut impl FnMut(&str) -> Result<Value, Failure>, message: &str) -> Result<Value, Failure> {
    loop {
        let answer = ask(message)?;
        if answer["error"]["data"]["details"]["retryAfterMs"].is_null() {
            let failed = answer["error"].is_object();
            return if failed { Err(Failure::new(answer.to_string())) } else { Ok(answer) };
        }
    }
}

fn timed(
    ask: &mut impl FnMut(&str) -> Result<Value, Failure>,
    message: &str,
    count: usize,
) -> Result<Times, Failure> {
    settled(ask, message)?;
    Times::of(count, || settled(ask, message).map(drop))
}

/// A language server that is asked directly.
struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Bare {
    fn start(sandbox: &Sandbox) -> Result<Self, Failure> {
        let mut command = sandbox.command(tool("typescript-language-server"));
        let mut child = command
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().expect("stdin was piped above");
        let stdout = BufReader::new(child.stdout.take().expect("stdout was piped above"));
        let mut bare = Self { child, stdin, stdout, last: 0 };
        let root = format!("file://{}", sandbox.root().display());
        let options =
            json!({ "disableAutomaticTypingAcquisition": true, "tsserver": { "useSyntaxServer": "never" } });
        bare.ask(
            "initialize",
            &json!({ "processId": null, "rootUri": root, "capabilities": {}, "initializationOptions": options }),
        )?;
        bare.say(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))?;
        for file in ["label.ts", "few.ts"] {
            let text = sandbox.tree().read(format!("web/src/{file}"));
            let document =
                json!({ "uri": uri(sandbox, file), "languageId": "typescript", "version": 1, "text": text });
            bare.say(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } }))?;
        }
        Ok(bare)
    }

    fn times(
        &mut self,
        method: &str,
        sandbox: &Sandbox,
        file: &str,
        line: u32,
        character: u32,
        count: usize,
    ) -> Result<Times, Failure> {
        let params = json!({
            "textDocument": { "uri": uri(sandbox, file) }, "position": { "line": line, "character": character },
            "context": { "includeDeclaration": false },
        });
        let method = format!("textDocument/{method}");
        Times::of(count, || self.ask(&method, &params).map(drop))
    }

    fn say(&mut self, message: &Value) -> io::Result<()> {
        let body = message.to_string();
        self.stdin.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.receive()?;
            if message["method"].is_string() {
                if !message["id"].is_null() {
                    self.say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": null }))?;
                }
            } else if message["id"] == id {
                return Ok(message);
            }
        }
    }

    fn receive(&mut self) -> Result<Value, Failure> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(Failure::new("the bare language server ended"));
            }
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", bytes)) => length = bytes.parse().unwrap_or(0),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stdout.read_exact(&mut body)?;
        parsed(&String::from_utf8_lossy(&body))
    }

    fn end(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
