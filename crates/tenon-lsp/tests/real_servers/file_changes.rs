//! Real language servers: a file that another program creates, changes, renames or deletes is seen by the next question.

use std::collections::BTreeSet;
use std::fs;

use tenon_contract::position::Position;
use tenon_testkit::file_changes::{FileChanges, FileQuestion, Language};
use tenon_testkit::program;

use crate::workspace::{NONE, Setup, Workspace, call};

#[tokio::test(flavor = "multi_thread")]
async fn typescript_finds_a_module_as_soon_as_it_exists() {
    module_is_found_as_soon_as_it_exists("typescript-language-server").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_7_finds_a_module_as_soon_as_it_exists() {
    module_is_found_as_soon_as_it_exists("typescript-native").await;
}

async fn module_is_found_as_soon_as_it_exists(server: &str) {
    let config = r#"{ "compilerOptions": { "strict": true, "module": "esnext", "moduleResolution": "bundler" }, "include": ["src"] }"#;
    let missing =
        |message: &[String]| message.iter().filter(|one| one.contains("Cannot find module")).count();
    let workspace =
        Workspace::open(&[server], &[("tsconfig.json", config), ("src/main.ts", "export const one = 1;\n")])
            .await;
    assert_eq!(workspace.check("src/main.ts").await, NONE);
    for (number, module) in ["n0", "lib1/n1", "a2/b/n2", "n3/index"].into_iter().enumerate() {
        let (user, file) = (format!("src/u{number}.ts"), format!("src/{module}.ts"));
        workspace.put(
            &user,
            &format!("import {{ f }} from './{module}';\nexport const v{number}: number = f();\n"),
        );
        assert_eq!(missing(&workspace.check(&user).await), 1, "{module}");
        let text = "export function f(): number { return 1; }\n";
        workspace.put(&file, text);
        // Opened at once, before any watcher of the server's own can have seen it.
        if number % 2 == 0 {
            assert_eq!(workspace.check(&file).await, NONE);
        }
        assert_eq!(workspace.check(&user).await, NONE, "{module} was created");
        for _ in 0..2 {
            workspace.remove(&file);
            assert_eq!(missing(&workspace.check(&user).await), 1, "{module} was deleted");
            workspace.put(&file, text);
            assert_eq!(workspace.check(&user).await, NONE, "{module} came back");
        }
        workspace.put(&file, "export function f(): string { return ''; }\n");
        assert_eq!(workspace.check(&user).await.len(), 1, "{module} changed");
    }
    workspace.rename("src/lib1", "src/moved");
    assert_eq!(missing(&workspace.check("src/u1.ts").await), 1, "the folder was moved away");
    workspace.rename("src/moved", "src/lib1");
    assert_eq!(missing(&workspace.check("src/u1.ts").await), 0, "the folder came back");
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_references_and_symbols_include_a_file_as_soon_as_it_exists() {
    let files = [
        ("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\n"),
        ("mod.py", "def target():\n    return 1\n"),
    ];
    let workspace = Workspace::open(&["pyright"], &files).await;
    assert_eq!(workspace.references("mod.py", 0, 5).await, ["mod.py"]);
    for number in 0..4 {
        let file = format!("d{}/new{number}.py", number % 2);
        workspace
            .put(&file, &format!("from mod import target\n\n\ndef new{number}():\n    return target()\n"));
        if number < 2 {
            assert_eq!(workspace.references("mod.py", 0, 5).await, [file.as_str(), "mod.py"]);
        } else {
            assert_eq!(workspace.symbols(&format!("new{number}")).await, [file.as_str()]);
        }
        workspace.remove(&file);
        assert_eq!(workspace.references("mod.py", 0, 5).await, ["mod.py"]);
        assert_eq!(workspace.symbols(&format!("new{number}")).await, NONE);
    }
    // More files than are opened.
    for number in 0..60 {
        workspace.put(&format!("many/new{number}.py"), "from mod import target\nx = target()\n");
    }
    assert_eq!(workspace.references("mod.py", 0, 5).await.len(), 61);
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clangd_finds_a_header_as_soon_as_it_exists() {
    let files = [
        ("compile_flags.txt", "-I.\n"),
        ("main.cpp", "#include \"h.h\"\nint main() { return f(); }\n"),
        ("other.cpp", "#include \"g.h\"\nint other() { return g(); }\n"),
        ("g.h", "int g();\n"),
    ];
    let workspace = Workspace::open(&["clangd"], &files).await;
    assert_eq!(workspace.check("main.cpp").await.len(), 2);
    assert_eq!(workspace.check("other.cpp").await, NONE);
    for _ in 0..2 {
        workspace.put("h.h", "int f();\n");
        assert_eq!(workspace.check("main.cpp").await, NONE);
        workspace.put("g.h", "int renamed();\n");
        assert_eq!(workspace.check("other.cpp").await.len(), 1);
        workspace.put("g.h", "int g();\n");
        assert_eq!(workspace.check("other.cpp").await, NONE);
        workspace.remove("h.h");
        assert_eq!(workspace.check("main.cpp").await.len(), 2);
    }
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_changes_by_another_program_are_each_seen_by_the_next_question() {
    let servers = ["pyright", "typescript-language-server"];
    every_change_is_seen(&servers, &[Language::Python, Language::TypeScript], 100, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_7_sees_every_change_by_another_program() {
    every_change_is_seen(&["typescript-native"], &[Language::TypeScript], 150, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyright_lists_the_symbols_of_a_file_that_came_back() {
    // The 52nd change brings back a file that an open one imports.
    every_change_is_seen(&["pyright"], &[Language::Python], 60, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clangd_sees_every_change_by_another_program() {
    every_change_is_seen(&["clangd"], &[Language::Cpp], 60, 3).await;
}

/// Makes random changes, each followed by a question.
async fn every_change_is_seen(servers: &[&str], languages: &[Language], steps: usize, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut changes = FileChanges::new(folder.path(), languages, seed);
    let workspace = Workspace::open_in(folder, Setup::with_servers(servers)).await;
    // The servers run before the first change: clangd does not find a header that no file includes and that was there before.
    workspace.symbols("hub").await;
    for step in 0..steps {
        let question = changes.step();
        let is_right = match &question {
            FileQuestion::DocumentSymbols { file, name } => {
                let path = workspace.orchestrator.gate().admit_path(file).unwrap();
                let answer = workspace.orchestrator.document_symbols(&path, &call()).await.unwrap();
                answer.value.iter().any(|symbol| symbol.name == *name)
            }
            FileQuestion::WorkspaceSymbols { name, files } => {
                workspace.symbols(name).await.into_iter().eq(files.iter().cloned())
            }
            FileQuestion::References { file, line, character, files } => {
                let found = workspace.references(file, *line, *character).await;
                found.into_iter().collect::<BTreeSet<_>>() == *files
            }
            FileQuestion::Definition { file, line, character, target } => {
                let path = workspace.orchestrator.gate().admit_path(file).unwrap();
                let at = Position::new(*line, *character);
                let answer = workspace.orchestrator.definition(&path, at, &call()).await.unwrap();
                let gate = workspace.orchestrator.gate();
                answer.value.iter().map(|one| gate.display(&one.path)).eq(target.iter().cloned())
            }
            FileQuestion::Diagnostics { file, is_broken } => {
                let missing = ["could not be resolved", "Cannot find module", "file not found"];
                let is_missing = |message: &String| missing.iter().any(|words| message.contains(words));
                workspace.check(file).await.iter().any(is_missing) == *is_broken
            }
        };
        assert!(is_right, "step {step}, {}: {question:?}", changes.last_change());
    }
    workspace.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_found_as_soon_as_they_are_installed() {
    installed_packages_are_found("typescript-language-server").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_7_finds_packages_as_soon_as_they_are_installed() {
    installed_packages_are_found("typescript-native").await;
}

async fn installed_packages_are_found(typescript: &str) {
    let config = r#"{ "compilerOptions": { "strict": true, "module": "esnext", "moduleResolution": "bundler" }, "include": ["src"] }"#;
    let files = [
        (".gitignore", "node_modules/\n.venv/\n"),
        ("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\n"),
        ("tsconfig.json", config),
        ("src/main.ts", "import { f } from 'installed';\nexport const x: number = f();\n"),
        ("main.py", "import installed\n\nx = installed.f()\n"),
    ];
    let workspace = Workspace::open(&["pyright", typescript], &files).await;
    let venv = workspace.folder.path().join(".venv");
    let made = std::process::Command::new(program::python())
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv)
        .status();
    assert!(made.unwrap().success());
    let version = fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().file_name();
    let packages = format!(".venv/lib/{}/site-packages", version.to_str().unwrap());
    assert_eq!(workspace.check("src/main.ts").await.len(), 1);
    assert_eq!(workspace.check("main.py").await.len(), 1);
    workspace.put(&format!("{packages}/installed.py"), "def f():\n    return 1\n");
    assert_eq!(workspace.check("main.py").await, NONE);
    workspace.put("node_modules/installed/package.json", r#"{ "name": "installed", "types": "index.d.ts" }"#);
    workspace.put("node_modules/installed/index.d.ts", "export function f(): number;\n");
    workspace.put("node_modules/.package-lock.json", "{}");
    assert_eq!(workspace.check("src/main.ts").await, NONE);
    workspace.orchestrator.shutdown().await;
}
