//! Many clients on one workspace: each has its own connection to the daemon, asks for diagnostics of documents that the
//! others ask for, too, and edits another file.
//!
//! A call is late if its answer says to ask again; the client does, and the time counts until the final answer. It is lost
//! if there is no final answer, and wrong if the answer does not belong to the text that the client wrote.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::direct_server::{InstalledServer, uri};
use tenon_testkit::{RealProject, Sandbox, code_tools};

use crate::error::BenchError;
use crate::json_lines::JsonLines;
use crate::measure::{Times, shown};
use crate::output::{log, print};
use crate::product::Product;
use crate::source_sample::{self, Random};
use crate::subject::{SUBJECTS, Subject};

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// How many clients, one run each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64])]
    clients: Vec<usize>,
    /// How long each run asks
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Calls from one edit of a client to its next; 0 for no edits
    #[arg(long, default_value_t = 10)]
    edit_every: usize,
    /// Edit files of the project, which others import, instead of a new file per client
    #[arg(long)]
    edit_project: bool,
    /// Another process renames a file in a loop meanwhile
    #[arg(long)]
    renames: bool,
    /// The seed of the choice of files
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only servers whose id contains this
    #[arg(long)]
    only: Option<String>,
}

/// Documents that all clients ask for.
const SHARED: usize = 4;
/// Documents that each client asks for, beside those.
const OWN: usize = 4;
/// How long a final answer may take before the call counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Many clients on one workspace\n");
    print(
        "| project, server | clients | diagnostics | late | lost | wrong | p50 | p95 | one client's p95, ratio | edits | not complete | p50 | p95 |",
    );
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for subject in SUBJECTS {
        let is_chosen = options.only.as_ref().is_none_or(|only| subject.server.id().contains(only.as_str()));
        if is_chosen && subject.server != InstalledServer::Ty {
            measure(tenon, subject, options)?;
        }
    }
    Ok(())
}

fn measure(tenon: &Path, subject: Subject, options: &Options) -> Result<(), BenchError> {
    for &clients in &options.clients {
        log(&format!("{}, {clients} clients", subject.name()));
        // A new workspace and daemon, so that no run profits from the one before it.
        let sandbox = Sandbox::with_project(subject.source);
        sandbox.write_user_config(&settings(subject, &sandbox));
        let product = Product { tenon, sandbox: &sandbox };
        let (alone, all) = run_clients(&product, subject, clients, options)?;
        product.stop()?;
        all.report(&subject.name(), clients, &alone);
    }
    Ok(())
}

fn settings(subject: Subject, sandbox: &Sandbox) -> String {
    let mut settings = format!("[edit]\nallow = [{:?}]\n", sandbox.root());
    for (id, entry) in subject.servers().as_object().into_iter().flatten() {
        settings.push_str(&format!("[servers.{id}]\nenabled = {}\n", entry["enabled"]));
    }
    settings
}

/// What the first client sees alone, then what all see together: other load on the machine affects both.
fn run_clients(
    product: &Product<'_>,
    subject: Subject,
    number: usize,
    options: &Options,
) -> Result<(Counts, Counts), BenchError> {
    let extension = if subject.source == RealProject::Django { "py" } else { "ts" };
    let files = source_sample::files(product.sandbox, extension);
    let mut random = Random::new(options.seed);
    let mut choose = |number: usize| -> Vec<String> {
        (0..number).filter_map(|_| random.choose(&files).cloned()).collect()
    };
    let shared = choose(SHARED);
    let mut edited: Vec<String> = Vec::new();
    while edited.len() < number {
        let new = match options.edit_project {
            true => choose(1).into_iter().find(|file| !edited.contains(file) && !shared.contains(file)),
            false => Some(format!("{}/bench_{}.{extension}", folder(subject), edited.len())),
        };
        edited.extend(new);
    }
    let mut clients = Vec::new();
    for edited in edited {
        let text = if options.edit_project { product.sandbox.tree().read(&edited) } else { String::new() };
        product.sandbox.tree().write(&edited, &format!("{text}\n{}\n", sound(subject)));
        let asked: Vec<String> = shared.iter().cloned().chain(choose(OWN)).collect();
        clients.push(Client::connect(product, subject, edited, asked)?);
    }
    // The server is loaded, and every document was asked for once.
    for client in &mut clients {
        client.ask_all()?;
        client.counts = Counts::default();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let renamed = options.renames.then(|| scope.spawn(|| rename_until(&stop, product.sandbox)));
        let alone = run_all(&mut clients[..1], options)?;
        let all = run_all(&mut clients, options)?;
        stop.store(true, Ordering::Relaxed);
        if let Some(renamed) = renamed {
            let count = renamed.join().map_err(|_| BenchError::new("the rename loop panicked"))??;
            log(&format!("{count} renames"));
        }
        for client in clients {
            client.lines.end()?;
        }
        Ok((alone, all))
    })
}

/// Lets clients ask at the same time.
fn run_all(clients: &mut [Client], options: &Options) -> Result<Counts, BenchError> {
    thread::scope(|scope| {
        let running: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(index, client)| {
                let random = Random::new(options.seed.wrapping_add(index as u64 + 1));
                scope.spawn(move || client.run(random, options))
            })
            .collect();
        let mut all = Counts::default();
        for client in running {
            match client.join() {
                Ok(counts) => all.add(counts?),
                Err(_) => return Err(BenchError::new("a client panicked")),
            }
        }
        Ok(all)
    })
}

/// Where the edited files are that are not part of the project.
fn folder(subject: Subject) -> &'static str {
    if subject.source == RealProject::Django { "django" } else { "src" }
}

fn sound(subject: Subject) -> String {
    format!("{} nothing is wrong here", subject.comment)
}

/// Renames a file to and fro until the run ends. Returns how often.
fn rename_until(stop: &AtomicBool, sandbox: &Sandbox) -> Result<u64, BenchError> {
    let names = ["renamed_a.txt", "renamed_b.txt"].map(|name| sandbox.tree().path(name));
    fs::write(&names[0], "text\n")?;
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        fs::rename(&names[0], &names[1])?;
        fs::rename(&names[1], &names[0])?;
        count += 2;
    }
    Ok(count)
}

/// What the clients of a run saw.
#[derive(Debug, Default)]
struct Counts {
    diagnostics: Times,
    late: usize,
    lost: usize,
    wrong: usize,
    edits: Times,
    incomplete: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.diagnostics.extend(other.diagnostics);
        self.edits.extend(other.edits);
        self.late += other.late;
        self.lost += other.lost;
        self.wrong += other.wrong;
        self.incomplete += other.incomplete;
    }

    fn report(&self, name: &str, clients: usize, alone: &Self) {
        let (p50, p95) = (self.diagnostics.median(), self.diagnostics.within(0.95));
        let one = alone.diagnostics.within(0.95);
        let ratio = format!("{} {:.1}×", shown(one), p95.as_secs_f64() / one.as_secs_f64());
        let Self { late, lost, wrong, incomplete, .. } = self;
        print(&format!(
            "| {name} | {clients} | {} | {late} | {lost} | {wrong} | {} | {} | {ratio} | {} | {incomplete} | {} | {} |",
            self.diagnostics.len(),
            shown(p50),
            shown(p95),
            self.edits.len(),
            shown(self.edits.median()),
            shown(self.edits.within(0.95)),
        ));
    }
}

/// One client with its connection.
struct Client {
    lines: JsonLines,
    /// URIs.
    asked: Vec<String>,
    edited: String,
    edited_uri: String,
    /// The line that it changes.
    last_line: usize,
    /// The lines that an edit exchanges: without and with an error.
    texts: [String; 2],
    is_wrong: bool,
    counts: Counts,
}

impl Client {
    fn connect(
        product: &Product<'_>,
        subject: Subject,
        edited: String,
        asked: Vec<String>,
    ) -> Result<Self, BenchError> {
        let mut command = product.sandbox.command(product.tenon);
        command.args(["mcp", "--surface", "code,edit"]).stderr(Stdio::null());
        let mut lines = JsonLines::start(&mut command)?;
        lines.initialize()?;
        Ok(Self {
            lines,
            asked: asked.iter().map(|file| uri(product.sandbox, file)).collect(),
            edited_uri: uri(product.sandbox, &edited),
            last_line: product.sandbox.tree().read(&edited).lines().count() - 1,
            edited,
            texts: [sound(subject), subject.wrong.to_owned()],
            is_wrong: false,
            counts: Counts::default(),
        })
    }

    fn run(&mut self, mut random: Random, options: &Options) -> Result<Counts, BenchError> {
        let end = Instant::now() + Duration::from_secs(options.seconds);
        let mut calls = random.below(options.edit_every.max(1));
        while Instant::now() < end {
            calls += 1;
            if options.edit_every > 0 && calls.is_multiple_of(options.edit_every) {
                self.edit()?;
                self.ask_edited()?;
            } else {
                let file = random.choose(&self.asked).cloned().unwrap_or_default();
                self.diagnostics(&file)?;
            }
        }
        Ok(std::mem::take(&mut self.counts))
    }

    fn ask_all(&mut self) -> Result<(), BenchError> {
        for file in self.asked.clone() {
            self.diagnostics(&file)?;
        }
        self.ask_edited()
    }

    /// Asks for the file that only this client edits, so that the answer is known.
    fn ask_edited(&mut self) -> Result<(), BenchError> {
        let file = self.edited_uri.clone();
        if let Some(found) = self.diagnostics(&file)? {
            let line = self.last_line;
            let has_error = found.iter().any(|one| one["range"]["start"]["line"] == line);
            if has_error != self.is_wrong {
                self.counts.wrong += 1;
                log(&format!("wrong: {}: {found:?}", self.edited));
            }
        }
        Ok(())
    }

    /// Asks until the answer is final.
    fn diagnostics(&mut self, file: &str) -> Result<Option<Vec<Value>>, BenchError> {
        let start = Instant::now();
        let answer = loop {
            let mut answer = self.call(code_tools::DOCUMENT_DIAGNOSTICS, &json!({ "uri": file }))?;
            if answer["error"].is_null() {
                break Some(answer["result"]["structuredContent"]["diagnostics"].take());
            }
            if answer["error"]["data"]["details"]["retryAfterMs"].is_null() || start.elapsed() > PATIENCE {
                log(&format!("lost: {file}: {answer}"));
                break None;
            }
            self.counts.late += 1;
        };
        self.counts.lost += usize::from(answer.is_none());
        self.counts.diagnostics.add(start.elapsed());
        Ok(answer.map(|list| list.as_array().cloned().unwrap_or_default()))
    }

    fn edit(&mut self) -> Result<(), BenchError> {
        let [sound, wrong] = &self.texts;
        let (old, new) = if self.is_wrong { (wrong, sound) } else { (sound, wrong) };
        let arguments = json!({ "file": self.edited, "old_text": old, "new_text": new });
        let start = Instant::now();
        let answer = self.call("edit_file", &arguments)?;
        self.counts.edits.add(start.elapsed());
        let result = &answer["result"];
        if result["isError"] != false {
            return Err(BenchError::new(format!("`edit_file`: {answer}")));
        }
        self.counts.incomplete += usize::from(result["structuredContent"]["complete"] != true);
        self.is_wrong = !self.is_wrong;
        Ok(())
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, BenchError> {
        let params = json!({ "name": tool, "arguments": arguments });
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        self.lines.ask(&message.to_string())?;
        let text = self.lines.answer();
        serde_json::from_str(text).map_err(|error| BenchError::new(format!("{error}: {text}")))
    }
}
