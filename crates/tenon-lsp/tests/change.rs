//! A change on real language servers: diagnostics that are new in other files.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;
use std::time::Duration;

use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::{ChangeCheck, ChangedText, Options, Orchestrator};
use tenon_servers::confinement::ConfinementSettings;
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::{Registry, ServerEntry, Switch};
use tenon_testkit::program;

const LONG: Duration = Duration::from_secs(120);

/// A project with one server.
struct Project {
    folder: tempfile::TempDir,
    orchestrator: Orchestrator,
}

impl Project {
    async fn open(server: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("{root}", folder.path().to_str().unwrap())).unwrap();
        }
        let entries: Vec<ServerEntry> = Registry::built_in()
            .entries()
            .iter()
            .filter(|entry| entry.id.as_str() == server)
            .map(|entry| ServerEntry { enabled: Switch::On, ..entry.clone() })
            .collect();
        program::tool(&entries[0].command);
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

    /// Writes a file and returns the files with new diagnostics, other than itself.
    async fn edit(&self, file: &str, from: &str, to: &str) -> Vec<String> {
        let check = self.change(file, from, to).await;
        assert!(check.complete, "{check:?}");
        self.broken(&check)
    }

    async fn change(&self, file: &str, from: &str, to: &str) -> ChangeCheck {
        let path = self.folder.path().join(file);
        let before = fs::read_to_string(&path).unwrap();
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after, "`{from}` is in {file}");
        fs::write(&path, &after).unwrap();
        let path = self.orchestrator.gate().admit_path(file).unwrap();
        let changed = ChangedText { path, before: Some(before), after: Some(after) };
        let call = CallContext::within(Duration::from_secs(600));
        self.orchestrator.check_change(&[changed], LONG, &call).await
    }

    /// Creates a file.
    async fn create(&self, file: &str, text: &str) -> ChangeCheck {
        fs::write(self.folder.path().join(file), text).unwrap();
        let path = self.orchestrator.gate().admit_path(file).unwrap();
        let changed = ChangedText { path, before: Some(String::new()), after: Some(text.to_owned()) };
        let call = CallContext::within(Duration::from_secs(600));
        self.orchestrator.check_change(&[changed], LONG, &call).await
    }

    fn broken(&self, check: &ChangeCheck) -> Vec<String> {
        self.others_with(check, |before, after| after > before)
    }

    fn fixed(&self, check: &ChangeCheck) -> Vec<String> {
        self.others_with(check, |before, after| after < before)
    }

    /// The other files whose known numbers of diagnostics before and after compare like this.
    fn others_with(&self, check: &ChangeCheck, wanted: fn(usize, usize) -> bool) -> Vec<String> {
        let mut files = Vec::new();
        for file in &check.others {
            for server in &file.servers {
                if let (Some(before), Some(after)) = (&server.before, &server.after)
                    && wanted(before.len(), after.len())
                {
                    files.push(self.orchestrator.gate().display(&file.path));
                }
            }
        }
        files
    }
}

const TYPESCRIPT: &[(&str, &str)] = &[
    ("package.json", "{ \"name\": \"shop\", \"private\": true }\n"),
    (
        "tsconfig.json",
        "{ \"compilerOptions\": { \"strict\": true, \"noEmit\": true, \"types\": [] }, \"include\": [\"src\"] }\n",
    ),
    (
        "src/take.ts",
        "// take\nexport function take(count: number): number {\n  return count;\n}\n\nexport const total = () => {\n  return take(1);\n};\n",
    ),
    ("src/index.ts", "export * from './take';\n"),
    ("src/direct.ts", "import { take } from './take';\nexport const two = take(2);\n"),
    ("src/through.ts", "import { take } from './index';\nexport const three = take(3);\n"),
    ("src/sum.ts", "import { total } from './take';\nexport const sum: number = total();\n"),
];

const PYTHON: &[(&str, &str)] = &[
    ("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"0\"\n"),
    ("shop/__init__.py", "from .model import Item as Item\n"),
    (
        "shop/model.py",
        "class Item:\n    def __init__(self, price: int) -> None:\n        self.price = price\n\n    def total(self, count: int) -> int:\n        return self.price * count\n\n\ndef guess():\n    return 1\n",
    ),
    ("shop/direct.py", "from shop.model import Item\n\nITEM = Item(1)\nPRICE = ITEM.price\n"),
    ("shop/through.py", "from shop import Item\n\nprint(Item(2).total(3))\n"),
    (
        "shop/special.py",
        "from shop.model import Item\n\n\nclass Special(Item):\n    def total(self, count: int) -> int:\n        return 0\n",
    ),
    ("shop/number.py", "from shop.model import guess\n\nNUMBER: int = guess()\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn typescript_dependents_of_a_change_are_reported() {
    dependents_of_a_change_are_reported("typescript-language-server").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_7_dependents_of_a_change_are_reported() {
    dependents_of_a_change_are_reported("typescript-native").await;
}

async fn dependents_of_a_change_are_reported(server: &str) {
    let project = Project::open(server, TYPESCRIPT).await;
    // The name still occurs in the file, in a comment.
    let renamed = project.edit("src/take.ts", "function take(", "function takeAll(").await;
    assert_eq!(renamed, ["src/direct.ts", "src/through.ts"]);
    assert_eq!(project.edit("src/take.ts", "function takeAll(", "function take(").await, [""; 0]);
    let wider = project.edit("src/take.ts", "count: number)", "count: number, more: string)").await;
    assert_eq!(wider, ["src/direct.ts", "src/through.ts"]);
    assert_eq!(project.edit("src/take.ts", ", more: string)", ")").await, [""; 0]);
    let inferred = project.edit("src/take.ts", "return take(1);", "return 'one';").await;
    assert_eq!(inferred, ["src/sum.ts"], "only its inferred type changed");
    let unexported = project.edit("src/index.ts", "export * from './take';", "export {};").await;
    assert_eq!(unexported, ["src/through.ts"]);
    project.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_dependents_of_a_change_are_reported() {
    let project = Project::open("pyright", PYTHON).await;
    let renamed = project.edit("shop/model.py", "class Item:", "class Thing:").await;
    assert_eq!(renamed, ["shop/__init__.py", "shop/direct.py", "shop/special.py", "shop/through.py"]);
    assert_eq!(project.edit("shop/model.py", "class Thing:", "class Item:").await, [""; 0]);
    let wider = project.edit("shop/model.py", "price: int)", "price: int, name: str)").await;
    assert_eq!(wider, ["shop/direct.py", "shop/through.py"], "calls of the class");
    assert_eq!(project.edit("shop/model.py", ", name: str)", ")").await, [""; 0]);
    let overridden = project.edit("shop/model.py", "count: int)", "count: int, more: int)").await;
    assert_eq!(overridden, ["shop/special.py", "shop/through.py"], "an override and a call");
    assert_eq!(project.edit("shop/model.py", ", more: int)", ")").await, [""; 0]);
    let attribute = project.edit("shop/model.py", "self.price = price", "self.cost = price").await;
    assert_eq!(attribute, ["shop/direct.py"]);
    assert_eq!(project.edit("shop/model.py", "self.cost = price", "self.price = price").await, [""; 0]);
    let inferred = project.edit("shop/model.py", "return 1", "return 'one'").await;
    assert_eq!(inferred, ["shop/number.py"], "only its inferred type changed");
    let unexported = project.edit("shop/__init__.py", "from .model import Item as Item\n", "\n").await;
    assert_eq!(unexported, ["shop/through.py"]);
    project.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fixed_and_created_typescript_modules_end_errors_elsewhere() {
    fixed_and_created_modules_end_errors_elsewhere("typescript-language-server").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fixed_and_created_typescript_7_modules_end_errors_elsewhere() {
    fixed_and_created_modules_end_errors_elsewhere("typescript-native").await;
}

async fn fixed_and_created_modules_end_errors_elsewhere(server: &str) {
    let project = Project::open(server, TYPESCRIPT).await;
    let broken = project.edit("src/take.ts", "function take(", "function takeAll(").await;
    let fixed = project.change("src/take.ts", "function takeAll(", "function take(").await;
    assert!(fixed.complete, "{fixed:?}");
    assert_eq!(project.fixed(&fixed), broken);

    let importer = "import { three } from './three';\nexport const nine: number = three * three;\n";
    let missing = project.create("src/nine.ts", importer).await;
    assert!(missing.complete, "{missing:?}");
    assert_eq!(missing.changed[0].servers[0].after.as_ref().map(Vec::len), Some(1));
    let found = project.create("src/three.ts", "export const three = 3;\n").await;
    assert!(found.complete, "{found:?}");
    assert_eq!(project.fixed(&found), ["src/nine.ts"]);
    assert_eq!(project.edit("src/three.ts", "= 3", "= '3'").await, ["src/nine.ts"]);

    let configured = project.change("tsconfig.json", "\"strict\": true", "\"strict\": false").await;
    assert_eq!((configured.complete, configured.unchecked), (false, 7), "no file was checked again");
    project.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn created_python_module_ends_errors_elsewhere() {
    let project = Project::open("pyright", PYTHON).await;
    let missing = project.create("shop/nine.py", "from shop.three import THREE\n\nNINE: int = THREE\n").await;
    assert_eq!(missing.changed[0].servers[0].after.as_ref().map(Vec::len), Some(1));
    let found = project.create("shop/three.py", "THREE = 3\n").await;
    assert!(found.complete, "{found:?}");
    assert_eq!(project.fixed(&found), ["shop/nine.py"]);
    project.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn importer_without_a_baseline_is_not_called_checked() {
    let files =
        [TYPESCRIPT, &[("src/nine.ts", "import { four } from './four';\nexport const nine = four;\n")]];
    for server in ["typescript-language-server", "typescript-native"] {
        let project = Project::open(server, &files.concat()).await;
        let created = project.create("src/four.ts", "export const four = 4;\n").await;
        assert!(!created.complete, "the state of the importer before is not known: {created:?}");
        assert_eq!(created.others.len(), 1);
        assert!(created.others[0].servers[0].before.is_none());
        project.orchestrator.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_import_of_a_base_class_breaks_its_users() {
    let files = [
        TYPESCRIPT,
        &[
            ("src/base.ts", "export class Base {\n  close(): void {}\n}\n"),
            (
                "src/task.ts",
                "import { Base } from './base';\nexport class Task extends Base {\n  run(): void {}\n}\n",
            ),
            ("src/user.ts", "import { Task } from './task';\nnew Task().close();\n"),
        ],
    ];
    for server in ["typescript-language-server", "typescript-native"] {
        let project = Project::open(server, &files.concat()).await;
        let broken = project.edit("src/task.ts", "import { Base } from './base';", "class Base {}").await;
        assert_eq!(broken, ["src/user.ts"]);
        project.orchestrator.shutdown().await;
    }
}

/// clangd reads headers from disk, where the new text is when a change is reported: the state before must be known by then.
#[tokio::test(flavor = "multi_thread")]
async fn header_change_is_complete_only_if_the_state_before_is_known() {
    let project = Project::open(
        "clangd",
        &[
            (
                "compile_commands.json",
                r#"[{"directory": "{root}", "file": "one.cpp", "arguments": ["c++", "one.cpp"]},
                    {"directory": "{root}", "file": "two.cpp", "arguments": ["c++", "two.cpp"]}]"#,
            ),
            ("get.h", "#pragma once\nint get(int key);\n"),
            ("one.cpp", "#include \"get.h\"\nint one() { return get(1); }\n"),
            ("two.cpp", "#include \"get.h\"\nint two() { return get(2); }\n"),
        ],
    )
    .await;
    // Opens the header, as an agent that reads it does.
    let first = project.change("get.h", "int get(", "int fetch(").await;
    assert!(!first.complete || project.broken(&first) == ["one.cpp", "two.cpp"], "{first:?}");
    let reverted = project.change("get.h", "int fetch(", "int get(").await;
    assert!(!reverted.complete || project.fixed(&reverted) == ["one.cpp", "two.cpp"], "{reverted:?}");
    let second = project.change("get.h", "int get(", "int fetch(").await;
    assert!(second.complete, "{second:?}");
    assert_eq!(project.broken(&second), ["one.cpp", "two.cpp"]);
    // Names nothing that the other files mention.
    project.change("get.h", "int fetch(", "int get(").await;
    let structure = project.change("get.h", "#pragma once", "#pragma once\nnamespace hidden {").await;
    assert!(!structure.complete || project.broken(&structure) == ["one.cpp", "two.cpp"], "{structure:?}");
}
