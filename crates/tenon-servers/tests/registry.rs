//! The registry: its built-in entries and the user's overrides.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use tenon_servers::registry::{
    Capability, Override, OverrideError, ReadinessRule, Registry, ServerEntry, ServerId, Switch, section,
};

fn overrides(text: &str) -> BTreeMap<ServerId, Override> {
    serde_json::from_str(text).unwrap()
}

fn with(text: &str) -> Registry {
    Registry::with_overrides(&overrides(text)).unwrap()
}

fn refused(text: &str) -> OverrideError {
    Registry::with_overrides(&overrides(text)).unwrap_err()
}

fn entry(id: &str) -> ServerEntry {
    Registry::built_in().get(id).unwrap().clone()
}

fn ids_for(registry: &Registry, file: &str) -> Vec<String> {
    registry.for_file(Utf8Path::new(file)).map(|entry| entry.id.to_string()).collect()
}

#[test]
fn all_servers_of_the_contract_exist() {
    let registry = Registry::built_in();
    for id in [
        "rust-analyzer",
        "pyright",
        "ty",
        "ruff",
        "typescript-native",
        "typescript-language-server",
        "eslint",
        "biome",
        "gopls",
        "clangd",
        "bash",
        "yaml",
        "json",
        "html",
        "css",
        "lua",
        "ruby-lsp",
        "zls",
        "jdtls",
        "fortls",
        "basedpyright",
        "pyrefly",
        "vue",
        "svelte",
        "intelephense",
    ] {
        assert!(registry.get(id).is_some(), "{id}");
    }
}

#[test]
fn servers_that_run_workspace_code_are_marked() {
    let running: Vec<String> = Registry::built_in()
        .entries()
        .iter()
        .filter(|entry| entry.runs_workspace_code)
        .map(|entry| entry.id.to_string())
        .collect();
    assert_eq!(
        running,
        [
            "rust-analyzer",
            "basedpyright",
            "pyrefly",
            "vue",
            "svelte",
            "eslint",
            "biome",
            "fortls",
            "jdtls",
            "ruby-lsp",
            "zls"
        ]
    );
}

#[test]
fn limits_are_lifted_and_downloads_are_off() {
    assert!(entry("clangd").args.contains(&"--limit-references=0".to_owned()));
    assert!(entry("clangd").args.contains(&"--limit-results=0".to_owned()));
    let rust = entry("rust-analyzer");
    let options = rust.initialization_options.unwrap();
    assert_eq!(options["workspace"]["symbol"]["search"]["limit"], json!(1_000_000));
    assert_eq!(rust.env["CARGO_NET_OFFLINE"], "true");
    assert_eq!(rust.env["RUSTUP_DIST_SERVER"], "http://127.0.0.1:9");
    let typescript = entry("typescript-language-server").initialization_options.unwrap();
    assert_eq!(typescript["disableAutomaticTypingAcquisition"], json!(true));
    assert_eq!(typescript["tsserver"]["useSyntaxServer"], json!("never"));
    let yaml = entry("yaml").settings;
    assert_eq!(section(&yaml, Some("yaml.schemaStore.enable")), &json!(false));
    let json_options = entry("json").initialization_options.unwrap();
    assert_eq!(json_options["handledSchemaProtocols"], json!(["file"]));
    assert_eq!(entry("gopls").limits.workspace_symbols, Some(100));
}

#[test]
fn readiness_rules_are_those_observed() {
    assert_eq!(
        entry("pyright").ready,
        Some(ReadinessRule::LogMessage { contains: "source file".to_owned() })
    );
    let caches = Some("rustAnalyzer/cachePriming".to_owned());
    assert_eq!(entry("rust-analyzer").ready, Some(ReadinessRule::ServerStatus { caches }));
    assert_eq!(entry("ruff").ready, Some(ReadinessRule::Immediate));
    assert!(matches!(entry("clangd").ready, Some(ReadinessRule::Progress { .. })));
    assert!(matches!(entry("bash").ready, Some(ReadinessRule::LogMessage { .. })));
    assert_eq!(entry("typescript-language-server").settle_ms, 400);
    assert_eq!(entry("pyright").settle_ms, 150);
}

#[test]
fn servers_of_a_file_are_in_registry_order_with_a_language_id() {
    let registry = Registry::built_in();
    assert_eq!(ids_for(&registry, "/w/a.py"), ["pyright", "ty", "basedpyright", "pyrefly", "ruff"]);
    assert_eq!(
        ids_for(&registry, "/w/a.tsx"),
        ["typescript-native", "typescript-language-server", "eslint", "biome"]
    );
    assert_eq!(ids_for(&registry, "/w/README"), [""; 0]);
    let language =
        |id: &str, file: &str| registry.get(id).unwrap().language_id(Utf8Path::new(file)).map(str::to_owned);
    assert_eq!(language("typescript-language-server", "a.d.ts").as_deref(), Some("typescript"));
    assert_eq!(language("typescript-language-server", "a.tsx").as_deref(), Some("typescriptreact"));
    assert_eq!(language("json", "package.json").as_deref(), Some("json"));
    assert_eq!(language("json", "tsconfig.json").as_deref(), Some("jsonc"));
    assert_eq!(language("clangd", "MAIN.CPP").as_deref(), Some("cpp"));
    assert_eq!(language("pyright", "a.python"), None);
}

#[test]
fn files_that_editors_read_with_comments_are_json_with_comments() {
    let registry = Registry::built_in();
    let language = |file: &str| registry.get("json").unwrap().language_id(Utf8Path::new(file));
    for file in [
        "tsconfig.json",
        "src/tsconfig.cjs.spec.json",
        "tsconfig-base.json",
        "jsconfig.build.json",
        "/w/.vscode/settings.json",
        ".devcontainer/devcontainer.json",
        ".eslintrc",
        "a.code-workspace",
        "tslint.json",
        ".babelrc",
        "TSConfig.JSON",
    ] {
        assert_eq!(language(file), Some("jsonc"), "{file}");
    }
    for file in ["package.json", "src/settings.json", "vscode/settings.json", "brush.json"] {
        assert_eq!(language(file), Some("json"), "{file}");
    }
}

/// Empty files below a new folder, and the folder.
fn tree(files: &[&str]) -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let top = Utf8Path::from_path(folder.path()).unwrap().to_owned();
    for file in files {
        std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        std::fs::write(top.join(file), "").unwrap();
    }
    (folder, top)
}

#[test]
fn root_is_never_above_the_workspace() {
    let (_folder, top) = tree(&["pyproject.toml", "uv.lock", "workspace/scripts/a.py"]);
    let workspace = top.join("workspace");
    let root = |file: &str| entry("pyright").root_for(&workspace, &top.join(file));
    assert_eq!(root("workspace/scripts/a.py").unwrap(), workspace);
    assert_eq!(root("a.py"), None);
}

#[test]
fn nested_marker_starts_a_server_only_for_a_separate_project() {
    let (_folder, top) = tree(&[
        "pyproject.toml",
        "examples/plain/pyproject.toml",
        "examples/plain/requirements.txt",
        "examples/locked/pyproject.toml",
        "examples/locked/uv.lock",
        "examples/installed/.venv/pyvenv.cfg",
    ]);
    let root = |file: &str| entry("pyright").root_for(&top, &top.join(file)).unwrap();
    assert_eq!(root("a.py"), top);
    assert_eq!(root("examples/plain/a.py"), top);
    assert_eq!(root("examples/locked/src/a.py"), top.join("examples/locked"));
    assert_eq!(root("examples/installed/a.py"), top.join("examples/installed"));
    for id in ["ruff", "json", "yaml", "html", "css", "bash"] {
        assert_eq!(entry(id).root_for(&top, &top.join("examples/locked/a")).unwrap(), top, "{id}");
    }
}

#[test]
fn without_a_marker_at_the_top_the_outermost_one_decides() {
    let (_folder, top) = tree(&["api/pyproject.toml", "api/docs/pyproject.toml", "web/pyproject.toml"]);
    let root = |file: &str| entry("pyright").root_for(&top, &top.join(file)).unwrap();
    assert_eq!(root("api/docs/conf.py"), top.join("api"));
    assert_eq!(root("web/a.py"), top.join("web"));
    assert_eq!(root("a.py"), top);
}

#[test]
fn packages_without_a_lock_file_share_a_typescript_server() {
    let (_folder, top) = tree(&[
        "packages/one/package.json",
        "packages/one/tsconfig.json",
        "packages/two/package-lock.json",
        "packages/one/eslint.config.mjs",
    ]);
    let root = |id: &str, file: &str| entry(id).root_for(&top, &top.join(file));
    for id in ["typescript-language-server", "typescript-native"] {
        assert_eq!(root(id, "packages/one/src/a.ts").unwrap(), top);
        assert_eq!(root(id, "packages/two/src/a.ts").unwrap(), top.join("packages/two"));
    }
    assert_eq!(root("eslint", "packages/two/a.ts"), None);
    assert_eq!(root("eslint", "packages/one/src/a.ts").unwrap(), top.join("packages/one"));
}

#[test]
fn users_root_marker_is_the_nearest_one() {
    let (_folder, top) = tree(&["pyproject.toml", "uv.lock", "sub/pyproject.toml"]);
    let registry = with(r#"{"pyright": {"rootMarkers": ["pyproject.toml"]}}"#);
    let root = registry.get("pyright").unwrap().root_for(&top, &top.join("sub/a.py"));
    assert_eq!(root.unwrap(), top.join("sub"));
}

#[test]
fn override_inherits_unset_fields() {
    let registry = with(
        r#"{"pyright": {"settings": {"python": {"analysis": {"diagnosticMode": "workspace"}}},
                        "env": {"A": "b"}, "initializationOptions": {"x": {"y": 1}}}}"#,
    );
    let built_in = entry("pyright");
    let changed = registry.get("pyright").unwrap();
    assert_eq!(changed.command, built_in.command);
    assert_eq!(changed.args, built_in.args);
    assert_eq!(changed.extensions, built_in.extensions);
    assert_eq!(section(&changed.settings, Some("python.analysis.diagnosticMode")), &json!("workspace"));
    assert_eq!(section(&changed.settings, Some("python.analysis.autoSearchPaths")), &json!(true));
    assert_eq!(changed.initialization_options, Some(json!({"x": {"y": 1}})));
    assert_eq!(changed.env["A"], "b");
    assert_eq!(changed.enabled, Switch::Auto);
}

#[test]
fn user_command_drops_built_in_arguments() {
    let registry = with(r#"{"pyright": {"command": "/opt/py/langserver"}, "ruff": {"args": ["serve"]}}"#);
    let pyright = registry.get("pyright").unwrap();
    assert_eq!(pyright.command, "/opt/py/langserver");
    assert!(pyright.args.is_empty() && pyright.fallbacks.is_empty());
    assert_eq!(registry.get("ruff").unwrap().args, ["serve"]);
    assert_eq!(registry.get("ruff").unwrap().command, "ruff");
}

#[test]
fn extensions_and_language_ids_can_be_changed() {
    let registry = with(
        r#"{"yaml": {"extensions": [".yaml", ".tmpl"]}, "html": {"extensions": [".vue"], "languageId": "vue"},
            "css": {"languageId": "postcss"}}"#,
    );
    let language =
        |id: &str, file: &str| registry.get(id).unwrap().language_id(Utf8Path::new(file)).map(str::to_owned);
    assert_eq!(language("yaml", "a.yaml").as_deref(), Some("yaml"));
    assert_eq!(language("yaml", "a.tmpl").as_deref(), Some("tmpl"));
    assert_eq!(language("yaml", "a.yml"), None);
    assert_eq!(language("html", "a.vue").as_deref(), Some("vue"));
    assert_eq!(language("css", "a.css").as_deref(), Some("postcss"));
}

#[test]
fn servers_can_be_disabled_and_enabled() {
    let registry = with(r#"{"ruff": {"enabled": false}, "ty": {"enabled": true}}"#);
    assert_eq!(ids_for(&registry, "a.py"), ["pyright", "ty", "basedpyright", "pyrefly"]);
    assert_eq!(registry.get("ruff").unwrap().enabled, Switch::Off);
    assert_eq!(registry.get("ty").unwrap().enabled, Switch::On);
}

#[test]
fn full_definition_adds_a_server() {
    let registry = with(
        r#"{"elixir-ls": {"command": "elixir-ls", "extensions": [".ex", ".exs"], "languageId": "elixir",
                          "rootMarkers": ["mix.exs"]},
            "mine": {"command": "/opt/mine", "extensions": [".py"]}}"#,
    );
    let elixir = registry.get("elixir-ls").unwrap();
    assert_eq!(elixir.language_id(Utf8Path::new("a.exs")), Some("elixir"));
    assert_eq!(elixir.root_markers, [["mix.exs"]]);
    assert!(elixir.has(Capability::References) && elixir.ready.is_none());
    // A known extension keeps its known language id.
    assert_eq!(registry.get("mine").unwrap().language_id(Utf8Path::new("a.py")), Some("python"));
    assert_eq!(ids_for(&registry, "a.py"), ["pyright", "ty", "basedpyright", "pyrefly", "ruff", "mine"]);
}

#[test]
fn invalid_overrides_have_a_hint() {
    assert_eq!(
        refused(r#"{"pyrigth": {"enabled": false}}"#).to_string(),
        "no language server is called `pyrigth`; did you mean `pyright`? A new server needs `command` and `extensions`"
    );
    assert_eq!(
        refused(r#"{"cobol-analyser": {"args": []}}"#).to_string(),
        "no language server is called `cobol-analyser`; a new server needs `command` and `extensions`"
    );
    assert_eq!(
        refused(r#"{"x": {"command": "x"}}"#),
        OverrideError::NoExtensions { id: ServerId::new("x").unwrap() }
    );
    assert!(matches!(
        refused(r#"{"ruff": {"extensions": ["py"]}}"#),
        OverrideError::BadExtension { extension, .. } if extension == "py"
    ));
    assert!(matches!(
        refused(r#"{"ruff": {"rootMarkers": ["../x"]}}"#),
        OverrideError::BadMarker { marker, .. } if marker == "../x"
    ));
    assert!(matches!(refused(r#"{"ruff": {"command": ""}}"#), OverrideError::Empty { field: "command", .. }));
}

#[test]
fn unknown_fields_and_invalid_ids_are_rejected() {
    let parse = |text: &str| serde_json::from_str::<BTreeMap<ServerId, Override>>(text).unwrap_err();
    assert!(parse(r#"{"ruff": {"cmd": "ruff"}}"#).to_string().contains("unknown field `cmd`"));
    assert!(parse(r#"{"../ruff": {}}"#).to_string().contains("cannot be a server id"));
    assert!(parse(r#"{"": {}}"#).to_string().contains("cannot be a server id"));
}

#[test]
fn configuration_is_read_entry_by_entry() {
    let configured = |text: &str| Registry::configured(&serde_json::from_str(text).unwrap());
    let registry = configured(r#"{"ruff": {"enabled": false}}"#).unwrap();
    assert_eq!(registry.get("ruff").unwrap().enabled, Switch::Off);
    let error = configured(r#"{"ruff": {"args": "server"}}"#).unwrap_err().to_string();
    assert!(error.starts_with("invalid settings for the language server `ruff`: "), "{error}");
    assert!(matches!(configured(r#"{"a/b": {}}"#).unwrap_err(), OverrideError::InvalidId(_)));
    assert!(matches!(configured(r#"{"rufff": {}}"#).unwrap_err(), OverrideError::UnknownId { .. }));
}

#[test]
fn sections_are_found_by_their_dotted_name() {
    let settings = json!({"a": {"b": {"c": 1}}, "js/ts": {"x": true}});
    assert_eq!(section(&settings, None), &settings);
    assert_eq!(section(&settings, Some("")), &settings);
    assert_eq!(section(&settings, Some("a.b")), &json!({"c": 1}));
    assert_eq!(section(&settings, Some("js/ts")), &json!({"x": true}));
    assert_eq!(section(&settings, Some("a.x.y")), &json!(null));
}
