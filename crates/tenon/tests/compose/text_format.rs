//! The text format: diagnostics that read like compiler errors.

use tenon_testkit::{Sandbox, transcript};

use crate::{compose, compose_stdin};

const TWO_OWNERS: &str = r#"//- workspace.json
{
  "compositionSchemaVersion": "0.1",
  "builtins": [
    {
      "ownerId": "builtin-home",
      "contributions": {
        "routes": [
          {
            "id": "home",
            "path": "/home",
            "renderHandle": { "renderHandleVersion": "0.1", "kind": "route", "id": "home" }
          }
        ]
      }
    }
  ],
  "modules": [
    {
      "packageId": "@acme/lab",
      "moduleApiVersion": "0.1",
      "instanceId": "lab",
      "runtime": { "status": "ready" },
      "contributions": {
        "routes": [
          {
            "id": "home",
            "path": "/home",
            "renderHandle": { "renderHandleVersion": "0.1", "kind": "route", "id": "lab.home" }
          }
        ]
      }
    }
  ]
}
"#;

#[test]
fn conflict_shows_both_locations_and_both_owners() {
    let sandbox = Sandbox::with_tree(TWO_OWNERS);
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["workspace.json", "--format", "text"])), @r#"
    exit: 1
    --- stdout
    error[WCP-ROUTE-001]: Route path '/home' is claimed by multiple active contributions.
      --> workspace.json:27:21
       |
    27 |             "path": "/home",
       |                     ^^^^^^^ lab:routes/home
       |
      ::: workspace.json:10:21
       |
    10 |             "path": "/home",
       |                     ------- builtin-home:routes/home
       |
       = module: lab:routes/home (@acme/lab) at /home
       = builtin: builtin-home:routes/home at /home
       = help: change a path, or resolve it in the policy with `pathAlias` or `replace`

    --- stderr
    1 error
    "#);
}

#[test]
fn mistakes_in_a_policy_file_are_shown_in_that_file() {
    let sandbox = Sandbox::with_tree(TWO_OWNERS);
    sandbox.tree().write(
        "policy.json",
        r#"{
  "policySchemaVersion": "0.1",
  "operations": [
    { "id": "move", "op": "pathAlias", "target": "lab:routes/home", "path": "/Lab/" },
    { "id": "gone", "op": "hide", "target": "lab:routes/gone" },
    { "id": "one", "op": "reorder", "target": "lab:routes/home", "before": "builtin-home:routes/home" },
    { "id": "two", "op": "reorder", "target": "builtin-home:routes/home", "before": "lab:routes/home" }
  ]
}
"#,
    );
    let args = ["workspace.json", "--policy", "policy.json", "--format", "text"];
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &args)), @r#"
    exit: 1
    --- stdout
    error[WCP-POLICY-001]: Policy operation 'gone' cannot be applied to 'lab:routes/gone' (missing-target).
     --> policy.json:5:45
      |
    5 |     { "id": "gone", "op": "hide", "target": "lab:routes/gone" },
      |                                             ^^^^^^^^^^^^^^^^^ missing-target
      |
      = host: policy
      = help: name a contribution or claim that a module or built-in declares

    error[WCP-POLICY-001]: Policy operation 'move' cannot be applied to 'lab:routes/home' (invalid-path).
     --> policy.json:4:77
      |
    4 |     { "id": "move", "op": "pathAlias", "target": "lab:routes/home", "path": "/Lab/" },
      |                                                                             ^^^^^^^ invalid-path
      |
      = host: policy
      = module: lab:routes/home (@acme/lab) at /home
      = help: write a canonical path such as `/data-lab/runs`

    error[WCP-POLICY-001]: Policy operation 'one' cannot be applied to 'operation:one' (reorder-cycle).
     --> policy.json:6:13
      |
    6 |     { "id": "one", "op": "reorder", "target": "lab:routes/home", "before": "builtin-home:routes/home" },
      |             ^^^^^
      |
     ::: policy.json:7:13
      |
    7 |     { "id": "two", "op": "reorder", "target": "builtin-home:routes/home", "before": "lab:routes/home" }
      |             -----
      |
      = host: policy
      = module: lab:routes/home (@acme/lab) at /home
      = builtin: builtin-home:routes/home at /home
      = help: remove one operation of the cycle; all of them were ignored

    error[WCP-ROUTE-001]: Route path '/home' is claimed by multiple active contributions.
      --> workspace.json:27:21
       |
    27 |             "path": "/home",
       |                     ^^^^^^^ lab:routes/home
       |
      ::: workspace.json:10:21
       |
    10 |             "path": "/home",
       |                     ------- builtin-home:routes/home
       |
       = module: lab:routes/home (@acme/lab) at /home
       = builtin: builtin-home:routes/home at /home
       = help: change a path, or resolve it in the policy with `pathAlias` or `replace`

    --- stderr
    4 errors
    "#);
}

#[test]
fn resolved_conflict_is_reported_as_info() {
    let sandbox = Sandbox::with_tree(TWO_OWNERS);
    let policy = r#"{"policySchemaVersion": "0.1", "operations": [
  {"id": "move", "op": "pathAlias", "target": "lab:routes/home", "path": "/lab"}
]}"#;
    sandbox.tree().write("policy.json", policy);
    let args = ["workspace.json", "--policy", "policy.json", "--format", "text"];
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &args)), @r#"
    exit: 0
    --- stdout
    info[WCP-ROUTE-003]: Route path '/home' is served at '/lab' by policy 'move'.
      --> workspace.json:27:21
       |
    27 |             "path": "/home",
       |                     ^^^^^^^ served at /lab
       |
       = module: lab:routes/home (@acme/lab) at /home

    --- stderr
    composed: 2 owners, 2 contributions
    "#);
}

#[test]
fn structural_mistakes_show_their_location() {
    let sandbox = Sandbox::with_tree(
        r#"//- workspace.json
{
  "compositionSchemaVersion": "0.1",
  "modules": [
    {
      "packageId": "@acme/lab",
      "moduleApiVersion": "0.2",
      "instanceId": "old"
    },
    {
      "packageId": 7,
      "moduleApiVersion": "0.1",
      "instanceId": "lab",
      "runtime": { "status": "redy" },
      "contributions": {
        "route": [],
        "sidebarItems": [{ "id": "home", "label": "Home" }]
      }
    }
  ]
}
"#,
    );
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["workspace.json", "--format", "text"])), @r#"
    exit: 1
    --- stdout
    error[WCP-STRUCT-001]: Field 'modules[].packageId' is invalid (wrong-type).
      --> workspace.json:10:20
       |
    10 |       "packageId": 7,
       |                    ^ expected string, found number
       |
       = module: lab
       = help: write a value of the expected type

    error[WCP-STRUCT-001]: Field 'modules[].contributions.route' is invalid (unknown-collection).
      --> workspace.json:15:18
       |
    15 |         "route": [],
       |                  ^ unknown
       |
       = module: lab
       = help: remove the collection, or correct its name: did you mean `routes`?

    error[WCP-STRUCT-001]: Field 'modules[].runtime.status' is invalid (invalid-enum).
      --> workspace.json:13:30
       |
    13 |       "runtime": { "status": "redy" },
       |                              ^^^^^^ expected one of disabled, error, needs-configuration, read-only, ready, unauthorized
       |
       = module: lab
       = help: use one of the expected values: did you mean `ready`?

    error[WCP-STRUCT-001]: Field 'modules[].contributions.sidebarItems[].routeKey' is invalid (missing-field).
      --> workspace.json:16:26
       |
    16 |         "sidebarItems": [{ "id": "home", "label": "Home" }]
       |                          ^ `routeKey` is missing
       |
       = module: lab:sidebar-items/home
       = help: add the field

    error[WCP-VERSION-002]: Module API version '0.2' is not supported.
     --> workspace.json:6:27
      |
    6 |       "moduleApiVersion": "0.2",
      |                           ^^^^^ supported: 0.1
      |
      = module: old (@acme/lab)
      = help: use a module release with a supported `moduleApiVersion`

    --- stderr
    5 errors
    "#);
}

#[test]
fn invalid_names_show_the_broken_rule() {
    let sandbox = Sandbox::with_tree(
        r#"//- workspace.json
{
  "compositionSchemaVersion": "0.1",
  "modules": [
    {
      "packageId": "@acme/lab",
      "moduleApiVersion": "0.1",
      "instanceId": "lab",
      "runtime": { "status": "ready" },
      "contributions": {
        "routes": [
          {
            "id": "Home",
            "path": "/home",
            "renderHandle": { "renderHandleVersion": "0.1", "kind": "route", "id": "x" }
          },
          {
            "id": "runs",
            "path": "/runs/:id",
            "renderHandle": { "renderHandleVersion": "0.1", "kind": "route", "id": "x" }
          }
        ],
        "messageRenderers": [
          {
            "id": "text",
            "claim": "message:assistant-text",
            "renderHandle": { "renderHandleVersion": "0.1", "kind": "message-renderer", "id": "x" }
          }
        ]
      }
    }
  ]
}
"#,
    );
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["workspace.json", "--format", "text"])), @r#"
    exit: 1
    --- stdout
    error[WCP-NS-004]: Local id 'Home' is not valid (invalid-start).
      --> workspace.json:12:19
       |
    12 |             "id": "Home",
       |                   ^^^^^^ invalid-start
       |
       = module: lab:routes/Home (@acme/lab) at /home
       = help: begin with a lowercase ASCII letter or a digit

    error[WCP-RENDERER-003]: Renderer claim 'message:assistant-text' would replace the default renderer 'assistant-text'.
      --> workspace.json:25:22
       |
    25 |             "claim": "message:assistant-text",
       |                      ^^^^^^^^^^^^^^^^^^^^^^^^ protected
       |
       = module: lab:message-renderers/text (@acme/lab) for message:assistant-text
       = help: claim a custom message type, or add a message appender

    error[WCP-ROUTE-002]: Route path '/runs/:id' is not valid (dynamic-segment).
      --> workspace.json:18:21
       |
    18 |             "path": "/runs/:id",
       |                     ^^^^^^^^^^^ dynamic-segment
       |
       = module: lab:routes/runs (@acme/lab) at /runs/:id
       = help: remove the parameter; the host's router handles parameters

    --- stderr
    3 errors
    "#);
}

#[test]
fn invalid_json_shows_its_position() {
    let sandbox = Sandbox::new();
    sandbox.tree().write("twice.json", "{\n  \"modules\": [],\n  \"modules\": []\n}\n");
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["twice.json"])), @r#"
    exit: 2
    --- stderr
    error: duplicate key `modules`
     --> twice.json:3:11
      |
    3 |   "modules": []
      |           ^
      |
      = help: the input must be one UTF-8 JSON document without duplicate keys
    "#);
    insta::assert_snapshot!(transcript(&sandbox, &compose_stdin(&sandbox, &["-"], b"{\"a\": [1,")), @r#"
    exit: 2
    --- stderr
    error: EOF while parsing a value
     --> <stdin>:1:9
      |
    1 | {"a": [1,
      |         ^
      |
      = help: the input must be one UTF-8 JSON document without duplicate keys
    "#);
    insta::assert_snapshot!(transcript(&sandbox, &compose_stdin(&sandbox, &[], b"{\n\"a\": \"\xff\"}")), @"
    exit: 2
    --- stderr
    error: invalid UTF-8
    --> <stdin>:2:7
     = help: the input must be one UTF-8 JSON document without duplicate keys
    ");
    insta::assert_snapshot!(transcript(&sandbox, &compose_stdin(&sandbox, &[], "[\"é\", \"\\ud800\"]".as_bytes())), @r#"
    exit: 2
    --- stderr
    error: unexpected end of hex escape
     --> <stdin>:1:14
      |
    1 | ["é", "\ud800"]
      |              ^
      |
      = help: the input must be one UTF-8 JSON document without duplicate keys
    "#);
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["gone.json"])), @"
    exit: 2
    --- stderr
    error: cannot read `gone.json`
      caused by: No such file or directory (os error 2)
    ");
}

#[test]
fn long_lines_are_truncated_and_very_long_lines_only_referenced() {
    let sandbox = Sandbox::with_tree(TWO_OWNERS);
    let tree: serde_json::Value = serde_json::from_str(&sandbox.tree().read("workspace.json")).unwrap();
    sandbox.tree().write("line.json", &tree.to_string());
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["line.json", "--format", "text"])), @r#"
    exit: 1
    --- stdout
    error[WCP-ROUTE-001]: Route path '/home' is claimed by multiple active contributions.
     --> line.json:1:264
      |
    1 | ...es":[{"contributions":{"routes":[{"id":"home","path":"/home","renderHandle":{"id":"lab.home","kind":"route","renderHandleVersion":...
      |                                                         ^^^^^^^ lab:routes/home
      |
     ::: line.json:1:62
      |
    1 | {"builtins":[{"contributions":{"routes":[{"id":"home","path":"/home","renderHandle":{"id":"home","kind":"route","renderHandleVersion"...
      |                                                              ------- builtin-home:routes/home
      |
      = module: lab:routes/home (@acme/lab) at /home
      = builtin: builtin-home:routes/home at /home
      = help: change a path, or resolve it in the policy with `pathAlias` or `replace`

    --- stderr
    1 error
    "#);
    let long = tree.to_string().replacen("\"id\":", &format!("{}\"id\":", " ".repeat(5000)), 1);
    sandbox.tree().write("line.json", &long);
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["line.json", "--format", "text"])), @"
    exit: 1
    --- stdout
    error[WCP-ROUTE-001]: Route path '/home' is claimed by multiple active contributions.
    --> line.json:1:5264
    ::: line.json:1:5062
     = module: lab:routes/home (@acme/lab) at /home
     = builtin: builtin-home:routes/home at /home
     = help: change a path, or resolve it in the policy with `pathAlias` or `replace`

    --- stderr
    1 error
    ");
}

#[test]
fn hostile_names_cannot_write_to_the_terminal() {
    let sandbox = Sandbox::new();
    let mut input = crate::workspace(&["/\u{1b}[2J\u{202e}x"]);
    input["modules"][0]["packageId"] = "\u{1b}]0;owned\u{7}".into();
    let output = compose_stdin(&sandbox, &["--format", "text"], input.to_string().as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}') && !text.contains('\u{202e}'), "{text:?}");
}

#[test]
fn saved_diagnostics_are_shown() {
    let sandbox = Sandbox::with_tree(TWO_OWNERS);
    let outcome = compose(&sandbox, &["workspace.json"]);
    sandbox.tree().write("outcome.json", std::str::from_utf8(&outcome.stdout).unwrap());
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["diagnostics", "outcome.json", "--format", "text"])), @"
    exit: 1
    --- stdout
    error[WCP-ROUTE-001]: Route path '/home' is claimed by multiple active contributions.
     |
     = module: lab:routes/home (@acme/lab) at /home
     = builtin: builtin-home:routes/home at /home
     = help: change a path, or resolve it in the policy with `pathAlias` or `replace`

    --- stderr
    1 error
    ");
    sandbox
        .tree()
        .write("newer.json", "[\n  {\"diagnosticSchemaVersion\": \"0.2\", \"shape\": \"unknown\"}\n]\n");
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["diagnostics", "newer.json", "--format", "text"])), @"
    exit: 1
    --- stdout
    error[WCP-VERSION-004]: Diagnostic schema version '0.2' is not supported.
     |
     = host: workspace
     = help: read these diagnostics with the release that wrote them

    --- stderr
    1 error
    ");
    sandbox
        .tree()
        .write("odd.json", "[\n  {\"diagnosticSchemaVersion\": \"0.1\",\n   \"code\": \"X-1\"}\n]\n");
    insta::assert_snapshot!(transcript(&sandbox, &compose(&sandbox, &["diagnostics", "odd.json"])), @r#"
    exit: 2
    --- stderr
    error: unknown diagnostic code `X-1`
     --> odd.json:3:17
      |
    3 |    "code": "X-1"}
      |                 ^
      |
      = help: the file must hold a list of diagnostics or an outcome, as written by `tenon compose`
    "#);
}
