//! A cursor of a list is accepted only for the call that issued it, and means the same when it is written again.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::cursor::{Cursor, CursorKey};

/// `data` is a cursor, or its JSON. `<call>` is replaced by the key, which no input can guess.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let key = |task: &str| CursorKey::new("tasks_delta", "w", &json!({ "task": task }), "");
    let (own, other) = (key("TASK-001"), key("TASK-002"));
    let start = Cursor { stream: 0, sort_key: None, inside: None }.encode(&own);
    let name = parts(&start)[0].as_str().expect("a cursor names its call").to_owned();
    let text = text.replace("<call>", &name);
    for text in [text.clone(), URL_SAFE_NO_PAD.encode(&text)] {
        let Ok(cursor) = Cursor::decode(&text, &own) else { continue };
        assert!(Cursor::decode(&text, &other).is_err(), "accepted for two calls");
        assert_eq!(parts(&text)[0], name);
        assert_eq!(Cursor::decode(&cursor.encode(&own), &own).ok(), Some(cursor));
    }
}

fn parts(cursor: &str) -> Vec<Value> {
    let json = URL_SAFE_NO_PAD.decode(cursor).expect("an accepted cursor is base64url");
    serde_json::from_slice(&json).expect("an accepted cursor is a JSON array")
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("work_cursors", super::check);
    }
}
