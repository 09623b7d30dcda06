//! Edits of real code that nobody here wrote, with real language servers.

use std::time::Instant;

use serde_json::json;
use tenon_testkit::client::ToolResult;
use tenon_testkit::{Client, PATIENCE, Source, program};

use crate::stage::{Stage, block, edit};

/// Two spellings of one place of a file.
struct Toggle {
    file: &'static str,
    sound: &'static str,
    broken: &'static str,
}

impl Toggle {
    fn break_it(&self, client: &mut Client) -> ToolResult {
        edit(client, self.file, self.sound, self.broken)
    }

    fn mend(&self, client: &mut Client) -> ToolResult {
        edit(client, self.file, self.broken, self.sound)
    }

    /// Breaks the file, again and again, until the servers had the time for a complete answer; whatever is said before is
    /// said about the same text. Then mends it in the same way.
    fn broken_and_mended(&self, client: &mut Client) -> (ToolResult, ToolResult) {
        let deadline = Instant::now() + PATIENCE;
        let mut last = None;
        loop {
            let (broken, mended) = (self.break_it(client), self.mend(client));
            let complete = |result: &ToolResult| result.structured["complete"] == true;
            if complete(&mended) {
                assert_eq!(block(&mended), "", "{mended:?}");
            }
            if complete(&broken) && complete(&mended) {
                return (broken, mended);
            }
            last.replace((broken, mended));
            assert!(Instant::now() < deadline, "{last:?}");
        }
    }
}

fn files(result: &ToolResult, key: &str) -> Vec<String> {
    let files = result.structured[key].as_array().unwrap().iter();
    files.map(|file| file["file"].as_str().unwrap().to_owned()).collect()
}

/// What every complete answer to a changed signature shows.
fn shows(result: &ToolResult, file: &str, here: &str, elsewhere: &str) {
    assert_eq!(files(result, "in_this_file"), [file], "{result:?}");
    let others = files(result, "in_other_files");
    assert!((2..=5).contains(&others.len()), "{result:?}");
    assert!(others.is_sorted(), "{others:?}");
    let shown = block(result);
    let (first, rest) = shown.split_once("LSP errors detected in other files:\n").unwrap();
    assert!(
        first.starts_with("LSP errors detected in this file, please fix:\n<diagnostics file="),
        "{shown}"
    );
    assert!(first.contains(here) && rest.contains(elsewhere), "{shown}");
    let lines = shown.lines().filter(|line| line.starts_with("ERROR [")).count();
    assert!((1..=50).contains(&lines), "{shown}");
}

const RXJS: Toggle = Toggle {
    file: "src/internal/util/isFunction.ts",
    sound: "export function isFunction(value: any)",
    broken: "export function isFunction(given: any, strict: boolean)",
};

#[test]
fn a_changed_signature_shows_in_rxjs_and_its_undoing_shows_nothing() {
    let stage = Stage::real(Source::Rxjs);
    let mut client = stage.client();
    let before = stage.sha256(RXJS.file);
    let (broken, _) = RXJS.broken_and_mended(&mut client);
    shows(&broken, RXJS.file, "Cannot find name 'value'", "Expected 2 arguments, but got 1.");
    assert_eq!(stage.sha256(RXJS.file), before);
}

#[test]
fn a_changed_signature_shows_in_django_and_its_undoing_shows_nothing() {
    let stage = Stage::real(Source::Django).entry("ty", json!({ "enabled": false }));
    // Django's own types are loose; what counts here is how things are called.
    stage.sandbox.tree().write(
        "pyproject.toml",
        "[project]\nname = \"django\"\nversion = \"0\"\n[tool.pyright]\ntypeCheckingMode = \"off\"\nreportCallIssue = \"error\"\n\
         ignore = [\"django/db/models/query.py\", \"django/forms/utils.py\"]\n",
    );
    let place = Toggle {
        file: "django/utils/timezone.py",
        sound: "def get_current_timezone():",
        broken: "def get_current_timezone(zone_needed):",
    };
    let mut client = stage.session("edit,nav");
    // Who uses a thing takes pyright seconds to find out the first time, and an edit does not wait that long.
    let text = stage.sandbox.tree().read(place.file);
    let line = text.lines().position(|line| line.contains(place.sound)).unwrap() + 1;
    let asked = json!({ "file": place.file, "line": line, "character": 6 });
    let deadline = Instant::now() + PATIENCE;
    while client.call_tool("lsp_find_references", asked.clone()).unwrap().is_error {
        assert!(Instant::now() < deadline, "pyright does not come up");
    }
    let (broken, _) = place.broken_and_mended(&mut client);
    shows(
        &broken,
        place.file,
        "Argument missing for parameter \"zone_needed\"",
        "Argument missing for parameter \"zone_needed\"",
    );
}

#[test]
fn what_git_checks_out_is_seen_by_the_next_edit() {
    let stage = Stage::real(Source::Rxjs);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let done = stage.sandbox.command("git").args(identity).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "sound"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "sound"]);
    git(&["checkout", "-q", "-b", "broken"]);
    let text = stage.sandbox.tree().read(RXJS.file).replace(RXJS.sound, RXJS.broken);
    stage.sandbox.tree().write(RXJS.file, &text);
    git(&["commit", "-q", "-a", "-m", "broken"]);
    git(&["checkout", "-q", "sound"]);

    // A file that uses it, in which nothing changes but a comment.
    let user = Toggle {
        file: "src/internal/util/isPromise.ts",
        sound: "export function isPromise",
        broken: "/* about promises */ export function isPromise",
    };
    let mut client = stage.client();
    let (noted, _) = user.broken_and_mended(&mut client);
    assert_eq!(block(&noted), "", "nothing is wrong yet");
    git(&["checkout", "-q", "broken"]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = user.break_it(&mut client);
        if seen.structured["complete"] == true {
            assert!(block(&seen).contains("Expected 2 arguments, but got 1."), "{seen:?}");
            break;
        }
        user.mend(&mut client);
        assert!(Instant::now() < deadline, "{seen:?}");
    }
    git(&["checkout", "-q", "-f", "sound"]);
    let (noted, _) = user.broken_and_mended(&mut client);
    assert_eq!(block(&noted), "");
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
fn a_type_checker_and_a_linter_are_both_done_with_an_edit() {
    let stage = Stage::new(LINTED).patient();
    std::os::unix::fs::symlink(program::node_modules(), stage.sandbox.root().join("node_modules")).unwrap();
    // The linter runs what the workspace brings.
    assert!(stage.sandbox.tenon().arg("trust").output().unwrap().status.success());
    let place = Toggle {
        file: "src/twice.js",
        sound: "/** @param {number} x */\nexport function twice(x) {\n  return x + x;",
        broken: "/**\n * @param {number} x\n * @param {number} y\n */\nexport function twice(x, y) {\n  var z = x + y;\n  return z;",
    };
    let (broken, _) = place.broken_and_mended(&mut stage.client());
    let shown = block(&broken);
    assert!(shown.contains("(no-var)"), "{shown}");
    assert!(
        shown.contains("<diagnostics file=\"src/user.js\">\nERROR [2:21] Expected 2 arguments"),
        "{shown}"
    );
}
