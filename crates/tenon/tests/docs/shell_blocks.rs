//! Every `sh` block of README and docs runs, in one workspace per page, unless it says why it cannot.
//!
//! A block that cannot run here is marked `sh not-run=REASON` and listed below. The fixture of a page is
//! `fixtures/NAME.tree`; a page without one gets a copy of `examples/polyglot`. A file `setup.sh` in it runs first.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;

use tenon_testkit::{Sandbox, program, repository_root};

use crate::page::{Block, Page};

/// Why a block may not run, and what that means.
const REASONS: [(&str, &str); 4] = [
    ("build", "compiles this repository or runs its tests, which takes minutes"),
    ("network", "installs from a registry or downloads a release"),
    ("postgres", "needs a database server"),
    ("account", "needs an account with a vendor"),
];

/// Every block that does not run: page, reason, first line.
const NOT_RUN: &[(&str, &str, &str)] = &[
    (
        "CONTRIBUTING.md",
        "build",
        "cargo xtask setup                        # once: installs the test tools into target/tools",
    ),
    ("README.md", "build", "cargo run --release -- up examples/polyglot"),
    ("README.md", "build", "cargo xtask test"),
    ("docs/contributing.md", "build", "cargo xtask dist"),
    ("docs/install.md", "build", "cargo xtask dist"),
    ("docs/install.md", "network", "sh install.sh --from URL"),
    ("docs/install.md", "network", "pip install tenon-mcp"),
    ("docs/work.md", "postgres", "tenon store export | TENON_WORK_STORE=postgres://… tenon store import"),
];

fn is_shell(block: &Block) -> bool {
    ["sh", "bash", "shell", "console", "zsh"].contains(&block.info.split(' ').next().unwrap_or_default())
}

/// The reason of a block that does not run.
fn reason<'a>(page: &Page, block: &'a Block) -> Option<&'a str> {
    let line = block.lines.start;
    let info = block.info.strip_prefix("sh").unwrap_or_else(|| panic!("{}:{line}: use `sh`", page.path));
    if info.is_empty() {
        return None;
    }
    let reason =
        info.strip_prefix(" not-run=").filter(|reason| REASONS.iter().any(|(known, _)| known == reason));
    let known: Vec<&str> = REASONS.iter().map(|(known, _)| *known).collect();
    Some(reason.unwrap_or_else(|| {
        panic!("{}:{line}: expected `sh` or `sh not-run=` with one of {known:?}", page.path)
    }))
}

#[test]
fn blocks_that_do_not_run_are_listed() {
    let pages = Page::all();
    let mut found = Vec::new();
    for page in &pages {
        for block in page.blocks().iter().filter(|block| is_shell(block)) {
            if let Some(reason) = reason(page, block) {
                let first = block.text.lines().next().unwrap_or_default().to_owned();
                found.push((page.path.as_str(), reason.to_owned(), first));
            }
        }
    }
    let found: Vec<(&str, &str, &str)> =
        found.iter().map(|(page, reason, first)| (*page, reason.as_str(), first.as_str())).collect();
    assert_eq!(found, NOT_RUN, "mark a block `not-run` only if it cannot run offline");
    let style = Page::read("docs/style.md").text;
    for (reason, meaning) in REASONS {
        assert!(
            style.contains(&format!("| `{reason}` | {meaning} |")),
            "docs/style.md does not explain `{reason}`"
        );
    }
}

/// The workspace in which a page's blocks run.
fn workspace(page: &Page) -> Sandbox {
    let name = page.path.replace('/', "_");
    let fixture = PathBuf::from("crates/tenon/tests/docs/fixtures").join(name).with_extension("tree");
    match fs::read_to_string(repository_root().join(fixture)) {
        Ok(tree) => Sandbox::with_tree(&tree),
        Err(_) => Sandbox::with_example("polyglot"),
    }
}

#[test]
fn shell_blocks_succeed() {
    let mut run = 0;
    for page in Page::all() {
        let blocks = page.blocks();
        let blocks: Vec<&Block> =
            blocks.iter().filter(|block| is_shell(block) && reason(&page, block).is_none()).collect();
        if blocks.is_empty() {
            continue;
        }
        let sandbox = workspace(&page);
        let bin = sandbox.dir("home").join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_tenon"), bin.join("tenon")).unwrap();
        let path =
            std::iter::once(bin).chain(std::env::split_paths(&program::search_path()).collect::<Vec<_>>());
        let path = std::env::join_paths(path).unwrap();
        let run_script = |script: &str, location: &str| {
            let mut shell = sandbox.command("sh");
            shell.args(["-eu", "-c", script]).env("PATH", &path).stdin(Stdio::null());
            let output = shell.output().unwrap();
            let printed = tenon_testkit::transcript(&sandbox, &output);
            assert!(output.status.success(), "{location}:\n{script}\n{printed}");
        };
        if sandbox.root().join("setup.sh").is_file() {
            run_script("sh ./setup.sh", "setup.sh");
        }
        for block in blocks {
            run_script(&block.text, &format!("{}:{}", page.path, block.lines.start));
            run += 1;
        }
        run_script("tenon stop || test $? -eq 1", "the end of the page");
        sandbox.assert_no_processes();
    }
    assert!(run >= 5, "only {run} blocks were found");
}
