//! Every page says what is going on when something it needs is missing, broken or huge.

use std::os::unix::fs::PermissionsExt;

use tenon_testkit::Sandbox;
use tenon_testkit::console::SignedIn;
use tenon_testkit::http::send;

const ROUTE: &str = r#"{"renderHandleVersion": "0.1", "kind": "route", "id": "x.home"}"#;

/// A module with one page and this template.
fn module(sandbox: &Sandbox, id: &str, template: &[u8]) -> String {
    let folder = sandbox.folder().join(id);
    std::fs::create_dir_all(&folder).unwrap();
    let declaration = format!(
        r#"{{"packageId": "x", "moduleApiVersion": "0.1", "instanceId": "{id}", "contributions": {{
        "routes": [{{"id": "home", "path": "/{id}", "renderHandle": {ROUTE}}}],
        "sidebarItems": [{{"id": "home", "label": "{id}", "routeKey": "{id}:routes/home"}}]}}}}"#
    );
    let pack = format!(
        r#"{{"renderRuntimeSchemaVersion": "0.1", "ownerId": "{id}", "packageId": "x",
        "providers": [{{"renderHandle": {ROUTE}, "loadKind": "lazy", "template": "home.html"}}]}}"#
    );
    std::fs::write(folder.join("module.json"), declaration).unwrap();
    std::fs::write(folder.join("pack.json"), pack).unwrap();
    std::fs::write(folder.join("home.html"), template).unwrap();
    format!("{:?}", folder.to_str().unwrap())
}

#[test]
fn broken_modules_show_a_fallback_and_the_console_lives() {
    let sandbox = Sandbox::with_tree("//- readme.md\nx\n");
    let huge = module(&sandbox, "huge", &vec![b'x'; 10 * 1024 * 1024]);
    let endless = module(
        &sandbox,
        "endless",
        b"{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
    );
    let wrong = module(&sandbox, "wrong", b"{{ nothing.here.at.all }}");
    let fine = module(&sandbox, "fine", b"<p>It works in {{ workspace.name }}</p>");
    let unreadable = module(&sandbox, "unreadable", b"");
    std::fs::write(sandbox.folder().join("unreadable/module.json"), "{").unwrap();
    let absent = format!("{:?}", sandbox.folder().join("absent").to_str().unwrap());
    let list = [&huge, &endless, &wrong, &fine, &unreadable, &absent].map(String::as_str).join(", ");
    sandbox.write_user_config(&format!("[console]\nmodules = [{list}]\n"));
    let user = SignedIn::new(&sandbox);
    for (id, code) in [("huge", "WCP-HANDLE-005"), ("endless", "WCP-HANDLE-006"), ("wrong", "WCP-HANDLE-006")]
    {
        let page = user.page(&format!("/console/{id}"));
        assert!(page.contains("surface-fallback") && page.contains(code), "{id}: {page}");
        assert!(page.contains("href=\"&#x2f;console&#x2f;fine\"") || page.contains("/console/fine"), "{id}");
    }
    assert!(user.page("/console/fine").contains("It works in w"));
    let workspace = user.page("/console/workspace");
    for text in ["module.json", "absent", "WCP-HANDLE-005", "WCP-HANDLE-006"] {
        assert!(workspace.contains(text), "{text}: {workspace}");
    }
    assert_eq!(user.get("/console/unreadable").status, 404);
    // A repaired module needs no restart.
    std::fs::write(sandbox.folder().join("wrong/home.html"), "<p>repaired</p>").unwrap();
    let deadline = std::time::Instant::now() + tenon_testkit::PATIENCE;
    while !user.page("/console/wrong").contains("repaired") {
        assert!(std::time::Instant::now() < deadline, "the change was not noticed");
    }
}

#[test]
fn pages_without_servers_files_or_a_store_say_so() {
    let sandbox = Sandbox::new().unprivileged();
    let user = SignedIn::new(&sandbox);
    assert!(user.page("/console/").contains("No language server runs"));
    assert!(user.page("/console/code").contains("no source files"));
    assert!(user.page("/console/activity").contains("No calls yet"));
    assert!(user.page("/console/context").contains("context.cache_root"));
    assert_eq!(user.post("/console/tasks", "action=add&title=First").status, 303);
    assert!(user.page("/console/tasks").contains("First"));

    // Read-only: what there is can be read, and a change says why it failed.
    let data = sandbox.dir("data").join("tenon");
    let set = |mode: u32| {
        for entry in std::fs::read_dir(&data).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let folder_mode = if mode & 0o200 == 0 { 0o500 } else { 0o700 };
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(folder_mode)).unwrap();
    };
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
    set(0o400);
    let user = SignedIn::new(&sandbox);
    let page = user.page("/console/tasks");
    let refused = user.post("/console/tasks", "action=add&title=Second");
    assert_eq!(refused.status, 303);
    assert!(user.page("/console/tasks").contains("notice-failed"), "{page}");
    set(0o600);

    // Gone: a page names the failure or the store starts empty; it never breaks.
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::write(&data, "not a folder").unwrap();
    let user = SignedIn::new(&sandbox);
    for page in ["/console/tasks", "/console/memory"] {
        assert!(user.page(page).contains("notice-failed"), "{page}");
    }
}

#[test]
fn page_names_a_locked_store_and_a_change_waits_for_it() {
    let sandbox = Sandbox::new();
    let user = SignedIn::new(&sandbox);
    assert_eq!(user.post("/console/tasks", "action=add&title=First").status, 303);
    let file = sandbox.dir("data").join("tenon/work.sqlite3");

    // Another process writes: pages read on, and a change comes after it.
    let mut other = rusqlite::Connection::open(&file).unwrap();
    let writing = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let token = user.form_token();
    let form = user.form("/console/tasks", &format!("form_token={token}&action=add&title=Second"));
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| send(user.address, &form).unwrap().status);
        let page = user.page("/console/tasks");
        assert!(page.contains("First") && !page.contains("Second"), "{page}");
        writing.commit().unwrap();
        assert_eq!(changing.join().unwrap(), 303);
    });
    assert!(user.page("/console/tasks").contains("Second"));

    // Another process keeps everyone out.
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;").unwrap();
    let user = SignedIn::new(&sandbox);
    for page in ["/console/tasks", "/console/memory"] {
        assert!(user.page(page).contains("another process may have locked it"), "{page}");
    }
    assert!(user.page("/console/").contains("Overview"), "other pages need no store");
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    let deadline = std::time::Instant::now() + tenon_testkit::PATIENCE;
    while !user.page("/console/tasks").contains("Second") {
        assert!(std::time::Instant::now() < deadline, "the store was not opened after the lock went");
    }
}
