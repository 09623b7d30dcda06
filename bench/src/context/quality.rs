//! How often `tenon ask` finds the right passage, against plain BM25 and word search.
//!
//! The questions are in `bench/questions`, written before the ranking. One half, chosen by a hash of the question, was used
//! to improve the ranking; the other half was not, and is reported apart. The baselines see the same files: BM25 over the
//! lower-case words of sections (of code, windows of lines), and lines by the number of distinct words of the question.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tenon_testkit::{Sandbox, program, repository_root};

use super::baseline::{Baseline, Lines};
use crate::error::BenchError;
use crate::measure::{row, table};
use crate::output::log;

const BUDGET: usize = 4000;

/// A set of questions with its tree.
struct QuestionSet {
    name: &'static str,
    kind: &'static str,
    /// The folder of the tree in the sandbox, for `--path`.
    path: Option<&'static str>,
    tree: Tree,
}

enum Tree {
    Repository,
    Sdist(&'static str),
    Rxjs,
}

const SETS: [QuestionSet; 5] = [
    QuestionSet { name: "tenon", kind: "docs", path: None, tree: Tree::Repository },
    QuestionSet {
        name: "django-docs",
        kind: "docs",
        path: Some("docs"),
        tree: Tree::Sdist("django==5.2.19"),
    },
    QuestionSet { name: "sphinx-docs", kind: "docs", path: Some("doc"), tree: Tree::Sdist("sphinx==8.2.3") },
    QuestionSet {
        name: "django-code",
        kind: "code",
        path: Some("django"),
        tree: Tree::Sdist("django==5.2.19"),
    },
    QuestionSet { name: "rxjs-code", kind: "code", path: None, tree: Tree::Rxjs },
];

#[derive(Default)]
struct Score {
    questions: usize,
    found: usize,
    first: usize,
    reciprocal: f64,
}

impl Score {
    fn add(&mut self, rank: Option<usize>) {
        self.questions += 1;
        self.found += usize::from(rank.is_some());
        self.first += usize::from(rank == Some(1));
        self.reciprocal += rank.map_or(0.0, |rank| 1.0 / rank as f64);
    }

    fn join(&mut self, other: &Self) {
        self.questions += other.questions;
        self.found += other.found;
        self.first += other.first;
        self.reciprocal += other.reciprocal;
    }

    fn shown(&self) -> String {
        let percent = |part: usize| 100.0 * part as f64 / self.questions.max(1) as f64;
        format!(
            "found {:.0} %, first {:.0} %, MRR {:.2}",
            percent(self.found),
            percent(self.first),
            self.reciprocal / self.questions.max(1) as f64
        )
    }
}

pub(super) fn run(tenon: &Path) -> Result<(), BenchError> {
    table("Quality of `context.find`, 4,000 tokens");
    let mut total = Scores::default();
    for set in &SETS {
        log(&format!("questions: {}", set.name));
        let sandbox = Sandbox::new();
        set.fill(&sandbox)?;
        let baseline = set.baseline(sandbox.root())?;
        let file = repository_root().join("bench/questions").join(format!("{}.json", set.name));
        let questions: Value = parsed(&fs::read(file)?)?;
        let mut scores = Scores::default();
        for question in questions.as_array().into_iter().flatten() {
            let text = question["question"].as_str().unwrap_or_default();
            let rank = |found: &[Lines]| {
                let is_right = |lines: &Lines| right(sandbox.root(), &question["answers"], lines);
                found.iter().position(is_right).map(|at| at + 1)
            };
            let found = set.ask(tenon, &sandbox, text)?;
            let own = rank(&found);
            if own != Some(1) {
                let first = found.first().map_or(String::new(), |one| format!("{}:{}", one.path, one.first));
                log(&format!("  rank {own:?}: {text}; first: {first}"));
            }
            scores.find.add(own);
            let half = if is_unseen(text) { &mut scores.unseen } else { &mut scores.used };
            half.add(own);
            scores.bm25.add(rank(&baseline.bm25(text)));
            scores.word_search.add(rank(&baseline.word_search(text)));
        }
        let mut stop = sandbox.command(tenon);
        stop.arg("stop").stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        scores.print(&format!("{}, {} questions", set.name, scores.find.questions));
        total.join(&scores);
    }
    total.print("all questions");
    let halves = [("used for the ranking", &total.used), ("not used for the ranking", &total.unseen)];
    for (name, half) in halves {
        row(&format!("{} questions {name}", half.questions), &half.shown(), "", AIM);
    }
    Ok(())
}

const AIM: &str = "found 90 %, first 55 %";

/// Whether a question belongs to the half that was not used to improve the ranking: a bit of the question's FNV-1a hash.
fn is_unseen(question: &str) -> bool {
    let hash = question.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash >> 32 & 1 == 1
}

#[derive(Default)]
struct Scores {
    find: Score,
    bm25: Score,
    word_search: Score,
    used: Score,
    unseen: Score,
}

impl Scores {
    fn print(&self, name: &str) {
        let beside = format!("BM25: {}; word search: {}", self.bm25.shown(), self.word_search.shown());
        row(name, &self.find.shown(), &beside, AIM);
    }

    fn join(&mut self, other: &Self) {
        self.find.join(&other.find);
        self.bm25.join(&other.bm25);
        self.word_search.join(&other.word_search);
        self.used.join(&other.used);
        self.unseen.join(&other.unseen);
    }
}

impl QuestionSet {
    /// Copies the tree into the sandbox.
    fn fill(&self, sandbox: &Sandbox) -> Result<(), BenchError> {
        match self.tree {
            Tree::Repository => {
                copy(&repository_root().join("docs"), &sandbox.root().join("docs"))?;
                for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
                {
                    fs::copy(repository_root().join(name), sandbox.root().join(name))?;
                }
                Ok(())
            }
            Tree::Sdist(package) => copy(&sdist(package)?, sandbox.root()),
            Tree::Rxjs => copy(&program::node_modules().join("rxjs/src"), &sandbox.root().join("src")),
        }
    }

    fn ask(&self, tenon: &Path, sandbox: &Sandbox, question: &str) -> Result<Vec<Lines>, BenchError> {
        let mut command = sandbox.command(tenon);
        command.args(["ask", "--json", "--budget", &BUDGET.to_string(), "--kind", self.kind, question]);
        if let Some(path) = self.path {
            command.args(["--path", path]);
        }
        let mut answer = answered(&mut command)?;
        // Not all files were read yet.
        while answer["notes"].to_string().contains("ask again") {
            answer = answered(&mut command)?;
        }
        let number = |value: &Value| value.as_u64().unwrap_or_default() as usize;
        let lines = |passage: &Value| Lines {
            path: passage["path"].as_str().unwrap_or_default().to_owned(),
            first: number(&passage["first_line"]),
            last: number(&passage["last_line"]),
        };
        Ok(answer["passages"].as_array().into_iter().flatten().map(lines).collect())
    }

    fn baseline(&self, root: &Path) -> Result<Baseline, BenchError> {
        let mut paths = Vec::new();
        files(root, root, &mut paths)?;
        paths.retain(|path| self.includes(path));
        Baseline::read(root, &paths, BUDGET)
    }

    fn includes(&self, path: &str) -> bool {
        let extension = path.rsplit('.').next().unwrap_or_default();
        let inside = self.path.is_none_or(|folder| path.starts_with(&format!("{folder}/")));
        let kinds: &[&str] = if self.kind == "docs" { &["md", "rst", "txt"] } else { &["py", "ts"] };
        inside && kinds.contains(&extension)
    }
}

fn answered(command: &mut Command) -> Result<Value, BenchError> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(BenchError::new(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    parsed(&output.stdout)
}

fn parsed(json: &[u8]) -> Result<Value, BenchError> {
    serde_json::from_slice(json).map_err(|error| BenchError::new(format!("invalid JSON: {error}")))
}

/// Whether lines answer a question: see `bench/questions/README.md`.
fn right(root: &Path, answers: &Value, lines: &Lines) -> bool {
    answers.as_array().into_iter().flatten().any(|answer| {
        let path = answer["path"].as_str().unwrap_or_default();
        if path != lines.path {
            return false;
        }
        let Ok(text) = fs::read_to_string(root.join(path)) else { return false };
        let all: Vec<&str> = text.lines().map(str::trim).collect();
        if let Some(declaration) = answer["declaration"].as_str() {
            let declared = |line: usize| all.get(line - 1).is_some_and(|text| text.starts_with(declaration));
            return (lines.first.max(1)..=lines.last).any(declared);
        }
        let Some(heading) = answer["heading"].as_str() else { return true };
        let Some(start) = all.iter().position(|line| *line == heading) else { return false };
        let until = answer["until"].as_str();
        let end = until.and_then(|until| all.iter().skip(start + 1).position(|line| *line == until));
        let (first, last) = (start + 1, end.map_or(all.len(), |end| start + 1 + end));
        let shared = lines.last.min(last).saturating_sub(lines.first.max(first) - 1);
        let contains = lines.first <= first && lines.last >= last;
        contains || shared * 2 > lines.last - lines.first
    })
}

fn files(root: &Path, folder: &Path, found: &mut Vec<String>) -> Result<(), BenchError> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(root, &path, found)?;
        } else if let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            found.push(relative.to_owned());
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), BenchError> {
    fs::create_dir_all(to)?;
    let status = Command::new("cp").arg("-r").arg(from.join(".")).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(BenchError::new(format!("cannot copy {}", from.display()))) }
}

/// The unpacked source distribution of a Python package, downloaded once.
fn sdist(package: &str) -> Result<PathBuf, BenchError> {
    let name = package.replace("==", "-");
    let folder = repository_root().join("target/bench/sdists").join(&name);
    let unpacked = folder.join(&name);
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    log(&format!("downloading {package}"));
    fs::create_dir_all(&folder)?;
    let mut download = Command::new(program::python());
    download.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
        package,
        "--dest",
    ]);
    let downloaded = download.arg(&folder).status()?.success();
    let archive = folder.join(format!("{name}.tar.gz"));
    let unpack = || Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder).status();
    if !downloaded || !unpack()?.success() {
        return Err(BenchError::new(format!("cannot download {package}")));
    }
    Ok(unpacked)
}
