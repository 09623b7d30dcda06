//! The command-line checkers of the projects, and their findings.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tenon_testkit::Sandbox;
use tenon_testkit::direct_server::InstalledServer;
use tenon_testkit::program::tool;

use crate::error::BenchError;

/// An error of a file, without its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) file: String,
    rule: String,
    /// The first line, without differences in white space.
    message: String,
}

impl Finding {
    pub(super) fn new(root: &Path, file: &str, rule: &str, message: &str) -> Self {
        let message = message.replace(root.to_str().unwrap_or_default(), "");
        let words: Vec<&str> = message.lines().next().unwrap_or_default().split_whitespace().collect();
        Self { file: file.to_owned(), rule: rule.to_owned(), message: words.join(" ") }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.file, self.message, self.rule)
    }
}

/// How often each finding occurs.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(BTreeMap<Finding, usize>);

impl Counts {
    pub(super) fn len(&self) -> usize {
        self.0.values().sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Finding, &usize)> {
        self.0.iter()
    }

    /// What occurs here more often than in `other`.
    pub(super) fn minus(&self, other: &Self) -> Self {
        let more = |(finding, count): (&Finding, &usize)| {
            let rest = count.saturating_sub(other.0.get(finding).copied().unwrap_or_default());
            (rest > 0).then(|| (finding.clone(), rest))
        };
        Self(self.0.iter().filter_map(more).collect())
    }

    pub(super) fn only(&self, wanted: impl Fn(&Finding) -> bool) -> Self {
        let wanted = self.0.iter().filter(|(finding, _)| wanted(finding));
        Self(wanted.map(|(finding, count)| (finding.clone(), *count)).collect())
    }
}

impl FromIterator<Finding> for Counts {
    fn from_iter<I: IntoIterator<Item = Finding>>(findings: I) -> Self {
        let mut counts = BTreeMap::new();
        for finding in findings {
            *counts.entry(finding).or_default() += 1;
        }
        Self(counts)
    }
}

/// A checker on one tree.
pub(super) struct Checker<'a> {
    server: InstalledServer,
    sandbox: &'a Sandbox,
    running: Option<Running>,
}

/// A checker that keeps its state: a whole check of a large project takes a minute, one after a change a second.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Prints all errors of a TypeScript project for each line of input.
const TYPESCRIPT: &str = include_str!("typescript.cjs");

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Checker<'a> {
    pub(super) fn new(server: InstalledServer, sandbox: &'a Sandbox) -> Self {
        Self { server, sandbox, running: None }
    }

    /// All errors of the tree as it is now. A checker that watches must be called after each change.
    pub(super) fn findings(&mut self) -> Result<Counts, BenchError> {
        match self.server {
            InstalledServer::Pyright => self.watched(),
            InstalledServer::Ty => self.run("ty", &["check", "--output-format", "concise"], ty_line),
            // The compiler of TypeScript 7 stops at syntax errors and old options; types and messages are those of 5.9.
            InstalledServer::TypeScript | InstalledServer::TypeScriptNative => self.compiled(),
            InstalledServer::Clangd => Err(BenchError::new("clangd has no checker of a whole project")),
        }
    }

    /// Runs a checker that prints one finding a line.
    fn run(
        &self,
        program: &str,
        arguments: &[&str],
        parse: fn(&Path, &str) -> Option<Finding>,
    ) -> Result<Counts, BenchError> {
        let output = self.sandbox.command(tool(program)).args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let root = self.sandbox.root();
        Ok(text.lines().filter_map(|line| parse(root, line)).collect())
    }

    /// The running checker, started with this command if necessary.
    fn running(&mut self, command: impl FnOnce(&Sandbox) -> Command) -> Result<&mut Running, BenchError> {
        if self.running.is_none() {
            let mut command = command(self.sandbox);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn()?;
            let stdout = child.stdout.take().expect("stdout was piped above");
            self.running = Some(Running { child, lines: BufReader::new(stdout).lines() });
        }
        Ok(self.running.as_mut().expect("it was just started"))
    }

    fn compiled(&mut self) -> Result<Counts, BenchError> {
        let root = self.sandbox.root();
        let running = self.running(|sandbox| {
            let compiler = tool("tsc").canonicalize().unwrap_or_default();
            let package = compiler.ancestors().nth(2).unwrap_or(&compiler).to_owned();
            let mut command = sandbox.command(tool("node"));
            command.arg("-e").arg(TYPESCRIPT).arg(package).arg(sandbox.root().join("tsconfig.json"));
            command
        })?;
        let input = running.child.stdin.as_mut().expect("stdin was piped above");
        input.write_all(b"\n")?;
        let line = running.lines.next().ok_or_else(|| BenchError::new("the compiler ended"))??;
        let found: Vec<Value> = serde_json::from_str(&line)
            .map_err(|error| BenchError::new(format!("the compiler printed {line}: {error}")))?;
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let finding =
            |one: &Value| Finding::new(root, &text(one, "file"), &text(one, "code"), &text(one, "message"));
        Ok(found.iter().map(finding).collect())
    }

    fn watched(&mut self) -> Result<Counts, BenchError> {
        let watching = self.running(|sandbox| {
            let mut command = sandbox.command(tool("pyright"));
            command.args(["--watch", "--outputjson"]);
            command
        })?;
        let mut document = String::new();
        for line in watching.lines.by_ref() {
            let line = line?;
            if line.starts_with('{') {
                document.clear();
            }
            document.push_str(&line);
            document.push('\n');
            if line == "}" {
                break;
            }
        }
        let report: Value = serde_json::from_str(&document)
            .map_err(|error| BenchError::new(format!("pyright printed {document}: {error}")))?;
        let root = self.sandbox.root();
        let folder = format!("{}/", root.display());
        let found = report["generalDiagnostics"].as_array().into_iter().flatten();
        let errors = found.filter(|one| one["severity"] == "error");
        Ok(errors
            .map(|one| {
                let text = |key: &str| one[key].as_str().unwrap_or_default();
                Finding::new(root, text("file").trim_start_matches(&folder), text("rule"), text("message"))
            })
            .collect())
    }
}

/// `a/b.py:3:5: error[unresolved-reference] Name …`
fn ty_line(root: &Path, line: &str) -> Option<Finding> {
    let (place, rest) = line.split_once(": error[")?;
    let (code, message) = rest.split_once("] ")?;
    Some(Finding::new(root, place.rsplitn(3, ':').nth(2)?, code, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_from_lines() {
        let found = ty_line(
            Path::new("/r"),
            "a/b.py:3:5: error[unresolved-reference] Name `x` used when not defined",
        );
        let expected =
            Finding::new(Path::new("/r"), "a/b.py", "unresolved-reference", "Name `x` used when not defined");
        assert_eq!(found, Some(expected));
        assert_eq!(ty_line(Path::new("/r"), "Found 3 diagnostics"), None);
    }

    #[test]
    fn difference_counts_repeated_findings() {
        let finding = |file: &str| Finding::new(Path::new("/r"), file, "r", "m");
        let after: Counts = [finding("a"), finding("a"), finding("b")].into_iter().collect();
        let before: Counts = [finding("a")].into_iter().collect();
        assert_eq!(after.minus(&before).len(), 2);
        assert!(before.minus(&after).is_empty());
        assert_eq!(after.only(|one| one.file == "a").len(), 2);
    }
}
