//! A language server that is asked directly: what an answer of ours is held against.

use std::io;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::Sandbox;
use crate::frames::Frames;
use crate::program::tool;

/// A server that set-up installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    Pyright,
    Ty,
    TypeScript,
    Clangd,
}

impl Server {
    /// Its name in the registry.
    pub fn id(self) -> &'static str {
        match self {
            Self::Pyright => "pyright",
            Self::Ty => "ty",
            Self::TypeScript => "typescript-language-server",
            Self::Clangd => "clangd",
        }
    }

    fn command(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Pyright => ("pyright-langserver", &["--stdio"]),
            Self::Ty => ("ty", &["server"]),
            Self::TypeScript => ("typescript-language-server", &["--stdio"]),
            Self::Clangd => ("clangd", &["--background-index", "--limit-references=0", "--limit-results=0"]),
        }
    }

    fn language(self) -> &'static str {
        match self {
            Self::Pyright | Self::Ty => "python",
            Self::TypeScript => "typescript",
            Self::Clangd => "cpp",
        }
    }

    /// Whether it is asked for diagnostics; else it tells.
    pub fn pulls(self) -> bool {
        matches!(self, Self::Pyright | Self::Ty)
    }
}

/// A place in a file, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub file: &'a str,
    pub line: usize,
    pub character: usize,
}

impl<'a> Place<'a> {
    /// The first `name` in the first line of a file that holds `line`. Up to there those lines are ASCII.
    pub fn find(sandbox: &Sandbox, file: &'a str, line: &str, name: &str) -> Self {
        let text = sandbox.tree().read(file);
        let found = text.lines().enumerate().find(|(_, text)| text.contains(line));
        let (number, text) = found.unwrap_or_else(|| panic!("{file} has no `{line}`"));
        let character = text.find(name).unwrap_or_else(|| panic!("{file} has no `{name}` in `{line}`"));
        Place { file, line: number, character }
    }
}

pub fn uri(sandbox: &Sandbox, file: &str) -> String {
    format!("file://{}/{file}", sandbox.root().display())
}

/// A running server.
pub struct Bare<'a> {
    server: Server,
    sandbox: &'a Sandbox,
    child: Child,
    frames: Frames,
    version: u64,
}

impl<'a> Bare<'a> {
    /// A server that has shaken hands and knows nothing yet.
    pub fn start(server: Server, sandbox: &'a Sandbox) -> io::Result<Self> {
        let (program, arguments) = server.command();
        let mut command = sandbox.command(tool(program));
        command.args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdin = child.stdin.take().expect("stdin was piped above");
        let stdout = child.stdout.take().expect("stdout was piped above");
        let mut frames = Frames::new(stdin, stdout);
        let root = format!("file://{}", sandbox.root().display());
        let document = json!({
            "synchronization": {}, "publishDiagnostics": { "versionSupport": true },
            "diagnostic": { "dynamicRegistration": true }, "definition": { "linkSupport": true },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
        });
        // What a client offers decides what a server does first: ty reads its whole project before it answers anything, if
        // it may then ask to be told of changed files.
        let workspace = json!({
            "configuration": true, "diagnostics": { "refreshSupport": true },
            "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
        });
        let capabilities = json!({
            "workspace": workspace, "window": { "workDoneProgress": true }, "textDocument": document,
        });
        let options =
            json!({ "disableAutomaticTypingAcquisition": true, "tsserver": { "useSyntaxServer": "never" } });
        frames.ask(
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

    fn change(&mut self, file: &str, text: &str) -> io::Result<()> {
        let document = json!({ "uri": uri(self.sandbox, file), "version": self.version });
        let changes = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.frames.notify("textDocument/didChange", &changes)
    }

    /// Waits until the server has read its project, of which a file must be open, and has said so as servers of its kind
    /// do.
    pub fn settle(&mut self) -> io::Result<()> {
        let is_read = |heard: &[Value]| {
            let told = |method: &'static str| heard.iter().filter(move |message| message["method"] == method);
            let kinds = |kind: &str| {
                told("$/progress").filter(|message| message["params"]["value"]["kind"] == kind).count()
            };
            match self.server {
                Server::Ty => true,
                Server::Pyright => told("window/logMessage")
                    .any(|message| message["params"]["message"].to_string().contains("source file")),
                Server::TypeScript | Server::Clangd => kinds("end") > 0 && kinds("end") == kinds("begin"),
            }
        };
        while !is_read(&self.frames.heard) {
            self.frames.hear()?;
        }
        Ok(())
    }

    /// The result of a request about a place.
    pub fn ask(&mut self, method: &str, place: Place<'_>) -> io::Result<Value> {
        let params = json!({
            "textDocument": { "uri": uri(self.sandbox, place.file) },
            "position": { "line": place.line, "character": place.character },
            "context": { "includeDeclaration": true },
        });
        self.frames.ask(&format!("textDocument/{method}"), &params)
    }

    /// Whether a definition is the one that was looked for.
    pub fn finds(&mut self, place: Place<'_>, declared: Place<'_>) -> io::Result<bool> {
        let found = self.ask("definition", place)?;
        let first = found.as_array().and_then(|list| list.first()).unwrap_or(&found);
        let target = first["uri"].as_str().or(first["targetUri"].as_str());
        let line = first["range"]["start"]["line"].as_u64();
        let line = line.or(first["targetSelectionRange"]["start"]["line"].as_u64());
        Ok(target == Some(&uri(self.sandbox, declared.file)) && line == Some(declared.line as u64))
    }

    /// Changes the text of an open file and waits until what is known about it fits: something is wrong, or nothing is
    /// wrong in its last line.
    pub fn check(&mut self, file: &str, text: &str, wrong: bool) -> io::Result<()> {
        self.version += 1;
        let uri = uri(self.sandbox, file);
        self.frames.heard.clear();
        self.change(file, text)?;
        let last = text.lines().count() as u64 - 1;
        let fits = |list: &Value| {
            let at_last = |one: &Value| one["range"]["start"]["line"].as_u64() == Some(last);
            list.as_array().is_some_and(|list| list.iter().any(at_last) == wrong)
        };
        if self.server.pulls() {
            let params = json!({ "textDocument": { "uri": uri } });
            while !fits(&self.frames.ask("textDocument/diagnostic", &params)?["items"]) {}
            return Ok(());
        }
        loop {
            self.frames.hear()?;
            let told =
                |message: &Value| message["params"]["uri"] == *uri && fits(&message["params"]["diagnostics"]);
            if self.frames.heard.iter().any(told) {
                return Ok(());
            }
            self.frames.heard.clear();
        }
    }
}

impl Bare<'_> {
    /// Changes the texts of open files, then asks for the diagnostics of all of them: a server gives up what it was asked
    /// before a change. For servers that are asked: of others there is no telling when they are done.
    pub fn check_all<S: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = (S, String)>,
    ) -> io::Result<()> {
        self.version += 1;
        let mut changed = Vec::new();
        for (file, text) in texts {
            self.change(file.as_ref(), &text)?;
            changed.push(json!({ "textDocument": { "uri": uri(self.sandbox, file.as_ref()) } }));
        }
        let mut asked = Vec::new();
        for params in &changed {
            asked.push(self.frames.begin("textDocument/diagnostic", params)?);
        }
        for id in asked {
            self.frames.finish(id)?;
        }
        Ok(())
    }
}

impl Drop for Bare<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
