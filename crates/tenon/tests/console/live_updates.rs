//! Events of an open page: what other processes write to the store arrives, on both backends.

use tenon_testkit::console::SignedIn;
use tenon_testkit::{Sandbox, postgres};

/// Another process, without the daemon, adds a task while the page is open.
fn assert_foreign_write_arrives(sandbox: &Sandbox) {
    let user = SignedIn::new(sandbox);
    assert_eq!(user.post("/console/tasks", "action=add&title=First").status, 303);
    let mut events = user.events();
    events.until("event: hello");
    // The page reads itself again when it begins to follow; what comes later is the write.
    events.until("work");
    let added = sandbox.tenon().args(["tasks", "add", "Written elsewhere"]).output().unwrap();
    assert!(added.status.success(), "{added:?}");
    events.until("work");
    assert!(user.page("/console/tasks").contains("Written elsewhere"));
}

#[test]
fn write_of_another_process_arrives_on_sqlite() {
    assert_foreign_write_arrives(&Sandbox::new());
}

#[test]
fn write_of_another_process_arrives_on_postgresql() {
    let sandbox = Sandbox::new();
    sandbox.write_user_config(&format!("[work]\nstore = {:?}\n", postgres::database()));
    assert_foreign_write_arrives(&sandbox);
}
