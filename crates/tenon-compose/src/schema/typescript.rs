//! The TypeScript declarations.

use std::fmt::Write as _;

use indexmap::IndexMap;

use crate::pipeline::versions::SUPPORTED;
use crate::shape::{self, Record, Shape, Words};

/// What no table says: JSON itself, handles by kind, and claims.
const PRELUDE: &str = "\
// Declarations of the workspace composition contract. Written by `cargo xtask schemas`.

export type CompositionJsonPrimitive = string | number | boolean | null;
export type CompositionJsonValue = CompositionJsonPrimitive | readonly CompositionJsonValue[] | CompositionJsonObject;
export type CompositionJsonObject = { readonly [key: string]: CompositionJsonValue };

export type RendererClaim = `message:${string}` | `tool:${string}` | `activity:${string}`;

export type RenderHandle<Kind extends RenderHandleKind = RenderHandleKind> = {
  renderHandleVersion: SchemaVersion;
  kind: Kind;
  id: string;
  data?: CompositionJsonValue;
};
";

/// The declarations of everything that the schemas describe.
#[must_use]
pub fn declarations() -> String {
    let mut types = Types::default();
    types.words(&shape::HANDLE_KINDS);
    types.words(&shape::output::CONTRIBUTION_KINDS);
    for record in [
        &shape::INPUT,
        &shape::MODULE_DECLARATION,
        &shape::output::OUTCOME,
        &shape::output::PROVIDER_SUMMARY,
        &shape::output::PACK,
    ] {
        types.record(record);
    }
    let versions = union(SUPPORTED);
    let mut text = format!("{PRELUDE}\nexport type SchemaVersion = {versions};\n");
    for declaration in types.written.into_values() {
        text.push('\n');
        text.push_str(&declaration);
    }
    text
}

/// Declarations by name, in the order in which they were finished: what is used comes before its user.
#[derive(Default)]
struct Types {
    written: IndexMap<&'static str, String>,
}

impl Types {
    fn words(&mut self, list: &'static Words) -> String {
        let declaration =
            format!("export type {} =\n  | {};\n", list.name, quoted(list.words).join("\n  | "));
        self.written.entry(list.name).or_insert(declaration);
        list.name.to_owned()
    }

    fn record(&mut self, record: &'static Record) -> String {
        if !self.written.contains_key(record.name) {
            let mut declaration = format!("export type {} = {{\n", record.name);
            for field in record.fields() {
                let mark = if field.required { "" } else { "?" };
                let shape = self.shape(&field.shape);
                let _ = writeln!(declaration, "  {}{mark}: {shape};", field.name);
            }
            declaration.push_str("};\n");
            self.written.insert(record.name, declaration);
        }
        record.name.to_owned()
    }

    fn shape(&mut self, shape: &'static Shape) -> String {
        match shape {
            Shape::Text => "string".to_owned(),
            Shape::Pattern(pattern) => pattern.typescript.to_owned(),
            Shape::Version => "SchemaVersion".to_owned(),
            Shape::Integer => "number".to_owned(),
            Shape::Flag => "boolean".to_owned(),
            Shape::Json => "CompositionJsonValue".to_owned(),
            Shape::JsonObject => "CompositionJsonObject".to_owned(),
            Shape::Literal(text) => format!("'{text}'"),
            Shape::Word(list) => self.words(list),
            Shape::Handle(kind) => format!("RenderHandle<'{}'>", kind.as_str()),
            Shape::Record(record) | Shape::Apart(record) => self.record(record),
            Shape::List(item) => format!("readonly {}[]", grouped(self.shape(item))),
            Shape::Union(choice) => {
                let records: Vec<String> = choice.records.iter().map(|record| self.record(record)).collect();
                let declaration = format!("export type {} =\n  | {};\n", choice.name, records.join("\n  | "));
                self.written.entry(choice.name).or_insert(declaration);
                choice.name.to_owned()
            }
            Shape::Nullable(inner) => format!("{} | null", self.shape(inner)),
        }
    }
}

/// A type that may be followed by `[]`.
fn grouped(text: String) -> String {
    if text.contains(' ') { format!("({text})") } else { text }
}

fn quoted(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| format!("'{word}'")).collect()
}

fn union(words: &[&str]) -> String {
    quoted(words).join(" | ")
}
