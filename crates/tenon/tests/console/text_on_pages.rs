//! Text that others wrote is shown as text, whatever it contains.

use serde_json::json;
use tenon_testkit::{McpClient, Revision, Sandbox};

use crate::signed_in::SignedIn;

const EVIL: &str = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[31m\"'--";

fn assert_harmless(page: &str, text: &str) {
    assert!(!text.contains("<img src=x"), "{page}: unescaped");
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{page}: hidden characters");
}

#[test]
fn names_notes_titles_and_client_names_are_escaped_and_visible() {
    let sandbox = Sandbox::with_tree("//- src/plain.py\ndef total(): pass\n");
    let name = "<b>\u{202e}evil.py";
    std::fs::write(sandbox.root().join("src").join(name), "def evil():\n    return '\u{202e}<script>'\n")
        .unwrap();
    let module = sandbox.folder().join("module");
    std::fs::create_dir_all(&module).unwrap();
    let handle = json!({"renderHandleVersion": "0.1", "kind": "route", "id": "evil.home"});
    let declaration = json!({
        "packageId": EVIL, "moduleApiVersion": "0.1", "instanceId": "evil",
        "contributions": {
            "routes": [{"id": "home", "path": "/evil", "title": EVIL, "renderHandle": handle}],
            "sidebarItems": [{"id": "home", "label": EVIL, "routeKey": "evil:routes/home"}],
        },
    });
    let pack = json!({
        "renderRuntimeSchemaVersion": "0.1", "ownerId": "evil", "packageId": EVIL,
        "providers": [{"renderHandle": handle, "loadKind": "lazy", "template": "home.html"}],
    });
    std::fs::write(module.join("module.json"), declaration.to_string()).unwrap();
    std::fs::write(module.join("pack.json"), pack.to_string()).unwrap();
    std::fs::write(module.join("home.html"), "<p>{{ tasks[0].title }} {{ calls[0].client }} \u{202e}</p>")
        .unwrap();
    sandbox.write_user_config(&format!("[console]\nmodules = [{:?}]\n", module.to_str().unwrap()));

    let mut command = sandbox.tenon();
    command.args(["mcp", "--surface", "tasks,memory,explore"]);
    let mut client = McpClient::over_pipes(&mut command, Revision::Sessions).named(EVIL);
    client.initialize();
    client.call_tool("tasks_create", json!({"title": EVIL})).unwrap();
    client
        .call_tool(
            "tasks_create",
            json!({"parent": "PLAN-001", "title": EVIL, "description": EVIL, "tags": ["x"],
        "steps": [{"title": EVIL, "success_criteria": [EVIL]}]}),
        )
        .unwrap();
    client.call_tool("tasks_note", json!({"task": "TASK-001", "note": EVIL})).unwrap();
    client.call_tool("memory_notes_commit", json!({"content": EVIL, "title": EVIL})).unwrap();
    client
        .call_tool(
            "memory_graph_apply",
            json!({"doc": "graph", "branch": "main",
        "ops": [{"op": "node_upsert", "id": "n1", "type": "fact", "title": EVIL}]}),
        )
        .unwrap();
    client.call_tool("find", json!({"name": "evil"})).unwrap();

    let user = SignedIn::new(&sandbox);
    let file = "src/%3Cb%3E%E2%80%AEevil.py";
    for page in [
        "/console/",
        "/console/tasks",
        "/console/tasks?task=TASK-001",
        "/console/memory",
        "/console/memory?q=img",
        "/console/activity",
        "/console/workspace",
        "/console/evil",
        "/console/code?folder=src",
        "/console/code?q=evil",
        &format!("/console/code?file={file}"),
        "/console/code?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        "/console/tasks?task=%3Cimg%20src%3Dx%3E",
        "/console/problems?text=%3Cimg%20src%3Dx%3E",
        "/console/context?q=%3Cimg%20src%3Dx%3E",
        "/console/activity?client=%3Cimg%20src%3Dx%3E",
    ] {
        assert_harmless(page, &user.page(page));
    }
    assert!(
        user.page("/console/tasks?task=TASK-001")
            .contains("&lt;img src=x onerror=alert(1)&gt;&lt;U+202E&gt;␛[31m")
    );
    assert!(user.page("/console/activity").contains("&lt;img src=x"));
    assert!(user.page("/console/evil").contains("&lt;U+202E&gt;"));
    client.close();
}
