//! `tenon tasks import` and `export`: tasks as Markdown.

use std::io::Read;

use camino::Utf8PathBuf;
use serde_json::json;
use tenon_work::Access;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::{WorkOptions, with_work};

/// The largest file that is imported.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Add the tasks of a Markdown list
///
/// A heading is a plan, an item a task, a nested item a step; `[x]` marks what is done. Tasks that the plan has already are
/// skipped. All tasks are added, or none.
#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// File; `-` for stdin
    #[arg(value_name = "FILE.md")]
    file: Utf8PathBuf,
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn import(args: Import, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let text = read(&args.file)?;
    let imported =
        with_work(&args.options, invocation, Access::Write, async |work, _| work.import_tasks(&text).await)?;
    if args.options.json {
        let data = json!({"added": imported.added, "skipped": imported.skipped});
        invocation.print_data(data.to_string())?;
    } else {
        let count = |number: usize| format!("{number} {}", if number == 1 { "task" } else { "tasks" });
        let skipped = match imported.skipped.len() {
            0 => String::new(),
            number => format!(", {number} known already"),
        };
        invocation.eprint(format!("added {}{skipped}", count(imported.added.len())));
    }
    let none = imported.added.is_empty() && imported.skipped.is_empty();
    if none {
        return Err(Failure::new(Exit::No, format!("`{}` has no list of tasks", args.file))
            .hint("a task is an item like `- [ ] Fix the login`, its steps are nested items"));
    }
    Ok(Exit::Success)
}

fn read(file: &Utf8PathBuf) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Files, format!("cannot read `{file}`: {error}"));
    let mut bytes = Vec::new();
    match file.as_str() {
        "-" => std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?,
        _ => {
            let opened = std::fs::File::open(file).map_err(failed)?;
            opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?
        }
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::new(Exit::Usage, format!("`{file}` exceeds {} MiB", MAX_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Failure::new(Exit::Usage, format!("`{file}` is not UTF-8")))
}

/// Print all tasks as a Markdown list, which `import` reads
#[derive(Debug, clap::Args)]
pub(super) struct Export {
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn export(args: &Export, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let markdown =
        with_work(&args.options, invocation, Access::Read, async |work, _| work.export_tasks().await)?;
    if args.options.json {
        invocation.print_data(json!({"markdown": markdown}).to_string())?;
    } else if markdown.is_empty() {
        invocation.eprint("there are no tasks yet");
    } else {
        invocation.print_data(markdown)?;
    }
    Ok(Exit::Success)
}
