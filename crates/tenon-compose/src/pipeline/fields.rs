//! Checks the fields of one object against its record and words what is wrong with them.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::versions;
use crate::diagnostic::{Details, Diagnostic, Place, Step, Subject, shown};
use crate::document::{Json, Object};
use crate::kind::{ContributionKind, HandleKind, OwnerKind};
use crate::registry::Code;
use crate::shape::{self, Field, Record, Shape};

/// Where the reader stands: a list of steps that lives on the stack and costs nothing until something is wrong.
#[derive(Clone, Copy)]
pub(super) struct At<'p> {
    above: Option<&'p At<'p>>,
    step: StepRef<'p>,
}

#[derive(Clone, Copy)]
enum StepRef<'p> {
    Field(&'p str),
    Index(usize),
}

impl<'p> At<'p> {
    pub(super) fn field(above: Option<&'p At<'p>>, name: &'p str) -> Self {
        Self { above, step: StepRef::Field(name) }
    }

    pub(super) fn index(&'p self, index: usize) -> Self {
        Self { above: Some(self), step: StepRef::Index(index) }
    }

    fn steps(&self) -> Vec<StepRef<'p>> {
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

/// Whom the reader would blame.
#[derive(Clone, Copy)]
pub(super) struct Who<'i> {
    /// Nobody in particular is the host.
    pub(super) kind: Option<OwnerKind>,
    pub(super) id: Option<&'i str>,
    pub(super) package_id: Option<&'i str>,
    pub(super) contribution: Option<(ContributionKind, Option<&'i str>)>,
}

pub(super) const HOST: Who<'static> = Who { kind: None, id: None, package_id: None, contribution: None };

impl Who<'_> {
    fn subject(self) -> Subject {
        let Some(kind) = self.kind else { return Subject::host() };
        let owner = Subject::owner(kind, self.id, self.package_id);
        match self.contribution {
            Some((kind, local_id)) => owner.contribution(kind, local_id),
            None => owner,
        }
    }
}

/// One thing wrong with a field.
struct Fault<'f> {
    reason: &'static str,
    expected: Expected<'f>,
    received: &'f str,
}

enum Expected<'f> {
    One(&'f str),
    AnyOf(Vec<&'f str>),
}

pub(super) struct Checker<'f> {
    pub(super) findings: &'f mut Vec<Diagnostic>,
}

impl Checker<'_> {
    /// Checks the members of an object against its record; true unless a required field is missing or wrong.
    pub(super) fn fields(
        &mut self,
        object: &Object<'_>,
        record: &'static Record,
        above: Option<&At<'_>>,
        who: Who<'_>,
    ) -> bool {
        let mut accepted = true;
        let mut required_found = 0;
        for (name, value) in &object.0 {
            let Some(field) = record.field(name) else {
                let known: Vec<&str> = record.fields().map(|field| field.name).collect();
                let collections = std::ptr::eq(record, &shape::CONTRIBUTIONS);
                let reason = if collections { "unknown-collection" } else { "unknown-field" };
                self.report_unknown(name, &known, reason, above, who);
                continue;
            };
            required_found += usize::from(field.required);
            if !self.value(value, field, &At::field(above, field.name), who) && field.required {
                accepted = false;
            }
        }
        if required_found < record.fields().filter(|field| field.required).count() {
            accepted = false;
            for field in record.fields() {
                if field.required && object.get(field.name).is_none() {
                    let fault = Fault {
                        reason: "missing-field",
                        expected: expected(&field.shape),
                        received: "missing",
                    };
                    self.report(fault, &At::field(above, field.name), who);
                }
            }
        }
        accepted
    }

    fn value(&mut self, value: &Json<'_>, field: &'static Field, at: &At<'_>, who: Who<'_>) -> bool {
        let fits = match (&field.shape, value) {
            (Shape::Text | Shape::Pattern(_) | Shape::Version, Json::Text(_))
            | (Shape::Flag, Json::Bool(_))
            | (Shape::List(_), Json::List(_))
            | (Shape::Apart(_), Json::Object(_))
            | (Shape::Json, _) => true,
            (Shape::Integer, number) => number.as_integer().is_some(),
            (Shape::Word(list), Json::Text(word)) => {
                if list.words.contains(&word.as_ref()) {
                    return true;
                }
                let fault =
                    Fault { reason: "invalid-enum", expected: expected(&field.shape), received: shown(word) };
                self.report(fault, at, who);
                return false;
            }
            (Shape::Record(record), Json::Object(object)) => {
                return self.fields(object, record, Some(at), who);
            }
            (Shape::Handle(kind), Json::Object(object)) => return self.handle(object, *kind, at, who),
            _ => false,
        };
        if !fits {
            let fault = Fault {
                reason: "wrong-type",
                expected: Expected::One(type_name(&field.shape)),
                received: value.type_name(),
            };
            self.report(fault, at, who);
        }
        fits
    }

    fn handle(&mut self, object: &Object<'_>, kind: HandleKind, at: &At<'_>, who: Who<'_>) -> bool {
        if let Some(version) = unsupported(object, "renderHandleVersion") {
            self.version(Code::UnsupportedRenderHandle, "renderHandleVersion", version, Some(at), who);
            return false;
        }
        if !self.fields(object, &shape::RENDER_HANDLE, Some(at), who) {
            return false;
        }
        match object.text("kind") {
            Some(received) if received != kind.as_str() => {
                let fault =
                    Fault { reason: "kind-mismatch", expected: Expected::One(kind.as_str()), received };
                self.report(fault, &At::field(Some(at), "kind"), who);
                false
            }
            _ => true,
        }
    }

    pub(super) fn version(
        &mut self,
        code: Code,
        field: &'static str,
        received: &str,
        above: Option<&At<'_>>,
        who: Who<'_>,
    ) {
        let place = place(&At::field(above, field), format!("supported: {}", versions::SUPPORTED.join(", ")));
        self.findings.push(versions::unsupported(code, field, received, who.subject()).at([place]));
    }

    pub(super) fn report_type(
        &mut self,
        value: &Json<'_>,
        expected: &str,
        at: Option<&At<'_>>,
        who: Who<'_>,
    ) {
        let fault =
            Fault { reason: "wrong-type", expected: Expected::One(expected), received: value.type_name() };
        match at {
            Some(at) => self.report(fault, at, who),
            None => self.push(fault, "input".to_owned(), Vec::new(), who),
        }
    }

    pub(super) fn report_unknown(
        &mut self,
        name: &str,
        known: &[&str],
        reason: &'static str,
        above: Option<&At<'_>>,
        who: Who<'_>,
    ) {
        let mut known = known.to_vec();
        known.sort_unstable();
        let fault = Fault { reason, expected: Expected::AnyOf(known), received: shown(name) };
        self.report(fault, &At::field(above, name), who);
    }

    fn report(&mut self, fault: Fault<'_>, at: &At<'_>, who: Who<'_>) {
        let mut field = String::new();
        for step in at.steps() {
            match step {
                StepRef::Index(_) => field.push_str("[]"),
                StepRef::Field(name) if field.is_empty() => field.push_str(shown(name)),
                StepRef::Field(name) => {
                    let _ = write!(field, ".{}", shown(name));
                }
            }
        }
        let missing = fault.reason == "missing-field";
        // What is missing has no place; its holder has.
        let pointer = match (missing, at.above) {
            (true, above) => above.map(pointer).unwrap_or_default(),
            (false, _) => pointer(at),
        };
        self.push(fault, field, pointer, who);
    }

    fn push(&mut self, fault: Fault<'_>, field: String, pointer: Vec<Step>, who: Who<'_>) {
        let last = field.rsplit('.').next().unwrap_or(&field);
        let note = match (fault.reason, &fault.expected) {
            ("missing-field", _) => format!("`{last}` is missing"),
            ("unknown-field" | "unknown-collection", _) => "not known here".to_owned(),
            ("wrong-type", Expected::One(one)) => format!("expected {one}, found {}", fault.received),
            (_, Expected::One(one)) => format!("expected {one}"),
            (_, Expected::AnyOf(words)) => format!("expected one of {}", words.join(", ")),
        };
        let details = Details::default()
            .with("field", field)
            .with("received", fault.received)
            .with("reason", fault.reason);
        let details = match fault.expected {
            Expected::One(one) => details.with("expected", one),
            Expected::AnyOf(words) => details.with("expected", words),
        };
        let diagnostic = Diagnostic::new(Code::InvalidShape, vec![who.subject()], details);
        self.findings.push(diagnostic.at([Place { pointer, note }]));
    }
}

fn pointer(at: &At<'_>) -> Vec<Step> {
    let own = |step| match step {
        StepRef::Field(name) => Step::Field(Cow::Owned(name.to_owned())),
        StepRef::Index(index) => Step::Index(index),
    };
    at.steps().into_iter().map(own).collect()
}

fn place(at: &At<'_>, note: String) -> Place {
    Place { pointer: pointer(at), note }
}

/// The version in `field`, if it is a version that this composer does not support.
pub(super) fn unsupported<'i>(object: &'i Object<'i>, field: &str) -> Option<&'i str> {
    object.text(field).filter(|version| !versions::supported(version))
}

fn expected(shape: &Shape) -> Expected<'static> {
    match shape {
        Shape::Word(list) => {
            let mut words = list.words.to_vec();
            words.sort_unstable();
            Expected::AnyOf(words)
        }
        _ => Expected::One(type_name(shape)),
    }
}

fn type_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Text | Shape::Pattern(_) | Shape::Version | Shape::Literal(_) | Shape::Word(_) => "string",
        Shape::Integer => "integer",
        Shape::Flag => "boolean",
        Shape::List(_) => "array",
        Shape::Json | Shape::Nullable(_) => "any",
        Shape::JsonObject | Shape::Handle(_) | Shape::Record(_) | Shape::Apart(_) | Shape::Union(_) => {
            "object"
        }
    }
}
