//! The reference part of `docs/configuration.md`, generated from the list of keys.

use std::fmt::Write;

use super::env::VARIABLES;
use super::key::{DefaultValue, KEYS, SettingScope, ValueKind};

/// The marks before and after the generated part of the page.
const BEGIN: &str = "<!-- reference: begin (cargo xtask schemas) -->\n";
const END: &str = "<!-- reference: end -->\n";

/// The generated part: one section per table of settings, then the variables that are not settings.
fn markdown() -> String {
    let mut page = String::new();
    let mut section = "";
    for key in KEYS {
        let (table, name) = key.split();
        if table != section {
            section = table;
            let _ = write!(page, "\n### `[{}]`\n\n", table.replace('*', "<id>"));
        }
        let _ = write!(page, "- **`{name}`** ({}", kind(key.kind));
        match key.default {
            DefaultValue::Absent => {}
            DefaultValue::Flag(flag) => {
                let _ = write!(page, ", default `{flag}`");
            }
            DefaultValue::Number(number) => {
                let _ = write!(page, ", default `{number}`");
            }
            DefaultValue::Text(text) => {
                let _ = write!(page, ", default `\"{text}\"`");
            }
            DefaultValue::Texts(texts) => {
                let _ = write!(page, ", default `{texts:?}`");
            }
        }
        let _ = write!(page, "). {}", key.doc);
        match key.scope {
            SettingScope::Anyone => page.push_str(" Takes effect in an untrusted workspace."),
            SettingScope::Trusted => {}
            SettingScope::User => page.push_str(" Only in the user's own configuration."),
        }
        if let [first, others @ ..] = key.variables {
            let _ = write!(page, " Variable: `{first}`");
            for other in others {
                let _ = write!(page, " or `{other}`");
            }
            page.push('.');
        }
        page.push('\n');
    }
    page.push_str("\n### Variables that are not settings\n\n");
    for (name, doc) in VARIABLES {
        let _ = writeln!(page, "- **`{name}`**. {doc}");
    }
    page.push('\n');
    page
}

/// `page` with a new generated part; `None` if the page has no marks.
fn refresh(page: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", markdown()))
}

fn kind(kind: ValueKind) -> String {
    match kind {
        ValueKind::Flag => "`true` or `false`".to_owned(),
        ValueKind::Number { min, max } => format!("number from {min} to {max}"),
        ValueKind::Limit { max, .. } => format!("number, at most {max}"),
        ValueKind::Duration { .. } => "duration".to_owned(),
        ValueKind::Text => "string".to_owned(),
        ValueKind::Choice(choices) => format!("`\"{}\"`", choices.join("\"` or `\"")),
        ValueKind::Texts => "list of strings".to_owned(),
        ValueKind::Choices(choices) => format!("list of `\"{}\"`", choices.join("\"`, `\"")),
        ValueKind::Globs => "list of patterns".to_owned(),
        ValueKind::Path => "path".to_owned(),
        ValueKind::Store => "path or URL".to_owned(),
        ValueKind::Workspace => "name".to_owned(),
        ValueKind::Paths => "list of paths".to_owned(),
        ValueKind::TextMap => "table of strings".to_owned(),
        ValueKind::Object => "table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_reference_is_current() {
        let page = include_str!("../../../../docs/configuration.md");
        tenon_testkit::generated::check(
            "docs/configuration.md",
            &refresh(page).expect("the page has both marks"),
        );
    }
}
