//! `tenon servers install`: shows what would be installed, where and why, asks, and installs.
//!
//! A server that cannot be installed does not stop the others. `tenon up` installs the same way.

use std::io::{BufRead, IsTerminal};

use camino::Utf8PathBuf;
use indicatif::{ProgressBar, ProgressStyle};
use tenon_servers::install::{
    InstallPlan, InstallProgress, Managed, PackageLock, PlannedLock, ServedFiles, SkipReason, SkippedServer,
    Tools,
};
use tenon_servers::language_count::LanguageCount;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::language_servers;

/// Install servers in pinned versions, with npm, pip and cargo
///
/// Without an id: every missing server that the files of the workspace need. Shows size, folder and reason first and asks
/// on a terminal. Installs into Tenon's own folder and checks every package against the hashes that Tenon ships. Only what
/// cargo builds runs code of a package during the installation.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Server ids, as shown by `tenon servers list`
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Install every missing server that the files of this workspace need
    #[arg(long = "for", value_name = "DIR", conflicts_with = "ids")]
    workspace: Option<Utf8PathBuf>,
    /// Install without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(args.workspace.as_deref())?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let managed = language_servers::managed(&workspace);
    let tools = Tools::find(&language_servers::search_path(&workspace), Some(&root));
    let was_named = !args.ids.is_empty();
    let plan = if was_named {
        InstallPlan::for_servers(&registry, &args.ids, &tools)?
    } else {
        let languages = LanguageCount::count(&language_servers::walk(&workspace)?, &registry);
        if languages.servers().is_empty() {
            language_servers::say_no_source(&root, invocation);
            return Ok(Exit::Success);
        }
        InstallPlan::for_workspace(&registry, &languages, &workspace.finder(), &tools)
    };
    if plan.is_empty() {
        invocation.eprint("nothing to install: every server that the workspace's files need is available");
        return Ok(Exit::Success);
    }
    let (kept, plan) = without_installed(plan, &managed);
    for lock in kept {
        invocation.print(format!("already installed: {}", installed_line(lock, &managed)))?;
    }
    print_plan(&plan, &managed, invocation);
    let missing = plan.skipped.iter().filter(|one| was_named || matches!(one.why, SkipReason::Tool(_)));
    let is_missing = missing.count() > 0;
    if !plan.locks.is_empty() && !confirm(args.yes.then_some(true), invocation)? {
        invocation.eprint("nothing was installed");
        return Ok(Exit::No);
    }
    let failed = install_all(&plan.locks, &managed, &tools, invocation, Invocation::print)?;
    Ok(if is_missing || !failed.is_empty() { Exit::No } else { Exit::Success })
}

/// The locks of a plan that are installed already, and the plan without them.
fn without_installed(mut plan: InstallPlan, managed: &Managed) -> (Vec<&'static PackageLock>, InstallPlan) {
    let installed = managed.installed();
    let is_installed = |lock: &PackageLock| installed.iter().any(|one| one.current && one.lock == lock);
    let kept = plan.locks.iter().map(|planned| planned.lock).filter(|lock| is_installed(lock)).collect();
    plan.locks.retain(|planned| !is_installed(planned.lock));
    (kept, plan)
}

/// `pyright 1.1.414 in FOLDER`.
fn installed_line(lock: &PackageLock, managed: &Managed) -> String {
    format!("{} {} in {}", lock.name, lock.version, managed.folder_of(lock))
}

/// Shows what would be installed, and what would not.
pub(crate) fn print_plan(plan: &InstallPlan, managed: &Managed, invocation: &mut Invocation) {
    if !plan.locks.is_empty() {
        invocation.eprint(format!("to be installed in {}:", managed.folder()));
    }
    for planned in &plan.locks {
        invocation.eprint(format!("  {}", planned_line(planned)));
        if let Some(instead) = &planned.instead {
            invocation.eprint(format!("    hint: `{instead}` installs it instead, usually faster"));
        }
    }
    if !plan.skipped.is_empty() {
        invocation.eprint("not installed:");
    }
    for skipped in &plan.skipped {
        let SkippedServer { served, why, .. } = skipped;
        invocation.eprint(format!("  {}{}: {why}", served.id, reason(std::slice::from_ref(served))));
        invocation.eprint(format!("    hint: {}", skipped.fix()));
    }
}

/// `pyright 1.1.414 for 34 Python files: 20 MB, with npm`.
fn planned_line(planned: &PlannedLock) -> String {
    let PackageLock { name, version, manager, megabytes, .. } = planned.lock;
    let how = match planned.lock.is_built_from_source() {
        false => format!("with {}", manager.name()),
        true => format!(
            "built from source with {}, which takes minutes, 2 GB on the way, and runs the packages' build scripts",
            manager.name()
        ),
    };
    format!("{name} {version}{}: {megabytes} MB, {how}", reason(&planned.servers))
}

/// ` for 34 Python files`, or nothing if the user asked for the server.
fn reason(servers: &[ServedFiles]) -> String {
    let files: Vec<String> = servers.iter().filter(|one| one.files > 0).map(ServedFiles::to_string).collect();
    if files.is_empty() { String::new() } else { format!(" for {}", files.join(", ")) }
}

/// Whether someone can be asked.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether to install: decided by a flag, else by the user on a terminal. Without a terminal, the answer is yes.
pub(crate) fn confirm(decided: Option<bool>, invocation: &mut Invocation) -> Result<bool, Failure> {
    if let Some(decided) = decided.or((!is_terminal()).then_some(true)) {
        return Ok(decided);
    }
    invocation.ask("Install? [Y/n]")?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer)?;
    Ok(read > 0 && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}

/// A lock that could not be installed.
pub(crate) struct FailedInstall {
    pub(crate) lock: &'static PackageLock,
    pub(crate) failure: Failure,
}

/// Installs one after the other. A failure is shown and does not stop the next one.
pub(crate) fn install_all(
    locks: &[PlannedLock],
    managed: &Managed,
    tools: &Tools,
    invocation: &mut Invocation,
    print: fn(&mut Invocation, String) -> Result<(), Failure>,
) -> Result<Vec<FailedInstall>, Failure> {
    let mut failed = Vec::new();
    for planned in locks {
        let lock = planned.lock;
        match install_one(lock, managed, tools, invocation) {
            Ok(()) => print(invocation, format!("installed: {}", installed_line(lock, managed)))?,
            Err(failure) => {
                let failure = match &planned.instead {
                    Some(instead) => failure.hint(format!("`{instead}` installs it without Tenon")),
                    None => failure,
                };
                invocation.eprint_styled(&failure.render());
                failed.push(FailedInstall { lock, failure });
            }
        }
    }
    Ok(failed)
}

/// Installs one lock with progress on a terminal.
pub(super) fn install_one(
    lock: &'static PackageLock,
    managed: &Managed,
    tools: &Tools,
    invocation: &mut Invocation,
) -> Result<(), Failure> {
    let style =
        ProgressStyle::with_template("{spinner} {prefix}: {msg} {elapsed}").expect("the template is fixed");
    let name = format!("{} {}", lock.name, lock.version);
    let bar = ProgressBar::new_spinner().with_style(style).with_prefix(name.clone());
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let mut step = "";
    let installed = managed.install(lock, tools, &mut |progress| match progress {
        InstallProgress::Waiting => bar.set_message("waiting for another installation"),
        InstallProgress::Step { what, .. } => {
            step = what;
            bar.set_message(what);
            // Without a terminal there is no spinner, and a build is silent for minutes.
            if bar.is_hidden() && lock.is_built_from_source() {
                invocation.eprint(format!("{name}: {what}"));
            }
        }
        InstallProgress::Built { packages, .. } => bar.set_message(format!("{step} (package {packages})")),
        InstallProgress::Kept { .. } | InstallProgress::Installed { .. } => {}
    });
    bar.finish_and_clear();
    installed?;
    Ok(())
}
