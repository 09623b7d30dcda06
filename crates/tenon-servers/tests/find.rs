//! Finding servers: lookup order, groups, and hostile repositories.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use tenon_servers::find::{
    Availability, Finder, LookupPaths, Program, ProgramOrigin, SearchPath, Trust, Unavailable,
    UnavailableReason,
};
use tenon_servers::install::{Managed, PackageLock};
use tenon_servers::registry::{Override, Registry, ServerId, section};

/// A machine in a folder: a workspace, programs outside it, a managed folder.
struct Machine {
    folder: tempfile::TempDir,
    path: Vec<Utf8PathBuf>,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Self { folder, path: Vec::new() };
        std::fs::create_dir_all(machine.root()).unwrap();
        machine
    }

    fn top(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap()
    }

    fn root(&self) -> Utf8PathBuf {
        self.top().join("workspace")
    }

    /// An executable file; starting it would leave a trace.
    fn program(&self, path: &str) -> Utf8PathBuf {
        let path = self.top().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}/ran\n", self.top())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.top().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn on_path(mut self, folder: &str) -> Self {
        self.path.push(self.top().join(folder));
        self
    }

    fn finder(&self, trust: Trust) -> Finder {
        let path = std::env::join_paths(&self.path).unwrap();
        Finder::new(self.root(), trust, SearchPath::new(&path))
            .with_managed(Managed::new(self.top().join("managed")))
            .with_rustup_home(self.top().join("rustup"))
    }

    fn find(&self, id: &str, trust: Trust) -> Result<Program, Unavailable> {
        let registry = Registry::built_in();
        self.finder(trust).find(registry.get(id).unwrap(), &self.root())
    }

    fn nothing_ran(&self) -> bool {
        !self.top().join("ran").exists()
    }

    /// The folder of a complete installation of a lock.
    fn managed(&self, lock: &str, bin: &str) -> String {
        let version = PackageLock::named(lock).unwrap().version;
        let folder = format!("managed/{lock}-{version}-00000000");
        self.file(&format!("{folder}/.complete"), "");
        format!("{folder}/{bin}")
    }
}

fn find_all(registry: &Registry, finder: &Finder) -> BTreeMap<String, String> {
    let text = |availability: Availability| match availability {
        Availability::Found(program) => format!("found {:?}", program.origin),
        Availability::Unavailable(unavailable) => format!("{}: {}", unavailable.reason, unavailable.fix),
        Availability::Disabled(disabled) => disabled.to_string(),
    };
    finder
        .find_all(registry)
        .into_iter()
        .map(|(entry, availability)| (entry.id.to_string(), text(availability)))
        .collect()
}

fn overridden(text: &str) -> Registry {
    let overrides: BTreeMap<ServerId, Override> = serde_json::from_str(text).unwrap();
    Registry::with_overrides(&overrides).unwrap()
}

#[test]
fn lookup_order_is_trusted_workspace_managed_folder_path() {
    let machine = Machine::new().on_path("bin");
    machine.program("bin/ruff");
    let found = machine.find("ruff", Trust::Trusted).unwrap();
    assert_eq!((found.origin, found.path), (ProgramOrigin::Path, machine.top().join("bin/ruff")));
    assert_eq!(found.args, ["server"]);

    let managed = machine.managed("ruff", "venv/bin");
    machine.program(&format!("{managed}/ruff"));
    assert_eq!(machine.find("ruff", Trust::Trusted).unwrap().origin, ProgramOrigin::Managed);

    machine.file("workspace/.venv/pyvenv.cfg", "");
    machine.program("workspace/.venv/bin/ruff");
    let found = machine.find("ruff", Trust::Trusted).unwrap();
    assert_eq!((found.origin, found.path), (ProgramOrigin::Workspace, machine.root().join(".venv/bin/ruff")));
    assert_eq!(machine.find("ruff", Trust::Untrusted).unwrap().origin, ProgramOrigin::Managed);
}

#[test]
fn nested_project_programs_come_before_those_of_the_root() {
    let machine = Machine::new();
    machine.program("workspace/node_modules/.bin/pyright-langserver");
    machine.program("workspace/packages/one/node_modules/.bin/pyright-langserver");
    let registry = Registry::built_in();
    let finder = machine.finder(Trust::Trusted);
    let project = machine.root().join("packages/one");
    let found = finder.find(registry.get("pyright").unwrap(), &project).unwrap();
    assert_eq!(found.path, project.join("node_modules/.bin/pyright-langserver"));
}

#[test]
fn incomplete_installation_is_ignored() {
    let machine = Machine::new();
    let managed = machine.managed("ruff", "venv/bin");
    machine.program(&format!("{managed}/ruff"));
    let mark = machine.top().join(managed.trim_end_matches("venv/bin")).join(".complete");
    std::fs::remove_file(mark).unwrap();
    assert_eq!(machine.find("ruff", Trust::Trusted).unwrap_err().reason, UnavailableReason::NotFound);
}

#[test]
fn missing_server_has_an_install_hint() {
    let machine = Machine::new();
    let fix = |id: &str| machine.find(id, Trust::Trusted).unwrap_err().fix.to_string();
    assert_eq!(fix("pyright"), "run `tenon servers install pyright`");
    assert_eq!(fix("rust-analyzer"), "run `tenon servers install rust-analyzer`");
    assert_eq!(fix("zls"), "see the zls releases, in the version of your `zig`");
    // Neither a folder nor a file without the permission is a program.
    let machine = machine.on_path("bin");
    machine.file("bin/ruff", "");
    std::fs::create_dir_all(machine.top().join("bin/ty")).unwrap();
    assert_eq!(machine.find("ruff", Trust::Trusted).unwrap_err().reason, UnavailableReason::NotFound);
    assert_eq!(machine.find("ty", Trust::Trusted).unwrap_err().reason, UnavailableReason::NotFound);
}

#[test]
fn fallback_is_used_if_the_first_command_is_missing() {
    let machine = Machine::new().on_path("bin");
    machine.program("bin/basedpyright-langserver");
    let found = machine.find("pyright", Trust::Trusted).unwrap();
    assert_eq!(found.path, machine.top().join("bin/basedpyright-langserver"));
    // It runs the interpreter of a virtualenv that it finds in the workspace.
    assert_eq!(machine.find("pyright", Trust::Untrusted).unwrap_err().reason, UnavailableReason::Untrusted);
}

#[test]
fn one_server_of_a_group_runs() {
    let machine = Machine::new().on_path("bin");
    machine.program("bin/pyright-langserver");
    machine.program("bin/ty");
    machine.program("bin/ruff");
    let finder = machine.finder(Trust::Untrusted);
    let found = find_all(&Registry::built_in(), &finder);
    assert_eq!(found["pyright"], "found Path");
    assert_eq!(found["ty"], "`pyright` serves its files");
    assert_eq!(found["ruff"], "found Path");

    let found = find_all(&overridden(r#"{"ty": {"enabled": true}}"#), &finder);
    assert_eq!(found["pyright"], "`ty` serves its files");
    assert_eq!(found["ty"], "found Path");

    let both = r#"{"ty": {"enabled": true}, "pyright": {"enabled": true}, "ruff": {"enabled": false}}"#;
    let found = find_all(&overridden(both), &finder);
    assert_eq!(found["pyright"], "found Path");
    assert_eq!(found["ty"], "found Path");
    assert_eq!(found["ruff"], "disabled in the configuration");

    std::fs::remove_file(machine.top().join("bin/pyright-langserver")).unwrap();
    let found = find_all(&Registry::built_in(), &finder);
    assert_eq!(found["pyright"], "`ty` serves its files");
    assert_eq!(found["ty"], "found Path");

    std::fs::remove_file(machine.top().join("bin/ty")).unwrap();
    let found = find_all(&Registry::built_in(), &finder);
    assert_eq!(found["pyright"], "not found: run `tenon servers install pyright`");
    assert_eq!(found["ty"], "`pyright` serves its files");
}

#[test]
fn servers_that_run_workspace_code_wait_for_trust() {
    let machine = Machine::new().on_path("bin");
    for command in
        ["rust-analyzer", "vscode-eslint-language-server", "biome", "ruby-lsp", "jdtls", "zls", "gopls"]
    {
        machine.program(&format!("bin/{command}"));
    }
    let found = find_all(&Registry::built_in(), &machine.finder(Trust::Untrusted));
    for id in ["rust-analyzer", "eslint", "biome", "ruby-lsp", "jdtls", "zls"] {
        assert_eq!(found[id], "untrusted: run `tenon trust`", "{id}");
    }
    assert_eq!(found["gopls"], "found Path");
    let found = find_all(&Registry::built_in(), &machine.finder(Trust::Trusted));
    for id in ["rust-analyzer", "eslint", "biome", "ruby-lsp", "jdtls", "zls"] {
        assert_eq!(found[id], "found Path", "{id}");
    }
}

/// A repository that plants a program for every server in every lookup folder.
fn hostile() -> Machine {
    let machine = Machine::new()
        .on_path("workspace/bin")
        .on_path("workspace/not/there/yet")
        .on_path("linked-bin")
        .on_path("bin");
    for entry in Registry::built_in().entries() {
        for launch in entry.launches() {
            for folder in ["node_modules/.bin", ".venv/bin", "venv/bin", "bin", "."] {
                machine.program(&format!("workspace/{folder}/{}", launch.command));
            }
        }
    }
    machine.file("workspace/.venv/pyvenv.cfg", "");
    machine.file("workspace/venv/pyvenv.cfg", "");
    machine.program("workspace/.venv/bin/python");
    // A folder outside that is a link to one inside, and a link to a single program.
    symlink(machine.root().join("node_modules/.bin"), machine.top().join("linked-bin")).unwrap();
    std::fs::create_dir_all(machine.top().join("bin")).unwrap();
    symlink(machine.root().join("bin/ty"), machine.top().join("bin/ty")).unwrap();
    machine
}

#[test]
fn programs_in_an_untrusted_repository_are_not_found() {
    let machine = hostile();
    let registry = Registry::built_in();
    for (entry, availability) in machine.finder(Trust::Untrusted).find_all(&registry) {
        assert!(!matches!(availability, Availability::Found(_)), "{} would start {availability:?}", entry.id);
    }
    // Once trusted, the same programs are found.
    let trusted = machine.finder(Trust::Trusted);
    let found = trusted.find(registry.get("ty").unwrap(), &machine.root()).unwrap();
    assert_eq!(found.origin, ProgramOrigin::Workspace);
    assert!(machine.nothing_ran());
}

#[test]
fn lost_trust_applies_at_the_next_start() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let machine = Machine::new();
    machine.program("workspace/node_modules/.bin/pyright-langserver");
    let vouched = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&vouched);
    let finder =
        machine.finder(Trust::Trusted).with_trust_check(move || match asked.load(Ordering::SeqCst) {
            true => Trust::Trusted,
            false => Trust::Untrusted,
        });
    let registry = Registry::built_in();
    let pyright = registry.get("pyright").unwrap();
    assert_eq!(finder.find(pyright, &machine.root()).unwrap().origin, ProgramOrigin::Workspace);
    vouched.store(false, Ordering::SeqCst);
    assert!(finder.find(pyright, &machine.root()).is_err());
}

#[test]
fn program_of_the_workspace_that_is_not_pinned_is_not_used() {
    let machine = Machine::new().on_path("bin");
    machine.file("workspace/.venv/pyvenv.cfg", "");
    let own = machine.program("workspace/.venv/bin/ruff");
    machine.program("workspace/.venv/bin/python");
    machine.program("workspace/tools/ty");
    std::fs::create_dir_all(machine.top().join("bin")).unwrap();
    symlink(machine.root().join("tools/ty"), machine.top().join("bin/ty")).unwrap();
    let registry = Registry::built_in();
    let finder = |pinned: &'static str| {
        machine.finder(Trust::Trusted).with_program_check(move |path| path.ends_with(pinned))
    };
    let find = |id: &str, pinned| finder(pinned).find(registry.get(id).unwrap(), &machine.root());
    assert_eq!(find("ruff", "bin/ruff").unwrap().path, own);
    for (id, pinned) in [("ruff", "bin/other"), ("ty", "bin/ty")] {
        assert_eq!(find(id, pinned).unwrap_err().reason, UnavailableReason::Untrusted, "{id}");
    }
    assert!(find("ty", "tools/ty").is_ok(), "a link into the root is pinned by its target");
    machine.program("bin/ruff");
    assert_eq!(find("ruff", "bin/other").unwrap().origin, ProgramOrigin::Path);
    machine.program("bin/pyright-langserver");
    let interpreter = |pinned| find("pyright", pinned).unwrap().settings["python"]["pythonPath"].is_string();
    assert!(interpreter("bin/python") && !interpreter("bin/other"));

    let paths = finder("").lookup_paths(&registry, &machine.root(), LookupPaths::All);
    for path in [".venv/bin/ruff", "venv/bin/python", "node_modules/.bin/pyright-langserver", "tools/ty"] {
        assert!(paths.contains(&machine.root().join(path)), "{path} is missing from {paths:?}");
    }
    assert!(paths.iter().all(|path| path.starts_with(machine.root())), "{paths:?}");
    let existing = finder("").lookup_paths(&registry, &machine.root(), LookupPaths::Existing);
    assert_eq!(existing.len(), 3, "{existing:?}");
}

#[test]
fn path_of_child_processes_excludes_the_untrusted_root() {
    let machine = hostile();
    machine.program("bin/ruff");
    let found = machine.find("ruff", Trust::Untrusted).unwrap();
    assert_eq!(found.path, machine.top().join("bin/ruff"));
    assert_eq!(found.env["PATH"], machine.top().join("bin").as_str());
    let found = machine.find("ruff", Trust::Trusted).unwrap();
    assert!(found.env["PATH"].contains("workspace/bin"));
}

#[test]
fn relative_path_entries_are_ignored() {
    let search = SearchPath::new(std::ffi::OsStr::new(".::node_modules/.bin:/usr/bin:/usr/bin"));
    assert_eq!(search.join(None), "/usr/bin");
}

#[test]
fn relative_user_command_needs_trust_and_absolute_one_does_not() {
    let machine = Machine::new();
    let planted = machine.program("workspace/tools/ruff");
    let relative = overridden(r#"{"ruff": {"command": "./tools/ruff"}}"#);
    let find = |registry: &Registry, trust| {
        machine.finder(trust).find(registry.get("ruff").unwrap(), &machine.root())
    };
    assert_eq!(find(&relative, Trust::Untrusted).unwrap_err().reason, UnavailableReason::NotFound);
    assert_eq!(find(&relative, Trust::Trusted).unwrap().origin, ProgramOrigin::UserConfig);
    let absolute = overridden(&json!({"ruff": {"command": planted}}).to_string());
    assert_eq!(find(&absolute, Trust::Untrusted).unwrap().origin, ProgramOrigin::UserConfig);
    let missing = overridden(r#"{"ruff": {"command": "my-ruff"}}"#);
    let unavailable = find(&missing, Trust::Trusted).unwrap_err();
    assert_eq!(unavailable.fix.to_string(), "install `my-ruff` or correct its `command`");
}

#[test]
fn typescript_is_pinned_to_the_servers_own_copy_before_trust() {
    let machine = Machine::new().on_path("bin");
    machine.program("lib/node_modules/typescript-language-server/cli.mjs");
    std::fs::create_dir_all(machine.top().join("bin")).unwrap();
    symlink(
        machine.top().join("lib/node_modules/typescript-language-server/cli.mjs"),
        machine.top().join("bin/typescript-language-server"),
    )
    .unwrap();
    machine.file("workspace/node_modules/typescript/lib/tsserver.js", "planted");
    // Without a bundled copy it would use the planted one.
    let id = "typescript-language-server";
    assert_eq!(machine.find(id, Trust::Untrusted).unwrap_err().reason, UnavailableReason::Untrusted);

    machine.file("lib/node_modules/typescript/lib/tsserver.js", "own");
    let options = machine.find(id, Trust::Untrusted).unwrap().initialization_options.unwrap();
    let own = machine.top().join("lib/node_modules/typescript/lib/tsserver.js");
    assert_eq!(section(&options, Some("tsserver.path")), &json!(own));
    assert_eq!(section(&options, Some("tsserver.useSyntaxServer")), &json!("never"));

    let options = machine.find(id, Trust::Trusted).unwrap().initialization_options.unwrap();
    assert_eq!(section(&options, Some("tsserver.path")), &json!(null));
}

#[test]
fn virtualenv_is_read_before_trust_and_run_after() {
    let machine = Machine::new().on_path("bin");
    machine.program("bin/pyright-langserver");
    machine.file("workspace/.venv/pyvenv.cfg", "");
    machine.program("workspace/.venv/bin/python");
    machine.file("workspace/.venv/lib/python3.12/site-packages/x.py", "");
    let settings = machine.find("pyright", Trust::Untrusted).unwrap().settings;
    let packages = machine.root().join(".venv/lib/python3.12/site-packages");
    assert_eq!(section(&settings, Some("python.analysis.extraPaths")), &json!([packages]));
    assert_eq!(section(&settings, Some("python.pythonPath")), &json!(null));
    let settings = machine.find("pyright", Trust::Trusted).unwrap().settings;
    assert_eq!(
        section(&settings, Some("python.pythonPath")),
        &json!(machine.root().join(".venv/bin/python"))
    );
}

/// The name of this platform in npm packages.
fn platform() -> &'static str {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "darwin-x64",
        ("macos", "aarch64") => "darwin-arm64",
        other => panic!("unknown platform {other:?}"),
    }
}

impl Machine {
    /// The npm package `typescript` in a `node_modules` folder; from version 7 on with a binary.
    fn typescript(&self, modules: &str, version: &str) -> Utf8PathBuf {
        self.program(&format!("{modules}/typescript/bin/tsc"));
        let manifest = json!({"name": "typescript", "version": version, "bin": {"tsc": "bin/tsc"}});
        self.file(&format!("{modules}/typescript/package.json"), &manifest.to_string());
        if version.starts_with('7') {
            return self.program(&format!("{modules}/@typescript/typescript-{}/lib/tsc", platform()));
        }
        self.file(&format!("{modules}/typescript/lib/tsserver.js"), "");
        self.top().join(format!("{modules}/typescript/bin/tsc"))
    }

    fn link(&self, target: &str, link: &str) {
        let link = self.top().join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }
}

#[test]
fn typescript_7_starts_the_binary_and_not_the_script() {
    let machine = Machine::new().on_path("bin");
    let binary = machine.typescript("lib/node_modules", "7.0.2");
    machine.link("../lib/node_modules/typescript/bin/tsc", "bin/tsc");
    let found = machine.find("typescript-native", Trust::Untrusted).unwrap();
    assert_eq!((found.path, found.origin), (binary.clone(), ProgramOrigin::Path));
    assert_eq!(found.args, ["--lsp", "--stdio"]);

    // The package for another platform, or none.
    std::fs::remove_file(&binary).unwrap();
    let missing = machine.find("typescript-native", Trust::Untrusted).unwrap_err();
    assert_eq!(missing.reason, UnavailableReason::NotFound);
    assert_eq!(missing.fix.to_string(), "run `tenon servers install typescript-native`");
}

#[test]
fn older_compiler_is_not_the_native_server() {
    let machine = Machine::new().on_path("bin");
    machine.typescript("lib/node_modules", "5.9.3");
    machine.link("../lib/node_modules/typescript/bin/tsc", "bin/tsc");
    let missing = || machine.find("typescript-native", Trust::Trusted).unwrap_err().reason;
    assert_eq!(missing(), UnavailableReason::NotFound);
    // A script of pnpm, which is not a link.
    machine.typescript("workspace/node_modules", "5.9.3");
    machine.program("workspace/node_modules/.bin/tsc");
    assert_eq!(missing(), UnavailableReason::NotFound);
    let binary = machine.typescript("workspace/node_modules", "7.0.2");
    assert_eq!(machine.find("typescript-native", Trust::Trusted).unwrap().path, binary);
}

#[test]
fn binary_that_a_link_leads_into_an_untrusted_root_is_rejected() {
    let machine = Machine::new().on_path("bin");
    let binary = machine.typescript("lib/node_modules", "7.0.2");
    machine.link("../lib/node_modules/typescript/bin/tsc", "bin/tsc");
    let planted = machine.program("workspace/planted");
    std::fs::remove_file(&binary).unwrap();
    symlink(&planted, &binary).unwrap();
    assert!(machine.find("typescript-native", Trust::Untrusted).is_err());
}

/// The server for TypeScript in a project, why, and what is missed.
fn typescript_choice(machine: &Machine, trust: Trust, settings: &str, project: &str) -> [String; 3] {
    let registry = overridden(settings);
    let project = machine.root().join(project);
    let choice = machine.finder(trust).group_choice(&registry, "typescript", &project);
    let [choice] = choice.try_into().unwrap();
    let missed = choice.missed.map(|missed| format!("{} {}: {}", missed.package, missed.server, missed.fix));
    [choice.server.to_string(), choice.why.to_string(), missed.unwrap_or_default()]
}

#[test]
fn trusted_project_with_an_older_typescript_keeps_it() {
    let machine = Machine::new().on_path("bin");
    machine.typescript("lib/node_modules", "7.0.2");
    machine.link("../lib/node_modules/typescript/bin/tsc", "bin/tsc");
    machine.typescript("workspace/web/node_modules", "5.9.3");
    let (native, older) = ("typescript-native", "typescript-language-server");
    let chosen = |trust, settings: &str, project: &str| typescript_choice(&machine, trust, settings, project);
    let install = format!("`typescript` 5.9.3 {older}: run `tenon servers install {older}`");
    assert_eq!(chosen(Trust::Trusted, "{}", "web"), [native, "the default", install.as_str()]);
    assert_eq!(chosen(Trust::Trusted, "{}", ""), [native, "the default", ""]);

    machine.program("bin/typescript-language-server");
    machine.file("bin/node_modules/typescript/lib/tsserver.js", "");
    assert_eq!(chosen(Trust::Trusted, "{}", "web"), [older, "the project has `typescript` 5.9.3", ""]);
    assert_eq!(chosen(Trust::Trusted, "{}", "web/src"), [older, "the project has `typescript` 5.9.3", ""]);
    assert_eq!(chosen(Trust::Trusted, "{}", "api"), [native, "the default", ""]);

    let enabled = r#"{"typescript-native": {"enabled": true}}"#;
    assert_eq!(chosen(Trust::Trusted, enabled, "web"), [native, "enabled in the configuration", ""]);
    let disabled = r#"{"typescript-language-server": {"enabled": false}}"#;
    assert_eq!(chosen(Trust::Trusted, disabled, "web"), [native, "the default", ""]);
    let disabled = r#"{"typescript-native": {"enabled": false}}"#;
    assert_eq!(chosen(Trust::Trusted, disabled, "api"), [older, "the default", ""]);

    machine.typescript("workspace/web/node_modules", "7.1.0");
    assert_eq!(chosen(Trust::Trusted, "{}", "web"), [native, "the default", ""]);
    std::fs::remove_file(machine.top().join("bin/tsc")).unwrap();
    assert_eq!(chosen(Trust::Trusted, "{}", "api"), [older, "`typescript-native` is not available", ""]);
}

#[test]
fn older_typescript_of_an_untrusted_project_is_not_used() {
    let machine = Machine::new().on_path("lib/node_modules/.bin");
    machine.typescript("lib/node_modules", "7.0.2");
    machine.link("../typescript/bin/tsc", "lib/node_modules/.bin/tsc");
    machine.typescript("workspace/node_modules", "5.9.3");
    let chosen = || typescript_choice(&machine, Trust::Untrusted, "{}", "");
    let older = "typescript-language-server";
    let install = format!("`typescript` 5.9.3 {older}: run `tenon servers install {older}`");
    assert_eq!(chosen(), ["typescript-native", "the default", install.as_str()]);
    machine.program("lib/node_modules/typescript-language-server/cli.mjs");
    machine.link("../typescript-language-server/cli.mjs", &format!("lib/node_modules/.bin/{older}"));
    machine.file("lib/node_modules/typescript/lib/tsserver.js", "own");
    let trust = format!("`typescript` 5.9.3 {older}: run `tenon trust`");
    assert_eq!(chosen(), ["typescript-native", "the default", trust.as_str()]);
    let found = find_all(&Registry::built_in(), &machine.finder(Trust::Untrusted));
    assert_eq!(found[older], "`typescript-native` serves its files");
    let found = find_all(&Registry::built_in(), &machine.finder(Trust::Trusted));
    assert_eq!(found["typescript-native"], "`typescript-language-server` serves its files");
    assert_eq!(found[older], "found Path");
}

#[test]
fn rustup_proxy_counts_only_with_its_component() {
    let machine = Machine::new().on_path("cargo/bin");
    machine.program("cargo/bin/rustup");
    symlink("rustup", machine.top().join("cargo/bin/rust-analyzer")).unwrap();
    let missing = machine.find("rust-analyzer", Trust::Trusted).unwrap_err();
    assert_eq!(missing.reason, UnavailableReason::NotFound);
    assert_eq!(missing.fix.to_string(), "run `tenon servers install rust-analyzer`");

    let at = |toolchain: &str| format!("rustup/toolchains/{toolchain}/bin/rust-analyzer");
    machine.program(&at("nightly-x86_64-unknown-linux-gnu"));
    let found = || machine.find("rust-analyzer", Trust::Trusted).unwrap().path;
    assert_eq!(found(), machine.top().join(at("nightly-x86_64-unknown-linux-gnu")));
    machine.program(&at("stable-x86_64-unknown-linux-gnu"));
    machine.file("rustup/settings.toml", "default_toolchain = \"stable-x86_64-unknown-linux-gnu\"\n");
    assert_eq!(found(), machine.top().join(at("stable-x86_64-unknown-linux-gnu")));
    machine.program(&at("1.90.0-x86_64-unknown-linux-gnu"));
    machine.file("workspace/rust-toolchain.toml", "[toolchain]\nchannel = \"1.90.0\"\n");
    assert_eq!(found(), machine.top().join(at("1.90.0-x86_64-unknown-linux-gnu")));

    // rustup also uses hard links.
    std::fs::remove_file(machine.top().join("cargo/bin/rust-analyzer")).unwrap();
    std::fs::hard_link(machine.top().join("cargo/bin/rustup"), machine.top().join("cargo/bin/rust-analyzer"))
        .unwrap();
    assert_eq!(found(), machine.top().join(at("1.90.0-x86_64-unknown-linux-gnu")));
    assert!(machine.nothing_ran());
}
