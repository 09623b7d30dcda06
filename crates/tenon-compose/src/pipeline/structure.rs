//! Structure: reads the document into a draft and reports every field that has the wrong shape.
//!
//! A missing or wrong required field rejects its holder; a wrong optional or unknown field rejects only itself. An
//! unsupported version hides what is below it. `field` names the place without list positions, so that the order of
//! the input cannot show.

use super::declared::Reference;
use super::draft::{Contribution, Draft, Handle, Operation, Owner, Role, State};
use super::fields::{At, Checker, HOST, Who, unsupported};
use crate::diagnostic::{Details, Diagnostic, shown};
use crate::document::{Json, Object};
use crate::grammar::{KeyParts, canonical_key, key_splits};
use crate::input::Input;
use crate::kind::{ContributionKind, HandleKind, OperationKind, OwnerKind, Position, Status};
use crate::registry::Code;
use crate::shape::{self, Record};

pub(super) fn read<'i>(input: &'i Input<'_>, findings: &mut Vec<Diagnostic>) -> Draft<'i> {
    let mut reader = Reader { draft: Draft::default(), check: Checker { findings } };
    let count = contribution_count(&input.root);
    reader.draft.contributions.reserve(count);
    reader.draft.declared.reserve(count);
    reader.input(&input.root);
    reader.route_keys();
    reader.draft
}

/// How many contributions the document declares, if it is well formed; a guess at sizes and nothing else.
fn contribution_count(root: &Json<'_>) -> usize {
    let lists = |name| match root.as_object().and_then(|input| input.get(name)) {
        Some(Json::List(owners)) => owners.as_slice(),
        _ => &[],
    };
    let owners = lists("builtins").iter().chain(lists("modules"));
    let contributions = owners.filter_map(|owner| owner.as_object()?.get("contributions")?.as_object());
    let collections = contributions.flat_map(|contributions| &contributions.0);
    collections.map(|(_, list)| if let Json::List(list) = list { list.len() } else { 0 }).sum()
}

struct Reader<'i, 'f> {
    draft: Draft<'i>,
    check: Checker<'f>,
}

impl<'i> Reader<'i, '_> {
    fn input(&mut self, root: &'i Json<'i>) {
        let Json::Object(input) = root else {
            self.check.report_type(root, "object", None, HOST);
            self.draft.declared.unread_owners();
            return;
        };
        if let Some(version) = unsupported(input, "compositionSchemaVersion") {
            self.check.version(
                Code::UnsupportedCompositionSchema,
                "compositionSchemaVersion",
                version,
                None,
                HOST,
            );
            return;
        }
        self.check.fields(input, &shape::INPUT, None, HOST);
        for (list, kind) in [("builtins", OwnerKind::Builtin), ("modules", OwnerKind::Module)] {
            let at = At::field(None, list);
            match input.get(list) {
                Some(Json::List(owners)) => {
                    for (index, owner) in owners.iter().enumerate() {
                        self.owner(owner, kind, index, &at.index(index));
                    }
                }
                None if kind == OwnerKind::Builtin => {}
                _ => self.draft.declared.unread_owners(),
            }
        }
        if let Some(Json::Object(policy)) = input.get("policy") {
            self.policy(policy);
        }
    }

    fn owner(&mut self, value: &'i Json<'i>, kind: OwnerKind, index: usize, at: &At<'_>) {
        let mut who = Who { kind: Some(kind), ..HOST };
        let Json::Object(object) = value else {
            self.check.report_type(value, "object", Some(at), who);
            self.draft.declared.unread_owner(None);
            return;
        };
        let (record, id_field) = match kind {
            OwnerKind::Module => (&shape::MODULE_INSTANCE, "instanceId"),
            OwnerKind::Builtin => (&shape::BUILTIN, "ownerId"),
        };
        who.id = object.text(id_field);
        who.package_id = object.text("packageId");
        if kind == OwnerKind::Module
            && let Some(version) = unsupported(object, "moduleApiVersion")
        {
            self.check.version(Code::UnsupportedModuleApi, "moduleApiVersion", version, Some(at), who);
            self.draft.declared.unread_owner(who.id);
            return;
        }
        let accepted = self.check.fields(object, record, Some(at), who);
        self.draft.declared.owner(who.id);

        let owner = self.draft.owners.len();
        let first = self.draft.contributions.len();
        match object.get("contributions") {
            Some(Json::Object(contributions)) => {
                let at = At::field(Some(at), "contributions");
                self.contributions(contributions, accepted.then_some(owner), &at, who);
            }
            _ => self.draft.declared.unread_owner(who.id),
        }
        if accepted {
            let runtime = object.get("runtime").and_then(Json::as_object);
            self.draft.owners.push(Owner {
                kind,
                id: who.id.expect("an accepted owner has its id"),
                package_id: who.package_id,
                package_version: object.text("packageVersion"),
                status: runtime
                    .and_then(|runtime| runtime.text("status"))
                    .and_then(Status::parse)
                    .unwrap_or(Status::Ready),
                reason: runtime.and_then(|runtime| runtime.text("reason")),
                index,
                contributions: first..self.draft.contributions.len(),
                rejected: false,
            });
        }
    }

    /// Reads all collections; those of a rejected owner (`None`) are checked and then only remembered as declared.
    fn contributions(&mut self, object: &'i Object<'i>, owner: Option<usize>, at: &At<'_>, who: Who<'i>) {
        self.check.fields(object, &shape::CONTRIBUTIONS, Some(at), who);
        for kind in ContributionKind::ALL.iter().copied() {
            let Some(list) = object.get(kind.collection()) else {
                continue;
            };
            let Json::List(descriptors) = list else {
                self.draft.declared.unread_collection(who.id, kind);
                continue;
            };
            let at = At::field(Some(at), kind.collection());
            for (index, descriptor) in descriptors.iter().enumerate() {
                self.descriptor(descriptor, kind, owner, index, &at.index(index), who);
            }
        }
    }

    fn descriptor(
        &mut self,
        value: &'i Json<'i>,
        kind: ContributionKind,
        owner: Option<usize>,
        index: usize,
        at: &At<'_>,
        mut who: Who<'i>,
    ) {
        who.contribution = Some((kind, None));
        let Json::Object(object) = value else {
            self.check.report_type(value, "object", Some(at), who);
            self.draft.declared.unread_collection(who.id, kind);
            return;
        };
        let local_id = object.text("id");
        who.contribution = Some((kind, local_id));
        let accepted = self.check.fields(object, descriptor_record(kind), Some(at), who);
        let Some(local_id) = local_id else {
            self.draft.declared.unread_collection(who.id, kind);
            return;
        };
        let found = match (owner, accepted) {
            (Some(owner), true) => {
                let added = self.draft.add(Contribution {
                    owner,
                    kind,
                    local_id,
                    key: canonical_key(who.id.unwrap_or_default(), kind, local_id).into(),
                    title: object.text("title"),
                    order: object.get("order").and_then(Json::as_integer),
                    role: role(kind, object),
                    handle: object.get("renderHandle").and_then(Json::as_object).and_then(handle),
                    index,
                    state: State::Active,
                });
                if kind == ContributionKind::SidebarItems {
                    // Whether it stands is known once all routes are.
                    return;
                }
                Reference::To(added)
            }
            _ => {
                self.draft.declared.unread_claim(object.text("claim"));
                Reference::Unreadable
            }
        };
        if let Some(owner_id) = who.id {
            let key = KeyParts { owner_id, kind, local_id };
            self.declare(key, found);
        }
    }

    fn declare(&mut self, key: KeyParts<'i>, found: Reference) {
        let fresh = self.draft.declared.contribution(key, found);
        if let (false, Reference::To(index)) = (fresh, found) {
            self.draft.repeated.push(index);
        }
    }

    fn policy(&mut self, policy: &'i Object<'i>) {
        let at = At::field(None, "policy");
        if let Some(version) = unsupported(policy, "policySchemaVersion") {
            self.check.version(
                Code::UnsupportedPolicySchema,
                "policySchemaVersion",
                version,
                Some(&at),
                HOST,
            );
            return;
        }
        self.check.fields(policy, &shape::POLICY, Some(&at), HOST);
        self.draft.allow_module_root = policy.get("allowModuleRootRoute") == Some(&Json::Bool(true));
        let Some(Json::List(operations)) = policy.get("operations") else {
            return;
        };
        let at = At::field(Some(&at), "operations");
        for (index, value) in operations.iter().enumerate() {
            self.operation(value, index, &at.index(index));
        }
    }

    fn operation(&mut self, value: &'i Json<'i>, index: usize, at: &At<'_>) {
        let Json::Object(object) = value else {
            self.check.report_type(value, "object", Some(at), HOST);
            return;
        };
        let accepted = self.check.fields(object, &shape::ANY_OPERATION, Some(at), HOST);
        if let Some(kind) = object.text("op").and_then(OperationKind::parse) {
            let known = shape::ANY_OPERATION.fields().map(|field| field.name);
            let (taken, foreign): (Vec<&str>, Vec<&str>) = known.partition(|name| kind.takes(name));
            for name in foreign.into_iter().filter(|name| object.get(name).is_some()) {
                self.check.report_unknown(name, &taken, "unknown-field", Some(at), HOST);
            }
        }
        if let (true, Some(id), Some(op), Some(target)) =
            (accepted, object.text("id"), object.text("op"), object.text("target"))
        {
            self.draft.operations.push(Operation {
                id,
                op,
                target,
                use_key: object.text("use"),
                path: object.text("path"),
                before: object.text("before"),
                after: object.text("after"),
                index,
            });
        }
    }

    /// A sidebar item that leads nowhere is a mistake of its declaration; one to something rejected is not.
    fn route_keys(&mut self) {
        for index in self.draft.of_kind(ContributionKind::SidebarItems).to_vec() {
            let Role::SidebarItem { route_key, .. } = self.draft.contributions[index].role else {
                continue;
            };
            let names_a_route = key_splits(route_key).any(|parts| parts.kind == ContributionKind::Routes);
            let leads_to_a_route = names_a_route && self.draft.declared.find(route_key) != Reference::Nowhere;
            let owner = &self.draft.owners[self.draft.contributions[index].owner];
            let list = match owner.kind {
                OwnerKind::Module => "modules",
                OwnerKind::Builtin => "builtins",
            };
            let key = KeyParts {
                owner_id: owner.id,
                kind: ContributionKind::SidebarItems,
                local_id: self.draft.contributions[index].local_id,
            };
            if leads_to_a_route {
                self.declare(key, Reference::To(index));
                continue;
            }
            self.declare(key, Reference::Unreadable);
            let details = Details::default()
                .with("field", format!("{list}[].contributions.sidebarItems[].routeKey"))
                .with("expected", "route-key")
                .with("received", shown(route_key))
                .with("reason", "unknown-route-key");
            let place = self.draft.place(index, "routeKey", "no such route".to_owned());
            let diagnostic = Diagnostic::new(Code::InvalidShape, vec![self.draft.subject(index)], details);
            self.check.findings.push(diagnostic.at([place]));
            self.draft.contributions[index].state = State::Rejected;
        }
    }
}

fn descriptor_record(kind: ContributionKind) -> &'static Record {
    match kind {
        ContributionKind::Routes => &shape::ROUTE,
        ContributionKind::SidebarItems => &shape::SIDEBAR_ITEM,
        ContributionKind::ConfigurationSurfaces => &shape::CONFIGURATION_SURFACE,
        ContributionKind::IntegrationSurfaces => &shape::INTEGRATION_SURFACE,
        ContributionKind::MessageRenderers => &shape::MESSAGE_RENDERER,
        ContributionKind::MessageAppenders => &shape::MESSAGE_APPENDER,
        ContributionKind::ToolRenderers => &shape::TOOL_RENDERER,
        ContributionKind::ActivityRenderers => &shape::ACTIVITY_RENDERER,
        ContributionKind::FallbackSurfaces => &shape::FALLBACK_SURFACE,
    }
}

/// What is special to the kind; every field was checked before.
fn role<'i>(kind: ContributionKind, object: &'i Object<'i>) -> Role<'i> {
    let text = |name| object.text(name).expect("required text was checked");
    match kind {
        ContributionKind::Routes => Role::Route { path: text("path") },
        ContributionKind::SidebarItems => {
            Role::SidebarItem { label: text("label"), route_key: text("routeKey") }
        }
        ContributionKind::ConfigurationSurfaces => Role::Configuration { purpose: text("purpose") },
        ContributionKind::IntegrationSurfaces => Role::Integration,
        ContributionKind::MessageRenderers
        | ContributionKind::ToolRenderers
        | ContributionKind::ActivityRenderers => Role::Renderer { claim: text("claim") },
        ContributionKind::MessageAppenders => Role::Appender {
            target: text("targetMessageType"),
            position: Position::parse(text("position")).expect("the position was checked"),
        },
        ContributionKind::FallbackSurfaces => {
            Role::Fallback { status: Status::parse(text("status")).expect("the status was checked") }
        }
    }
}

fn handle<'i>(object: &'i Object<'i>) -> Option<Handle<'i>> {
    Some(Handle {
        kind: object.text("kind").and_then(HandleKind::parse)?,
        id: object.text("id")?,
        data: object.get("data"),
    })
}
