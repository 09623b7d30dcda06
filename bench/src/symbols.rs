//! `find`, `references` and `hierarchy` of random symbols of a Rust project, compared with rust-analyzer asked directly.
//!
//! Symbols are chosen from rust-analyzer's document symbols. The places of an answer are compared as `file:line`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tenon_testkit::direct_server::{DirectServer, FilePosition, InstalledServer, uri};
use tenon_testkit::{Sandbox, program, repository_root};

use crate::error::BenchError;
use crate::mcp_session::{Answer, McpSession};
use crate::output::{log, print};
use crate::product::Product;
use crate::source_sample::{self, Random};

/// The symbol kinds of the protocol that are compared: class, method, enum, interface, function, constant, struct.
const KINDS: [u64; 7] = [5, 6, 10, 11, 12, 14, 23];
/// Method and function.
const CALLED: [u64; 2] = [6, 12];
/// Longer lists come in pages.
const MAX_REFERENCES: usize = 300;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Symbols to compare
    #[arg(long, default_value_t = 30)]
    symbols: usize,
    /// The seed of the choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A cargo project: a folder, which is copied; this repository by default
    #[arg(long)]
    tree: Option<PathBuf>,
}

struct RustSymbol {
    name: String,
    kind: u64,
    file: String,
    /// Of the name, from zero.
    line: usize,
    character: usize,
}

/// How many symbols of one tool agree, and the others.
#[derive(Default)]
struct Tally {
    asked: usize,
    agree: usize,
    marked: usize,
    differences: Vec<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    if program::rust_analyzer().is_none() {
        return Err(BenchError::new("rust-analyzer is not installed; run `cargo xtask setup`"));
    }
    let sandbox = Sandbox::new().with_rust();
    let name = match &options.tree {
        Some(tree) => {
            sandbox.tree().copy_from(tree);
            tree.file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        None => {
            copy_repository(&sandbox)?;
            "this repository".to_owned()
        }
    };
    let trusted = sandbox.command(tenon).arg("trust").output()?;
    if !trusted.status.success() {
        return Err(BenchError::new(String::from_utf8_lossy(&trusted.stderr)));
    }
    log(&format!("{name}: rust-analyzer loads the project"));
    let files = source_sample::files(&sandbox, "rs");
    let mut bare = DirectServer::start(InstalledServer::RustAnalyzer, &sandbox)?;
    let mut random = Random::new(options.seed);
    let first = random.choose(&files).ok_or_else(|| BenchError::new("the project has no Rust files"))?;
    bare.open(first)?;
    bare.wait_until_ready()?;
    let symbols = choose(&mut bare, &mut random, &files, options.symbols)?;
    log(&format!("{name}: {} symbols; Tenon loads the project", symbols.len()));
    let product = Product { tenon, sandbox: &sandbox };
    let warmed = sandbox.command(tenon).args(["up", "--no-install"]).output()?;
    if !warmed.status.success() {
        return Err(BenchError::new(String::from_utf8_lossy(&warmed.stderr)));
    }
    let mut session = McpSession::start(sandbox.command(tenon).args(["mcp", "--surface", "explore"]))?;
    let [mut found, mut references, mut callers] = <[Tally; 3]>::default();
    for symbol in &symbols {
        log(&format!("{} {}:{}", symbol.name, symbol.file, symbol.line + 1));
        compare_find(symbol, &mut session, &mut found)?;
        compare_references(symbol, &sandbox, &mut bare, &mut session, &mut references)?;
        if CALLED.contains(&symbol.kind) {
            compare_callers(symbol, &sandbox, &mut bare, &mut session, &mut callers)?;
        }
    }
    drop((session, bare));
    print(&format!("# Symbols of {name}, beside rust-analyzer\n"));
    print("| tool | asked | as rust-analyzer | marked as possibly incomplete |\n|---|---|---|---|");
    for (tool, tally) in
        [("`find`", &found), ("`references`", &references), ("`hierarchy`, callers", &callers)]
    {
        print(&format!("| {tool} | {} | {} | {} |", tally.asked, tally.agree, tally.marked));
    }
    for difference in [&found, &references, &callers].into_iter().flat_map(|tally| &tally.differences) {
        print(&format!("\n- {difference}"));
    }
    product.stop()
}

/// Copies the files that git tracks.
fn copy_repository(sandbox: &Sandbox) -> Result<(), BenchError> {
    let root = repository_root();
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    for file in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|file| !file.is_empty()) {
        let to = sandbox.root().join(file);
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        if root.join(file).is_file() {
            std::fs::copy(root.join(file), to)?;
        }
    }
    Ok(())
}

/// Random symbols whose references fit into one answer.
fn choose(
    bare: &mut DirectServer<'_>,
    random: &mut Random,
    files: &[String],
    count: usize,
) -> Result<Vec<RustSymbol>, BenchError> {
    let mut opened = BTreeSet::new();
    let mut chosen: Vec<RustSymbol> = Vec::new();
    for _ in 0..count * 20 {
        let Some(file) = random.choose(files).filter(|_| chosen.len() < count) else { break };
        if opened.insert(file) {
            bare.open(file)?;
        }
        let mut symbols = Vec::new();
        collect(&bare.document_symbols(file)?, file, &mut symbols);
        if symbols.is_empty() {
            continue;
        }
        let symbol = symbols.swap_remove(random.below(symbols.len()));
        let is_new = chosen.iter().all(|one| (&one.file, one.line) != (&symbol.file, symbol.line));
        let references = bare.request("references", symbol.position())?;
        if is_new && references.as_array().is_some_and(|list| list.len() <= MAX_REFERENCES) {
            chosen.push(symbol);
        }
    }
    Ok(chosen)
}

fn collect(found: &Value, file: &str, symbols: &mut Vec<RustSymbol>) {
    for one in found.as_array().into_iter().flatten() {
        collect(&one["children"], file, symbols);
        let start = &one["selectionRange"]["start"];
        let (Some(kind), Some(name), Some(line), Some(character)) =
            (one["kind"].as_u64(), one["name"].as_str(), start["line"].as_u64(), start["character"].as_u64())
        else {
            continue;
        };
        if KINDS.contains(&kind) && name.len() > 2 && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            let (line, character) = (line as usize, character as usize);
            symbols.push(RustSymbol { name: name.to_owned(), kind, file: file.to_owned(), line, character });
        }
    }
}

impl RustSymbol {
    fn position(&self) -> FilePosition<'_> {
        FilePosition { file: &self.file, line: self.line, character: self.character }
    }

    /// The name of the symbol for Tenon: the innermost declaration at its line.
    fn place(&self) -> String {
        format!("{}:{}", self.file, self.line + 1)
    }
}

impl Tally {
    fn add(
        &mut self,
        what: &str,
        symbol: &RustSymbol,
        ours: &BTreeSet<String>,
        theirs: &BTreeSet<String>,
        text: &str,
    ) {
        self.asked += 1;
        self.marked += usize::from(text.contains("incomplete") || text.contains(" ?"));
        if ours == theirs {
            self.agree += 1;
            return;
        }
        let join = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            let list: Vec<&str> = one.difference(other).map(String::as_str).take(5).collect();
            if list.is_empty() { "nothing".to_owned() } else { list.join(", ") }
        };
        let (name, place) = (&symbol.name, symbol.place());
        let (missing, more) = (join(theirs, ours), join(ours, theirs));
        self.differences.push(format!("{what} `{name}` ({place}): missing {missing}; only in Tenon {more}"));
    }
}

fn compare_find(symbol: &RustSymbol, session: &mut McpSession, tally: &mut Tally) -> Result<(), BenchError> {
    let arguments = json!({ "name": symbol.name, "path": symbol.file, "body": "no", "max_bytes": 64_000 });
    let answer = session.call("find", &arguments)?;
    let prefix = format!("{}:", symbol.file);
    let contains = answer.text.split_whitespace().filter_map(|word| word.strip_prefix(&prefix)).any(|range| {
        let range = range.trim_end_matches(':');
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<usize>().ok();
        matches!((number(first), number(last)), (Some(first), Some(last)) if (first..=last).contains(&(symbol.line + 1)))
    });
    let theirs = BTreeSet::from([symbol.place()]);
    let ours = if contains { theirs.clone() } else { BTreeSet::new() };
    tally.add("`find`", symbol, &ours, &theirs, "");
    Ok(())
}

fn compare_references(
    symbol: &RustSymbol,
    sandbox: &Sandbox,
    bare: &mut DirectServer<'_>,
    session: &mut McpSession,
    tally: &mut Tally,
) -> Result<(), BenchError> {
    let arguments = json!({ "symbol": symbol.place(), "max_bytes": 64_000 });
    let answer = settled(session, "references", &arguments)?;
    let mut ours = BTreeSet::new();
    let mut file = "";
    for line in answer.text.lines().skip(1) {
        match line.strip_prefix("  ") {
            Some(place) => {
                let number: String = place.chars().take_while(char::is_ascii_digit).collect();
                if !number.is_empty() {
                    ours.insert(format!("{file}:{number}"));
                }
            }
            None => file = line,
        }
    }
    let found = bare.request("references", symbol.position())?;
    let place = |one: &Value| place(sandbox, &one["uri"], &one["range"]);
    let mut theirs: BTreeSet<String> = found.as_array().into_iter().flatten().filter_map(place).collect();
    // Tenon leaves the declaration out.
    theirs.remove(&symbol.place());
    ours.remove(&symbol.place());
    tally.add("`references`", symbol, &ours, &theirs, &answer.text);
    Ok(())
}

fn compare_callers(
    symbol: &RustSymbol,
    sandbox: &Sandbox,
    bare: &mut DirectServer<'_>,
    session: &mut McpSession,
    tally: &mut Tally,
) -> Result<(), BenchError> {
    let arguments = json!({ "symbol": symbol.place(), "direction": "callers", "max_bytes": 64_000 });
    let answer = settled(session, "hierarchy", &arguments)?;
    let mut ours = BTreeSet::new();
    for line in answer.text.lines().skip(1) {
        let Some((declaration, lines)) = line.split_once(" calls at ") else { continue };
        let file =
            declaration.rsplit(' ').next().and_then(|place| place.rsplit_once(':')).map(|(file, _)| file);
        for number in lines.trim_end_matches(" ?").split(", ") {
            ours.insert(format!("{}:{number}", file.unwrap_or_default()));
        }
    }
    let items = bare.request("prepareCallHierarchy", symbol.position())?;
    let mut theirs = BTreeSet::new();
    for item in items.as_array().into_iter().flatten() {
        let calls = bare.ask("callHierarchy/incomingCalls", &json!({ "item": item }))?;
        for call in calls.as_array().into_iter().flatten() {
            for range in call["fromRanges"].as_array().into_iter().flatten() {
                theirs.extend(place(sandbox, &call["from"]["uri"], range));
            }
        }
    }
    tally.add("`hierarchy`", symbol, &ours, &theirs, &answer.text);
    Ok(())
}

/// The answer of the language server, once it has loaded the project.
fn settled(session: &mut McpSession, tool: &str, arguments: &Value) -> Result<Answer, BenchError> {
    loop {
        let answer = session.call(tool, arguments)?;
        let is_early = ["is loading", "still loading", "did not answer in time"];
        if !is_early.iter().any(|part| answer.text.contains(part)) {
            return Ok(answer);
        }
    }
}

/// `file:line` of a range inside the workspace.
fn place(sandbox: &Sandbox, target: &Value, range: &Value) -> Option<String> {
    let root = uri(sandbox, "");
    let file = target.as_str()?.strip_prefix(&root)?;
    Some(format!("{file}:{}", range["start"]["line"].as_u64()? + 1))
}
