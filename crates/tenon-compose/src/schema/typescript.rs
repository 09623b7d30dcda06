//! The TypeScript declarations.

use std::fmt::Write as _;

use indexmap::IndexMap;

use crate::contract_types::{self, EnumType, FieldType, ObjectType};
use crate::pipeline::versions::SUPPORTED;

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
    types.words(&contract_types::HANDLE_KINDS);
    types.words(&contract_types::output::CONTRIBUTION_KINDS);
    for object_type in [
        &contract_types::INPUT,
        &contract_types::MODULE_DECLARATION,
        &contract_types::output::OUTCOME,
        &contract_types::output::PROVIDER_SUMMARY,
        &contract_types::output::PACK,
    ] {
        types.object_type(object_type);
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
    fn words(&mut self, list: &'static EnumType) -> String {
        let declaration =
            format!("export type {} =\n  | {};\n", list.name, quoted(list.values).join("\n  | "));
        self.written.entry(list.name).or_insert(declaration);
        list.name.to_owned()
    }

    fn object_type(&mut self, object_type: &'static ObjectType) -> String {
        if !self.written.contains_key(object_type.name) {
            let mut declaration = format!("export type {} = {{\n", object_type.name);
            for field in object_type.fields() {
                let mark = if field.required { "" } else { "?" };
                let field_type = self.field_type(&field.field_type);
                let _ = writeln!(declaration, "  {}{mark}: {field_type};", field.name);
            }
            declaration.push_str("};\n");
            self.written.insert(object_type.name, declaration);
        }
        object_type.name.to_owned()
    }

    fn field_type(&mut self, field_type: &'static FieldType) -> String {
        match field_type {
            FieldType::String => "string".to_owned(),
            FieldType::Pattern(pattern) => pattern.typescript.to_owned(),
            FieldType::Version => "SchemaVersion".to_owned(),
            FieldType::Integer => "number".to_owned(),
            FieldType::Boolean => "boolean".to_owned(),
            FieldType::AnyJson => "CompositionJsonValue".to_owned(),
            FieldType::AnyObject => "CompositionJsonObject".to_owned(),
            FieldType::Literal(text) => format!("'{text}'"),
            FieldType::Enum(list) => self.words(list),
            FieldType::Handle(kind) => format!("RenderHandle<'{}'>", kind.as_str()),
            FieldType::Object(object_type) | FieldType::CheckedSeparately(object_type) => {
                self.object_type(object_type)
            }
            FieldType::Array(item) => format!("readonly {}[]", grouped(self.field_type(item))),
            FieldType::Union(choice) => {
                let variants: Vec<String> =
                    choice.variants.iter().map(|object_type| self.object_type(object_type)).collect();
                let declaration =
                    format!("export type {} =\n  | {};\n", choice.name, variants.join("\n  | "));
                self.written.entry(choice.name).or_insert(declaration);
                choice.name.to_owned()
            }
            FieldType::Nullable(inner) => format!("{} | null", self.field_type(inner)),
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
