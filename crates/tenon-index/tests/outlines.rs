//! The declarations of the cases of every language: `languages/NAME/cases/CASE` against `CASE.outline`.
//!
//! `TENON_UPDATE=1` rewrites the outlines.

use std::fmt::Write;
use std::path::Path;

use camino::Utf8Path;
use tenon_contract::clock::Clock;
use tenon_index::{IndexOptions, IndexedFile, SyntaxIndex};

datatest_stable::harness! {
    { test = outline, root = "languages", pattern = r"/cases/[^/]+\.outline$" },
}

fn outline(path: &Path) -> datatest_stable::Result<()> {
    let source = path.with_extension("");
    let folder = source.parent().and_then(Utf8Path::from_path).expect("a case is in a folder");
    let index = SyntaxIndex::open(IndexOptions {
        root: folder.canonicalize_utf8()?,
        store: None,
        clock: Clock::system(),
    });
    let source = source.canonicalize()?.try_into()?;
    index.replace_files(&[source]);
    let view = index.view();
    let file = view.files().next().expect("the case is a source file");
    let given = text(file);
    if std::env::var_os("TENON_UPDATE").is_some() {
        std::fs::write(path, &given)?;
        return Ok(());
    }
    let expected = std::fs::read_to_string(path)?;
    if given != expected {
        return Err(format!("outline differs; got:\n{given}").into());
    }
    Ok(())
}

/// One line for each declaration, and below it what it has besides.
fn text(file: &IndexedFile) -> String {
    let mut text =
        format!("{} {} {:?}, {} lines\n", file.language(), file.class(), file.outcome(), file.line_count());
    for symbol in file.symbols() {
        let indent = "  ".repeat(symbol.depth());
        let range = symbol.range();
        let name = symbol.name_position();
        let body = symbol.body().map_or(String::new(), |body| format!(" body {}-{}", body.start, body.end));
        let test = if symbol.is_test() { " test" } else { "" };
        writeln!(
            text,
            "{indent}{} {} {}-{} name {}:{}{body}{test}",
            symbol.kind(),
            symbol.name_path(),
            range.first_line,
            range.last_line,
            name.line,
            name.column,
        )
        .expect("writes to a string");
        writeln!(text, "{indent}    | {}", symbol.signature()).expect("writes to a string");
        for base in symbol.bases() {
            let position = base.position;
            writeln!(text, "{indent}    : {} {}:{}", base.name, position.line, position.column)
                .expect("writes to a string");
        }
        if let Some(doc) = symbol.doc() {
            writeln!(text, "{indent}    # {doc}").expect("writes to a string");
        }
    }
    text
}
