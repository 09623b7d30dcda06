//! `tenon servers update`: replaces installed servers by the versions that this Tenon pins.

use std::collections::BTreeSet;

use tenon_servers::install::{self, Installed, Managed, PackageLock, Tools};

use super::install::{confirm, install_one};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::language_servers;

/// Install the pinned versions of outdated servers, and remove the old ones
///
/// A version that a running server uses stays until the next update.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Server ids, as shown by `tenon servers list` [default: all that Tenon installed]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Update without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let managed = language_servers::managed(&workspace);
    let tools = Tools::find(&language_servers::search_path(&workspace), Some(&root));
    let chosen: Vec<&'static PackageLock> = match args.ids.is_empty() {
        true => PackageLock::all().iter().collect(),
        false => install::all_locks_of(&registry, &args.ids)?,
    };
    let outdated = outdated(&managed.installed(), &chosen);
    if outdated.is_empty() {
        invocation.eprint("up to date: every installed server has the version that this Tenon pins");
        return Ok(Exit::Success);
    }
    invocation.eprint(format!("to be updated in {}:", managed.folder()));
    for (lock, versions) in &outdated {
        let (manager, built) = (lock.manager.name(), lock.is_built_from_source());
        let how = if built { ", built from source, which takes minutes" } else { "" };
        let versions = versions.join(", ");
        invocation.eprint(format!(
            "  {} {versions} to {}: {} MB, with {manager}{how}",
            lock.name, lock.version, lock.megabytes
        ));
    }
    if !confirm(args.yes.then_some(true), invocation)? {
        invocation.eprint("nothing was updated");
        return Ok(Exit::No);
    }
    let mut exit = Exit::Success;
    for (lock, _) in outdated {
        if let Err(failure) = update(lock, &managed, &tools, invocation) {
            invocation.eprint_styled(&failure.render());
            exit = Exit::No;
        }
    }
    Ok(exit)
}

/// The locks with outdated versions, and those versions.
pub(super) fn outdated(
    installed: &[Installed],
    chosen: &[&'static PackageLock],
) -> Vec<(&'static PackageLock, Vec<String>)> {
    let old = |lock: &PackageLock| {
        let versions = installed.iter().filter(|one| one.lock == lock && !one.current);
        versions.map(|one| one.version.clone()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let locks = chosen.iter().map(|lock| (*lock, old(lock)));
    locks.filter(|(_, versions)| !versions.is_empty()).collect()
}

fn update(
    lock: &'static PackageLock,
    managed: &Managed,
    tools: &Tools,
    invocation: &mut Invocation,
) -> Result<(), Failure> {
    install_one(lock, managed, tools, invocation)?;
    invocation.print(format!("installed: {} {} in {}", lock.name, lock.version, managed.folder_of(lock)))?;
    let versions = managed.remove_outdated(lock, &mut |_| {})?;
    for version in versions.removed {
        invocation.print(format!("removed: {} {version}", lock.name))?;
    }
    for version in versions.in_use {
        invocation.print(format!("kept: {} {version}, which a running server may use", lock.name))?;
        invocation.eprint("  hint: stop the daemon with `tenon stop`, then run `tenon servers update` again");
    }
    Ok(())
}
