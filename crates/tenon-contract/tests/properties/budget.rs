//! Budgets: the delivered part is the longest prefix within the limit.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use tenon_contract::budget::{Budget, cut_bytes, cut_characters, serialized_len, value_len};

proptest! {
    #![proptest_config(crate::cases(512))]

    #[test]
    fn delivered_text_is_a_prefix_within_the_limit(texts in prop::collection::vec(any::<String>(), 0..8), limit in 0_usize..200) {
        let full = texts.concat();
        let mut budget = Budget::new(limit);
        let delivered: String = texts.iter().map(|text| budget.take(text)).collect();
        prop_assert!(full.starts_with(&delivered));
        prop_assert_eq!(budget.used(), delivered.len());
        prop_assert!(budget.used() <= limit);
        prop_assert_eq!(budget.truncated(), delivered.len() < full.len());
        if let Some(next) = full[delivered.len()..].chars().next() {
            prop_assert!(delivered.len() + next.len_utf8() > limit, "one more character fits");
        }
    }

    #[test]
    fn delivered_items_are_a_prefix_within_the_limit(sizes in prop::collection::vec(0_usize..50, 0..20), limit in 0_usize..200) {
        let mut budget = Budget::new(limit);
        let taken: Vec<bool> = sizes.iter().map(|&size| budget.try_take(size)).collect();
        let count = taken.iter().take_while(|taken| **taken).count();
        prop_assert!(taken[count..].iter().all(|taken| !taken));
        prop_assert_eq!(budget.used(), sizes[..count].iter().sum::<usize>());
        prop_assert!(budget.used() <= limit);
        prop_assert_eq!(budget.truncated(), count < sizes.len());
    }

    #[test]
    fn cut_is_the_longest_prefix_that_fits(text: String, bound in 0_usize..40) {
        let naive: String = text.chars().take(bound).collect();
        prop_assert_eq!(cut_characters(&text, bound), naive);
        let cut = cut_bytes(&text, bound);
        prop_assert!(text.starts_with(cut) && cut.len() <= bound);
        prop_assert!(text[cut.len()..].chars().next().is_none_or(|next| cut.len() + next.len_utf8() > bound));
    }

    #[test]
    fn serialized_len_equals_length_of_built_json(text: String, numbers: Vec<f64>) {
        let value = (text, numbers);
        prop_assert_eq!(serialized_len(&value).unwrap(), serde_json::to_string(&value).unwrap().len());
    }

    #[test]
    fn value_len_equals_length_of_built_json(
        texts: BTreeMap<String, String>,
        controls in "[\\x00-\\x7f]*",
        floats: Vec<f64>,
        whole: Vec<(i64, u64, u8)>,
        is: bool,
    ) {
        let value = json!([{ "texts": texts, "floats": floats, "is": is }, null, controls, whole]);
        prop_assert_eq!(value_len(&value), value.to_string().len());
    }
}
