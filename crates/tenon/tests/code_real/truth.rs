//! §4.5 on real code: the first list after a cold start equals the list of the settled server, asked directly. Before
//! that, calls fail with `indexing` or `timeout`.

use std::time::Instant;

use serde_json::{Value, json};
use tenon_testkit::direct_server::{DirectServer, FilePosition, InstalledServer, uri};
use tenon_testkit::{McpClient, PATIENCE, RealProject, Sandbox};

use crate::session;

/// Files and ranges as sorted text.
fn places(locations: &Value) -> Vec<String> {
    let mut places: Vec<String> = locations
        .as_array()
        .unwrap_or_else(|| panic!("{locations}"))
        .iter()
        .map(|one| format!("{} {}", one["uri"].as_str().unwrap(), one["range"]))
        .collect();
    places.sort();
    places.dedup();
    places
}

/// All references from the surface, and the number of calls that were too early.
fn first_answer(client: &mut McpClient, sandbox: &Sandbox, place: FilePosition<'_>) -> (Vec<String>, usize) {
    let position = json!({ "line": place.line, "character": place.character });
    let mut arguments = json!({
        "uri": uri(sandbox, place.file), "position": position, "includeDeclaration": true, "pageSize": 200,
    });
    let (mut items, mut early) = (Vec::new(), 0);
    let deadline = Instant::now() + 4 * PATIENCE;
    loop {
        match client.call_tool("vscode.lsp.references", arguments.clone()) {
            Ok(mut page) => {
                items.append(page.structured["items"].as_array_mut().unwrap());
                arguments["cursor"] = page.structured["nextCursor"].take();
                if arguments["cursor"].is_null() {
                    return (places(&json!(items)), early);
                }
            }
            Err(error) => {
                let reason = error.data["details"]["reason"].as_str().unwrap_or_default();
                let is_late = ["indexing", "timeout"].contains(&reason) && Instant::now() < deadline;
                assert!(is_late && items.is_empty(), "{error:?}");
                early += 1;
            }
        }
    }
}

/// Compares the first references of a symbol after the start with those of the settled server.
fn first_is_settled(source: RealProject, server: InstalledServer, at_least: usize) {
    let sandbox = Sandbox::with_project(source);
    let switches = ["pyright", "ty", "ruff", "typescript-language-server", "typescript-native"]
        .map(|id| format!("[servers.{id}]\nenabled = {}\n", id == server.id()))
        .concat();
    sandbox.write_user_config(&switches);

    let symbol = source.sample_symbol();
    let declared = FilePosition::find(&sandbox, symbol.file, symbol.line, symbol.name);
    let mut client = session(&sandbox);
    let (first, early) = first_answer(&mut client, &sandbox, declared);
    let (again, _) = first_answer(&mut client, &sandbox, declared);
    assert_eq!(first.len(), again.len(), "{early} early calls, then an incomplete list");
    client.close();
    sandbox.assert_no_processes();

    let mut bare = DirectServer::start(server, &sandbox).unwrap();
    bare.open(declared.file).unwrap();
    bare.wait_until_ready().unwrap();
    let inside = format!("file://{}/", sandbox.root().display());
    let mut settled = places(&bare.request("references", declared).unwrap());
    settled.retain(|place| place.starts_with(&inside));
    assert!(settled.len() >= at_least, "the settled server finds {} references", settled.len());
    assert_eq!(first, settled);
}

#[test]
fn s4_5_first_references_in_django_equal_those_of_the_settled_pyright() {
    first_is_settled(RealProject::Django, InstalledServer::Pyright, 300);
}

#[test]
fn s4_5_first_references_in_django_equal_those_of_the_settled_ty() {
    first_is_settled(RealProject::Django, InstalledServer::Ty, 300);
}

#[test]
fn s4_5_first_references_in_rxjs_equal_those_of_the_settled_typescript_server() {
    first_is_settled(RealProject::Rxjs, InstalledServer::TypeScript, 390);
}

#[test]
fn s4_5_first_references_in_rxjs_equal_those_of_the_settled_typescript_7() {
    first_is_settled(RealProject::Rxjs, InstalledServer::TypeScriptNative, 390);
}

#[test]
fn s4_5_first_references_in_eigen_equal_those_of_the_settled_clangd() {
    first_is_settled(RealProject::Eigen, InstalledServer::Clangd, 1_001);
}
