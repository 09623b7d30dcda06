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

use crate::shell::{Failure, repository, say, step, tools};

/// Installs what is missing; says so when nothing is.
pub(crate) fn run() -> Result<(), Failure> {
    step("set up");
    let _lock = lock()?;
    system::ensure()?;
    let installed = [node::install()?, python::install()?];
    link_tools()?;
    link_packages()?;
    if installed.iter().any(|fresh| *fresh) {
        say("tools are in target/tools");
    } else {
        say("nothing to install");
    }
    Ok(())
}

/// Two set-ups at once would install over each other: the second waits and finds all done.
fn lock() -> Result<File, Failure> {
    let locked = fs::create_dir_all(tools()).and_then(|()| {
        let lock = File::create(tools().join(".lock"))?;
        lock.lock()?;
        Ok(lock)
    });
    let fix = "run this as the owner of the repository, or remove `target`";
    locked.map_err(|error| Failure::new(format!("cannot write to {}: {error}", tools().display())).fix(fix))
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

/// Lets the TypeScript clients find their packages: modules are looked up from where the importing file lies.
fn link_packages() -> Result<(), Failure> {
    let (link, target) =
        (repository().join("tests/clients/ts/node_modules"), tools().join("node/node_modules"));
    if fs::read_link(&link).is_ok_and(|present| present == target) {
        return Ok(());
    }
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link)?;
    }
    Ok(symlink(target, link)?)
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
