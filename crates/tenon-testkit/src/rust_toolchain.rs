//! The machine's Rust toolchain under another root, without the source of the standard library.
//!
//! Some machines have the source (`rust-src`) and some do not, and rust-analyzer's answers depend on it. Tests have to know.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program;

/// Creates the toolchain in an empty folder. Returns a `PATH` with it first, then with the installed tools.
pub fn without_source(folder: &Path) -> OsString {
    let real = sysroot();
    let libraries = folder.join("lib/rustlib");
    for part in [folder.join("bin"), libraries.clone()] {
        fs::create_dir_all(part).expect("an empty folder");
    }
    for entry in fs::read_dir(real.join("lib/rustlib")).expect("a toolchain has libraries").flatten() {
        if entry.file_name() != "src" {
            symlink(entry.path(), libraries.join(entry.file_name())).expect("a new link");
        }
    }
    for part in ["libexec", "bin/cargo"] {
        symlink(real.join(part), folder.join(part)).expect("a new link");
    }
    let compiler = folder.join("bin/rustc");
    let text = format!(
        "#!/bin/sh\nexec '{}' --sysroot '{}' \"$@\"\n",
        real.join("bin/rustc").display(),
        folder.display()
    );
    fs::write(&compiler, text).expect("a new file");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).expect("our own file");
    let path = program::search_path();
    let folders = std::iter::once(folder.join("bin")).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).expect("folders of a PATH have no separator")
}

fn sysroot() -> PathBuf {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().expect("`rustc` runs the tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_reports_the_new_root_and_compiles() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = without_source(folder.path());
        let rustc = folder.path().join("bin/rustc");
        let run = |arguments: &[&str]| {
            Command::new(&rustc).args(arguments).env("PATH", &path).current_dir(folder.path()).output()
        };
        let root = run(&["--print", "sysroot"]).expect("a program");
        assert_eq!(String::from_utf8_lossy(&root.stdout).trim(), folder.path().to_str().expect("a path"));
        fs::write(folder.path().join("a.rs"), "pub fn f() -> Vec<u8> { vec![1] }\n").expect("a file");
        let built = run(&["--crate-type", "lib", "--emit", "metadata", "a.rs"]).expect("a program");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
}
