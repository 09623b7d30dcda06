//! A card is the same when it is stored and read again.

use serde_json::{Map, Value};

use crate::memory::card::{Card, CardInput, TYPES};

/// `data` is a card as text: JSON or lines.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let card = Card::read(CardInput::Text(text.to_owned()));
    if text.trim_start().starts_with('{')
        && let Ok(fields) = serde_json::from_str::<Map<String, Value>>(text)
    {
        assert_eq!(Card::read(CardInput::Object(fields)).ok(), card.as_ref().ok().cloned());
    }
    let Ok(card) = card else { return };
    assert!(TYPES.contains(&card.r#type.as_str()));
    assert!(card.title.is_some() || card.text.is_some());
    let stored = card.to_text();
    let again = Card::read(CardInput::Text(stored.clone())).expect("a stored card can be read");
    assert_eq!(again.id(), card.id());
    assert_eq!(again.to_text(), stored);
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("cards", super::check);
    }
}
