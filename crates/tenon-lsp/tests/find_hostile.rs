//! A hostile repository, opened with real servers: they report its errors and run nothing from it.
//!
//! Every planted program, interpreter, library, plugin and configuration leaves a trace when it is run. The same
//! repository leaves traces once it is trusted, so the traces work.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::{Options, Orchestrator, ServerState};
use tenon_lsp::workspace_check::{self, CheckReport, files};
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;
use tenon_testkit::{PATIENCE, program};

struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    fn hostile() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.file("pyproject.toml", "[tool.pyright]\nvenvPath = \".\"\nvenv = \".venv\"\n");
        repository.file("a.py", "x: int = 'not a number'\n");
        repository.file("a.ts", "export const x: number = 'not a number';\n");
        repository.file("a.sh", "#!/bin/sh\necho \"$x\"\n");
        repository.file("a.c", "int x = undeclared;\n");
        repository.file("a.css", ".a { color: }\n");
        repository.file("main.rs", "fn main() {}\n");
        repository
            .file("Cargo.toml", "[package]\nname = \"evil\"\nversion = \"0.1.0\"\nbuild = \"build.rs\"\n");

        for entry in Registry::built_in().entries() {
            for launch in entry.launches() {
                for folder in ["node_modules/.bin", ".venv/bin", "bin"] {
                    repository.program(&format!("{folder}/{}", launch.command));
                }
            }
        }
        for name in ["python", "python3", "node", "shellcheck", "shfmt", "git", "cargo", "rustc", "clang"] {
            repository.program(&format!("bin/{name}"));
            repository.program(&format!(".venv/bin/{name}"));
        }
        repository.file(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.0\n");
        for module in ["json", "os", "site", "sitecustomize"] {
            repository.file(&format!("{module}.py"), &format!("open({:?}, 'w')\n", repository.trace(module)));
        }

        let script = |name: &str| format!("require('fs').writeFileSync({:?}, '')\n", repository.trace(name));
        repository
            .file("node_modules/typescript/package.json", r#"{"name": "typescript", "version": "5.9.3"}"#);
        repository.file("node_modules/typescript/lib/tsserver.js", &script("tsserver"));
        repository.file("node_modules/typescript/lib/typescript.js", &script("typescript"));
        repository.file("node_modules/plugin/package.json", r#"{"name": "plugin", "main": "index.js"}"#);
        repository.file("node_modules/plugin/index.js", &script("plugin"));
        repository.file(
            "tsconfig.json",
            r#"{"compilerOptions": {"plugins": [{"name": "plugin"}]}, "files": ["a.ts"]}"#,
        );
        repository.file("package.json", r#"{"name": "evil"}"#);
        repository.file("eslint.config.js", &script("eslint-config"));
        repository.file(
            "node_modules/eslint/package.json",
            r#"{"name": "eslint", "version": "9.0.0", "main": "index.js"}"#,
        );
        repository.file("node_modules/eslint/index.js", &script("eslint"));

        let compile = r#"[{"directory": ".", "command": "./bin/clang -c a.c", "file": "a.c"}]"#;
        repository.file("compile_commands.json", compile);
        repository.file(".clangd", "CompileFlags:\n  Compiler: ./bin/clang\n");
        repository.file("build.rs", "fn main() {}\n");
        repository
    }

    fn root(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap()
    }

    fn trace(&self, name: &str) -> Utf8PathBuf {
        self.root().join("traces").join(name)
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::create_dir_all(self.root().join("traces")).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn program(&self, path: &str) {
        let trace = self.trace(&path.replace('/', "-"));
        self.file(path, &format!("#!/bin/sh\n/bin/touch {trace}\n"));
        let path = self.root().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The programs that ran, by the traces they left.
    fn traces(&self) -> BTreeSet<String> {
        let traces = std::fs::read_dir(self.root().join("traces")).unwrap();
        traces.map(|one| one.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// With the repository's own folders first on PATH, as after a careless `direnv allow`.
    async fn check(&self, trust: Trust) -> (CheckReport, Vec<(String, ServerState)>) {
        let own = [self.root().join("bin"), self.root().join("node_modules/.bin"), Utf8PathBuf::from("bin")];
        let rest = program::search_path();
        let rest = std::env::split_paths(&rest);
        let path = std::env::join_paths(own.iter().map(|one| one.clone().into()).chain(rest)).unwrap();
        let search = SearchPath::new(&path);
        let gate = RootGate::new([self.root()]).unwrap();
        // A sandbox would keep programs from leaving traces.
        let finder = Finder::new(self.root(), trust, search).without_confinement();
        let registry = Registry::built_in();
        let walk = Walk::new(&self.root(), &["/*.js".to_owned(), "/traces/".to_owned()]).unwrap();
        let files = files::of_paths(&[], &walk, &gate, &registry).unwrap();
        let orchestrator = Orchestrator::open(Options {
            timeouts: workspace_check::timeouts(),
            ..Options::new(gate, registry, finder)
        })
        .await;
        let severities = BTreeSet::from([Severity::Error]);
        let call = CallContext::within(PATIENCE);
        let report = workspace_check::run(&orchestrator, &files, &severities, &call, &mut |_| {}).await;
        let status =
            orchestrator.status().into_iter().map(|line| (line.id.to_string(), line.state)).collect();
        orchestrator.shutdown().await;
        (report, status)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn untrusted_repository_is_checked_and_runs_nothing() {
    let repository = Repository::hostile();
    let (report, status) = repository.check(Trust::Untrusted).await;
    assert_eq!(repository.traces(), BTreeSet::new(), "something of the repository was run");
    let found: BTreeSet<&str> = report.findings().map(|(file, _)| file.file.as_str()).collect();
    for file in ["a.py", "a.ts", "a.c", "a.css"] {
        assert!(found.contains(file), "nothing was found in {file}: {report:#?}");
    }
    for id in ["eslint", "rust-analyzer"] {
        let state = status.iter().find(|(name, _)| name == id).unwrap().1;
        assert_eq!(state, ServerState::Unavailable, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trusted_repository_runs_its_programs() {
    let repository = Repository::hostile();
    let call = repository.check(Trust::Trusted);
    // Planted servers do not speak LSP, so only their traces are checked.
    tokio::time::timeout(PATIENCE + Duration::from_secs(30), call).await.unwrap();
    assert!(
        repository.traces().contains("node_modules-.bin-pyright-langserver"),
        "{:?}",
        repository.traces()
    );
}
