//! Every workspace dependency is used by at least one crate.

use std::collections::BTreeSet;

use toml::Table;

use super::{Offence, SourceFile};

pub(super) fn check(files: &[SourceFile], offences: &mut Vec<Offence>) {
    let mut used = BTreeSet::new();
    let mut declared = Vec::new();
    for file in files.iter().filter(|file| file.name() == "Cargo.toml") {
        let Ok(manifest) = file.text.parse::<Table>() else { continue };
        used_names(&manifest, &mut used);
        if let Some(workspace) = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"))
        {
            declared.extend(
                workspace.as_table().into_iter().flat_map(Table::keys).map(|name| (file, name.clone())),
            );
        }
    }
    for (file, name) in declared.iter().filter(|(_, name)| !used.contains(name)) {
        let line = file.text.lines().position(|line| line.starts_with(name.as_str())).unwrap_or(0) + 1;
        offences.push(file.offence(line, format!("no crate uses `{name}`: remove it")));
    }
}

/// Collects the names in all dependency tables, including those of `[target.…]`.
fn used_names(manifest: &Table, used: &mut BTreeSet<String>) {
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" => used.extend(table.keys().cloned()),
            "target" => {
                table.values().filter_map(|value| value.as_table()).for_each(|table| used_names(table, used))
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_workspace_dependency_is_an_offence() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let mut offences = Vec::new();
        let files = [
            file("Cargo.toml", "[workspace.dependencies]\na = \"1\"\nb = \"1\"\nc = \"1\"\n"),
            file(
                "crates/x/Cargo.toml",
                "[dependencies]\na.workspace = true\n[target.'cfg(unix)'.dependencies]\nb.workspace = true\n",
            ),
        ];
        check(&files, &mut offences);
        let found: Vec<String> = offences.iter().map(Offence::to_string).collect();
        assert_eq!(found, ["Cargo.toml:4: no crate uses `c`: remove it"]);
    }
}
