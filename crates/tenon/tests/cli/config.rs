//! `tenon config`, and invalid settings in every command.

use tenon_testkit::Sandbox;

use crate::{json, tenon, transcript};

#[test]
fn invalid_settings_are_shown_with_their_line_and_a_hint() {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n# settings\n[limits]\npage_size = 10\n\n[mcp]\ncontent = \"html\"\n",
    );
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["config", "show"])), @r#"
        exit: 3
        --- stderr
        error: unknown key `limits.page_size`
         --> [SANDBOX]/w/tenon.toml:3:1
          |
        3 | page_size = 10
          | ^^^^^^^^^
          |
          = hint: did you mean `limits.max_page_size`?
        error: `mcp.content` must be `auto`, `structured` or `text`, not `html`
         --> [SANDBOX]/w/tenon.toml:6:11
          |
        6 | content = "html"
          |           ^^^^^^
        "#);
    for command in [&["mcp"][..], &["up"], &["serve"], &["mcp", "--no-daemon"], &["trust"]] {
        assert_eq!(tenon(&sandbox, command).status.code(), Some(3), "{command:?}");
    }
}

#[test]
fn invalid_environment_variable_is_named() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.args(["config", "show"]).env("TENON_HTTP_PORT", "http");
    insta::assert_snapshot!(transcript(&sandbox, &mut command), @"
        exit: 3
        --- stderr
        error: `http.port` must be a whole number from 0 to 65535 (the environment variable `TENON_HTTP_PORT`)
        ");
}

#[test]
fn show_prints_the_origin_of_each_setting() {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n[limits]\nmax_page_size = 900\nmax_items_nonpaged = 7\n[workspace]\nignore = [\"gen/\"]\n\
         [mcp]\nsurfaces = [\"edit\"]\n[edit]\nallow = [\"/\"]\n",
    );
    let user = "[workspace]\nignore = [\"*.log\"]\n[work]\nstore = \"postgres://ada:hunter2@db/plans\"\n";
    sandbox.write_user_config(user);
    let mut command = sandbox.tenon();
    command
        .args(["config", "show", "--explicit"])
        .env("TENON_MCP_CONTENT", "text")
        .env("TENON_MPC_CONTENT", "x");
    insta::assert_snapshot!(transcript(&sandbox, &mut command), @r#"
        exit: 0
        --- stdout
        limits.max_items_nonpaged = 7  # [SANDBOX]/w/tenon.toml:3
        limits.max_page_size = 200  # [SANDBOX]/w/tenon.toml:2; 900 is above the maximum, 200
        mcp.content = "text"  # $TENON_MCP_CONTENT
        work.store = "postgres://ada:[redacted]@db/plans"  # [SANDBOX]/config/tenon/config.toml:4
        workspace.ignore = ["*.log","gen/"]  # [SANDBOX]/config/tenon/config.toml:2, [SANDBOX]/w/tenon.toml:5
        --- stderr
        root: [SANDBOX]/w (untrusted)
        ignored: `edit.allow` in [SANDBOX]/w/tenon.toml:9: only your own configuration may set it
        ignored: `mcp.surfaces` in [SANDBOX]/w/tenon.toml:7: the workspace is not trusted
        ignored: unknown environment variable `TENON_MPC_CONTENT`; did you mean `TENON_MCP_CONTENT`?
        "#);

    let shown = json(&sandbox, &["config", "show", "--json"]);
    assert_eq!(shown["trust"], "untrusted");
    assert_eq!(shown["ignored"].as_array().unwrap().len(), 2);
    let keys = shown["settings"].as_array().unwrap().iter().map(|setting| setting["key"].as_str().unwrap());
    assert!(keys.is_sorted());
}

#[test]
fn root_is_the_nearest_folder_with_a_marker() {
    let sandbox = Sandbox::with_tree("//- .git/HEAD\nx\n//- deep/er/file\nx\n");
    let mut command = sandbox.tenon();
    command.current_dir(sandbox.root().join("deep/er")).args(["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(status["root"], sandbox.root().to_str().unwrap());
}

#[test]
fn printed_schema_equals_the_committed_one() {
    let sandbox = Sandbox::new();
    let printed = tenon(&sandbox, &["config", "schema"]).stdout;
    assert_eq!(printed, include_bytes!("../../../../schemas/tenon.schema.json"));
}
