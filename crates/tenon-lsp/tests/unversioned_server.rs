//! A real server without threads and versions (fortls): an error appears, is corrected and disappears.
#![cfg(target_os = "linux")]

use std::time::Duration;

use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::model::GapReason;
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_servers::confinement::ConfinementSettings;
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::{Registry, ServerEntry};
use tenon_testkit::program;

const FINE: &str = "module m\n  implicit none\ncontains\n  subroutine s(a)\n    integer :: a\n    a = 1\n  end subroutine s\nend module m\n";

fn broken() -> String {
    FINE.replace("    a = 1", "    integer :: a\n    a = 1")
}

#[tokio::test]
async fn every_saved_text_of_a_fortran_file_is_checked() {
    program::tool("fortls");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.f90");
    std::fs::write(&file, FINE).unwrap();
    let gate = RootGate::new([folder.path()]).unwrap();
    let entries: Vec<ServerEntry> = Registry::built_in()
        .entries()
        .iter()
        .filter(|entry| entry.id.as_str() == "fortls")
        .cloned()
        .collect();
    let root = gate.primary().unwrap().to_owned();
    let confinement = ConfinementSettings::new(None, root.join(".cache/tenon"));
    let finder = Finder::new(root, Trust::Trusted, SearchPath::new(&program::search_path()))
        .with_confinement(confinement);
    let mut options = Options::new(gate, Registry::of(entries), finder);
    options.timeouts.check = Duration::from_secs(60);
    options.timeouts.first_check = Duration::from_secs(60);
    let orchestrator = Orchestrator::open(options).await;
    let path = orchestrator.gate().admit_path("m.f90").unwrap();
    let call = CallContext::within(Duration::from_secs(120));

    for (text, wrong) in [(FINE.to_owned(), 0), (broken(), 1), (FINE.to_owned(), 0), (broken(), 1)] {
        std::fs::write(&file, &text).unwrap();
        let answer = orchestrator.check(&path, Some(text), &call).await.unwrap();
        assert_eq!((answer.value.len(), answer.is_complete()), (wrong, true), "{answer:?}");
    }
    // It reads the disk, so it says nothing about a text that is not there.
    let answer = orchestrator.check(&path, Some(FINE.to_owned()), &call).await.unwrap();
    assert_eq!(answer.value, []);
    assert!(matches!(answer.gaps[0].why, GapReason::Refused(_)), "{answer:?}");
    orchestrator.shutdown().await;
}
