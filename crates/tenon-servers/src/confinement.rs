//! What the process of a server may read, change and connect to. `tenon-lsp` has the kernel enforce it.
//!
//! | | before trust | after trust |
//! |---|---|---|
//! | reads | the system, the root, tools; of the home folder only tools | everything |
//! | writes | a private folder | also the root and what the entry names |
//! | sockets | none | unix sockets |
//!
//! A server that is configured may also use the existing files that its arguments name, such as a log.
//!
//! A server obeys configuration files of the repository, and some of them name files to read or write (decision 0313).

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::id::sha256_hex;
use tenon_contract::regular_file;

use crate::find::Trust;
use crate::registry::{ServerEntry, ServerId};

mod kernel_support;

pub use kernel_support::KernelSupport;
#[cfg(target_os = "linux")]
pub use kernel_support::LANDLOCK;

/// Folders of the home folder that hold tools and packages, never keys or tokens.
const TOOL_FOLDERS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".conda",
    ".deno",
    ".fnm",
    ".gem",
    ".goenv",
    ".jenv",
    ".linuxbrew",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2/repository",
    ".nix-profile",
    ".nodenv",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".volta",
    "anaconda3",
    "go",
    "miniconda3",
    "miniforge3",
];

/// Top-level folders that hold what belongs to people or to other programs.
const PRIVATE_FOLDERS: &[&str] = &["boot", "home", "lost+found", "media", "root", "run", "tmp"];

/// Programs that servers and their tools are written for.
const INTERPRETERS: &[&str] = &["bash", "java", "node", "python", "python3", "ruby", "sh"];

/// Devices that any program may write to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Which sockets a process may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    None,
    Unix,
}

/// What one server's process may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Its own folder for caches and temporary files.
    pub private: Utf8PathBuf,
    /// What it may read and execute; `None` means everything.
    pub reads: Option<Vec<Utf8PathBuf>>,
    /// What it may change, its private folder included.
    pub writes: Vec<Utf8PathBuf>,
    pub sockets: Sockets,
}

/// How servers are confined on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinementSettings {
    home: Option<Utf8PathBuf>,
    /// Private folders are created here.
    cache: Utf8PathBuf,
    /// Servers that the user does not want confined; `*` means all.
    except: Vec<String>,
    /// Further folders that the user lets servers of trusted workspaces change.
    writes: Vec<Utf8PathBuf>,
    /// Whether the kernel can enforce it.
    enforced: bool,
}

/// For whom, and where, a server is started.
pub(crate) struct ConfinedServer<'a> {
    pub(crate) entry: &'a ServerEntry,
    pub(crate) program: &'a Utf8Path,
    pub(crate) root: &'a Utf8Path,
    pub(crate) project: &'a Utf8Path,
    pub(crate) trust: Trust,
    pub(crate) path: &'a [&'a Utf8Path],
    pub(crate) managed: Option<&'a Utf8Path>,
}

impl ConfinedServer<'_> {
    /// The existing files that the arguments of a configured command name.
    fn named_files(&self) -> impl Iterator<Item = Utf8PathBuf> {
        let arguments = if self.entry.user_command { self.entry.args.as_slice() } else { &[] };
        let paths =
            arguments.iter().map(|word| word.rsplit_once('=').map_or(word.as_str(), |(_, path)| path));
        paths.map(Utf8PathBuf::from).filter(|path| path.is_absolute() && path.is_file())
    }
}

impl ConfinementSettings {
    pub fn new(home: Option<Utf8PathBuf>, cache: Utf8PathBuf) -> Self {
        let enforced = KernelSupport::now() == KernelSupport::Full;
        Self { home, cache, except: Vec::new(), writes: Vec::new(), enforced }
    }

    /// The home and cache folders of this process's environment.
    pub(crate) fn from_env() -> Self {
        let absolute = |name: &str| {
            let path = Utf8PathBuf::from(std::env::var(name).ok()?);
            path.is_absolute().then_some(path)
        };
        let home = absolute("HOME");
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
        let cache = cache.or_else(|| Utf8PathBuf::from_path_buf(std::env::temp_dir()).ok());
        Self::new(home, cache.unwrap_or_else(|| "/tmp".into()).join("tenon"))
    }

    /// The user's choice: servers that run without confinement, and folders that servers may change once a root is trusted.
    pub fn with_exceptions(mut self, servers: &[String], writes: &[Utf8PathBuf]) -> Self {
        self.except = servers.to_vec();
        self.writes = writes.to_vec();
        self
    }

    /// As on a kernel that cannot confine processes: servers that need it do not start before trust.
    pub fn without_kernel_support(mut self) -> Self {
        self.enforced = false;
        self
    }

    /// Whether an untrusted repository cannot use this server to change files elsewhere.
    pub(crate) fn is_safe_for(&self, entry: &ServerEntry) -> bool {
        !entry.needs_confinement || (self.enforced && !self.is_excepted(&entry.id))
    }

    fn is_excepted(&self, id: &ServerId) -> bool {
        self.except.iter().any(|one| one == "*" || one == id.as_str())
    }

    /// The private folder of a server in a project.
    pub(crate) fn private(&self, id: &ServerId, project: &Utf8Path) -> Utf8PathBuf {
        self.cache.join("servers").join(&sha256_hex(project.as_str())[..16]).join(id.as_str())
    }

    /// `None` if the user excepts the server.
    pub(crate) fn confine(&self, server: &ConfinedServer<'_>) -> Option<Confinement> {
        if self.is_excepted(&server.entry.id) {
            return None;
        }
        let private = self.private(&server.entry.id, server.project);
        let mut writes = vec![private.clone()];
        writes.extend(DEVICES.iter().map(Utf8PathBuf::from));
        writes.extend(server.named_files());
        Some(match server.trust {
            Trust::Untrusted => {
                let mut reads = self.readable(server);
                reads.extend(writes.iter().cloned());
                Confinement { private, reads: Some(reads), writes, sockets: Sockets::None }
            }
            Trust::Trusted => {
                writes.push(server.root.to_owned());
                writes.extend(server.entry.writes.iter().filter_map(|path| self.expanded(path)));
                writes.extend(self.writes.iter().cloned());
                Confinement { private, reads: None, writes, sockets: Sockets::Unix }
            }
        })
    }

    /// What a server may read before trust.
    fn readable(&self, server: &ConfinedServer<'_>) -> Vec<Utf8PathBuf> {
        let mut reads = BTreeSet::from([server.root.to_owned()]);
        let mut own = PRIVATE_FOLDERS.to_vec();
        own.extend(self.home.as_deref().and_then(top_level));
        let folders = Utf8Path::new("/").read_dir_utf8().into_iter().flatten().flatten();
        reads.extend(folders.filter(|one| !own.contains(&one.file_name())).map(|one| one.path().to_owned()));
        if let Some(home) = &self.home {
            reads.extend(TOOL_FOLDERS.iter().map(|folder| home.join(folder)));
        }
        reads.extend(server.managed.map(Utf8Path::to_owned));
        reads.extend(server.path.iter().filter_map(|folder| self.installation(&folder.join("any"))));
        let on_path =
            |name: &&str| server.path.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let programs = INTERPRETERS.iter().filter_map(on_path).chain([server.program.to_owned()]);
        let programs = programs.filter_map(|path| path.canonicalize_utf8().ok());
        let programs = programs.flat_map(|path| interpreter(&path).into_iter().chain([path]));
        reads.extend(programs.filter_map(|path| self.installation(&path)));
        reads.into_iter().collect()
    }

    /// The folder that a program is installed in, with what it needs.
    fn installation(&self, program: &Utf8Path) -> Option<Utf8PathBuf> {
        let packages = program.ancestors().filter(|folder| folder.file_name() == Some("node_modules")).last();
        if let Some(packages) = packages {
            return Some(packages.to_owned());
        }
        let folder = program.parent()?;
        let above = match folder.file_name() {
            Some("bin" | "sbin" | "shims") => folder.parent().filter(|above| self.holds_one_tool(above)),
            _ => None,
        };
        Some(above.unwrap_or(folder).to_owned())
    }

    /// Whether a folder belongs to a tool, and is not one that all kinds of files are in.
    fn holds_one_tool(&self, folder: &Utf8Path) -> bool {
        let Some(home) = &self.home else {
            return folder.parent().is_some();
        };
        let shared = [home.clone(), home.join(".local"), home.join(".cargo")];
        !shared.iter().any(|shared| shared.starts_with(folder))
    }

    /// A path of an entry: absolute, `~/…` or `$NAME/…`.
    fn expanded(&self, path: &str) -> Option<Utf8PathBuf> {
        if let Some(rest) = path.strip_prefix("~/") {
            return Some(self.home.as_ref()?.join(rest));
        }
        let Some(rest) = path.strip_prefix('$') else {
            return Some(path.into());
        };
        let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let folder = Utf8PathBuf::from(std::env::var(name).ok()?);
        folder.is_absolute().then(|| folder.join(rest))
    }
}

/// The program that the first line of a script names, such as the Python of a virtualenv.
fn interpreter(script: &Utf8Path) -> Option<Utf8PathBuf> {
    let start = regular_file::read_start(script, 1024).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let path = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    Utf8Path::new(path).canonicalize_utf8().ok()
}

fn top_level(path: &Utf8Path) -> Option<&str> {
    path.components().nth(1).map(|component| component.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn confined(trust: Trust, program: &str) -> Confinement {
        let registry = Registry::built_in();
        let settings = ConfinementSettings::new(Some("/home/ada".into()), "/home/ada/.cache/tenon".into())
            .with_exceptions(&["ruff".to_owned()], &["/data/shared".into()]);
        let path = [Utf8Path::new("/home/ada/.local/bin"), Utf8Path::new("/usr/bin")];
        let server = ConfinedServer {
            entry: registry.get("rust-analyzer").unwrap(),
            program: Utf8Path::new(program),
            root: Utf8Path::new("/home/ada/code/app"),
            project: Utf8Path::new("/home/ada/code/app/core"),
            trust,
            path: &path,
            managed: None,
        };
        settings.confine(&server).unwrap()
    }

    #[test]
    fn untrusted_root_is_read_only_and_keys_are_not_readable() {
        let confinement = confined(Trust::Untrusted, "/usr/bin/env");
        let reads = confinement.reads.unwrap();
        let is_readable = |path: &str| reads.iter().any(|folder| Utf8Path::new(path).starts_with(folder));
        assert!(is_readable("/usr/include/stdio.h"));
        assert!(is_readable("/home/ada/code/app/src/main.c"));
        assert!(is_readable("/home/ada/.rustup/toolchains/stable/lib/x.so"));
        for path in [
            "/home/ada/.ssh/id_ed25519",
            "/home/ada/.cargo/credentials.toml",
            "/home/ada/.netrc",
            "/run/secrets/x",
        ] {
            assert!(!is_readable(path), "{path}");
        }
        assert!(confinement.writes.iter().all(|path| !path.starts_with("/home/ada/code")));
        assert_eq!(confinement.sockets, Sockets::None);
    }

    #[test]
    fn trusted_root_is_writable_and_the_home_folder_is_not() {
        let confinement = confined(Trust::Trusted, "/usr/bin/env");
        assert_eq!(confinement.reads, None);
        let is_writable =
            |path: &str| confinement.writes.iter().any(|folder| Utf8Path::new(path).starts_with(folder));
        assert!(is_writable("/home/ada/code/app/target/debug/x"));
        assert!(is_writable("/home/ada/.cargo/registry/src/x"));
        assert!(is_writable("/data/shared/x"));
        for path in
            ["/home/ada/.bashrc", "/home/ada/.cargo/bin/cargo", "/home/ada/code/other/x", "/etc/passwd"]
        {
            assert!(!is_writable(path), "{path}");
        }
    }

    #[test]
    fn private_folder_differs_by_project_and_server() {
        let settings = ConfinementSettings::new(None, "/c".into());
        let id = |id: &str| ServerId::new(id).unwrap();
        let one = settings.private(&id("clangd"), Utf8Path::new("/w/a"));
        assert_ne!(one, settings.private(&id("clangd"), Utf8Path::new("/w/b")));
        assert_ne!(one, settings.private(&id("ruff"), Utf8Path::new("/w/a")));
        assert!(one.starts_with("/c/servers"));
    }

    #[test]
    fn installation_of_a_script_is_its_outermost_package_folder() {
        let settings = ConfinementSettings::new(Some("/home/ada".into()), "/c".into());
        let installation = |path: &str| settings.installation(Utf8Path::new(path)).unwrap();
        assert_eq!(installation("/opt/x/node_modules/a/node_modules/b/cli.js"), "/opt/x/node_modules");
        assert_eq!(installation("/home/ada/tools/node-v22/bin/node"), "/home/ada/tools/node-v22");
        assert_eq!(installation("/home/ada/bin/clangd"), "/home/ada/bin");
        assert_eq!(installation("/home/ada/.local/bin/clangd"), "/home/ada/.local/bin");
        assert_eq!(installation("/home/ada/llvm/clangd"), "/home/ada/llvm");
        assert_eq!(installation("/data/pyenv/shims/python"), "/data/pyenv");
    }

    /// pip writes scripts for the Python of a virtualenv, which links to one elsewhere.
    #[cfg(unix)]
    #[test]
    fn interpreter_of_a_script_is_readable() {
        let folder = tempfile::tempdir().unwrap();
        let top = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        for path in ["python/bin", "venv/bin"] {
            std::fs::create_dir_all(top.join(path)).unwrap();
        }
        std::fs::write(top.join("python/bin/python3.11"), "").unwrap();
        std::os::unix::fs::symlink(top.join("python/bin/python3.11"), top.join("venv/bin/python")).unwrap();
        std::fs::write(top.join("venv/bin/clangd"), format!("#!{top}/venv/bin/python -I\nimport x\n"))
            .unwrap();
        let program = top.join("venv/bin/clangd");
        let registry = Registry::built_in();
        let server = ConfinedServer {
            entry: registry.get("clangd").unwrap(),
            program: &program,
            root: Utf8Path::new("/nowhere/code"),
            project: Utf8Path::new("/nowhere/code"),
            trust: Trust::Untrusted,
            path: &[],
            managed: None,
        };
        let reads = ConfinementSettings::new(None, "/c".into()).readable(&server);
        assert!(reads.contains(&top.join("python")) && reads.contains(&top.join("venv")), "{reads:?}");
    }
}
