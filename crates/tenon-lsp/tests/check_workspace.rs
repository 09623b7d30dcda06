//! Checking a workspace with real servers: their diagnostics are merged and complete.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_lsp::workspace_check::{self, CheckProgress, CheckReport, Verdict, files};
use tenon_servers::confinement::ConfinementSettings;
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;
use tenon_testkit::{FileTree, PATIENCE, program};

async fn check(root: &Utf8Path, severities: &[Severity]) -> (CheckReport, Vec<CheckProgress>) {
    let gate = RootGate::new([root]).unwrap();
    let finder = Finder::new(root.to_owned(), Trust::Untrusted, SearchPath::new(&program::search_path()))
        .with_confinement(ConfinementSettings::new(None, root.join(".cache/tenon")));
    let registry = Registry::built_in();
    let walk = Walk::new(root, &[]).unwrap();
    let files = files::of_paths(&[], &walk, &gate, &registry).unwrap();
    let orchestrator = Orchestrator::open(Options {
        timeouts: workspace_check::timeouts(),
        ..Options::new(gate, registry, finder)
    })
    .await;
    let mut progress = Vec::new();
    let severities = severities.iter().copied().collect::<BTreeSet<_>>();
    let call = CallContext::within(PATIENCE);
    let report =
        workspace_check::run(&orchestrator, &files, &severities, &call, &mut |one| progress.push(one)).await;
    orchestrator.shutdown().await;
    (report, progress)
}

fn workspace(description: &str) -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap().join("w");
    FileTree::at(root.as_std_path()).fill(description);
    (folder, root)
}

fn lines(report: &CheckReport) -> Vec<String> {
    report
        .findings()
        .map(|(file, found)| {
            let start = found.range.start;
            let source = found.source.as_deref().unwrap_or("-");
            let code = found.code.as_deref().unwrap_or("-");
            format!(
                "{}:{}:{} {} {source} {code}",
                file.file,
                start.line + 1,
                start.character + 1,
                found.severity().as_str()
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn diagnostics_of_several_languages_and_servers_are_merged() {
    let (_folder, root) = workspace(
        "
         //- pyproject.toml
         [project]
         name = \"p\"
         //- python/a.py
         import os
         from b import number
         # 🎉 columns count UTF-16 units
         flag: bool = \"🎉\" if number() else undefined
         text: str = number()
         //- python/b.py
         def number() -> int:
             return 1
         //- web/tsconfig.json
         {\"compilerOptions\": {\"strict\": true}, \"include\": [\".\"]}
         //- web/a.ts
         import { text } from \"./b\";
         export const n: number = text;
         //- web/b.ts
         export const text = \"t\";
         //- engine/compile_flags.txt
         -std=c11
         //- engine/a.c
         int main(void) { return missing; }
         //- style.css
         .a { color: }
         //- data.json
         {\"a\": 1,}
         ",
    );
    let (report, progress) = check(&root, &[Severity::Error, Severity::Warning]).await;
    insta::assert_snapshot!(lines(&report).join("\n"), @r#"
    data.json:1:8 error json 519
    engine/a.c:1:25 error clang undeclared_var_use
    python/a.py:1:1 warning Ruff I001
    python/a.py:1:8 warning Ruff F401
    python/a.py:4:14 error Pyright reportAssignmentType
    python/a.py:4:36 error Pyright reportUndefinedVariable
    python/a.py:4:36 error Ruff F821
    python/a.py:5:13 error Pyright reportAssignmentType
    style.css:1:13 error css css-propertyvalueexpected
    web/a.ts:2:14 error ts 2322
    "#);
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(report.verdict(), Verdict::Findings);
    assert_eq!(progress.last(), Some(&CheckProgress { done: report.files.len(), total: report.files.len() }));

    let json = |report: &CheckReport| serde_json::to_string(report).unwrap();
    let (again, _) = check(&root, &[Severity::Error, Severity::Warning]).await;
    assert_eq!(json(&report), json(&again), "two runs of one check differ");
}
