//! Edits while another process checks out branches: no write is lost, and no answer is wrong or called complete too early.

use std::process::Child;
use std::time::Instant;

use serde_json::{Value, json};
use tenon_testkit::PATIENCE;
use tenon_testkit::mcp_client::ToolResult;

use crate::workspace::{Workspace, delta, edit};

const USERS: usize = 8;
const EDITS: usize = 12;

/// A repository with two branches: in `uses`, files use a function of `own.ts`; in `idle`, the same files do not.
fn repository() -> Workspace {
    let tree = "//- package.json\n{ \"private\": true }\n\
                //- tsconfig.json\n{ \"compilerOptions\": { \"strict\": true, \"noEmit\": true, \"types\": [] } }\n\
                //- own.ts\nexport function total(n: number): number {\n  return n;\n}\n";
    let workspace = Workspace::new(tree).with_real_servers();
    let users = |text: &dyn Fn(usize) -> String| {
        for user in 0..USERS {
            workspace.sandbox.tree().write(format!("user{user}.ts"), &text(user));
        }
    };
    users(&|user| format!("export const idle{user} = {user};\n"));
    git(&workspace, &["init", "-q", "-b", "idle"]);
    git(&workspace, &["add", "."]);
    git(&workspace, &["commit", "-q", "-m", "idle"]);
    git(&workspace, &["checkout", "-q", "-b", "uses"]);
    users(&|user| format!("import {{ total }} from \"./own\";\nexport const used{user} = total({user});\n"));
    git(&workspace, &["commit", "-q", "-a", "-m", "uses"]);
    workspace
}

fn git(workspace: &Workspace, arguments: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let done = workspace.sandbox.command("git").args(identity).args(arguments).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// Another process that checks out one branch after the other.
struct CheckoutLoop<'w> {
    workspace: &'w Workspace,
    process: Child,
}

impl<'w> CheckoutLoop<'w> {
    fn start(workspace: &'w Workspace) -> Self {
        let script = "while [ ! -e \"$TMPDIR/stop\" ]; do git checkout -q idle && git checkout -q uses; done";
        let process = workspace.sandbox.command("sh").args(["-c", script]).spawn().unwrap();
        Self { workspace, process }
    }

    /// Ends with the branch `uses`.
    fn finish(mut self) {
        std::fs::write(self.workspace.sandbox.dir("tmp").join("stop"), "").unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

/// The new diagnostics of one file.
fn new_in<'r>(result: &'r ToolResult, file: &str) -> Vec<&'r Value> {
    result.structured["new"].as_array().unwrap().iter().filter(|one| one["file"] == file).collect()
}

/// Repeats an edit and its revert until both answers are complete.
fn settled(mut apply: impl FnMut() -> ToolResult, mut revert: impl FnMut() -> ToolResult) -> [ToolResult; 2] {
    let deadline = Instant::now() + 2 * PATIENCE;
    loop {
        let both = [apply(), revert()];
        if both.iter().all(|result| result.structured["complete"] == json!(true)) {
            return both;
        }
        assert!(Instant::now() < deadline, "{both:?}");
    }
}

#[test]
fn edits_during_checkouts_are_kept_and_answered_for_their_own_text() {
    let workspace = repository();
    let client = std::cell::RefCell::new(workspace.client());
    let change = |old: &str, new: &str| edit(&mut client.borrow_mut(), "own.ts", old, new);
    let (sound, broken) = ("  return n;", "  return \"n\";");
    settled(|| change(sound, broken), || change(broken, sound));

    let checkouts = CheckoutLoop::start(&workspace);
    for number in 0..EDITS {
        let (old, new) = if number % 2 == 0 { (sound, broken) } else { (broken, sound) };
        let result = change(old, new);
        assert!(workspace.sandbox.tree().read("own.ts").contains(new), "lost: {result:?}");
        if result.structured["complete"] == true {
            let own = new_in(&result, "own.ts");
            assert_eq!(own.len(), (number + 1) % 2, "{result:?}");
            assert!(own.iter().all(|one| one["code"] == "2322"), "{result:?}");
        }
    }
    checkouts.finish();

    // The branch is known again, and so are the users of the function.
    let [renamed, reverted] = settled(|| change("total(", "sum("), || change("sum(", "total("));
    assert_eq!(renamed.structured["new_count"], USERS, "{renamed:?}");
    assert_eq!(delta(&reverted), format!("0 new, {USERS} gone, 0 unchanged"));
}
