//! A language server driven directly over stdio, as the reference for Tenon's answers.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::Sandbox;
use crate::framed_rpc::FramedRpc;
use crate::program::{rust_analyzer, tool, typescript_7};

/// A language server that `cargo xtask setup` installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledServer {
    Pyright,
    Ty,
    TypeScript,
    /// TypeScript 7.
    TypeScriptNative,
    Clangd,
    /// Not installed by `cargo xtask setup`: the first one in `PATH` that runs.
    RustAnalyzer,
}

impl InstalledServer {
    /// The id in Tenon's server registry.
    pub fn id(self) -> &'static str {
        match self {
            Self::Pyright => "pyright",
            Self::Ty => "ty",
            Self::TypeScript => "typescript-language-server",
            Self::TypeScriptNative => "typescript-native",
            Self::Clangd => "clangd",
            Self::RustAnalyzer => "rust-analyzer",
        }
    }

    fn command(self) -> (PathBuf, &'static [&'static str]) {
        match self {
            Self::Pyright => (tool("pyright-langserver"), &["--stdio"]),
            Self::Ty => (tool("ty"), &["server"]),
            Self::TypeScript => (tool("typescript-language-server"), &["--stdio"]),
            Self::TypeScriptNative => (typescript_7(), &["--lsp", "--stdio"]),
            Self::Clangd => {
                (tool("clangd"), &["--background-index", "--limit-references=0", "--limit-results=0"])
            }
            Self::RustAnalyzer => (rust_analyzer().unwrap_or_else(|| "rust-analyzer".into()), &[]),
        }
    }

    fn language(self) -> &'static str {
        match self {
            Self::Pyright | Self::Ty => "python",
            Self::TypeScript | Self::TypeScriptNative => "typescript",
            Self::Clangd => "cpp",
            Self::RustAnalyzer => "rust",
        }
    }

    /// Whether it answers diagnostic requests; the others publish diagnostics.
    pub fn pulls(self) -> bool {
        matches!(self, Self::Pyright | Self::Ty | Self::TypeScriptNative | Self::RustAnalyzer)
    }
}

/// A zero-based position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePosition<'a> {
    pub file: &'a str,
    pub line: usize,
    pub character: usize,
}

impl<'a> FilePosition<'a> {
    /// The first `name` in the first line that contains `line`. The text before it must be ASCII.
    pub fn find(sandbox: &Sandbox, file: &'a str, line: &str, name: &str) -> Self {
        let text = sandbox.tree().read(file);
        let found = text.lines().enumerate().find(|(_, text)| text.contains(line));
        let (number, text) = found.unwrap_or_else(|| panic!("{file} has no `{line}`"));
        let character = text.find(name).unwrap_or_else(|| panic!("{file} has no `{name}` in `{line}`"));
        FilePosition { file, line: number, character }
    }
}

pub fn uri(sandbox: &Sandbox, file: &str) -> String {
    format!("file://{}/{file}", sandbox.root().display())
}

/// A running language server.
pub struct DirectServer<'a> {
    server: InstalledServer,
    sandbox: &'a Sandbox,
    child: Child,
    frames: FramedRpc,
    version: u64,
}

impl<'a> DirectServer<'a> {
    /// Starts and initializes the server, without open files.
    pub fn start(server: InstalledServer, sandbox: &'a Sandbox) -> io::Result<Self> {
        let (program, arguments) = server.command();
        let mut command = sandbox.command(program);
        command.args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdin = child.stdin.take().expect("stdin was piped above");
        let stdout = child.stdout.take().expect("stdout was piped above");
        let mut frames = FramedRpc::new(stdin, stdout);
        let root = format!("file://{}", sandbox.root().display());
        let document = json!({
            "synchronization": {}, "publishDiagnostics": { "versionSupport": true },
            "diagnostic": { "dynamicRegistration": true }, "definition": { "linkSupport": true },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
        });
        // Client capabilities change what a server does first: ty reads its whole project before it answers, if the client
        // supports file watching.
        let workspace = json!({
            "configuration": true, "diagnostics": { "refreshSupport": true },
            "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
        });
        let capabilities = json!({
            "workspace": workspace, "window": { "workDoneProgress": true }, "textDocument": document,
            // rust-analyzer then reports when it has loaded everything.
            "experimental": { "serverStatusNotification": true },
        });
        let options =
            json!({ "disableAutomaticTypingAcquisition": true, "tsserver": { "useSyntaxServer": "never" } });
        frames.request(
            "initialize",
            &json!({
                "processId": std::process::id(), "rootUri": root, "capabilities": capabilities,
                "workspaceFolders": [{ "uri": root, "name": "root" }], "initializationOptions": options,
            }),
        )?;
        frames.notify("initialized", &json!({}))?;
        Ok(Self { server, sandbox, child, frames, version: 1 })
    }

    pub fn open(&mut self, file: &str) -> io::Result<()> {
        let document = json!({
            "uri": uri(self.sandbox, file), "languageId": self.server.language(), "version": self.version,
            "text": self.sandbox.tree().read(file),
        });
        self.frames.notify("textDocument/didOpen", &json!({ "textDocument": document }))
    }

    pub fn close(&mut self, file: &str) -> io::Result<()> {
        let document = json!({ "uri": uri(self.sandbox, file) });
        self.frames.notify("textDocument/didClose", &json!({ "textDocument": document }))
    }

    fn change(&mut self, file: &str, text: &str) -> io::Result<()> {
        let document = json!({ "uri": uri(self.sandbox, file), "version": self.version });
        let changes = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.frames.notify("textDocument/didChange", &changes)
    }

    /// Waits until the server reports that it has read its project. A file of the project must be open.
    pub fn wait_until_ready(&mut self) -> io::Result<()> {
        let is_ready = |notifications: &[Value]| {
            let received = |method: &'static str| {
                notifications.iter().filter(move |message| message["method"] == method)
            };
            let kinds = |kind: &str| {
                received("$/progress").filter(|message| message["params"]["value"]["kind"] == kind).count()
            };
            match self.server {
                InstalledServer::Ty | InstalledServer::TypeScriptNative => true,
                InstalledServer::Pyright => received("window/logMessage")
                    .any(|message| message["params"]["message"].to_string().contains("source file")),
                InstalledServer::TypeScript | InstalledServer::Clangd => {
                    kinds("end") > 0 && kinds("end") == kinds("begin")
                }
                InstalledServer::RustAnalyzer => received("experimental/serverStatus")
                    .next_back()
                    .is_some_and(|message| message["params"]["quiescent"] == true),
            }
        };
        while !is_ready(&self.frames.notifications) {
            self.frames.receive_next()?;
        }
        Ok(())
    }

    /// The result of any request.
    pub fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.frames.request(method, params)
    }

    /// The result of a request at a position.
    pub fn request(&mut self, method: &str, position: FilePosition<'_>) -> io::Result<Value> {
        let params = json!({
            "textDocument": { "uri": uri(self.sandbox, position.file) },
            "position": { "line": position.line, "character": position.character },
            "context": { "includeDeclaration": true },
        });
        self.frames.request(&format!("textDocument/{method}"), &params)
    }

    /// The symbols of an open file, as a tree.
    pub fn document_symbols(&mut self, file: &str) -> io::Result<Value> {
        let params = json!({ "textDocument": { "uri": uri(self.sandbox, file) } });
        self.frames.request("textDocument/documentSymbol", &params)
    }

    /// Whether the definition of the symbol at `position` is at `declared`.
    pub fn definition_is(
        &mut self,
        position: FilePosition<'_>,
        declared: FilePosition<'_>,
    ) -> io::Result<bool> {
        let found = self.request("definition", position)?;
        let first = found.as_array().and_then(|list| list.first()).unwrap_or(&found);
        let target = first["uri"].as_str().or(first["targetUri"].as_str());
        let line = first["range"]["start"]["line"].as_u64();
        let line = line.or(first["targetSelectionRange"]["start"]["line"].as_u64());
        Ok(target == Some(&uri(self.sandbox, declared.file)) && line == Some(declared.line as u64))
    }

    /// Changes the text of an open file and waits until its last line has a diagnostic (`wrong`) or has none.
    pub fn change_and_check(&mut self, file: &str, text: &str, wrong: bool) -> io::Result<()> {
        self.version += 1;
        let uri = uri(self.sandbox, file);
        self.frames.notifications.clear();
        self.change(file, text)?;
        let last = text.lines().count() as u64 - 1;
        let fits = |list: &Value| {
            let at_last = |one: &Value| one["range"]["start"]["line"].as_u64() == Some(last);
            list.as_array().is_some_and(|list| list.iter().any(at_last) == wrong)
        };
        if self.server.pulls() {
            let params = json!({ "textDocument": { "uri": uri } });
            while !fits(&self.frames.request("textDocument/diagnostic", &params)?["items"]) {}
            return Ok(());
        }
        loop {
            self.frames.receive_next()?;
            let matches =
                |message: &Value| message["params"]["uri"] == *uri && fits(&message["params"]["diagnostics"]);
            if self.frames.notifications.iter().any(matches) {
                return Ok(());
            }
            self.frames.notifications.clear();
        }
    }
}

impl DirectServer<'_> {
    /// Changes the texts of open files, then requests the diagnostics of all of them; a server may cancel requests sent
    /// before a change. Only for servers that answer diagnostic requests: others do not report when they are done.
    pub fn change_and_check_all<S: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = (S, String)>,
    ) -> io::Result<()> {
        self.version += 1;
        let mut changed = Vec::new();
        for (file, text) in texts {
            self.change(file.as_ref(), &text)?;
            changed.push(json!({ "textDocument": { "uri": uri(self.sandbox, file.as_ref()) } }));
        }
        let mut requests = Vec::new();
        for params in &changed {
            requests.push(self.frames.send_request("textDocument/diagnostic", params)?);
        }
        for id in requests {
            self.frames.wait_response(id)?;
        }
        Ok(())
    }
}

impl Drop for DirectServer<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
