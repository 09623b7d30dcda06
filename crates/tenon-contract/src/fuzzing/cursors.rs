//! A cursor is accepted only for the request and the state that it names.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::cursor::{Cursor, RequestKey, SnapshotKey};
use crate::epoch::EpochTuple;

/// `data` is a cursor, or its JSON. `<request>` and `<state>` are replaced by the keys, which no input can guess.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let request = RequestKey::new("tool", &[&1]);
    let other = RequestKey::new("tool", &[&2]);
    let state = SnapshotKey::new(&request, &EpochTuple::new("00", &[1]));
    let text = text.replace("<request>", request.as_str()).replace("<state>", state.as_str());
    for text in [text.clone(), URL_SAFE_NO_PAD.encode(&text)] {
        let Ok(decoded) = Cursor::decode(&text, &request) else { continue };
        assert!(Cursor::decode(&text, &other).is_err(), "accepted for two requests");
        let json = URL_SAFE_NO_PAD.decode(&text).expect("an accepted cursor is base64url");
        let named: Value = serde_json::from_slice(&json).expect("an accepted cursor is JSON");
        assert_eq!(named["k"], request.as_str());
        match decoded.bind(&state) {
            Ok(cursor) => {
                assert_eq!(named["s"], state.as_str());
                let again = Cursor::decode(&cursor.encode(), &request).and_then(|again| again.bind(&state));
                assert_eq!(again, Ok(cursor));
            }
            Err(_) => assert_ne!(named["s"], state.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("cursors", super::check);
    }
}
