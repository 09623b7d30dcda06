//! What every command needs: the environment, the workspace root and the output streams.
//!
//! Data goes to stdout, messages go to stderr. Both strip colours when they are not a terminal. Text for people is printed
//! with all control characters visible; JSON and scripts are printed unchanged with [`Invocation::print_data`].

use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Clock;
use tenon_contract::visible::visible;
use tenon_server::config::{Environment, FlagSetting};
use tenon_server::dirs::Dirs;
use tenon_server::trust::TrustStore;
use tenon_server::workspace::{Workspace, WorkspaceOptions, canonical_root, find_root};

use crate::failure::Failure;
use crate::styled_text::StyledText;

pub(crate) struct Invocation {
    pub(crate) environment: Environment,
    /// The value of `--root` or `TENON_ROOT`.
    root: Option<Utf8PathBuf>,
    out: Box<dyn Write>,
    err: Box<dyn Write>,
}

impl Invocation {
    pub(crate) fn new(root: Option<Utf8PathBuf>) -> Self {
        Self {
            environment: Environment::capture(),
            root,
            out: Box::new(anstream::stdout()),
            err: Box::new(anstream::stderr()),
        }
    }

    /// The canonical workspace root: `explicit` (an argument) or `--root` if given, else the nearest root above the
    /// current folder.
    pub(crate) fn root(&self, explicit: Option<&Utf8Path>) -> Result<Utf8PathBuf, Failure> {
        if let Some(given) = explicit.or(self.root.as_deref()) {
            return Ok(canonical_root(given)?);
        }
        let here = std::env::current_dir().map_err(Failure::no_current_folder)?;
        let here = Utf8PathBuf::from_path_buf(here)
            .map_err(|path| Failure::no_current_folder(io::Error::other(format!("{path:?} is not UTF-8"))))?;
        Ok(canonical_root(&find_root(&here))?)
    }

    /// The root given by `--root` or `TENON_ROOT`.
    pub(crate) fn explicit_root(&self) -> Option<&Utf8Path> {
        self.root.as_deref()
    }

    pub(crate) fn dirs(&self) -> Result<Dirs, Failure> {
        Ok(Dirs::of(&self.environment)?)
    }

    /// Opens the workspace at `root` with settings from flags.
    pub(crate) fn workspace(&self, root: &Utf8Path, flags: Vec<FlagSetting>) -> Result<Workspace, Failure> {
        let environment = self.environment.clone();
        let options = WorkspaceOptions { dirs: self.dirs()?, environment, flags, clock: Clock::system() };
        Ok(Workspace::open(root, options)?)
    }

    pub(crate) fn trust_store(&self) -> Result<TrustStore, Failure> {
        Ok(TrustStore::new(self.dirs()?.trust(), Clock::system()))
    }

    /// Writes one line for people to stdout.
    pub(crate) fn print(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        Ok(writeln!(self.out, "{}", visible(line.as_ref()))?)
    }

    /// Writes a text of several lines for people to stdout.
    pub(crate) fn print_lines(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        text.as_ref().lines().try_for_each(|line| self.print(line))
    }

    /// Writes text with our colours to stdout.
    pub(crate) fn print_styled(&mut self, text: &StyledText) -> Result<(), Failure> {
        Ok(self.out.write_all(text.as_str().as_bytes())?)
    }

    /// Writes data for programs to stdout, unchanged, and ends it with a line break.
    pub(crate) fn print_data(&mut self, data: impl AsRef<[u8]>) -> Result<(), Failure> {
        let data = data.as_ref();
        let mut out = io::stdout().lock();
        out.write_all(data)?;
        if !data.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Writes one line to stderr. A closed stderr is not an error.
    pub(crate) fn eprint(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.err, "{}", visible(line.as_ref()));
    }

    /// Writes text with our colours to stderr. A closed stderr is not an error.
    pub(crate) fn eprint_styled(&mut self, text: &StyledText) {
        let _ = self.err.write_all(text.as_str().as_bytes());
    }

    /// Writes a question to stderr and leaves the cursor behind it.
    pub(crate) fn ask(&mut self, question: &'static str) -> Result<(), Failure> {
        write!(self.err, "{question} ")?;
        Ok(self.err.flush()?)
    }
}

/// Runs a future on a single-threaded runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let value = runtime.block_on(future);
    // Does not wait for blocking threads, which may wait for a lock or for stdin forever.
    runtime.shutdown_background();
    Ok(value)
}
