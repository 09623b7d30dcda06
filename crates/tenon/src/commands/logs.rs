//! `tenon logs`: prints the end of the daemon's log.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use camino::Utf8Path;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Print the end of the daemon's log
///
/// `tenon servers logs` prints the logs of language servers. Exits with 1 if there is no log yet.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of lines
    #[arg(long, short = 'n', default_value_t = 50, value_name = "COUNT")]
    lines: usize,
    /// Print only the path of the log
    #[arg(long)]
    path: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let path = invocation.workspace(&root, vec![])?.log_path();
    if args.path {
        invocation.print(&path)?;
        return Ok(Exit::Success);
    }
    let last = match tail(&path, args.lines) {
        Ok(last) => last,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            invocation.eprint(format!("no log yet: {path}"));
            invocation.eprint("  hint: the daemon writes it; run `tenon up` to start the daemon");
            return Ok(Exit::No);
        }
        Err(error) => {
            return Err(
                Failure::new(Exit::Files, format!("cannot read `{path}`")).caused_by(error.to_string())
            );
        }
    };
    for line in last {
        invocation.print(line)?;
    }
    Ok(Exit::Success)
}

/// The last `count` lines of a log.
pub(crate) fn tail(path: &Utf8Path, count: usize) -> io::Result<VecDeque<String>> {
    let mut last = VecDeque::new();
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        last.push_back(String::from_utf8_lossy(&line?).into_owned());
        if last.len() > count {
            last.pop_front();
        }
    }
    Ok(last)
}
