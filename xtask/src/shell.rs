//! Running other programs. Each command is printed before it runs; each error names its fix.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// Why a command failed, and how to fix it.
#[derive(Debug)]
pub(crate) struct Error {
    message: String,
    hint: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds the command that fixes it.
    pub(crate) fn hint(mut self, command: impl Into<String>) -> Self {
        self.hint = Some(command.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Reports progress on stderr.
pub(crate) fn log(text: &str) {
    eprintln!("{text}");
}

/// Prints a heading between two steps.
pub(crate) fn heading(name: &str) {
    eprintln!("\n== {name}");
}

/// Prints a result on stdout.
pub(crate) fn print(line: &str) {
    // stdout may be closed; the exit code still reports the result.
    let _ = writeln!(io::stdout(), "{line}");
}

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository")
}

/// The folder of installed tools.
pub(crate) fn tools() -> PathBuf {
    repository().join("target/tools")
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository());
    command
}

/// Whether `program arguments…` runs and succeeds.
pub(crate) fn succeeds(program: impl AsRef<Path>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program.as_ref());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether a program is on `PATH`.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Prints a command and runs it with our own streams. Returns whether it succeeded.
pub(crate) fn run(command: &mut Command) -> Result<bool, Error> {
    print_command(command);
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, &error))?;
    Ok(status.success())
}

/// Like [`run`], but a failed command is an error.
pub(crate) fn run_checked(command: &mut Command) -> Result<(), Error> {
    if run(command)? {
        return Ok(());
    }
    Err(Error::new(format!("`{}` failed", display(command))))
}

/// Prints a command and runs it. Each line of output goes to stderr and to `on_line`.
pub(crate) fn run_with_lines(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<bool, Error> {
    print_command(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_start(command, &error))?;
    let streams: [Box<dyn Read + Send>; 2] = [
        Box::new(child.stdout.take().expect("stdout was piped above")),
        Box::new(child.stderr.take().expect("stderr was piped above")),
    ];
    // 64 lines keep both readers busy, and a slow terminal still slows the child.
    let (sender, lines) = mpsc::sync_channel::<String>(64);
    let readers: Vec<_> = streams.into_iter().map(|stream| forward(stream, sender.clone())).collect();
    drop(sender);
    for line in lines {
        eprintln!("{line}");
        on_line(&line);
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

fn print_command(command: &Command) {
    log(&format!("$ {}", display(command)));
}

fn cannot_start(command: &Command, error: &io::Error) -> Error {
    Error::new(format!("cannot run `{}`: {error}", command.get_program().to_string_lossy()))
}

/// The command as typed: programs by name, our own files relative to the repository.
fn display(command: &Command) -> String {
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
    fn output_is_passed_line_by_line() {
        let mut seen = Vec::new();
        let succeeded =
            run_with_lines(Command::new("sh").args(["-c", "echo one; echo two; exit 3"]), |line| {
                seen.push(line.to_owned());
            });
        assert!(!succeeded.unwrap());
        assert_eq!(seen, ["one", "two"]);
    }

    #[test]
    fn commands_are_printed_as_typed() {
        let mut command = Command::new("/usr/bin/env");
        command.arg(repository().join("target/tools"));
        assert_eq!(display(&command), "env target/tools");
    }

    #[test]
    fn error_includes_hint() {
        let error = Error::new("npm is missing").hint("apt-get install npm");
        assert_eq!(error.to_string(), "error: npm is missing\n  hint: apt-get install npm");
    }

    #[test]
    fn missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("cannot run `no-such-program-here`"), "{error}");
    }
}
