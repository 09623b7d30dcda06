//! The policy: every reason code, checks that ignore runtime status, and effects on active contributions only.

use serde_json::{Value, json};

use crate::inputs::{
    appender, composed, keys, module, module_in, route, sidebar_item, summaries, tool, with, workspace,
};

fn routes(ids: &[&str]) -> Value {
    let routes: Vec<Value> = ids.iter().map(|id| route(id, &format!("/{id}"))).collect();
    json!({"routes": routes})
}

fn reorder(id: &str, target: &str, place: &str, anchor: &str) -> Value {
    json!({"id": id, "op": "reorder", "target": format!("aaa:routes/{target}"), place: format!("aaa:routes/{anchor}")})
}

#[test]
fn invalid_operation_reports_its_reason() {
    let aaa = json!({
        "routes": [route("home", "/home"), route("runs", "/runs")],
        "sidebarItems": [sidebar_item("home", "aaa:routes/home")],
        "toolRenderers": [tool("card", "tool:x")],
    });
    for (operation, reason) in [
        (json!({"op": "explode", "target": "aaa:routes/home"}), "unknown-operation"),
        (json!({"op": "hide", "target": "aaa:routes/gone"}), "missing-target"),
        (json!({"op": "hide", "target": "zzz:routes/home"}), "missing-target"),
        (json!({"op": "hide", "target": ""}), "invalid-target"),
        (json!({"op": "hide", "target": "*"}), "invalid-target"),
        (json!({"op": "hide", "target": "aaa:routes/*"}), "invalid-target"),
        (json!({"op": "hide", "target": "aaa:pages/home"}), "invalid-target"),
        (json!({"op": "hide", "target": "tool:x"}), "invalid-target"),
        (json!({"op": "pathAlias", "target": "aaa:sidebar-items/home", "path": "/x"}), "invalid-target"),
        (json!({"op": "pathAlias", "target": "aaa:sidebar-items/gone", "path": "/x"}), "invalid-target"),
        (
            json!({"op": "rendererOverride", "target": "aaa:tool-renderers/card", "use": "aaa:tool-renderers/card"}),
            "invalid-target",
        ),
        (
            json!({"op": "rendererOverride", "target": "tool:*", "use": "aaa:tool-renderers/card"}),
            "invalid-target",
        ),
        (
            json!({"op": "rendererOverride", "target": "tool:y", "use": "aaa:tool-renderers/card"}),
            "missing-target",
        ),
        (json!({"op": "rendererOverride", "target": "tool:x"}), "missing-use"),
        (
            json!({"op": "rendererOverride", "target": "tool:x", "use": "aaa:tool-renderers/gone"}),
            "missing-use",
        ),
        (json!({"op": "rendererOverride", "target": "tool:x", "use": "aaa:routes/home"}), "invalid-use"),
        (json!({"op": "replace", "target": "aaa:routes/home"}), "missing-use"),
        (json!({"op": "replace", "target": "aaa:routes/home", "use": "aaa:routes/gone"}), "missing-use"),
        (
            json!({"op": "replace", "target": "aaa:routes/home", "use": "aaa:sidebar-items/home"}),
            "invalid-use",
        ),
        (json!({"op": "replace", "target": "aaa:routes/home", "use": "nonsense"}), "invalid-use"),
        (
            json!({"op": "replace", "target": "aaa:routes/home", "use": "aaa:routes/home"}),
            "conflicting-operations",
        ),
        (json!({"op": "pathAlias", "target": "aaa:routes/home"}), "invalid-path"),
        (json!({"op": "pathAlias", "target": "aaa:routes/home", "path": "Home"}), "invalid-path"),
        (json!({"op": "pathAlias", "target": "aaa:routes/home", "path": "/home/"}), "invalid-path"),
        (json!({"op": "reorder", "target": "aaa:routes/home"}), "missing-use"),
        (json!({"op": "reorder", "target": "aaa:routes/home", "before": "aaa:routes/gone"}), "missing-use"),
        (
            json!({"op": "reorder", "target": "aaa:routes/home", "after": "aaa:sidebar-items/home"}),
            "invalid-use",
        ),
        (
            json!({"op": "reorder", "target": "aaa:routes/home", "before": "aaa:routes/runs", "after": "aaa:routes/runs"}),
            "invalid-use",
        ),
        (json!({"op": "reorder", "target": "aaa:routes/home", "before": "aaa:routes/home"}), "reorder-cycle"),
    ] {
        let shown = operation.to_string();
        let operation = with(operation, "id", "one");
        let outcome = composed(&workspace(vec![module("aaa", aaa.clone())], vec![operation]));
        assert_eq!(outcome.diagnostics.len(), 1, "{shown}");
        let details = &outcome.diagnostics[0].details;
        assert_eq!(
            (details.text("policyId"), details.text("reason")),
            (Some("one"), Some(reason)),
            "{shown}"
        );
    }
}

#[test]
fn arguments_of_other_operations_are_unknown_fields() {
    let hide = json!({"id": "one", "op": "hide", "target": "aaa:routes/home", "path": "/x", "note": "why"});
    let outcome = composed(&workspace(vec![module("aaa", routes(&["home"]))], vec![hide]));
    let fields: Vec<_> =
        outcome.diagnostics.iter().map(|diagnostic| diagnostic.details.text("field").unwrap()).collect();
    assert_eq!(fields, ["policy.operations[].note", "policy.operations[].path"]);
    assert_eq!(outcome.diagnostics[1].details.get("expected").unwrap(), &json!(["id", "op", "target"]));
}

#[test]
fn each_group_of_conflicting_operations_is_one_diagnostic() {
    let hide =
        |id: &str, target: &str| json!({"id": id, "op": "hide", "target": format!("aaa:routes/{target}")});
    let alias = |id: &str, target: &str, path: &str| json!({"id": id, "op": "pathAlias", "target": format!("aaa:routes/{target}"), "path": path});
    let replace = |id: &str, target: &str, with: &str| json!({"id": id, "op": "replace", "target": format!("aaa:routes/{target}"), "use": format!("aaa:routes/{with}")});
    let cases: Vec<(Vec<Value>, Vec<&str>)> = vec![
        (vec![hide("two", "a"), hide("one", "a")], vec!["duplicate-operation one aaa:routes/a"]),
        (
            vec![hide("same", "b"), alias("same", "a", "/x")],
            vec!["duplicate-operation same aaa:routes/a aaa:routes/b"],
        ),
        (
            vec![alias("two", "a", "/x"), alias("one", "a", "/y")],
            vec!["conflicting-operations one aaa:routes/a"],
        ),
        (
            vec![alias("three", "a", "/x"), alias("two", "a", "/x"), alias("one", "a", "/y")],
            vec!["conflicting-operations one aaa:routes/a"],
        ),
        (vec![hide("one", "a"), alias("two", "a", "/x")], vec!["conflicting-operations one aaa:routes/a"]),
        (vec![hide("one", "a"), replace("two", "a", "b")], vec!["conflicting-operations one aaa:routes/a"]),
        (
            vec![replace("one", "a", "b"), replace("two", "b", "c")],
            vec!["conflicting-operations one aaa:routes/a aaa:routes/b"],
        ),
        (
            vec![replace("one", "a", "b"), hide("two", "b")],
            vec!["conflicting-operations one aaa:routes/a aaa:routes/b"],
        ),
        (
            vec![reorder("one", "a", "before", "b"), reorder("two", "a", "after", "c")],
            vec!["conflicting-operations one aaa:routes/a"],
        ),
        (
            vec![hide("one", "a"), hide("two", "a"), alias("p", "b", "/x"), alias("q", "b", "/y")],
            vec!["conflicting-operations p aaa:routes/b", "duplicate-operation one aaa:routes/a"],
        ),
        // No conflict.
        (vec![alias("one", "a", "/x"), reorder("two", "a", "after", "c")], vec![]),
        (
            vec![replace("one", "a", "c"), alias("two", "b", "/x"), reorder("three", "b", "before", "a")],
            vec![],
        ),
    ];
    for (operations, expected) in cases {
        let shown = json!(operations).to_string();
        let outcome = composed(&workspace(vec![module("aaa", routes(&["a", "b", "c"]))], operations));
        let mut faults = summaries(&outcome);
        faults.retain(|fault| fault.starts_with("WCP-POLICY-001"));
        let mut expected: Vec<String> =
            expected.iter().map(|fault| format!("WCP-POLICY-001 {fault}")).collect();
        faults.sort();
        expected.sort();
        assert_eq!(faults, expected, "{shown}");
        for diagnostic in outcome.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()) {
            let id = diagnostic.details.text("policyId").unwrap();
            assert_eq!(diagnostic.details.text("target"), Some(format!("operation:{id}").as_str()));
        }
    }
}

#[test]
fn claim_and_key_with_the_same_text_are_different_targets() {
    let modules = vec![
        module("tool", json!({"routes": [route("home", "/tool")]})),
        module("aaa", json!({"toolRenderers": [tool("card", "tool:routes/home")]})),
        module("bbb", json!({"toolRenderers": [tool("card", "tool:routes/home")]})),
    ];
    let operations = vec![
        json!({"id": "one", "op": "hide", "target": "tool:routes/home"}),
        json!({"id": "two", "op": "rendererOverride", "target": "tool:routes/home", "use": "aaa:tool-renderers/card"}),
    ];
    let outcome = composed(&workspace(modules, operations));
    assert_eq!(summaries(&outcome), ["WCP-RENDERER-004 two aaa:tool-renderers/card bbb:tool-renderers/card"]);
    assert!(keys(&outcome, "routes").is_empty());
}

#[test]
fn reorder_cycle_of_any_length_is_one_diagnostic() {
    let names = ["a", "b", "c", "d", "e"];
    for length in 2..=5 {
        for place in ["before", "after"] {
            let operations: Vec<Value> = (0..length)
                .map(|n| reorder(&format!("op-{n}"), names[n], place, names[(n + 1) % length]))
                .collect();
            let outcome = composed(&workspace(vec![module("aaa", routes(&names))], operations.clone()));
            let members: Vec<String> =
                names[..length].iter().map(|name| format!("aaa:routes/{name}")).collect();
            assert_eq!(
                summaries(&outcome),
                [format!("WCP-POLICY-001 reorder-cycle op-0 {}", members.join(" "))]
            );

            let open = operations[1..].to_vec();
            assert!(composed(&workspace(vec![module("aaa", routes(&names))], open)).ok());
        }
    }
}

#[test]
fn two_cycles_are_two_diagnostics_and_operations_outside_them_are_valid() {
    let operations = vec![
        reorder("ab", "a", "before", "b"),
        reorder("ba", "b", "before", "a"),
        reorder("cd", "c", "before", "d"),
        reorder("dc", "d", "before", "c"),
        reorder("ea", "e", "before", "a"),
    ];
    let outcome = composed(&workspace(vec![module("aaa", routes(&["a", "b", "c", "d", "e"]))], operations));
    assert_eq!(
        summaries(&outcome),
        [
            "WCP-POLICY-001 reorder-cycle ab aaa:routes/a aaa:routes/b",
            "WCP-POLICY-001 reorder-cycle cd aaa:routes/c aaa:routes/d",
        ]
    );
}

#[test]
fn cycle_through_a_replacement_is_reported() {
    let operations = vec![
        json!({"id": "swap", "op": "replace", "target": "aaa:routes/a", "use": "aaa:routes/b"}),
        reorder("ac", "a", "before", "c"),
        reorder("cb", "c", "before", "b"),
    ];
    let outcome = composed(&workspace(vec![module("aaa", routes(&["a", "b", "c"]))], operations));
    assert_eq!(summaries(&outcome), ["WCP-POLICY-001 reorder-cycle ac aaa:routes/a aaa:routes/c"]);
}

#[test]
fn order_is_policy_then_order_field_then_key() {
    let routes = json!({"routes": [
        with(route("z", "/z"), "order", -1),
        with(route("y", "/y"), "order", 3),
        with(route("x", "/x"), "order", 3),
        route("b", "/b"),
        route("a", "/a"),
    ]});
    let plain = composed(&workspace(vec![module("aaa", routes.clone())], vec![]));
    assert_eq!(keys(&plain, "routes"), ["z", "x", "y", "a", "b"].map(|id| format!("aaa:routes/{id}")));
    let operations = vec![reorder("one", "b", "before", "z"), reorder("two", "x", "after", "a")];
    let moved = composed(&workspace(vec![module("aaa", routes)], operations));
    assert_eq!(keys(&moved, "routes"), ["y", "a", "x", "b", "z"].map(|id| format!("aaa:routes/{id}")));
}

#[test]
fn appenders_ignore_the_order_field() {
    let appenders =
        json!({"messageAppenders": [with(appender("a"), "order", 9), with(appender("b"), "order", 1)]});
    let outcome = composed(&workspace(vec![module("aaa", appenders)], vec![]));
    assert_eq!(keys(&outcome, "messageAppenders"), ["aaa:message-appenders/a", "aaa:message-appenders/b"]);
}

#[test]
fn hidden_entry_can_be_a_reorder_anchor() {
    let operations = vec![
        reorder("one", "c", "before", "b"),
        reorder("two", "b", "before", "a"),
        json!({"id": "three", "op": "hide", "target": "aaa:routes/b"}),
    ];
    let outcome = composed(&workspace(vec![module("aaa", routes(&["a", "b", "c"]))], operations));
    // Hiding and reordering one target contradict each other; an anchor may be hidden.
    assert!(!outcome.ok());
    let operations = vec![
        reorder("one", "c", "before", "b"),
        reorder("two", "a", "after", "b"),
        json!({"id": "three", "op": "hide", "target": "aaa:routes/b"}),
    ];
    let outcome = composed(&workspace(vec![module("aaa", routes(&["a", "b", "c"]))], operations));
    assert_eq!(keys(&outcome, "routes"), ["aaa:routes/c", "aaa:routes/a"]);
}

#[test]
fn operation_on_an_inactive_target_reports_nothing_and_has_no_effect() {
    let everything = |id: &str| {
        json!({
            "routes": [route("home", &format!("/{id}")), route("runs", &format!("/{id}/runs"))],
            "toolRenderers": [tool("card", &format!("tool:{id}"))],
        })
    };
    let operations = vec![
        json!({"id": "1", "op": "hide", "target": "off:routes/home"}),
        json!({"id": "2", "op": "replace", "target": "aaa:routes/home", "use": "off:routes/runs"}),
        json!({"id": "3", "op": "pathAlias", "target": "off:routes/home-alias", "path": "/aaa"}),
        json!({"id": "4", "op": "rendererOverride", "target": "tool:off", "use": "off:tool-renderers/card"}),
        json!({"id": "5", "op": "reorder", "target": "aaa:routes/runs", "before": "off:routes/home"}),
    ];
    for status in ["disabled", "unauthorized", "needs-configuration", "error"] {
        let mut off = everything("off");
        off["routes"].as_array_mut().unwrap().push(route("home-alias", "/off/alias"));
        let modules = vec![module("aaa", everything("aaa")), module_in(status, "off", off)];
        let outcome = composed(&workspace(modules, operations.clone()));
        assert!(outcome.ok() && outcome.diagnostics.is_empty(), "{status}: {:?}", summaries(&outcome));
        assert_eq!(keys(&outcome, "routes"), ["aaa:routes/home", "aaa:routes/runs"]);
    }
}

#[test]
fn contradicting_operations_are_reported_for_inactive_targets() {
    let inactive = module_in("disabled", "aaa", routes(&["a", "b"]));
    let operations = vec![reorder("ab", "a", "before", "b"), reorder("ba", "b", "before", "a")];
    let outcome = composed(&workspace(vec![inactive], operations));
    assert_eq!(summaries(&outcome), ["WCP-POLICY-001 reorder-cycle ab aaa:routes/a aaa:routes/b"]);
}

#[test]
fn references_to_rejected_or_unreadable_declarations_are_not_reported() {
    let broken = vec![
        with(module("aaa", routes(&["home"])), "packageId", 7),
        with(module("bbb", routes(&["home"])), "moduleApiVersion", "9"),
        module("ccc", json!({"routes": {}})),
        module("ddd", json!({"routes": [{"id": "home"}, {"path": "/nameless"}]})),
        module(
            "eee",
            json!({"sidebarItems": [
                sidebar_item("1", "aaa:routes/home"),
                sidebar_item("2", "bbb:routes/anything"),
                sidebar_item("3", "ccc:routes/anything"),
                sidebar_item("4", "ddd:routes/home"),
                sidebar_item("5", "ddd:routes/nameless"),
                sidebar_item("6", "eee:routes/nowhere"),
                sidebar_item("7", "nonsense"),
                sidebar_item("8", "eee:sidebar-items/1"),
            ]}),
        ),
    ];
    let hide = |id: &str, target: &str| json!({"id": id, "op": "hide", "target": target});
    let operations = vec![
        hide("1", "aaa:routes/home"),
        hide("2", "bbb:routes/anything"),
        hide("3", "ccc:routes/anything"),
        hide("4", "ddd:routes/home"),
        hide("5", "eee:routes/nowhere"),
    ];
    let outcome = composed(&workspace(broken, operations));
    let other: Vec<String> = summaries(&outcome)
        .into_iter()
        .filter(|line| !line.contains("missing-field") && !line.contains("wrong-type"))
        .collect();
    assert_eq!(
        other,
        [
            "WCP-POLICY-001 missing-target 5",
            "WCP-STRUCT-001 unknown-route-key eee:sidebar-items/6",
            "WCP-STRUCT-001 unknown-route-key eee:sidebar-items/7",
            "WCP-STRUCT-001 unknown-route-key eee:sidebar-items/8",
            "WCP-VERSION-002",
        ]
    );
}

#[test]
fn route_key_that_names_a_sidebar_item_is_rejected_in_any_order() {
    let items = [sidebar_item("1", "aaa:sidebar-items/2"), sidebar_item("2", "aaa:routes/gone")];
    for items in [vec![items[0].clone(), items[1].clone()], vec![items[1].clone(), items[0].clone()]] {
        let outcome = composed(&workspace(vec![module("aaa", json!({"sidebarItems": items}))], vec![]));
        assert_eq!(
            summaries(&outcome),
            [1, 2].map(|n| format!("WCP-STRUCT-001 unknown-route-key aaa:sidebar-items/{n}"))
        );
    }
}
