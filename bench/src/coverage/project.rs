//! A copied project, and questions about it to new processes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tenon_testkit::direct_server::{InstalledServer, uri};
use tenon_testkit::{McpClient, RealProject, Sandbox, code_tools};

use crate::compile_commands;
use crate::error::BenchError;
use crate::source_sample::{self, Random};

/// Servers for the same files as one that is measured.
const ALTERNATIVES: [&str; 5] = ["pyright", "ty", "ruff", "typescript-language-server", "typescript-native"];

/// The files of each server: first the extension that symbols are chosen from.
const EXTENSIONS: [(&str, &[&str]); 5] = [
    ("typescript", &["ts", "tsx", "mts", "cts", "js", "mjs", "cjs", "jsx"]),
    ("pyright", &["py", "pyi"]),
    ("ty", &["py", "pyi"]),
    ("clangd", &["h", "hpp", "cpp", "cc", "c"]),
    ("rust-analyzer", &["rs"]),
];

/// The last of the symbol kinds file, module and namespace.
const NAMESPACE: u64 = 3;

/// A project with one server.
pub(super) struct Project {
    pub(super) title: String,
    pub(super) server: String,
    pub(super) sandbox: Sandbox,
    /// The files that symbols are chosen from.
    pub(super) files: Vec<String>,
    /// All files that the server serves.
    pub(super) served: Vec<String>,
    tenon: std::path::PathBuf,
}

/// A declared name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceSymbol {
    pub(super) file: String,
    pub(super) line: u64,
    pub(super) character: u64,
    pub(super) name: String,
    /// Whether it is not inside another symbol, except a namespace.
    pub(super) is_outermost: bool,
}

impl Project {
    pub(super) fn installed(tenon: &Path, source: RealProject, server: &str) -> Result<Self, BenchError> {
        Self::new(tenon, format!("{source:?}"), Sandbox::with_project(source), server)
    }

    pub(super) fn copied(tenon: &Path, tree: &Path, server: &str) -> Result<Self, BenchError> {
        let sandbox = Sandbox::new();
        sandbox.tree().copy_from(tree);
        if server == "clangd" {
            compile_commands::write(&sandbox);
        }
        let name = tree.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self::new(tenon, name, sandbox, server)
    }

    fn new(tenon: &Path, name: String, sandbox: Sandbox, server: &str) -> Result<Self, BenchError> {
        let switch = |id: &str| format!("[servers.{id}]\nenabled = {}\n", id == server);
        sandbox.write_user_config(&ALTERNATIVES.map(switch).concat());
        let trusted = sandbox.command(tenon).arg("trust").output()?;
        if !trusted.status.success() {
            return Err(BenchError::new(String::from_utf8_lossy(&trusted.stderr)));
        }
        let found = EXTENSIONS.iter().find(|(id, _)| server.starts_with(id));
        let Some((_, extensions)) = found else {
            return Err(BenchError::new(format!("no extensions are known for `{server}`")));
        };
        let of = |extension: &&str| source_sample::files(&sandbox, extension);
        let (files, served) = (of(&extensions[0]), extensions.iter().flat_map(of).collect());
        let title = format!("{name}, {server}");
        Ok(Self { title, server: server.to_owned(), sandbox, files, served, tenon: tenon.to_owned() })
    }

    /// The server, if it can be asked directly.
    pub(super) fn bare(&self) -> Option<InstalledServer> {
        use InstalledServer::{Clangd, Pyright, Ty, TypeScript};
        [Clangd, Pyright, Ty, TypeScript].into_iter().find(|server| server.id() == self.server)
    }

    pub(super) fn uri(&self, file: &str) -> String {
        uri(&self.sandbox, file)
    }

    /// A path as it is shown: relative to the root.
    pub(super) fn file<'u>(&self, uri: &'u str) -> &'u str {
        let root = format!("file://{}/", self.sandbox.root().display());
        uri.strip_prefix(&root).unwrap_or(uri)
    }

    /// `file:line:character` of a location.
    pub(super) fn place(&self, location: &Value) -> String {
        let start = &location["range"]["start"];
        let file = self.file(location["uri"].as_str().unwrap_or_default());
        format!("{file}:{}:{}", start["line"], start["character"])
    }

    /// A new process with its own servers.
    pub(super) fn session(&self) -> Session<'_> {
        let mut command = self.sandbox.command(&self.tenon);
        command.args(["mcp", "--no-daemon", "--surface", "code"]).stderr(Stdio::null());
        Session { project: self, client: McpClient::connect(&mut command) }
    }

    /// Random symbols, each once.
    pub(super) fn choose(
        &self,
        random: &mut Random,
        count: usize,
        fits: impl Fn(&SourceSymbol) -> bool,
    ) -> Vec<SourceSymbol> {
        let mut session = self.session();
        let mut chosen: Vec<SourceSymbol> = Vec::new();
        for _ in 0..count * 20 {
            let Some(file) = random.choose(&self.files).filter(|_| chosen.len() < count) else {
                break;
            };
            let symbols: Vec<SourceSymbol> = session.symbols(file).into_iter().filter(&fits).collect();
            if let Some(symbol) = random.choose(&symbols).filter(|symbol| !chosen.contains(symbol)) {
                chosen.push(symbol.clone());
            }
        }
        chosen
    }
}

impl SourceSymbol {
    pub(super) fn arguments(&self, project: &Project) -> Value {
        json!({ "uri": project.uri(&self.file), "position": { "line": self.line, "character": self.character } })
    }
}

/// The places in an answer.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) found: BTreeSet<String>,
    /// Whether the answer is marked as possibly incomplete.
    pub(super) is_marked: bool,
}

/// A process that answers questions.
pub(super) struct Session<'p> {
    project: &'p Project,
    client: McpClient,
}

impl Session<'_> {
    /// The answer to a question, repeated while a server loads; or the code of the error.
    pub(super) fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        loop {
            match self.client.call_tool(tool, arguments.clone()) {
                Ok(answer) => return Ok(answer.structured),
                Err(error) if error.data["details"]["retryAfterMs"].is_null() => {
                    return Err(format!("error {}: {}", error.data["code"], error.message));
                }
                Err(_) => {}
            }
        }
    }

    /// All pages of a list, and whether it is marked as possibly incomplete.
    pub(super) fn pages(&mut self, tool: &str, arguments: &Value) -> Result<(Vec<Value>, bool), String> {
        let mut arguments = arguments.clone();
        let mut items = Vec::new();
        loop {
            let mut page = self.ask(tool, &arguments)?;
            let is_marked = page["summary"].as_str().is_some_and(|summary| summary.contains("Not proven"));
            if let Some(found) = page["items"].as_array_mut() {
                items.append(found);
            }
            match page["nextCursor"].as_str() {
                Some(cursor) => arguments["cursor"] = json!(cursor),
                None => return Ok((items, is_marked)),
            }
        }
    }

    /// The references of a symbol with its declaration, or the error.
    pub(super) fn references(&mut self, symbol: &SourceSymbol) -> Result<Places, String> {
        let mut arguments = symbol.arguments(self.project);
        arguments["includeDeclaration"] = json!(true);
        let (items, is_marked) = self.pages(code_tools::REFERENCES, &arguments)?;
        Ok(Places { found: items.iter().map(|item| self.project.place(item)).collect(), is_marked })
    }

    /// The symbols of a file whose name is in the text.
    fn symbols(&mut self, file: &str) -> Vec<SourceSymbol> {
        let arguments = json!({ "uri": self.project.uri(file) });
        let Ok(answer) = self.ask(code_tools::DOCUMENT_SYMBOLS, &arguments) else {
            return Vec::new();
        };
        let text = self.project.sandbox.tree().read(file);
        let lines: Vec<&str> = text.lines().collect();
        let all = answer["symbols"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_scope = |found: &Value| found["kind"].as_u64().is_some_and(|kind| kind <= NAMESPACE);
        let scopes: BTreeSet<&str> =
            all.iter().filter(|found| is_scope(found)).filter_map(|found| found["name"].as_str()).collect();
        let mut symbols = Vec::new();
        for found in all {
            let start = &found["selectionRange"]["start"];
            let (Some(line), Some(character), Some(name)) =
                (start["line"].as_u64(), start["character"].as_u64(), found["name"].as_str())
            else {
                continue;
            };
            let written = lines.get(line as usize).filter(|text| text.is_ascii());
            let rest = written.and_then(|text| text.get(character as usize..));
            let ends = |rest: &str| !rest.starts_with(super::word_search::is_part);
            if name.len() > 2
                && name.chars().all(super::word_search::is_part)
                && rest.and_then(|rest| rest.strip_prefix(name)).is_some_and(ends)
            {
                let container = found["containerName"].as_str();
                let is_outermost = container.is_none_or(|name| scopes.contains(name)) && !is_scope(found);
                symbols.push(SourceSymbol {
                    file: file.to_owned(),
                    line,
                    character,
                    name: name.to_owned(),
                    is_outermost,
                });
            }
        }
        symbols
    }

    /// Random questions of every kind.
    pub(super) fn warm_up(&mut self, random: &mut Random, symbols: &[SourceSymbol], count: usize) {
        for _ in 0..count {
            let Some(symbol) = random.choose(symbols) else {
                return;
            };
            let at = symbol.arguments(self.project);
            // Only the question matters here.
            let _ = match random.below(5) {
                0 => self.ask(code_tools::HOVER, &at),
                1 => self.ask(code_tools::DEFINITION, &at),
                2 => self.ask(code_tools::DOCUMENT_SYMBOLS, &json!({ "uri": at["uri"] })),
                3 => self.ask(code_tools::WORKSPACE_SYMBOLS, &json!({ "query": symbol.name })),
                _ => self.ask(code_tools::REFERENCES, &at),
            };
        }
    }
}
