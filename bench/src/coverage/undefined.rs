//! Occurrences of a word without a definition, asked again of the bare language server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tenon_testkit::direct_server::{DirectServer, FilePosition};

use super::project::Project;
use super::word_search::Occurrence;
use crate::error::BenchError;
use crate::output::log;

/// An occurrence for which Tenon has no definition.
pub(super) struct Undefined {
    pub(super) occurrence: Occurrence,
    /// The symbol's references, which it is not among.
    pub(super) references: BTreeSet<String>,
    /// Why, if Tenon answered with an error.
    pub(super) error: Option<String>,
}

/// What the bare server answers for these occurrences.
#[derive(Default)]
pub(super) struct BareAnswers {
    /// It knows none either, by the text around the word.
    pub(super) none: BTreeMap<&'static str, usize>,
    /// Only outside the workspace.
    pub(super) outside: usize,
    /// Another symbol.
    pub(super) other_symbol: usize,
    /// The queried symbol: a reference that is missing.
    pub(super) this_symbol: usize,
    /// Where the server cannot be asked directly.
    pub(super) not_queried: usize,
}

impl BareAnswers {
    pub(super) fn none_total(&self) -> usize {
        self.none.values().sum()
    }
}

/// Asks the bare server, file by file: at most one is open at a time, apart from the first.
pub(super) fn ask(project: &Project, undefined: &[Undefined]) -> Result<BareAnswers, BenchError> {
    let mut answers = BareAnswers::default();
    let Some((server, first)) = project.bare().zip(undefined.first()) else {
        answers.not_queried = undefined.len();
        return Ok(answers);
    };
    let mut by_file: BTreeMap<&str, Vec<&Undefined>> = BTreeMap::new();
    for one in undefined {
        by_file.entry(&one.occurrence.file).or_default().push(one);
    }
    let mut bare = DirectServer::start(server, &project.sandbox)?;
    let first = first.occurrence.file.as_str();
    bare.open(first)?;
    bare.wait_until_ready()?;
    for (file, list) in by_file {
        if file != first {
            bare.open(file)?;
        }
        let text = project.sandbox.tree().read(file);
        for one in list {
            let Occurrence { line, character, .. } = &one.occurrence;
            let position = FilePosition { file, line: *line as usize, character: *character as usize };
            let found = bare.request("definition", position)?;
            let targets = targets(project, &found);
            let place = one.occurrence.place();
            if targets.is_empty() {
                let around = around(&text, &one.occurrence);
                log(&format!("no definition in the bare server either, {around}: {place}"));
                *answers.none.entry(around).or_default() += 1;
                continue;
            }
            let (what, count) = match () {
                () if targets.iter().any(|(place, _)| one.references.contains(place)) => {
                    ("this symbol", &mut answers.this_symbol)
                }
                () if targets.iter().all(|(_, is_inside)| !is_inside) => ("outside", &mut answers.outside),
                () => ("another symbol", &mut answers.other_symbol),
            };
            *count += 1;
            log(&format!("only the bare server: {place}: {what}, {targets:?}, Tenon: {:?}", one.error));
        }
        if file != first {
            bare.close(file)?;
        }
    }
    Ok(answers)
}

/// The places of a definition, and whether they are inside the workspace.
fn targets(project: &Project, found: &Value) -> Vec<(String, bool)> {
    let all = match found {
        Value::Array(list) => list.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    };
    let place = |one: &Value| {
        let uri = one["targetUri"].as_str().or(one["uri"].as_str())?;
        let start = one["targetSelectionRange"].get("start").or(one["range"].get("start"))?;
        let file = project.file(uri);
        Some((format!("{file}:{}:{}", start["line"], start["character"]), file != uri))
    };
    all.iter().filter_map(place).collect()
}

/// The kind of text around a word.
fn around(text: &str, occurrence: &Occurrence) -> &'static str {
    let line = text.lines().nth(occurrence.line as usize).unwrap_or_default();
    let units: Vec<u16> = line.encode_utf16().collect();
    let at = (occurrence.character as usize).min(units.len());
    let before = String::from_utf16_lossy(&units[..at]);
    let after = String::from_utf16_lossy(&units[at..]);
    let after = after.trim_start_matches(super::word_search::is_part).trim_start();
    let (before, trimmed) = (before.trim_end(), before.trim_start());
    match () {
        () if before.ends_with('.') || before.ends_with("->") => "a member after a dot",
        () if after.starts_with(['"', '\'']) => "a keyword before text",
        () if trimmed.starts_with("import ")
            || trimmed.starts_with("from ")
            || line.starts_with("#include") =>
        {
            "an import"
        }
        () if line.trim_start().starts_with('#') => "a preprocessor line",
        () if after.starts_with('=') && !after.starts_with("==") => "before `=`",
        () if after.starts_with(':') && !after.starts_with("::") => "before `:`",
        () => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_around_a_word_is_classified() {
        let classified = |line: &str| {
            let character = line.find("word").unwrap() as u64;
            let occurrence = Occurrence { file: "a.py".to_owned(), line: 0, character, is_code: true };
            around(line, &occurrence)
        };
        assert_eq!(classified("value.word()"), "a member after a dot");
        assert_eq!(classified("from a import word"), "an import");
        assert_eq!(classified("import { a } word './a';"), "a keyword before text");
        assert_eq!(classified("call(word=1)"), "before `=`");
        assert_eq!(classified("if word == 1:"), "other");
        assert_eq!(classified("{ word: 1 }"), "before `:`");
        assert_eq!(classified("#define word 1"), "a preprocessor line");
    }
}
