//! `clang-tidy` as a plain compiler, on every source and header.
//!
//! It is clang without other tools, and package registries have it in clangd's version. Only the errors count, which are
//! the compiler's. After an edit it runs again on the files that include the edited one.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Component, Path, PathBuf};

use tenon_testkit::Sandbox;

use super::checker::Checked;
use super::finding::Finding;
use crate::error::BenchError;
use crate::source_sample;

const EXTENSIONS: [&str; 4] = ["cc", "cpp", "h", "hpp"];

/// Errors of each file's own run, by position.
type Errors = BTreeSet<(Finding, usize, usize)>;

pub(crate) struct ClangTidy {
    program: PathBuf,
    /// By the file that was compiled.
    original: BTreeMap<String, Errors>,
    /// By file, the files that it includes by the names in the text.
    includes: BTreeMap<String, BTreeSet<String>>,
}

/// `clang-tidy` in `PATH`.
pub(super) fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut programs = env::split_paths(&path).map(|folder| folder.join("clang-tidy"));
    programs.find(|program| program.is_file())
}

impl ClangTidy {
    /// Checks every file of the tree.
    pub(super) fn start(sandbox: &Sandbox) -> Result<Self, BenchError> {
        let program = program().ok_or_else(|| BenchError::new("clang-tidy is not in `PATH`"))?;
        let files: Vec<String> =
            EXTENSIONS.iter().flat_map(|extension| source_sample::files(sandbox, extension)).collect();
        let includes = files.iter().map(|file| (file.clone(), included(sandbox, file, &files))).collect();
        let mut tidy = Self { program, original: BTreeMap::new(), includes };
        for file in files {
            let errors = tidy.compile(sandbox, &file)?;
            tidy.original.insert(file, errors);
        }
        Ok(tidy)
    }

    /// The errors of the tree in which only `edited` differs from the tree at the start.
    pub(super) fn findings(&self, sandbox: &Sandbox, edited: Option<&str>) -> Result<Checked, BenchError> {
        let mut all = self.original.clone();
        for file in edited.map(|edited| self.users(edited)).unwrap_or_default() {
            let errors = self.compile(sandbox, &file)?;
            all.insert(file, errors);
        }
        let repeated = all.iter().flat_map(|(compiled, errors)| {
            let elsewhere = errors.iter().filter(move |(finding, _, _)| finding.file != *compiled);
            elsewhere.map(|(finding, _, _)| finding.in_included_file(compiled))
        });
        let repeated = repeated.collect();
        let errors: Errors = all.into_values().flatten().collect();
        Ok(Checked { findings: errors.into_iter().map(|(finding, _, _)| finding).collect(), repeated })
    }

    /// The file and all that include it, directly or not.
    fn users(&self, file: &str) -> BTreeSet<String> {
        let mut users = BTreeSet::from([file.to_owned()]);
        loop {
            let is_user = |(_, included): &(&String, &BTreeSet<String>)| !included.is_disjoint(&users);
            let more: BTreeSet<String> =
                self.includes.iter().filter(is_user).map(|(user, _)| user.clone()).collect();
            let before = users.len();
            users.extend(more);
            if users.len() == before {
                return users;
            }
        }
    }

    fn compile(&self, sandbox: &Sandbox, file: &str) -> Result<Errors, BenchError> {
        let mut command = sandbox.command(&self.program);
        // One check must be chosen; it reports warnings, which are ignored.
        command.args(["--quiet", "--checks=-*,readability-duplicate-include", "--extra-arg=-ferror-limit=0"]);
        let output = command.arg("-p").arg(sandbox.root()).arg(file).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| error(sandbox.root(), line)).collect())
    }
}

/// The files of the project that a file includes: all whose path ends with the name in quotes.
fn included(sandbox: &Sandbox, file: &str, files: &[String]) -> BTreeSet<String> {
    let text = sandbox.tree().read(file);
    let names = text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        rest.trim().trim_start_matches(['"', '<']).split(['"', '>']).next()
    });
    let names: Vec<&str> = names.collect();
    let is_named = |candidate: &&String| {
        names.iter().any(|name| {
            let rest = candidate.strip_suffix(name.trim_start_matches("../"));
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        })
    };
    files.iter().filter(is_named).cloned().collect()
}

/// `/r/a.cc:3:5: error: message [clang-diagnostic-error]`, with its position.
fn error(root: &Path, line: &str) -> Option<(Finding, usize, usize)> {
    let (place, message) = line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "))?;
    let message = message.rsplit_once(" [").map_or(message, |(message, _)| message);
    let mut parts = place.rsplitn(3, ':');
    let (character, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    // A header found through `-I.` has a path with `./`.
    let file: PathBuf =
        Path::new(parts.next()?).components().filter(|part| *part != Component::CurDir).collect();
    let file = file.strip_prefix(root).unwrap_or(&file).to_str()?;
    Some((Finding::of_clang(root, file, message), line, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_from_lines() {
        let line = "/r/db/a.cc:3:5: error: use of undeclared identifier 'x[0]' [clang-diagnostic-error]";
        let expected = Finding::of_clang(Path::new("/r"), "db/a.cc", "Use of undeclared identifier 'x[0]'");
        assert_eq!(error(Path::new("/r"), line), Some((expected.clone(), 3, 5)));
        assert_eq!(error(Path::new("/r"), &line.replace("/r/", "./")), Some((expected, 3, 5)));
        assert_eq!(error(Path::new("/r"), "/r/db/a.cc:3:5: note: declared here"), None);
    }

    #[test]
    fn users_include_a_file_directly_or_not() {
        let sandbox = Sandbox::with_tree(
            "//- include/a.h\nint a;\n//- b.h\n#include \"a.h\"\n//- c.cc\n#  include <b.h>\n//- d.cc\n#include <aa.h>\n",
        );
        let files = ["include/a.h", "b.h", "c.cc", "d.cc"].map(str::to_owned);
        let includes = files.iter().map(|file| (file.clone(), included(&sandbox, file, &files))).collect();
        let tidy = ClangTidy { program: PathBuf::new(), original: BTreeMap::new(), includes };
        assert_eq!(tidy.users("include/a.h").into_iter().collect::<Vec<_>>(), ["b.h", "c.cc", "include/a.h"]);
        assert_eq!(tidy.users("d.cc").into_iter().collect::<Vec<_>>(), ["d.cc"]);
    }
}
