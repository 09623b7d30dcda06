//! What processes did, as `strace` recorded it, and what they must not do.

use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_testkit::Sandbox;

/// In the name of every file that a planted program would create.
pub const MARK: &str = "tenon-attack-mark";

const OPENS: &[&str] = &["open", "openat", "openat2", "creat"];
const SENDS: &[&str] = &["connect", "sendto", "sendmsg", "sendmmsg"];
const RUNS: &[&str] = &["execve", "execveat"];
/// Calls that change a file or folder by its path.
const CHANGES: &[&str] = &[
    "chmod",
    "chown",
    "fchmodat",
    "fchmodat2",
    "fchownat",
    "lchown",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "setxattr",
    "symlink",
    "symlinkat",
    "truncate",
    "unlink",
    "unlinkat",
];

/// A command that runs a program and records the calls of all processes, one file per process in `record`.
pub fn traced(sandbox: &Sandbox, record: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let calls = [OPENS, SENDS, RUNS, CHANGES].concat().join(",?");
    let mut command = sandbox.command("strace");
    command.args(["-ff", "-qq", "-y", "--seccomp-bpf", "-s", "200", "-e", &format!("trace=?{calls}"), "-o"]);
    command.arg(record.join("calls")).arg(program);
    command
}

/// What no process may do in an untrusted workspace.
pub struct Rules {
    root: PathBuf,
    folder: PathBuf,
    secrets: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Rules {
    pub fn new(sandbox: &Sandbox, secrets: Vec<PathBuf>) -> Self {
        let mut writable: Vec<PathBuf> =
            ["data", "state", "cache", "run", "tmp"].map(|name| sandbox.dir(name)).into();
        // The order of file events is found with a private folder in memory.
        writable.push("/dev/shm/tenon-watch-".into());
        writable.extend(["/dev/null", "/dev/tty", "/dev/pts"].map(PathBuf::from));
        Self { root: sandbox.root().to_owned(), folder: sandbox.folder().to_owned(), secrets, writable }
    }

    /// The forbidden calls in a record.
    pub fn violations(&self, record: &Path) -> Vec<String> {
        let files = std::fs::read_dir(record).unwrap().map(|entry| entry.unwrap().path());
        let texts = files.map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned());
        let mut found = Vec::new();
        for text in texts {
            let program = text.lines().find_map(|line| line.strip_prefix("execve(")).unwrap_or_default();
            let program: String = program.chars().take(120).collect();
            for line in text.lines() {
                found.extend(self.violation(line).map(|why| format!("{why}: {line} [of {program}]")));
            }
        }
        found
    }

    fn violation(&self, line: &str) -> Option<&'static str> {
        let (name, _) = line.split_once('(')?;
        let (call, result) = line.rsplit_once(" = ")?;
        let failed = result.starts_with(['-', '?']);
        // Messages may quote a planted program.
        if !SENDS.contains(&name) && (call.contains(MARK) || result.contains(MARK)) {
            return Some("leaves a mark");
        }
        if RUNS.contains(&name) {
            let program = PathBuf::from(quoted(call).into_iter().next()?);
            let missing = result.contains("ENOENT");
            return (!missing && (program.is_relative() || program.starts_with(&self.root)))
                .then_some("runs");
        }
        if SENDS.contains(&name) {
            return (call.contains("AF_INET") || self.connects_elsewhere(call, failed)).then_some("connects");
        }
        if failed {
            return None;
        }
        if OPENS.contains(&name) {
            // The result is the descriptor with the real path of the file: 3</path>.
            let opened = result.split_once('<')?.1.rsplit_once('>')?.0;
            let path = Path::new(opened);
            let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
            if !call.contains("O_PATH") && self.secrets.iter().any(|secret| secret == path) {
                return Some("reads a secret");
            }
            return ((writes || name == "creat") && !self.may_write(opened)).then_some("writes");
        }
        let forbidden = CHANGES.contains(&name) && paths(call).iter().any(|path| !self.may_write(path));
        forbidden.then_some("writes")
    }

    fn connects_elsewhere(&self, call: &str, failed: bool) -> bool {
        let own = |path: &str| Path::new(path).starts_with(&self.folder);
        !failed && call.contains("sun_path=") && !quoted(call).iter().any(|path| own(path))
    }

    fn may_write(&self, path: &str) -> bool {
        let allowed = |folder: &PathBuf| {
            let folder = folder.to_str().unwrap();
            path == folder
                || path.starts_with(&format!("{folder}/"))
                || (folder.ends_with('-') && path.starts_with(folder))
        };
        self.writable.iter().any(allowed)
            || ["pipe:", "socket:", "anon_inode:", "/proc/"].iter().any(|kind| path.starts_with(kind))
    }
}

/// The strings of a call, as `strace` escapes them.
fn quoted(call: &str) -> Vec<&str> {
    let mut strings = Vec::new();
    let mut rest = call;
    while let Some((_, after)) = rest.split_once('"') {
        let mut escaped = false;
        let end = after.find(|char| {
            let ends = char == '"' && !escaped;
            escaped = char == '\\' && !escaped;
            ends
        });
        let Some(end) = end else { break };
        strings.push(&after[..end]);
        rest = &after[end + 1..];
    }
    strings
}

/// The paths that a call changes; relative ones with the folder that `strace` shows before them.
fn paths(call: &str) -> Vec<String> {
    let arguments = call.split_once('(').map_or("", |(_, arguments)| arguments);
    let mut folder = None;
    let mut found = Vec::new();
    for argument in arguments.split(", ") {
        if let Some(path) = quoted(argument).first() {
            found.push(match (path.starts_with('/'), folder) {
                (false, Some(folder)) => format!("{folder}/{path}"),
                _ => (*path).to_owned(),
            });
        } else if let Some((_, path)) = argument.split_once('<') {
            folder = path.split_once('>').map(|(path, _)| path);
        }
    }
    // The target of a symbolic link is text.
    if call.starts_with("symlink") && !found.is_empty() {
        found.remove(0);
    }
    found
}
