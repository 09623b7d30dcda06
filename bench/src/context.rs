//! Document caches: build, one-shot resolve, warm resolve and memory.
//!
//! The baseline is `sha256sum` over the files of the cache, since verifying a cache means hashing it. If the first
//! implementation can be installed from the registry, it answers the same query over the same cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tenon_testkit::Sandbox;
use tenon_testkit::processes::ProcessInfo;
use tenon_testkit::repository_root;

use crate::error::BenchError;
use crate::json_lines::JsonLines;
use crate::measure::{Times, row, shown, table};
use crate::output::log;

mod baseline;
mod find;
mod quality;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only one of `caches`, `find` and `quality`
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<String>,
}

const SIZES: [usize; 4] = [100, 1000, 10_000, 100_000];

/// Above this size the first implementation takes minutes per answer.
const FIRST_MOST: usize = 10_000;

const DOCUMENT_BYTES: usize = 2048;
const WARM_CALLS: usize = 1000;

/// In one document of each corpus.
const RARE: &str = "needle";

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    let wanted = |part: &str| options.only.as_ref().is_none_or(|only| only == part);
    if wanted("quality") {
        quality::run(tenon)?;
    }
    if wanted("find") {
        find::run(tenon)?;
    }
    if wanted("caches") {
        caches(tenon)?;
    }
    Ok(())
}

fn caches(tenon: &Path) -> Result<(), BenchError> {
    let first = First::install();
    table("Context caches, documents of 2 KB");
    for size in SIZES {
        let sandbox = Sandbox::new();
        let bench = Corpus { tenon, sandbox: &sandbox, size, first: first.as_ref() };
        bench.write()?;
        bench.build()?;
        bench.one_shot()?;
        bench.warm()?;
    }
    Ok(())
}

/// One size of corpus, with its cache.
struct Corpus<'a> {
    tenon: &'a Path,
    sandbox: &'a Sandbox,
    size: usize,
    first: Option<&'a First>,
}

impl Corpus<'_> {
    fn cache(&self) -> PathBuf {
        self.sandbox.root().join("caches/bench")
    }

    fn what(&self, what: &str) -> String {
        format!("{} documents: {what}", self.size)
    }

    /// Enough runs for a median in reasonable time.
    fn runs(&self) -> usize {
        (20_000 / self.size).clamp(3, 20)
    }

    fn write(&self) -> io::Result<()> {
        log(&self.what("writing"));
        self.sandbox.tree().write("sources/tiny/tiny.md", "a tiny document");
        let mut random = Random(1);
        let vocabulary: Vec<String> = (0..20_000).map(|_| random.word()).collect();
        for n in 0..self.size {
            let folder = self.sandbox.root().join("sources").join((n % 100).to_string());
            fs::create_dir_all(&folder)?;
            let mut text = if n == self.size / 2 { format!("{RARE} ") } else { String::new() };
            while text.len() < DOCUMENT_BYTES - 12 {
                text.push_str(&vocabulary[random.skewed(vocabulary.len())]);
                text.push(if random.below(12) == 0 { '\n' } else { ' ' });
            }
            fs::write(folder.join(format!("{n}.md")), text)?;
        }
        Ok(())
    }

    fn build(&self) -> Result<(), BenchError> {
        log(&self.what("building"));
        let mut times = Times::default();
        for _ in 0..self.runs().min(5) {
            times.add(self.build_cache("bench", "sources")?);
        }
        let mut copies = Times::default();
        for _ in 0..3 {
            let copy = self.sandbox.root().join("copy");
            copies.add(timed(
                self.sandbox
                    .command("sh")
                    .args(["-c", "cp -r sources \"$1\" && sync -f \"$1\"", "sh"])
                    .arg(&copy),
            )?);
            fs::remove_dir_all(&copy)?;
        }
        let ratio = times.median().as_secs_f64() / copies.median().as_secs_f64();
        let beside = format!("`cp -r` and `sync -f` {}, {ratio:.2}×", shown(copies.median()));
        row(&self.what("build"), &shown(times.median()), &beside, "3×");
        Ok(())
    }

    fn build_cache(&self, name: &str, sources: &str) -> Result<Duration, BenchError> {
        let mut command = self.sandbox.command(self.tenon);
        command.args(["context", "build", "--force", "--sources", sources, "--cache"]);
        timed(command.arg(self.sandbox.root().join("caches").join(name)))
    }

    /// `sha256sum` over every file of the cache.
    fn baseline(&self) -> Command {
        let mut command = self.sandbox.command("sh");
        command.args(["-c", "find \"$1\" -type f -print0 | xargs -0 sha256sum", "sh"]).arg(self.cache());
        command
    }

    fn resolve(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(program);
        command
            .args(arguments)
            .args(["resolve", "--query", RARE, "--budget", "4000", "--cache"])
            .arg(self.cache());
        command
    }

    /// In turns with the baseline, so that other load on the machine affects both.
    fn one_shot(&self) -> Result<(), BenchError> {
        log(&self.what("one-shot resolve and the baseline"));
        let (mut baseline, mut times) = (Times::default(), Times::default());
        for _ in 0..self.runs() {
            baseline.add(timed(&mut self.baseline())?);
            times.add(timed(&mut self.resolve(self.tenon, &["context"]))?);
        }
        let ratio = times.median().as_secs_f64() / baseline.median().as_secs_f64();
        let beside = format!("`sha256sum` {}, {ratio:.2}×", shown(baseline.median()));
        row(&self.what("one-shot resolve"), &shown(times.median()), &beside, "2× `sha256sum`");
        if let Some(first) = self.first.filter(|_| self.size <= FIRST_MOST) {
            let theirs = timed(&mut self.resolve(&first.context, &[]))?;
            row(&self.what("one-shot resolve, first implementation"), &shown(theirs), "", "");
        }
        Ok(())
    }

    fn server(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(program);
        command.args(arguments).env("CONTEXT_CACHE_ROOT", self.sandbox.root().join("caches"));
        command.env("CONTEXT_TOOL_TIMEOUT_SECS", "600").stderr(Stdio::null());
        command
    }

    fn warm(&self) -> Result<(), BenchError> {
        log(&self.what("warm resolve"));
        let mut server = JsonLines::start(&mut self.server(self.tenon, &["context-server"]))?;
        server.initialize()?;
        // Subtract the memory of a server that has loaded a tiny cache.
        self.build_cache("tiny", "sources/tiny")?;
        ask(&mut server, "tiny", RARE)?;
        let idle = resident(&server);
        let start = Instant::now();
        ask(&mut server, "bench", RARE)?;
        row(&self.what("first resolve of a server"), &shown(start.elapsed()), "", "");
        wait_for_index(&mut server)?;
        for (kind, query, aim) in [
            ("a term in one document", RARE, "1 ms at 10,000"),
            ("a term in no document", "absentee", ""),
            ("the most frequent term", &Random::frequent(), "with the matches"),
        ] {
            let times = Times::of(WARM_CALLS, || ask(&mut server, "bench", query))?;
            let spread = format!("{} (95 %: {})", shown(times.median()), shown(times.within(0.95)));
            row(&self.what(&format!("warm resolve, {kind}")), &spread, "", aim);
        }
        let documents: u64 = fs::read_dir(self.cache().join("documents"))?
            .map(|entry| Ok(entry?.metadata()?.len()))
            .sum::<io::Result<u64>>()?;
        let held = resident(&server).saturating_sub(idle) * 1024;
        let ratio = held as f64 / documents as f64;
        row(
            &self.what("memory of a warm cache"),
            &mib(held),
            &format!("documents {}, {ratio:.2}×", mib(documents)),
            "2×",
        );
        server.end()?;

        if let Some(first) = self.first.filter(|_| self.size < FIRST_MOST) {
            let mut server = JsonLines::start(&mut self.server(&first.server, &[]))?;
            server.initialize()?;
            let times = Times::of(3, || ask(&mut server, "bench", RARE))?;
            row(
                &self.what("every resolve of a server, first implementation"),
                &shown(times.median()),
                "",
                "",
            );
            server.end()?;
        }
        Ok(())
    }
}

/// Until the index is built, each answer reads all documents.
fn wait_for_index(server: &mut JsonLines) -> Result<(), BenchError> {
    let start = Instant::now();
    loop {
        let call = Instant::now();
        ask(server, "bench", RARE)?;
        if call.elapsed() < Duration::from_millis(5) {
            return Ok(());
        }
        if start.elapsed() > Duration::from_secs(120) {
            return Err(BenchError::new("no call was answered from an index within two minutes"));
        }
    }
}

fn ask(server: &mut JsonLines, cache: &str, query: &str) -> io::Result<()> {
    server.ask(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"context.resolve","arguments":{{"cache":"{cache}","query":"{query}","budget":4000}}}}}}"#
    ))?;
    if server.answer().contains("documents_considered") {
        return Ok(());
    }
    Err(io::Error::other(format!("`context.resolve` answered {}", server.answer())))
}

fn timed(command: &mut Command) -> Result<Duration, BenchError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status()?;
    let time = start.elapsed();
    if status.success() { Ok(time) } else { Err(BenchError::new(format!("{command:?} failed"))) }
}

/// KiB.
fn resident(server: &JsonLines) -> u64 {
    ProcessInfo { id: server.id(), parent: 0, command: Vec::new() }.resident_kib()
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0)
}

/// The published first implementation.
struct First {
    context: PathBuf,
    server: PathBuf,
}

impl First {
    /// Installs it into `target` once. `None` if the registry does not have it.
    fn install() -> Option<Self> {
        let root = repository_root().join("target/bench/context-v0");
        let first = Self { context: root.join("bin/context"), server: root.join("bin/mcp-context-server") };
        if first.context.is_file() && first.server.is_file() {
            return Some(first);
        }
        let mut install = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        install.args(["install", "--root"]).arg(&root);
        install.args(["context-cli@0.1.0", "mcp-context-server@0.1.0"]);
        let installed = install.status().is_ok_and(|status| status.success());
        if !installed {
            log("cannot install the first implementation: skipped");
        }
        installed.then_some(first)
    }
}

/// A fixed-seed generator: every run gets the same corpus.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Prefers small numbers, roughly as words are distributed in text.
    fn skewed(&mut self, limit: usize) -> usize {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((limit as f64).powf(uniform) as usize).min(limit) - 1
    }

    fn word(&mut self) -> String {
        let length = 2 + self.below(9);
        (0..length).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }

    /// The first word of the vocabulary, which `skewed` picks most often.
    fn frequent() -> String {
        Self(1).word()
    }
}
