//! Edits of real projects with real language servers.

use std::time::Instant;

use serde_json::{Value, json};
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, PATIENCE, RealProject, program};

use crate::workspace::{Workspace, delta, edit, text};

/// A change to a file that can be reverted.
struct Change {
    file: &'static str,
    original: &'static str,
    changed: &'static str,
}

impl Change {
    fn apply(&self, client: &mut McpClient) -> ToolResult {
        edit(client, self.file, self.original, self.changed)
    }

    fn revert(&self, client: &mut McpClient) -> ToolResult {
        edit(client, self.file, self.changed, self.original)
    }

    /// Applies and reverts the change until both results are complete: servers may still be loading the project.
    fn apply_and_revert(&self, client: &mut McpClient) -> (ToolResult, ToolResult) {
        let deadline = Instant::now() + PATIENCE;
        let mut last = None;
        loop {
            let (applied, reverted) = (self.apply(client), self.revert(client));
            let complete = |result: &ToolResult| result.structured["complete"] == true;
            if complete(&reverted) {
                assert_eq!(reverted.structured["new_count"], 0, "{reverted:?}");
            }
            if complete(&applied) && complete(&reverted) {
                return (applied, reverted);
            }
            last.replace((applied, reverted));
            assert!(Instant::now() < deadline, "{last:?}");
        }
    }
}

/// Asserts that a changed signature reports new errors in its own file, then in others, and nothing else.
fn assert_reports(result: &ToolResult, file: &str, in_file: &str, in_others: &str) {
    let new = result.structured["new"].as_array().unwrap();
    assert_eq!(result.structured["new_count"], new.len());
    let (own, others): (Vec<_>, Vec<_>) = new.iter().partition(|one| one["file"] == file);
    assert_eq!(new[..own.len()].iter().collect::<Vec<_>>(), own, "own errors come first");
    let has = |list: &[&Value], message: &str| {
        list.iter().any(|one| one["message"].as_str().is_some_and(|text| text.contains(message)))
    };
    assert!(has(&own, in_file) && has(&others, in_others), "{result:?}");
    let names: Vec<&str> = others.iter().map(|one| one["file"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.first() != names.last(), "{names:?}");
    let lines = delta(result).lines().skip(1);
    assert!(
        lines.clone().count() == new.len() && lines.clone().all(|line| line.starts_with("NEW error ")),
        "{result:?}"
    );
}

const RXJS: Change = Change {
    file: "src/internal/util/isFunction.ts",
    original: "export function isFunction(value: any)",
    changed: "export function isFunction(given: any, strict: boolean)",
};

#[test]
fn rxjs_signature_change_reports_errors_and_its_revert_none() {
    let workspace = Workspace::real(RealProject::Rxjs);
    let mut client = workspace.client();
    let before = workspace.sha256(RXJS.file);
    let (applied, _) = RXJS.apply_and_revert(&mut client);
    assert_reports(&applied, RXJS.file, "Cannot find name 'value'", "Expected 2 arguments, but got 1.");
    assert_eq!(workspace.sha256(RXJS.file), before);
}

#[test]
fn django_signature_change_reports_errors_and_its_revert_none() {
    let workspace = Workspace::real(RealProject::Django).entry("ty", json!({ "enabled": false }));
    // Only call errors: Django's own code has many type errors.
    workspace.sandbox.tree().write(
        "pyproject.toml",
        "[project]\nname = \"django\"\nversion = \"0\"\n[tool.pyright]\ntypeCheckingMode = \"off\"\nreportCallIssue = \"error\"\n\
         ignore = [\"django/db/models/query.py\", \"django/forms/utils.py\"]\n",
    );
    let change = Change {
        file: "django/utils/timezone.py",
        original: "def get_current_timezone():",
        changed: "def get_current_timezone(zone_needed):",
    };
    let mut client = workspace.session("edit,nav");
    // Pyright's first search for references takes longer than an edit waits.
    let text = workspace.sandbox.tree().read(change.file);
    let line = text.lines().position(|line| line.contains(change.original)).unwrap() + 1;
    let arguments = json!({ "file": change.file, "line": line, "character": 6 });
    let deadline = Instant::now() + PATIENCE;
    while client.call_tool("lsp_find_references", arguments.clone()).unwrap().is_error {
        assert!(Instant::now() < deadline, "pyright does not start");
    }
    let (applied, _) = change.apply_and_revert(&mut client);
    assert_reports(
        &applied,
        change.file,
        "Argument missing for parameter \"zone_needed\"",
        "Argument missing for parameter \"zone_needed\"",
    );
}

#[test]
fn edit_after_a_git_checkout_sees_the_new_files() {
    let workspace = Workspace::real(RealProject::Rxjs);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let done = workspace.sandbox.command("git").args(identity).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "original"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "original"]);
    git(&["checkout", "-q", "-b", "changed"]);
    let text = workspace.sandbox.tree().read(RXJS.file).replace(RXJS.original, RXJS.changed);
    workspace.sandbox.tree().write(RXJS.file, &text);
    git(&["commit", "-q", "-a", "-m", "changed"]);
    git(&["checkout", "-q", "original"]);

    // A change to a comment in a file that uses the function.
    let user = Change {
        file: "src/internal/util/isPromise.ts",
        original: "export function isPromise",
        changed: "/* about promises */ export function isPromise",
    };
    let mut client = workspace.client();
    let (applied, _) = user.apply_and_revert(&mut client);
    assert_eq!(delta(&applied), "0 new, 0 gone, 0 unchanged", "errors before the checkout");
    git(&["checkout", "-q", "changed"]);
    // The file's errors come from the checkout, not from the edit.
    let (applied, _) = user.apply_and_revert(&mut client);
    assert_eq!(delta(&applied), "0 new, 0 gone, 1 unchanged");
    git(&["checkout", "-q", "-f", "original"]);
    let (applied, _) = user.apply_and_revert(&mut client);
    assert_eq!(delta(&applied), "0 new, 0 gone, 0 unchanged");
}

const LINTED: &str = r#"
//- package.json
{ "name": "shop", "private": true, "type": "module" }
//- eslint.config.js
export default [{ rules: { "no-var": "error" } }];
//- tsconfig.json
{ "compilerOptions": { "strict": true, "allowJs": true, "checkJs": true, "module": "nodenext", "target": "es2022",
    "noEmit": true, "types": [] }, "include": ["src"] }
//- src/twice.js
/** @param {number} x */
export function twice(x) {
  return x + x;
}
//- src/user.js
import { twice } from "./twice.js";
export const four = twice(2);
"#;

#[test]
fn edit_waits_for_a_type_checker_and_a_linter() {
    let workspace = Workspace::new(LINTED).with_real_servers();
    std::os::unix::fs::symlink(program::node_modules(), workspace.sandbox.root().join("node_modules"))
        .unwrap();
    // ESLint executes code of the workspace.
    assert!(workspace.sandbox.tenon().arg("trust").output().unwrap().status.success());
    let change = Change {
        file: "src/twice.js",
        original: "/** @param {number} x */\nexport function twice(x) {\n  return x + x;",
        changed: "/**\n * @param {number} x\n * @param {number} y\n */\nexport function twice(x, y) {\n  var z = x + y;\n  return z;",
    };
    let (applied, _) = change.apply_and_revert(&mut workspace.client());
    let shown = delta(&applied);
    assert!(shown.contains("(no-var)"), "{shown}");
    assert!(shown.contains("\nNEW error src/user.js:2:21: Expected 2 arguments"), "{shown}");
}

const OLD_ERRORS: &str = r#"
//- query.py
class QuerySet:
    def filter(self, *args, **kwargs):
        return self.run(args, kwargs)

    def old(self) -> int:
        return undefined_one + undefined_two

    def run(self, args: tuple, kwargs: dict) -> str:
        return 1
//- tsconfig.json
{ "compilerOptions": { "strict": true, "noEmit": true, "module": "nodenext", "types": [] }, "include": ["src"] }
//- src/a.ts
import { b } from "./b.js";
export const one: number = 1;
export const two = b;
"#;

/// The tree above with one server for each language.
fn pyright_alone() -> Workspace {
    let off = || json!({ "enabled": false });
    Workspace::new(OLD_ERRORS).with_real_servers().entry("ty", off()).entry("ruff", off())
}

#[test]
fn broken_name_is_the_only_new_error_beside_old_ones() {
    let workspace = pyright_alone();
    let change = Change { file: "query.py", original: "run(args, kwargs)", changed: "run(args, kwargx)" };
    let applied = change.apply_and_revert(&mut workspace.client()).0;
    // The symbol is missing if the server is slow to name it.
    insta::assert_snapshot!(text(&applied).replace(" in QuerySet.filter", ""), @r#"
    edited query.py:3
    1 new, 0 gone, 3 unchanged
    NEW error query.py:3:31: "kwargx" is not defined (reportUndefinedVariable)
    "#);
}

#[test]
fn edit_reports_nothing_of_an_unrelated_language() {
    let workspace = pyright_alone();
    let mut client = workspace.client();
    // Pyright has the old errors of the Python file before the edit.
    let python = Change { file: "query.py", original: "-> int", changed: "-> float" };
    let (applied, _) = python.apply_and_revert(&mut client);
    assert_ne!(applied.structured["unchanged_count"], 0, "{applied:?}");
    let change = Change { file: "src/a.ts", original: "number = 1", changed: "number = \"\"" };
    let applied = change.apply_and_revert(&mut client).0;
    assert_eq!(applied.structured["new_count"], 1, "{applied:?}");
    assert!(
        delta(&applied).starts_with("1 new, 0 gone, 1 unchanged\nNEW error src/a.ts:2:14"),
        "{applied:?}"
    );
    assert!(!text(&applied).contains("query.py"), "{applied:?}");
}

/// Folders that the configuration of pyright and TypeScript leaves out, with files that use the same functions as others.
fn with_excluded_folders() -> Workspace {
    let tree = "//- package.json\n{ \"private\": true }\n\
                //- tsconfig.json\n{ \"compilerOptions\": { \"strict\": true, \"noEmit\": true }, \"include\": [\"web\"] }\n\
                //- web/total.ts\nexport const total = (n: number) => n;\n\
                //- web/user.ts\nimport { total } from \"./total\";\nexport const t = total(1);\n\
                //- pyproject.toml\n[tool.pyright]\nexclude = [\"old\"]\n\
                //- pkg/__init__.py\n\
                //- pkg/total.py\ndef total(n: int) -> int:\n    return n\n\
                //- pkg/user.py\nfrom pkg.total import total\n\nt = total(1)\n";
    let workspace = Workspace::new(tree).with_real_servers().entry("ty", json!({ "enabled": false }));
    for number in 0..9 {
        let typescript = "import { total } from \"../web/total\";\nexport const t = total(1) + missing;\n";
        workspace.sandbox.tree().write(format!("legacy/l{number}.ts"), typescript);
        let python = "from pkg.total import total\n\nt = total(1) + missing\n";
        workspace.sandbox.tree().write(format!("old/o{number}.py"), python);
    }
    workspace
}

#[test]
fn files_that_the_configuration_leaves_out_do_not_hide_the_others() {
    let workspace = with_excluded_folders();
    let mut client = workspace.client();
    let changes = [
        ("web/user.ts", "legacy/l", Change { file: "web/total.ts", original: "total =", changed: "sum =" }),
        ("pkg/user.py", "old/o", Change { file: "pkg/total.py", original: "def total", changed: "def sum" }),
    ];
    for (user, outside, change) in changes {
        let (applied, reverted) = change.apply_and_revert(&mut client);
        let lines: Vec<&str> = delta(&applied).lines().collect();
        assert_eq!(applied.structured["new_count"], 10, "{applied:?}");
        assert_eq!(applied.structured["new"].as_array().unwrap().len(), 10);
        assert!(lines[1].starts_with(&format!("NEW error {user}:1:")), "{lines:?}");
        assert!(
            lines[2..5].iter().all(|line| line.starts_with(&format!("NEW error {outside}"))),
            "{lines:?}"
        );
        assert_eq!(lines[5], "NEW 6 more in 6 files that the project's configuration leaves out");
        assert_eq!((lines.len(), reverted.structured["new_count"].as_u64()), (6, Some(0)), "{lines:?}");
    }
}

#[test]
fn merge_conflict_and_template_are_summarised() {
    let conflict = "<<<<<<< HEAD\n    return 1\n=======\n    return 2\n>>>>>>> branch\n";
    let template =
        "{% load i18n %}\n{% for name in names %}\n{{ name|escapejs }}: {% trans 'x' %},\n{% endfor %}\n";
    let workspace =
        Workspace::new("//- a.py\ndef f():\n    return 0\n//- jsconfig.json\n{}\n//- a.js\nlet a = 1;\n")
            .with_real_servers()
            .entry("ty", json!({ "enabled": false }));
    let mut client = workspace.client();
    for (file, old, new) in [("a.py", "    return 0\n", conflict), ("a.js", "let a = 1;\n", template)] {
        let change = Change { file, original: old, changed: new };
        let (applied, _) = change.apply_and_revert(&mut client);
        let count = applied.structured["new_count"].as_u64().unwrap();
        let lines = delta(&applied).lines().skip(1);
        let counted: u64 = lines
            .clone()
            .map(|line| match line.split_once(" more like this in ") {
                Some((number, _)) => number.strip_prefix("NEW ").unwrap().parse().unwrap(),
                None => u64::from(line.starts_with("NEW error ")),
            })
            .sum();
        assert_eq!(counted, count, "{applied:?}");
        assert_eq!(applied.structured["new"].as_array().unwrap().len() as u64, count);
        assert!(count >= 9 && (lines.count() as u64) < count, "{applied:?}");
    }
}
