//! rust-analyzer in the engine: changes across crates, new files, and what is said without the standard library's source.
//!
//! The toolchain never has that source, since only some machines do. What `cargo check` finds does not depend on it.

use std::fs;

use tempfile::TempDir;
use tenon_contract::position::Position;
use tenon_lsp::model::{Doubt, GapReason, LspAnswer};
use tenon_lsp::orchestrator::ChangeCheck;
use tenon_testkit::rust_toolchain;

use crate::workspace::{NONE, Setup, Workspace, call, folder};

const PROJECT: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\nmembers = [\"price\", \"shop\"]\nresolver = \"3\"\n"),
    ("price/Cargo.toml", "[package]\nname = \"price\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    (
        "price/src/lib.rs",
        "mod sum;\n\npub use sum::total;\n\npub fn cheapest(one: u32, other: u32) -> u32 {\n    if one < other { one } else { other }\n}\n",
    ),
    (
        "price/src/sum.rs",
        "use crate::cheapest;\n\npub fn total(count: u32) -> u32 {\n    cheapest(count, 1)\n}\n",
    ),
    (
        "shop/Cargo.toml",
        "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nprice = { path = \"../price\" }\n",
    ),
    ("shop/src/lib.rs", "mod bill;\n\npub use bill::bill;\n"),
    (
        "shop/src/bill.rs",
        "use price::{cheapest, total};\n\npub fn bill() -> Vec<u32> {\n    vec![cheapest(1, 2), total(3)]\n}\n",
    ),
];

struct RustWorkspace {
    inner: Workspace,
    /// Removed after the server has ended.
    _toolchain: TempDir,
}

impl std::ops::Deref for RustWorkspace {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.inner
    }
}

async fn open(files: &[(&str, &str)]) -> RustWorkspace {
    let toolchain = tempfile::tempdir().unwrap();
    let path = rust_toolchain::without_source(toolchain.path());
    let setup = Setup { path, ..Setup::with_servers(&["rust-analyzer"]) };
    RustWorkspace { inner: Workspace::open_in(folder(files), setup).await, _toolchain: toolchain }
}

/// The other files that have more diagnostics than before, or fewer.
fn others(workspace: &Workspace, check: &ChangeCheck, wanted: fn(usize, usize) -> bool) -> Vec<String> {
    let gate = workspace.orchestrator.gate();
    let files = check.others.iter().filter(|file| {
        file.servers.iter().any(|server| match (&server.before, &server.after) {
            (Some(before), Some(after)) => wanted(before.len(), after.len()),
            _ => false,
        })
    });
    files.map(|file| gate.display(&file.path)).collect()
}

fn more(before: usize, after: usize) -> bool {
    after > before
}

fn fewer(before: usize, after: usize) -> bool {
    after < before
}

fn is_marked<T>(answer: &LspAnswer<T>) -> bool {
    answer.gaps.iter().any(|gap| gap.why == GapReason::Unproven(Doubt::LibrarySource))
}

#[tokio::test(flavor = "multi_thread")]
async fn change_breaks_and_fixes_dependents_in_other_files_and_crates() {
    let workspace = open(PROJECT).await;
    assert_eq!(workspace.check("shop/src/bill.rs").await, NONE);
    let renamed = workspace.change("price/src/lib.rs", "pub fn cheapest(", "pub fn lowest(").await;
    assert!(renamed.complete, "{renamed:?}");
    assert_eq!(
        others(&workspace, &renamed, more),
        ["price/src/sum.rs"],
        "cargo stops at the first crate: {renamed:#?}"
    );
    let fixed = workspace.change("price/src/lib.rs", "pub fn lowest(", "pub fn cheapest(").await;
    assert!(fixed.complete, "{fixed:?}");
    assert_eq!(others(&workspace, &fixed, fewer), ["price/src/sum.rs"]);
    let wider = workspace.change("price/src/sum.rs", "count: u32)", "count: u32, more: u32)").await;
    assert!(wider.complete, "{wider:?}");
    assert_eq!(others(&workspace, &wider, more), ["shop/src/bill.rs"], "a call in a macro of another crate");
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_follow_every_write() {
    let workspace = open(PROJECT).await;
    let file = "shop/src/bill.rs";
    let right = fs::read_to_string(workspace.folder.path().join(file)).unwrap();
    for round in 0..3 {
        workspace.put(file, &right.replace("total(3)", "\"three\""));
        let found = workspace.check(file).await;
        assert!(found.iter().any(|one| one.contains("mismatched types")), "{round}: {found:?}");
        workspace.put(file, &right);
        assert_eq!(workspace.check(file).await, NONE, "{round}");
    }
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn module_is_found_as_soon_as_it_exists() {
    let workspace = open(PROJECT).await;
    let missing = workspace.change("shop/src/lib.rs", "mod bill;", "mod bill;\nmod tax;").await;
    let found = missing.changed[0].servers[0].after.clone().unwrap();
    assert!(found.iter().any(|one| one.message.contains("file not found for module `tax`")), "{found:?}");
    let created =
        workspace.create("shop/src/tax.rs", "pub fn duty() -> u32 {\n    price::total(2)\n}\n").await;
    assert!(created.complete, "{created:?}");
    assert_eq!(workspace.check("shop/src/lib.rs").await, NONE);
    assert_eq!(workspace.check("shop/src/tax.rs").await.len(), 1, "`duty` is never used");
    assert_eq!(workspace.symbols("duty").await, ["shop/src/tax.rs"]);
    workspace.remove("shop/src/tax.rs");
    let found = workspace.check("shop/src/lib.rs").await;
    assert!(found.iter().any(|one| one.contains("file not found for module `tax`")), "{found:?}");
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_marked_without_the_librarys_source() {
    let workspace = open(PROJECT).await;
    let path = workspace.orchestrator.gate().admit_path("price/src/sum.rs").unwrap();
    let at = Position::new(2, 7);
    let found = workspace.orchestrator.references(&path, at, true, &call()).await.unwrap();
    assert!(is_marked(&found) && !found.is_complete(), "{found:?}");
    let renamed = workspace.orchestrator.rename(&path, at, "sum", &call()).await.unwrap();
    assert!(is_marked(&renamed) && !renamed.is_complete(), "such a rename is refused: {renamed:?}");
    let symbols = workspace.orchestrator.workspace_symbols("cheapest", &call()).await;
    assert!(is_marked(&symbols), "{symbols:?}");
    workspace.orchestrator.shutdown().await;
}

/// Without the source, rust-analyzer takes `None` for a variable and warns that it should be in lower case.
#[tokio::test(flavor = "multi_thread")]
async fn only_findings_of_cargo_check_count_without_the_librarys_source() {
    let text = "pub fn first(found: Option<u32>) -> u32 {\n    match found {\n        None => 0,\n        Some(one) => one,\n    }\n}\n";
    let files = [
        ("Cargo.toml", "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("src/lib.rs", text),
    ];
    let workspace = open(&files).await;
    assert_eq!(workspace.check("src/lib.rs").await, NONE);
    let path = workspace.orchestrator.gate().admit_path("src/lib.rs").unwrap();
    let wrong = text.replace("=> 0", "=> \"\"");
    let unsaved = workspace.orchestrator.check(&path, Some(wrong.clone()), &call()).await.unwrap();
    let refused = |why: &GapReason| matches!(why, GapReason::Refused(why) if why.contains("only saved text"));
    assert!(unsaved.gaps.iter().any(|gap| refused(&gap.why)), "unknown is not clean: {unsaved:?}");
    assert!(!unsaved.is_complete());
    workspace.put("src/lib.rs", &wrong);
    let found = workspace.orchestrator.check(&path, None, &call()).await.unwrap();
    assert!(found.is_complete(), "{found:?}");
    let sources: Vec<_> = found.value.iter().map(|one| one.source.as_deref()).collect();
    assert!(!sources.is_empty() && sources.iter().all(|source| *source == Some("rustc")), "{found:?}");
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn project_that_cannot_be_loaded_is_an_error() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"one\"\nversion = \n"),
        ("src/lib.rs", "pub fn first() -> u32 {\n    second()\n}\n\nfn second() -> u32 {\n    2\n}\n"),
    ];
    let workspace = open(&files).await;
    let path = workspace.orchestrator.gate().admit_path("src/lib.rs").unwrap();
    let found = workspace.orchestrator.references(&path, Position::new(4, 3), true, &call()).await.unwrap();
    let why: Vec<String> = found.gaps.iter().map(|gap| format!("{:?}", gap.why)).collect();
    assert!(!found.is_complete() && why.iter().any(|why| why.contains("Failed to load")), "{found:?}");
    let checked = workspace.check_answer("src/lib.rs").await;
    assert!(!checked.is_complete(), "unknown is not clean: {checked:?}");
    workspace.orchestrator.shutdown().await;
}
