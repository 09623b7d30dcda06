//! The templates of the console and how values get into them.
//!
//! Every value is escaped, and its control and bidirectional characters are made visible. Only functions of this crate
//! make HTML from values ([`crate::svg`] and `source`), from parts that they escape themselves.

use std::fmt::Write;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, HtmlEscape, Value};
use serde::Deserialize;
use tenon_contract::visible::visible;

use crate::form;
use crate::svg;

macro_rules! templates {
    ($($name:literal)*) => {
        const TEMPLATES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../templates/", $name)))),*];
    };
}

templates! {
    "layout.html" "parts.html" "message.html" "call.html" "call_code.html" "note.html"
    "overview.html" "problems.html" "code.html" "tasks.html" "task.html" "memory.html" "context.html" "activity.html"
    "workspace.html" "connect.html"
}

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the default delimiters differ"));
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(()),
        ValueKind::Number | ValueKind::Bool => minijinja::escape_formatter(out, state, value),
        _ if value.is_safe() => minijinja::escape_formatter(out, state, value),
        _ => write!(out, "{}", escaped(&value.to_string())).map_err(minijinja::Error::from),
    });
    environment.add_filter("query", |value: &str| form::encoded(value));
    environment.add_filter("ms", |micros: u64| milliseconds(micros));
    environment.add_filter("bytes", |bytes: u64| size(bytes));
    environment.add_filter("ago", |seconds: i64| ago(seconds));
    environment.add_filter("count", |number: u64| grouped(number));
    environment
        .add_function("slot", |number: usize| Value::from_safe_string(format!("<!--slot {number}-->")));
    environment.add_function("source", |lines: Serde<Vec<SourceLine>>| source(&lines.0));
    environment.add_function("latency_chart", |tools: Serde<Vec<svg::ToolStats>>| {
        Value::from_safe_string(svg::latency_chart(&tools.0))
    });
    environment.add_function("bytes_chart", |tools: Serde<Vec<svg::ToolStats>>| {
        Value::from_safe_string(svg::bytes_chart(&tools.0))
    });
    environment.add_function("budget_bar", |bar: Serde<svg::BudgetBar>| {
        Value::from_safe_string(svg::budget_bar(&bar.0))
    });
    environment.add_function("graph_picture", |graph: Serde<svg::Graph>| {
        Value::from_safe_string(svg::graph(&graph.0))
    });
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("a test renders every template");
    }
    environment
});

/// Renders a template of the console.
pub(crate) fn render(template: &str, props: &serde_json::Value) -> Result<String, minijinja::Error> {
    ENVIRONMENT.get_template(template)?.render(Serde(props))
}

/// Renders the layout around what the render runtime has drawn.
pub(crate) fn render_layout(
    props: &serde_json::Value,
    drawn: DrawnParts,
) -> Result<String, minijinja::Error> {
    let DrawnParts { surface, notices } = drawn;
    let (surface, notices) = (Value::from_safe_string(surface), Value::from_safe_string(notices));
    let template = ENVIRONMENT.get_template("layout.html")?;
    template.render(minijinja::context! { surface, notices, ..Value::from(Serde(props)) })
}

/// Parts of a page that the render runtime has drawn.
#[derive(Debug, Default)]
pub(crate) struct DrawnParts {
    pub(crate) surface: String,
    pub(crate) notices: String,
}

/// Text as HTML: escaped, with control characters visible. Line breaks stay.
pub(crate) fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| HtmlEscape(&visible(line)).to_string()).collect();
    lines.join("\n")
}

/// Drawn HTML of a module, with control characters visible.
pub(crate) fn visible_html(html: &str) -> String {
    let line = |line: &str| {
        let mut shown = String::with_capacity(line.len());
        for one in line.chars() {
            let mut buffer = [0; 4];
            let one: &str = one.encode_utf8(&mut buffer);
            match visible(one) {
                std::borrow::Cow::Borrowed(same) => shown.push_str(same),
                std::borrow::Cow::Owned(made) => {
                    let _ = write!(shown, "{}", HtmlEscape(&made));
                }
            }
        }
        shown
    };
    html.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// All strings of a value with control characters visible, for templates of modules.
pub(crate) fn visible_value(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            let shown: Vec<_> = text.split('\n').map(|line| visible(line).into_owned()).collect();
            *text = shown.join("\n");
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(visible_value),
        serde_json::Value::Object(members) => members.values_mut().for_each(visible_value),
        _ => {}
    }
}

/// A line of highlighted source.
#[derive(Debug, Deserialize)]
struct SourceLine {
    number: u32,
    /// The kind of mark, for example `error`; empty for none.
    #[serde(default)]
    mark: String,
    spans: Vec<SourceSpan>,
}

#[derive(Debug, Deserialize)]
struct SourceSpan {
    text: String,
    kind: String,
    /// The address that the name leads to.
    #[serde(default)]
    link: Option<String>,
}

/// Source as a list of lines: numbers are links, kinds are classes.
fn source(lines: &[SourceLine]) -> Value {
    let mut out = String::from("<pre class=\"source\" tabindex=\"0\">");
    for line in lines {
        let mark = match line.mark.is_empty() {
            true => String::new(),
            false => format!(" mark-{}", HtmlEscape(&line.mark)),
        };
        let number = line.number;
        let _ = write!(out, "<span class=\"line{mark}\" id=\"L{number}\"><span class=\"nr\">{number}</span>");
        for span in &line.spans {
            let text = escaped(&span.text);
            let class = HtmlEscape(&span.kind).to_string();
            let _ = match &span.link {
                Some(link) => write!(out, "<a class=\"t-{class}\" href=\"{}\">{text}</a>", HtmlEscape(link)),
                None if span.kind == "plain" => write!(out, "{text}"),
                None => write!(out, "<span class=\"t-{class}\">{text}</span>"),
            };
        }
        out.push_str("\n</span>");
    }
    out.push_str("</pre>");
    Value::from_safe_string(out)
}

fn milliseconds(micros: u64) -> String {
    match micros {
        0..=999 => format!("{micros} µs"),
        1_000..=9_999 => format!("{:.1} ms", micros as f64 / 1_000.0),
        10_000..=999_999 => format!("{} ms", micros / 1_000),
        _ => format!("{:.1} s", micros as f64 / 1_000_000.0),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn ago(seconds: i64) -> String {
    match seconds {
        ..=1 => "now".to_owned(),
        2..=119 => format!("{seconds} s ago"),
        120..=7_199 => format!("{} min ago", seconds / 60),
        7_200..=172_799 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// `12,345`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_controls_are_visible() {
        assert_eq!(escaped("<b>\u{202e}x\u{1b}[0m\nnext"), "&lt;b&gt;&lt;U+202E&gt;x␛[0m\nnext");
        assert_eq!(visible_html("<b>\u{202e}</b>"), "<b>&lt;U+202E&gt;</b>");
        let lines = serde_json::json!([{"number": 1, "spans": [{"text": "<i>\u{7}", "kind": "string"}]}]);
        let lines: Vec<SourceLine> = serde_json::from_value(lines).expect("the shape fits");
        assert!(source(&lines).to_string().contains("&lt;i&gt;␇"));
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!((milliseconds(412), milliseconds(8_240), milliseconds(2_500_000)).2, "2.5 s");
        assert_eq!((grouped(7), grouped(1_234_567)), ("7".to_owned(), "1,234,567".to_owned()));
        assert_eq!(
            (ago(0), ago(30), ago(600)),
            ("now".to_owned(), "30 s ago".to_owned(), "10 min ago".to_owned())
        );
    }
}
