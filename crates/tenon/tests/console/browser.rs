//! What a person does on the pages, in Chromium, with real language servers and a real store: `tests/console/browser.mjs`.
//!
//! `TENON_SCREENSHOTS=DIR` also writes a picture of every page.

use tenon_testkit::{Sandbox, program, repository_root};

#[test]
fn pages_work_in_chromium() {
    let sandbox = Sandbox::with_example("polyglot");
    let modules = sandbox.folder().join("modules");
    std::fs::create_dir(&modules).unwrap();
    sandbox.write_user_config(&format!(
        "[console]\nmodules = [{:?}]\neditor = \"vscode\"\n[context]\ncache_root = {:?}\n",
        modules.join("release-notes").to_str().unwrap(),
        sandbox.folder().join("caches").to_str().unwrap()
    ));
    let mut node = sandbox.command(program::tool("node"));
    node.arg(repository_root().join("tests/console/browser.mjs"))
        .env("TENON", program::tenon())
        .env("TENON_WORKSPACE", sandbox.root())
        .env("TENON_TOOLS", repository_root().join("target/tools/node/package.json"))
        .env("TENON_MODULES", &modules)
        .env("TENON_EXAMPLE", repository_root().join("examples/modules/release-notes"));
    if let Some(folder) = std::env::var_os("TENON_SCREENSHOTS") {
        node.env("TENON_SCREENSHOTS", folder);
    }
    let output = node.output().unwrap();
    let text =
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
    sandbox.assert_no_processes();
}
