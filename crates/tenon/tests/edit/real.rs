//! Edits of real projects with real language servers.

use std::time::Instant;

use serde_json::json;
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, PATIENCE, RealProject, program};

use crate::workspace::{Workspace, diagnostics_text, edit};

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
                assert_eq!(diagnostics_text(&reverted), "", "{reverted:?}");
            }
            if complete(&applied) && complete(&reverted) {
                return (applied, reverted);
            }
            last.replace((applied, reverted));
            assert!(Instant::now() < deadline, "{last:?}");
        }
    }
}

fn files(result: &ToolResult, key: &str) -> Vec<String> {
    let files = result.structured[key].as_array().unwrap().iter();
    files.map(|file| file["file"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that a changed signature reports errors in its own file and in others.
fn assert_reports(result: &ToolResult, file: &str, in_file: &str, in_others: &str) {
    assert_eq!(files(result, "in_this_file"), [file], "{result:?}");
    let others = files(result, "in_other_files");
    assert!((2..=5).contains(&others.len()), "{result:?}");
    assert!(others.is_sorted(), "{others:?}");
    let shown = diagnostics_text(result);
    let (first, rest) = shown.split_once("LSP errors detected in other files:\n").unwrap();
    assert!(
        first.starts_with("LSP errors detected in this file, please fix:\n<diagnostics file="),
        "{shown}"
    );
    assert!(first.contains(in_file) && rest.contains(in_others), "{shown}");
    let lines = shown.lines().filter(|line| line.starts_with("ERROR [")).count();
    assert!((1..=50).contains(&lines), "{shown}");
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
    assert_eq!(diagnostics_text(&applied), "", "errors before the checkout");
    git(&["checkout", "-q", "changed"]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let applied = user.apply(&mut client);
        if applied.structured["complete"] == true {
            assert!(diagnostics_text(&applied).contains("Expected 2 arguments, but got 1."), "{applied:?}");
            break;
        }
        user.revert(&mut client);
        assert!(Instant::now() < deadline, "{applied:?}");
    }
    git(&["checkout", "-q", "-f", "original"]);
    let (applied, _) = user.apply_and_revert(&mut client);
    assert_eq!(diagnostics_text(&applied), "");
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
    let shown = diagnostics_text(&applied);
    assert!(shown.contains("(no-var)"), "{shown}");
    assert!(
        shown.contains("<diagnostics file=\"src/user.js\">\nERROR [2:21] Expected 2 arguments"),
        "{shown}"
    );
}
