//! What is read again, and when.

use camino::Utf8Path;

use crate::workspace::{Workspace, dump, find, found};

#[test]
fn changed_new_and_deleted_files_are_updated() {
    let workspace = Workspace::new(&[("a.py", "def old(): pass\n"), ("b.py", "def gone(): pass\n")]);
    let index = workspace.fresh();
    workspace.write("a.py", "def new(): pass\n");
    workspace.write("c.py", "def added(): pass\n");
    std::fs::remove_file(workspace.path("b.py")).unwrap();
    index.update_files(&["a.py", "b.py", "c.py"].map(|path| workspace.path(path)));
    let view = index.view();
    assert_eq!(found(&view, "new"), ["a.py#new"]);
    assert_eq!(found(&view, "added"), ["c.py#added"]);
    assert_eq!(find(&view, "old").total + find(&view, "gone").total, 0);
    assert_eq!(dump(&view), dump(&workspace.fresh().view()));
}

#[test]
fn deleted_folder_removes_the_files_below() {
    let workspace = Workspace::new(&[("a/b/c.py", "x = 1\n"), ("a/d.py", ""), ("ab.py", "")]);
    let index = workspace.fresh();
    std::fs::remove_dir_all(workspace.path("a")).unwrap();
    index.update_files(&[workspace.path("a")]);
    assert_eq!(index.view().files().map(|file| file.path().to_owned()).collect::<Vec<_>>(), ["ab.py"]);
}

#[test]
fn files_that_are_not_listed_vanish() {
    let workspace = Workspace::new(&[("a.py", ""), ("b.py", "")]);
    let index = workspace.fresh();
    index.replace_files(&[workspace.path("b.py")]);
    assert_eq!(index.view().files().map(|file| file.path().to_owned()).collect::<Vec<_>>(), ["b.py"]);
}

#[test]
fn moved_file_is_not_parsed_again() {
    let workspace = Workspace::new(&[("a.py", "def moved(): pass\n")]);
    let index = workspace.fresh();
    std::fs::rename(workspace.path("a.py"), workspace.path("b.py")).unwrap();
    index.replace_files(&workspace.files());
    assert_eq!(index.parsed_files(), 1);
    assert_eq!(found(&index.view(), "moved"), ["b.py#moved"]);
}

#[test]
fn same_content_with_another_time_is_not_parsed_again() {
    let workspace = Workspace::new(&[("a.py", "def same(): pass\n")]);
    let index = workspace.fresh();
    workspace.age("a.py");
    index.replace_files(&workspace.files());
    assert_eq!(index.parsed_files(), 1);
}

#[test]
fn change_within_the_resolution_of_time_stamps_is_seen() {
    let workspace = Workspace::new(&[("a.py", "def one(): pass\n")]);
    let index = workspace.fresh();
    let modified = std::fs::metadata(workspace.path("a.py")).unwrap().modified().unwrap();
    workspace.write("a.py", "def two(): pass\n");
    std::fs::File::options()
        .write(true)
        .open(workspace.path("a.py"))
        .unwrap()
        .set_modified(modified)
        .unwrap();
    index.update_files(&[workspace.path("a.py")]);
    assert_eq!(find(&index.view(), "two").total, 1);
}

#[test]
fn view_stays_what_it_is_during_updates() {
    let workspace = Workspace::new(&[("a.py", "def old(): pass\n")]);
    let index = workspace.fresh();
    let view = index.view();
    workspace.write("a.py", "def new(): pass\n");
    index.update_files(&[workspace.path("a.py")]);
    assert_eq!(find(&view, "old").total, 1);
    assert_eq!(find(&index.view(), "old").total, 0);
}

#[test]
fn file_that_changes_while_it_is_read_ends_in_its_last_content() {
    let workspace = Workspace::new(&[("a.py", "")]);
    let index = workspace.fresh();
    let texts = ["def short(): pass\n".to_owned(), "def longer_name(): pass\n".repeat(5000)];
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..100 {
                workspace.write("a.py", &texts[round % 2]);
            }
        });
        while !writer.is_finished() {
            index.update_files(&[workspace.path("a.py")]);
        }
    });
    index.update_files(&[workspace.path("a.py")]);
    assert_eq!(dump(&index.view()), dump(&workspace.fresh().view()));
    assert_eq!(find(&index.view(), "longer_name").total, 5000);
}

#[test]
fn text_that_is_not_on_disk_is_parsed_like_a_file() {
    let workspace = Workspace::new(&[("pkg/a.py", "class A:\n    def b(self): pass\n")]);
    let index = workspace.fresh();
    let file = index.parse(&workspace.path("pkg/a.py"), "class A:\n    def b(self): pass\n").unwrap();
    let paths: Vec<String> = file.symbols().map(|symbol| symbol.name_path()).collect();
    assert_eq!(paths, ["A", "A.b"]);
    assert_eq!(file.path(), "pkg/a.py");
    assert_eq!(file.content_hash(), index.view().file("pkg/a.py").unwrap().content_hash());
    assert!(index.parse(Utf8Path::new("notes.txt"), "text").is_none());
}
