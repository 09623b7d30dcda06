//! `tenon store`: the database of plans and memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use serde_json::json;
use tenon_server::surfaces::work::StoreHandle;
use tenon_work::{Store, StoreError, StoreReport, TransferCounts};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};
use crate::work::store_handle;

/// Check, migrate, export and import the store of plans and memory
///
/// The setting `work.store` says where it is; by default an SQLite file in your data folder. To move everything: `tenon store export | TENON_WORK_STORE=postgres://… tenon store import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Migrate the store to the current schema, as every use of it does
    Migrate {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the database, every row, and plans and tasks against the event log
    ///
    /// Exits with 1 if there are problems.
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write everything to stdout as lines of JSON
    Export,
    /// Import an export, all of it or nothing
    ///
    /// Exits with 1 if the export is invalid or a workspace already exists.
    Import {
        /// File with the export; `-` or none means stdin
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let store_handle = store_handle(invocation)?;
    match args.command {
        Command::Migrate { json } => migrate(&store_handle, json, invocation),
        Command::Check { json } => check(&store_handle, json, invocation),
        Command::Export => export(&store_handle, invocation),
        Command::Import { file, json } => import(&store_handle, file.as_deref(), json, invocation),
    }
}

/// Opens the store, uses it, and closes it.
fn with_store<T>(
    store_handle: &StoreHandle,
    use_it: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
) -> Result<T, Failure> {
    let outcome = block_on(async {
        let outcome = use_it(store_handle.work().await?.store()).await;
        store_handle.close().await;
        outcome
    })?;
    Ok(outcome?)
}

fn migrate(store_handle: &StoreHandle, json: bool, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let (engine, was, schema) = with_store(store_handle, async |store| {
        Ok((store.backend_name(), store.found_version(), store.schema_version()))
    })?;
    let location = store_handle.location()?.to_string();
    if json {
        let answer = json!({"store": location, "engine": engine, "schema": schema, "was": was});
        invocation.print_data(answer.to_string())?;
    } else {
        invocation.print(format!("store: {location}"))?;
        invocation.print(format!("engine: {engine}"))?;
        invocation.print(format!("schema: {schema}"))?;
        let said =
            if was == schema { "nothing to migrate".to_owned() } else { format!("migrated from {was}") };
        invocation.eprint(said);
    }
    Ok(Exit::Success)
}

fn check(store_handle: &StoreHandle, json: bool, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let report = with_store(store_handle, async |store| store.check().await)?;
    let StoreReport { workspaces, events, records, problems } = &report;
    let good = problems.is_empty();
    if json {
        let answer = json!({"good": good, "workspaces": workspaces, "events": events, "records": records,
            "problems": problems});
        invocation.print_data(answer.to_string())?;
    } else {
        for problem in problems {
            invocation.print(problem)?;
        }
        invocation.eprint(format!("checked: {workspaces} workspaces, {events} events, {records} records"));
    }
    Ok(if good { Exit::Success } else { Exit::No })
}

fn export(store_handle: &StoreHandle, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let carried =
        with_store(store_handle, async |store| store.export(&mut BufWriter::new(io::stdout())).await)?;
    invocation.eprint(format!("exported: {}", amount(carried)));
    Ok(Exit::Success)
}

fn import(
    store_handle: &StoreHandle,
    file: Option<&Path>,
    json: bool,
    invocation: &mut Invocation,
) -> Result<Exit, Failure> {
    let mut input: Box<dyn BufRead + Send> = match file {
        Some(file) if file != Path::new("-") => Box::new(BufReader::new(open(file)?)),
        _ => Box::new(BufReader::new(io::stdin())),
    };
    let carried = with_store(store_handle, async |store| store.import(&mut input).await)?;
    if json {
        invocation.print_data(json!({"workspaces": carried.workspaces, "rows": carried.rows}).to_string())?;
    } else {
        invocation.eprint(format!("imported: {}", amount(carried)));
    }
    Ok(Exit::Success)
}

fn open(file: &Path) -> Result<File, Failure> {
    File::open(file).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read `{}`", file.display())).caused_by(error.to_string())
    })
}

fn amount(carried: TransferCounts) -> String {
    format!("{} workspaces, {} rows", carried.workspaces, carried.rows)
}
