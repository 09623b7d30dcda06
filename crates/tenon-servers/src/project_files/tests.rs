//! Projects of small workspaces.

use std::collections::BTreeMap;

use super::*;

/// A workspace at `/w` with these files, read for one server.
fn find(kind: ProjectKind, files: &[(&str, &str)]) -> ProjectFiles {
    let texts: BTreeMap<Utf8PathBuf, &str> =
        files.iter().map(|(path, text)| (Utf8PathBuf::from("/w").join(path), *text)).collect();
    let paths: Vec<Utf8PathBuf> = texts.keys().cloned().collect();
    let endings: &[&str] = match kind {
        ProjectKind::Tsconfig => &["ts", "tsx", "js", "mjs"],
        ProjectKind::Pyright | ProjectKind::Basedpyright => &["py"],
        ProjectKind::CompileCommands => &["cpp", "h"],
    };
    let search = ProjectSearch {
        root: Utf8Path::new("/w"),
        files: &paths,
        serves: &|file| file.extension().is_some_and(|ending| endings.contains(&ending)),
        owns: &|file| !file.starts_with("/w/own"),
        read: &|file| texts.get(file).map(|text| (*text).to_owned()),
    };
    search.run(kind)
}

fn names(paths: &[Utf8PathBuf]) -> Vec<&str> {
    paths.iter().map(|path| path.strip_prefix("/w").unwrap_or(path).as_str()).collect()
}

fn first(found: &ProjectFiles) -> Vec<&str> {
    found.projects.iter().flat_map(|samples| names(&samples[..1])).collect()
}

#[test]
fn file_of_a_project_is_one_that_it_includes() {
    let found = find(
        ProjectKind::Tsconfig,
        &[
            ("eslint.config.js", ""),
            (
                "tsconfig.json",
                "{ \"include\": [\"src\"], \"exclude\": [\"src/gen\", \"**/*.test.ts\"], } // end",
            ),
            ("a.ts", ""),
            ("src/gen/a.ts", ""),
            ("src/x.js", ""),
            ("src/y.test.ts", ""),
            ("src/z.ts", ""),
            ("own/b.ts", ""),
        ],
    );
    assert_eq!(first(&found), ["src/z.ts"]);
    let outside = ["a.ts", "eslint.config.js", "own/b.ts", "src/gen/a.ts", "src/x.js", "src/y.test.ts"];
    assert_eq!(names(&found.outside), outside);
}

#[test]
fn referenced_projects_and_nested_ones_have_their_own_files() {
    let found = find(
        ProjectKind::Tsconfig,
        &[
            (
                "tsconfig.json",
                r#"{"files": [], "references": [{"path": "./tsconfig.app.json"}, {"path": "packages/b"}]}"#,
            ),
            ("tsconfig.app.json", r#"{"extends": "./base.json", "include": ["app/**/*.ts"]}"#),
            ("base.json", r#"{"include": ["nothing"], "compilerOptions": {"allowJs": true}}"#),
            ("app/main.ts", ""),
            ("packages/a/jsconfig.json", "{}"),
            ("packages/a/index.js", ""),
            ("packages/b/tsconfig.json", r#"{"files": ["lib/b.ts"], "references": [{"path": "../.."}]}"#),
            ("packages/b/lib/b.ts", ""),
            ("packages/b/lib/c.ts", ""),
        ],
    );
    assert_eq!(first(&found), ["packages/a/index.js", "packages/b/lib/b.ts", "app/main.ts"]);
    assert_eq!(names(&found.outside), ["packages/b/lib/c.ts"]);
}

#[test]
fn extended_paths_are_relative_to_their_own_configuration() {
    let found = find(
        ProjectKind::Tsconfig,
        &[
            ("config/base.json", r#"{"include": ["../src"], "exclude": ["${configDir}/src/old"]}"#),
            ("node_modules/shared/tsconfig.json", r#"{"compilerOptions": {"allowJs": true}}"#),
            ("tsconfig.json", r#"{"extends": ["./config/base", "shared/tsconfig.json"]}"#),
            ("src/a.js", ""),
            ("src/old/b.ts", ""),
            ("test/c.ts", ""),
        ],
    );
    assert_eq!(first(&found), ["src/a.js"]);
    assert_eq!(names(&found.outside), ["src/old/b.ts", "test/c.ts"]);
}

#[test]
fn invalid_or_circular_configurations_are_harmless() {
    let found = find(
        ProjectKind::Tsconfig,
        &[
            ("a/tsconfig.json", "{ not json"),
            ("a/a.ts", ""),
            (
                "b/tsconfig.json",
                r#"{"extends": "./tsconfig.json", "references": [{"path": "."}], "include": [1]}"#,
            ),
            ("b/b.ts", ""),
        ],
    );
    assert_eq!(first(&found), [""; 0]);
    assert_eq!(names(&found.outside), ["a/a.ts", "b/b.ts"]);
}

#[test]
fn pyright_knows_the_included_folders() {
    let files = [
        ("pyproject.toml", "[tool.pyright]\ninclude = [\"src\", \"tests/typ*\"]\nexclude = [\"**/old\"]\n"),
        ("docs/conf.py", ""),
        ("src/a.py", ""),
        ("src/old/b.py", ""),
        ("tests/test_a.py", ""),
        ("tests/typing/c.py", ""),
    ];
    let found = find(ProjectKind::Pyright, &files);
    assert_eq!(found.projects.len(), 0);
    assert_eq!(names(&found.outside), ["docs/conf.py", "src/old/b.py", "tests/test_a.py"]);
    assert_eq!(find(ProjectKind::Pyright, &files[1..]).outside.len(), 0);
}

#[test]
fn clangd_knows_the_compiled_files_and_their_headers() {
    let commands = r#"[{"directory": "/w/build", "file": "../src/a.cpp", "command": "c++ -c ../src/a.cpp"}]"#;
    let files = [("compile_commands.json", commands), ("src/a.cpp", ""), ("src/a.h", ""), ("test/b.cpp", "")];
    assert_eq!(names(&find(ProjectKind::CompileCommands, &files).outside), ["test/b.cpp"]);
    assert_eq!(find(ProjectKind::CompileCommands, &files[1..]).outside.len(), 3);
}

#[test]
fn headers_without_a_stored_index_are_outside() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(folder.path()).unwrap();
    let index = root.join(".cache/clangd/index");
    std::fs::create_dir_all(&index).unwrap();
    for name in ["a.h.0123456789ABCDEF.idx", "twice.h.0123456789ABCDEF.idx", "a.cpp.0123456789ABCDEF.idx"] {
        std::fs::write(index.join(name), "").unwrap();
    }
    let headers = ["a.h", "one/twice.h", "two/twice.h", "unused.h"].map(|name| root.join(name)).to_vec();
    let found = ProjectFiles { headers, ..ProjectFiles::default() }.with_unindexed_headers(root);
    assert_eq!(found.outside, [root.join("unused.h")]);
    assert_eq!(found.doubtful, ["one/twice.h", "two/twice.h"].map(|name| root.join(name)));
}

#[test]
fn refused_options_include_those_of_extended_files() {
    let found = find(
        ProjectKind::Tsconfig,
        &[
            ("tsconfig.json", r#"{ "files": [], "references": [{ "path": "lib" }] }"#),
            ("tsconfig.base.json", r#"{ "compilerOptions": { "target": "ES5", "module": "amd" } }"#),
            (
                "lib/tsconfig.json",
                r#"{ "extends": "../tsconfig.base", "compilerOptions": { "module": "esnext" } }"#,
            ),
            ("lib/a.ts", ""),
            ("web/tsconfig.json", r#"{ "compilerOptions": { "baseUrl": ".", "esModuleInterop": true } }"#),
            ("web/tsconfig.unused.json", r#"{ "compilerOptions": { "outFile": "x.js" } }"#),
            ("web/a.ts", ""),
        ],
    );
    let registry = crate::registry::Registry::built_in();
    let note = |id: &str| {
        let entry = registry.get(id).unwrap();
        found.refused_options(entry).note(entry, Utf8Path::new("/w"))
    };
    assert_eq!(
        note("typescript-native").unwrap(),
        "`typescript-native` ignores `baseUrl`, `target: es5` in `lib/tsconfig.json`, `web/tsconfig.json`; \
         for an older version set `servers.typescript-language-server.enabled = true`"
    );
    assert_eq!(note("typescript-language-server"), None);
}
