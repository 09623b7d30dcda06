//! Overhead of the engine as a host sees it: `tenon lsp-service` over both channels, in turns with the same requests sent
//! to the bare language server.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::direct_server::{DirectServer, FilePosition, InstalledServer};
use tenon_testkit::framed_rpc::FramedRpc;
use tenon_testkit::{Sandbox, program};

use crate::error::BenchError;
use crate::json_lines::JsonLines;
use crate::measure::{Times, beside, idle, row, shown, table};
use crate::output::log;
use crate::subject::{RUST, SUBJECTS, Subject};

/// Starts are repeated until both numbers are reached.
const STARTS: usize = 5;
const STARTING: Duration = Duration::from_secs(20);
/// The most starts.
const MOST_STARTS: usize = 20;
const QUESTIONS: usize = 400;
const LISTS: usize = 40;
const EDITS: usize = 20;
/// How often many files are checked at once.
const ROUNDS: usize = 40;
const AT_ONCE: usize = 10;
/// TypeScript 7 prepares imports after a change of one file, which takes up to 10 ms of a processor.
const IDLE: Duration = Duration::from_millis(30);
/// How long a server may take to load its project.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Measure one server
    #[arg(long, value_name = "ID")]
    pub(crate) only: Option<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    table("Language servers");
    let is_chosen = |subject: &Subject| options.only.as_deref().is_none_or(|id| id == subject.server.id());
    let rust = program::rust_analyzer().map(|_| RUST);
    if rust.is_none() {
        log("rust-analyzer is not installed: Rust is left out");
    }
    for subject in SUBJECTS.into_iter().chain(rust).filter(is_chosen) {
        let mut sandbox = Sandbox::with_project(subject.source);
        if subject.server == InstalledServer::RustAnalyzer {
            sandbox = sandbox.with_rust();
            // It runs code of the workspace.
            let trusted = sandbox.command(tenon).arg("trust").output()?;
            if !trusted.status.success() {
                return Err(BenchError::new(String::from_utf8_lossy(&trusted.stderr)));
            }
        }
        measure(tenon, subject, &sandbox)?;
    }
    Ok(())
}

fn measure(tenon: &Path, subject: Subject, sandbox: &Sandbox) -> Result<(), BenchError> {
    let name = subject.name();
    log(&name);
    let (declared, used) = subject.places(sandbox);
    let (mut bare, mut service) = starts(tenon, subject, sandbox, &name)?;

    bare.open(declared.file)?;
    let total = settle(&mut bare, &mut service, declared)?;
    let questions = [("definition", "lsp_goto_definition"), ("hover", "lsp_hover")];
    for (method, tool) in questions {
        let (ours, theirs) = Times::of_both(
            QUESTIONS,
            || service.ask(tool, &at(used)).map(drop),
            || Ok(bare.request(method, used).map(drop)?),
        )?;
        compare(&format!("{name}: {method}"), &ours, &theirs, "bare + 0.3 ms");
    }
    let file = json!({ "file": used.file });
    let (ours, theirs) = Times::of_both(
        QUESTIONS,
        || service.ask("lsp_document_symbols", &file).map(drop),
        || Ok(bare.request("documentSymbol", used).map(drop)?),
    )?;
    compare(&format!("{name}: document symbols"), &ours, &theirs, "bare + 0.3 ms");
    let (ours, theirs) = Times::of_both(
        LISTS,
        || service.ask("lsp_find_references", &at(declared)).map(drop),
        || Ok(bare.request("references", declared).map(drop)?),
    )?;
    compare(&format!("{name}: {total} references"), &ours, &theirs, "1.2× bare");

    let original = sandbox.tree().read(used.file);
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..EDITS {
        let wrong = round % 2 == 0;
        let line = if wrong { subject.wrong } else { subject.comment };
        let text = format!("{original}{line}\n");
        ours.time(|| service.check(used.file, &text, wrong))?;
        theirs.time(|| bare.change_and_check(used.file, &text, wrong))?;
    }
    let aim = if subject.server.pulls() { "1.15× bare" } else { "" };
    compare(&format!("{name}: check after an edit"), &ours, &theirs, aim);

    at_once(subject, sandbox, &name, &mut service, &mut bare)?;
    drop(bare);
    let mib = service.resident_kib() as f64 / 1024.0;
    row(&format!("{name}: memory without the server"), &format!("{mib:.1} MiB"), "", "30 MB");
    service.end()
}

/// Time from spawn to the first correct definition. Returns the last server and service, still running.
fn starts<'a>(
    tenon: &Path,
    subject: Subject,
    sandbox: &'a Sandbox,
    name: &str,
) -> Result<(DirectServer<'a>, Service<'a>), BenchError> {
    let (declared, used) = subject.places(sandbox);
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    let begin = Instant::now();
    loop {
        let start = Instant::now();
        let mut bare = DirectServer::start(subject.server, sandbox)?;
        bare.open(used.file)?;
        while !bare.definition_is(used, declared)? {}
        theirs.add(start.elapsed());

        let start = Instant::now();
        let mut service = Service::start(tenon, subject, sandbox)?;
        while !service.finds(used, declared) {
            if start.elapsed() > PATIENCE {
                return Err(BenchError::new(format!("no definition from {name}")));
            }
        }
        ours.add(start.elapsed());
        let is_enough = ours.len() >= STARTS && begin.elapsed() >= STARTING;
        if is_enough || ours.len() == MOST_STARTS {
            compare(&format!("{name}: first correct definition"), &ours, &theirs, "1.1× bare");
            return Ok((bare, service));
        }
        service.end()?;
    }
}

/// Waits until both find the same number of references. Returns the count.
fn settle(
    bare: &mut DirectServer<'_>,
    service: &mut Service<'_>,
    declared: FilePosition<'_>,
) -> Result<usize, BenchError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ours = all_references(service, declared).ok();
        let theirs = bare.request("references", declared)?.as_array().map(Vec::len);
        match (ours, theirs) {
            (Some(ours), Some(theirs)) if ours == theirs => return Ok(ours),
            _ if Instant::now() > deadline => {
                return Err(BenchError::new(format!(
                    "Tenon finds {ours:?} references, the bare server {theirs:?}"
                )));
            }
            _ => {}
        }
    }
}

/// The number of references on all pages.
fn all_references(service: &mut Service<'_>, declared: FilePosition<'_>) -> Result<usize, BenchError> {
    let mut total = 0;
    loop {
        let mut arguments = at(declared);
        arguments["offset"] = json!(total);
        let page = service.ask("lsp_find_references", &arguments)?;
        match page["locations"].as_array().map(Vec::len) {
            None | Some(0) => return Ok(total),
            Some(listed) => total += listed,
        }
    }
}

/// Concurrent checks of changed files (ten files, and ten of one file) against a single check. A bare server with pull
/// diagnostics gets the same requests, all sent before the first answer.
fn at_once(
    subject: Subject,
    sandbox: &Sandbox,
    name: &str,
    service: &mut Service<'_>,
    bare: &mut DirectServer<'_>,
) -> Result<(), BenchError> {
    let files = small_files(sandbox.root(), sandbox.root())?;
    let texts: Vec<String> = files.iter().map(|file| sandbox.tree().read(file)).collect();
    for file in &files {
        bare.open(file)?;
    }
    let comments = std::cell::Cell::new(0);
    let another = || comments.set(comments.get() + 1);
    let changed = |index: usize| {
        let comment = format!("{}\n", subject.comment).repeat(comments.get());
        (files[index].as_str(), format!("{}{comment}", texts[index]))
    };
    let pulls = subject.server.pulls();
    let mut all: [Times; 5] = Default::default();
    for round in 0..=ROUNDS {
        another();
        let one = took(|| service.check_all([changed(0)]).map(drop))?;
        let bare_one = took(|| if pulls { Ok(bare.change_and_check_all([changed(0)])?) } else { Ok(()) })?;
        another();
        let ten = took(|| service.check_all((0..AT_ONCE).map(changed)).map(drop))?;
        let all_files = (0..AT_ONCE).map(changed);
        let bare_ten = took(|| if pulls { Ok(bare.change_and_check_all(all_files)?) } else { Ok(()) })?;
        another();
        let same = took(|| service.check_all((0..AT_ONCE).map(|_| changed(0))).map(drop))?;
        // The first round opens the files.
        if round > 0 {
            for (times, took) in all.iter_mut().zip([one, bare_one, ten, bare_ten, same]) {
                times.add(took);
            }
        }
    }
    let [one, bare_one, ten, bare_ten, same] = all;
    let against = |ours: &Times, bare: &Times| match pulls {
        true => beside("bare", ours, bare),
        false => String::new(),
    };
    row(&format!("{name}: one check"), &shown(one.median()), &against(&one, &bare_one), "");
    let beside_ten = [beside("one", &ten, &one), against(&ten, &bare_ten)];
    let beside_ten = beside_ten.join("; ");
    let beside_ten = beside_ten.trim_end_matches("; ");
    let aim = if pulls { "1.3× bare" } else { "2× one" };
    row(&format!("{name}: {AT_ONCE} files checked at once"), &shown(ten.median()), beside_ten, aim);
    let same_file = format!("{name}: one file checked {AT_ONCE} times at once");
    row(&same_file, &shown(same.median()), &beside("one", &same, &one), "2× one");
    Ok(())
}

/// The time that some work takes when both servers are idle.
fn took(work: impl FnOnce() -> Result<(), BenchError>) -> Result<Duration, BenchError> {
    idle(IDLE);
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// The ten smallest source files above 300 bytes.
fn small_files(root: &Path, folder: &Path) -> Result<Vec<String>, BenchError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (path, size) = (entry.path(), entry.metadata()?.len());
            let is_code =
                path.extension().is_some_and(|ending| ["py", "ts", "rs"].iter().any(|one| ending == *one));
            if path.is_dir() {
                folders.push(path);
            } else if is_code && size > 300 {
                let relative = path.strip_prefix(root).expect("the walk stays below its start");
                found.push((size, relative.to_string_lossy().into_owned()));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().take(AT_ONCE).map(|(_, file)| file).collect())
}

fn compare(what: &str, ours: &Times, bare: &Times, aim: &str) {
    row(what, &shown(ours.median()), &beside("bare", ours, bare), aim);
}

fn at(place: FilePosition<'_>) -> Value {
    json!({ "file": place.file, "line": place.line + 1, "character": place.character + 1 })
}

/// A running `tenon lsp-service`: navigation on file descriptors 3 and 4, everything else on stdin and stdout.
struct Service<'a> {
    sandbox: &'a Sandbox,
    lines: JsonLines,
    frames: FramedRpc,
}

impl<'a> Service<'a> {
    fn start(tenon: &Path, subject: Subject, sandbox: &'a Sandbox) -> Result<Self, BenchError> {
        let [to, from] = ["to", "from"].map(|name| sandbox.dir("run").join(name));
        for pipe in [&to, &from] {
            if !pipe.exists() {
                make_pipe(pipe)?;
            }
        }
        let config = json!({ "servers": subject.servers() });
        let bootstrap = json!({ "workspaceRoot": sandbox.root(), "config": config });
        let mut command = sandbox.command("sh");
        command.args(["-c", r#"exec "$0" lsp-service 3<&0 4>&1 <"$1" >"$2""#]).arg(tenon).args([&to, &from]);
        command.env("LSP_BOOTSTRAP", bootstrap.to_string());
        let mut lines = JsonLines::start(&mut command)?;
        // Opening a named pipe blocks until the shell opens the other end.
        let to = File::options().write(true).open(to)?;
        let frames = FramedRpc::new(to, File::open(from)?);
        lines.initialize()?;
        Ok(Self { sandbox, lines, frames })
    }

    /// Calls a navigation tool.
    fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Value, BenchError> {
        let params = json!({ "name": tool, "arguments": arguments });
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        self.lines.ask(&request.to_string())?;
        let mut answer: Value = serde_json::from_str(self.lines.answer())
            .map_err(|error| BenchError::new(format!("{error}: {}", self.lines.answer())))?;
        let mut result = answer["result"].take();
        match result["isError"].as_bool() {
            Some(false) => Ok(result["structuredContent"].take()),
            _ => Err(BenchError::new(format!("{tool}: {answer}{result}"))),
        }
    }

    /// Whether the definition is the expected one. False while the server is loading.
    fn finds(&mut self, place: FilePosition<'_>, declared: FilePosition<'_>) -> bool {
        let Ok(found) = self.ask("lsp_goto_definition", &at(place)) else { return false };
        let first = &found["locations"][0];
        first["file"] == declared.file && first["line"] == declared.line + 1
    }

    /// Checks a text; its diagnostics must match `wrong`.
    fn check(&mut self, file: &str, text: &str, wrong: bool) -> Result<(), BenchError> {
        let found = self.check_all([(file, text.to_owned())])?.swap_remove(0);
        let last = text.lines().count();
        let at_last = found.as_array().is_some_and(|list| list.iter().any(|one| one["line"] == last));
        if at_last == wrong { Ok(()) } else { Err(BenchError::new(format!("{file}: {found}"))) }
    }

    fn check_all<S: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = (S, String)>,
    ) -> Result<Vec<Value>, BenchError> {
        let mut asked = Vec::new();
        for (file, text) in texts {
            let path = self.sandbox.root().join(file.as_ref());
            asked
                .push(self.frames.send_request("lsp/checkFile", &json!({ "filePath": path, "text": text }))?);
        }
        asked.into_iter().map(|id| Ok(self.frames.wait_response(id)?)).collect()
    }

    /// The service exits when both channels are closed.
    fn end(self) -> Result<(), BenchError> {
        drop(self.frames);
        Ok(self.lines.end()?)
    }

    fn resident_kib(&self) -> u64 {
        let ours = self.sandbox.processes().into_iter().find(|process| process.id == self.lines.id());
        ours.map_or(0, |process| process.resident_kib())
    }
}

fn make_pipe(path: &Path) -> Result<(), BenchError> {
    match Command::new("mkfifo").arg(path).status()?.success() {
        true => Ok(()),
        false => Err(BenchError::new(format!("`mkfifo {}` failed", path.display()))),
    }
}
