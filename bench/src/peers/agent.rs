//! One agent's connection to Tenon, Serena, cclsp or a bare language server, with the same questions for each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::direct_server::{DirectServer, FilePosition, InstalledServer, uri};
use tenon_testkit::{RealProject, Sandbox, code_tools, program};

use super::install;
use crate::error::BenchError;
use crate::mcp_session::{Answer, McpSession};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Tenon,
    Serena,
    Cclsp,
    Bare,
}

pub(super) const PEERS: [Peer; 4] = [Peer::Tenon, Peer::Serena, Peer::Cclsp, Peer::Bare];

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tenon => "Tenon",
            Self::Serena => "Serena 2.1.0",
            Self::Cclsp => "cclsp 0.7.0",
            Self::Bare => "bare server",
        }
    }
}

/// The programs.
pub(super) struct Programs {
    pub(super) tenon: PathBuf,
    pub(super) serena: PathBuf,
    pub(super) cclsp: PathBuf,
}

impl Programs {
    pub(super) fn installed(tenon: &Path) -> Result<Self, BenchError> {
        let tenon = tenon.to_owned();
        Ok(Self { tenon, serena: install::serena()?, cclsp: install::cclsp()? })
    }
}

/// A project and the symbol that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) project: RealProject,
    pub(super) server: InstalledServer,
    pub(super) extension: &'static str,
    pub(super) symbol: &'static str,
    pub(super) file: &'static str,
    line: &'static str,
    user: &'static str,
    use_line: &'static str,
    /// Finds that use for Serena, which takes no position.
    use_pattern: &'static str,
    edited: &'static str,
    /// A line that is an error anywhere, a word of the diagnostic, and a line without effect.
    wrong: &'static str,
    wrong_word: &'static str,
    sound: &'static str,
}

pub(super) const CASES: [Case; 2] = [
    Case {
        project: RealProject::Django,
        server: InstalledServer::Pyright,
        extension: "py",
        symbol: "get_resolver",
        file: "django/urls/resolvers.py",
        line: "def get_resolver(",
        user: "django/urls/base.py",
        use_line: "return get_resolver(urlconf).resolve(path)",
        use_pattern: r"return (get_resolver)\(urlconf\)\.resolve",
        edited: "django/utils/text.py",
        wrong: "undefined_name",
        wrong_word: "undefined_name",
        sound: "# nothing is wrong here",
    },
    Case {
        project: RealProject::Rxjs,
        server: InstalledServer::TypeScript,
        extension: "ts",
        symbol: "isFunction",
        file: "src/internal/util/isFunction.ts",
        line: "export function isFunction(",
        user: "src/internal/Subscriber.ts",
        use_line: "if (isFunction(observerOrNext)",
        use_pattern: r"if \((isFunction)\(observerOrNext\)",
        edited: "src/internal/util/identity.ts",
        wrong: "const wrong: number = 'text';",
        wrong_word: "not assignable",
        sound: "// nothing is wrong here",
    },
];

/// How long an agent asks again for an answer that is not right yet.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

const EDIT_PATIENCE: Duration = Duration::from_secs(20);

/// What an answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    Wrong,
    /// An error, such as one that says to ask again.
    Refused,
}

impl Verdict {
    fn of(is_error: bool, is_right: bool) -> Self {
        match (is_error, is_right) {
            (true, _) => Self::Refused,
            (false, true) => Self::Right,
            (false, false) => Self::Wrong,
        }
    }
}

/// An edit with the answers about it.
pub(super) struct Edited {
    pub(super) time: Duration,
    pub(super) wrong_answers: usize,
    pub(super) is_right: bool,
}

enum Connection<'a> {
    Mcp(McpSession),
    Bare(Box<DirectServer<'a>>),
}

/// A file and a line in it, from 1.
pub(super) type Places = BTreeSet<(String, u64)>;

pub(super) struct Agent<'a> {
    peer: Peer,
    case: Case,
    sandbox: &'a Sandbox,
    connection: Connection<'a>,
    declared: FilePosition<'static>,
    used: FilePosition<'static>,
    /// The text of the edited file before the line that changes.
    original: String,
}

/// Writes what a peer reads at its start, and the line that will change.
pub(super) fn prepare(peer: Peer, case: Case, sandbox: &Sandbox) -> Result<(), BenchError> {
    let text = sandbox.tree().read(case.edited);
    sandbox.tree().write(case.edited, &format!("{text}{}\n", case.sound));
    match peer {
        Peer::Tenon => sandbox.write_user_config(&tenon_settings(sandbox)),
        Peer::Serena => write_serena_settings(sandbox)?,
        Peer::Cclsp => {
            let server = match case.server {
                InstalledServer::Pyright => "pyright-langserver",
                _ => "typescript-language-server",
            };
            let server = json!({
                "extensions": [case.extension], "command": [program::tool(server), "--stdio"], "rootDir": ".",
            });
            fs::write(cclsp_settings(sandbox), json!({ "servers": [server] }).to_string())?;
        }
        Peer::Bare => {}
    }
    Ok(())
}

/// Pyright alone for Python, as the peers have it, and edits allowed.
pub(crate) fn tenon_settings(sandbox: &Sandbox) -> String {
    let off = |id: &str| format!("[servers.{id}]\nenabled = false\n");
    format!("[edit]\nallow = [{:?}]\n{}{}", sandbox.root(), off("ty"), off("ruff"))
}

/// The same language servers as Tenon's, no dashboard, one tool per operation.
pub(crate) fn write_serena_settings(sandbox: &Sandbox) -> Result<(), BenchError> {
    let folder = sandbox.dir("home").join(".serena");
    fs::create_dir_all(&folder)?;
    let path = |name: &str| program::tool(name).display().to_string();
    let rust = program::rust_analyzer();
    let rust = rust.map(|path| format!("  rust:\n    ls_path: {}\n", path.display())).unwrap_or_default();
    let text = format!(
        "language_backend: LSP\nagent_interface: tools\nweb_dashboard: false\ngui_log_window: false\nlog_level: 40\n\
         ls_specific_settings:\n  python:\n    ls_path: {}\n  typescript:\n    ls_path: {}\n{rust}projects: []\n",
        path("pyright-langserver"),
        path("typescript-language-server"),
    );
    Ok(fs::write(folder.join("serena_config.yml"), text)?)
}

fn cclsp_settings(sandbox: &Sandbox) -> PathBuf {
    sandbox.dir("config").join("cclsp.json")
}

pub(crate) fn serena_command(serena: &Path, sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command(serena);
    command.args(["start-mcp-server", "--context", "ide", "--agent-interface", "tools"]);
    command.args(["--enable-web-dashboard", "false", "--log-level", "ERROR", "--project"]);
    command.arg(sandbox.root());
    command
}

impl<'a> Agent<'a> {
    /// Starts the peer and waits until it has listed its tools.
    pub(super) fn start(
        peer: Peer,
        case: Case,
        sandbox: &'a Sandbox,
        programs: &Programs,
    ) -> Result<(Self, usize), BenchError> {
        let declared = FilePosition::find(sandbox, case.file, case.line, case.symbol);
        let used = FilePosition::find(sandbox, case.user, case.use_line, case.symbol);
        let mut command = match peer {
            Peer::Tenon => {
                let mut command = sandbox.command(&programs.tenon);
                command.args(["mcp", "--surface", "explore,edit,code"]);
                command
            }
            Peer::Serena => serena_command(&programs.serena, sandbox),
            Peer::Cclsp => {
                let mut command = sandbox.command(&programs.cclsp);
                command.env("CCLSP_CONFIG_PATH", cclsp_settings(sandbox));
                command
            }
            Peer::Bare => {
                let mut server = DirectServer::start(case.server, sandbox)?;
                server.open(case.user)?;
                server.open(case.file)?;
                server.open(case.edited)?;
                let connection = Connection::Bare(Box::new(server));
                return Ok((Self::new(peer, case, sandbox, connection, declared, used), 0));
            }
        };
        let mut session = McpSession::start(&mut command)?;
        let bytes = session.list_tools()?.to_string().len();
        let connection = Connection::Mcp(session);
        Ok((Self::new(peer, case, sandbox, connection, declared, used), bytes))
    }

    fn new(
        peer: Peer,
        case: Case,
        sandbox: &'a Sandbox,
        connection: Connection<'a>,
        declared: FilePosition<'static>,
        used: FilePosition<'static>,
    ) -> Self {
        let text = sandbox.tree().read(case.edited);
        let original = text.trim_end_matches('\n').trim_end_matches(case.sound).to_owned();
        Self { peer, case, sandbox, connection, declared, used, original }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, BenchError> {
        match &mut self.connection {
            Connection::Mcp(session) => session.call(tool, arguments),
            Connection::Bare(_) => Err(BenchError::new("a language server has no tools")),
        }
    }

    /// Asks for the definition of a use.
    pub(super) fn definition(&mut self) -> Result<Verdict, BenchError> {
        let (declared, used, case) = (self.declared, self.used, self.case);
        if let Connection::Bare(server) = &mut self.connection {
            return Ok(Verdict::of(false, server.definition_is(used, declared)?));
        }
        match self.peer {
            Peer::Tenon => {
                let position = json!({ "line": used.line, "character": used.character });
                let arguments = json!({ "uri": uri(self.sandbox, used.file), "position": position });
                let answer = self.call(code_tools::DEFINITION, &arguments)?;
                let found = answer.structured.to_string();
                let line = format!("\"line\":{}", declared.line);
                let is_right = found.contains(&uri(self.sandbox, case.file)) && found.contains(&line);
                Ok(Verdict::of(answer.is_error, is_right))
            }
            Peer::Serena => {
                let arguments = json!({ "relative_path": case.user, "regex": case.use_pattern });
                let answer = self.call("find_declaration", &arguments)?;
                Ok(Verdict::of(answer.is_error, self.is_serena_place(&answer)))
            }
            _ => {
                // It finds symbols only in the file that declares them.
                let arguments = json!({ "file_path": case.file, "symbol_name": case.symbol });
                let answer = self.call("find_definition", &arguments)?;
                // The heading repeats the question with a relative path.
                let place = format!("{}/{}:", self.sandbox.root().display(), self.place());
                Ok(Verdict::of(answer.is_error, answer.text.contains(&place)))
            }
        }
    }

    /// `path:line:` of the declaration.
    fn place(&self) -> String {
        format!("{}:{}", self.case.file, self.declared.line + 1)
    }

    fn is_serena_place(&self, answer: &Answer) -> bool {
        let line = format!("\"start_line\": {}", self.declared.line);
        !answer.is_error && answer.text.contains(self.case.file) && answer.text.contains(&line)
    }

    /// Asks for the declaration by its name alone; `None` if there is no such question.
    pub(super) fn by_name(&mut self) -> Result<Option<bool>, BenchError> {
        let symbol = self.case.symbol;
        Ok(match self.peer {
            Peer::Tenon => {
                let answer = self.call("find", &json!({ "name": symbol }))?;
                Some(answer.text.contains(&self.place()))
            }
            Peer::Serena => {
                let answer = self.call("find_symbol", &json!({ "name_path_pattern": symbol }))?;
                Some(self.is_serena_place(&answer))
            }
            Peer::Cclsp => {
                let answer = self.call("find_workspace_symbols", &json!({ "query": symbol }))?;
                Some(answer.text.contains(&self.place()))
            }
            Peer::Bare => None,
        })
    }

    /// Asks for all uses, without the declaration.
    pub(super) fn references(&mut self) -> Result<Places, BenchError> {
        let (case, declared) = (self.case, self.declared);
        let root = format!("{}/", self.sandbox.root().display());
        let mut places = match self.peer {
            Peer::Bare => {
                let Connection::Bare(server) = &mut self.connection else {
                    return Err(BenchError::new("not a bare server"));
                };
                let found = server.request("references", declared)?;
                let place = |one: &Value| {
                    let file = one["uri"].as_str()?.strip_prefix("file://")?.strip_prefix(&root)?;
                    Some((file.to_owned(), one["range"]["start"]["line"].as_u64()? + 1))
                };
                found.as_array().into_iter().flatten().filter_map(place).collect()
            }
            Peer::Tenon => {
                let arguments = json!({ "symbol": case.symbol, "max_bytes": 64_000 });
                tenon_places(&self.call("references", &arguments)?.text)
            }
            Peer::Serena => {
                let arguments = json!({ "name_path": case.symbol, "relative_path": case.file });
                serena_places(&self.call("find_referencing_symbols", &arguments)?.text)
            }
            Peer::Cclsp => {
                let arguments = json!({ "file_path": case.file, "symbol_name": case.symbol });
                cclsp_places(&self.call("find_references", &arguments)?.text, &root)
            }
        };
        places.remove(&(case.file.to_owned(), declared.line as u64 + 1));
        Ok(places)
    }

    /// Plants an error or removes it and asks until an answer shows exactly that.
    pub(super) fn edit(&mut self, wrong: bool) -> Result<Edited, BenchError> {
        let case = self.case;
        let line = |wrong: bool| if wrong { case.wrong } else { case.sound };
        let text = format!("{}{}\n", self.original, line(wrong));
        let last = text.lines().count();
        let start = Instant::now();
        let mut edited = Edited { time: Duration::ZERO, wrong_answers: 0, is_right: true };
        let mut question = None;
        match self.peer {
            Peer::Bare => {
                if let Connection::Bare(server) = &mut self.connection {
                    server.change_and_check(case.edited, &text, wrong)?;
                }
            }
            Peer::Tenon => {
                let arguments =
                    json!({ "file": case.edited, "old_text": line(!wrong), "new_text": line(wrong) });
                let answer = self.call("edit_file", &arguments)?;
                let list = |name: &str| answer.structured[name].as_array().cloned().unwrap_or_default();
                let is_it = |one: &Value| one["line"] == last && one["file"] == case.edited;
                let (shown, others) = if wrong { ("new", "gone") } else { ("gone", "new") };
                let is_right =
                    !list(shown).is_empty() && list(shown).iter().all(is_it) && list(others).is_empty();
                if !is_right {
                    edited.wrong_answers += 1;
                    question = Some(("problems", json!({ "scope": case.edited })));
                }
            }
            Peer::Serena => {
                let arguments = json!({
                    "relative_path": case.edited, "needle": line(!wrong), "repl": line(wrong), "mode": "literal",
                });
                self.call("replace_content", &arguments)?;
                let lines = json!({
                    "relative_path": case.edited, "start_line": last - 1, "end_line": last - 1, "min_severity": 1,
                });
                question = Some(("get_diagnostics_for_file", lines));
            }
            Peer::Cclsp => {
                self.sandbox.tree().write(case.edited, &text);
                question = Some(("get_diagnostics", json!({ "file_path": case.edited })));
            }
        }
        if let Some((tool, arguments)) = question {
            while self.call(tool, &arguments)?.text.contains(case.wrong_word) != wrong {
                edited.wrong_answers += 1;
                if start.elapsed() > EDIT_PATIENCE {
                    edited.is_right = false;
                    break;
                }
            }
        }
        edited.time = start.elapsed();
        Ok(edited)
    }
}

/// Lines such as `path` and, below it, `  12 in name: code`.
fn tenon_places(text: &str) -> Places {
    let mut places = Places::new();
    let mut file = "";
    for line in text.lines().skip(1) {
        match line.strip_prefix("  ") {
            None => file = line,
            Some(rest) => {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                places.extend(digits.parse().ok().map(|number| (file.to_owned(), number)));
            }
        }
    }
    places
}

/// JSON by file and kind; the lines that count start with `  >`, numbered from 0.
fn serena_places(text: &str) -> Places {
    let found: Value = serde_json::from_str(text).unwrap_or_default();
    let mut places = Places::new();
    for (file, kinds) in found.as_object().into_iter().flatten() {
        let symbols = kinds.as_object().into_iter().flatten().flat_map(|(_, list)| list.as_array()).flatten();
        for symbol in symbols {
            let around = symbol["content_around_reference"].as_str().unwrap_or_default();
            let numbers = around.lines().filter_map(|line| line.trim_start().strip_prefix('>'));
            let numbers = numbers.filter_map(|line| line.trim_start().split(':').next()?.parse::<u64>().ok());
            places.extend(numbers.map(|number| (file.clone(), number + 1)));
        }
    }
    places
}

/// Lines such as `<root>/path:12:3`.
fn cclsp_places(text: &str, root: &str) -> Places {
    let place = |line: &str| {
        let mut parts = line.trim().strip_prefix(root)?.split(':');
        Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
    };
    text.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_places_are_read_from_all_forms() {
        let expected = Places::from([("a/b.py".to_owned(), 4), ("a/b.py".to_owned(), 31)]);
        assert_eq!(
            tenon_places("f: 2 references in 1 file\na/b.py\n  4: import f\n  31 in g: f(2)\n"),
            expected
        );
        let around = |line: u64| format!("...   {}:x\n  >  {line}:f\n...  {}:y", line - 1, line + 1);
        let symbols = json!([
            { "content_around_reference": around(3) }, { "content_around_reference": around(30) },
        ]);
        assert_eq!(serena_places(&json!({ "a/b.py": { "File": symbols } }).to_string()), expected);
        let text = "Results for f (function) at a/b.py:1:5:\n/tree/a/b.py:4:8\n/tree/a/b.py:31:2";
        assert_eq!(cclsp_places(text, "/tree/"), expected);
    }
}
