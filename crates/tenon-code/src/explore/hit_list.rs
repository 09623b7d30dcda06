//! Places by file: the list that `references` and `search` answer with, and its coarser views.

use std::collections::BTreeMap;

use super::ExploreError;
use super::answer::{Answer, Continuation, Line, View};
use crate::summary::count;

/// A line of code in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    /// Relative to the root.
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: u32,
    /// The innermost declaration around it.
    pub(super) within: Option<String>,
    pub(super) code: String,
}

impl Hit {
    fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }

    fn text(&self) -> String {
        match &self.within {
            Some(within) => format!("  {} in {within}: {}", self.line, self.code),
            None => format!("  {}: {}", self.line, self.code),
        }
    }
}

/// Hits in the order of path and line.
pub(super) struct HitList {
    /// What was found, with counts.
    pub(super) heading: String,
    pub(super) hits: Vec<Hit>,
    /// The arguments that narrow the question.
    pub(super) narrow: &'static str,
}

impl HitList {
    /// The answer; with a cursor, the hits after it.
    pub(super) fn answer(mut self, cursor: Option<&str>) -> Result<Answer, ExploreError> {
        self.hits.sort();
        self.hits.dedup_by(|one, other| (one.line, &one.path) == (other.line, &other.path));
        let Some(cursor) = cursor else {
            return Ok(Answer::new(self.views()).continued_by(Continuation::Cursor));
        };
        let (path, line) = place(cursor)?;
        self.hits.retain(|hit| (hit.path.as_str(), hit.line) > (path, line));
        Ok(Answer::new(vec![View::new(self.lines())]).continued_by(Continuation::Cursor))
    }

    fn views(&self) -> Vec<View> {
        let mut views = vec![View::new(self.lines())];
        let Some(first) = self.hits.first() else {
            return views;
        };
        let hint = format!("more: the lines of code; use {}, or cursor \"{}:0\"", self.narrow, first.path);
        let by_file = |text: &dyn Fn(&str, &[&Hit]) -> String| {
            let mut lines = vec![Line::heading(&self.heading)];
            for (path, hits) in self.by_file() {
                lines.push(Line::heading(text(path, &hits)));
            }
            View::new(lines).with_hint(&hint)
        };
        views.push(by_file(&|path, hits| {
            let numbers: Vec<String> = hits.iter().map(|hit| hit.line.to_string()).collect();
            format!("{path}: {}", numbers.join(" "))
        }));
        views.push(by_file(&|path, hits| format!("{path} {}", hits.len())));
        let mut lines = vec![Line::heading(&self.heading)];
        for (folder, (files, hits)) in self.by_folder() {
            lines.push(Line::heading(format!("{folder} {hits} in {}", count(files, "file"))));
        }
        views.push(View::new(lines).with_hint(&hint));
        views
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = vec![Line::heading(&self.heading)];
        for (path, hits) in self.by_file() {
            lines.push(Line::heading(path));
            lines.extend(hits.into_iter().map(|hit| Line::item(hit.text(), hit.place())));
        }
        lines
    }

    fn by_file(&self) -> BTreeMap<&str, Vec<&Hit>> {
        let mut files: BTreeMap<&str, Vec<&Hit>> = BTreeMap::new();
        for hit in &self.hits {
            files.entry(&hit.path).or_default().push(hit);
        }
        files
    }

    /// The number of files and hits by the first two folders.
    fn by_folder(&self) -> BTreeMap<String, (usize, usize)> {
        let mut folders: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (path, hits) in self.by_file() {
            let parts: Vec<&str> = path.split('/').collect();
            let depth = parts.len().saturating_sub(1).min(2);
            let folder = if depth == 0 { ".".to_owned() } else { parts[..depth].join("/") };
            let count = folders.entry(folder).or_default();
            *count = (count.0 + 1, count.1 + hits.len());
        }
        folders
    }
}

/// The path and line of a cursor.
pub(super) fn place(cursor: &str) -> Result<(&str, u32), ExploreError> {
    let invalid = || ExploreError::Cursor { cursor: cursor.to_owned() };
    let (path, line) = cursor.rsplit_once(':').ok_or_else(invalid)?;
    Ok((path, line.parse().map_err(|_| invalid())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(files: usize, each: u32) -> HitList {
        let hits = (0..files).flat_map(|file| {
            (1..=each).map(move |line| Hit {
                path: format!("src/pkg{}/file{file:03}.py", file % 7),
                line,
                within: Some("Thing.method".to_owned()),
                code: "return other.call(argument)".to_owned(),
            })
        });
        HitList { heading: "call: many".to_owned(), hits: hits.collect(), narrow: "path" }
    }

    #[test]
    fn views_get_coarser_until_they_fit() {
        let first_item = |files, each| {
            let text = list(files, each).answer(None).unwrap().fit(8_000);
            assert!(text.len() <= 8_000);
            text.lines().nth(1).unwrap().to_owned()
        };
        assert_eq!(first_item(2, 3), "src/pkg0/file000.py");
        assert_eq!(
            first_item(30, 20),
            "src/pkg0/file000.py: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"
        );
        assert_eq!(first_item(150, 90), "src/pkg0/file000.py 90");
        assert_eq!(first_item(900, 9), "src/pkg0 1161 in 129 files");
    }

    #[test]
    fn pages_by_cursor_have_every_hit_once() {
        let mut seen = Vec::new();
        let mut cursor = Some("src/pkg0/file000.py:0".to_owned());
        while let Some(after) = cursor {
            let text = list(30, 20).answer(Some(&after)).unwrap().fit(2_000);
            assert!(text.len() <= 2_000);
            let mut file = String::new();
            for line in text.lines().skip(1) {
                match line.strip_prefix("  ") {
                    Some(hit) => seen.push(format!("{file}:{}", hit.split(' ').next().unwrap())),
                    None => file = line.to_owned(),
                }
            }
            let more = text.lines().last().and_then(|line| line.split_once("cursor \""));
            cursor = more.map(|(_, place)| place.trim_end_matches('"').to_owned());
        }
        assert_eq!(seen.len(), 600);
        let mut sorted = seen.clone();
        sorted.dedup();
        assert_eq!(sorted, seen);
        assert!(matches!(list(1, 1).answer(Some("x")), Err(ExploreError::Cursor { .. })));
    }
}
