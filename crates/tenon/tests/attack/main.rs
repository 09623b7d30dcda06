//! Hostile repositories, opened with the built program and real language servers: nothing that they try succeeds.
//!
//! Each folder in `tests/hostile` is an attack (its README describes the format). `strace` records what every process opens,
//! changes, runs and connects to, and the record is checked against [`trace::Rules`].

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod attack;
mod scene;
mod trace;

use std::collections::BTreeSet;

use tenon_testkit::Sandbox;

use crate::attack::Attack;
use crate::scene::Scene;

/// One test per attack, so that they run in parallel.
macro_rules! attacks {
    ($($test:ident = $name:literal;)*) => {
        const TESTED: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                run($name);
            }
        )*
    };
}

attacks! {
    clangd_options_write_and_read_nothing = "clangd";
    python_settings_run_and_read_nothing = "python";
    typescript_settings_run_and_read_nothing = "typescript";
    native_typescript_settings_run_and_read_nothing = "typescript-native";
    schemas_and_style_sheets_read_nothing = "data-files";
    rust_build_scripts_do_not_run = "rust";
    git_configuration_runs_nothing = "git";
    git_configuration_that_is_a_pipe_does_not_hang = "git-pipe";
    special_files_do_not_hang = "special-files";
    pipes_that_block_servers_end_at_the_time_limit = "server-pipes";
    settings_that_are_a_pipe_do_not_hang = "settings-pipe";
    settings_that_are_endless_do_not_hang = "settings-endless";
    settings_cannot_widen = "settings-widen";
    links_out_of_the_root_are_not_followed = "links";
    hostile_names_run_nothing = "names";
    many_declarations_are_bounded = "declarations";
    hostile_sources_are_bounded = "sources";
    notes_of_another_workspace_are_not_read = "notes";
}

/// Whether slow attacks run, too: `cargo xtask attack` sets this.
fn all() -> bool {
    std::env::var_os("TENON_ATTACKS").is_some_and(|value| value == "all")
}

fn run(name: &str) {
    let attack = Attack::read(name);
    if attack.slow && !all() {
        return;
    }
    let violations = Scene::new(attack).play();
    assert!(violations.is_empty(), "{name}: {violations:#?}");
}

#[test]
fn every_folder_has_a_test() {
    let folders = std::fs::read_dir(attack::folder()).unwrap().map(|entry| entry.unwrap().path());
    let folders: BTreeSet<String> = folders
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(folders, TESTED.iter().map(|name| (*name).to_owned()).collect());
}

/// The control for all attacks on servers: they work where the user took the servers out of the sandbox.
#[test]
fn attacks_succeed_without_the_sandbox() {
    for (name, expected) in [("data-files", "connects"), ("python", "reads a secret")] {
        let mut attack = Attack::read(name);
        attack.user_config = "[sandbox]\nexcept = [\"*\"]\n".into();
        let violations = Scene::new(attack).play();
        assert!(
            violations.iter().any(|violation| violation.starts_with(expected)),
            "{name}: {violations:#?}"
        );
    }
}

/// The rules find what they forbid.
#[test]
fn forbidden_acts_are_found_in_a_trace() {
    let sandbox = Sandbox::with_tree("//- evil\n#!/bin/sh\nexit 0\n//- a.txt\nx\n");
    let home = sandbox.dir("home");
    std::fs::write(home.join("key"), "k").unwrap();
    std::fs::create_dir(sandbox.folder().join("trace")).unwrap();
    let rules = trace::Rules::new(&sandbox, vec![home.join("key")]);
    for (script, found) in [
        ("cat < a.txt > /dev/null; : > ../tmp/allowed", ""),
        ("cat ../home/key > /dev/null", "reads a secret"),
        ("ln -s ../home/key link; cat link > /dev/null; rm link", "reads a secret"),
        ("(: > ../home/new)", "writes"),
        ("(: > new)", "writes"),
        ("mkdir ../home/folder", "writes"),
        ("mv a.txt b.txt", "writes"),
        ("chmod +x evil; ./evil", "runs"),
        ("(: > ../tmp/tenon-attack-mark)", "leaves a mark"),
        ("exec 3<>/dev/tcp/127.0.0.1/9", "connects"),
    ] {
        let record = sandbox.folder().join("trace/control");
        std::fs::create_dir(&record).unwrap();
        let mut command = trace::traced(&sandbox, &record, "bash");
        command.args(["-c", script]).output().unwrap();
        let violations = rules.violations(&record);
        match found {
            "" => assert!(violations.is_empty(), "{script}: {violations:#?}"),
            _ => assert!(
                violations.iter().any(|violation| violation.contains(found)),
                "{script}: {violations:#?}"
            ),
        }
        std::fs::remove_dir_all(&record).unwrap();
    }
}
