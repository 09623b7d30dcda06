//! The contract's examples, verbatim.

use serde_json::{Value, json};

use crate::inputs::{composed, handle, module, route, tool};

/// The contract's example of a module declaration.
pub(crate) fn author_example() -> Value {
    json!({
        "packageId": "@maya/data-lab-module",
        "packageVersion": "0.1.0",
        "moduleApiVersion": "0.1",
        "instanceId": "data-lab-prod",
        "contributions": {
            "routes": [{"id": "home", "path": "/data-lab", "renderHandle": handle("route", "data-lab.home")}],
            "sidebarItems": [{"id": "home", "label": "Data Lab", "routeKey": "data-lab-prod:routes/home"}],
            "configurationSurfaces": [{
                "id": "connection",
                "purpose": "connection",
                "renderHandle": handle("configuration-surface", "data-lab.connection"),
            }],
            "toolRenderers": [{
                "id": "query-card",
                "claim": "tool:data_lab.query",
                "renderHandle": handle("tool-renderer", "data-lab.query-card"),
            }],
        },
    })
}

#[test]
fn author_example_yields_the_documented_keys_and_claims() {
    let mut module = author_example();
    module["runtime"] = json!({"status": "ready"});
    let outcome = composed(&json!({"compositionSchemaVersion": "0.1", "modules": [module]}));
    assert!(outcome.diagnostics.is_empty());
    let composition = json!(outcome.composition.unwrap());
    let mut lines = Vec::new();
    for collection in ["routes", "sidebarItems", "configurationSurfaces", "toolRenderers"] {
        for entry in composition[collection].as_array().unwrap() {
            let key = entry["key"].as_str().unwrap();
            lines.push(match entry["effectivePath"].as_str() {
                Some(path) => format!("{key} -> {path}"),
                None => key.to_owned(),
            });
            lines.extend(entry["claim"].as_str().map(str::to_owned));
        }
    }
    assert_eq!(
        lines,
        [
            "data-lab-prod:routes/home -> /data-lab",
            "data-lab-prod:sidebar-items/home",
            "data-lab-prod:configuration-surfaces/connection",
            "data-lab-prod:tool-renderers/query-card",
            "tool:data_lab.query",
        ]
    );
}

#[test]
fn duplicate_route_example_is_reproduced() {
    let mut data_lab = module("data-lab-prod", json!({"routes": [route("home", "/data-lab")]}));
    data_lab["packageId"] = json!("@maya/data-lab-module");
    let outcome = composed(&json!({
        "compositionSchemaVersion": "0.1",
        "builtins": [{
            "ownerId": "builtin-claude-chat",
            "packageId": "@maya/claude-workspace",
            "contributions": {"routes": [route("data-lab", "/data-lab")]},
        }],
        "modules": [data_lab],
    }));
    assert_eq!(
        json!(outcome.diagnostics),
        json!([{
            "diagnosticSchemaVersion": "0.1",
            "code": "WCP-ROUTE-001",
            "severity": "error",
            "origin": "composer",
            "category": "route",
            "subjects": [
                {
                    "ownerKind": "module",
                    "ownerId": "data-lab-prod",
                    "packageId": "@maya/data-lab-module",
                    "contributionKind": "routes",
                    "localId": "home",
                    "canonicalKey": "data-lab-prod:routes/home",
                    "routePath": "/data-lab",
                },
                {
                    "ownerKind": "builtin",
                    "ownerId": "builtin-claude-chat",
                    "packageId": "@maya/claude-workspace",
                    "contributionKind": "routes",
                    "localId": "data-lab",
                    "canonicalKey": "builtin-claude-chat:routes/data-lab",
                    "routePath": "/data-lab",
                },
            ],
            "details": {
                "effectivePath": "/data-lab",
                "owners": [
                    {
                        "ownerKind": "builtin",
                        "ownerId": "builtin-claude-chat",
                        "canonicalKey": "builtin-claude-chat:routes/data-lab",
                    },
                    {
                        "ownerKind": "module",
                        "ownerId": "data-lab-prod",
                        "canonicalKey": "data-lab-prod:routes/home",
                    },
                ],
            },
            "decisionIds": ["WCP-ADR-006", "WCP-ADR-015"],
            "docsAnchor": "diagnostic-code-registry",
            "message": "Route path '/data-lab' is claimed by multiple active contributions.",
        }])
    );
}

#[test]
fn duplicate_claim_example_is_reproduced() {
    let claimant = |id: &str, package: &str| {
        let mut module = module(id, json!({"toolRenderers": [tool("query-card", "tool:data_lab.query")]}));
        module["packageId"] = json!(package);
        module
    };
    let outcome = composed(&json!({
        "compositionSchemaVersion": "0.1",
        "modules": [
            claimant("warehouse-prod", "@maya/warehouse-module"),
            claimant("data-lab-prod", "@maya/data-lab-module"),
        ],
    }));
    let subject = |id: &str, package: &str| {
        json!({
            "ownerKind": "module",
            "ownerId": id,
            "packageId": package,
            "contributionKind": "tool-renderers",
            "localId": "query-card",
            "canonicalKey": format!("{id}:tool-renderers/query-card"),
            "rendererClaim": "tool:data_lab.query",
        })
    };
    let owner = |id: &str| json!({"ownerKind": "module", "ownerId": id, "canonicalKey": format!("{id}:tool-renderers/query-card")});
    assert_eq!(
        json!(outcome.diagnostics),
        json!([{
            "diagnosticSchemaVersion": "0.1",
            "code": "WCP-RENDERER-001",
            "severity": "error",
            "origin": "composer",
            "category": "renderer",
            "subjects": [
                subject("data-lab-prod", "@maya/data-lab-module"),
                subject("warehouse-prod", "@maya/warehouse-module"),
            ],
            "details": {
                "rendererClaim": "tool:data_lab.query",
                "owners": [owner("data-lab-prod"), owner("warehouse-prod")],
            },
            "decisionIds": ["WCP-ADR-003", "WCP-ADR-015"],
            "docsAnchor": "diagnostic-code-registry",
            "message": "Renderer claim 'tool:data_lab.query' is claimed by multiple active contributions.",
        }])
    );
}
