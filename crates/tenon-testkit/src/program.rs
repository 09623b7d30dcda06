//! Paths of the programs that tests run: the built `tenon`, and the tools that `cargo xtask setup` installs.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::repository_root;

/// The `tenon` built next to the running test.
///
/// Tests of the `tenon` crate should use `env!("CARGO_BIN_EXE_tenon")`, which cargo builds for them.
pub fn tenon() -> PathBuf {
    built("tenon", "cargo build -p tenon")
}

/// A crate's example program, built next to the running test.
pub fn example(name: &str) -> PathBuf {
    built(&format!("examples/{name}"), &format!("cargo build --example {name}"))
}

fn built(relative: &str, fix: &str) -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    // target/<profile>/deps/<test>
    let profile = test.ancestors().nth(2).expect("test programs lie in target/<profile>/deps");
    let path = profile.join(relative);
    assert!(path.is_file(), "{} is not built: run `{fix}`", path.display());
    path
}

/// The folder of tools that `cargo xtask setup` fills.
pub fn tools() -> PathBuf {
    repository_root().join("target/tools")
}

/// An installed tool by its name, such as `pyright-langserver`, `clangd` or `node`.
pub fn tool(name: &str) -> PathBuf {
    installed(tools().join("bin").join(name))
}

/// A language server: an installed tool, or a program of the system.
pub fn language_server(name: &str) -> PathBuf {
    let path = search_path();
    let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| tool(name))
}

/// The Python that has the installed packages, such as the MCP SDK.
pub fn python() -> PathBuf {
    installed(tools().join("venv/bin/python"))
}

/// The folder with the Python SDK of an older protocol revision.
pub fn python_sdk(revision: &str) -> PathBuf {
    installed(tools().join("mcp").join(revision))
}

/// A folder of `node_modules` that has the installed packages.
pub fn node_modules() -> PathBuf {
    installed(tools().join("node/node_modules"))
}

/// The binary of TypeScript 7, which its script for Node starts.
pub fn typescript_7() -> PathBuf {
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    installed(node_modules().join(format!("@typescript/typescript-{system}-{processor}/lib/tsc")))
}

/// The first `rust-analyzer` in `PATH` that runs, or the installed one. rustup's proxy fails unless the component is installed.
pub fn rust_analyzer() -> Option<PathBuf> {
    let path = search_path();
    let mut programs = env::split_paths(&path).map(|folder| folder.join("rust-analyzer"));
    let runs = |program: &PathBuf| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    programs.find(runs)
}

fn installed(path: PathBuf) -> PathBuf {
    let shown = path.display();
    assert!(
        path.exists(),
        "{shown} is not installed: run `cargo xtask setup`, or all tests with `cargo xtask test`"
    );
    path
}

/// This process's `PATH` with the installed tools first.
pub fn search_path() -> OsString {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let bin = tools().join("bin");
    let rest = env::split_paths(&inherited).filter(|folder| *folder != bin);
    env::join_paths(std::iter::once(bin.clone()).chain(rest)).expect("folders of a PATH have no separator")
}

/// A PostgreSQL program (`initdb`, `postgres`, …): from `PATH`, or from Debian's newest version folder.
pub fn postgres(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort_by_key(|folder| version_of(folder));
    let found = env::split_paths(&path).chain(folders.into_iter().rev()).map(|folder| folder.join(name));
    found.into_iter().find(|program| program.is_file()).unwrap_or_else(|| {
        panic!("PostgreSQL's `{name}` is missing: run `apt-get install postgresql`, or `cargo xtask test` as root")
    })
}

fn version_of(folder: &Path) -> Option<u32> {
    folder.parent()?.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tool_names_the_fix() {
        let missing = std::panic::catch_unwind(|| tool("no-such-tool")).unwrap_err();
        let message = missing.downcast_ref::<String>().unwrap();
        assert!(message.contains("cargo xtask test"), "{message}");
    }

    #[test]
    fn installed_tools_come_first() {
        let path = search_path();
        let mut folders = env::split_paths(&path);
        assert_eq!(folders.next(), Some(tools().join("bin")));
        assert_eq!(folders.filter(|folder| *folder == tools().join("bin")).count(), 0);
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(version_of(Path::new("/p/9/bin")) < version_of(Path::new("/p/15/bin")));
    }
}
