//! Assembly: builds the composition from the draft's active contributions.

use std::sync::Arc;

use super::declarations::Resolution;
use super::draft::{ContributionFields, Draft, State};
use super::policy::Decisions;
use crate::composition::{
    ComposedEntry, ComposedOwner, Composition, ContributionOwner, EntryFields, ModuleRuntime, RenderHandle,
    RequiredRenderHandle,
};
use crate::kind::{OwnerKind, RuntimeStatus};

pub(super) fn composition(
    draft: &Draft<'_>,
    decisions: &Decisions<'_>,
    ordered: &[Vec<usize>],
) -> Composition {
    let owners: Vec<Arc<ContributionOwner>> = draft
        .owners
        .iter()
        .map(|owner| {
            Arc::new(ContributionOwner {
                owner_kind: owner.kind,
                owner_id: owner.id.to_owned(),
                package_id: owner.package_id.map(str::to_owned),
                package_version: owner.package_version.map(str::to_owned),
            })
        })
        .collect();
    // Built in document order for memory locality, then moved into result order.
    let mut built: Vec<Option<ComposedEntry>> =
        (0..draft.contributions.len()).map(|index| entry(draft, decisions, &owners, index)).collect();

    let mut by_id: Vec<usize> = (0..draft.owners.len()).collect();
    by_id.sort_by(|a, b| owner_order(&owners[*a]).cmp(&owner_order(&owners[*b])));
    let mut composed = Vec::with_capacity(by_id.len());
    let mut required_render_handles = Vec::new();
    for index in by_id {
        let read = &draft.owners[index];
        composed.push(ComposedOwner {
            owner: Arc::clone(&owners[index]),
            runtime: (read.kind == OwnerKind::Module)
                .then(|| ModuleRuntime { status: read.status, reason: read.reason.map(str::to_owned) }),
        });
        require(&built[read.contributions.clone()], &mut required_render_handles);
    }
    let mut take = |indices: &Vec<usize>| -> Vec<ComposedEntry> {
        let mut entries = Vec::with_capacity(indices.len());
        entries.extend(indices.iter().filter_map(|index| built[*index].take()));
        entries
    };
    Composition {
        owners: composed,
        entries: ordered.iter().map(&mut take).collect(),
        required_render_handles,
    }
}

fn owner_order(owner: &ContributionOwner) -> (&str, &str) {
    (owner.owner_kind.as_str(), &owner.owner_id)
}

fn entry(
    draft: &Draft<'_>,
    decisions: &Decisions<'_>,
    owners: &[Arc<ContributionOwner>],
    index: usize,
) -> Option<ComposedEntry> {
    let contribution = &draft.contributions[index];
    if contribution.state != State::Active {
        return None;
    }
    let fields = match contribution.fields {
        ContributionFields::Route { path } => {
            let path: Arc<str> = path.into();
            let effective_path = match decisions.aliases.get(&index) {
                Some(alias) => alias.path.into(),
                None => Arc::clone(&path),
            };
            EntryFields::Route { path, effective_path }
        }
        ContributionFields::SidebarItem { label, route_key } => EntryFields::SidebarItem {
            label: label.to_owned(),
            route_key: Arc::clone(&draft.contributions[visible_route(draft, decisions, route_key)?].key),
        },
        ContributionFields::Configuration { purpose } => {
            EntryFields::ConfigurationSurface { purpose: purpose.to_owned() }
        }
        ContributionFields::Integration => EntryFields::IntegrationSurface,
        ContributionFields::Renderer { claim } => EntryFields::Renderer { claim: claim.to_owned() },
        ContributionFields::Appender { target, position } => {
            EntryFields::MessageAppender { target_message_type: target.to_owned(), position }
        }
        ContributionFields::Fallback { status } => EntryFields::FallbackSurface { status },
    };
    Some(ComposedEntry {
        key: Arc::clone(&contribution.key),
        owner: Arc::clone(&owners[contribution.owner]),
        title: contribution.title.map(str::to_owned),
        order: contribution.order,
        read_only: draft.owners[contribution.owner].status == RuntimeStatus::ReadOnly,
        fields,
        render_handle: contribution.handle.as_ref().map(|handle| RenderHandle {
            kind: handle.kind,
            id: handle.id.into(),
            data: handle.data.map(|data| data.to_value()),
        }),
    })
}

/// The route that a sidebar item leads to, if that route is visible.
fn visible_route(draft: &Draft<'_>, decisions: &Decisions<'_>, route_key: &str) -> Option<usize> {
    let Resolution::Contribution(declared) = draft.declarations.resolve(route_key) else {
        return None;
    };
    let route = decisions.replaced.get(&declared).copied().unwrap_or(declared);
    (draft.contributions[route].state == State::Active).then_some(route)
}

/// Adds each handle of one owner once, with the keys of the entries that need it.
fn require(entries: &[Option<ComposedEntry>], required: &mut Vec<RequiredRenderHandle>) {
    let needs = entries.iter().flatten().filter_map(|entry| Some((entry.render_handle.as_ref()?, entry)));
    let mut needs: Vec<(&RenderHandle, &ComposedEntry)> = needs.collect();
    needs.sort_by(|(a, a_entry), (b, b_entry)| {
        (a.kind.as_str(), &a.id, &a_entry.key).cmp(&(b.kind.as_str(), &b.id, &b_entry.key))
    });
    for group in needs.chunk_by(|(a, _), (b, _)| (a.kind, &a.id) == (b.kind, &b.id)) {
        let (handle, entry) = group[0];
        required.push(RequiredRenderHandle {
            owner: Arc::clone(&entry.owner),
            kind: handle.kind,
            id: Arc::clone(&handle.id),
            keys: group.iter().map(|(_, entry)| Arc::clone(&entry.key)).collect(),
        });
    }
}
