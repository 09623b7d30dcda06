//! `cargo xtask attack`: opens hostile repositories with the built program, and kills it at random moments.

use crate::shell::{self, Error, cargo, heading, succeeds};
use crate::{setup, test};

/// Tests that kill a process at random moments and read how often from `TENON_KILLS`: package, test binary, name.
const KILLED: [(&str, &str, &str); 4] = [
    ("tenon-work", "contract", "acknowledged_writes_survive_kill_9"),
    ("tenon", "work", "acknowledged_notes_survive_a_killed_daemon"),
    ("tenon", "edit", "edit_killed_at_any_time_leaves_the_old_or_the_new_file"),
    ("tenon", "edit", "rename_killed_at_any_time_changes_all_files_or_none_after_the_next_start"),
];

/// Plays all attacks, or those that are not slow. With `kills`, kills each writer that often instead.
pub(crate) fn run(quick: bool, kills: Option<u32>) -> Result<bool, Error> {
    setup::run()?;
    // Tests start the program that is already built.
    shell::run_checked(cargo().args(["build", "--package", "tenon", "--package", "tenon-fake-lsp"]))?;
    let Some(kills) = kills else {
        let mut command = cargo();
        match succeeds("cargo", &["nextest", "--version"]) {
            true => command.args(["nextest", "run", "--no-fail-fast"]),
            false => command.args(["test", "--no-fail-fast"]),
        };
        command.args(["--package", "tenon", "--test", "attack"]);
        command.env("TENON_ATTACKS", if quick { "quick" } else { "all" });
        return shell::run(test::with_tools(&mut command));
    };
    let mut passed = true;
    for (package, binary, name) in KILLED {
        heading(name);
        // Not with nextest: its time limit is for the usual number of kills.
        let mut command = cargo();
        command.args(["test", "--package", package, "--test", binary, "--", name, "--nocapture"]);
        command.env("TENON_KILLS", kills.to_string());
        passed &= shell::run(test::with_tools(&mut command))?;
    }
    Ok(passed)
}
