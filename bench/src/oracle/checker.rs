//! The command-line checkers of the projects.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;
use tenon_testkit::Sandbox;
use tenon_testkit::program::tool;

use super::OracleServer;
use super::cargo_check;
use super::clang_tidy::ClangTidy;
use super::finding::{Counts, Finding};
use super::pyright_watch::PyrightWatch;
use crate::error::BenchError;

/// What a checker found in a whole tree.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) findings: Counts,
    /// Errors of one file that a server may report in another one as well, and need not.
    pub(crate) repeated: BTreeSet<Finding>,
}

impl From<Counts> for Checked {
    fn from(findings: Counts) -> Self {
        Self { findings, repeated: BTreeSet::new() }
    }
}

/// A checker on one tree. Some keep their state: a whole check of a large project takes a minute, one after a change less.
pub(crate) enum Checker {
    Pyright(PyrightWatch),
    Ty,
    TypeScript(Compiler),
    Cargo,
    Clang(ClangTidy),
}

/// Prints all errors of a TypeScript project for each line of input.
const TYPESCRIPT: &str = include_str!("typescript.cjs");

impl Checker {
    pub(crate) fn start(server: OracleServer, sandbox: &Sandbox) -> Result<Self, BenchError> {
        Ok(match server {
            OracleServer::Pyright => Self::Pyright(PyrightWatch::start(sandbox)?),
            OracleServer::Ty => Self::Ty,
            // The compiler of TypeScript 7 stops at syntax errors and old options; types and messages are those of 5.9.
            OracleServer::TypeScript | OracleServer::TypeScriptNative => {
                Self::TypeScript(Compiler::start(sandbox)?)
            }
            OracleServer::RustAnalyzer => Self::Cargo,
            OracleServer::Clangd => Self::Clang(ClangTidy::start(sandbox)?),
        })
    }

    /// All errors of the tree as it is now. Only `edited` may differ from the tree at the start.
    pub(crate) fn findings(
        &mut self,
        sandbox: &Sandbox,
        edited: Option<&str>,
    ) -> Result<Checked, BenchError> {
        match self {
            Self::Pyright(watch) => Ok(watch.findings(sandbox)?.into()),
            Self::Ty => Ok(ty(sandbox)?.into()),
            Self::TypeScript(compiler) => Ok(compiler.findings(sandbox.root())?.into()),
            Self::Cargo => Ok(cargo_check::findings(sandbox)?.into()),
            Self::Clang(tidy) => tidy.findings(sandbox, edited),
        }
    }
}

fn ty(sandbox: &Sandbox) -> Result<Counts, BenchError> {
    let output = sandbox.command(tool("ty")).args(["check", "--output-format", "concise"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| ty_line(sandbox.root(), line)).collect())
}

/// `a/b.py:3:5: error[unresolved-reference] Name …`
fn ty_line(root: &Path, line: &str) -> Option<Finding> {
    let (place, rest) = line.split_once(": error[")?;
    let (code, message) = rest.split_once("] ")?;
    Some(Finding::new(root, place.rsplitn(3, ':').nth(2)?, code, message))
}

/// TypeScript as a library, which keeps its program between checks.
pub(crate) struct Compiler {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Compiler {
    fn start(sandbox: &Sandbox) -> Result<Self, BenchError> {
        let compiler = tool("tsc").canonicalize().unwrap_or_default();
        let package = compiler.ancestors().nth(2).unwrap_or(&compiler).to_owned();
        let mut command = sandbox.command(tool("node"));
        command.arg("-e").arg(TYPESCRIPT).arg(package).arg(sandbox.root().join("tsconfig.json"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().expect("stdout was piped above");
        Ok(Self { child, lines: BufReader::new(stdout).lines() })
    }

    fn findings(&mut self, root: &Path) -> Result<Counts, BenchError> {
        let input = self.child.stdin.as_mut().expect("stdin was piped above");
        input.write_all(b"\n")?;
        let line = self.lines.next().ok_or_else(|| BenchError::new("the compiler ended"))??;
        let found: Vec<Value> = serde_json::from_str(&line)
            .map_err(|error| BenchError::new(format!("the compiler printed {line}: {error}")))?;
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let finding =
            |one: &Value| Finding::new(root, &text(one, "file"), &text(one, "code"), &text(one, "message"));
        Ok(found.iter().map(finding).collect())
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
}
