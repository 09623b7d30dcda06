//! `tenon logs`: prints the end of the daemon's log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};

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
    let file = match std::fs::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
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
    let mut last = VecDeque::new();
    for line in BufReader::new(file).split(b'\n') {
        last.push_back(line?);
        if last.len() > args.lines {
            last.pop_front();
        }
    }
    for line in last {
        invocation.print(String::from_utf8_lossy(&line))?;
    }
    Ok(Exit::Success)
}
