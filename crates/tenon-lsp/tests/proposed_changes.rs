//! Changes that are only tried, and edits that are only proposed, on real language servers.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tenon_contract::position::Position;
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::{ChangedText, Options, Orchestrator, TriedChange};
use tenon_servers::confinement::ConfinementSettings;
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::{Registry, ServerEntry, Switch};
use tenon_testkit::program;

const LONG: Duration = Duration::from_secs(120);

/// A project with some servers.
struct Project {
    folder: tempfile::TempDir,
    orchestrator: Orchestrator,
}

impl Project {
    async fn open(servers: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let entries: Vec<ServerEntry> = Registry::built_in()
            .entries()
            .iter()
            .filter(|entry| servers.contains(&entry.id.as_str()))
            .map(|entry| ServerEntry { enabled: Switch::On, ..entry.clone() })
            .collect();
        entries.iter().for_each(|entry| drop(program::tool(&entry.command)));
        let gate = RootGate::new([folder.path()]).unwrap();
        let root = gate.primary().unwrap().to_owned();
        let confinement = ConfinementSettings::new(None, root.join(".cache/tenon"));
        let finder = Finder::new(root, Trust::Trusted, SearchPath::new(&program::search_path()))
            .with_confinement(confinement);
        let mut options = Options::new(gate, Registry::of(entries), finder);
        options.timeouts.check = LONG;
        options.timeouts.first_check = LONG;
        Self { folder, orchestrator: Orchestrator::open(options).await }
    }

    fn path(&self, file: &str) -> WorkspacePath {
        self.orchestrator.gate().admit_path(file).unwrap()
    }

    fn call() -> CallContext {
        CallContext::within(Duration::from_secs(600))
    }

    async fn try_text(&self, file: &str, from: &str, to: &str) -> TriedChange {
        let before = fs::read_to_string(self.folder.path().join(file)).unwrap();
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after, "`{from}` is in {file}");
        let changed = ChangedText { path: self.path(file), before: Some(before), after: Some(after) };
        self.orchestrator.try_change(&[changed], LONG, &Self::call()).await.unwrap()
    }

    /// The files with diagnostics that a change adds.
    fn broken(&self, found: &TriedChange) -> Vec<String> {
        let files = found.check.changed.iter().chain(&found.check.others);
        let is_broken = |file: &&tenon_lsp::orchestrator::FileCheck| {
            let more = |one: &tenon_lsp::orchestrator::ServerCheck| match (&one.before, &one.after) {
                (Some(before), Some(after)) => after.len() > before.len(),
                _ => false,
            };
            file.servers.iter().any(more)
        };
        files.filter(is_broken).map(|file| self.orchestrator.gate().display(&file.path)).collect()
    }
}

const PYTHON: &[(&str, &str)] = &[
    ("shop/__init__.py", ""),
    ("shop/prices.py", "def total(count: int) -> int:\n    return count\n"),
    ("shop/cart.py", "from shop.prices import total\n\nsize: int = total(1)\n"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_of_pyright_is_about_a_tried_text() {
    let project = Arc::new(Project::open(&["pyright"], PYTHON).await);
    let done = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let askers: Vec<_> = (0..2)
        .map(|number| {
            let (project, done, asked) = (Arc::clone(&project), Arc::clone(&done), Arc::clone(&asked));
            tokio::spawn(async move {
                let (prices, cart) = (project.path("shop/prices.py"), project.path("shop/cart.py"));
                let servers = &project.orchestrator;
                while !done.load(Ordering::Relaxed) {
                    if number == 0 {
                        let hover =
                            servers.hover(&prices, Position::new(0, 4), &Project::call()).await.unwrap();
                        let text = format!("{:?}", hover.value);
                        assert!(text.contains("total(count: int)"), "{text}");
                    } else {
                        let checked = servers.check(&cart, None, &Project::call()).await.unwrap();
                        assert!(checked.is_complete() && checked.value.is_empty(), "{checked:?}");
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for number in 0..500 {
        let found = project.try_text("shop/prices.py", "count: int", "size: str").await;
        assert!(found.check.complete, "try {number}: {found:?}");
        assert_eq!(project.broken(&found), ["shop/prices.py", "shop/cart.py"], "try {number}");
    }
    done.store(true, Ordering::Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
    assert!(asked.load(Ordering::Relaxed) > 20, "{asked:?} questions");
    for file in ["shop/prices.py", "shop/cart.py"] {
        let checked = project.orchestrator.check(&project.path(file), None, &Project::call()).await.unwrap();
        assert!(checked.is_complete() && checked.value.is_empty(), "{checked:?}");
    }
}

#[tokio::test]
async fn typescript_tells_what_a_tried_text_breaks() {
    let files = [
        ("tsconfig.json", "{ \"compilerOptions\": { \"strict\": true, \"noEmit\": true, \"types\": [] } }"),
        ("a.ts", "export function total(count: number): number {\n  return count;\n}\n"),
        ("b.ts", "import { total } from \"./a\";\nexport const size: number = total(1);\n"),
    ];
    for server in ["typescript-language-server", "typescript-native"] {
        let project = Project::open(&[server], &files).await;
        let found = project.try_text("a.ts", "count: number", "size: string").await;
        assert!(found.check.complete, "{found:?}");
        assert_eq!(project.broken(&found), ["a.ts", "b.ts"]);
        let checked =
            project.orchestrator.check(&project.path("b.ts"), None, &Project::call()).await.unwrap();
        assert!(checked.is_complete() && checked.value.is_empty(), "{checked:?}");
    }
}

#[tokio::test]
async fn ruff_offers_fixes_of_diagnostics_with_their_data() {
    let project = Project::open(&["ruff"], &[("a.py", "import os\n\nprint(1)\n")]).await;
    let path = project.path("a.py");
    let offered = project.orchestrator.fixes(&path, None, &Project::call()).await.unwrap();
    let titles: Vec<&str> = offered.value.iter().map(|fix| fix.title.as_str()).collect();
    let fix = offered.value.iter().find(|fix| fix.title.contains("Remove unused import"));
    let fix = fix.unwrap_or_else(|| panic!("{titles:?}"));
    let proposal = project.orchestrator.fix(&path, fix, &Project::call()).await.unwrap();
    let edit = proposal.value.unwrap().unwrap();
    assert_eq!(edit.files[0].after, "\nprint(1)\n");
}

#[tokio::test]
async fn typescript_renames_in_all_files_and_offers_fixes_by_numeric_code() {
    renames_in_all_files_and_offers_fixes("typescript-language-server").await;
}

#[tokio::test]
async fn typescript_7_renames_in_all_files_and_offers_fixes_by_numeric_code() {
    renames_in_all_files_and_offers_fixes("typescript-native").await;
}

async fn renames_in_all_files_and_offers_fixes(server: &str) {
    let files = [
        ("tsconfig.json", "{ \"compilerOptions\": { \"strict\": true, \"noEmit\": true, \"types\": [] } }"),
        ("a.ts", "export function total(count: number): number {\n  return count;\n}\n"),
        (
            "b.ts",
            "import { total } from \"./a\";\nexport const size = { total };\nexport const other = total(1);\n",
        ),
        ("c.ts", "export const size = total(1);\n"),
    ];
    let project = Project::open(&[server], &files).await;
    let answer = project
        .orchestrator
        .rename(&project.path("a.ts"), Position::new(0, 17), "sum", &Project::call())
        .await;
    let edit = answer.unwrap().value.unwrap().unwrap();
    let after: Vec<&str> = edit.files.iter().map(|file| file.after.as_str()).collect();
    assert_eq!(
        after,
        [
            "export function sum(count: number): number {\n  return count;\n}\n",
            "import { sum } from \"./a\";\nexport const size = { total: sum };\nexport const other = sum(1);\n",
        ]
    );
    let path = project.path("c.ts");
    let offered = project.orchestrator.fixes(&path, None, &Project::call()).await.unwrap();
    let titles: Vec<&str> = offered.value.iter().map(|fix| fix.title.as_str()).collect();
    let fix = offered.value.iter().find(|fix| fix.title.contains("import from \"./a\""));
    let fix = fix.unwrap_or_else(|| panic!("{titles:?}"));
    let edit = project.orchestrator.fix(&path, fix, &Project::call()).await.unwrap().value.unwrap().unwrap();
    assert!(edit.files[0].after.starts_with("import { total } from \"./a\";\n"), "{edit:?}");
}

#[tokio::test]
async fn clangd_says_that_it_reads_other_files_from_disk() {
    let files = [
        ("compile_flags.txt", "-xc\n"),
        ("a.h", "int total(int count);\n"),
        (
            "a.c",
            "#include \"a.h\"\nint total(int count) { return count; }\nint other(void) { return total(1); }\n",
        ),
    ];
    let project = Project::open(&["clangd"], &files).await;
    let found = project.try_text("a.c", "return count", "return missing").await;
    assert_eq!(project.broken(&found), ["a.c"], "{found:?}");
    assert_eq!(found.disk_readers.len(), 1);
    let path = project.path("a.c");
    let answer =
        project.orchestrator.rename(&path, Position::new(1, 5), "sum", &Project::call()).await.unwrap();
    let edit = answer.value.clone().unwrap_or_else(|| panic!("{answer:?}")).unwrap();
    let names: Vec<String> =
        edit.files.iter().map(|file| project.orchestrator.gate().display(&file.path)).collect();
    assert_eq!(names, ["a.c", "a.h"], "{answer:?}");
}
