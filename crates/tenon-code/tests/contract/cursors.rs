//! §3.6: which cursors are accepted, and the error for each of the others.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tenon_code::{CodeError, WorkspaceSymbols};
use tenon_contract::cursor::CursorError;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{reply, script, symbol};
use tenon_lsp::CallContext;
use tenon_testkit::PATIENCE;
use tenon_testkit::code_tools::{REFERENCES, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS};

use crate::stage::Stage;

const STALE: CodeError = CodeError::Cursor(CursorError::Stale);

fn stage() -> Stage {
    let symbols: Vec<Value> =
        (0..5).map(|n| symbol(&format!("s{n}"), 12, "$root/a.fake", [n, 0, n, 1])).collect();
    let rules = [
        reply("workspace/symbol", json!(symbols)),
        json!({ "on": "textDocument/references", "do": [{ "reply_locations": { "uri": "$uri", "count": 5 } }] }),
    ];
    Stage::open(
        Workbench::new()
            .file("a.fake", "bad\nx\nx\nx\nx\n")
            .file("b.fake", "bad\nx\nx\nx\nx\n")
            .server("fake", script(&rules)),
    )
}

fn encode(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

fn decode(cursor: &Value) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor.as_str().unwrap()).unwrap()).unwrap()
}

/// For each paged tool: arguments without a cursor, and the second page's cursor.
fn minted(stage: &Stage) -> Vec<(&'static str, Value, Value)> {
    let mut references = stage.at("a.fake", 0, 0);
    references["pageSize"] = json!(2);
    let all = [
        (REFERENCES, references),
        (WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 2 })),
        (WORKSPACE_DIAGNOSTICS, json!({ "pageSize": 1 })),
    ];
    let mint = |(tool, arguments): (&'static str, Value)| {
        let cursor = stage.payload(tool, arguments.clone())["nextCursor"].clone();
        assert!(cursor.is_string(), "{tool}");
        (tool, arguments, cursor)
    };
    all.into_iter().map(mint).collect()
}

fn is_invalid(error: &CodeError) -> bool {
    matches!(error, CodeError::Cursor(CursorError::Invalid(_)))
}

fn with_cursor(arguments: &Value, cursor: &Value) -> Value {
    let mut arguments = arguments.clone();
    arguments["cursor"] = cursor.clone();
    arguments
}

#[test]
fn s3_6_a_cursor_is_base64url_json_of_version_offset_request_and_state() {
    let stage = stage();
    for (tool, arguments, cursor) in minted(&stage) {
        let text = cursor.as_str().unwrap();
        assert!(!text.contains('='), "{text}");
        let json = String::from_utf8(URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap();
        let fields = decode(&cursor);
        let hex = |field: &str| {
            let text = fields[field].as_str().unwrap().to_owned();
            assert!(
                text.len() == 64 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte)),
                "{text}"
            );
            text
        };
        let offset = arguments["pageSize"].as_u64().unwrap();
        let expected = format!(r#"{{"v":2,"o":{offset},"k":"{}","s":"{}"}}"#, hex("k"), hex("s"));
        assert_eq!(json, expected, "{tool}");
    }
}

#[test]
fn s3_6_malformed_cursors_and_cursors_of_other_requests_are_invalid() {
    let stage = stage();
    let minted = minted(&stage);
    for (index, (tool, arguments, cursor)) in minted.iter().enumerate() {
        let good = decode(cursor);
        let changed = |field: &str, value: Value| {
            let mut json = good.clone();
            json[field] = value;
            json!(encode(&json))
        };
        let without = |field: &str| {
            let mut json = good.clone();
            json.as_object_mut().unwrap().remove(field);
            json!(encode(&json))
        };
        let padded = format!("{}=", cursor.as_str().unwrap());
        let (_, _, of_another_tool) = &minted[(index + 1) % minted.len()];
        for wrong in [
            json!(""),
            json!("e25vdC1qc29u"),
            json!("bnVsbA"),
            json!("!!!"),
            json!(padded),
            json!("x".repeat(100_000)),
            changed("v", json!(1)),
            changed("v", json!(3)),
            changed("v", json!("2")),
            changed("o", json!(-1)),
            changed("o", json!(1.5)),
            changed("o", json!("5")),
            changed("o", json!(1e300)),
            changed("k", json!("0")),
            changed("k", json!(5)),
            changed("s", json!(5)),
            changed("x", json!(1)),
            without("v"),
            without("o"),
            without("k"),
            without("s"),
            of_another_tool.clone(),
        ] {
            let error = stage.error(tool, with_cursor(arguments, &wrong));
            assert!(is_invalid(&error), "{tool} {wrong}: {error:?}");
        }
    }
    // Another position, another flag and another query are other requests.
    let (_, references, cursor) = &minted[0];
    for (field, value) in
        [("position", json!({ "line": 1, "character": 0 })), ("includeDeclaration", json!(true))]
    {
        let mut other = with_cursor(references, cursor);
        other[field] = value;
        assert!(is_invalid(&stage.error(REFERENCES, other)), "{field}");
    }
    let other = with_cursor(&json!({ "query": "t" }), &minted[1].2);
    assert!(is_invalid(&stage.error(WORKSPACE_SYMBOLS, other)));
}

#[test]
fn s3_6_cursor_of_another_state_is_stale_and_any_json_spelling_is_accepted() {
    let stage = stage();
    for (tool, arguments, cursor) in minted(&stage) {
        let mut json = decode(&cursor);
        let offset = json["o"].as_f64().unwrap();
        json["o"] = json!(offset);
        let reordered = format!(r#" {{ "s":{},"k":{}, "o":{offset:.1},"v":2}}"#, json["s"], json["k"]);
        let page = stage.payload(tool, with_cursor(&arguments, &cursor));
        let spelled = json!(URL_SAFE_NO_PAD.encode(reordered));
        assert_eq!(stage.payload(tool, with_cursor(&arguments, &spelled)), page, "{tool}");
        json["s"] = json!("0".repeat(64));
        assert_eq!(stage.error(tool, with_cursor(&arguments, &json!(encode(&json)))), STALE, "{tool}");
    }
}

#[test]
fn s3_6_offset_past_the_end_gives_an_empty_last_page() {
    let stage = stage();
    for (tool, arguments, cursor) in minted(&stage) {
        for offset in [json!(5), json!(999_999), json!(9_007_199_254_740_991_u64)] {
            let mut json = decode(&cursor);
            json["o"] = offset;
            let payload = stage.payload(tool, with_cursor(&arguments, &json!(encode(&json))));
            assert_eq!(payload["items"], json!([]), "{tool}");
            assert_eq!(payload["nextCursor"], Value::Null, "{tool}");
        }
    }
}

#[test]
fn s3_6_cursor_of_an_earlier_daemon_is_stale() {
    let (one, other) = (stage(), stage());
    let arguments = json!({ "query": "s", "pageSize": 2 });
    let cursor = one.payload(WORKSPACE_SYMBOLS, arguments.clone())["nextCursor"].clone();
    other.payload(WORKSPACE_SYMBOLS, arguments.clone());
    assert_eq!(
        decode(&cursor)["k"],
        decode(&other.payload(WORKSPACE_SYMBOLS, arguments.clone())["nextCursor"])["k"]
    );
    assert_eq!(other.error(WORKSPACE_SYMBOLS, with_cursor(&arguments, &cursor)), STALE);
}

#[test]
fn null_cursor_asks_for_the_first_page() {
    let stage = stage();
    let first = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 2 }));
    let null = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 2, "cursor": null }));
    assert_eq!(first, null);
}

/// A seeded xorshift generator, so that every run tries the same cursors.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

#[test]
fn s3_6_a_hundred_thousand_random_and_mutated_cursors_get_the_right_errors() {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let stage = stage();
    let cursor =
        stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 2 }))["nextCursor"].clone();
    let good = cursor.as_str().unwrap().as_bytes().to_vec();
    let state = decode(&cursor)["s"].clone();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut counts = [0_usize; 3];
    stage.block_on(async {
        for round in 0..100_000 {
            let mut text = if round % 4 == 0 {
                (0..dice.roll(300)).map(|_| ALPHABET[dice.roll(64)]).collect()
            } else {
                good.clone()
            };
            for _ in 0..=dice.roll(3) {
                let at = dice.roll(text.len().max(1));
                match dice.roll(4) {
                    0 if at < text.len() => text[at] = ALPHABET[dice.roll(64)],
                    1 if at < text.len() => drop(text.remove(at)),
                    2 => text.insert(at.min(text.len()), ALPHABET[dice.roll(64)]),
                    _ => text.truncate(at),
                }
            }
            let text = String::from_utf8(text).unwrap();
            let intact: Option<Value> =
                URL_SAFE_NO_PAD.decode(&text).ok().and_then(|json| serde_json::from_slice(&json).ok());
            let input =
                WorkspaceSymbols { query: "s".to_owned(), page_size: None, cursor: Some(text.clone()) };
            let call = CallContext::within(PATIENCE);
            match stage.code.workspace_symbols(input, &call).await {
                Err(CodeError::Cursor(CursorError::Invalid(_))) => counts[0] += 1,
                Err(CodeError::Cursor(CursorError::Stale)) => {
                    assert_ne!(intact.unwrap()["s"], state, "{text}");
                    counts[1] += 1;
                }
                Ok(reply) => {
                    assert_eq!(intact.unwrap()["s"], state, "{text}");
                    assert!(reply.payload["items"].is_array());
                    counts[2] += 1;
                }
                Err(other) => panic!("{text}: {other:?}"),
            }
        }
    });
    assert!(counts.iter().all(|count| *count > 0), "one outcome never occurred: {counts:?}");
}
