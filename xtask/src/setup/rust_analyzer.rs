//! rust-analyzer, which no package registry has as a program: taken from this machine, or built from source once.
//!
//! A build takes minutes, so it is kept outside of the repository, in `tenon-tools` in the user's cache folder: a fresh clone
//! uses it again. A failed build is not an error: the tests of rust-analyzer are then left out, and the run says so
//! (decision 0807).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Error, install_once, lock, log};
use crate::shell::{cargo, repository, run_checked, succeeds, tools};

const NAME: &str = "rust-analyzer";
const PACKAGE: &str = "ra_ap_rust-analyzer";

/// What of the release profile is left out: the tests need a program soon, not a fast one.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
];

/// Finds or builds it. Returns whether it was built.
pub(super) fn install() -> Result<bool, Error> {
    if program().is_some() {
        return Ok(false);
    }
    // Another clone may be building it: wait, then look again.
    let _lock = lock(&cache())?;
    if program().is_some() {
        return Ok(false);
    }
    let pins = Pins::read()?;
    let folder = cache().join(format!("{NAME}-{}", pins.version));
    log(&format!("building {NAME} {} from source, once: 10 to 25 minutes on two cores", pins.version));
    let start = Instant::now();
    let built = install_once(&folder, &pins.text, || build(&pins, &folder));
    match built {
        Ok(_) => {
            log(&format!("{NAME} is in {}, after {} s", folder.display(), start.elapsed().as_secs()));
            Ok(true)
        }
        Err(error) => {
            log(&error.to_string());
            Ok(false)
        }
    }
}

/// The program: the pinned version that was built before, else one on `PATH` that works.
pub(super) fn program() -> Option<PathBuf> {
    let built = Pins::read().ok().map(|pins| {
        let folder = cache().join(format!("{NAME}-{}", pins.version));
        (fs::read_to_string(folder.join(".stamp")).ok(), pins.text, folder.join("bin").join(NAME))
    });
    let built =
        built.filter(|(stamp, pins, _)| stamp.as_deref() == Some(pins)).map(|(_, _, program)| program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = tools().join("bin");
    let found = std::env::split_paths(&path).filter(|folder| *folder != own).map(|folder| folder.join(NAME));
    // rustup's program of this name fails if the component is not installed.
    built.into_iter().chain(found).find(|program| succeeds(program, &["--version"]))
}

/// Tenon's own lock of rust-analyzer.
struct Pins {
    version: String,
    text: String,
}

impl Pins {
    fn read() -> Result<Self, Error> {
        let lock = repository().join("crates/tenon-servers/locks/rust-analyzer");
        let manifest = fs::read_to_string(lock.join("manifest.toml"))?;
        let version = version(&manifest)
            .ok_or_else(|| Error::new(format!("{}/manifest.toml does not pin {PACKAGE}", lock.display())))?;
        let text = format!("{manifest}{}", fs::read_to_string(lock.join("packages.lock"))?);
        Ok(Self { version, text })
    }
}

fn version(manifest: &str) -> Option<String> {
    let manifest: toml::Value = toml::from_str(manifest).ok()?;
    Some(manifest.get("dependencies")?.get(PACKAGE)?.as_str()?.strip_prefix('=')?.to_owned())
}

fn build(pins: &Pins, folder: &Path) -> Result<(), Error> {
    let target = folder.join("target");
    let mut command = cargo();
    command.args(["install", PACKAGE, "--version", &pins.version, "--locked", "--no-track", "--quiet"]);
    // Not in the repository, whose settings of cargo would apply.
    command.current_dir(folder).arg("--root").arg(folder).arg("--target-dir").arg(&target).envs(PROFILE);
    let built = run_checked(&mut command);
    let removed = fs::remove_dir_all(target);
    built?;
    Ok(removed?)
}

/// Outside of the repository where the machine has a folder for caches.
fn cache() -> PathBuf {
    cache_in(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
}

fn cache_in(cache: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let cache = cache.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = home.map(PathBuf::from).filter(|folder| folder.is_absolute());
    cache
        .or_else(|| home.map(|home| home.join(".cache")))
        .map_or_else(tools, |folder| folder.join("tenon-tools"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_one_that_tenon_installs() {
        assert_eq!(version("[dependencies]\nra_ap_rust-analyzer = \"=1.2.3\"\n").as_deref(), Some("1.2.3"));
        assert_eq!(version("[dependencies]\nra_ap_rust-analyzer = \"1.2.3\"\n"), None, "not exact");
        assert!(Pins::read().is_ok());
    }

    #[test]
    fn cache_is_outside_of_the_repository_where_there_is_a_home() {
        let path = |text: &str| Some(OsString::from(text));
        assert_eq!(cache_in(path("/c"), path("/h")), Path::new("/c/tenon-tools"));
        assert_eq!(cache_in(path("relative"), path("/h")), Path::new("/h/.cache/tenon-tools"));
        assert_eq!(cache_in(None, None), tools());
    }
}
