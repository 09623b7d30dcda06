//! A composition depends on the document alone, and its diagnostics can be located and read back.

use crate::{CompositionInput, compose, locate, read_diagnostics};

/// `data` is the JSON of a composition input.
pub fn check(data: &[u8]) {
    let input = match CompositionInput::parse(data) {
        Ok(input) => input,
        Err(error) => {
            let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
            assert!(!error.reason.is_empty() && (1..=lines).contains(&error.line), "{error:?}");
            return;
        }
    };
    let outcome = compose(&input);
    assert_eq!(outcome.ok(), !outcome.diagnostics.iter().any(|one| one.is_error()));
    let written = serde_json::to_vec(&outcome).expect("an outcome has a JSON form");
    // A parsed value has its keys in another order.
    let value = input.root.to_value();
    let from_value = CompositionInput::from_value(&value).expect("its nesting was checked");
    let again = serde_json::to_vec(&compose(&from_value)).expect("an outcome has a JSON form");
    assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&written));
    read_diagnostics(&written).expect("our own diagnostics can be read");

    let text = std::str::from_utf8(data).expect("JSON is UTF-8");
    let locations = outcome.diagnostics.iter().flat_map(|one| &one.locations);
    let pointers: Vec<_> = locations.map(|location| location.pointer.as_slice()).collect();
    for (range, pointer) in locate(text, &pointers).into_iter().zip(&pointers) {
        let range = range.unwrap_or_else(|| panic!("{pointer:?} is not in the input"));
        assert!(text.get(range).is_some());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("composition_inputs", super::check);
    }
}
