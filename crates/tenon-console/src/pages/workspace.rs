//! Workspace: the composition of the console: owners, contributions, handles and diagnostics.

use std::collections::BTreeMap;

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_compose::kind::ContributionKind;
use tenon_compose::{ComposedEntry, EntryFields};

use super::{Page, PageContext, PageData};

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-workspace",
    id: "workspace",
    path: "/workspace",
    title: "Workspace",
    template: "workspace.html",
    topics: "modules",
    load: |context| load(context).boxed(),
    act: None,
};

/// Contributions that are listed per owner.
const MAX_ENTRIES: usize = 60;

async fn load(context: PageContext) -> PageData {
    let composed = &context.composed;
    let composition = &composed.composition;
    let mut by_owner: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for kind in ContributionKind::ALL {
        for entry in composition.entries(*kind) {
            by_owner.entry(&entry.owner.owner_id).or_default().push(entry_props(*kind, entry));
        }
    }
    let owners: Vec<Value> = composition
        .owners
        .iter()
        .map(|owner| {
            let id = &owner.owner.owner_id;
            let entries = by_owner.remove(id.as_str()).unwrap_or_default();
            let folder = composed.folders.iter().find(|(owner, _)| owner == id).map(|(_, folder)| folder);
            json!({
                "id": id, "kind": owner.owner.owner_kind, "package": owner.owner.package_id,
                "version": owner.owner.package_version, "runtime": owner.runtime, "folder": folder,
                "more": entries.len().saturating_sub(MAX_ENTRIES),
                "entries": entries.into_iter().take(MAX_ENTRIES).collect::<Vec<_>>(),
            })
        })
        .collect();
    let uncovered = composed.runtime.coverage().len();
    let handles = composition.required_render_handles.len();
    let mut diagnostics: Vec<Value> = composed.diagnostics.iter().map(diagnostic_props).collect();
    diagnostics.extend(composed.failures().iter().map(diagnostic_props));
    let problems = composed.problems.iter().map(|one| json!({"folder": one.folder, "why": one.why}));
    let props = json!({
        "owners": owners, "handles": handles, "covered": handles - uncovered.min(handles),
        "diagnostics": diagnostics, "problems": problems.collect::<Vec<_>>(), "rejected": composed.rejected,
        "config": context.access.workspace().dirs().config_file,
    });
    PageData::new(props)
}

fn entry_props(kind: ContributionKind, entry: &ComposedEntry) -> Value {
    let detail = match &entry.fields {
        EntryFields::Route { path, effective_path } if path == effective_path => path.to_string(),
        EntryFields::Route { path, effective_path } => format!("{path} as {effective_path}"),
        EntryFields::SidebarItem { label, .. } => label.clone(),
        EntryFields::ConfigurationSurface { purpose } => purpose.clone(),
        EntryFields::IntegrationSurface => String::new(),
        EntryFields::Renderer { claim } => claim.clone(),
        EntryFields::MessageAppender { target_message_type, position } => {
            format!("{} {target_message_type}", position.as_str())
        }
        EntryFields::FallbackSurface { status } => status.as_str().to_owned(),
    };
    json!({"kind": kind.as_str(), "key": entry.key, "detail": detail, "readOnly": entry.read_only,
        "handle": entry.render_handle.as_ref().map(|handle| handle.id.to_string())})
}

fn diagnostic_props(one: &tenon_compose::WorkspaceDiagnostic) -> Value {
    let subjects: Vec<&str> = one
        .subjects
        .iter()
        .filter_map(|subject| subject.canonical_key.as_deref().or(subject.owner_id.as_deref()))
        .collect();
    json!({"code": one.code.as_str(), "severity": one.severity, "message": one.message, "subjects": subjects})
}
