//! `vscode.lsp.hover` (§7.3): the hover at a position.
//!
//! Texts are sorted by kind and value, then cut in this order: to 8 fragments, to 8,192 code points each, and finally the last
//! fragments to the size of the response.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenon_contract::budget::{cut_bytes, cut_characters};
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_contract::position::{Position, Range};
use tenon_lsp::CallContext;
use tenon_lsp::model::{self, Markup};

use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Consistency, Question};
use crate::completeness::{RequiredServers, require_complete};
use crate::error::CodeError;
use crate::in_flight_cache::ByteSized;
use crate::summary::Caveats;

const FRAGMENTS: usize = 8;
const CODE_POINTS: usize = 8_192;

/// The arguments of `vscode.lsp.hover`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hover {
    pub uri: String,
    pub position: Position,
}

impl Hover {
    pub const TOOL: &'static str = "vscode.lsp.hover";
}

impl CodeTools {
    pub async fn hover(&self, input: Hover, call: &CallContext) -> Result<CodeReply, CodeError> {
        let Hover { uri, position } = input;
        let path = self.admit(uri).await?;
        let request = RequestKey::new(Hover::TOOL, &[path.uri(), &position.line, &position.character]);
        let question = Question {
            request,
            epochs: EpochSet::CODE,
            path: Some(path.clone()),
            consistency: Consistency::Unchanged,
        };
        self.reply(question, call, move |state, call| {
            let path = path.clone();
            async move {
                let answer = state.engine.hover(&path, position, &call).await?;
                let notes = answer.notes.clone();
                let found = require_complete(answer, RequiredServers::AtLeastOne)?;
                let caveats = Caveats::of(&found, notes);
                let card = CanonicalHover::new(found.value, caveats, state.listing);
                card.within(state.limits.payload_bytes())
            }
        })
        .await
    }
}

/// A text with its format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Fragment {
    kind: &'static str,
    value: String,
}

/// A hover in canonical form.
#[derive(Debug, Clone)]
struct CanonicalHover {
    contents: Vec<Fragment>,
    range: Option<Range>,
    truncated: bool,
    caveats: Caveats,
    listing: bool,
}

impl CanonicalHover {
    fn new(hover: Option<model::HoverInfo>, caveats: Caveats, listing: bool) -> Self {
        let (parts, range) = hover.map_or((Vec::new(), None), |hover| (hover.parts, hover.range));
        let mut contents: Vec<Fragment> =
            parts.into_iter().map(|part| Fragment { kind: kind(part.markup), value: part.value }).collect();
        contents.sort();
        contents.dedup();
        let mut truncated = contents.len() > FRAGMENTS;
        contents.truncate(FRAGMENTS);
        for fragment in &mut contents {
            let kept = cut_characters(&fragment.value, CODE_POINTS).len();
            truncated |= kept < fragment.value.len();
            fragment.value.truncate(kept);
        }
        Self { contents, range, truncated, caveats, listing }
    }

    /// The longest reply of at most `limit` bytes.
    fn within(mut self, limit: usize) -> Result<CodeReply, CodeError> {
        while self.reply().bytes() > limit {
            self.truncated = true;
            let Some(last) = self.contents.pop() else { break };
            let (mut fits, mut too_long) = (0, last.value.len());
            while too_long - fits > 1 {
                let middle = fits + (too_long - fits) / 2;
                if self.with(&last, middle).reply().bytes() <= limit {
                    fits = middle;
                } else {
                    too_long = middle;
                }
            }
            let shortened = self.with(&last, fits);
            if !shortened.contents.last().is_some_and(|last| last.value.is_empty()) {
                self = shortened;
            }
        }
        self.reply().within(limit)
    }

    /// This hover with the beginning of one more fragment.
    fn with(&self, fragment: &Fragment, bytes: usize) -> Self {
        let mut longer = self.clone();
        let value = cut_bytes(&fragment.value, bytes).to_owned();
        longer.contents.push(Fragment { kind: fragment.kind, value });
        longer
    }

    fn reply(&self) -> CodeReply {
        let beginning = match (self.contents.is_empty(), self.truncated) {
            (true, _) => "No hover available",
            (false, false) => "Hover available",
            (false, true) => "Hover available (truncated)",
        };
        let mut payload =
            json!({ "contents": self.contents, "summary": self.caveats.summary(beginning, false) });
        if let Some(range) = self.range.filter(|_| !self.contents.is_empty()) {
            payload["range"] = json!(range);
        }
        let lines = self.listing.then(|| self.contents.iter().map(|one| one.value.clone()).collect());
        CodeReply::new(payload, lines)
    }
}

fn kind(markup: Markup) -> &'static str {
    match markup {
        Markup::Markdown => "markdown",
        Markup::Plaintext => "plaintext",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenon_lsp::model::HoverPart;

    use super::*;

    fn card(parts: &[(Markup, &str)]) -> CanonicalHover {
        let parts: Vec<HoverPart> = parts
            .iter()
            .map(|(markup, value)| HoverPart { markup: *markup, value: (*value).to_owned() })
            .collect();
        CanonicalHover::new(Some(model::HoverInfo { parts, range: None }), Caveats::default(), false)
    }

    fn values(reply: &CodeReply) -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let contents = reply.payload["contents"].as_array().unwrap();
        contents.iter().map(|one| (text(&one["kind"]), text(&one["value"]))).collect()
    }

    fn summary(reply: &CodeReply) -> &str {
        reply.payload["summary"].as_str().unwrap()
    }

    #[test]
    fn s7_3_contents_are_sorted_by_kind_and_value() {
        let parts = [
            (Markup::Plaintext, "a"),
            (Markup::Markdown, "b"),
            (Markup::Markdown, "a"),
            (Markup::Markdown, "b"),
        ];
        let reply = card(&parts).within(10_000).unwrap();
        let expected = [("markdown", "a"), ("markdown", "b"), ("plaintext", "a")];
        assert_eq!(values(&reply), expected.map(|(kind, value)| (kind.to_owned(), value.to_owned())));
        assert_eq!(summary(&reply), "Hover available.");
    }

    #[test]
    fn s7_3_nothing_to_say_is_an_answer() {
        let reply = CanonicalHover::new(None, Caveats::default(), false).within(10_000).unwrap();
        assert_eq!(reply.payload, json!({ "contents": [], "summary": "No hover available." }));
    }

    #[test]
    fn s7_3_fragments_are_cut_first_to_8_then_to_8192_code_points() {
        let texts: Vec<String> = (0..10).map(|number| format!("{number}{}", "é".repeat(9_000))).collect();
        let parts: Vec<(Markup, &str)> = texts.iter().map(|text| (Markup::Markdown, text.as_str())).collect();
        let reply = card(&parts).within(524_288).unwrap();
        let values = values(&reply);
        assert_eq!(values.len(), 8);
        for (number, (_, value)) in values.iter().enumerate() {
            assert_eq!(value.chars().count(), 8_192);
            assert!(value.starts_with(&number.to_string()));
        }
        assert_eq!(summary(&reply), "Hover available (truncated).");
    }

    #[test]
    fn s7_3_the_byte_cap_cuts_the_last_fragment_at_a_character() {
        let long = "\u{1F600}".repeat(1_000);
        let reply = card(&[(Markup::Markdown, "short"), (Markup::Plaintext, &long)]).within(2_000).unwrap();
        let values = values(&reply);
        assert_eq!(values[0].1, "short");
        assert!(long.starts_with(&values[1].1) && !values[1].1.is_empty());
        assert!((1_997..=2_000).contains(&reply.bytes()), "{}", reply.bytes());
        assert_eq!(summary(&reply), "Hover available (truncated).");
    }

    #[test]
    fn a_listing_counts_into_the_byte_cap() {
        let long = "x".repeat(4_000);
        let mut with_listing = card(&[(Markup::Plaintext, &long)]);
        with_listing.listing = true;
        let reply = with_listing.within(5_000).unwrap();
        assert!((4_998..=5_000).contains(&reply.bytes()), "{}", reply.bytes());
        assert!(reply.listing.unwrap().ends_with('x'));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn s7_3_whatever_a_server_says_fits_and_is_the_same_in_any_order(
            parts in prop::collection::vec((any::<bool>(), "\\PC{0,300}|[\u{1}-\u{1f}\"\\\\]{0,300}"), 0..12),
            limit in 200..4_000usize,
        ) {
            let part = |(markdown, value): &(bool, String)| HoverPart {
                markup: if *markdown { Markup::Markdown } else { Markup::Plaintext },
                value: value.clone(),
            };
            let reply = |parts: Vec<HoverPart>| {
                let hover = model::HoverInfo { parts, range: Some(Range::default()) };
                CanonicalHover::new(Some(hover), Caveats::default(), false).within(limit).unwrap()
            };
            let forwards = reply(parts.iter().map(part).collect());
            prop_assert!(forwards.bytes() <= limit);
            prop_assert_eq!(&forwards, &reply(parts.iter().rev().map(part).collect()));
        }
    }
}
