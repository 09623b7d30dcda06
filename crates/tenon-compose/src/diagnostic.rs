//! Diagnostics of the composer and the render runtime, as data with a fixed shape and order.
//!
//! Input strings that no grammar has accepted are truncated to [`MAX_UNCHECKED_CHARS`] characters, so that a broken
//! name cannot make its diagnostics larger than the input.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::grammar::{self, KeyParts};
use crate::kind::{ContributionKind, OwnerKind, string_enum};
use crate::registry::{
    DOCS_ANCHOR, DiagnosticCategory, DiagnosticCode, DiagnosticOrigin, DiagnosticSeverity,
};

/// How many characters of an unchecked string a diagnostic shows.
pub const MAX_UNCHECKED_CHARS: usize = 200;

/// The first [`MAX_UNCHECKED_CHARS`] characters of `text`.
pub(crate) fn truncated(text: &str) -> &str {
    match text.char_indices().nth(MAX_UNCHECKED_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

string_enum! {
    /// The kind of owner that a diagnostic is about.
    SubjectOwnerKind { Module = "module", Builtin = "builtin", Host = "host" }
}

impl From<OwnerKind> for SubjectOwnerKind {
    fn from(kind: OwnerKind) -> Self {
        match kind {
            OwnerKind::Module => Self::Module,
            OwnerKind::Builtin => Self::Builtin,
        }
    }
}

/// What a diagnostic is about; fields that could not be read are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiagnosticSubject {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_kind: Option<SubjectOwnerKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contribution_kind: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renderer_claim: Option<String>,
}

impl DiagnosticSubject {
    #[must_use]
    pub fn host() -> Self {
        Self { owner_kind: Some(SubjectOwnerKind::Host), ..Self::default() }
    }

    /// A subject that names an owner only.
    pub(crate) fn owner(kind: OwnerKind, id: Option<&str>, package_id: Option<&str>) -> Self {
        Self {
            owner_kind: Some(kind.into()),
            owner_id: id.map(|id| truncated(id).to_owned()),
            package_id: package_id.map(|id| truncated(id).to_owned()),
            ..Self::default()
        }
    }

    /// The same owner, with a contribution added.
    pub(crate) fn contribution(mut self, kind: ContributionKind, local_id: Option<&str>) -> Self {
        self.contribution_kind = Some(Cow::Borrowed(kind.as_str()));
        if let Some(local_id) = local_id {
            let local_id = truncated(local_id);
            self.canonical_key =
                self.owner_id.as_deref().map(|owner| grammar::canonical_key(owner, kind, local_id));
            self.local_id = Some(local_id.to_owned());
        }
        self
    }

    /// The subject that a canonical key names.
    pub(crate) fn from_key(key: KeyParts<'_>) -> Self {
        let kind = if key.is_builtin() { OwnerKind::Builtin } else { OwnerKind::Module };
        Self::owner(kind, Some(key.owner_id), None).contribution(key.kind, Some(key.local_id))
    }

    /// The short form used in `details`: owner and contribution key.
    pub(crate) fn as_owner(&self) -> Self {
        Self {
            owner_kind: self.owner_kind,
            owner_id: self.owner_id.clone(),
            canonical_key: self.canonical_key.clone(),
            ..Self::default()
        }
    }

    /// The sort key of owners in `details`: kind as text, then id, then key.
    fn owner_order(&self) -> (Option<&str>, &Option<String>, &Option<String>, &Option<String>) {
        (self.owner_kind.map(SubjectOwnerKind::as_str), &self.owner_id, &self.canonical_key, &self.package_id)
    }
}

/// One step of a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointerStep {
    Field(Cow<'static, str>),
    Index(usize),
}

/// A location in the input that a diagnostic is about. It depends on the order of the input, so it is never serialised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputLocation {
    pub pointer: Vec<PointerStep>,
    /// A short label for this location.
    pub note: String,
}

impl fmt::Display for InputLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.pointer.iter().enumerate() {
            match step {
                PointerStep::Index(index) => write!(formatter, "[{index}]")?,
                PointerStep::Field(name) if depth == 0 => formatter.write_str(name)?,
                PointerStep::Field(name) => write!(formatter, ".{name}")?,
            }
        }
        Ok(())
    }
}

/// The `details` object of a diagnostic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiagnosticDetails(BTreeMap<String, Value>);

impl DiagnosticDetails {
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The stable reason code. Its field name depends on the diagnostic code.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        ["reason", "admissionReason", "unsupportedReason", "failurePhase"]
            .into_iter()
            .find_map(|name| self.text(name))
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn with_owner(self, name: &str, owner: &DiagnosticSubject) -> Self {
        let value = serde_json::to_value(owner).expect("subjects hold only text");
        self.with(name, value)
    }

    pub(crate) fn with_owners(self, name: &str, mut owners: Vec<DiagnosticSubject>) -> Self {
        owners.sort_unstable_by(|a, b| a.owner_order().cmp(&b.owner_order()));
        let value = serde_json::to_value(owners).expect("subjects hold only text");
        self.with(name, value)
    }
}

/// One diagnostic. `message` is for people and not part of the contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceDiagnostic {
    pub diagnostic_schema_version: Cow<'static, str>,
    pub code: DiagnosticCode,
    pub severity: DiagnosticSeverity,
    pub origin: DiagnosticOrigin,
    pub category: DiagnosticCategory,
    pub subjects: Vec<DiagnosticSubject>,
    pub details: DiagnosticDetails,
    pub decision_ids: Vec<Cow<'static, str>>,
    pub docs_anchor: Cow<'static, str>,
    pub message: String,
    /// Locations in the input, shown by the text format only.
    #[serde(skip)]
    pub locations: Vec<InputLocation>,
}

impl WorkspaceDiagnostic {
    /// Takes severity, origin, category, decisions and message from the registry.
    pub(crate) fn new(
        code: DiagnosticCode,
        subjects: Vec<DiagnosticSubject>,
        details: DiagnosticDetails,
    ) -> Self {
        let row = code.row();
        debug_assert!(
            details.names().eq({
                let mut names = row.details.to_vec();
                names.sort_unstable();
                names
            }),
            "{} requires {:?}, not {details:?}",
            row.name,
            row.details
        );
        Self {
            diagnostic_schema_version: Cow::Borrowed(crate::pipeline::versions::CURRENT),
            code,
            severity: row.severity,
            origin: row.origin,
            category: row.category,
            message: fill(row.message, &details),
            subjects,
            details,
            decision_ids: row.decisions.iter().copied().map(Cow::Borrowed).collect(),
            docs_anchor: Cow::Borrowed(DOCS_ANCHOR),
            locations: Vec::new(),
        }
    }

    pub(crate) fn at(mut self, locations: impl IntoIterator<Item = InputLocation>) -> Self {
        self.locations.extend(locations);
        self
    }

    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == DiagnosticSeverity::Error
    }

    /// How to fix it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        let row = self.code.row();
        let reason = self.details.reason();
        let exact = row.reasons.iter().find(|(known, _)| Some(*known) == reason);
        exact.map_or(row.help, |(_, help)| help)
    }
}

fn fill(template: &'static str, details: &DiagnosticDetails) -> String {
    let mut message = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("templates are balanced (registry test)");
        message.push_str(before);
        message.push_str(details.text(name).unwrap_or_default());
        rest = after;
    }
    message.push_str(rest);
    message
}

/// Sorts by severity, code, the first subject's key, then canonical JSON.
pub(crate) fn sort(diagnostics: &mut [WorkspaceDiagnostic]) {
    diagnostics.sort_by_cached_key(|diagnostic| {
        let key = diagnostic.subjects.first().and_then(|subject| subject.canonical_key.clone());
        let json = tenon_contract::json::canonical(diagnostic).expect("diagnostics are plain JSON");
        (diagnostic.severity, diagnostic.code.as_str(), key, json)
    });
}

/// Sorts modules before built-ins, each by key.
pub(crate) fn sort_subjects<T>(items: &mut [T], subject: impl Fn(&T) -> &DiagnosticSubject) {
    items.sort_by(|a, b| {
        let (a, b) = (subject(a), subject(b));
        (a.owner_kind, &a.canonical_key, a).cmp(&(b.owner_kind, &b.canonical_key, b))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(kind: SubjectOwnerKind, id: &str, key: Option<&str>) -> DiagnosticSubject {
        DiagnosticSubject {
            owner_kind: Some(kind),
            owner_id: Some(id.to_owned()),
            canonical_key: key.map(str::to_owned),
            ..DiagnosticSubject::default()
        }
    }

    #[test]
    fn owners_and_subjects_sort_differently() {
        let module = owner(SubjectOwnerKind::Module, "aaa", Some("aaa:routes/x"));
        let builtin = owner(SubjectOwnerKind::Builtin, "builtin-z", Some("builtin-z:routes/x"));
        let details =
            DiagnosticDetails::default().with_owners("owners", vec![module.clone(), builtin.clone()]);
        assert_eq!(details.get("owners").unwrap()[0]["ownerId"], "builtin-z");
        let mut subjects = [builtin.clone(), module.clone()];
        sort_subjects(&mut subjects, |subject| subject);
        assert_eq!(subjects, [module, builtin]);
    }

    #[test]
    fn long_names_are_truncated_at_a_character_boundary() {
        let long = "é".repeat(300);
        assert_eq!(truncated(&long).chars().count(), MAX_UNCHECKED_CHARS);
        let subject = DiagnosticSubject::owner(OwnerKind::Module, Some(&long), None)
            .contribution(ContributionKind::Routes, Some(&long));
        assert_eq!(
            subject.canonical_key.unwrap().chars().count(),
            2 * MAX_UNCHECKED_CHARS + ":routes/".len()
        );
    }

    #[test]
    fn message_is_filled_from_details() {
        let details = DiagnosticDetails::default()
            .with("field", "compositionSchemaVersion")
            .with("received", "9")
            .with("supported", vec!["0.1"]);
        let diagnostic = WorkspaceDiagnostic::new(
            DiagnosticCode::UnsupportedCompositionSchema,
            vec![DiagnosticSubject::host()],
            details,
        );
        assert_eq!(diagnostic.message, "Composition schema version '9' is not supported.");
        assert_eq!(diagnostic.help(), "use a supported `compositionSchemaVersion`");
        let text = serde_json::to_string(&diagnostic).unwrap();
        assert_eq!(serde_json::from_str::<WorkspaceDiagnostic>(&text).unwrap(), diagnostic);
    }
}
