//! The surface `work` over MCP.

use serde_json::{Value, json};
use tenon_testkit::{McpClient, Sandbox};

use super::connect_by;

fn connect(sandbox: &Sandbox, surfaces: &str) -> McpClient {
    connect_by(sandbox.tenon().args(["mcp", "--no-daemon", "--surface", surfaces]))
}

fn said(client: &mut McpClient, tool: &str, arguments: Value) -> (String, bool) {
    let result = client.call_tool(tool, arguments).unwrap();
    assert_eq!(result.text.len(), 1);
    assert_eq!(result.structured, Value::Null);
    (result.text.concat(), result.is_error)
}

#[test]
fn tool_lists_stay_small() {
    let sandbox = Sandbox::new();
    let bytes = |surfaces: &str| {
        let mut client = connect(&sandbox, surfaces);
        let listed = client.request("tools/list", json!({})).unwrap();
        (listed["tools"].as_array().unwrap().len(), listed["tools"].to_string().len())
    };
    let (tools, size) = bytes("work");
    println!("work: {size} bytes");
    assert!(tools == 8 && size < 3000, "{tools} tools, {size} bytes");
    let (_, both) = bytes("explore,work");
    println!("explore,work: {both} bytes");
    assert!(both < 12_000, "{both} bytes");
}

#[test]
fn any_form_is_accepted_and_errors_are_one_line_with_a_call() {
    let sandbox = Sandbox::new();
    let mut client = connect(&sandbox, "work");
    let (text, failed) =
        said(&mut client, "task_add", json!({"name": "Fix it", "steps": "- a\n- b", "x": 1}));
    assert!(!failed && text.ends_with("\nignored: x"), "{text}");
    let (text, failed) = said(&mut client, "task_update", json!({"id": 1, "step": "a", "done": "true"}));
    assert!(!failed && text.contains("step 1 done"), "{text}");
    let (text, failed) = said(&mut client, "task_show", json!({"id": "TASK-404"}));
    assert_eq!((text.as_str(), failed), ("there is no task `TASK-404`: task_list {}", true));
    let (text, failed) = said(&mut client, "task_add", json!({}));
    assert!(failed && text.ends_with(r#"task_add {"title":"Fix the login test"}"#), "{text}");
    let unknown = client.call_tool("task_fly", json!({})).unwrap_err();
    assert_eq!(unknown.code, -32602);
}

#[test]
fn commands_run_only_where_the_user_allows_them() {
    let sandbox = Sandbox::new();
    let gated = json!({"title": "Guard", "steps": ["Pass [cmd: test -f done.txt && echo fine]"]});
    let mut client = connect(&sandbox, "work");
    said(&mut client, "task_add", gated.clone());
    let (text, failed) = said(&mut client, "task_update", json!({"id": 1, "step": 1, "done": true}));
    assert!(
        !failed && text.contains("was not run: the user's setting `work.run_commands` does not allow it"),
        "{text}"
    );
    client.close();
    let root = sandbox.root().to_str().unwrap().to_owned();
    let command = ["mcp", "--no-daemon", "--surface", "work"];
    let mut client = connect_by(sandbox.tenon().args(command).env("TENON_WORK_RUN_COMMANDS", &root));
    said(&mut client, "task_add", gated);
    let (text, failed) = said(&mut client, "task_update", json!({"id": 2, "step": 1, "done": true}));
    assert!(failed && text.contains("stays open") && text.contains("exit code 1"), "{text}");
    sandbox.tree().write("done.txt", "");
    let (text, failed) = said(&mut client, "task_update", json!({"id": 2, "step": 1, "done": true}));
    assert!(!failed && text.contains("passed"), "{text}");
}

/// A repository cannot allow commands, trusted or not.
#[test]
fn repository_cannot_allow_commands() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().to_str().unwrap().to_owned();
    sandbox.tree().write("tenon.toml", &format!("[work]\nrun_commands = [{root:?}]\n"));
    let mut client = connect(&sandbox, "work");
    said(&mut client, "task_add", json!({"title": "Guard", "steps": ["Pass [cmd: touch ran.txt]"]}));
    let (text, _) = said(&mut client, "task_update", json!({"step": 1, "done": true}));
    assert!(text.contains("was not run"), "{text}");
    assert!(!sandbox.root().join("ran.txt").exists());
}

/// Pyright decides whether the step closes, for an agent and for a person.
#[test]
fn step_gated_by_problems_closes_when_the_language_server_finds_none() {
    const BROKEN: &str = "def size(name: str) -> int:\n    return name\n";
    const FIXED: &str = "def size(name: str) -> int:\n    return len(name)\n";
    let sandbox = Sandbox::with_tree(&format!(
        "//- tenon.toml\n//- pyproject.toml\n[project]\nname = \"p\"\n//- src/a.py\n{BROKEN}//- other/b.py\n{BROKEN}"
    ));
    let mut client = connect_by(sandbox.tenon().args(["mcp", "--surface", "work,tasks"]));
    let steps = ["Fix the types [problems: src/**]", "Again [problems: src/**]"];
    said(&mut client, "task_add", json!({"title": "Types", "steps": steps}));
    let (text, failed) = said(&mut client, "task_update", json!({"step": 1, "done": true}));
    assert!(failed, "{text}");
    assert!(text.starts_with("step 1 stays open: `problems: src/**` failed\n"), "{text}");
    assert!(text.contains("src/a.py:2:12") && text.contains("is not assignable to"), "{text}");
    assert!(!text.contains("other/b.py"), "{text}");
    sandbox.tree().write("src/a.py", FIXED);
    let (text, failed) = said(&mut client, "task_update", json!({"step": 1, "done": true}));
    assert!(!failed && text.contains("step 1 done (`problems: src/**` passed)"), "{text}");
    let resumed = super::call(&mut client, "tasks_resume", json!({"task": "TASK-001"}));
    let steps = resumed["result"]["steps"].as_array().unwrap();
    let first = steps.iter().find(|step| step["path"] == "s:0").unwrap();
    let evidence = first["evidence"].as_array().unwrap();
    let kinds: Vec<&str> = evidence.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["diagnostics", "diagnostics"], "{evidence:?}");

    // A person closes the other step, through the same daemon.
    let done = |more: &[&str]| sandbox.tenon().args(["tasks", "done", "1", "2"]).args(more).output().unwrap();
    sandbox.tree().write("src/a.py", BROKEN);
    let refused = done(&[]);
    let said = String::from_utf8(refused.stdout).unwrap();
    assert!(refused.status.code() == Some(1) && said.contains("step 2 stays open"), "{said}");
    assert_eq!(String::from_utf8(refused.stderr).unwrap(), "checking problems: src/**\n");
    let by_hand = done(&["--unchecked"]);
    let said = String::from_utf8(by_hand.stdout).unwrap();
    assert!(
        by_hand.status.success() && said.contains("`problems: src/**` was not run: closed by hand"),
        "{said}"
    );
    client.close();
    assert!(sandbox.tenon().arg("stop").output().unwrap().status.success());
}

/// Without a server for the files, nothing is known: the step stays open.
#[test]
fn step_gated_by_problems_stays_open_without_a_language_server() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n//- src/a.py\nx: int = 1\n");
    let command = ["mcp", "--no-daemon", "--surface", "work"];
    let mut client = connect_by(sandbox.tenon().args(command).env("PATH", "/usr/bin:/bin"));
    said(&mut client, "task_add", json!({"title": "Types", "steps": ["Fix [problems: src/**]"]}));
    let (text, failed) = said(&mut client, "task_update", json!({"step": 1, "done": true}));
    assert!(failed && text.contains("could not be checked"), "{text}");
}
