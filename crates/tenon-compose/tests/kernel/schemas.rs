//! The published schemas and declarations are up to date, match every fixture, and compile with `tsc`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tenon_compose::schema::{declarations, schemas};
use tenon_testkit::generated;

use crate::examples::author_example;

#[test]
fn generated_schemas_are_up_to_date() {
    for (file, schema) in schemas() {
        generated::check(
            Path::new("schemas/compose").join(file),
            &(serde_json::to_string_pretty(&schema).unwrap() + "\n"),
        );
    }
}

#[test]
fn generated_declarations_are_up_to_date() {
    generated::check("schemas/compose/workspace-composition.d.ts", &declarations());
}

fn validator(name: &str) -> jsonschema::Validator {
    let (_, schema) = schemas().into_iter().find(|(file, _)| *file == name).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Every fixture: name, input and expected output.
fn fixtures() -> Vec<(String, Value, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let read =
        |path: PathBuf| -> Value { serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap() };
    let mut fixtures: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let folder = entry.unwrap().path();
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            (name, read(folder.join("input.json")), read(folder.join("expected.json")))
        })
        .collect();
    fixtures.sort_by(|a, b| a.0.cmp(&b.0));
    fixtures
}

/// The schema rejects exactly the mistakes that are visible in a single value.
#[test]
fn input_schema_rejects_what_the_composer_rejects_by_structure_or_grammar() {
    let validator = validator("input.schema.json");
    const SINGLE_VALUE_CODES: [&str; 9] = [
        "WCP-STRUCT-001",
        "WCP-NS-002",
        "WCP-NS-004",
        "WCP-ROUTE-002",
        "WCP-RENDERER-002",
        "WCP-RENDERER-003",
        "WCP-VERSION-001",
        "WCP-VERSION-002",
        "WCP-VERSION-003",
    ];
    for (name, input, expected) in fixtures() {
        if input["run"] != "compose" {
            continue;
        }
        let codes: Vec<&str> =
            expected["diagnostics"].as_array().unwrap().iter().map(|d| d["code"].as_str().unwrap()).collect();
        let rejected =
            codes.iter().any(|code| SINGLE_VALUE_CODES.contains(code) || *code == "WCP-VERSION-005")
                || name == "fixture-invalid-policy-target";
        assert_eq!(validator.is_valid(&input["input"]), !rejected, "{name}");
    }
}

#[test]
fn every_expected_output_matches_its_schema() {
    let outcome = validator("outcome.schema.json");
    let diagnostic = validator("diagnostic.schema.json");
    let summary = validator("provider-summary.schema.json");
    for (name, input, mut expected) in fixtures() {
        add_messages(&mut expected);
        if input["run"] == "compose" {
            assert!(outcome.is_valid(&expected), "{name}");
        }
        each_diagnostic(&expected, &mut |found| {
            assert!(diagnostic.is_valid(found), "{name}");
            for provider in found["details"]
                .get("provider")
                .into_iter()
                .chain(found["details"]["providers"].as_array().into_iter().flatten())
            {
                assert!(summary.is_valid(provider), "{name}");
            }
        });
    }
}

#[test]
fn packs_declarations_and_policies_match_their_schemas() {
    let pack = validator("pack.schema.json");
    let good = json!({"renderRuntimeSchemaVersion": "0.1", "ownerId": "lab", "packageId": "@acme/lab", "providers": [
        {"renderHandle": {"renderHandleVersion": "0.1", "kind": "route", "id": "x"}, "loadKind": "lazy", "template": "x.html"},
    ]});
    assert!(pack.is_valid(&good));
    let mut bad = good.clone();
    bad["providers"][0]["loadKind"] = json!("unsupported");
    assert!(!pack.is_valid(&bad));

    let module = validator("module.schema.json");
    assert!(module.is_valid(&author_example()));
    let mut with_runtime = author_example();
    with_runtime["runtime"] = json!({"status": "ready"});
    assert!(!module.is_valid(&with_runtime), "the host adds the runtime");

    let policy = validator("policy.schema.json");
    for (operation, valid) in [
        (json!({"id": "x", "op": "reorder", "target": "aaa:routes/x", "before": "aaa:routes/y"}), true),
        (json!({"id": "x", "op": "reorder", "target": "aaa:routes/x"}), false),
        (json!({"id": "x", "op": "hide", "target": "aaa:routes/x", "use": "aaa:routes/y"}), false),
        (
            json!({"id": "x", "op": "rendererOverride", "target": "tool:*", "use": "aaa:tool-renderers/y"}),
            false,
        ),
    ] {
        let shown = operation.to_string();
        assert_eq!(
            policy.is_valid(&json!({"policySchemaVersion": "0.1", "operations": [operation]})),
            valid,
            "{shown}"
        );
    }
}

/// The contract's example module in TypeScript.
const AUTHOR_EXAMPLE: &str = "\
import type { ModuleDeclaration } from './workspace-composition';

const dataLabModule: ModuleDeclaration = {
  packageId: '@maya/data-lab-module',
  packageVersion: '0.1.0',
  moduleApiVersion: '0.1',
  instanceId: 'data-lab-prod',
  contributions: {
    routes: [
      {
        id: 'home',
        path: '/data-lab',
        renderHandle: {
          renderHandleVersion: '0.1',
          kind: 'route',
          id: 'data-lab.home',
        },
      },
    ],
    sidebarItems: [
      {
        id: 'home',
        label: 'Data Lab',
        routeKey: 'data-lab-prod:routes/home',
      },
    ],
    configurationSurfaces: [
      {
        id: 'connection',
        purpose: 'connection',
        renderHandle: {
          renderHandleVersion: '0.1',
          kind: 'configuration-surface',
          id: 'data-lab.connection',
        },
      },
    ],
    toolRenderers: [
      {
        id: 'query-card',
        claim: 'tool:data_lab.query',
        renderHandle: {
          renderHandleVersion: '0.1',
          kind: 'tool-renderer',
          id: 'data-lab.query-card',
        },
      },
    ],
  },
};

export default dataLabModule;
";

/// Compiles these files together with the declarations; the compiler's output on failure.
fn tsc(files: &[(&str, String)]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("workspace-composition.d.ts"), declarations()).unwrap();
    let mut command = Command::new(tenon_testkit::program::tool("tsc"));
    command.args([
        "--noEmit",
        "--strict",
        "--exactOptionalPropertyTypes",
        "--target",
        "es2022",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
    ]);
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
        command.arg(name);
    }
    let output = command
        .current_dir(folder.path())
        .env("PATH", tenon_testkit::program::search_path())
        .output()
        .unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stdout).into_owned()) }
}

#[test]
fn tsc_accepts_the_author_example_and_every_fixture() {
    let mut files = vec![("author.ts", AUTHOR_EXAMPLE.to_owned())];
    let mut text = "import type { CompositionInput, CompositionOutcome, WorkspaceDiagnostic } from './workspace-composition';\n".to_owned();
    for (name, input, mut expected) in fixtures() {
        add_messages(&mut expected);
        let variable = name.replace('-', "_");
        if input["run"] == "compose" {
            text.push_str(&format!("export const {variable}: CompositionOutcome = {expected};\n"));
            if expected["ok"] == true {
                text.push_str(&format!(
                    "export const {variable}_input: CompositionInput = {};\n",
                    input["input"]
                ));
            }
        }
        let mut found = Vec::new();
        each_diagnostic(&expected, &mut |diagnostic| found.push(diagnostic.clone()));
        text.push_str(&format!(
            "export const {variable}_diagnostics: WorkspaceDiagnostic[] = {};\n",
            json!(found)
        ));
    }
    files.push(("fixtures.ts", text));
    tsc(&files).unwrap();
}

#[test]
fn tsc_rejects_what_the_contract_rejects() {
    let changes = [
        ("kind: 'route'", "kind: 'tool-renderer'"),
        ("claim: 'tool:data_lab.query'", "claim: 'message:data_lab.query'"),
        ("path: '/data-lab'", "path: 'data-lab'"),
        ("label: 'Data Lab',", ""),
        ("moduleApiVersion: '0.1'", "moduleApiVersion: '0.2'"),
        ("routeKey: 'data-lab-prod:routes/home'", "routeKey: 'home'"),
        ("contributions: {", "runtime: { status: 'ready' },\n  contributions: {"),
    ];
    let names: Vec<String> = (0..changes.len()).map(|n| format!("author{n}.ts")).collect();
    let changed = changes.iter().map(|(from, to)| {
        assert!(AUTHOR_EXAMPLE.contains(from), "{from}");
        AUTHOR_EXAMPLE.replacen(from, to, 1)
    });
    let files: Vec<(&str, String)> = names.iter().map(String::as_str).zip(changed).collect();
    let errors = tsc(&files).unwrap_err();
    for (name, change) in names.iter().zip(changes) {
        assert!(errors.contains(name), "{change:?} passed: {errors}");
    }
}

/// Adds the messages that fixtures leave out.
fn add_messages(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(add_messages),
        Value::Object(members) => {
            if members.contains_key("diagnosticSchemaVersion") {
                members.insert("message".to_owned(), json!("for people"));
            }
            members.values_mut().for_each(add_messages);
        }
        _ => {}
    }
}

fn each_diagnostic(value: &Value, visit: &mut dyn FnMut(&Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_diagnostic(item, visit)),
        Value::Object(members) => {
            if members.contains_key("diagnosticSchemaVersion") {
                visit(value);
            }
            members.values().for_each(|member| each_diagnostic(member, visit));
        }
        _ => {}
    }
}
