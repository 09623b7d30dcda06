//! What pairs and what does not, on small texts, on random ones and on large ones.

use proptest::prelude::*;
use tenon_contract::position::{Position, Range};
use tenon_lsp::model::FixData;

use super::*;

fn diagnostic(start: (u32, u32), end: (u32, u32), message: &str) -> Diagnostic {
    let range = Range::new(Position::new(start.0, start.1), Position::new(end.0, end.1));
    let (severity, message, fix_data) = (Some(1), message.to_owned(), FixData::default());
    Diagnostic { range, severity, code: None, source: None, message, fix_data }
}

/// One diagnostic for each occurrence of a word.
fn lint(text: &str, word: &str) -> Vec<Diagnostic> {
    let found = text.lines().enumerate().flat_map(|(line, content)| {
        let line = u32::try_from(line).unwrap();
        let (mut bytes, mut units) = (0, 0);
        content.match_indices(word).map(move |(at, word)| {
            units += u32::try_from(content[bytes..at].encode_utf16().count()).unwrap();
            bytes = at;
            diagnostic((line, units), (line, units + u32::try_from(word.len()).unwrap()), word)
        })
    });
    found.collect()
}

/// Start lines of new, of gone and the number of unchanged diagnostics.
fn compare(before: &str, after: &str, word: &str) -> (Vec<u32>, Vec<u32>, usize) {
    let (old, new) = (lint(before, word), lint(after, word));
    let delta = Delta::new(&old, &new, &TextMap::new(before, after));
    let lines = |list: &[&Diagnostic]| list.iter().map(|one| one.range.start.line).collect();
    (lines(&delta.new), lines(&delta.gone), delta.unchanged.len())
}

#[test]
fn shifted_diagnostics_are_unchanged() {
    assert_eq!(compare("bad\nx\nbad", "new\nbad\nx\nbad", "bad"), (vec![], vec![], 2));
    assert_eq!(compare("x\ny\nbad", "bad", "bad"), (vec![], vec![], 1));
    assert_eq!(compare("a bad\n", "abc bad\n", "bad"), (vec![], vec![], 1));
    assert_eq!(compare("bad", "x😀 bad", "bad"), (vec![], vec![], 1));
    assert_eq!(compare("a\nbad\nb\n", "a\r\nbad\r\nb\r\n", "bad"), (vec![], vec![], 1));
}

#[test]
fn only_the_added_one_of_equal_diagnostics_is_new() {
    assert_eq!(compare("a\nbad\nb\nbad\nc", "a\nbad\nbad\nb\nbad\nc", "bad"), (vec![2], vec![], 2));
    assert_eq!(compare("bad x\ny", "bad x bad\ny", "bad"), (vec![0], vec![], 1));
    assert_eq!(compare("a\nbad\nb\nbad\nc", "a\nb\nbad\nc", "bad"), (vec![], vec![1], 1));
    assert_eq!(compare("good\nb", "bad\nb", "bad"), (vec![0], vec![], 0));
    assert_eq!(compare("", "bad\nbad\n", "bad"), (vec![0, 1], vec![], 0));
}

#[test]
fn equal_diagnostics_in_replaced_lines_pair_in_order() {
    assert_eq!(compare("k\ncall(bad)\nk", "k\nother(\n  1,\n  bad,\n)\nk", "bad"), (vec![], vec![], 1));
    // The same changed lines come before others.
    let (before, after) = ("a1\nk\nl\nbad 1\n", "a2 bad\nk\nl\n2 bad\n");
    assert_eq!(compare(before, after, "bad"), (vec![0], vec![], 1));
    // Moved code.
    assert_eq!(compare("f\nbad\n}\nk\nl\nm\n", "k\nl\nm\nf\nbad\n}\n", "bad"), (vec![], vec![], 1));
}

#[test]
fn source_code_and_message_distinguish_diagnostics() {
    let one = diagnostic((0, 0), (0, 1), "m");
    let variants = [
        Diagnostic { code: Some("c".to_owned()), ..one.clone() },
        Diagnostic { source: Some("s".to_owned()), ..one.clone() },
        Diagnostic { message: "n".to_owned(), ..one.clone() },
    ];
    for other in variants {
        let (before, after) = (std::slice::from_ref(&one), std::slice::from_ref(&other));
        let delta = Delta::new(before, after, &TextMap::default());
        assert_eq!((delta.new, delta.gone, delta.unchanged), (vec![&other], vec![&one], vec![]));
    }
}

#[test]
fn range_that_grows_from_the_same_start_is_unchanged() {
    let (old, new) = ([diagnostic((0, 0), (2, 0), "m")], [diagnostic((0, 0), (3, 0), "m")]);
    let delta = Delta::new(&old, &new, &TextMap::new("a\nb\nc", "a\nb\nx\nc"));
    assert_eq!((delta.new.len(), delta.gone.len(), delta.unchanged.len()), (0, 0, 1));
}

#[test]
fn line_numbers_in_messages_are_mapped() {
    let message = |line: u32| format!("redefinition of `x` from line {line}: {line} on line {line}");
    let old =
        [diagnostic((3, 0), (3, 1), &message(2)), diagnostic((3, 0), (3, 1), "line by line 99999999999")];
    let new =
        [diagnostic((4, 0), (4, 1), &message(3)), diagnostic((4, 0), (4, 1), "line by line 99999999999")];
    let map = TextMap::new("a\nx\nb\nx", "new\na\nx\nb\nx");
    // The bare number is text.
    assert_eq!(Delta::new(&old, &new, &map).new, [&new[0]]);
    let old = [diagnostic((3, 0), (3, 1), "from line 2")];
    assert_eq!(Delta::new(&old, &[diagnostic((4, 0), (4, 1), "from line 3")], &map).unchanged.len(), 1);
    assert_eq!(Delta::new(&old, &[diagnostic((4, 0), (4, 1), "from line 2")], &map).unchanged.len(), 0);
}

/// 50,000 diagnostics in many lines, in equal lines and in one line.
#[test]
fn large_files_are_compared_in_full() {
    let numbered: String = (0..50_000).map(|n| format!("{n:>10} bad\n")).collect();
    let equal = "           bad\n".repeat(50_000);
    let flat = numbered.replace('\n', " ");
    for before in [numbered, equal, flat] {
        let middle = before.floor_char_boundary(before.len() / 2);
        let after = format!("start {}more bad\n{} bad", &before[..middle], &before[middle..]);
        let (new, gone, unchanged) = compare(&before, &after, "bad");
        assert_eq!((new.len(), gone.len(), unchanged), (2, 0, 50_000));
        let rewritten: String = before.chars().map(|one| if one == ' ' { '_' } else { one }).collect();
        let (new, gone, unchanged) = compare(&before, &rewritten, "bad");
        assert_eq!((new.len(), gone.len(), unchanged), (0, 0, 50_000));
    }
}

fn text() -> impl Strategy<Value = String> {
    let line =
        prop::sample::select(vec!["", "a", "b", "bad", "a bad", "bad bad", "😀 bad b", "    b", "bada"]);
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

/// Any ranges, also ones that are not in the text.
fn anything() -> impl Strategy<Value = Vec<Diagnostic>> {
    let one = (0..14u32, 0..9u32, 0..3u32, 0..4u32, prop::sample::select(vec!["m", "n", "from line 3"]));
    let one = one.prop_map(|(line, column, lines, columns, message)| {
        diagnostic((line, column), (line + lines, column + columns), message)
    });
    prop::collection::vec(one, 0..10)
}

proptest! {
    #[test]
    fn identical_texts_leave_everything_unchanged(text in text(), found in anything()) {
        let delta = Delta::new(&found, &found, &TextMap::new(&text, &text));
        prop_assert_eq!((delta.new.len(), delta.gone.len(), delta.unchanged.len()), (0, 0, found.len()));
    }

    #[test]
    fn lines_inserted_above_shift_everything(text in text(), count in 1..5u32, found in anything()) {
        let after = "above\n".repeat(count as usize) + &text;
        let moved = |at: Position| Position::new(at.line + count, at.character);
        let shift = |one: &Diagnostic| {
            let message = one.message.replace("line 3", &format!("line {}", 3 + count));
            Diagnostic { range: Range::new(moved(one.range.start), moved(one.range.end)), message, ..one.clone() }
        };
        let shifted: Vec<Diagnostic> = found.iter().map(shift).collect();
        let delta = Delta::new(&found, &shifted, &TextMap::new(&text, &after));
        prop_assert_eq!((delta.new.len(), delta.gone.len(), delta.unchanged.len()), (0, 0, found.len()));
    }

    #[test]
    fn reverting_mirrors_the_delta(one in text(), two in text(), before in anything(), after in anything()) {
        let there = Delta::new(&before, &after, &TextMap::new(&one, &two));
        let back = Delta::new(&after, &before, &TextMap::new(&two, &one));
        let places = |list: &[&Diagnostic]| list.iter().map(|one| (one.range, one.message.clone())).collect::<Vec<_>>();
        prop_assert_eq!(there.unchanged.len(), back.unchanged.len());
        prop_assert_eq!(places(&there.new), places(&back.gone));
        prop_assert_eq!(places(&there.gone), places(&back.new));
    }

    #[test]
    fn counts_add_up(one in text(), two in text(), before in anything(), after in anything()) {
        let delta = Delta::new(&before, &after, &TextMap::new(&one, &two));
        prop_assert_eq!(after.len(), delta.new.len() + delta.unchanged.len());
        prop_assert_eq!(before.len(), delta.gone.len() + delta.unchanged.len());
    }

    #[test]
    fn edit_elsewhere_reports_exactly_the_added_words(head in text(), tail in text(), inserted in "[xy]{1,3}( bad)?") {
        let (before, after) = (format!("{head}\nmark\n{tail}"), format!("{head}\n{inserted}\n{tail}"));
        let (new, gone, _) = compare(&before, &after, "bad");
        prop_assert_eq!((new.len(), gone.len()), (usize::from(inserted.ends_with("bad")), 0));
    }
}
