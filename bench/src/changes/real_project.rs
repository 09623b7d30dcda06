//! Checkouts, deleted files that come back, and new files in a real project.
//!
//! The truth is what imports say: while an imported file is missing, its importer has an error that says so; once it is back,
//! the importer's diagnostics are those from before.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tenon_testkit::direct_server::{InstalledServer, uri};
use tenon_testkit::{McpClient, RealProject, Sandbox, code_tools};

use super::question::Outcome;
use super::{Counts, Options, connect};
use crate::error::BenchError;
use crate::output::log;
use crate::source_sample::{self, Random};

/// How often a pending answer is asked for again.
const RETRIES: usize = 200;
/// Importers whose diagnostics are compared after each checkout.
const IMPORTERS: usize = 5;

/// A file and one that it imports.
struct Import {
    importer: String,
    target: String,
}

/// A real project with its client.
struct Subject<'a> {
    sandbox: &'a Sandbox,
    server: InstalledServer,
    client: McpClient,
}

pub(super) fn run(
    tenon: &Path,
    server: InstalledServer,
    source: RealProject,
    options: &Options,
) -> Result<(), BenchError> {
    let name = format!("{source:?}, {}", server.id());
    log(&name);
    let sandbox = Sandbox::with_project(source);
    let mut random = Random::new(options.seed);
    let imports = imports(&sandbox, server, &mut random, options.returns.max(IMPORTERS));
    let mut subject = Subject { sandbox: &sandbox, server, client: connect(tenon, &sandbox, server) };
    if options.new_files > 0 {
        subject.new_files(options.new_files)?.report(&format!("{name}: new files"));
    }
    if options.returns > 0 {
        let (document, workspace) = subject.returns(&imports[..options.returns])?;
        document.report(&format!("{name}: deleted and returned"));
        workspace.report(&format!("{name}: the same, diagnostics of the workspace"));
    }
    if options.checkouts > 0 {
        let counts = subject.checkouts(&imports[..IMPORTERS], options.checkouts)?;
        counts.report(&format!("{name}: checkouts there and back"));
    }
    Ok(())
}

impl Subject<'_> {
    /// A file imports a module that does not exist yet.
    fn new_files(&mut self, number: usize) -> Result<Counts, BenchError> {
        let mut counts = Counts::default();
        for number in 0..number {
            let (importer, text, target, module) = match self.server {
                InstalledServer::TypeScript => (
                    format!("src/user{number}.ts"),
                    format!(
                        "import {{ made }} from './made{number}';\nexport const used: number = made();\n"
                    ),
                    format!("src/made{number}.ts"),
                    "export function made(): number { return 1; }\n",
                ),
                _ => (
                    format!("django/user{number}.py"),
                    format!("from django.made{number} import made\n\nused = made()\n"),
                    format!("django/made{number}.py"),
                    "def made():\n    return 1\n",
                ),
            };
            let import = Import { importer, target };
            self.sandbox.tree().write(&import.importer, &text);
            counts.add(format_args!("{} is missing", import.target), self.missing(&import));
            self.sandbox.tree().write(&import.target, module);
            let outcome = self.diagnostics(&import.importer, |list| match list {
                [] => None,
                list => Some(format!("{list:?}")),
            });
            counts.add(format_args!("{} is there", import.target), outcome);
        }
        Ok(counts)
    }

    /// Deletes imported files one by one, and brings each back. The second count is about the workspace's diagnostics.
    fn returns(&mut self, imports: &[Import]) -> Result<(Counts, Counts), BenchError> {
        let (mut document, mut workspace) = (Counts::default(), Counts::default());
        let all_before = self.workspace().unwrap_or_default();
        for import in imports {
            let before = self.list(&import.importer).unwrap_or_default();
            let path = self.sandbox.tree().path(&import.target);
            let kept = outside(self.sandbox);
            std::fs::rename(&path, &kept)?;
            document.add(format_args!("{} is deleted", import.target), self.missing(import));
            let importer = uri(self.sandbox, &import.importer);
            let outcome = match self.workspace() {
                None => Outcome::Wrong("pending for good".to_owned()),
                Some(all) => {
                    let lists = all.iter().filter(|one| one["uri"] == *importer);
                    let list: Vec<Value> = lists
                        .flat_map(|one| one["diagnostics"].as_array().cloned().unwrap_or_default())
                        .collect();
                    judged(self.missing_from(import, &list))
                }
            };
            workspace.add(format_args!("{} is deleted", import.target), outcome);
            std::fs::rename(&kept, &path)?;
            let outcome = self.diagnostics(&import.importer, |list| difference(&before, list));
            document.add(format_args!("{} is back", import.target), outcome);
            let outcome = match self.workspace() {
                None => Outcome::Wrong("pending for good".to_owned()),
                Some(all) => judged(difference(&all_before, &all)),
            };
            workspace.add(format_args!("{} is back", import.target), outcome);
        }
        Ok((document, workspace))
    }

    /// Switches between two branches; the imported files exist in one of them.
    fn checkouts(&mut self, imports: &[Import], number: usize) -> Result<Counts, BenchError> {
        let mut counts = Counts::default();
        self.git(&["init", "-q", "-b", "here"])?;
        self.git(&["add", "-A"])?;
        self.git(&["commit", "-q", "-m", "here"])?;
        self.git(&["checkout", "-q", "-b", "there"])?;
        for import in imports {
            let to = format!("{}_moved", import.target);
            self.git(&["mv", &import.target, &to])?;
        }
        self.git(&["commit", "-q", "-m", "there"])?;
        self.git(&["checkout", "-q", "here"])?;
        let before: Vec<Vec<Value>> =
            imports.iter().map(|import| self.list(&import.importer).unwrap_or_default()).collect();
        for round in 0..number {
            self.git(&["checkout", "-q", "there"])?;
            for import in imports {
                counts.add(format_args!("there, {round}, {}", import.importer), self.missing(import));
            }
            self.git(&["checkout", "-q", "here"])?;
            for (import, before) in imports.iter().zip(&before) {
                let outcome = self.diagnostics(&import.importer, |list| difference(before, list));
                counts.add(format_args!("back, {round}, {}", import.importer), outcome);
            }
        }
        Ok(counts)
    }

    /// Asks for the importer's diagnostics while the imported file is missing.
    fn missing(&mut self, import: &Import) -> Outcome {
        let phrase = self.phrase();
        self.diagnostics(&import.importer, |list| missing_from(import, phrase, list))
    }

    fn missing_from(&self, import: &Import, list: &[Value]) -> Option<String> {
        missing_from(import, self.phrase(), list)
    }

    fn phrase(&self) -> &'static str {
        match self.server {
            InstalledServer::TypeScript => "Cannot find module",
            _ => "could not be resolved",
        }
    }

    /// Asks for a document's diagnostics until they are not pending, and judges them.
    fn diagnostics(&mut self, file: &str, difference: impl Fn(&[Value]) -> Option<String>) -> Outcome {
        let mut pending = false;
        for _ in 0..RETRIES {
            match self.ask(code_tools::DOCUMENT_DIAGNOSTICS, &json!({ "uri": uri(self.sandbox, file) })) {
                Ok(Some(page)) => {
                    let list = page["diagnostics"].as_array().cloned().unwrap_or_default();
                    return match difference(&list) {
                        None => Outcome::Right { pending },
                        Some(found) => Outcome::Wrong(found),
                    };
                }
                Ok(None) => pending = true,
                Err(why) => return Outcome::Wrong(why),
            }
        }
        Outcome::Wrong("pending for good".to_owned())
    }

    fn list(&mut self, file: &str) -> Option<Vec<Value>> {
        let arguments = json!({ "uri": uri(self.sandbox, file) });
        (0..RETRIES).find_map(|_| {
            let page = self.ask(code_tools::DOCUMENT_DIAGNOSTICS, &arguments).ok()??;
            page["diagnostics"].as_array().cloned()
        })
    }

    /// All pages of the workspace's diagnostics.
    fn workspace(&mut self) -> Option<Vec<Value>> {
        let (mut files, mut arguments) = (Vec::new(), json!({}));
        for _ in 0..RETRIES {
            match self.ask(code_tools::WORKSPACE_DIAGNOSTICS, &arguments) {
                Ok(Some(page)) => {
                    files.extend(page["items"].as_array().into_iter().flatten().cloned());
                    match page["nextCursor"].as_str() {
                        Some(cursor) => arguments = json!({ "cursor": cursor }),
                        None => return Some(files),
                    }
                }
                Ok(None) => {}
                Err(why) => {
                    log(&why);
                    return None;
                }
            }
        }
        None
    }

    /// `None` for an answer that is pending.
    fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Option<Value>, String> {
        match self.client.call_tool(tool, arguments.clone()) {
            Ok(answer) => Ok(Some(answer.structured)),
            Err(error) if !error.data["details"]["retryAfterMs"].is_null() => Ok(None),
            Err(error) => Err(format!("{}: {}", error.data["code"], error.message)),
        }
    }

    fn git(&self, arguments: &[&str]) -> Result<(), BenchError> {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        let git =
            Command::new("git").args(identity).args(arguments).current_dir(self.sandbox.root()).output()?;
        match git.status.success() {
            true => Ok(()),
            false => {
                Err(BenchError::new(format!("git {arguments:?}: {}", String::from_utf8_lossy(&git.stderr))))
            }
        }
    }
}

fn judged(difference: Option<String>) -> Outcome {
    match difference {
        None => Outcome::Right { pending: false },
        Some(found) => Outcome::Wrong(found),
    }
}

fn missing_from(import: &Import, phrase: &str, list: &[Value]) -> Option<String> {
    let module = Path::new(&import.target).file_stem().unwrap_or_default().to_string_lossy();
    let says = |one: &Value| {
        one["message"].as_str().is_some_and(|message| message.contains(phrase) && message.contains(&*module))
    };
    (!list.iter().any(says)).then(|| format!("not reported as missing: {} diagnostics", list.len()))
}

fn difference(before: &[Value], now: &[Value]) -> Option<String> {
    let only = |one: &[Value], other: &[Value]| {
        let different: Vec<String> =
            one.iter().filter(|item| !other.contains(item)).map(Value::to_string).collect();
        (different.len(), different.first().map(|text| text.chars().take(300).collect::<String>()))
    };
    (before != now).then(|| format!("gone {:?}, new {:?}", only(before, now), only(now, before)))
}

/// A place for a deleted file.
fn outside(sandbox: &Sandbox) -> PathBuf {
    sandbox.dir("tmp").join("deleted")
}

/// Random pairs of a file and one that it imports; no file is imported in two of them.
fn imports(sandbox: &Sandbox, server: InstalledServer, random: &mut Random, number: usize) -> Vec<Import> {
    let extension = if server == InstalledServer::TypeScript { "ts" } else { "py" };
    let files = source_sample::files(sandbox, extension);
    let mut found: Vec<Import> = Vec::new();
    while found.len() < number {
        let importer = random.choose(&files).expect("a project has files").clone();
        let text = sandbox.tree().read(&importer);
        let targets: Vec<String> = text
            .lines()
            .filter_map(|line| imported(server, &importer, line))
            .filter(|target| files.contains(target) && found.iter().all(|one| one.target != *target))
            .collect();
        if let Some(target) = random.choose(&targets) {
            found.push(Import { importer, target: target.clone() });
        }
    }
    found
}

/// The file that a line imports.
fn imported(server: InstalledServer, importer: &str, line: &str) -> Option<String> {
    if server == InstalledServer::TypeScript {
        let (_, path) = line.strip_prefix("import ")?.split_once(" from '")?;
        let mut folder: Vec<&str> = importer.split('/').collect();
        folder.pop();
        for part in path.trim_end_matches("';").split('/') {
            match part {
                "." => {}
                ".." => drop(folder.pop()),
                part => folder.push(part),
            }
        }
        return Some(format!("{}.ts", folder.join("/")));
    }
    let (module, _) = line.strip_prefix("from ")?.split_once(" import ")?;
    Some(format!("{}.py", module.replace('.', "/")))
}
