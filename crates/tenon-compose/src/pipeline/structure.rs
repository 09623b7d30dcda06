//! Structure: reads the document into a draft and reports every field that has the wrong type.
//!
//! A missing or wrong required field rejects the object that needs it; a wrong optional or unknown field rejects only
//! itself. Nothing below an unsupported version is checked. `field` is a path without array indices, so that it does
//! not depend on the order of the input.

use super::declarations::Resolution;
use super::draft::{Contribution, ContributionFields, Draft, Handle, Operation, Owner, State};
use super::fields::{FieldChecker, FieldPath, HOST_SUBJECT, SubjectRef, unsupported};
use crate::contract_types::{self, ObjectType};
use crate::diagnostic::{DiagnosticDetails, WorkspaceDiagnostic, truncated};
use crate::grammar::{KeyParts, canonical_key, key_splits};
use crate::input::CompositionInput;
use crate::json::{Json, Object};
use crate::kind::{
    AppenderPosition, ContributionKind, OperationKind, OwnerKind, RenderHandleKind, RuntimeStatus,
};
use crate::registry::DiagnosticCode;

pub(super) fn read<'i>(
    input: &'i CompositionInput<'_>,
    findings: &mut Vec<WorkspaceDiagnostic>,
) -> Draft<'i> {
    let mut reader = Reader { draft: Draft::default(), check: FieldChecker { findings } };
    let count = contribution_count(&input.root);
    reader.draft.contributions.reserve(count);
    reader.draft.declarations.reserve(count);
    reader.input(&input.root);
    reader.route_keys();
    reader.draft
}

/// How many contributions the document seems to declare; used only to reserve memory.
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
    check: FieldChecker<'f>,
}

impl<'i> Reader<'i, '_> {
    fn input(&mut self, root: &'i Json<'i>) {
        let Json::Object(input) = root else {
            self.check.report_type(root, "object", None, HOST_SUBJECT);
            self.draft.declarations.unread_owners();
            return;
        };
        if let Some(version) = unsupported(input, "compositionSchemaVersion") {
            self.check.version(
                DiagnosticCode::UnsupportedCompositionSchema,
                "compositionSchemaVersion",
                version,
                None,
                HOST_SUBJECT,
            );
            return;
        }
        self.check.fields(input, &contract_types::INPUT, None, HOST_SUBJECT);
        for (list, kind) in [("builtins", OwnerKind::Builtin), ("modules", OwnerKind::Module)] {
            let at = FieldPath::field(None, list);
            match input.get(list) {
                Some(Json::List(owners)) => {
                    for (index, owner) in owners.iter().enumerate() {
                        self.owner(owner, kind, index, &at.index(index));
                    }
                }
                None if kind == OwnerKind::Builtin => {}
                _ => self.draft.declarations.unread_owners(),
            }
        }
        if let Some(Json::Object(policy)) = input.get("policy") {
            self.policy(policy);
        }
    }

    fn owner(&mut self, value: &'i Json<'i>, kind: OwnerKind, index: usize, at: &FieldPath<'_>) {
        let mut subject = SubjectRef { kind: Some(kind), ..HOST_SUBJECT };
        let Json::Object(object) = value else {
            self.check.report_type(value, "object", Some(at), subject);
            self.draft.declarations.unread_owner(None);
            return;
        };
        let (object_type, id_field) = match kind {
            OwnerKind::Module => (&contract_types::MODULE_INSTANCE, "instanceId"),
            OwnerKind::Builtin => (&contract_types::BUILTIN, "ownerId"),
        };
        subject.id = object.text(id_field);
        subject.package_id = object.text("packageId");
        if kind == OwnerKind::Module
            && let Some(version) = unsupported(object, "moduleApiVersion")
        {
            self.check.version(
                DiagnosticCode::UnsupportedModuleApi,
                "moduleApiVersion",
                version,
                Some(at),
                subject,
            );
            self.draft.declarations.unread_owner(subject.id);
            return;
        }
        let accepted = self.check.fields(object, object_type, Some(at), subject);
        self.draft.declarations.owner(subject.id);

        let owner = self.draft.owners.len();
        let first = self.draft.contributions.len();
        match object.get("contributions") {
            Some(Json::Object(contributions)) => {
                let at = FieldPath::field(Some(at), "contributions");
                self.contributions(contributions, accepted.then_some(owner), &at, subject);
            }
            _ => self.draft.declarations.unread_owner(subject.id),
        }
        if accepted {
            let runtime = object.get("runtime").and_then(Json::as_object);
            self.draft.owners.push(Owner {
                kind,
                id: subject.id.expect("an accepted owner has its id"),
                package_id: subject.package_id,
                package_version: object.text("packageVersion"),
                status: runtime
                    .and_then(|runtime| runtime.text("status"))
                    .and_then(RuntimeStatus::parse)
                    .unwrap_or(RuntimeStatus::Ready),
                reason: runtime.and_then(|runtime| runtime.text("reason")),
                index,
                contributions: first..self.draft.contributions.len(),
                rejected: false,
            });
        }
    }

    /// Reads all collections. Those of a rejected owner (`None`) are checked and recorded as declared only.
    fn contributions(
        &mut self,
        object: &'i Object<'i>,
        owner: Option<usize>,
        at: &FieldPath<'_>,
        subject: SubjectRef<'i>,
    ) {
        self.check.fields(object, &contract_types::CONTRIBUTIONS, Some(at), subject);
        for kind in ContributionKind::ALL.iter().copied() {
            let Some(list) = object.get(kind.collection()) else {
                continue;
            };
            let Json::List(descriptors) = list else {
                self.draft.declarations.unread_collection(subject.id, kind);
                continue;
            };
            let at = FieldPath::field(Some(at), kind.collection());
            for (index, descriptor) in descriptors.iter().enumerate() {
                self.descriptor(descriptor, kind, owner, index, &at.index(index), subject);
            }
        }
    }

    fn descriptor(
        &mut self,
        value: &'i Json<'i>,
        kind: ContributionKind,
        owner: Option<usize>,
        index: usize,
        at: &FieldPath<'_>,
        mut subject: SubjectRef<'i>,
    ) {
        subject.contribution = Some((kind, None));
        let Json::Object(object) = value else {
            self.check.report_type(value, "object", Some(at), subject);
            self.draft.declarations.unread_collection(subject.id, kind);
            return;
        };
        let local_id = object.text("id");
        subject.contribution = Some((kind, local_id));
        let accepted = self.check.fields(object, descriptor_type(kind), Some(at), subject);
        let Some(local_id) = local_id else {
            self.draft.declarations.unread_collection(subject.id, kind);
            return;
        };
        let found = match (owner, accepted) {
            (Some(owner), true) => {
                let added = self.draft.add(Contribution {
                    owner,
                    kind,
                    local_id,
                    key: canonical_key(subject.id.unwrap_or_default(), kind, local_id).into(),
                    title: object.text("title"),
                    order: object.get("order").and_then(Json::as_integer),
                    fields: fields(kind, object),
                    handle: object.get("renderHandle").and_then(Json::as_object).and_then(handle),
                    index,
                    state: State::Active,
                });
                if kind == ContributionKind::SidebarItems {
                    // Declared in `route_keys`, once all routes are known.
                    return;
                }
                Resolution::Contribution(added)
            }
            _ => {
                self.draft.declarations.unread_claim(object.text("claim"));
                Resolution::Unreadable
            }
        };
        if let Some(owner_id) = subject.id {
            let key = KeyParts { owner_id, kind, local_id };
            self.declare(key, found);
        }
    }

    fn declare(&mut self, key: KeyParts<'i>, found: Resolution) {
        let fresh = self.draft.declarations.contribution(key, found);
        if let (false, Resolution::Contribution(index)) = (fresh, found) {
            self.draft.repeated.push(index);
        }
    }

    fn policy(&mut self, policy: &'i Object<'i>) {
        let at = FieldPath::field(None, "policy");
        if let Some(version) = unsupported(policy, "policySchemaVersion") {
            self.check.version(
                DiagnosticCode::UnsupportedPolicySchema,
                "policySchemaVersion",
                version,
                Some(&at),
                HOST_SUBJECT,
            );
            return;
        }
        self.check.fields(policy, &contract_types::POLICY, Some(&at), HOST_SUBJECT);
        self.draft.allow_module_root = policy.get("allowModuleRootRoute") == Some(&Json::Bool(true));
        let Some(Json::List(operations)) = policy.get("operations") else {
            return;
        };
        let at = FieldPath::field(Some(&at), "operations");
        for (index, value) in operations.iter().enumerate() {
            self.operation(value, index, &at.index(index));
        }
    }

    fn operation(&mut self, value: &'i Json<'i>, index: usize, at: &FieldPath<'_>) {
        let Json::Object(object) = value else {
            self.check.report_type(value, "object", Some(at), HOST_SUBJECT);
            return;
        };
        let accepted = self.check.fields(object, &contract_types::ANY_OPERATION, Some(at), HOST_SUBJECT);
        if let Some(kind) = object.text("op").and_then(OperationKind::parse) {
            let known = contract_types::ANY_OPERATION.fields().map(|field| field.name);
            let (allowed, unsupported): (Vec<&str>, Vec<&str>) = known.partition(|name| kind.takes(name));
            for name in unsupported.into_iter().filter(|name| object.get(name).is_some()) {
                self.check.report_unknown(name, &allowed, "unknown-field", Some(at), HOST_SUBJECT);
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

    /// Rejects sidebar items whose route is not declared. A rejected route was reported already.
    fn route_keys(&mut self) {
        for index in self.draft.of_kind(ContributionKind::SidebarItems).to_vec() {
            let ContributionFields::SidebarItem { route_key, .. } = self.draft.contributions[index].fields
            else {
                continue;
            };
            let names_a_route = key_splits(route_key).any(|parts| parts.kind == ContributionKind::Routes);
            let leads_to_a_route =
                names_a_route && self.draft.declarations.resolve(route_key) != Resolution::Undeclared;
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
                self.declare(key, Resolution::Contribution(index));
                continue;
            }
            self.declare(key, Resolution::Unreadable);
            let details = DiagnosticDetails::default()
                .with("field", format!("{list}[].contributions.sidebarItems[].routeKey"))
                .with("expected", "route-key")
                .with("received", truncated(route_key))
                .with("reason", "unknown-route-key");
            let location = self.draft.location(index, "routeKey", "no such route".to_owned());
            let diagnostic = WorkspaceDiagnostic::new(
                DiagnosticCode::InvalidShape,
                vec![self.draft.subject(index)],
                details,
            );
            self.check.findings.push(diagnostic.at([location]));
            self.draft.contributions[index].state = State::Rejected;
        }
    }
}

fn descriptor_type(kind: ContributionKind) -> &'static ObjectType {
    match kind {
        ContributionKind::Routes => &contract_types::ROUTE,
        ContributionKind::SidebarItems => &contract_types::SIDEBAR_ITEM,
        ContributionKind::ConfigurationSurfaces => &contract_types::CONFIGURATION_SURFACE,
        ContributionKind::IntegrationSurfaces => &contract_types::INTEGRATION_SURFACE,
        ContributionKind::MessageRenderers => &contract_types::MESSAGE_RENDERER,
        ContributionKind::MessageAppenders => &contract_types::MESSAGE_APPENDER,
        ContributionKind::ToolRenderers => &contract_types::TOOL_RENDERER,
        ContributionKind::ActivityRenderers => &contract_types::ACTIVITY_RENDERER,
        ContributionKind::FallbackSurfaces => &contract_types::FALLBACK_SURFACE,
    }
}

/// The fields of this kind; they have been checked before.
fn fields<'i>(kind: ContributionKind, object: &'i Object<'i>) -> ContributionFields<'i> {
    let text = |name| object.text(name).expect("required text was checked");
    match kind {
        ContributionKind::Routes => ContributionFields::Route { path: text("path") },
        ContributionKind::SidebarItems => {
            ContributionFields::SidebarItem { label: text("label"), route_key: text("routeKey") }
        }
        ContributionKind::ConfigurationSurfaces => {
            ContributionFields::Configuration { purpose: text("purpose") }
        }
        ContributionKind::IntegrationSurfaces => ContributionFields::Integration,
        ContributionKind::MessageRenderers
        | ContributionKind::ToolRenderers
        | ContributionKind::ActivityRenderers => ContributionFields::Renderer { claim: text("claim") },
        ContributionKind::MessageAppenders => ContributionFields::Appender {
            target: text("targetMessageType"),
            position: AppenderPosition::parse(text("position")).expect("the position was checked"),
        },
        ContributionKind::FallbackSurfaces => ContributionFields::Fallback {
            status: RuntimeStatus::parse(text("status")).expect("the status was checked"),
        },
    }
}

fn handle<'i>(object: &'i Object<'i>) -> Option<Handle<'i>> {
    Some(Handle {
        kind: object.text("kind").and_then(RenderHandleKind::parse)?,
        id: object.text("id")?,
        data: object.get("data"),
    })
}
