//! `tenon man`: writes the manual pages.

use camino::Utf8PathBuf;

use crate::cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Write the manual pages into a folder
///
/// One page per command, such as `tenon.1` and `tenon-check.1`. Packages contain them; after a build from source, run
/// `tenon man ~/.local/share/man/man1`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to write to; it is created if it is missing
    dir: Utf8PathBuf,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let written = std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(cli::definition(), &args.dir));
    written.map_err(|error| {
        Failure::new(Exit::Files, format!("cannot write manual pages to `{}`", args.dir))
            .caused_by(error.to_string())
            .hint("choose a folder that you may write to")
    })?;
    invocation.eprint(format!("manual pages: {}", args.dir));
    Ok(Exit::Success)
}
