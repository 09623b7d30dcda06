//! Running other programs: what is run is said first, and what fails says how to mend it.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// Why a command of ours cannot go on, and what a person can do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    fix: Option<String>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), fix: None }
    }

    /// Names the command that mends it.
    pub(crate) fn fix(mut self, command: impl Into<String>) -> Self {
        self.fix = Some(command.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        match &self.fix {
            Some(fix) => write!(f, "\n  hint: {fix}"),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Talk for a person, on stderr.
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// A heading between two steps.
pub(crate) fn step(name: &str) {
    eprintln!("\n== {name}");
}

/// A result, on stdout.
pub(crate) fn print(line: &str) {
    // A closed stdout means nobody reads the result; the exit code still says it.
    let _ = writeln!(io::stdout(), "{line}");
}

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

/// The folder of installed tools.
pub(crate) fn tools() -> PathBuf {
    repository().join("target/tools")
}

/// A program of ours that was built next to this one, by its path in the profile's folder.
pub(crate) fn built(program: &str) -> Result<PathBuf, Failure> {
    let ourselves = std::env::current_exe()?;
    let path = ourselves.parent().unwrap_or(Path::new("")).join(program);
    if path.is_file() {
        return Ok(path);
    }
    let fix = "cargo build --workspace --bins --examples";
    Err(Failure::new(format!("{} is not built", path.display())).fix(fix))
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository());
    command
}

/// Whether `program arguments…` can be run here and succeeds.
pub(crate) fn works(program: impl AsRef<Path>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program.as_ref());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether a program of this name is on `PATH`.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Says a command, runs it with our own streams and tells whether it succeeded.
pub(crate) fn run(command: &mut Command) -> Result<bool, Failure> {
    announce(command);
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, &error))?;
    Ok(status.success())
}

/// As `run`, for a command that must succeed.
pub(crate) fn must(command: &mut Command) -> Result<(), Failure> {
    if run(command)? {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` failed", shown(command))))
}

/// Says a command, runs it, passes its output on and shows each line of it to `watch`.
pub(crate) fn watch(command: &mut Command, mut watch: impl FnMut(&str)) -> Result<bool, Failure> {
    announce(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_start(command, &error))?;
    let streams: [Box<dyn Read + Send>; 2] = [
        Box::new(child.stdout.take().expect("stdout was piped above")),
        Box::new(child.stderr.take().expect("stderr was piped above")),
    ];
    // 64 lines: enough to keep both readers busy, and a slow terminal still slows the child.
    let (sender, lines) = mpsc::sync_channel::<String>(64);
    let readers: Vec<_> = streams.into_iter().map(|stream| forward(stream, sender.clone())).collect();
    drop(sender);
    for line in lines {
        eprintln!("{line}");
        watch(&line);
    }
    for reader in readers {
        reader.join().expect("a reader only reads and sends");
    }
    Ok(child.wait()?.success())
}

/// Sends the lines of a stream until it or the receiver ends.
fn forward(stream: Box<dyn Read + Send>, lines: mpsc::SyncSender<String>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut bytes = Vec::new();
        while stream.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
            if lines.send(line).is_err() {
                return;
            }
            bytes.clear();
        }
    })
}

fn announce(command: &Command) {
    say(&format!("$ {}", shown(command)));
}

fn cannot_start(command: &Command, error: &io::Error) -> Failure {
    Failure::new(format!("cannot run `{}`: {error}", command.get_program().to_string_lossy()))
}

/// The command as a person would type it: programs by name, our own files from the repository.
fn shown(command: &Command) -> String {
    let root = format!("{}/", repository().display());
    let program = Path::new(command.get_program());
    let program = match program.strip_prefix(repository()) {
        Ok(ours) => ours.as_os_str(),
        Err(_) => program.file_name().unwrap_or(program.as_os_str()),
    };
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().replace(&root, "")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_seen_line_by_line() {
        let mut seen = Vec::new();
        let succeeded = watch(Command::new("sh").args(["-c", "echo one; echo two; exit 3"]), |line| {
            seen.push(line.to_owned());
        });
        assert!(!succeeded.unwrap());
        assert_eq!(seen, ["one", "two"]);
    }

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("/usr/bin/env");
        command.arg(repository().join("target/tools"));
        assert_eq!(shown(&command), "env target/tools");
    }

    #[test]
    fn a_failure_names_its_fix() {
        let failure = Failure::new("npm is missing").fix("apt-get install npm");
        assert_eq!(failure.to_string(), "error: npm is missing\n  hint: apt-get install npm");
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(failure.to_string().contains("cannot run `no-such-program-here`"), "{failure}");
    }
}
