//! The tree for hostile paths: two roots, a third nested in the first, and secrets outside.
//!
//! ```text
//! base/root            primary root, with most of the links and special files
//! base/root/nested     another root
//! base/second          another root
//! base/root-evil       name starts with that of a root
//! base/outside         secrets
//! ```
//!
//! Every file outside contains `SECRET`, every file inside something else.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use tenon_contract::root::RootGate;

pub(crate) struct Tree {
    /// Real path of the tree.
    pub base: PathBuf,
    pub gate: RootGate,
    /// Dropped last: removes the folder.
    _folder: tempfile::TempDir,
}

pub(crate) const LINKS: &[(&str, &str)] = &[
    ("root/link-in.ts", "src/a.ts"),
    ("root/link-in-absolute.ts", "{base}/root/src/a.ts"),
    ("root/link-dir", "src"),
    ("root/link-chain", "link-chain-2"),
    ("root/link-chain-2", "link-in.ts"),
    ("root/link-root", "."),
    ("root/link-second.ts", "../second/other.ts"),
    ("root/link-out.ts", "../outside/secret.ts"),
    ("root/link-out-absolute.ts", "{base}/outside/secret.ts"),
    ("root/link-out-dir", "../outside"),
    ("root/link-up", ".."),
    ("root/link-slash", "/"),
    ("root/link-out-and-back", "../outside/back/src/a.ts"),
    ("root/src/link-sneaky", "../link-out-dir/secret.ts"),
    ("root/dangling-in", "src/none.ts"),
    ("root/dangling-out", "../outside/none.ts"),
    ("root/dangling-out-deep", "../outside/none/none.ts"),
    ("root/dangling-chain", "dangling-out"),
    ("root/dangling-climb", "none/../../outside/secret.ts"),
    ("root/loop-self", "loop-self"),
    ("root/loop-a", "loop-b"),
    ("root/loop-b", "loop-a"),
    ("root/loop-out", "../outside/loop-out"),
    ("root/link-fifo", "fifo"),
    ("outside/loop-out", "loop-out-2"),
    ("outside/loop-out-2", "loop-out"),
    ("outside/back", "../root"),
    ("outside/link-in.ts", "../root/src/a.ts"),
];

pub(crate) const FILES: &[&str] = &[
    "root/src/a.ts",
    "root/src/A.TS",
    "root/src/caf\u{e9}.ts",
    "root/src/cafe\u{301}-nfd.ts",
    "root/src/\u{1f600}.ts",
    "root/src/with space.ts",
    "root/src/hash#query?percent%.ts",
    "root/src/%2e%2e",
    "root/src/back\\slash.ts",
    "root/src/new\nline.ts",
    "root/src/[id].ts",
    "root/src/...",
    "root/src/..hidden.ts",
    "root/src/C:",
    "root/nested/n.ts",
    "root/file:",
    "second/other.ts",
];

const SECRETS: &[&str] = &["outside/secret.ts", "outside/src/a.ts", "root-evil/a.ts", "root-evil/src/a.ts"];

impl Tree {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        for file in FILES {
            write(&base.join(file), "inside");
        }
        for secret in SECRETS {
            write(&base.join(secret), "SECRET");
        }
        fs::create_dir(base.join("root/empty")).unwrap();
        write(&base.join("root/src").join(OsStr::from_bytes(b"not-utf8-\xff.ts")), "inside");
        symlink(OsStr::from_bytes(b"src/not-utf8-\xff.ts"), base.join("root/link-not-utf8.ts")).unwrap();
        write(&base.join("outside").join(OsStr::from_bytes(b"not-utf8-\xff.ts")), "SECRET");
        symlink(OsStr::from_bytes(b"../outside/not-utf8-\xff.ts"), base.join("root/link-out-not-utf8.ts"))
            .unwrap();
        for (link, target) in LINKS {
            symlink(target.replace("{base}", base.to_str().unwrap()), base.join(link)).unwrap();
        }
        for n in 0..45 {
            let target = if n == 0 { "src/a.ts".to_owned() } else { format!("hop-{}", n - 1) };
            symlink(target, base.join(format!("root/hop-{n}"))).unwrap();
        }
        // A hard link cannot be distinguished from the file.
        write(&base.join("outside/shared.ts"), "shared");
        fs::hard_link(base.join("outside/shared.ts"), base.join("root/hard.ts")).unwrap();
        nix::unistd::mkfifo(&base.join("root/fifo"), Mode::S_IRUSR).unwrap();
        nix::unistd::mkfifo(&base.join("outside/fifo"), Mode::S_IRUSR).unwrap();
        // The socket file remains after the listener is dropped.
        drop(UnixListener::bind(base.join("root/socket")).unwrap());
        let gate = RootGate::new([base.join("root"), base.join("second"), base.join("root/nested")]).unwrap();
        Self { base, gate, _folder: folder }
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
