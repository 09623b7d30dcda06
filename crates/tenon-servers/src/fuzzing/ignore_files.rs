//! In an ignore file the last line that matches decides, and an invalid line affects no other.

use camino::Utf8Path;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::ignore_rules::add_lines;

/// More lines only take longer.
const MAX_LINES: usize = 12;

const PATHS: [(&str, bool); 8] = [
    ("/r/a", false),
    ("/r/a.py", false),
    ("/r/b/a.py", false),
    ("/r/b/c/a.py", false),
    ("/r/b", true),
    ("/r/b/c", true),
    ("/r/#a", false),
    ("/r/é [b]!", false),
];

fn rules<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Gitignore> {
    let file = Utf8Path::new("/r/.gitignore");
    let mut builder = GitignoreBuilder::new("/r");
    add_lines(&mut builder, file, lines);
    builder.build().ok()
}

fn verdict<T>(matched: &Match<T>) -> Option<bool> {
    match matched {
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
        Match::None => None,
    }
}

/// `data` is an ignore file.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let all = rules(lines.iter().copied()).expect("valid lines can be used together");
    let alone: Vec<Gitignore> = lines.iter().filter_map(|line| rules([*line])).collect();
    for (path, is_folder) in PATHS {
        let last = alone.iter().rev().find_map(|line| verdict(&line.matched(path, is_folder)));
        assert_eq!(verdict(&all.matched(path, is_folder)), last, "{path}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("ignore_files", super::check);
    }
}
