//! A unified diff with one hunk, to show a change of a settings file.

use std::fmt::Write as _;

/// Unchanged lines shown before and after the change.
const CONTEXT: usize = 3;

/// Renders the change of a file. `None` means that the file does not exist.
pub(crate) fn render(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let name = |there: bool| if there { path } else { "/dev/null" };
    let mut text = format!("--- {}\n+++ {}\n", name(before.is_some()), name(after.is_some()));
    let old: Vec<&str> = before.unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = after.unwrap_or_default().split_inclusive('\n').collect();
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same;
    let same_end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(CONTEXT);
    let shown = |lines: &[&str]| (lines.len() - same_end + CONTEXT).min(lines.len());
    let (old_end, new_end) = (shown(&old), shown(&new));
    let range = |end: usize| format!("{},{}", if end > start { start + 1 } else { start }, end - start);
    let _ = writeln!(text, "@@ -{} +{} @@", range(old_end), range(new_end));
    let mut line = |mark: char, line: &str| {
        let _ = writeln!(text, "{mark}{}", line.trim_end_matches(['\n', '\r']));
        if !line.ends_with('\n') {
            text.push_str("\\ No newline at end of file\n");
        }
    };
    old[start..same].iter().for_each(|one| line(' ', one));
    old[same..old.len() - same_end].iter().for_each(|one| line('-', one));
    new[same..new.len() - same_end].iter().for_each(|one| line('+', one));
    new[new.len() - same_end..new_end].iter().for_each(|one| line(' ', one));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_created_and_removed_files_render_as_unified_diffs() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\nnew\ne\nf\ng\nh\n";
        insta::assert_snapshot!(render("x.json", Some(before), Some(after)), @"
        --- x.json
        +++ x.json
        @@ -2,6 +2,7 @@
         b
         c
         d
        +new
         e
         f
         g
        ");
        insta::assert_snapshot!(render("x.json", Some("{}"), Some("{\n}\n")), @r"
        --- x.json
        +++ x.json
        @@ -1,1 +1,2 @@
        -{}
        \ No newline at end of file
        +{
        +}
        ");
        insta::assert_snapshot!(render("x.json", None, Some("{}\n")), @"
        --- /dev/null
        +++ x.json
        @@ -0,0 +1,1 @@
        +{}
        ");
        insta::assert_snapshot!(render("x.json", Some("{}\n"), None), @"
        --- x.json
        +++ /dev/null
        @@ -1,1 +0,0 @@
        -{}
        ");
    }
}
