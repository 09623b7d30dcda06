//! The registry's documentation page is generated, linked, complete, and the only page that mentions codes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tenon_compose::registry::{REGISTRY, page};
use tenon_testkit::generated;
use tenon_testkit::repository_root;

const PAGE: &str = "docs/composition-diagnostics.md";

#[test]
fn generated_registry_page_is_up_to_date() {
    generated::check(PAGE, &page());
}

#[test]
fn page_exists_and_is_linked_from_the_indexes() {
    assert!(repository_root().join(PAGE).is_file());
    for (index, link) in
        [("README.md", "docs/composition-diagnostics.md"), ("docs/README.md", "composition-diagnostics.md")]
    {
        let text = std::fs::read_to_string(repository_root().join(index)).unwrap();
        assert!(text.contains(&format!("({link})")), "{index} does not link to {link}");
    }
}

#[test]
fn page_lists_the_version_fields_and_has_the_anchor() {
    let page = page();
    for field in
        ["compositionSchemaVersion", "moduleApiVersion", "renderHandleVersion", "diagnosticSchemaVersion"]
    {
        assert!(page.contains(&format!("`{field}`")), "{field}");
    }
    assert!(page.contains("\n## WorkspaceDiagnostic code registry\n"));
}

#[test]
fn every_code_is_registered_once_and_has_a_fixture() {
    let page = page();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `WCP-")).collect();
    let codes: BTreeSet<&str> = rows.iter().map(|row| row.split('`').nth(1).unwrap()).collect();
    assert_eq!((rows.len(), codes.len()), (REGISTRY.len(), REGISTRY.len()));
    for row in &REGISTRY {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(row.fixture);
        let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
        assert!(expected.contains(row.name), "{}", row.fixture);
    }
}

#[test]
fn codes_appear_on_no_other_page() {
    let mut pages = Vec::new();
    markdown(&repository_root().join("docs"), &mut pages);
    pages.extend(["README.md", "ARCHITECTURE.md"].map(|page| repository_root().join(page)));
    assert!(pages.len() > 3);
    for page in pages.into_iter().filter(|page| !page.ends_with(PAGE)) {
        let text = std::fs::read_to_string(&page).unwrap_or_default();
        assert!(!text.contains("WCP-"), "{}", page.display());
    }
}

fn markdown(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}
