//! Bar charts: latency and bytes per tool, and the budget of a query.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::html::escaped;

/// How many tools a chart shows.
const MAX_BARS: usize = 12;

const ROW: usize = 26;
const LABEL: usize = 210;
const WIDTH: usize = 640;
const VALUE: usize = 90;

/// The calls of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolStats {
    pub(crate) tool: String,
    pub(crate) calls: u64,
    /// Half of the calls took at most this long.
    pub(crate) median_us: u64,
    /// 95 of 100 calls took at most this long.
    pub(crate) p95_us: u64,
    pub(crate) bytes: u64,
}

/// Medians as bars, with a mark at the 95th percentile.
pub(crate) fn latency_chart(tools: &[ToolStats]) -> String {
    let most = tools.iter().map(|tool| tool.p95_us).max().unwrap_or(1);
    chart("Latency per tool: median, and a mark at 95 %", tools, |tool| Bar {
        share: ratio(tool.median_us, most),
        mark: Some(ratio(tool.p95_us, most)),
        value: format!("{:.1} ms", tool.median_us as f64 / 1_000.0),
    })
}

/// All bytes of answers as bars.
pub(crate) fn bytes_chart(tools: &[ToolStats]) -> String {
    let most = tools.iter().map(|tool| tool.bytes).max().unwrap_or(1);
    chart("Bytes of answers per tool", tools, |tool| Bar {
        share: ratio(tool.bytes, most),
        mark: None,
        value: format!("{:.1} KiB", tool.bytes as f64 / 1024.0),
    })
}

struct Bar {
    share: f64,
    mark: Option<f64>,
    value: String,
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn chart(title: &str, tools: &[ToolStats], bar: impl Fn(&ToolStats) -> Bar) -> String {
    let shown = &tools[..tools.len().min(MAX_BARS)];
    let height = shown.len() * ROW + 4;
    let room = (WIDTH - LABEL - VALUE) as f64;
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    );
    for (index, tool) in shown.iter().enumerate() {
        let Bar { share, mark, value } = bar(tool);
        let top = index * ROW;
        let width = (room * share).max(2.0);
        let (middle, bar_top) = (top + 17, top + 6);
        let _ = write!(
            out,
            "<text class=\"bar-label\" x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>\
             <rect class=\"bar\" x=\"{LABEL}\" y=\"{bar_top}\" width=\"{width:.1}\" height=\"14\" rx=\"3\"/>\
             <text class=\"bar-value\" x=\"{:.1}\" y=\"{middle}\">{}</text>",
            LABEL - 10,
            escaped(&short(&tool.tool)),
            LABEL as f64 + (room * mark.unwrap_or(share)).max(width) + 8.0,
            escaped(&value),
        );
        if let Some(mark) = mark {
            let x = LABEL as f64 + room * mark;
            let _ = write!(
                out,
                "<line class=\"bar-mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>",
                top + 4,
                top + 22
            );
        }
    }
    out.push_str("</svg>");
    out
}

fn short(name: &str) -> String {
    match name.char_indices().nth(28) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// How a query used its budget: one part per document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BudgetBar {
    pub(crate) budget: u64,
    pub(crate) parts: Vec<u64>,
}

pub(crate) fn budget_bar(bar: &BudgetBar) -> String {
    let used: u64 = bar.parts.iter().sum();
    let label = format!("{used} of {} tokens used", bar.budget);
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} 20\" role=\"img\" aria-label=\"{label}\">\
         <rect class=\"bar-room\" x=\"0\" y=\"2\" width=\"{WIDTH}\" height=\"16\" rx=\"4\"/>"
    );
    let scale = WIDTH as f64 / bar.budget.max(used).max(1) as f64;
    let mut x = 0.0;
    for (index, part) in bar.parts.iter().enumerate() {
        let width = *part as f64 * scale;
        let _ = write!(
            out,
            "<rect class=\"bar part-{}\" x=\"{x:.1}\" y=\"2\" width=\"{:.1}\" height=\"16\"/>",
            index % 4,
            (width - 1.0).max(0.5)
        );
        x += width;
    }
    out.push_str("</svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(tool: &str, bytes: u64) -> ToolStats {
        ToolStats { tool: tool.to_owned(), calls: 1, median_us: 10, p95_us: 20, bytes }
    }

    #[test]
    fn names_are_escaped_and_bars_are_bounded() {
        let tools: Vec<ToolStats> = (0..100).map(|number| stats("<script>", number)).collect();
        let svg = bytes_chart(&tools);
        assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;"));
        assert_eq!(svg.matches("class=\"bar\"").count(), MAX_BARS);
    }

    #[test]
    fn nothing_and_zero_draw_an_empty_picture() {
        assert!(latency_chart(&[]).starts_with("<svg"));
        assert!(!bytes_chart(&[stats("a", 0)]).contains("NaN"));
        assert!(!budget_bar(&BudgetBar { budget: 0, parts: vec![] }).contains("NaN"));
    }
}
