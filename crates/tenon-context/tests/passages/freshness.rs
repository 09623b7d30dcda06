//! Answers are about the files as they are, whatever happened before.

use std::fs;

use camino::Utf8PathBuf;
use proptest::prelude::*;
use tenon_context::FindRequest;

use crate::fixture::Workspace;

#[test]
fn edit_that_was_not_reported_is_visible_in_the_next_answer() {
    let workspace = Workspace::new(&[("a.md", "# Old\n\napples\n"), ("b.md", "# B\n\npears\n")]);
    let index = workspace.index();
    assert_eq!(workspace.places(&index, "apples"), ["a.md:1-3"]);
    workspace.write("a.md", b"# New\n\nsome text before\n\napples and plums\n");
    let answer = workspace.ask(&index, "apples");
    assert!(answer.passages[0].text.contains("apples and plums"), "{}", answer.text());
    fs::remove_file(workspace.root().join("a.md")).unwrap();
    assert_eq!(workspace.places(&index, "apples"), Vec::<String>::new());
}

#[test]
fn reported_changes_add_and_remove_passages() {
    let workspace = Workspace::new(&[("a.md", "# A\n\napples\n"), ("folder/b.md", "# B\n\npears\n")]);
    let index = workspace.index();
    let new = workspace.write("c.py", b"def count_apples():\n    pass\n");
    index.update_files(&[new], &workspace.syntax);
    assert_eq!(workspace.places(&index, "count apples").first().map(String::as_str), Some("c.py:1-2"));
    fs::remove_dir_all(workspace.root().join("folder")).unwrap();
    index.update_files(&[workspace.root().join("folder")], &workspace.syntax);
    assert_eq!(workspace.ask(&index, "pears").matching, 0);
}

#[test]
fn file_with_another_time_and_the_same_content_is_not_cut_again() {
    let workspace = Workspace::new(&[("a.md", "# A\n\napples\n")]);
    let index = workspace.index();
    let (path, before) = (workspace.root().join("a.md"), index.totals());
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
    index.update_files(&[path], &workspace.syntax);
    // A new version would be kept beside the old one for a while.
    assert_eq!(index.totals(), before);
    assert_eq!(workspace.places(&index, "apples"), ["a.md:1-3"]);
}

#[test]
fn stopped_update_keeps_what_was_read() {
    let workspace = Workspace::new(&[("a.md", "# A\n\napples\n")]);
    let index = workspace.index();
    assert_eq!(index.update_progress(), (1, 1));
    index.stop_updates();
    let new = workspace.write("b.md", b"# B\n\napples\n");
    index.update_files(&[new], &workspace.syntax);
    assert_eq!(index.update_progress(), (0, 1));
    assert_eq!(workspace.places(&index, "apples"), ["a.md:1-3"]);
}

#[test]
fn stored_index_answers_like_a_new_one() {
    let workspace = Workspace::new(&[
        ("a.md", "# A\n\napples\n"),
        ("b.rst", "B\n===\n\npears\n"),
        ("c.py", "def f():\n    pass\n"),
    ]);
    let elsewhere = tempfile::tempdir().unwrap();
    let store = Utf8PathBuf::from_path_buf(elsewhere.path().join("store")).unwrap();
    let index = workspace.stored_index(&store);
    index.replace_files(&workspace.files(), &workspace.syntax);
    index.save().unwrap();
    workspace.write("b.rst", b"B\n===\n\npears and apples\n");
    let reopened = workspace.stored_index(&store);
    reopened.replace_files(&workspace.files(), &workspace.syntax);
    assert_eq!(workspace.ask(&reopened, "apples"), workspace.ask(&workspace.index(), "apples"));

    // A damaged store counts as missing.
    let whole = fs::read(&store).unwrap();
    for at in [0, 20, 60, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&store, bytes).unwrap();
        let damaged = workspace.stored_index(&store);
        damaged.replace_files(&workspace.files(), &workspace.syntax);
        assert_eq!(workspace.ask(&damaged, "apples"), workspace.ask(&reopened, "apples"), "{at}");
    }
    assert!(workspace.folder().is_dir());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_sequence_of_updates_equals_a_new_index(
        steps in proptest::collection::vec((0_usize..6, proptest::option::of("(apples|pears|plums|figs| |\n|# ){1,12}")), 1..20)
    ) {
        let workspace = Workspace::new(&[("0.md", "# apples\n")]);
        let index = workspace.index();
        for (file, text) in &steps {
            let name = format!("{file}.md");
            let path = match text {
                Some(text) => workspace.write(&name, text.as_bytes()),
                None => {
                    let path = workspace.root().join(&name);
                    let _ = fs::remove_file(&path);
                    path
                }
            };
            index.update_files(&[path], &workspace.syntax);
        }
        let request = FindRequest { query: "apples pears figs".to_owned(), ..FindRequest::default() };
        let (updated, new) = (workspace.ask_request(&index, &request), workspace.ask_request(&workspace.index(), &request));
        prop_assert_eq!(updated.text(), new.text());
    }
}
