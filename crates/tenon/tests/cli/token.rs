//! `tenon token`: create, list, revoke.

use std::os::unix::fs::PermissionsExt;

use tenon_testkit::Sandbox;

use crate::{json, tenon};

#[test]
fn tokens_are_created_listed_and_revoked() {
    let sandbox = Sandbox::new();
    let first = json(&sandbox, &["token", "show", "--json"]);
    let again = tenon(&sandbox, &["token", "show"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap().trim(), first["token"]);
    let second = json(&sandbox, &["token", "rotate", "--surface", "code,tasks", "--json"]);
    assert_eq!(second["surfaces"], serde_json::json!(["code", "tasks"]));
    let all = json(&sandbox, &["token", "show", "--all", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert!(all[0].get("token").is_none(), "the list contains a secret");
    assert!(tenon(&sandbox, &["token", "revoke", first["id"].as_str().unwrap()]).status.success());
    assert_eq!(tenon(&sandbox, &["token", "revoke", "x"]).status.code(), Some(1));
    let file = sandbox.dir("state").join("tenon/tokens.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
