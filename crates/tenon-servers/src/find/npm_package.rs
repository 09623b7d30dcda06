//! npm packages: which version a project has installed, and the binary that a package's script starts.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use tenon_contract::regular_file;

use super::{search_path, virtualenv};

/// The largest `package.json` that is read.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// The version of a package in the nearest `node_modules` of a project, not above the root. Only reads files.
pub(super) fn installed_version(package: &str, project: &Utf8Path, root: &Utf8Path) -> Option<String> {
    virtualenv::up_to(project, root)
        .find_map(|folder| manifest(&folder.join("node_modules").join(package)))
        .and_then(|manifest| Some(manifest["version"].as_str()?.to_owned()))
}

/// The first number of a version.
pub(super) fn major(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

/// What a program that may come from an npm package is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NpmProgram {
    /// The script of a package that has a binary for this platform.
    Binary(Utf8PathBuf),
    /// The script of a package without such a binary, for example of an older version.
    Script,
    /// From none of the packages.
    Other,
}

/// Finds the binary that a package's script starts, where the script looks for it. `binaries` has the file of the binary
/// for each package, see [`crate::registry::ServerEntry::binaries`].
pub(super) fn binary_of(
    program: &Utf8Path,
    real: &Utf8Path,
    binaries: &BTreeMap<String, String>,
) -> NpmProgram {
    if binaries.is_empty() {
        return NpmProgram::Other;
    }
    let Some((folder, file)) = package_of(program, real, binaries) else {
        return NpmProgram::Other;
    };
    let file = file.replace("{platform}", &platform()) + std::env::consts::EXE_SUFFIX;
    let found = folder.ancestors().flat_map(|above| {
        let beside = (above.file_name() == Some("node_modules")).then(|| above.join(&file));
        [Some(above.join("node_modules").join(&file)), beside]
    });
    let found = found.flatten().find(|path| search_path::is_program(path));
    found.map_or(NpmProgram::Script, NpmProgram::Binary)
}

/// The package that a program belongs to, and the binary's file: the program is `PACKAGE/bin/PROGRAM`, or a script in
/// `.bin` beside the package, which pnpm writes instead of a link.
fn package_of<'b>(
    program: &Utf8Path,
    real: &Utf8Path,
    binaries: &'b BTreeMap<String, String>,
) -> Option<(Utf8PathBuf, &'b str)> {
    let of = |folder: &Utf8Path| {
        let name = manifest(folder)?["name"].as_str()?.to_owned();
        Some((folder.to_owned(), binaries.get(&name)?.as_str()))
    };
    let beside = || {
        let modules = program.parent().filter(|bin| bin.file_name() == Some(".bin"))?.parent()?;
        let mut folders = binaries.keys().filter_map(|name| modules.join(name).canonicalize_utf8().ok());
        folders.find_map(|folder| {
            // Each package has one program of this name.
            let (folder, file) = of(&folder)?;
            (Utf8Path::new(file).file_name() == program.file_name()).then_some((folder, file))
        })
    };
    real.parent().and_then(Utf8Path::parent).and_then(of).or_else(beside)
}

fn manifest(package: &Utf8Path) -> Option<Value> {
    let bytes = regular_file::read(package.join("package.json"), MAX_MANIFEST_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// This platform in npm's words.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        "solaris" | "illumos" => "sunos",
        other => other,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64",
        "loongarch64" => "loong64",
        "mips64" => "mips64el",
        other => other,
    };
    format!("{system}-{processor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_version_is_the_first_number() {
        assert_eq!(major("5.9.3"), Some(5));
        assert_eq!(major("10.0.0-beta"), Some(10));
        assert_eq!(major("next"), None);
    }
}
