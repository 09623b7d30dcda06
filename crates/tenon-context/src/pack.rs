//! One bounded bundle for an agent: items in order of importance, each with its reason, and a table of what was left out.
//!
//! The same items, budget and format give the same bytes. The budget holds for the whole text, the table included: an
//! item that does not fit is shown in its short form, then left out; a table that does not fit becomes a count.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::find::Tokenizer;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackPart {
    Task,
    Notes,
    Symbols,
    Users,
    Passages,
    Problems,
}

impl PackPart {
    pub const ALL: [Self; 6] =
        [Self::Task, Self::Notes, Self::Symbols, Self::Users, Self::Passages, Self::Problems];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Notes => "notes",
            Self::Symbols => "symbols",
            Self::Users => "users",
            Self::Passages => "passages",
            Self::Problems => "problems",
        }
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.as_str() == name)
    }
}

/// How a pack is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackFormat {
    #[default]
    Markdown,
    Xml,
    Json,
}

/// What to pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackRequest {
    /// The id of a task; by default the focused one.
    #[serde(default)]
    pub task: Option<String>,
    #[serde(default)]
    pub query: Option<String>,
    /// The most tokens of the whole text.
    pub budget: usize,
    /// All parts if empty.
    #[serde(default)]
    pub include: Vec<PackPart>,
    #[serde(default)]
    pub format: PackFormat,
    #[serde(default)]
    pub tokenizer: Tokenizer,
}

impl PackRequest {
    /// Whether a part is wanted.
    #[must_use]
    pub fn includes(&self, part: PackPart) -> bool {
        self.include.is_empty() || self.include.contains(&part)
    }
}

/// Something that a pack may contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackItem {
    pub part: PackPart,
    pub title: String,
    /// Why it is in the pack.
    pub reason: String,
    pub text: String,
    /// A shorter form, for small budgets.
    pub short: Option<String>,
}

/// How an item is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Whole,
    Short,
    LeftOut,
}

/// How left out items are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    Table,
    Count,
    Nothing,
}

/// Writes the items that fit. Empty if the budget is too small for anything.
#[must_use]
pub fn pack(items: &[PackItem], notes: &[String], request: &PackRequest) -> String {
    let Layout { mut shown, mut left_out } = layout(items, notes, request);
    loop {
        let text = render(items, &shown, notes, left_out, request.format);
        if request.tokenizer.count(&text) <= request.budget {
            return text;
        }
        // The sum of parts was too small: the least important item gives way.
        let last = shown.iter().rposition(|shown| *shown != Shown::LeftOut);
        match (last, left_out) {
            (Some(last), _) => shown[last] = smaller(&items[last], shown[last]),
            (None, LeftOut::Table) => left_out = LeftOut::Count,
            (None, LeftOut::Count) => left_out = LeftOut::Nothing,
            (None, LeftOut::Nothing) => return String::new(),
        }
    }
}

struct Layout {
    shown: Vec<Shown>,
    left_out: LeftOut,
}

/// A first choice, from the sizes of the parts.
fn layout(items: &[PackItem], notes: &[String], request: &PackRequest) -> Layout {
    let count = |text: &str| request.tokenizer.count(text);
    let row = |item: &PackItem| count(&table_row(item, request.format)) + 1;
    let none = vec![Shown::LeftOut; items.len()];
    let frame = count(&render(items, &none, notes, LeftOut::Count, request.format));
    let rows: usize = items.iter().map(row).sum();
    // A table that takes more than a quarter of the budget is not worth it.
    let left_out = if frame + rows <= request.budget / 4 { LeftOut::Table } else { LeftOut::Count };
    let mut used = frame + if left_out == LeftOut::Table { rows } else { 0 };
    let mut shown = Vec::new();
    for item in items {
        let mut choice = Shown::LeftOut;
        for (form, text) in [(Shown::Whole, Some(&item.text)), (Shown::Short, item.short.as_ref())] {
            let Some(text) = text else { continue };
            let cost = count(&item_text(item, text, request.format)) + 1;
            let saved = if left_out == LeftOut::Table { row(item) } else { 0 };
            if used + cost <= request.budget + saved {
                used = used + cost - saved;
                choice = form;
                break;
            }
        }
        shown.push(choice);
    }
    Layout { shown, left_out }
}

fn smaller(item: &PackItem, shown: Shown) -> Shown {
    let is_shorter = item.short.as_ref().is_some_and(|short| short.len() < item.text.len());
    if shown == Shown::Whole && is_shorter { Shown::Short } else { Shown::LeftOut }
}

fn render(
    items: &[PackItem],
    shown: &[Shown],
    notes: &[String],
    left_out: LeftOut,
    format: PackFormat,
) -> String {
    let texts = items.iter().zip(shown).filter_map(|(item, shown)| match shown {
        Shown::Whole => Some(item_text(item, &item.text, format)),
        Shown::Short => Some(item_text(item, item.short.as_deref().unwrap_or_default(), format)),
        Shown::LeftOut => None,
    });
    let texts: Vec<String> = texts.collect();
    let out: Vec<&PackItem> = items
        .iter()
        .zip(shown)
        .filter(|(_, shown)| **shown == Shown::LeftOut)
        .map(|(item, _)| item)
        .collect();
    match format {
        PackFormat::Markdown => markdown(&texts, &out, notes, left_out),
        PackFormat::Xml => xml(&texts, &out, notes, left_out),
        PackFormat::Json => json(&texts, &out, notes, left_out),
    }
}

fn item_text(item: &PackItem, text: &str, format: PackFormat) -> String {
    match format {
        PackFormat::Markdown => {
            let text = text.trim_end();
            let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
            let title = one_line(&item.title);
            format!(
                "## {}: {title}\n\n{}\n\n{fence}\n{text}\n{fence}\n",
                item.part.as_str(),
                one_line(&item.reason)
            )
        }
        PackFormat::Xml => format!(
            "<item part=\"{}\" title=\"{}\" reason=\"{}\">{}</item>\n",
            item.part.as_str(),
            escaped(&item.title),
            escaped(&item.reason),
            escaped(text)
        ),
        PackFormat::Json => {
            let (title, reason) = (item.title.as_str(), item.reason.as_str());
            to_json(&JsonItem { part: item.part, title, reason, text })
        }
    }
}

fn table_row(item: &PackItem, format: PackFormat) -> String {
    match format {
        PackFormat::Markdown => {
            format!("| {} | {} |\n", item.part.as_str(), one_line(&item.title).replace('|', "\\|"))
        }
        PackFormat::Xml => {
            format!("<left_out part=\"{}\" title=\"{}\"/>\n", item.part.as_str(), escaped(&item.title))
        }
        PackFormat::Json => to_json(&JsonLeftOut { part: item.part, title: &item.title }),
    }
}

fn markdown(texts: &[String], out: &[&PackItem], notes: &[String], left_out: LeftOut) -> String {
    let mut pack = String::from("# Context\n");
    for text in texts {
        let _ = write!(pack, "\n{text}");
    }
    match left_out {
        LeftOut::Table if !out.is_empty() => {
            let _ = write!(pack, "\n## Left out\n\n| part | title |\n|---|---|\n");
            pack.extend(out.iter().map(|item| table_row(item, PackFormat::Markdown)));
        }
        LeftOut::Count if !out.is_empty() => {
            let _ = writeln!(pack, "\n{} items left out", out.len());
        }
        _ => {}
    }
    for note in notes {
        let _ = writeln!(pack, "\nnote: {}", one_line(note));
    }
    pack
}

fn xml(texts: &[String], out: &[&PackItem], notes: &[String], left_out: LeftOut) -> String {
    let mut pack = String::from("<context>\n");
    pack.extend(texts.iter().map(String::as_str));
    match left_out {
        LeftOut::Table => pack.extend(out.iter().map(|item| table_row(item, PackFormat::Xml))),
        LeftOut::Count if !out.is_empty() => {
            let _ = writeln!(pack, "<left_out count=\"{}\"/>", out.len());
        }
        _ => {}
    }
    for note in notes {
        let _ = writeln!(pack, "<note>{}</note>", escaped(note));
    }
    pack.push_str("</context>\n");
    pack
}

fn json(texts: &[String], out: &[&PackItem], notes: &[String], left_out: LeftOut) -> String {
    let mut pack = String::from("{\"items\":[");
    pack.push_str(&texts.join(","));
    pack.push(']');
    match left_out {
        LeftOut::Table => {
            let rows: Vec<String> = out.iter().map(|item| table_row(item, PackFormat::Json)).collect();
            let _ = write!(pack, ",\"left_out\":[{}]", rows.join(","));
        }
        LeftOut::Count => {
            let _ = write!(pack, ",\"left_out_count\":{}", out.len());
        }
        LeftOut::Nothing => {}
    }
    let _ = writeln!(pack, ",\"notes\":{}}}", to_json(&notes));
    pack
}

#[derive(Serialize)]
struct JsonItem<'a> {
    part: PackPart,
    title: &'a str,
    reason: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct JsonLeftOut<'a> {
    part: PackPart,
    title: &'a str,
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings are JSON")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn longest_run(text: &str, mark: char) -> usize {
    text.split(|c| c != mark).map(str::len).max().unwrap_or(0)
}

/// Text for XML 1.0, which does not allow all characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(part: PackPart, title: &str, text: &str, short: Option<&str>) -> PackItem {
        let reason = format!("because of {title}");
        PackItem { part, title: title.into(), reason, text: text.into(), short: short.map(Into::into) }
    }

    fn request(budget: usize, format: PackFormat) -> PackRequest {
        let tokenizer = Tokenizer::O200kBase;
        PackRequest { task: None, query: None, budget, include: Vec::new(), format, tokenizer }
    }

    #[test]
    fn items_that_do_not_fit_are_shortened_then_listed() {
        let long = "def slugify(value):\n    return value\n".repeat(40);
        let items = [
            item(PackPart::Task, "TASK-1 Fix slugs", "Fix `slugify`.", None),
            item(PackPart::Symbols, "slugify", &long, Some("def slugify(value)")),
            item(PackPart::Passages, "docs/a.md", &long, None),
        ];
        let text = pack(&items, &[], &request(200, PackFormat::Markdown));
        assert_eq!(
            text,
            "# Context\n\n## task: TASK-1 Fix slugs\n\nbecause of TASK-1 Fix slugs\n\n```\nFix `slugify`.\n```\n\n\
             ## symbols: slugify\n\nbecause of slugify\n\n```\ndef slugify(value)\n```\n\n\
             ## Left out\n\n| part | title |\n|---|---|\n| passages | docs/a.md |\n"
        );
        assert_eq!(pack(&items, &[], &request(1, PackFormat::Markdown)), "");
    }

    proptest! {
        #[test]
        fn budget_holds_to_the_token(
            texts in proptest::collection::vec(("[a-z|<`é ]{0,20}", "[a-zA-Z_`<&\n\u{4e00}-\u{4eff}]{0,300}", any::<bool>()), 0..12),
            budget in 1_usize..600,
            tokenizer in prop::sample::select(Tokenizer::ALL.to_vec()),
            format in prop::sample::select(vec![PackFormat::Markdown, PackFormat::Xml, PackFormat::Json]),
        ) {
            let items: Vec<PackItem> = texts
                .iter()
                .map(|(title, text, short)| item(PackPart::Notes, title, text, short.then_some("short")))
                .collect();
            let request = PackRequest { tokenizer, ..request(budget, format) };
            let text = pack(&items, &["a note".to_owned()], &request);
            prop_assert!(tokenizer.count(&text) <= budget);
            prop_assert_eq!(&text, &pack(&items, &["a note".to_owned()], &request));
            if format == PackFormat::Json && !text.is_empty() {
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                prop_assert!(value["items"].as_array().unwrap().len() <= items.len());
            }
        }
    }
}
