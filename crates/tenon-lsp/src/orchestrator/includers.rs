//! Files that include a header: they contain its text, so a change in the structure may affect every one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::name_search::NamedFiles;
use super::touched::Hunk;
use super::{Inner, MAX_TEXT_BYTES, Orchestrator};
use crate::call_context::CallContext;
use crate::client::Client;
use crate::model::Symbol;

impl Orchestrator {
    /// The files that include a file, also through others. Found by file names, so some may include another file of that name.
    pub(super) async fn includers(
        &self,
        client: &Arc<Client>,
        file: &WorkspacePath,
        call: &CallContext,
    ) -> NamedFiles {
        let (inner, client, file, until) =
            (Arc::clone(&self.0), Arc::clone(client), file.clone(), call.deadline);
        spawn_blocking(move || inner.includers(&client, &file, until)).await.unwrap_or_default()
    }
}

impl Inner {
    fn includers(&self, client: &Client, file: &WorkspacePath, until: Instant) -> NamedFiles {
        let mut found = NamedFiles::default();
        let mut by_included: BTreeMap<String, Vec<WorkspacePath>> = BTreeMap::new();
        for other in self.files() {
            if client.entry().language_id(&other).is_none() || other == file.as_path() {
                continue;
            }
            if Instant::now() >= until {
                found.not_searched += 1;
                continue;
            }
            let Ok(path) = self.gate.admit_path(&other) else {
                continue;
            };
            let text = self.gate.read_to_string(&path, MAX_TEXT_BYTES).unwrap_or_default();
            for name in included_names(&text) {
                by_included.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
        let mut names: Vec<String> = file.as_path().file_name().into_iter().map(str::to_owned).collect();
        let mut files = BTreeSet::new();
        while let Some(name) = names.pop() {
            for path in by_included.remove(&name).into_iter().flatten() {
                names.extend(path.as_path().file_name().map(str::to_owned));
                files.insert(path);
            }
        }
        found.files = files.into_iter().collect();
        found
    }
}

/// The file names in `#include` lines.
fn included_names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let directive = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = directive.strip_prefix("include").or_else(|| directive.strip_prefix("import"))?;
        let quoted = rest.trim_start().strip_prefix(['"', '<'])?;
        let path = quoted.split(['"', '>']).next()?;
        Some(path.rsplit(['/', '\\']).next().unwrap_or(path))
    })
}

/// Whether a change may affect files that do not mention what it touches: preprocessor lines, lines outside of any declaration,
/// and brackets that no longer match. A namespace is not a declaration here: all others are in it.
pub(super) fn changes_structure(
    before: &LineIndex,
    after: &LineIndex,
    hunks: &[Hunk],
    symbols: &[Symbol],
) -> bool {
    let is_space = |symbol: &Symbol| matches!(symbol.kind.name(), "namespace" | "module" | "package");
    let declared = symbols.iter().filter(|symbol| !is_space(symbol));
    let declared: Vec<Range<u32>> =
        declared.map(|symbol| symbol.range.start.line..symbol.range.end.line + 1).collect();
    is_structural(before, after, hunks, &declared)
}

fn is_structural(before: &LineIndex, after: &LineIndex, hunks: &[Hunk], declared: &[Range<u32>]) -> bool {
    let old: Vec<&str> =
        hunks.iter().flat_map(|hunk| hunk.old.clone()).filter_map(|line| before.line(line)).collect();
    let new: Vec<&str> =
        hunks.iter().flat_map(|hunk| hunk.new.clone()).filter_map(|line| after.line(line)).collect();
    let is_directive = |line: &&str| line.trim_start().starts_with('#') || line.trim_end().ends_with('\\');
    let is_outside = |line: u32| {
        let is_blank = before.line(line).is_none_or(|text| text.trim().is_empty());
        !is_blank && !declared.iter().any(|lines| lines.contains(&line))
    };
    old.iter().chain(&new).any(is_directive)
        || brackets(&old) != brackets(&new)
        || hunks.iter().flat_map(|hunk| hunk.old.clone()).any(is_outside)
}

/// How many brackets open and close, and how often other marks that pair occur.
fn brackets(lines: &[&str]) -> [usize; 9] {
    let count = |mark| lines.iter().map(|line| line.matches(mark).count()).sum();
    ["{", "}", "(", ")", "[", "]", "\"", "/*", "*/"].map(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_included_files_are_found() {
        let text = "#include \"db/dbformat.h\"\n  #  include <vector>\n// #include \"no.h\"\n#import <Foo/Bar.h>\n#define X\n";
        assert_eq!(included_names(text).collect::<Vec<_>>(), ["dbformat.h", "vector", "Bar.h"]);
    }

    #[test]
    fn only_a_change_of_the_structure_concerns_all_includers() {
        let structure = |before: &str, after: &str| {
            let (before, after) = (LineIndex::new(before), LineIndex::new(after));
            let hunks = super::super::touched::hunks(&before, &after);
            is_structural(&before, &after, &hunks, std::slice::from_ref(&(0..4)))
        };
        assert!(!structure("int f() {\n  return 1;\n}\n", "int f() {\n  return 2;\n}\n"));
        assert!(structure("int f() {\n  return 1;\n}\n", "int f() {\n  return 1;\n"));
        assert!(structure("#include \"a.h\"\nint f();\n", "int f();\n"));
        assert!(structure("int f();\n\n\n\n\nusing namespace a;\n", "int f();\n"));
    }
}
