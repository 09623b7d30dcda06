//! Installs what the tests need, once.
//!
//! Everything goes to `target/tools` but Debian packages. A step that finds its own stamp, which is
//! the very text of the pins it installed, does nothing; so a second run reinstalls nothing and a
//! changed pin reinstalls only its step. `target/tools/bin` holds links to every tool, the pinned
//! Node among them, and goes first in the `PATH` of tests.

mod node;
mod python;
mod system;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::shell::{Failure, say, step, tools};

/// Installs what is missing; says so when nothing is.
pub(crate) fn run() -> Result<(), Failure> {
    step("set up");
    fs::create_dir_all(tools())?;
    // Two set-ups at once would install over each other; the second waits and finds all done.
    let lock = File::create(tools().join(".lock"))?;
    lock.lock()?;
    system::ensure()?;
    let installed = [node::install()?, python::install()?];
    link_tools()?;
    if installed.iter().any(|fresh| *fresh) {
        say("tools are in target/tools");
    } else {
        say("nothing to install");
    }
    Ok(())
}

/// Runs `install` in a fresh `folder` unless the folder's stamp says that just this was installed.
fn once(folder: &Path, pins: &str, install: impl FnOnce() -> Result<(), Failure>) -> Result<bool, Failure> {
    let stamp = folder.join(".stamp");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == pins) {
        return Ok(false);
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(folder)?,
    }
    install()?;
    fs::write(stamp, pins)?;
    Ok(true)
}

/// Makes `target/tools/bin` hold a link to each tool and nothing else.
fn link_tools() -> Result<(), Failure> {
    let bin = tools().join("bin");
    let wanted: BTreeMap<&str, PathBuf> = node::programs().into_iter().chain(python::programs()?).collect();
    if let Some((name, target)) = wanted.iter().find(|(_, target)| !target.exists()) {
        let what = format!("`{name}` was not installed at {}", target.display());
        return Err(Failure::new(what).fix("rm -r target/tools && cargo xtask setup"));
    }
    fs::create_dir_all(&bin)?;
    for entry in fs::read_dir(&bin)? {
        let link = entry?;
        let current = link.file_name().to_str().and_then(|name| wanted.get(name)).cloned();
        if fs::read_link(link.path()).ok() != current {
            fs::remove_file(link.path())?;
        }
    }
    for (name, target) in &wanted {
        match symlink(target, bin.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamped_folder_is_left_alone_until_its_pins_change() {
        let folder = std::env::temp_dir().join(format!("tenon-xtask-once-{}", std::process::id()));
        let install = || Ok(fs::write(folder.join("tool"), "")?);
        assert!(once(&folder, "a 1", install).unwrap());
        assert!(!once(&folder, "a 1", || panic!("installed twice")).unwrap());
        let emptied = || {
            assert!(!folder.join("tool").exists());
            Ok(())
        };
        assert!(once(&folder, "a 2", emptied).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_failed_install_leaves_no_stamp() {
        let folder = std::env::temp_dir().join(format!("tenon-xtask-failed-{}", std::process::id()));
        once(&folder, "a 1", || Err(Failure::new("no network"))).unwrap_err();
        assert!(!folder.join(".stamp").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
