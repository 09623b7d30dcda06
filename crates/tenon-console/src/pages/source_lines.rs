//! Highlighted source for templates: lines with marks, names with links.

use serde_json::{Value, json};
use tenon_code::explore::{IndexReader, highlighted};
use tenon_server::web::PREFIX;

use crate::form::encoded;

/// The lines `first..=last` of a text, counted from 1. Declared names lead to the Code page if an index is given.
pub(super) fn lines(
    path: &str,
    text: &str,
    (first, last): (usize, usize),
    mark: &dyn Fn(usize) -> &'static str,
    index: Option<&IndexReader>,
) -> Value {
    let shown = highlighted(path, text).into_iter().enumerate().skip(first.saturating_sub(1));
    let lines = shown.take_while(|(at, _)| at < &last).map(|(at, spans)| {
        let spans: Vec<Value> = spans
            .into_iter()
            .map(|span| {
                let is_link = span.is_name && index.is_some_and(|index| index.declares(&span.text));
                let link = is_link.then(|| format!("{PREFIX}/code?q={}", encoded(&span.text)));
                json!({"text": span.text, "kind": span.kind, "link": link})
            })
            .collect();
        json!({"number": at + 1, "mark": mark(at + 1), "spans": spans})
    });
    lines.collect()
}
