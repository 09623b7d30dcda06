//! A bar chart as SVG, readable on light and dark pages.

use std::fmt::Write as _;

/// Bars of one measurement, one per subject.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) bars: Vec<Bar>,
}

/// A value and how it is written. Without a length there is only the label.
pub(super) struct Bar {
    pub(super) length: Option<f64>,
    pub(super) label: String,
}

impl Bar {
    /// The subject does not do this, or was not asked.
    pub(super) fn absent() -> Self {
        Self { length: None, label: "–".to_owned() }
    }
}

const BAR: usize = 13;
const TITLE: usize = 20;
const LABELS: usize = 110;
const WIDTH: usize = 640;
/// Blue, orange, green and grey with enough contrast on white and on black.
const COLOURS: [&str; 4] = ["#2f7fd6", "#d9822b", "#3d9c57", "#8a8f98"];

/// Draws groups of bars. Lengths are logarithmic within a group: the values differ by orders of magnitude.
pub(super) fn svg(heading: &str, subjects: &[&str], groups: &[Group]) -> String {
    let height =
        30 + groups.len() * (TITLE + 8) + groups.iter().map(|group| group.bars.len() * BAR).sum::<usize>();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>{heading}</title>\n\
         <style>text {{ font: 11px sans-serif; fill: #24292f }} .h {{ font-weight: bold }} \
         @media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} }}</style>\n\
         <text class=\"h\" x=\"4\" y=\"16\">{heading}</text>\n"
    );
    let mut y = 30;
    for group in groups {
        // Writing to a string does not fail.
        let _ = writeln!(svg, "<text class=\"h\" x=\"4\" y=\"{}\">{}</text>", y + 13, group.title);
        y += TITLE;
        let values =
            || group.bars.iter().filter_map(|bar| bar.length).map(|value| value.max(f64::MIN_POSITIVE));
        let most = values().fold(0.0, f64::max);
        let least = values().fold(most, f64::min) / 2.0;
        for (index, bar) in group.bars.iter().enumerate() {
            let subject = subjects.get(index).copied().unwrap_or_default();
            let colour = COLOURS[index % COLOURS.len()];
            let base = y + 10;
            let _ = writeln!(svg, "<text x=\"16\" y=\"{base}\">{subject}</text>");
            let length = bar.length.map_or(0.0, |value| share(value, least, most) * 380.0);
            let label = &bar.label;
            let _ = writeln!(
                svg,
                "<rect x=\"{LABELS}\" y=\"{}\" width=\"{length:.0}\" height=\"{}\" rx=\"2\" fill=\"{colour}\"/>\
                 <text x=\"{:.0}\" y=\"{base}\">{label}</text>",
                y + 1,
                BAR - 3,
                LABELS as f64 + length + 6.0
            );
            y += BAR;
        }
        y += 8;
    }
    svg.push_str("</svg>\n");
    svg
}

/// Where a value is between `least` and `most`, from 0 to 1, on a logarithmic scale.
fn share(value: f64, least: f64, most: f64) -> f64 {
    let range = (most / least).ln();
    if range > 0.0 && value > 0.0 { ((value / least).ln() / range).clamp(0.0, 1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_value_gets_longest_bar_and_missing_one_a_dash() {
        let bar = |length: f64| Bar { length: Some(length), label: format!("{length} ms") };
        let bars = vec![bar(1.0), bar(100.0), Bar::absent()];
        let drawn = svg("times", &["a", "b", "c"], &[Group { title: "first".to_owned(), bars }]);
        assert!(drawn.contains("width=\"380\"") && drawn.contains(">–<"), "{drawn}");
        assert!(share(1.0, 0.5, 100.0) < share(100.0, 0.5, 100.0));
    }
}
