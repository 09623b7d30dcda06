//! Five tasks on regex-syntax. Without rust-analyzer, Serena has no symbols and Tenon answers by name.

use serde_json::json;

use super::oracle::Sources;
use super::task::{Task, call};

pub(super) fn tasks(sources: &Sources) -> Vec<Task> {
    let mut callers = sources.with("is_meta_character(");
    callers.retain(|file| file != "src/lib.rs");
    vec![
        Task::new(
            "where is `Hir::literal`, with its body",
            vec![call("find", json!({ "name": "Hir::literal" }))],
            Vec::new(),
        )
        .must(["src/hir/mod.rs", "pub fn literal"]),
        Task::new(
            "who uses `is_meta_character`",
            vec![call("references", json!({ "symbol": "is_meta_character" }))],
            Vec::new(),
        )
        .must(callers),
        Task::new(
            "overview of `src/hir/mod.rs`",
            vec![call("outline", json!({ "path": "src/hir/mod.rs" }))],
            Vec::new(),
        )
        .must(sources.top_level("src/hir/mod.rs", &["pub struct ", "pub enum "])),
        Task::new(
            "what implements `Visitor` of `src/hir/visitor.rs`",
            vec![call("hierarchy", json!({ "symbol": "hir/visitor.rs#Visitor", "direction": "subtypes" }))],
            Vec::new(),
        )
        .must(["src/hir/print.rs"]),
        Task::new(
            "search `unreachable!(`",
            vec![call("search", json!({ "pattern": "unreachable!(" }))],
            Vec::new(),
        )
        .must(sources.with("unreachable!(")),
    ]
}
