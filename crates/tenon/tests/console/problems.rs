//! Which problems are new: since the last edit, and since the last commit.

use serde_json::json;
use tenon_testkit::console::SignedIn;
use tenon_testkit::{PATIENCE, Sandbox};

/// Reads a page until it has the text.
fn page_with(user: &SignedIn, path: &str, text: &str) -> String {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let page = user.page(path);
        if page.contains(text) {
            return page;
        }
        assert!(std::time::Instant::now() < deadline, "no {text:?}: {page}");
    }
}

#[test]
fn new_problems_are_told_from_old_ones() {
    let sandbox = Sandbox::with_tree("//- old.fake\nbad\n//- new.fake\ngood\n");
    let linter = tenon_fake_lsp::entry(&sandbox.dir("state"), "linter", tenon_fake_lsp::scripts::linter());
    sandbox.write_user_config(&toml::to_string(&json!({"servers": {"linter": linter}})).unwrap());
    let user = SignedIn::new(&sandbox);
    assert!(user.page("/console/problems?since=head").contains("notice-failed"), "there is no repository");
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "-m", "first"],
    ] {
        assert!(sandbox.command("git").args(arguments).status().unwrap().success());
    }
    let page = page_with(&user, "/console/problems", "1 problem in 1 file");
    assert!(page.contains("old.fake") && !page.contains("state-new"), "{page}");
    std::fs::write(sandbox.root().join("new.fake"), "bad\n").unwrap();
    for since in ["edit", "head"] {
        let page = page_with(&user, &format!("/console/problems?since={since}"), "1 problem in 1 file");
        assert!(page.contains("new.fake") && page.contains("state-new"), "{since}: {page}");
        assert!(!page.contains("?file=old.fake"), "{since}: {page}");
    }
    let filtered = user.page("/console/problems?severity=warning");
    assert!(filtered.contains("No problems match."), "{filtered}");
}
