//! Installs what the tests need, once.
//!
//! Everything but Debian packages and rust-analyzer goes to `target/tools`. The stamp of a step is the text of the pins that it installed: a
//! second run installs nothing, and a changed pin reinstalls only its step. `target/tools/bin` links to every tool,
//! including the pinned Node, and comes first in the `PATH` of tests.

mod agents;
mod node;
mod python;
mod rust_analyzer;
mod system;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::shell::{Error, heading, log, repository, tools};

/// Installs what is missing.
pub(crate) fn run() -> Result<(), Error> {
    heading("set up");
    let _lock = lock(&tools())?;
    system::ensure()?;
    let installed = [
        node::install()?,
        agents::install()?,
        python::install()?,
        python::install_older_sdks()?,
        rust_analyzer::install()?,
    ];
    link_tools()?;
    link_packages()?;
    if installed.iter().any(|fresh| *fresh) {
        log("tools are in target/tools");
    } else {
        log("nothing to install");
    }
    Ok(())
}

/// Whether the tests of rust-analyzer can run.
pub(crate) fn has_rust_analyzer() -> bool {
    tools().join("bin/rust-analyzer").exists()
}

/// Prevents concurrent installs into a folder: the second run waits, then finds everything installed.
fn lock(folder: &Path) -> Result<File, Error> {
    let locked = fs::create_dir_all(folder).and_then(|()| {
        let lock = File::create(folder.join(".lock"))?;
        lock.lock()?;
        Ok(lock)
    });
    let hint = "run this as the owner of the repository, or remove `target`";
    locked.map_err(|error| Error::new(format!("cannot write to {}: {error}", folder.display())).hint(hint))
}

/// Runs `install` in an empty `folder` unless the folder's stamp equals `pins`. Returns whether it ran.
fn install_once(
    folder: &Path,
    pins: &str,
    install: impl FnOnce() -> Result<(), Error>,
) -> Result<bool, Error> {
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

/// Makes `target/tools/bin` contain a link to each tool and nothing else.
fn link_tools() -> Result<(), Error> {
    let bin = tools().join("bin");
    let mut wanted: BTreeMap<&str, PathBuf> =
        node::programs().into_iter().chain(python::programs()?).collect();
    wanted.extend(rust_analyzer::program().map(|program| ("rust-analyzer", program)));
    if let Some((name, target)) = wanted.iter().find(|(_, target)| !target.exists()) {
        let what = format!("`{name}` was not installed at {}", target.display());
        return Err(Error::new(what).hint("rm -r target/tools && cargo xtask setup"));
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

/// Links the packages of the TypeScript clients: Node resolves modules from the folder of the importing file.
fn link_packages() -> Result<(), Error> {
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
    fn same_pins_are_installed_once() {
        let folder = std::env::temp_dir().join(format!("tenon-xtask-once-{}", std::process::id()));
        let install = || Ok(fs::write(folder.join("tool"), "")?);
        assert!(install_once(&folder, "a 1", install).unwrap());
        assert!(!install_once(&folder, "a 1", || panic!("installed twice")).unwrap());
        let emptied = || {
            assert!(!folder.join("tool").exists());
            Ok(())
        };
        assert!(install_once(&folder, "a 2", emptied).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn failed_install_leaves_no_stamp() {
        let folder = std::env::temp_dir().join(format!("tenon-xtask-failed-{}", std::process::id()));
        install_once(&folder, "a 1", || Err(Error::new("no network"))).unwrap_err();
        assert!(!folder.join(".stamp").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
