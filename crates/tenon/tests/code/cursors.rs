//! §3.6: which cursors are taken, and what is said about the others.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tenon_code::{CodeError, WorkspaceSymbols};
use tenon_contract::cursor::CursorError;
use tenon_fake_lsp::Workbench;

use crate::stage::{REFERENCES, Stage, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS, reply, script, symbol};

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

/// The first pages of all paged tools: arguments without the cursor, and the cursor.
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
fn s3_6_what_is_no_cursor_of_this_request_is_invalid() {
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
            let (code, _) = stage.refusal(tool, with_cursor(arguments, &wrong));
            assert_eq!(code, "CURSOR_INVALID", "{tool} {wrong}");
        }
    }
    // Another position, another flag and another query are other requests.
    let (_, references, cursor) = &minted[0];
    for (field, value) in
        [("position", json!({ "line": 1, "character": 0 })), ("includeDeclaration", json!(true))]
    {
        let mut other = with_cursor(references, cursor);
        other[field] = value;
        assert_eq!(stage.refusal(REFERENCES, other).0, "CURSOR_INVALID");
    }
    let other = with_cursor(&json!({ "query": "t" }), &minted[1].2);
    assert_eq!(stage.refusal(WORKSPACE_SYMBOLS, other).0, "CURSOR_INVALID");
}

#[test]
fn s3_6_the_order_of_checks_is_schema_gate_cursor_position() {
    let stage = stage();
    let wrong_everywhere =
        json!({ "uri": "file:///etc/passwd", "position": { "line": 99, "character": 0 }, "cursor": "" });
    let mut with_unknown = wrong_everywhere.clone();
    with_unknown["x"] = json!(1);
    assert_eq!(stage.refusal(REFERENCES, with_unknown).0, "INVALID_PARAMS");
    assert_eq!(stage.refusal(REFERENCES, wrong_everywhere.clone()).0, "WORKSPACE_DENIED");
    let mut inside = wrong_everywhere;
    inside["uri"] = json!(stage.uri("a.fake"));
    assert_eq!(stage.refusal(REFERENCES, inside.clone()).0, "CURSOR_INVALID");
    inside["cursor"] = Value::Null;
    assert_eq!(stage.refusal(REFERENCES, inside).0, "NOT_FOUND");
    let started = stage.bench.received("fake", "initialize");
    assert!(started.is_empty(), "no server was asked: {started:?}");
}

#[test]
fn s3_6_another_state_is_stale_and_an_intact_spelling_is_taken() {
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
        let (code, _) = stage.refusal(tool, with_cursor(&arguments, &json!(encode(&json))));
        assert_eq!(code, "CURSOR_STALE", "{tool}");
    }
}

#[test]
fn s3_6_past_the_end_is_an_empty_last_page() {
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
fn s3_6_a_cursor_of_a_daemon_that_is_gone_is_stale() {
    let (one, other) = (stage(), stage());
    let arguments = json!({ "query": "s", "pageSize": 2 });
    let cursor = one.payload(WORKSPACE_SYMBOLS, arguments.clone())["nextCursor"].clone();
    other.payload(WORKSPACE_SYMBOLS, arguments.clone());
    assert_eq!(
        decode(&cursor)["k"],
        decode(&other.payload(WORKSPACE_SYMBOLS, arguments.clone())["nextCursor"])["k"]
    );
    assert_eq!(other.refusal(WORKSPACE_SYMBOLS, with_cursor(&arguments, &cursor)).0, "CURSOR_STALE");
}

#[test]
fn a_null_cursor_is_none() {
    let stage = stage();
    let first = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 2 }));
    let null = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 2, "cursor": null }));
    assert_eq!(first, null);
}

/// A small generator of our own: the same cursors in every run.
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
fn s3_6_a_hundred_thousand_random_and_mutated_cursors_get_the_right_codes() {
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
            let call = tenon_lsp::call::Call::within(std::time::Duration::from_secs(20));
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
    assert!(counts.iter().all(|count| *count > 0), "the dice never rolled one kind: {counts:?}");
}
