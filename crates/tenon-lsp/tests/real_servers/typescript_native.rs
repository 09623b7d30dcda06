//! TypeScript 7 in the engine: which projects it serves, what it does not support, its limits, and how it ends.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use tempfile::TempDir;
use tenon_lsp::model::GapReason;
use tenon_servers::find::Trust;
use tenon_testkit::{PATIENCE, program};

use crate::workspace::{Setup, Workspace, call, folder, put};

/// A workspace with all built-in servers.
async fn open(folder: TempDir, trust: Trust) -> Workspace {
    Workspace::open_in(folder, Setup { trust, ..Setup::default() }).await
}

/// The TypeScript server that checks a file.
async fn server_of(workspace: &Workspace, file: &str) -> String {
    let answer = workspace.check_answer(file).await;
    assert!(answer.is_complete(), "{answer:?}");
    let servers: Vec<String> = answer.servers.iter().map(ToString::to_string).collect();
    servers.into_iter().find(|id| id.starts_with("typescript")).unwrap()
}

/// Installs the TypeScript 5 of the test tools in a project.
fn install_typescript_5(folder: &TempDir, project: &str) {
    let modules = folder.path().join(project).join("node_modules");
    fs::create_dir_all(&modules).unwrap();
    symlink(program::node_modules().join("typescript"), modules.join("typescript")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_trusted_project_has_the_server_for_its_typescript() {
    let files = folder(&[
        (".gitignore", "node_modules/\n"),
        ("api/package-lock.json", "{}"),
        ("api/tsconfig.json", "{}"),
        ("api/a.ts", "export const a: number = 1;\n"),
        ("web/package-lock.json", "{}"),
        ("web/tsconfig.json", "{}"),
        ("web/a.ts", "export const a: number = 1;\n"),
        ("web/b.ts", "export const b: number = '';\n"),
    ]);
    install_typescript_5(&files, "web");
    let workspace = open(files, Trust::Trusted).await;
    assert_eq!(server_of(&workspace, "api/a.ts").await, "typescript-native");
    assert_eq!(server_of(&workspace, "web/a.ts").await, "typescript-language-server");
    assert_eq!(workspace.check_answer("web/b.ts").await.value.len(), 1);
    let symbols = workspace.orchestrator.workspace_symbols("a", &call()).await;
    let mut found: Vec<String> = symbols.value.iter().map(|one| one.path.as_str().to_owned()).collect();
    found.retain(|path| path.ends_with("/a.ts"));
    assert_eq!(found.len(), 2, "both projects are searched: {symbols:?}");

    // The project's version decides again when it changes.
    fs::remove_file(workspace.folder.path().join("web/node_modules/typescript")).unwrap();
    put(&workspace.folder, "web/c.ts", "export const c = 1;\n");
    assert_eq!(server_of(&workspace, "web/c.ts").await, "typescript-native");
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn untrusted_project_with_an_older_typescript_has_the_native_server() {
    let files = folder(&[("tsconfig.json", "{}"), ("a.ts", "export const a: number = '';\n")]);
    install_typescript_5(&files, "");
    let workspace = open(files, Trust::Untrusted).await;
    assert_eq!(server_of(&workspace, "a.ts").await, "typescript-native");
    assert_eq!(workspace.check_answer("a.ts").await.value.len(), 1, "it works in the sandbox");
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn option_that_version_7_removed_is_named() {
    let files = folder(&[
        ("tsconfig.json", r#"{ "extends": "./base.json", "compilerOptions": { "baseUrl": "." } }"#),
        ("base.json", r#"{ "compilerOptions": { "target": "ES5", "strict": true } }"#),
        ("lib/a.ts", "export const a = 1;\n"),
        ("b.ts", "import { a } from 'lib/a';\nexport const b: number = a;\n"),
    ]);
    let workspace = open(files, Trust::Untrusted).await;
    let found = workspace.check_answer("b.ts").await;
    assert!(found.value[0].contains("Cannot find module 'lib/a'"), "{found:?}");
    let note = "`typescript-native` ignores `baseUrl`, `target: es5` in `tsconfig.json`; \
                for an older version set `servers.typescript-language-server.enabled = true`";
    assert_eq!(workspace.orchestrator.configuration_notes().await, [note]);
    // What the server publishes about the configuration some time later does not count.
    let path = workspace.orchestrator.gate().admit_path("b.ts").unwrap();
    let known = workspace.orchestrator.diagnostics().await;
    assert_eq!(known.keys().collect::<Vec<_>>(), [&path]);

    // An edit that the option explains, and one that it does not.
    let changed = workspace.change("b.ts", "'lib/a'", "'lib/c'").await;
    assert_eq!(changed.notes, [note]);
    let changed = workspace.change("b.ts", "b: number = a", "b: number = ''").await;
    assert_eq!(changed.notes, [""; 0]);
    put(&workspace.folder, "b.ts", "import { a } from 'lib/a';\nexport const b: number = a;\n");

    put(&workspace.folder, "tsconfig.json", r#"{ "compilerOptions": { "paths": { "*": ["./*"] } } }"#);
    assert_eq!(workspace.check_answer("b.ts").await.value, [""; 0]);
    assert_eq!(workspace.orchestrator.configuration_notes().await, [""; 0]);
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workspace_symbols_at_the_limit_are_not_complete() {
    let files = folder(&[("tsconfig.json", "{}"), ("b.ts", "export const other = 1;\n")]);
    let lines: Vec<String> = (0..300).map(|number| format!("export const item{number} = 1;\n")).collect();
    put(&files, "a.ts", &lines.concat());
    let workspace = open(files, Trust::Untrusted).await;
    let all = workspace.orchestrator.workspace_symbols("item", &call()).await;
    let gaps: Vec<&GapReason> = all.gaps.iter().map(|gap| &gap.why).collect();
    assert_eq!((all.value.len(), gaps), (256, vec![&GapReason::Limit]));
    assert!(!all.is_complete());
    let one = workspace.orchestrator.workspace_symbols("other", &call()).await;
    assert!(one.is_complete(), "{one:?}");
    assert_eq!(one.value.len(), 1);
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_exits_when_it_is_asked_to() {
    let files = folder(&[("a.ts", "export const a: number = '';\n")]);
    // Longer than the test: without its own exit, the shutdown would not return.
    let workspace = {
        let polite = Duration::from_secs(24 * 60 * 60);
        Workspace::open_in(files, Setup { trust: Trust::Untrusted, polite, ..Setup::default() }).await
    };
    assert_eq!(server_of(&workspace, "a.ts").await, "typescript-native");
    let ended = tokio::time::timeout(PATIENCE, workspace.orchestrator.shutdown()).await;
    assert!(ended.is_ok(), "the server ignores `exit` while its input is open");
}
