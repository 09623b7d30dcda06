//! Actions of the pages, as forms: what they change, and what they say when they cannot. `browser.rs` does them by keyboard.

use std::process::Stdio;

use serde_json::{Value, json};
use tenon_testkit::console::SignedIn;
use tenon_testkit::{McpClient, Sandbox};

fn client(sandbox: &Sandbox) -> McpClient {
    let mut command = sandbox.tenon();
    command.args(["mcp", "--surface", "tasks,memory"]).stderr(Stdio::null());
    McpClient::connect(&mut command)
}

/// Sends a form and returns the page that the browser goes to.
fn act(user: &SignedIn, page: &str, fields: &str) -> String {
    let answer = user.post(page, fields);
    assert_eq!(answer.status, 303, "{fields}");
    user.page(answer.header("location").unwrap())
}

fn result(client: &mut McpClient, tool: &str, arguments: Value) -> Value {
    client.call_tool(tool, arguments).unwrap().structured["result"].clone()
}

#[test]
fn claim_is_seen_by_agents_and_can_be_released() {
    let sandbox = Sandbox::new();
    let user = SignedIn::new(&sandbox);
    assert!(act(&user, "/console/tasks", "action=claim").contains("No task is ready to be claimed."));
    act(&user, "/console/tasks", "action=add&title=Plan");
    act(&user, "/console/tasks", "action=add&title=Work&parent=PLAN-001&description=Old");
    let page = act(&user, "/console/tasks", "action=claim");
    assert!(page.contains("TASK-001 is claimed by the console.") && page.contains("claimed by console"));
    let mut agent = client(&sandbox);
    let next = result(&mut agent, "tasks_next", json!({"claim": true, "agent": "other"}));
    assert_eq!(next["task"], Value::Null, "a claimed task is not given away");
    assert!(act(&user, "/console/tasks", "action=release&task=TASK-001").contains("The claim is released."));
    let next = result(&mut agent, "tasks_next", json!({"claim": true, "agent": "other"}));
    assert_eq!(next["task"]["id"], "TASK-001");
    // An edit may empty the description.
    act(&user, "/console/tasks", "action=edit&task=TASK-001&title=Work&description=");
    let shown = result(&mut agent, "tasks_context", json!({"ids": ["TASK-001"]}));
    assert!(shown["tasks"][0]["description"].as_str().is_none_or(str::is_empty), "{shown}");
}

#[test]
fn conflict_of_a_merge_shows_both_sides_and_is_resolved() {
    let sandbox = Sandbox::new();
    let mut agent = client(&sandbox);
    let node = |title: &str| json!([{"op": "node_upsert", "id": "n", "type": "fact", "title": title}]);
    let apply = |agent: &mut McpClient, branch: &str, title: &str| {
        result(agent, "memory_graph_apply", json!({"branch": branch, "doc": "graph", "ops": node(title)}));
    };
    apply(&mut agent, "main", "base");
    result(&mut agent, "memory_branch_create", json!({"name": "side", "from": "main"}));
    apply(&mut agent, "side", "from the side");
    apply(&mut agent, "main", "from main");
    result(&mut agent, "memory_graph_merge", json!({"from": "side", "into": "main", "doc": "graph"}));
    let listed = result(&mut agent, "memory_graph_conflicts", json!({"into": "main", "doc": "graph"}));
    let id = listed["conflicts"][0]["conflict_id"].as_str().unwrap().to_owned();

    let user = SignedIn::new(&sandbox);
    let page = user.page("/console/memory");
    assert!(page.contains("from the side") && page.contains("from main") && page.contains("Use theirs"));
    let unknown =
        act(&user, "/console/memory", "action=resolve&conflict_id=CONFLICT-none&resolution=use_from");
    assert!(unknown.contains("notice-failed"), "{unknown}");
    let form = format!("action=resolve&branch=main&conflict_id={id}&resolution=use_from");
    let page = act(&user, "/console/memory", &form);
    assert!(page.contains("The conflict is resolved.") && !page.contains("Use theirs"), "{page}");
    let query = json!({"branch": "main", "doc": "graph", "ids": ["n"]});
    assert_eq!(result(&mut agent, "memory_graph_query", query)["nodes"][0]["title"], "from the side");
}

#[test]
fn connect_writes_what_the_page_showed_and_takes_no_options() {
    let sandbox = Sandbox::new();
    let user = SignedIn::new(&sandbox);
    let file = sandbox.root().join(".mcp.json");
    assert!(user.page("/console/connect?agent=claude").contains("mcpServers"));
    for agent in ["--help", "claude --undo", "unknown", "../claude"] {
        let page = act(&user, "/console/connect", &format!("action=connect&agent={agent}").replace(' ', "+"));
        assert!(page.contains("notice-failed"), "{agent}");
    }
    assert!(!file.exists(), "nothing was written yet");
    let page = act(&user, "/console/connect", "action=connect&agent=claude");
    assert!(page.contains("`tenon connect claude` is done.") && page.contains("state-connected"), "{page}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"tenon\""));
}

#[test]
fn trust_is_stored_and_applies_after_the_daemon_was_stopped() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n[log]\nlevel = \"info\"\n");
    let user = SignedIn::new(&sandbox);
    assert!(act(&user, "/console/", "action=restart&server=nothing").contains("notice-failed"));
    assert!(act(&user, "/console/", "action=dance").contains("There is no such action."));
    let page = act(&user, "/console/", "action=trust");
    assert!(page.contains("The workspace is trusted.") && page.contains("still runs as"), "{page}");
    let stopped = user.post("/console/", "action=stop");
    assert_eq!(stopped.status, 200, "there is no page to go to");
    assert!(String::from_utf8(stopped.body).unwrap().contains("The daemon stops."));
    sandbox.assert_no_processes();
    let user = SignedIn::new(&sandbox);
    let page = user.page("/console/");
    assert!(page.contains("state-trusted") && !page.contains("still runs as"), "{page}");
}
