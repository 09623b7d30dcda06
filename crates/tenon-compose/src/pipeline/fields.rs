//! Checks the fields of one object against its contract type and reports the mistakes.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::versions;
use crate::contract_types::{self, Field, FieldType, ObjectType};
use crate::diagnostic::{
    DiagnosticDetails, DiagnosticSubject, InputLocation, PointerStep, WorkspaceDiagnostic, truncated,
};
use crate::json::{Json, Object};
use crate::kind::{ContributionKind, OwnerKind, RenderHandleKind};
use crate::registry::DiagnosticCode;

/// The path of the field being read: a linked list on the stack, which allocates only when a fault is reported.
#[derive(Clone, Copy)]
pub(super) struct FieldPath<'p> {
    above: Option<&'p FieldPath<'p>>,
    step: PathStepRef<'p>,
}

#[derive(Clone, Copy)]
enum PathStepRef<'p> {
    Field(&'p str),
    Index(usize),
}

impl<'p> FieldPath<'p> {
    pub(super) fn field(above: Option<&'p FieldPath<'p>>, name: &'p str) -> Self {
        Self { above, step: PathStepRef::Field(name) }
    }

    pub(super) fn index(&'p self, index: usize) -> Self {
        Self { above: Some(self), step: PathStepRef::Index(index) }
    }

    fn steps(&self) -> Vec<PathStepRef<'p>> {
        let mut steps = vec![self.step];
        let mut above = self.above;
        while let Some(at) = above {
            steps.push(at.step);
            above = at.above;
        }
        steps.reverse();
        steps
    }
}

/// The subject of a possible diagnostic, borrowed from the input.
#[derive(Clone, Copy)]
pub(super) struct SubjectRef<'i> {
    /// `None` is the host.
    pub(super) kind: Option<OwnerKind>,
    pub(super) id: Option<&'i str>,
    pub(super) package_id: Option<&'i str>,
    pub(super) contribution: Option<(ContributionKind, Option<&'i str>)>,
}

pub(super) const HOST_SUBJECT: SubjectRef<'static> =
    SubjectRef { kind: None, id: None, package_id: None, contribution: None };

impl SubjectRef<'_> {
    fn subject(self) -> DiagnosticSubject {
        let Some(kind) = self.kind else { return DiagnosticSubject::host() };
        let owner = DiagnosticSubject::owner(kind, self.id, self.package_id);
        match self.contribution {
            Some((kind, local_id)) => owner.contribution(kind, local_id),
            None => owner,
        }
    }
}

/// One mistake in a field.
struct FieldFault<'f> {
    reason: &'static str,
    expected: Expected<'f>,
    received: &'f str,
}

enum Expected<'f> {
    One(&'f str),
    AnyOf(Vec<&'f str>),
}

pub(super) struct FieldChecker<'f> {
    pub(super) findings: &'f mut Vec<WorkspaceDiagnostic>,
}

impl FieldChecker<'_> {
    /// Checks the members of an object; true unless a required field is missing or wrong.
    pub(super) fn fields(
        &mut self,
        object: &Object<'_>,
        object_type: &'static ObjectType,
        above: Option<&FieldPath<'_>>,
        subject: SubjectRef<'_>,
    ) -> bool {
        let mut accepted = true;
        let mut required_found = 0;
        for (name, value) in &object.0 {
            let Some(field) = object_type.field(name) else {
                let known: Vec<&str> = object_type.fields().map(|field| field.name).collect();
                let collections = std::ptr::eq(object_type, &contract_types::CONTRIBUTIONS);
                let reason = if collections { "unknown-collection" } else { "unknown-field" };
                self.report_unknown(name, &known, reason, above, subject);
                continue;
            };
            required_found += usize::from(field.required);
            if !self.value(value, field, &FieldPath::field(above, field.name), subject) && field.required {
                accepted = false;
            }
        }
        if required_found < object_type.fields().filter(|field| field.required).count() {
            accepted = false;
            for field in object_type.fields() {
                if field.required && object.get(field.name).is_none() {
                    let fault = FieldFault {
                        reason: "missing-field",
                        expected: expected(&field.field_type),
                        received: "missing",
                    };
                    self.report(fault, &FieldPath::field(above, field.name), subject);
                }
            }
        }
        accepted
    }

    fn value(
        &mut self,
        value: &Json<'_>,
        field: &'static Field,
        at: &FieldPath<'_>,
        subject: SubjectRef<'_>,
    ) -> bool {
        let fits = match (&field.field_type, value) {
            (FieldType::String | FieldType::Pattern(_) | FieldType::Version, Json::Text(_))
            | (FieldType::Boolean, Json::Bool(_))
            | (FieldType::Array(_), Json::List(_))
            | (FieldType::CheckedSeparately(_), Json::Object(_))
            | (FieldType::AnyJson, _) => true,
            (FieldType::Integer, number) => number.as_integer().is_some(),
            (FieldType::Enum(list), Json::Text(value)) => {
                if list.values.contains(&value.as_ref()) {
                    return true;
                }
                let fault = FieldFault {
                    reason: "invalid-enum",
                    expected: expected(&field.field_type),
                    received: truncated(value),
                };
                self.report(fault, at, subject);
                return false;
            }
            (FieldType::Object(object_type), Json::Object(object)) => {
                return self.fields(object, object_type, Some(at), subject);
            }
            (FieldType::Handle(kind), Json::Object(object)) => {
                return self.handle(object, *kind, at, subject);
            }
            _ => false,
        };
        if !fits {
            let fault = FieldFault {
                reason: "wrong-type",
                expected: Expected::One(type_name(&field.field_type)),
                received: value.type_name(),
            };
            self.report(fault, at, subject);
        }
        fits
    }

    fn handle(
        &mut self,
        object: &Object<'_>,
        kind: RenderHandleKind,
        at: &FieldPath<'_>,
        subject: SubjectRef<'_>,
    ) -> bool {
        if let Some(version) = unsupported(object, "renderHandleVersion") {
            self.version(
                DiagnosticCode::UnsupportedRenderHandle,
                "renderHandleVersion",
                version,
                Some(at),
                subject,
            );
            return false;
        }
        if !self.fields(object, &contract_types::RENDER_HANDLE, Some(at), subject) {
            return false;
        }
        match object.text("kind") {
            Some(received) if received != kind.as_str() => {
                let fault =
                    FieldFault { reason: "kind-mismatch", expected: Expected::One(kind.as_str()), received };
                self.report(fault, &FieldPath::field(Some(at), "kind"), subject);
                false
            }
            _ => true,
        }
    }

    pub(super) fn version(
        &mut self,
        code: DiagnosticCode,
        field: &'static str,
        received: &str,
        above: Option<&FieldPath<'_>>,
        subject: SubjectRef<'_>,
    ) {
        let location = location(
            &FieldPath::field(above, field),
            format!("supported: {}", versions::SUPPORTED.join(", ")),
        );
        self.findings.push(versions::unsupported(code, field, received, subject.subject()).at([location]));
    }

    pub(super) fn report_type(
        &mut self,
        value: &Json<'_>,
        expected: &str,
        at: Option<&FieldPath<'_>>,
        subject: SubjectRef<'_>,
    ) {
        let fault = FieldFault {
            reason: "wrong-type",
            expected: Expected::One(expected),
            received: value.type_name(),
        };
        match at {
            Some(at) => self.report(fault, at, subject),
            None => self.push(fault, "input".to_owned(), Vec::new(), subject),
        }
    }

    pub(super) fn report_unknown(
        &mut self,
        name: &str,
        known: &[&str],
        reason: &'static str,
        above: Option<&FieldPath<'_>>,
        subject: SubjectRef<'_>,
    ) {
        let mut known = known.to_vec();
        known.sort_unstable();
        let fault = FieldFault { reason, expected: Expected::AnyOf(known), received: truncated(name) };
        self.report(fault, &FieldPath::field(above, name), subject);
    }

    fn report(&mut self, fault: FieldFault<'_>, at: &FieldPath<'_>, subject: SubjectRef<'_>) {
        let mut field = String::new();
        for step in at.steps() {
            match step {
                PathStepRef::Index(_) => field.push_str("[]"),
                PathStepRef::Field(name) if field.is_empty() => field.push_str(truncated(name)),
                PathStepRef::Field(name) => {
                    let _ = write!(field, ".{}", truncated(name));
                }
            }
        }
        let missing = fault.reason == "missing-field";
        // A missing field has no location, so point at the object that lacks it.
        let pointer = match (missing, at.above) {
            (true, above) => above.map(pointer).unwrap_or_default(),
            (false, _) => pointer(at),
        };
        self.push(fault, field, pointer, subject);
    }

    fn push(
        &mut self,
        fault: FieldFault<'_>,
        field: String,
        pointer: Vec<PointerStep>,
        subject: SubjectRef<'_>,
    ) {
        let last = field.rsplit('.').next().unwrap_or(&field);
        let note = match (fault.reason, &fault.expected) {
            ("missing-field", _) => format!("`{last}` is missing"),
            ("unknown-field" | "unknown-collection", _) => "unknown".to_owned(),
            ("wrong-type", Expected::One(one)) => format!("expected {one}, found {}", fault.received),
            (_, Expected::One(one)) => format!("expected {one}"),
            (_, Expected::AnyOf(values)) => format!("expected one of {}", values.join(", ")),
        };
        let details = DiagnosticDetails::default()
            .with("field", field)
            .with("received", fault.received)
            .with("reason", fault.reason);
        let details = match fault.expected {
            Expected::One(one) => details.with("expected", one),
            Expected::AnyOf(values) => details.with("expected", values),
        };
        let diagnostic =
            WorkspaceDiagnostic::new(DiagnosticCode::InvalidShape, vec![subject.subject()], details);
        self.findings.push(diagnostic.at([InputLocation { pointer, note }]));
    }
}

fn pointer(at: &FieldPath<'_>) -> Vec<PointerStep> {
    let own = |step| match step {
        PathStepRef::Field(name) => PointerStep::Field(Cow::Owned(name.to_owned())),
        PathStepRef::Index(index) => PointerStep::Index(index),
    };
    at.steps().into_iter().map(own).collect()
}

fn location(at: &FieldPath<'_>, note: String) -> InputLocation {
    InputLocation { pointer: pointer(at), note }
}

/// The version in `field`, if it is unsupported.
pub(super) fn unsupported<'i>(object: &'i Object<'i>, field: &str) -> Option<&'i str> {
    object.text(field).filter(|version| !versions::supported(version))
}

fn expected(field_type: &FieldType) -> Expected<'static> {
    match field_type {
        FieldType::Enum(list) => {
            let mut values = list.values.to_vec();
            values.sort_unstable();
            Expected::AnyOf(values)
        }
        _ => Expected::One(type_name(field_type)),
    }
}

fn type_name(field_type: &FieldType) -> &'static str {
    match field_type {
        FieldType::String
        | FieldType::Pattern(_)
        | FieldType::Version
        | FieldType::Literal(_)
        | FieldType::Enum(_) => "string",
        FieldType::Integer => "integer",
        FieldType::Boolean => "boolean",
        FieldType::Array(_) => "array",
        FieldType::AnyJson | FieldType::Nullable(_) => "any",
        FieldType::AnyObject
        | FieldType::Handle(_)
        | FieldType::Object(_)
        | FieldType::CheckedSeparately(_)
        | FieldType::Union(_) => "object",
    }
}
