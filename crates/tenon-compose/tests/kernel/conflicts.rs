//! Conflicts name all owners, order never decides them, and only alias, override and replace resolve them.

use serde_json::json;

use crate::inputs::{
    composed, keys, module, module_in, route, sidebar_item, summaries, tool, with, workspace,
};

#[test]
fn routes_on_one_path_are_one_conflict() {
    let modules = ["eee", "ccc", "aaa", "ddd", "bbb"];
    let modules = modules.map(|id| module(id, json!({"routes": [route("home", "/same")]})));
    let outcome = composed(&workspace(modules.to_vec(), vec![]));
    assert_eq!(
        summaries(&outcome),
        ["WCP-ROUTE-001 aaa:routes/home bbb:routes/home ccc:routes/home ddd:routes/home eee:routes/home"]
    );
    assert_eq!(outcome.diagnostics[0].details.get("owners").unwrap().as_array().unwrap().len(), 5);
    assert!(outcome.composition.is_none());
}

#[test]
fn renderer_override_selects_one_claimant() {
    let claimants =
        ["aaa", "bbb", "ccc"].map(|id| module(id, json!({"toolRenderers": [tool("card", "tool:x")]})));
    let choose = json!({"id": "choose", "op": "rendererOverride", "target": "tool:x", "use": "bbb:tool-renderers/card"});
    let outcome = composed(&workspace(claimants.to_vec(), vec![choose]));
    assert_eq!(
        summaries(&outcome),
        ["WCP-RENDERER-004 choose aaa:tool-renderers/card bbb:tool-renderers/card ccc:tool-renderers/card"]
    );
    assert_eq!(keys(&outcome, "toolRenderers"), ["bbb:tool-renderers/card"]);
    let details = &outcome.diagnostics[0].details;
    assert_eq!(details.get("selectedOwner").unwrap()["ownerId"], "bbb");
    let losers: Vec<_> = details
        .get("overriddenOwners")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|owner| &owner["ownerId"])
        .collect();
    assert_eq!(losers, ["aaa", "ccc"]);
}

#[test]
fn override_with_one_claimant_reports_nothing() {
    let only = module("aaa", json!({"toolRenderers": [tool("card", "tool:x")]}));
    let choose = json!({"id": "choose", "op": "rendererOverride", "target": "tool:x", "use": "aaa:tool-renderers/card"});
    let outcome = composed(&workspace(vec![only], vec![choose]));
    assert!(outcome.ok() && outcome.diagnostics.is_empty());
}

#[test]
fn override_to_an_inactive_claimant_has_no_effect() {
    let claimants = vec![
        module("aaa", json!({"toolRenderers": [tool("card", "tool:x")]})),
        module("bbb", json!({"toolRenderers": [tool("card", "tool:x")]})),
        module_in("disabled", "ccc", json!({"toolRenderers": [tool("card", "tool:x")]})),
    ];
    let choose = json!({"id": "choose", "op": "rendererOverride", "target": "tool:x", "use": "ccc:tool-renderers/card"});
    let outcome = composed(&workspace(claimants, vec![choose]));
    assert_eq!(summaries(&outcome), ["WCP-RENDERER-001 aaa:tool-renderers/card bbb:tool-renderers/card"]);
}

#[test]
fn override_to_a_non_claimant_is_rejected_and_the_conflict_remains() {
    let claimants = vec![
        module("aaa", json!({"toolRenderers": [tool("card", "tool:x"), tool("other", "tool:y")]})),
        module("bbb", json!({"toolRenderers": [tool("card", "tool:x")]})),
    ];
    let choose = json!({"id": "choose", "op": "rendererOverride", "target": "tool:x", "use": "aaa:tool-renderers/other"});
    let outcome = composed(&workspace(claimants, vec![choose]));
    assert_eq!(
        summaries(&outcome),
        [
            "WCP-POLICY-001 invalid-use choose",
            "WCP-RENDERER-001 aaa:tool-renderers/card bbb:tool-renderers/card",
        ]
    );
}

fn three_routes() -> Vec<serde_json::Value> {
    ["aaa", "bbb", "ccc"].map(|id| module(id, json!({"routes": [route("home", &format!("/{id}"))]}))).to_vec()
}

fn alias(id: &str, owner: &str, path: &str) -> serde_json::Value {
    json!({"id": id, "op": "pathAlias", "target": format!("{owner}:routes/home"), "path": path})
}

#[test]
fn aliases_in_a_ring_do_not_conflict() {
    let ring = vec![alias("one", "aaa", "/bbb"), alias("two", "bbb", "/ccc"), alias("three", "ccc", "/aaa")];
    let outcome = composed(&workspace(three_routes(), ring));
    assert_eq!(
        summaries(&outcome),
        [
            "WCP-ROUTE-003 one aaa:routes/home",
            "WCP-ROUTE-003 two bbb:routes/home",
            "WCP-ROUTE-003 three ccc:routes/home",
        ]
    );
    let composition = json!(outcome.composition.unwrap());
    let paths: Vec<_> =
        composition["routes"].as_array().unwrap().iter().map(|route| &route["effectivePath"]).collect();
    assert_eq!(paths, ["/bbb", "/ccc", "/aaa"]);
}

#[test]
fn two_aliases_to_one_path_conflict() {
    let both = vec![alias("one", "aaa", "/new"), alias("two", "bbb", "/new"), alias("three", "ccc", "/free")];
    let outcome = composed(&workspace(three_routes(), both));
    assert_eq!(
        summaries(&outcome),
        ["WCP-ROUTE-001 aaa:routes/home bbb:routes/home", "WCP-ROUTE-003 three ccc:routes/home"]
    );
    let diagnostic = &outcome.diagnostics[0];
    assert_eq!(diagnostic.details.text("effectivePath"), Some("/new"));
    let declared: Vec<_> = diagnostic.subjects.iter().map(|subject| subject.route_path.as_deref()).collect();
    assert_eq!(declared, [Some("/aaa"), Some("/bbb")]);
}

#[test]
fn alias_frees_the_old_path_and_occupies_the_new_one() {
    let chain = vec![alias("one", "aaa", "/new"), alias("two", "bbb", "/aaa")];
    let outcome = composed(&workspace(three_routes(), chain));
    assert!(outcome.ok());
    let stays = vec![alias("two", "bbb", "/aaa")];
    let outcome = composed(&workspace(three_routes(), stays));
    assert_eq!(summaries(&outcome), ["WCP-ROUTE-001 aaa:routes/home bbb:routes/home"]);
}

#[test]
fn replace_across_owners_resolves_a_conflict() {
    let modules = vec![
        module(
            "aaa",
            json!({"routes": [route("home", "/same")], "sidebarItems": [sidebar_item("home", "aaa:routes/home")]}),
        ),
        module("bbb", json!({"routes": [with(route("start", "/same"), "order", 5)]})),
        module("abc", json!({"routes": [route("other", "/other")]})),
    ];
    let replace =
        json!({"id": "swap", "op": "replace", "target": "aaa:routes/home", "use": "bbb:routes/start"});
    let outcome = composed(&workspace(modules, vec![replace]));
    assert!(outcome.diagnostics.is_empty(), "{:?}", summaries(&outcome));
    // The replacement takes the replaced route's position and keeps its own key; the sidebar item leads to it.
    assert_eq!(keys(&outcome, "routes"), ["bbb:routes/start", "abc:routes/other"]);
    let composition = json!(outcome.composition.unwrap());
    assert_eq!(composition["sidebarItems"][0]["routeKey"], "bbb:routes/start");
    assert_eq!(composition["sidebarItems"][0]["key"], "aaa:sidebar-items/home");
}

#[test]
fn replacing_by_something_inactive_replaces_nothing() {
    let modules = vec![
        module("aaa", json!({"routes": [route("home", "/a")]})),
        module_in("unauthorized", "bbb", json!({"routes": [route("home", "/b")]})),
    ];
    let replace =
        json!({"id": "swap", "op": "replace", "target": "aaa:routes/home", "use": "bbb:routes/home"});
    let outcome = composed(&workspace(modules, vec![replace]));
    assert_eq!(keys(&outcome, "routes"), ["aaa:routes/home"]);
    assert!(outcome.diagnostics.is_empty());
}

#[test]
fn hidden_route_hides_its_sidebar_item_and_still_conflicts() {
    let home = json!({
        "routes": [route("home", "/same"), route("runs", "/runs")],
        "sidebarItems": [sidebar_item("home", "aaa:routes/home"), sidebar_item("runs", "aaa:routes/runs")],
    });
    let hide = json!({"id": "hide", "op": "hide", "target": "aaa:routes/home"});
    let outcome = composed(&workspace(vec![module("aaa", home.clone())], vec![hide.clone()]));
    assert_eq!(keys(&outcome, "routes"), ["aaa:routes/runs"]);
    assert_eq!(keys(&outcome, "sidebarItems"), ["aaa:sidebar-items/runs"]);
    let handles = outcome.composition.unwrap().required_render_handles;
    assert_eq!(handles.iter().map(|handle| &*handle.id).collect::<Vec<_>>(), ["runs"]);

    let rival = module("bbb", json!({"routes": [route("home", "/same")]}));
    let outcome = composed(&workspace(vec![module("aaa", home), rival], vec![hide]));
    assert_eq!(summaries(&outcome), ["WCP-ROUTE-001 aaa:routes/home bbb:routes/home"]);
}

#[test]
fn only_active_contributions_conflict() {
    for status in ["needs-configuration", "unauthorized", "disabled", "error"] {
        let modules = vec![
            module(
                "aaa",
                json!({"routes": [route("home", "/same")], "toolRenderers": [tool("card", "tool:x")]}),
            ),
            module_in(
                status,
                "bbb",
                json!({"routes": [route("home", "/same")], "toolRenderers": [tool("card", "tool:x")]}),
            ),
        ];
        let outcome = composed(&workspace(modules, vec![]));
        assert!(outcome.ok(), "{status}");
    }
    let modules = vec![
        module("aaa", json!({"routes": [route("home", "/same")]})),
        module_in("read-only", "bbb", json!({"routes": [route("home", "/same")]})),
    ];
    assert!(!composed(&workspace(modules, vec![])).ok());
}

#[test]
fn grammar_is_checked_in_inactive_modules() {
    let inactive = module_in(
        "disabled",
        "aaa",
        json!({
            "routes": [route("home", "/Home"), route("Bad", "/bad"), route("twin", "/a"), route("twin", "/b")],
            "toolRenderers": [tool("card", "tool:*")],
        }),
    );
    assert_eq!(
        summaries(&composed(&workspace(vec![inactive], vec![]))),
        [
            "WCP-NS-003 aaa:routes/twin aaa:routes/twin",
            "WCP-NS-004 invalid-start aaa:routes/Bad",
            "WCP-RENDERER-002 wildcard aaa:tool-renderers/card",
            "WCP-ROUTE-002 invalid-character aaa:routes/home",
        ]
    );
}

#[test]
fn duplicate_owners_are_rejected_and_references_to_them_are_not_reported() {
    let outcome = composed(&workspace(
        vec![
            module("aaa", json!({"routes": [route("home", "/same")]})),
            module("aaa", json!({"routes": [route("start", "/same")]})),
            module(
                "bbb",
                json!({"routes": [route("home", "/same")], "sidebarItems": [sidebar_item("x", "aaa:routes/home")]}),
            ),
        ],
        vec![json!({"id": "hide", "op": "hide", "target": "aaa:routes/start"})],
    ));
    assert_eq!(summaries(&outcome), ["WCP-NS-001"]);
}

#[test]
fn builtins_with_one_id_are_duplicates() {
    let builtin =
        |package: &str| json!({"ownerId": "builtin-chat", "packageId": package, "contributions": {}});
    let mut input = workspace(vec![], vec![]);
    input["builtins"] = json!([builtin("@acme/two"), builtin("@acme/one")]);
    let outcome = composed(&input);
    assert_eq!(summaries(&outcome), ["WCP-NS-001"]);
    let details = &outcome.diagnostics[0].details;
    assert_eq!(details.text("instanceId"), Some("builtin-chat"));
    assert_eq!(details.get("owners").unwrap()[0]["packageId"], "@acme/one");
}

#[test]
fn root_path_is_reserved_for_builtins_unless_the_policy_allows_it() {
    let claims_root = || module("aaa", json!({"routes": [route("home", "/"), route("runs", "/runs")]}));
    let to_root = json!({"id": "root", "op": "pathAlias", "target": "aaa:routes/runs", "path": "/"});
    let outcome = composed(&workspace(vec![claims_root()], vec![to_root.clone()]));
    assert_eq!(
        summaries(&outcome),
        ["WCP-POLICY-001 invalid-path root aaa:routes/runs", "WCP-ROUTE-002 reserved-root aaa:routes/home",]
    );
    let mut allowed =
        workspace(vec![module("aaa", json!({"routes": [route("runs", "/runs")]}))], vec![to_root]);
    allowed["policy"]["allowModuleRootRoute"] = json!(true);
    assert_eq!(summaries(&composed(&allowed)), ["WCP-ROUTE-003 root aaa:routes/runs"]);
    let mut builtin = workspace(vec![], vec![]);
    builtin["builtins"] =
        json!([{"ownerId": "builtin-home", "contributions": {"routes": [route("home", "/")]}}]);
    assert!(composed(&builtin).ok());
}
