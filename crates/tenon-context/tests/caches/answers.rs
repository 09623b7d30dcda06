//! Random corpora and queries, compared with a simple model.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use tenon_context::{CachePool, document_id};

use crate::fixture::Fixture;

/// The expected answer, byte for byte.
fn model(documents: &BTreeMap<String, String>, query: &str, budget: u64) -> String {
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let terms: Vec<String> = query.to_lowercase().split_whitespace().map(json).collect();
    let mut scored = Vec::new();
    for (id, text) in documents {
        let words: Vec<String> = text.to_lowercase().split_whitespace().map(json).collect();
        let matches = words.iter().filter(|word| terms.contains(word)).count();
        let score = if words.is_empty() { 0.0 } else { matches as f32 / words.len() as f32 };
        scored.push((score, id, text, matches, words.len()));
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let (mut used, mut chosen, terms) = (0, Vec::new(), terms.join(","));
    for (score, id, text, matches, words) in scored {
        let tokens = text.len().div_ceil(4) as u64;
        if budget > 0 && used + tokens <= budget {
            used += tokens;
            let version = tenon_context::ContentVersion::of(text);
            let score = serde_json::to_string(&score).unwrap();
            chosen.push(format!(
                r#"{{"id":{},"version":"{version}","content":{},"score":{score},"tokens":{tokens},"why":{{"query_terms":[{terms}],"term_matches":{matches},"total_words":{words}}}}}"#,
                json(id),
                json(text)
            ));
        }
    }
    format!(
        r#"{{"documents":[{}],"selection":{{"query":{},"budget":{budget},"tokens_used":{used},"documents_considered":{},"documents_selected":{},"documents_excluded_by_budget":{}}}}}"#,
        chosen.join(","),
        json(query),
        documents.len(),
        chosen.len(),
        documents.len() - chosen.len()
    )
}

/// A small vocabulary, so that words often match, with words whose case folding is special.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "a",
        "A",
        "b",
        "alpha",
        "Alpha",
        "ALPHA",
        "alphabet",
        "É",
        "é",
        "e\u{301}",
        "ΣΑΣ",
        "σας",
        "σασ",
        "İ",
        "i\u{307}",
        "k",
        "\u{212a}",
        "ẞ",
        "ß",
        "\"",
        "\\",
        "\u{1}",
        "x\u{200b}y",
        "\u{1c}",
    ]);
    let space = prop::sample::select(vec![" ", "  ", "\n", "\t", "\u{b}", "\u{a0}", "\u{3000}", "\u{85}"]);
    let some = prop::collection::vec((word, space), 0..24);
    some.prop_map(|words| words.iter().map(|(word, space)| format!("{word}{space}")).collect())
}

fn documents() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec(("([a-cA-CÉ]{1,2}/)?[a-eA-E.\u{e9}ß-]{1,3}\\.md", text()), 0..12)
}

/// Budgets for a few documents, and the ends of the range.
fn budget() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..200_u64, Just(u64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_from_disk_and_pool_agree_with_the_model(
        documents in documents(),
        queries in prop::collection::vec((text(), budget()), 1..4),
    ) {
        let fixture = Fixture::in_memory();
        fs::create_dir_all(fixture.sources()).unwrap();
        let mut by_id = BTreeMap::new();
        for (path, content) in documents {
            by_id.entry(document_id(&path)).or_insert_with(|| {
                fixture.write(&path, &content);
                content
            });
        }
        fixture.build().unwrap();
        let pool = CachePool::default();
        for (query, budget) in queries {
            let expected = model(&by_id, &query, budget);
            prop_assert_eq!(&fixture.resolve(&query, budget).unwrap(), &expected);
            prop_assert_eq!(&fixture.resolve_in(&pool, &query, budget).unwrap(), &expected);
        }
    }
}

#[test]
fn scores_are_printed_as_32_bit_floats() {
    for (matches, words, printed) in [
        (0, 1, "0.0"),
        (1, 1, "1.0"),
        (1, 2, "0.5"),
        (1, 3, "0.33333334"),
        (2, 3, "0.6666667"),
        (1, 7, "0.14285715"),
        (69, 512, "0.13476562"),
        (1, 10_000, "0.0001"),
        (3, 1_000_000, "0.000003"),
    ] {
        let fixture = Fixture::in_memory();
        fixture.write("a.md", "x ".repeat(matches) + &"y ".repeat(words - matches));
        fixture.build().unwrap();
        let pool = CachePool::default();
        for answer in
            [fixture.resolve("x", u64::MAX).unwrap(), fixture.resolve_in(&pool, "x", u64::MAX).unwrap()]
        {
            assert!(
                answer.contains(&format!("\"score\":{printed},")),
                "{matches}/{words}: {}",
                &answer[answer.len() - 400..]
            );
        }
    }
}
