//! How often `tenon ask` finds the right passage, against plain BM25 and word search.
//!
//! The questions are in `bench/questions`, written before the ranking. The baselines see the same files, cut into windows
//! of lines: BM25 over lower-case words, and lines by the number of distinct words of the question.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tenon_testkit::{Sandbox, program, repository_root};

use crate::error::BenchError;
use crate::measure::{row, table};
use crate::output::log;

const BUDGET: usize = 4000;
const WINDOW_LINES: usize = 30;

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

/// Lines of a file, counted from 1, both included.
#[derive(Clone, Debug)]
struct Lines {
    path: String,
    first: usize,
    last: usize,
}

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
    let mut totals = [Score::default(), Score::default(), Score::default()];
    for set in &SETS {
        log(&format!("questions: {}", set.name));
        let sandbox = Sandbox::new();
        set.fill(&sandbox)?;
        let baseline = Baseline::read(sandbox.root(), set)?;
        let file = repository_root().join("bench/questions").join(format!("{}.json", set.name));
        let questions: Value = parsed(&fs::read(file)?)?;
        let mut scores = [Score::default(), Score::default(), Score::default()];
        for question in questions.as_array().into_iter().flatten() {
            let text = question["question"].as_str().unwrap_or_default();
            let answers = &question["answers"];
            let found = [set.ask(tenon, &sandbox, text)?, baseline.bm25(text), baseline.word_search(text)];
            for (number, (score, found)) in scores.iter_mut().zip(&found).enumerate() {
                let is_right = |lines: &Lines| right(sandbox.root(), answers, lines);
                let rank = found.iter().position(is_right).map(|at| at + 1);
                if number == 0 && rank != Some(1) {
                    let first =
                        found.first().map_or(String::new(), |one| format!("{}:{}", one.path, one.first));
                    log(&format!("  rank {rank:?}: {text}; first: {first}"));
                }
                score.add(rank);
            }
        }
        let mut stop = sandbox.command(tenon);
        stop.arg("stop").stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let beside = format!("BM25: {}; word search: {}", scores[1].shown(), scores[2].shown());
        let name = format!("{}, {} questions", set.name, scores[0].questions);
        row(&name, &scores[0].shown(), &beside, "found 90 %, first 55 %");
        totals.iter_mut().zip(&scores).for_each(|(total, score)| total.join(score));
    }
    let beside = format!("BM25: {}; word search: {}", totals[1].shown(), totals[2].shown());
    row("all questions", &totals[0].shown(), &beside, "found 90 %, first 55 %");
    Ok(())
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
        let output = command.output()?;
        if !output.status.success() {
            return Err(BenchError::new(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let answer: Value = parsed(&output.stdout)?;
        let number = |value: &Value| value.as_u64().unwrap_or_default() as usize;
        let lines = |passage: &Value| Lines {
            path: passage["path"].as_str().unwrap_or_default().to_owned(),
            first: number(&passage["first_line"]),
            last: number(&passage["last_line"]),
        };
        Ok(answer["passages"].as_array().into_iter().flatten().map(lines).collect())
    }

    fn includes(&self, path: &str) -> bool {
        let extension = path.rsplit('.').next().unwrap_or_default();
        let inside = self.path.is_none_or(|folder| path.starts_with(&format!("{folder}/")));
        let kinds: &[&str] = if self.kind == "docs" { &["md", "rst", "txt"] } else { &["py", "ts"] };
        inside && kinds.contains(&extension)
    }
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

/// Windows of lines, for the baselines.
struct Baseline {
    windows: Vec<(Lines, BTreeMap<String, usize>, usize, usize)>,
    lines: Vec<(Lines, BTreeSet<String>, usize)>,
    frequency: BTreeMap<String, usize>,
    mean: f64,
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

impl Baseline {
    fn read(root: &Path, set: &QuestionSet) -> Result<Self, BenchError> {
        let mut paths = Vec::new();
        files(root, root, &mut paths)?;
        let mut baseline =
            Self { windows: Vec::new(), lines: Vec::new(), frequency: BTreeMap::new(), mean: 1.0 };
        for path in paths.into_iter().filter(|path| set.includes(path)) {
            let text = String::from_utf8_lossy(&fs::read(root.join(&path))?).into_owned();
            let all: Vec<&str> = text.lines().collect();
            for (number, window) in all.chunks(WINDOW_LINES).enumerate() {
                let first = number * WINDOW_LINES + 1;
                let lines = Lines { path: path.clone(), first, last: first + window.len() - 1 };
                let mut counts: BTreeMap<String, usize> = BTreeMap::new();
                for word in window.iter().flat_map(|line| words(line)) {
                    *counts.entry(word).or_default() += 1;
                }
                for word in counts.keys() {
                    *baseline.frequency.entry(word.clone()).or_default() += 1;
                }
                let length = counts.values().sum();
                let bytes = window.iter().map(|line| line.len() + 1).sum();
                baseline.windows.push((lines, counts, length, bytes));
            }
            for (number, line) in all.iter().enumerate() {
                let lines = Lines { path: path.clone(), first: number + 1, last: number + 1 };
                baseline.lines.push((lines, words(line).collect(), line.len()));
            }
        }
        let total: usize = baseline.windows.iter().map(|(_, _, length, _)| length).sum();
        baseline.mean = total as f64 / baseline.windows.len().max(1) as f64;
        Ok(baseline)
    }

    fn bm25(&self, question: &str) -> Vec<Lines> {
        let words: BTreeSet<String> = words(question).collect();
        let count = self.windows.len() as f64;
        let score = |counts: &BTreeMap<String, usize>, length: usize| -> f64 {
            let of = |word: &String| {
                let tf = *counts.get(word)? as f64;
                let df = self.frequency[word] as f64;
                let idf = (1.0 + (count - df + 0.5) / (df + 0.5)).ln();
                Some(idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length as f64 / self.mean)))
            };
            words.iter().filter_map(of).sum()
        };
        let scored =
            self.windows.iter().map(|(lines, counts, length, bytes)| (score(counts, *length), lines, *bytes));
        within_budget(scored.collect())
    }

    fn word_search(&self, question: &str) -> Vec<Lines> {
        let asked: BTreeSet<String> = words(question).collect();
        let scored = self.lines.iter().map(|(lines, words, bytes)| {
            (words.intersection(&asked).count() as f64, lines, *bytes + lines.path.len())
        });
        within_budget(scored.collect())
    }
}

fn within_budget(mut scored: Vec<(f64, &Lines, usize)>) -> Vec<Lines> {
    scored.retain(|(score, _, _)| *score > 0.0);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = BUDGET * 4;
    let fits = |(_, _, bytes): &&(f64, &Lines, usize)| {
        let fits = *bytes <= left;
        left = left.saturating_sub(*bytes);
        fits
    };
    scored.iter().take_while(fits).map(|(_, lines, _)| (*lines).clone()).collect()
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
