//! Files that are hostile, huge, or not files at all.

use tenon_index::{FileClass, ParseOutcome, SourceLanguage};

use crate::workspace::{Workspace, found};

fn outcome(workspace: &Workspace, path: &str) -> ParseOutcome {
    workspace.fresh().view().file(path).unwrap().outcome()
}

#[test]
fn large_file_is_listed_and_not_parsed() {
    let workspace = Workspace::new(&[]);
    workspace.write("large.py", "x = 1\n".repeat(50_000_000 / 6));
    assert_eq!(outcome(&workspace, "large.py"), ParseOutcome::TooLarge);
}

#[test]
fn minified_and_binary_files_are_not_parsed() {
    let workspace = Workspace::new(&[]);
    workspace.write("one_line.js", "function a(){return 1};".repeat(5000));
    workspace.write("b.min.js", "function b(){return 1}\n");
    workspace.write("binary.py", b"def a(): pass\n\0\0");
    let view = workspace.fresh().view();
    let file = view.file("one_line.js").unwrap();
    assert_eq!((file.outcome(), file.symbols().len()), (ParseOutcome::Minified, 0));
    assert_eq!(view.file("b.min.js").unwrap().class(), FileClass::Generated);
    assert_eq!(view.file("binary.py").unwrap().outcome(), ParseOutcome::Unreadable);
}

#[cfg(unix)]
#[test]
fn only_regular_files_inside_the_root_are_read() {
    use std::os::unix::fs::symlink;

    let workspace = Workspace::new(&[("real/a.py", "def inside(): pass\n")]);
    std::fs::create_dir(workspace.outside("other")).unwrap();
    std::fs::write(workspace.outside("other/secret.py"), "def secret(): pass\n").unwrap();
    symlink(workspace.outside("other/secret.py"), workspace.path("link.py")).unwrap();
    symlink(workspace.outside("other"), workspace.path("folder")).unwrap();
    symlink(workspace.path("real"), workspace.path("alias")).unwrap();
    symlink("/dev/zero", workspace.path("zero.py")).unwrap();
    nix::unistd::mkfifo(workspace.path("pipe.py").as_std_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::create_dir(workspace.path("dir.py")).unwrap();
    let mut files = workspace.files();
    files.extend(
        ["folder/secret.py", "alias/a.py", "absent.py", "dir.py", "../other/secret.py"]
            .map(|path| workspace.path(path)),
    );
    files.push(workspace.outside("other/secret.py"));
    let index = workspace.fresh();
    index.replace_files(&files);
    index.update_files(&files);
    let view = index.view();
    let paths: Vec<&str> = view.files().map(|file| file.path()).collect();
    assert_eq!(paths, ["alias/a.py", "real/a.py"]);
    assert_eq!(found(&view, "secret"), [""; 0]);
}

#[cfg(unix)]
#[test]
fn file_without_permission_is_unreadable_until_it_has_it() {
    use std::os::unix::fs::PermissionsExt;

    let workspace = Workspace::new(&[("a.py", "def a(): pass\n")]);
    let path = workspace.path("a.py");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser reads everything.
    let readable = std::fs::read(&path).is_ok();
    let index = workspace.fresh();
    let expected = if readable { ParseOutcome::Whole } else { ParseOutcome::Unreadable };
    assert_eq!(index.view().file("a.py").unwrap().outcome(), expected);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    index.update_files(&[path]);
    assert_eq!(found(&index.view(), "a"), ["a.py#a"]);
}

/// Opening and closing text of one level of nesting.
fn nested(language: SourceLanguage) -> (&'static str, &'static str, &'static str, &'static str) {
    match language.name() {
        "php" => ("a.php", "<?php $x = ", "(", ")"),
        "bash" => ("a.sh", "echo ", "$(", ")"),
        "c" => ("a.c", "int x = ", "(", ")"),
        "cpp" => ("a.cc", "int x = ", "(", ")"),
        "csharp" => ("a.cs", "class A { int x = ", "(", ")"),
        "go" => ("a.go", "package a\nvar x = ", "(", ")"),
        "java" => ("a.java", "class A { int x = ", "(", ")"),
        "javascript" => ("a.js", "const x = ", "[", "]"),
        "python" => ("a.py", "x = ", "(", ")"),
        "ruby" => ("a.rb", "X = ", "[", "]"),
        "rust" => ("a.rs", "const X: u8 = ", "(", ")"),
        "tsx" => ("a.tsx", "const x = ", "[", "]"),
        "typescript" => ("a.ts", "const x = ", "[", "]"),
        other => panic!("no nested text for {other}"),
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    const DEPTH: usize = 100_000;
    let workspace = Workspace::new(&[]);
    for language in SourceLanguage::all() {
        let (path, start, open, close) = nested(language);
        // In lines, so that it does not count as minified.
        let text = |sign: &str| format!("{}\n", sign.repeat(50)).repeat(DEPTH / 50);
        workspace.write(path, format!("{start}{}1{}", text(open), text(close)));
    }
    let view = workspace.fresh().view();
    assert_eq!(view.files().len(), SourceLanguage::all().count());
    for file in view.files() {
        assert!(file.symbols().len() < 100, "{}", file.path());
    }
}

#[test]
fn declarations_nested_without_end_take_bounded_work() {
    const DEPTH: usize = 20_000;
    let workspace = Workspace::new(&[]);
    for (path, open, close) in [
        ("a.js", "class A { m() {\n", "}}\n"),
        ("open.js", "function f() {\n", ""),
        ("a.cc", "namespace a { class A {\n", "};}\n"),
        ("a.rs", "mod a { impl A { fn f() {\n", "}}}\n"),
        ("a.rb", "class A\n", "end\n"),
    ] {
        workspace.write(path, format!("{}{}", open.repeat(DEPTH), close.repeat(DEPTH)));
    }
    let view = workspace.fresh().view();
    for file in view.files() {
        let deepest = file.symbols().map(|symbol| symbol.depth()).max();
        assert!(deepest <= Some(64), "{} {deepest:?}", file.path());
        assert!(file.symbols().len() < 300, "{}", file.path());
    }
}

#[test]
fn declarations_beyond_the_limit_are_cut_and_said() {
    let workspace = Workspace::new(&[]);
    workspace.write("a.py", "x = 1\n".repeat(70_000));
    let view = workspace.fresh().view();
    let file = view.file("a.py").unwrap();
    assert_eq!((file.outcome(), file.symbols().len()), (ParseOutcome::TooComplex, 65_536));
}

#[test]
fn many_declarations_beside_each_other_are_read() {
    let workspace = Workspace::new(&[]);
    let lines: String = (0..50_000).map(|number| format!("# {number}\nv{number} = {number}\n")).collect();
    workspace.write("wide.py", lines);
    workspace.write("line.js", format!("\n{}\n{}", "let a=1;".repeat(20_000), "// x\n".repeat(2000)));
    let view = workspace.fresh().view();
    assert_eq!(view.file("wide.py").unwrap().symbols().len(), 50_000);
    assert_eq!(view.file("line.js").unwrap().symbols().len(), 20_000);
}

#[test]
fn garbage_is_parsed_within_the_limit_of_steps() {
    let workspace = Workspace::new(&[]);
    // Fixed, and not valid in any language.
    let garbage: String = (0..20_000_u32)
        .map(|number| {
            ["{", "(", "def ", "\"", "class ", "]", "<<", "'", "\n", "::", "x"]
                [(number.wrapping_mul(2_654_435_761) >> 16) as usize % 11]
        })
        .collect();
    for language in SourceLanguage::all() {
        workspace.write(nested(language).0, &garbage);
    }
    let view = workspace.fresh().view();
    // Without `<?php` everything is text.
    let code = view.files().filter(|file| file.language().name() != "php");
    assert!(code.into_iter().all(|file| file.outcome() != ParseOutcome::Whole));
}

#[test]
fn odd_names_are_kept() {
    let workspace = Workspace::new(&[
        ("folder with spaces/ä ö.py", "def a(): pass\n"),
        ("b.js", "const o = { 'with space': () => 1, '': () => 2 };\n"),
    ]);
    let view = workspace.fresh().view();
    assert_eq!(found(&view, "with space"), ["b.js#o.with space"]);
    assert_eq!(found(&view, "ä ö.py#a"), ["folder with spaces/ä ö.py#a"]);
}

#[test]
fn positions_count_utf16_and_all_line_breaks() {
    let workspace = Workspace::new(&[("a.js", "var 😀a = 1;\r\nvar b;\rvar c; var 𝒳 = 1, d;\n")]);
    let view = workspace.fresh().view();
    let place = |name: &str| {
        let position = crate::workspace::find(&view, name).symbols[0].name_position();
        (position.line, position.column)
    };
    assert_eq!(place("b"), (2, 4));
    assert_eq!(place("c"), (3, 4));
    assert_eq!(place("d"), (3, 19));
}
