//! docs/contract.md is up to date: its table lists the tests of every section, and it carries a hash of the code and
//! schemas it describes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tenon_contract::id::sha256_hex;
use tenon_testkit::generated;
use tenon_testkit::repository_root;

const PAGE: &str = "docs/contract.md";
const TABLE: &str = "## Which test checks what";

/// Where the tests of the contract are.
const FOLDERS: [&str; 4] = [
    "crates/tenon-code/src",
    "crates/tenon-code/tests/contract",
    "crates/tenon-server/tests/code",
    "crates/tenon/tests/code_real",
];

/// The files that make up the wire.
fn wire() -> Vec<String> {
    let mut files: Vec<String> = ["code.rs", "code/classify.rs"]
        .map(|file| format!("crates/tenon-server/src/surfaces/{file}"))
        .into_iter()
        .collect();
    let schemas = fs::read_dir(repository_root().join("schemas/tools")).unwrap();
    let names = schemas.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files
        .extend(names.filter(|name| name.starts_with("vscode.")).map(|name| format!("schemas/tools/{name}")));
    files.sort();
    files
}

/// The tests of each section, by name.
fn tests() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(repository_root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                collect(&path, &mut found);
            }
        }
    }
    found.values_mut().for_each(|names| names.sort());
    found
}

fn collect(path: &Path, found: &mut BTreeMap<String, Vec<String>>) {
    for line in fs::read_to_string(path).unwrap().lines() {
        let name = line.trim_start().trim_start_matches("async ").strip_prefix("fn s");
        let Some(name) =
            name.and_then(|name| name.split_once(['(', '<'])).map(|(name, _)| format!("s{name}"))
        else {
            continue;
        };
        let numbers: Vec<&str> =
            name[1..].split('_').take_while(|part| part.bytes().all(|byte| byte.is_ascii_digit())).collect();
        if !numbers.is_empty() {
            found.entry(numbers.join(".")).or_default().push(name);
        }
    }
}

#[test]
fn generated_contract_page_is_up_to_date() {
    let page = fs::read_to_string(repository_root().join(PAGE)).unwrap();
    let prose = page.split(TABLE).next().unwrap();
    let mut text = format!("{prose}{TABLE}\n\n| section | tests |\n|---|---|\n");
    for (section, names) in tests() {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("| {section} | {} |\n", names.join(", ")));
    }
    let all: Vec<String> =
        wire().iter().map(|file| fs::read_to_string(repository_root().join(file)).unwrap()).collect();
    text.push_str(
        "\nAfter a change of the wire, read this page again, correct it, and run `cargo xtask schemas`.\n",
    );
    text.push_str(&format!("\n<!-- wire: {} -->\n", sha256_hex(all.join("\n"))));
    generated::check(PAGE, &text);
}

#[test]
fn every_section_with_a_promise_has_a_test() {
    let tests = tests();
    for section in
        ["1.1", "1.2", "1.3", "2.1", "2.2", "3.0", "3.1", "3.2", "3.3", "3.5", "3.6", "3.6.1", "3.6.2", "3.7"]
            .into_iter()
            .chain(["4.1", "4.2", "4.3", "4.4", "4.5", "5.1", "5.2", "5.3", "6.3"])
            .chain(["7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "8"])
    {
        let named = |key: &String| key == section || key.starts_with(&format!("{section}."));
        assert!(tests.keys().any(named), "no test is named after section {section}");
    }
}
