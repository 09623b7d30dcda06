//! Real language servers against golden results: a folder is a case, and a new language is a new folder.
//!
//! `tests/servers/<case>/case.json` names the servers and the questions about `workspace/`, and `expected.json` holds the
//! answers (`TENON_UPDATE=1` rewrites it). Every question is asked twice: right after the servers start, and when they
//! have settled. A first answer that claims to be complete must equal the settled one, which is kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tenon_contract::position::{Encoding, LineIndex, Position, Range};
use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::model::{AnswerNote, Location, LspAnswer, Symbol};
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_servers::confinement::ConfinementSettings;
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::{Registry, ServerEntry, Switch};
use tenon_testkit::{program, rust_toolchain};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    servers: Vec<String>,
    /// The case whose workspace is used, instead of an own one.
    #[serde(default)]
    workspace_of: Option<String>,
    /// Link the installed packages into the workspace, for servers that use its `node_modules`.
    #[serde(default)]
    node_modules: bool,
    /// Files in which `$ROOT` is replaced by the path of the workspace.
    #[serde(default)]
    rooted: Vec<String>,
    /// Symbolic links to create, with their targets, as package managers do.
    #[serde(default)]
    links: BTreeMap<String, String>,
    /// Use a Rust toolchain without the standard library's source, as not all machines have it.
    #[serde(default)]
    without_library_source: bool,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    ask: Ask,
    #[serde(default)]
    file: Option<String>,
    /// A snippet of the file; the position is its start.
    #[serde(default)]
    at: Option<String>,
    /// Whether references include declarations.
    #[serde(default = "yes")]
    declaration: bool,
    /// The query of a workspace-wide question.
    #[serde(default)]
    query: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Ask {
    Definition,
    References,
    Hover,
    Implementation,
    DocumentSymbols,
    WorkspaceSymbols,
    Check,
}

fn run(path: &Path) -> datatest_stable::Result<()> {
    let folder = path.parent().ok_or("a case lies in a folder")?;
    let case: Case = serde_json::from_str(&fs::read_to_string(path)?)?;
    let workspace = tempfile::tempdir()?;
    let owner = case.workspace_of.as_ref().map_or(folder.to_owned(), |name| folder.with_file_name(name));
    copy(&owner.join("workspace"), workspace.path())?;
    for file in &case.rooted {
        let file = workspace.path().join(file);
        let root = workspace.path().canonicalize()?;
        fs::write(&file, fs::read_to_string(&file)?.replace("$ROOT", &root.to_string_lossy()))?;
    }
    for (link, target) in &case.links {
        let link = workspace.path().join(link);
        fs::create_dir_all(link.parent().ok_or("a link lies in a folder")?)?;
        std::os::unix::fs::symlink(target, link)?;
    }
    if case.node_modules {
        std::os::unix::fs::symlink(program::node_modules(), workspace.path().join("node_modules"))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let answers = runtime.block_on(ask_all(&case, workspace.path()))?;
    let name = folder.file_name().ok_or("a case has a name")?.to_string_lossy().into_owned();
    let text = serde_json::to_string_pretty(&answers)? + "\n";
    tenon_testkit::generated::check(format!("crates/tenon-lsp/tests/servers/{name}/expected.json"), &text);
    Ok(())
}

async fn ask_all(case: &Case, root: &Path) -> datatest_stable::Result<Vec<Value>> {
    let gate = RootGate::new([root])?;
    let home = gate.primary().ok_or("one root")?.to_owned();
    let known = Registry::built_in();
    let entries: Vec<ServerEntry> = known
        .entries()
        .iter()
        .filter(|entry| case.servers.iter().any(|id| id == entry.id.as_str()))
        .map(|entry| ServerEntry { enabled: Switch::On, ..entry.clone() })
        .collect();
    assert_eq!(entries.len(), case.servers.len(), "every server of a case is in the registry");
    for entry in &entries {
        program::language_server(&entry.command);
    }
    let confinement = ConfinementSettings::new(None, home.join(".cache/tenon"));
    let toolchain = tempfile::tempdir()?;
    let path = match case.without_library_source {
        true => rust_toolchain::without_source(toolchain.path()),
        false => program::search_path(),
    };
    let finder = Finder::new(home, Trust::Trusted, SearchPath::new(&path)).with_confinement(confinement);
    let mut options = Options::new(gate, Registry::of(entries), finder);
    options.timeouts.check = Duration::from_secs(60);
    options.timeouts.first_check = Duration::from_secs(60);
    let orchestrator = Orchestrator::open(options).await;
    let mut first = Vec::new();
    for question in &case.questions {
        first.push(ask(&orchestrator, question).await?);
    }
    for (question, before) in case.questions.iter().zip(&mut first) {
        let settled = ask(&orchestrator, question).await?;
        if before.get("gaps").is_none() {
            assert_eq!(*before, settled, "an answer that was called complete differs from the settled one");
        }
        *before = settled;
    }
    orchestrator.shutdown().await;
    Ok(first)
}

async fn ask(orchestrator: &Orchestrator, question: &Question) -> datatest_stable::Result<Value> {
    let call = CallContext::within(Duration::from_secs(120));
    let gate = orchestrator.gate();
    if let Ask::WorkspaceSymbols = question.ask {
        let query = question.query.as_deref().unwrap_or_default();
        let answer = orchestrator.workspace_symbols(query, &call).await;
        let shown = answer.value.iter().map(|one| symbol(gate, one, true)).collect::<Vec<_>>();
        return Ok(shown_as(&format!("workspace_symbols {query}"), &answer, json!(shown)));
    }
    let file = question.file.as_deref().ok_or("a question names its file")?;
    let path = gate.admit_path(file)?;
    let lines = LineIndex::new(fs::read_to_string(&path)?.trim_start_matches('\u{feff}'));
    let position = || -> datatest_stable::Result<Position> {
        let snippet = question.at.as_deref().ok_or("a question names its place")?;
        let at = lines.text().find(snippet).ok_or(format!("`{snippet}` is not in {file}"))?;
        Ok(lines.position(at, Encoding::Utf16)?)
    };
    let place = format!("{file} {}", question.at.as_deref().unwrap_or_default());
    let locations = |answer: LspAnswer<Vec<Location>>, name: &str| {
        let shown: Vec<_> = answer.value.iter().map(|one| location(gate, one)).collect();
        shown_as(&format!("{name} {place}"), &answer, json!(shown))
    };
    Ok(match question.ask {
        Ask::Definition => locations(orchestrator.definition(&path, position()?, &call).await?, "definition"),
        Ask::Implementation => {
            locations(orchestrator.implementation(&path, position()?, &call).await?, "implementation")
        }
        Ask::References => {
            let name = if question.declaration { "references" } else { "references without declaration" };
            let answer = orchestrator.references(&path, position()?, question.declaration, &call).await?;
            locations(answer, name)
        }
        Ask::Hover => {
            let answer = orchestrator.hover(&path, position()?, &call).await?;
            let parts: Option<Vec<_>> = answer
                .value
                .as_ref()
                .map(|hover| hover.parts.iter().map(|part| part.value.as_str()).collect());
            shown_as(&format!("hover {place}"), &answer, json!(parts))
        }
        Ask::DocumentSymbols => {
            let answer = orchestrator.document_symbols(&path, &call).await?;
            let shown: Vec<_> = answer.value.iter().map(|one| symbol(gate, one, false)).collect();
            shown_as(&format!("document_symbols {file}"), &answer, json!(shown))
        }
        Ask::Check => {
            let answer = orchestrator.check(&path, None, &call).await?;
            let shown: Vec<_> = answer
                .value
                .iter()
                .map(|one| {
                    let (severity, source) = (one.severity().as_str(), one.source.as_deref().unwrap_or("-"));
                    let code = one.code.as_deref().unwrap_or("-");
                    format!("{} {severity} {source} {code}: {}", range(one.range), one.message)
                })
                .collect();
            shown_as(&format!("check {file}"), &answer, json!(shown))
        }
        Ask::WorkspaceSymbols => unreachable!("answered above"),
    })
}

fn shown_as<T>(question: &str, answer: &LspAnswer<T>, shown: Value) -> Value {
    let gaps: Vec<String> = answer.gaps.iter().map(|gap| format!("{}: {:?}", gap.server, gap.why)).collect();
    let mut value = json!({ "question": question.trim_end(), "answer": shown });
    if !gaps.is_empty() {
        value["gaps"] = json!(gaps);
    }
    let notes: Vec<String> = answer
        .notes
        .iter()
        .map(|note| match note {
            AnswerNote::AskedAtName { name, at } => format!("asked at the name {name} {at}"),
            AnswerNote::Outside(place) => format!("outside: {place}"),
            AnswerNote::FilesUnread => "files unread".to_owned(),
        })
        .collect();
    if !notes.is_empty() {
        value["notes"] = json!(notes);
    }
    value
}

fn range(range: Range) -> String {
    format!("{}-{}", range.start, range.end)
}

fn location(gate: &RootGate, location: &Location) -> String {
    format!("{} {}", gate.display(&location.path), range(location.range))
}

fn symbol(gate: &RootGate, symbol: &Symbol, with_file: bool) -> String {
    let file = if with_file { format!("{} ", gate.display(&symbol.path)) } else { String::new() };
    let container = symbol.container.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
    format!("{file}{} {} {}{container}", range(symbol.range), symbol.kind.name(), symbol.name)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

datatest_stable::harness! {
    { test = run, root = "tests/servers", pattern = r"case\.json$" },
}
