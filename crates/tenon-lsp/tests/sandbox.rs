//! A hostile repository whose configuration makes real servers read or write files elsewhere: the sandbox prevents it.
//!
//! The same repository changes the file without a sandbox, so the attacks work.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_lsp::workspace_check::{self, CheckReport, files};
use tenon_servers::confinement::{ConfinementSettings, KernelSupport};
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;
use tenon_testkit::{FileTree, PATIENCE, program};

/// A workspace below a home folder that holds a file to protect.
struct Machine {
    _folder: tempfile::TempDir,
    home: Utf8PathBuf,
}

impl Machine {
    fn new(workspace: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        let machine = Self { _folder: folder, home };
        FileTree::at(machine.root().as_std_path())
            .fill(&workspace.replace("{root}", machine.root().as_str()));
        std::fs::write(machine.victim(), SECRET).unwrap();
        machine
    }

    fn root(&self) -> Utf8PathBuf {
        self.home.join("code")
    }

    fn victim(&self) -> Utf8PathBuf {
        self.home.join("victim")
    }

    fn victim_is_unchanged(&self) -> bool {
        let names = self.home.read_dir_utf8().unwrap().map(|one| one.unwrap().file_name().to_owned());
        let names: BTreeSet<String> = names.collect();
        let expected = ["cache", "code", "victim"].map(str::to_owned);
        std::fs::read_to_string(self.victim()).unwrap() == SECRET && names.is_subset(&expected.into())
    }

    fn finder(&self, trust: Trust) -> Finder {
        let settings = ConfinementSettings::new(Some(self.home.clone()), self.home.join("cache"));
        Finder::new(self.root(), trust, SearchPath::new(&program::search_path())).with_confinement(settings)
    }

    async fn check(&self, finder: Finder) -> CheckReport {
        let gate = RootGate::new([self.root()]).unwrap();
        let registry = Registry::built_in();
        let walk = Walk::new(&self.root(), &[]).unwrap();
        let files = files::of_paths(&[], &walk, &gate, &registry).unwrap();
        let orchestrator = Orchestrator::open(Options {
            timeouts: workspace_check::timeouts(),
            ..Options::new(gate, registry, finder)
        })
        .await;
        let severities = BTreeSet::from([Severity::Error, Severity::Warning]);
        let call = CallContext::within(PATIENCE);
        let report = workspace_check::run(&orchestrator, &files, &severities, &call, &mut |_| {}).await;
        orchestrator.shutdown().await;
        report
    }
}

const SECRET: &str = "{\"token\": swordfish}\n";

/// Configurations that name a file or folder outside the root to write. The last one is obeyed by clangd 22.
const CLANGD: [&str; 5] = [
    "//- .clangd\nCompileFlags:\n  Add: [-serialize-diagnostics, ../victim]\n//- a.c\nint x = undeclared;\n",
    "//- compile_commands.json\n[{\"directory\": \"{root}\", \"file\": \"a.c\", \"arguments\": [\"cc\", \"-serialize-diagnostics\", \"../victim\", \"a.c\"]}]\n\
     //- a.c\nint x = undeclared;\n",
    "//- build/compile_commands.json\n[{\"directory\": \"{root}\", \"file\": \"a.c\", \"command\": \"cc --serialize-diagnostics ../victim a.c\"}]\n\
     //- a.c\nint x = undeclared;\n",
    "//- compile_flags.txt\n-serialize-diagnostics\n../victim\n//- a.c\nint x = undeclared;\n",
    "//- compile_commands.json\n[{\"directory\": \"{root}\", \"file\": \"a.c\", \"arguments\": [\"cc\", \"-fmodules\", \"-fmodules-cache-path=../modules\", \"a.c\"]}]\n\
     //- a.c\nint x = undeclared;\n",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clangd_configuration_changes_nothing_outside_the_root() {
    if KernelSupport::now() != KernelSupport::Full {
        return;
    }
    for workspace in CLANGD {
        for trust in [Trust::Untrusted, Trust::Trusted] {
            let machine = Machine::new(workspace);
            let report = machine.check(machine.finder(trust)).await;
            assert!(machine.victim_is_unchanged(), "{trust:?}: {workspace}");
            assert_eq!(report.findings().count(), 1, "{trust:?}: {workspace}: {report:#?}");
        }
    }
    let machine = Machine::new(CLANGD[4]);
    machine.check(machine.finder(Trust::Trusted).without_confinement()).await;
    assert!(!machine.victim_is_unchanged(), "the attack does not work without a sandbox either");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clangd_waits_for_trust_where_the_kernel_cannot_confine_it() {
    let machine = Machine::new(CLANGD[1]);
    let settings = ConfinementSettings::new(Some(machine.home.clone()), machine.home.join("cache"));
    let finder = machine.finder(Trust::Untrusted).with_confinement(settings.without_kernel_support());
    let registry = Registry::built_in();
    let found = finder.find(registry.get("clangd").unwrap(), &machine.root());
    assert_eq!(found.unwrap_err().fix.to_string(), "run `tenon trust`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_the_home_folder_are_not_read_before_trust() {
    if KernelSupport::now() == KernelSupport::None {
        return;
    }
    let machine = Machine::new("");
    let victim = machine.victim();
    let files = FileTree::at(machine.root().as_std_path());
    files.write("a.json", &format!("{{\"$schema\": \"file://{victim}\", \"a\": 1}}\n"));
    files.write("b.c", &format!("#include \"{victim}\"\n"));
    files.write("c.py", "import victim\n");
    let report = machine.check(machine.finder(Trust::Untrusted)).await;
    let text = format!("{report:#?}");
    assert!(!text.contains("swordfish"), "{text}");
    assert!(report.findings().any(|(file, _)| file.file == "b.c"), "{text}");
}

const BUILD_SCRIPT: &str = "//- Cargo.toml\n[package]\nname = \"evil\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
    //- build.rs\nfn main() {\n    std::fs::write(\"ran\", \"\").unwrap();\n    let _ = std::fs::write(\"../victim\", \"changed\");\n    let _ = std::fs::write(\"../new\", \"\");\n}\n\
    //- src/lib.rs\npub fn f() -> u8 {\n    \"\"\n}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_analyzer_runs_build_scripts_only_after_trust_and_confined() {
    if KernelSupport::now() != KernelSupport::Full {
        return;
    }
    let machine = Machine::new(BUILD_SCRIPT);
    let ran = machine.root().join("ran");
    let before = machine.check(machine.finder(Trust::Untrusted)).await;
    assert!(!ran.exists(), "{before:#?}");
    assert!(!machine.root().join("target").exists(), "{before:#?}");

    let after = machine.check(machine.finder(Trust::Trusted)).await;
    assert!(ran.exists(), "the build script ran: {after:#?}");
    assert!(machine.victim_is_unchanged(), "{after:#?}");
    let of_compiler = |(_, one): (_, &Diagnostic)| one.source.as_deref() == Some("rustc");
    assert_eq!(after.findings().filter(|finding| of_compiler(*finding)).count(), 1, "{after:#?}");

    std::fs::remove_dir_all(machine.root().join("target")).unwrap();
    machine.check(machine.finder(Trust::Trusted).without_confinement()).await;
    assert!(!machine.victim_is_unchanged(), "the attack does not work without a sandbox either");
}
