//! What the engine adds to the language servers behind it, measured as hosts have it: `tenon lsp-service`, asked over both
//! of its channels, beside the same server asked directly about the same places, in turns.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::Sandbox;
use tenon_testkit::bare::{Bare, Place};
use tenon_testkit::frames::Frames;

use super::lines::Lines;
use super::measure::{Times, beside, row, shown, table};
use super::subject::{SUBJECTS, Subject};
use crate::shell::{Failure, must, say};

const STARTS: usize = 3;
const QUESTIONS: usize = 200;
const LISTS: usize = 30;
const EDITS: usize = 10;
const AT_ONCE: usize = 10;
/// How long a server may take to know its project.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(tenon: &Path) -> Result<(), Failure> {
    table("Language servers");
    for subject in SUBJECTS {
        let sandbox = Sandbox::with_source(subject.source);
        measure(tenon, subject, &sandbox)?;
    }
    Ok(())
}

fn measure(tenon: &Path, subject: Subject, sandbox: &Sandbox) -> Result<(), Failure> {
    let name = subject.name();
    say(&name);
    let (declared, used) = subject.places(sandbox);
    let (mut bare, mut service) = starts(tenon, subject, sandbox, &name)?;

    bare.open(declared.file)?;
    let total = settle(&mut bare, &mut service, declared)?;
    let questions = [("definition", "lsp_goto_definition"), ("hover", "lsp_hover")];
    for (method, tool) in questions {
        let (ours, theirs) = Times::of_both(
            QUESTIONS,
            || service.ask(tool, &at(used)).map(drop),
            || Ok(bare.ask(method, used).map(drop)?),
        )?;
        compare(&format!("{name}: {method}"), &ours, &theirs, "bare + 0.3 ms");
    }
    let file = json!({ "file": used.file });
    let (ours, theirs) = Times::of_both(
        QUESTIONS,
        || service.ask("lsp_document_symbols", &file).map(drop),
        || Ok(bare.ask("documentSymbol", used).map(drop)?),
    )?;
    compare(&format!("{name}: document symbols"), &ours, &theirs, "bare + 0.3 ms");
    let (ours, theirs) = Times::of_both(
        LISTS,
        || service.ask("lsp_find_references", &at(declared)).map(drop),
        || Ok(bare.ask("references", declared).map(drop)?),
    )?;
    compare(&format!("{name}: {total} references"), &ours, &theirs, "1.2× bare");

    let original = sandbox.tree().read(used.file);
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..EDITS {
        let wrong = round % 2 == 0;
        let line = if wrong { subject.wrong } else { subject.comment };
        let text = format!("{original}{line}\n");
        ours.time(|| service.check(used.file, &text, wrong))?;
        theirs.time(|| bare.check(used.file, &text, wrong))?;
    }
    compare(&format!("{name}: check after an edit"), &ours, &theirs, "");

    at_once(subject, sandbox, &name, &mut service, &mut bare)?;
    drop(bare);
    let mib = service.resident_kib() as f64 / 1024.0;
    row(&format!("{name}: memory without the server"), &format!("{mib:.1} MiB"), "", "30 MB");
    service.end()
}

/// From spawn to the first correct definition. Leaves the last of both running.
fn starts<'a>(
    tenon: &Path,
    subject: Subject,
    sandbox: &'a Sandbox,
    name: &str,
) -> Result<(Bare<'a>, Service<'a>), Failure> {
    let (declared, used) = subject.places(sandbox);
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    loop {
        let start = Instant::now();
        let mut bare = Bare::start(subject.server, sandbox)?;
        bare.open(used.file)?;
        while !bare.finds(used, declared)? {}
        theirs.add(start.elapsed());

        let start = Instant::now();
        let mut service = Service::start(tenon, subject, sandbox)?;
        while !service.finds(used, declared) {
            if start.elapsed() > PATIENCE {
                return Err(Failure::new(format!("no definition from {name}")));
            }
        }
        ours.add(start.elapsed());
        if ours.len() == STARTS {
            compare(&format!("{name}: first correct definition"), &ours, &theirs, "1.1× bare");
            return Ok((bare, service));
        }
        service.end()?;
    }
}

/// Waits until both know all uses of the landmark; how many there are.
fn settle(bare: &mut Bare<'_>, service: &mut Service<'_>, declared: Place<'_>) -> Result<usize, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ours = service.ask("lsp_find_references", &at(declared));
        let ours = ours.ok().and_then(|found| found["locations"].as_array().map(Vec::len));
        let theirs = bare.ask("references", declared)?.as_array().map(Vec::len);
        match (ours, theirs) {
            (Some(ours), Some(theirs)) if ours == theirs => return Ok(ours),
            _ if Instant::now() > deadline => {
                return Err(Failure::new(format!("we find {ours:?} references, the bare server {theirs:?}")));
            }
            _ => {}
        }
    }
}

/// Checks at once of files that changed, against one: of ten files, and ten of one file. A bare server that can be asked is
/// shown the same files and asked about each, all before the first answer.
fn at_once(
    subject: Subject,
    sandbox: &Sandbox,
    name: &str,
    service: &mut Service<'_>,
    bare: &mut Bare<'_>,
) -> Result<(), Failure> {
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
    let is_asked = subject.server.pulls();
    let mut all: [Times; 5] = Default::default();
    for round in 0..=EDITS {
        another();
        let one = took(|| service.check_all([changed(0)]).map(drop))?;
        let bare_one = took(|| if is_asked { Ok(bare.check_all([changed(0)])?) } else { Ok(()) })?;
        another();
        let ten = took(|| service.check_all((0..AT_ONCE).map(changed)).map(drop))?;
        let all_files = (0..AT_ONCE).map(changed);
        let bare_ten = took(|| if is_asked { Ok(bare.check_all(all_files)?) } else { Ok(()) })?;
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
    let against = |ours: &Times, bare: &Times| match is_asked {
        true => beside("bare", ours, bare),
        false => String::new(),
    };
    row(&format!("{name}: one check"), &shown(one.median()), &against(&one, &bare_one), "");
    let beside_ten = [beside("one", &ten, &one), against(&ten, &bare_ten)];
    let beside_ten = beside_ten.join("; ");
    let beside_ten = beside_ten.trim_end_matches("; ");
    row(&format!("{name}: {AT_ONCE} files checked at once"), &shown(ten.median()), beside_ten, "2× one");
    let same_file = format!("{name}: one file checked {AT_ONCE} times at once");
    row(&same_file, &shown(same.median()), &beside("one", &same, &one), "2× one");
    Ok(())
}

fn took(work: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// The ten smallest files of code that are not all but empty.
fn small_files(root: &Path, folder: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (path, size) = (entry.path(), entry.metadata()?.len());
            let is_code = path.extension().is_some_and(|ending| ending == "py" || ending == "ts");
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

fn at(place: Place<'_>) -> Value {
    json!({ "file": place.file, "line": place.line + 1, "character": place.character + 1 })
}

/// A running `tenon lsp-service`: navigation on the pipes that we hand over as 3 and 4, the rest on two more.
struct Service<'a> {
    sandbox: &'a Sandbox,
    lines: Lines,
    frames: Frames,
}

impl<'a> Service<'a> {
    fn start(tenon: &Path, subject: Subject, sandbox: &'a Sandbox) -> Result<Self, Failure> {
        let [to, from] = ["to", "from"].map(|name| sandbox.place("run").join(name));
        for pipe in [&to, &from] {
            if !pipe.exists() {
                must(Command::new("mkfifo").arg(pipe))?;
            }
        }
        let config = json!({ "servers": subject.servers() });
        let bootstrap = json!({ "workspaceRoot": sandbox.root(), "config": config });
        let mut command = sandbox.command("sh");
        command.args(["-c", r#"exec "$0" lsp-service 3<&0 4>&1 <"$1" >"$2""#]).arg(tenon).args([&to, &from]);
        command.env("LSP_BOOTSTRAP", bootstrap.to_string());
        let mut lines = Lines::start(&mut command)?;
        // Each of these waits for the shell to open its end.
        let to = File::options().write(true).open(to)?;
        let frames = Frames::new(to, File::open(from)?);
        lines.initialize()?;
        Ok(Self { sandbox, lines, frames })
    }

    /// What a navigation tool answers.
    fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let params = json!({ "name": tool, "arguments": arguments });
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        self.lines.ask(&request.to_string())?;
        let mut answer: Value = serde_json::from_str(self.lines.answer())
            .map_err(|error| Failure::new(format!("{error}: {}", self.lines.answer())))?;
        let mut result = answer["result"].take();
        match result["isError"].as_bool() {
            Some(false) => Ok(result["structuredContent"].take()),
            _ => Err(Failure::new(format!("{tool}: {answer}{result}"))),
        }
    }

    /// Whether a definition is the one that was looked for; not while the server is still loading.
    fn finds(&mut self, place: Place<'_>, declared: Place<'_>) -> bool {
        let Ok(found) = self.ask("lsp_goto_definition", &at(place)) else { return false };
        let first = &found["locations"][0];
        first["file"] == declared.file && first["line"] == declared.line + 1
    }

    /// Shows the service a text; what it finds must fit.
    fn check(&mut self, file: &str, text: &str, wrong: bool) -> Result<(), Failure> {
        let found = self.check_all([(file, text.to_owned())])?.swap_remove(0);
        let last = text.lines().count();
        let at_last = found.as_array().is_some_and(|list| list.iter().any(|one| one["line"] == last));
        if at_last == wrong { Ok(()) } else { Err(Failure::new(format!("{file}: {found}"))) }
    }

    fn check_all<S: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = (S, String)>,
    ) -> Result<Vec<Value>, Failure> {
        let mut asked = Vec::new();
        for (file, text) in texts {
            let path = self.sandbox.root().join(file.as_ref());
            asked.push(self.frames.begin("lsp/checkFile", &json!({ "filePath": path, "text": text }))?);
        }
        asked.into_iter().map(|id| Ok(self.frames.finish(id)?)).collect()
    }

    /// The service ends when nobody speaks to it any more.
    fn end(self) -> Result<(), Failure> {
        drop(self.frames);
        Ok(self.lines.end()?)
    }

    fn resident_kib(&self) -> u64 {
        let ours = self.sandbox.processes().into_iter().find(|process| process.id == self.lines.id());
        ours.map_or(0, |process| process.resident_kib())
    }
}
