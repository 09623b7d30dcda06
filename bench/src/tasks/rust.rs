//! Six tasks on regex-syntax.

use serde_json::json;

use super::oracle::Sources;
use super::task::{Task, call};

pub(super) fn tasks(sources: &Sources) -> Vec<Task> {
    let find = |name: &str| call("find_symbol", json!({ "name_path_pattern": name }));
    let at = |name: &str, file: &str| json!({ "name_path": name, "relative_path": file });
    let mut callers = sources.with("is_meta_character(");
    callers.retain(|file| file != "src/lib.rs");
    let edited = "src/utf8.rs";
    let (sound, broken) = ("const MAX_UTF8_BYTES: usize = 4;", "const MAX_UTF8_BYTES: usize = \"four\";");
    vec![
        Task::new(
            "where is `Hir::literal`, with its body",
            vec![call("find", json!({ "name": "Hir::literal" }))],
            vec![call(
                "find_symbol",
                json!({ "name_path_pattern": "impl Hir/literal", "include_body": true }),
            )],
        )
        .must(["src/hir/mod.rs", "pub fn literal"]),
        Task::new(
            "who uses `is_meta_character`",
            vec![call("references", json!({ "symbol": "is_meta_character" }))],
            vec![
                find("is_meta_character"),
                call("find_referencing_symbols", at("is_meta_character", "src/lib.rs")),
            ],
        )
        .must(callers),
        Task::new(
            "overview of `src/hir/mod.rs`",
            vec![call("outline", json!({ "path": "src/hir/mod.rs" }))],
            vec![call("get_symbols_overview", json!({ "relative_path": "src/hir/mod.rs" }))],
        )
        .must(sources.top_level("src/hir/mod.rs", &["pub struct ", "pub enum "])),
        Task::new(
            "what implements `Visitor` of `src/hir/visitor.rs`",
            vec![call("hierarchy", json!({ "symbol": "hir/visitor.rs#Visitor", "direction": "subtypes" }))],
            vec![call("find_implementations", at("Visitor", "src/hir/visitor.rs"))],
        )
        .must(["src/hir/print.rs"]),
        Task::errors_after_edit("errors after an edit of `src/utf8.rs`", edited, sound, broken)
            .must(["expected usize"]),
        Task::new(
            "search `unreachable!(`",
            vec![call("search", json!({ "pattern": "unreachable!(" }))],
            vec![call("search_for_pattern", json!({ "substring_pattern": r"unreachable!\(" }))],
        )
        .must(sources.with("unreachable!(")),
    ]
}
