//! The host of the composition: reads the modules that the settings list, composes them with the built-in owners, and
//! composes again without owners whose declarations are wrong.
//!
//! Settings, trust and module folders may change at any time. A fingerprint of them decides whether to compose again; it is
//! taken at most every [`FRESH`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use tenon_compose::disk_module::DiskModule;
use tenon_compose::kind::{ContributionKind, RuntimeStatus};
use tenon_compose::registry::DiagnosticSeverity;
use tenon_compose::render::{RenderPack, RenderRuntime};
use tenon_compose::{
    Composition, CompositionInput, EntryFields, ModuleRuntime, SubjectOwnerKind, WorkspaceDiagnostic, compose,
};
use tenon_contract::error_chain::one_line;
use tenon_server::web::DaemonAccess;

use crate::built_in;

/// How long a fingerprint counts.
const FRESH: Duration = Duration::from_millis(200);

/// How many files of a module folder count into the fingerprint.
const MAX_FILES: usize = 2_000;

/// How many modules are read.
const MAX_MODULES: usize = 64;

/// How many failed surfaces are remembered.
const MAX_FAILURES: usize = 200;

/// The largest policy file.
const MAX_POLICY: u64 = 1024 * 1024;

/// A module folder that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleProblem {
    pub(crate) folder: Utf8PathBuf,
    pub(crate) why: String,
}

/// One composition of the console.
pub(crate) struct ComposedConsole {
    pub(crate) composition: Composition,
    pub(crate) runtime: RenderRuntime,
    /// Of the composer and of the coverage.
    pub(crate) diagnostics: Vec<WorkspaceDiagnostic>,
    /// Owners that were left out because of errors.
    pub(crate) rejected: Vec<String>,
    pub(crate) problems: Vec<ModuleProblem>,
    /// The module folders that were read, with the owner in each.
    pub(crate) folders: Vec<(String, Utf8PathBuf)>,
    fingerprint: String,
    /// The last failure of each surface that was drawn.
    failures: Mutex<BTreeMap<String, WorkspaceDiagnostic>>,
}

impl ComposedConsole {
    /// Remembers that a surface could not be drawn.
    pub(crate) fn note_failure(&self, key: &str, diagnostic: WorkspaceDiagnostic) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < MAX_FAILURES || failures.contains_key(key) {
            failures.insert(key.to_owned(), diagnostic);
        }
    }

    /// The surfaces that could not be drawn since this was composed.
    pub(crate) fn failures(&self) -> Vec<WorkspaceDiagnostic> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The key of the route at a path.
    pub(crate) fn route(&self, path: &str) -> Option<&tenon_compose::ComposedEntry> {
        self.composition.entries(ContributionKind::Routes).iter().find(
            |entry| matches!(&entry.fields, EntryFields::Route { effective_path, .. } if **effective_path == *path),
        )
    }

    /// The key of the renderer with a claim.
    pub(crate) fn renderer(
        &self,
        kind: ContributionKind,
        claim: &str,
    ) -> Option<&tenon_compose::ComposedEntry> {
        self.composition
            .entries(kind)
            .iter()
            .find(|entry| matches!(&entry.fields, EntryFields::Renderer { claim: own } if own == claim))
    }
}

/// The settings that decide what is composed.
struct Choices {
    modules: Vec<Utf8PathBuf>,
    policy: Option<Utf8PathBuf>,
}

struct State {
    composed: Arc<ComposedConsole>,
    checked_at: Duration,
}

/// See the module.
pub(crate) struct CompositionHost {
    access: DaemonAccess,
    state: Mutex<Option<State>>,
}

impl CompositionHost {
    pub(crate) fn new(access: DaemonAccess) -> Self {
        Self { access, state: Mutex::new(None) }
    }

    /// The current composition. Reads files, so call it where blocking is allowed.
    pub(crate) fn current(&self) -> Arc<ComposedConsole> {
        let now = self.access.workspace().clock().monotonic();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*state
            && now.saturating_sub(known.checked_at) < FRESH
        {
            return Arc::clone(&known.composed);
        }
        let choices = self.choices();
        let fingerprint = fingerprint(&choices);
        if let Some(known) = &mut *state
            && known.composed.fingerprint == fingerprint
        {
            known.checked_at = now;
            return Arc::clone(&known.composed);
        }
        let composed = Arc::new(composed(&choices, fingerprint));
        *state = Some(State { composed: Arc::clone(&composed), checked_at: now });
        composed
    }

    /// The settings on disk, else those that the daemon started with.
    fn choices(&self) -> Choices {
        let reopened = self.access.reopened();
        let config = &reopened.as_ref().unwrap_or(self.access.workspace()).config().console;
        Choices {
            modules: config.modules.iter().take(MAX_MODULES).cloned().collect(),
            policy: config.policy.clone(),
        }
    }
}

fn composed(choices: &Choices, fingerprint: String) -> ComposedConsole {
    let (mut modules, mut packs, mut problems, mut folders) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let ready = ModuleRuntime { status: RuntimeStatus::Ready, reason: None };
    for folder in &choices.modules {
        match DiskModule::read(folder) {
            Ok(module) => {
                let instance = module.instance(&ready);
                let owner = instance["instanceId"].as_str().unwrap_or_default().to_owned();
                folders.push((owner, folder.clone()));
                modules.push(instance);
                packs.extend(module.pack);
            }
            Err(error) => problems.push(ModuleProblem { folder: folder.clone(), why: one_line(&error) }),
        }
    }
    let policy = match choices.policy.as_deref().map(read_policy) {
        None => None,
        Some(Ok(policy)) => Some(policy),
        Some(Err(why)) => {
            problems.push(ModuleProblem { folder: choices.policy.clone().unwrap_or_default(), why });
            None
        }
    };
    let (composition, mut diagnostics, rejected) = compose_valid(modules, policy);
    packs.retain(|pack: &RenderPack| !rejected.contains(&pack.owner_id));
    packs.extend(built_in::packs());
    let runtime = RenderRuntime::new(&composition, packs, &|_| Ok(()));
    diagnostics.extend(runtime.coverage());
    let failures = Mutex::default();
    ComposedConsole { composition, runtime, diagnostics, rejected, problems, folders, fingerprint, failures }
}

/// Composes, leaving out modules, and at last the policy, until there are no errors.
fn compose_valid(
    mut modules: Vec<Value>,
    mut policy: Option<Value>,
) -> (Composition, Vec<WorkspaceDiagnostic>, Vec<String>) {
    let (mut diagnostics, mut rejected) = (Vec::new(), BTreeSet::new());
    loop {
        let mut input = json!({
            "compositionSchemaVersion": "0.1", "builtins": built_in::declarations(), "modules": modules,
        });
        if let Some(policy) = &policy {
            input["policy"] = policy.clone();
        }
        let outcome = match CompositionInput::from_value(&input) {
            Ok(input) => compose(&input),
            // A module that nests too deeply: without modules there is none.
            Err(_) => {
                rejected
                    .extend(modules.drain(..).filter_map(|one| Some(one["instanceId"].as_str()?.to_owned())));
                continue;
            }
        };
        let is_error = |one: &&WorkspaceDiagnostic| one.severity == DiagnosticSeverity::Error;
        let errors: Vec<&WorkspaceDiagnostic> = outcome.diagnostics.iter().filter(is_error).collect();
        let named: BTreeSet<&str> = errors
            .iter()
            .flat_map(|one| &one.subjects)
            .filter(|subject| subject.owner_kind == Some(SubjectOwnerKind::Module))
            .filter_map(|subject| subject.owner_id.as_deref())
            .collect();
        let count = modules.len();
        let keeps = |one: &Value| one["instanceId"].as_str().is_some_and(|id| !named.contains(id));
        if let Some(composition) = outcome.composition {
            diagnostics.extend(outcome.diagnostics);
            return (composition, diagnostics, rejected.into_iter().collect());
        }
        rejected.extend(named.iter().map(|id| (*id).to_owned()));
        // A module without a readable name is named by no diagnostic.
        modules.retain(keeps);
        if modules.len() == count && policy.take().is_none() {
            rejected.extend(modules.drain(..).filter_map(|one| Some(one["instanceId"].as_str()?.to_owned())));
        }
        diagnostics.extend(outcome.diagnostics);
    }
}

fn read_policy(path: &Utf8Path) -> Result<Value, String> {
    let file = std::fs::metadata(path).map_err(|error| format!("cannot read the policy: {error}"))?;
    if file.len() > MAX_POLICY {
        return Err(format!("the policy exceeds {MAX_POLICY} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read the policy: {error}"))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("the policy is not JSON: {error}"))
}

/// Changes when a setting or a file of a module does.
fn fingerprint(choices: &Choices) -> String {
    let mut text = String::new();
    for folder in &choices.modules {
        let mut left = MAX_FILES;
        note(folder, &mut text, &mut left);
    }
    if let Some(policy) = &choices.policy {
        note(policy, &mut text, &mut 1);
    }
    text
}

/// Adds a file, or the files below a folder, sorted.
fn note(path: &Utf8Path, text: &mut String, left: &mut usize) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let Ok(metadata) = path.symlink_metadata() else {
        let _ = writeln!(text, "{path} missing");
        return;
    };
    if metadata.is_dir() {
        let mut names: Vec<Utf8PathBuf> =
            path.read_dir_utf8().into_iter().flatten().flatten().map(|entry| entry.into_path()).collect();
        names.sort();
        let _ = writeln!(text, "{path}/");
        names.iter().for_each(|name| note(name, text, left));
    } else {
        let _ = writeln!(text, "{path} {} {:?}", metadata.len(), metadata.modified().ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(id: &str, path: &str) -> Value {
        json!({
            "packageId": "@acme/x", "moduleApiVersion": "0.1", "instanceId": id, "runtime": {"status": "ready"},
            "contributions": {"routes": [{"id": "home", "path": path,
                "renderHandle": {"renderHandleVersion": "0.1", "kind": "route", "id": "x.home"}}]},
        })
    }

    #[test]
    fn built_in_pages_compose_without_diagnostics() {
        let console = composed(&Choices { modules: vec![], policy: None }, String::new());
        assert!(console.diagnostics.is_empty(), "{:?}", console.diagnostics);
        for path in [
            "/",
            "/problems",
            "/code",
            "/tasks",
            "/memory",
            "/context",
            "/activity",
            "/workspace",
            "/connect",
        ] {
            assert!(console.route(path).is_some(), "{path}");
        }
    }

    #[test]
    fn module_in_conflict_is_left_out_and_the_rest_stays() {
        let (composition, diagnostics, rejected) =
            compose_valid(vec![module("mine", "/tasks"), module("other", "/other")], None);
        assert_eq!(rejected, ["mine"]);
        assert_eq!(diagnostics[0].code.as_str(), "WCP-ROUTE-001");
        let paths: Vec<&str> =
            composition.entries(ContributionKind::Routes).iter().map(|entry| &*entry.key).collect();
        assert!(paths.contains(&"other:routes/home") && paths.contains(&"builtin-tenon-tasks:routes/tasks"));
    }

    #[test]
    fn unusable_modules_and_policies_never_end_the_console() {
        let broken = json!({"instanceId": 7});
        let policy = json!({"policySchemaVersion": "9", "operations": []});
        let (composition, diagnostics, _) =
            compose_valid(vec![broken, module("fine", "/fine")], Some(policy));
        assert!(!composition.entries(ContributionKind::Routes).is_empty());
        assert!(!diagnostics.is_empty());
    }
}
