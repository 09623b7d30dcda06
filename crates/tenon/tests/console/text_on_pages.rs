//! Text that others wrote is shown as text, whatever it contains.

use serde_json::json;
use tenon_testkit::console::SignedIn;
use tenon_testkit::{McpClient, Revision, Sandbox};

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

#[test]
fn diagnostics_and_messages_of_servers_are_text() {
    let evil = format!("{EVIL}<script>alert(2)</script>\u{2066}");
    let sandbox = Sandbox::with_tree("//- a.fake\nbad\n");
    let found = json!({"line": 0, "message": evil, "source": evil, "code": evil, "severity": 1});
    let publish = json!([{"publish": {"uri": "$uri", "diagnostics": [found]}}]);
    let message =
        json!([{"notify": {"method": "window/showMessage", "params": {"type": 1, "message": evil}}}]);
    let good = json!({
        "capabilities": {"textDocumentSync": 2}, "initialize": {"before": message},
        "rules": [{"on": "textDocument/didOpen", "do": publish}, {"on": "textDocument/didChange", "do": publish}],
    });
    let folder = sandbox.dir("state");
    let servers = json!({"good": tenon_fake_lsp::entry(&folder, "good", good)});
    sandbox.write_user_config(&toml::to_string(&json!({"servers": servers})).unwrap());
    let user = SignedIn::new(&sandbox);
    let deadline = std::time::Instant::now() + tenon_testkit::PATIENCE;
    loop {
        let problems = user.page("/console/problems");
        assert_harmless("problems", &problems);
        assert!(!problems.contains("<script>alert"), "{problems}");
        if problems.contains("&lt;script&gt;alert(2)") && problems.contains("&lt;U+202E&gt;␛[31m") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the diagnostic is not on the page: {problems}");
    }
    assert_harmless("overview", &user.page("/console/"));
}

#[test]
fn last_words_of_broken_servers_are_text() {
    let sandbox = Sandbox::with_tree("//- a.fake\nbad\n");
    let refusing = json!({"capabilities": {}, "initialize": {"refuse": EVIL}});
    let last_words = format!("printf '%s' '{}' >&2; exit 3", EVIL.replace('\'', ""));
    let servers = json!({
        "refusing": tenon_fake_lsp::entry(&sandbox.dir("state"), "refusing", refusing),
        "dying": {"command": "/bin/sh", "args": ["-c", last_words], "extensions": [".fake"]},
    });
    sandbox.write_user_config(&toml::to_string(&json!({"servers": servers})).unwrap());
    let user = SignedIn::new(&sandbox);
    let deadline = std::time::Instant::now() + tenon_testkit::PATIENCE;
    loop {
        let (problems, overview) = (user.page("/console/problems"), user.page("/console/"));
        assert_harmless("problems", &problems);
        assert_harmless("overview", &overview);
        // Nothing is known about the file, and the page does not show zeros.
        assert!(problems.contains("not known yet") && !problems.contains("<b>0</b>"), "{problems}");
        if overview.contains("&lt;img src=x") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{overview}");
    }
}
