//! Order independence: the outcome's bytes do not depend on the order of owners, contributions, fields and operations,
//! nor on the thread.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};
use tenon_compose::{CompositionInput, compose};
use tenon_contract::json::canonical;

use crate::inputs::{appender, handle, module_in, route, sidebar_item, tool, with};

/// Few names, so that collisions are frequent.
const OWNERS: [&str; 5] = ["aaa", "bbb", "ccc", "Bad", "builtin-no"];
const BUILTINS: [&str; 3] = ["builtin-chat", "builtin-home", "chat"];
const IDS: [&str; 4] = ["home", "runs", "x.y", "Bad"];
const PATHS: [&str; 5] = ["/home", "/runs", "/x", "/", "/Bad"];
const CLAIMS: [&str; 5] = ["tool:x", "tool:y", "tool:*", "message:x", "message:user-text"];
const STATUSES: [&str; 7] =
    ["ready", "ready", "read-only", "needs-configuration", "disabled", "error", "asleep"];

fn id() -> impl Strategy<Value = &'static str> {
    select(&IDS[..])
}

fn key() -> impl Strategy<Value = String> {
    let kind = select(&["routes", "sidebar-items", "tool-renderers", "message-appenders", "pages"][..]);
    let owner = prop_oneof![select(&OWNERS[..]), select(&BUILTINS[..])];
    (owner, kind, id()).prop_map(|(owner, kind, id)| format!("{owner}:{kind}/{id}"))
}

/// Breaks some of the descriptors.
fn mangled(value: Value) -> impl Strategy<Value = Value> {
    (0..20_u8, Just(value)).prop_map(|(chance, mut value)| {
        match chance {
            0 => drop(value.as_object_mut().unwrap().remove("id")),
            1 => value["extra"] = json!(1),
            2 => value["order"] = json!("first"),
            3 => value["renderHandle"] = json!({"renderHandleVersion": "9"}),
            4..=8 => value["order"] = json!(chance % 3),
            _ => {}
        }
        value
    })
}

fn contributions() -> impl Strategy<Value = Value> {
    let routes = (id(), select(&PATHS[..])).prop_map(|(id, path)| route(id, path)).prop_flat_map(mangled);
    let sidebar = (id(), key()).prop_map(|(id, key)| sidebar_item(id, &key)).prop_flat_map(mangled);
    let tools = (id(), select(&CLAIMS[..])).prop_map(|(id, claim)| tool(id, claim)).prop_flat_map(mangled);
    let appenders = id().prop_map(appender).prop_flat_map(mangled);
    let fallbacks = (id(), select(&STATUSES[1..])).prop_map(
        |(id, status)| json!({"id": id, "status": status, "renderHandle": handle("fallback-surface", id)}),
    );
    let list = |item: BoxedStrategy<Value>| prop::collection::vec(item, 0..4);
    (
        list(routes.boxed()),
        list(sidebar.boxed()),
        list(tools.boxed()),
        list(appenders.boxed()),
        list(fallbacks.boxed()),
    )
        .prop_map(|(routes, sidebar, tools, appenders, fallbacks)| {
            json!({
                "routes": routes,
                "sidebarItems": sidebar,
                "toolRenderers": tools,
                "messageAppenders": appenders,
                "fallbackSurfaces": fallbacks,
            })
        })
}

fn modules() -> impl Strategy<Value = Vec<Value>> {
    let one = (select(&STATUSES[..]), select(&OWNERS[..]), contributions(), 0..12_u8);
    let one = one.prop_map(|(status, owner, contributions, chance)| {
        let module = module_in(status, owner, contributions);
        match chance {
            0 => with(module, "moduleApiVersion", "9"),
            1 => with(module, "packageId", "@acme/other"),
            2 => with(module, "contributions", json!([])),
            3 => with(module, "instanceId", Value::Null),
            _ => module,
        }
    });
    prop::collection::vec(one, 0..5)
}

fn builtins() -> impl Strategy<Value = Vec<Value>> {
    let one = (select(&BUILTINS[..]), contributions());
    let one =
        one.prop_map(|(owner, contributions)| json!({"ownerId": owner, "contributions": contributions}));
    prop::collection::vec(one, 0..3)
}

fn operations() -> impl Strategy<Value = Vec<Value>> {
    let id = select(&["1", "2", "3", "4", "5", "6", "7", "8"][..]);
    let operation = prop_oneof![
        key().prop_map(|target| json!({"op": "hide", "target": target})),
        (key(), key()).prop_map(|(target, with)| json!({"op": "replace", "target": target, "use": with})),
        (key(), select(&PATHS[..]))
            .prop_map(|(target, path)| json!({"op": "pathAlias", "target": target, "path": path})),
        (select(&CLAIMS[..]), key())
            .prop_map(|(claim, with)| json!({"op": "rendererOverride", "target": claim, "use": with})),
        (key(), key())
            .prop_map(|(target, anchor)| json!({"op": "reorder", "target": target, "before": anchor})),
        (key(), key())
            .prop_map(|(target, anchor)| json!({"op": "reorder", "target": target, "after": anchor})),
    ];
    prop::collection::vec((id, operation).prop_map(|(id, operation)| with(operation, "id", id)), 0..8)
}

fn input() -> impl Strategy<Value = Value> {
    (modules(), builtins(), operations()).prop_map(|(modules, builtins, operations)| {
        json!({
            "compositionSchemaVersion": "0.1",
            "modules": modules,
            "builtins": builtins,
            "policy": {"policySchemaVersion": "0.1", "operations": operations},
        })
    })
}

/// The lists whose order has no meaning.
const LISTS: [&str; 9] = [
    "modules",
    "builtins",
    "operations",
    "routes",
    "sidebarItems",
    "toolRenderers",
    "messageAppenders",
    "fallbackSurfaces",
    "configurationSurfaces",
];

/// Writes the input with lists and object members shuffled by `seed`.
fn shuffled(value: &Value, seed: &mut u64, text: &mut String, is_list: bool) {
    match value {
        Value::Array(items) => {
            let mut order: Vec<usize> = (0..items.len()).collect();
            if is_list {
                shuffle(&mut order, seed);
            }
            text.push('[');
            for (n, index) in order.into_iter().enumerate() {
                text.push_str(if n == 0 { "" } else { "," });
                shuffled(&items[index], seed, text, false);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut order: Vec<(&String, &Value)> = members.iter().collect();
            shuffle(&mut order, seed);
            text.push('{');
            for (n, (name, member)) in order.into_iter().enumerate() {
                text.push_str(if n == 0 { "" } else { "," });
                text.push_str(&json!(name).to_string());
                text.push(':');
                shuffled(member, seed, text, LISTS.contains(&name.as_str()));
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn shuffle<T>(items: &mut [T], seed: &mut u64) {
    for last in (1..items.len()).rev() {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(last, (*seed >> 33) as usize % (last + 1));
    }
}

fn bytes(text: &str) -> String {
    canonical(&compose(&CompositionInput::parse(text.as_bytes()).unwrap())).unwrap()
}

proptest! {
    #[test]
    fn input_order_does_not_change_the_outcome(input in input(), seed in any::<u64>()) {
        let expected = bytes(&input.to_string());
        let mut seed = seed;
        for _ in 0..4 {
            let mut text = String::new();
            shuffled(&input, &mut seed, &mut text, false);
            prop_assert_eq!(&bytes(&text), &expected);
        }
    }

    /// Composing one input leaves no state that changes the outcome of another.
    #[test]
    fn composition_depends_on_its_input_only(modules in modules(), few in subsequence(vec![0, 1, 2, 3, 4], 0..5)) {
        let kept: Vec<Value> = modules.iter().enumerate().filter(|(n, _)| few.contains(n)).map(|(_, module)| module.clone()).collect();
        let input = |modules: &[Value]| json!({"compositionSchemaVersion": "0.1", "modules": modules}).to_string();
        let alone = bytes(&input(&kept));
        let _ = bytes(&input(&modules));
        prop_assert_eq!(bytes(&input(&kept)), alone);
    }

    /// Every outcome has either a composition or at least one error.
    #[test]
    fn outcome_has_a_composition_or_an_error(input in input()) {
        let outcome = compose(&CompositionInput::from_value(&input).unwrap());
        prop_assert_eq!(outcome.ok(), !outcome.diagnostics.iter().any(tenon_compose::WorkspaceDiagnostic::is_error));
        for diagnostic in &outcome.diagnostics {
            let row = diagnostic.code.row();
            let mut required: Vec<&str> = row.details.to_vec();
            required.sort_unstable();
            prop_assert_eq!(diagnostic.details.names().collect::<Vec<_>>(), required);
            prop_assert!(!diagnostic.subjects.is_empty());
            if let Some(reason) = diagnostic.details.text("reason") {
                prop_assert!(row.reasons.iter().any(|(known, _)| *known == reason), "{} {}", row.name, reason);
            }
        }
    }
}

#[test]
fn two_threads_produce_the_same_outcome() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/fixture-invalid-policy-target/input.json"
    ))
    .unwrap();
    let fixture: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let text = fixture["input"].to_string();
    let there = std::thread::spawn({
        let text = text.clone();
        move || bytes(&text)
    });
    assert_eq!(bytes(&text), there.join().unwrap());
}
