//! Edits of JSON texts: where the new bytes are, and that all others stay.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const PATH: &[&str] = &["servers", "tenon"];

fn entry() -> NewValue {
    NewValue::object([("command", NewValue::text("tenon")), ("args", NewValue::texts(["mcp"]))])
}

fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|key| Step::Key((*key).to_owned())).collect()
}

/// Whether all bytes of `part` are in `whole` in their order.
fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars().all(|one| rest.any(|other| other == one))
}

fn without_space(text: &str) -> String {
    text.chars().filter(|one| !one.is_whitespace()).collect()
}

const LAYOUTS: &[&str] = &[
    "",
    "\n",
    "// nothing yet\n",
    "// nothing yet, no newline",
    "{}",
    "{ }\n",
    "{\n}\n",
    "{\n  // nothing yet\n}\n",
    "{ /* nothing */ }",
    r#"{"a":1}"#,
    "{\"servers\": {}}",
    "{\"servers\": {\"x\": {}}, \"b\": [1, 2]}",
    "{\"servers\": {\"x\": {}, }, }",
    "{\n  \"a\": 1, // one\n}\n",
    "{\n  \"a\": 1 // one\n  /* end */\n}\n",
    "{\n  \"a\": 1 /* one */ /* two */\n}\n",
    "{\n  \"a\": 1 /* lines\n  of text */\n}\n",
    "{\n\t\"servers\": {\n\t\t\"x\": { \"command\": \"y\" }\n\t}\n}",
    "{\n    \"servers\": {\n        // \"old\": {},\n        \"x\": {}\n    },\n    \"z\": null\n}\n",
    "{\r\n  \"servers\": {\r\n    \"x\": {}, // why\r\n  },\r\n}\r\n",
    "\u{feff}{\r\n\t\"a\": 1\r\n}\r\n",
    "\u{feff}",
    "{ \"a\": [\n  1,\n  2\n] }",
    "{\"a\": \"// no comment\", \"b\": \"/* none */ \\\" }\"}",
    "/* head */\n{\n  \"servers\": {}\n}\n// tail\n",
];

#[test]
fn set_keeps_every_other_byte_in_any_layout() {
    for before in LAYOUTS {
        let after = set(before, PATH, &entry()).unwrap();
        let found = value(&after).unwrap_or_else(|error| panic!("{error:?}: {after}")).unwrap();
        assert_eq!(found["servers"]["tenon"], json!({"command": "tenon", "args": ["mcp"]}), "{after}");
        // Only space around empty brackets may go.
        assert!(is_subsequence(&without_space(before), &without_space(&after)), "{before:?}\n{after:?}");
        assert!(is_subsequence(before.trim_end(), &after) || !before.contains('"'), "{before:?}\n{after:?}");
        assert_eq!(before.starts_with(BOM), after.starts_with(BOM));
        assert_eq!(before.contains("\r\n"), after.contains("\r\n"), "{after:?}");
        if before.contains("\r\n") {
            assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
        }
        let again = set(&after, PATH, &entry()).unwrap();
        assert_eq!(again, after, "setting the same value changes nothing");
        let mut expected = value(before).unwrap().unwrap_or_else(|| json!({}));
        if expected["servers"].as_object().is_none_or(|servers| servers.is_empty()) {
            expected.as_object_mut().unwrap().remove("servers");
        }
        let removed = remove(&after, &steps(PATH)).unwrap().unwrap();
        assert_eq!(value(&removed).unwrap().unwrap(), expected, "{removed}");
    }
}

#[test]
fn insertions_follow_the_layout_around_them() {
    let shown = |before: &str| set(before, PATH, &entry()).unwrap();
    insta::assert_snapshot!(shown("{\n  \"a\": 1, // one\n}\n"), @r#"
    {
      "a": 1, // one
      "servers": {
        "tenon": {
          "command": "tenon",
          "args": ["mcp"]
        }
      },
    }
    "#);
    insta::assert_snapshot!(shown("{\n  \"a\": 1 // one\n  /* end */\n}\n"), @r#"
    {
      "a": 1, // one
      "servers": {
        "tenon": {
          "command": "tenon",
          "args": ["mcp"]
        }
      }
      /* end */
    }
    "#);
    insta::assert_snapshot!(shown("{\"servers\": {\"x\": {}}, \"b\": [1, 2]}"), @r#"{"servers": {"x": {}, "tenon": { "command": "tenon", "args": ["mcp"] }}, "b": [1, 2]}"#);
    insta::assert_snapshot!(shown("{\n    \"servers\": {},\n    \"z\": 1\n}"), @r#"
    {
        "servers": {
            "tenon": {
                "command": "tenon",
                "args": ["mcp"]
            }
        },
        "z": 1
    }
    "#);
}

#[test]
fn removal_keeps_comments_and_other_items() {
    for (before, after) in [
        ("{\n  \"a\": 1, // one\n  \"t\": 2\n}\n", "{\n  \"a\": 1 // one\n}\n"),
        ("{\n  \"t\": 2,\n  \"a\": 1\n}\n", "{\n  \"a\": 1\n}\n"),
        ("{\n  \"a\": 1,\n  \"t\": 2,\n}\n", "{\n  \"a\": 1,\n}\n"),
        ("{\"a\": 1, \"t\": 2}", "{\"a\": 1}"),
        ("{\"t\": 2}", "{}"),
        ("{\n  // why\n  \"t\": 2\n}", "{\n  // why\n}"),
        ("{\r\n  \"a\": 1,\r\n  \"t\": 2\r\n}", "{\r\n  \"a\": 1\r\n}"),
        ("{\n  \"t\": 2 /* two */, \"b\": 3\n}", "{\n /* two */ \"b\": 3\n}"),
    ] {
        assert_eq!(remove(before, &steps(&["t"])).unwrap().as_deref(), Some(after));
    }
    assert_eq!(
        remove("{\"a\": {\"b\": [1]}}", &[steps(&["a", "b"]), vec![Step::Index(0)]].concat())
            .unwrap()
            .unwrap(),
        "{}"
    );
    assert_eq!(remove("{\"a\": 1}", &steps(&["t"])).unwrap(), None);
    assert_eq!(remove("{\"a\": 1}", &steps(&["a", "t"])).unwrap(), None);
}

#[test]
fn push_adds_to_lists_and_creates_them() {
    let path = &["hooks", "Stop"];
    let hook = NewValue::object([("command", NewValue::text("x"))]);
    for (before, after) in [
        ("{\"hooks\": {\"Stop\": []}}", "{\"hooks\": {\"Stop\": [{ \"command\": \"x\" }]}}"),
        ("{\"hooks\": {\"Stop\": [1]}}", "{\"hooks\": {\"Stop\": [1, { \"command\": \"x\" }]}}"),
        ("{\"a\": 1}", "{\"a\": 1, \"hooks\": { \"Stop\": [{ \"command\": \"x\" }] }}"),
        (
            "{\n  \"hooks\": {\n    \"Stop\": [\n      1,\n    ],\n  },\n}",
            "{\n  \"hooks\": {\n    \"Stop\": [\n      1,\n      { \"command\": \"x\" },\n    ],\n  },\n}",
        ),
    ] {
        assert_eq!(push(before, path, &hook).unwrap(), after);
    }
}

#[test]
fn unsupported_texts_are_refused() {
    for (text, reason) in [
        ("{", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ("{\"a\": 1 \"b\": 2}", "not valid JSON"),
        ("{a: 1}", "not valid JSON"),
        ("{} {}", "not valid JSON"),
        ("<<<<<<< HEAD\n{}", "not valid JSON"),
        ("[]", "the file is not an object"),
        ("\"text\"", "the file is not an object"),
        (r#"{"servers": []}"#, "`servers` is not an object"),
        (r#"{"servers": {}, "servers": {}}"#, "`servers` appears twice"),
    ] {
        assert_eq!(set(text, PATH, &entry()).unwrap_err().to_string(), reason, "{text}");
    }
    assert_eq!(push("{\"a\": 1}", &["a"], &entry()).unwrap_err().to_string(), "`a` is not an array");
}

/// JSON with comments, space and trailing commas at random places.
fn layouts() -> impl Strategy<Value = String> {
    let gap = || proptest::sample::select(vec!["", " ", "\n", "\n  ", " /* c, } */ ", " // c \"\n", "\t"]);
    let scalar =
        proptest::sample::select(vec!["1", "\"x\"", "null", "\"}{,//\"", "[]", "{}"]).prop_map(str::to_owned);
    let value = scalar.prop_recursive(3, 24, 4, move |inner| {
        let member =
            (proptest::sample::select(vec!["a", "b", "servers", "tenon", "c"]), gap(), inner.clone(), gap());
        let members = proptest::collection::vec(member, 0..4);
        let items = proptest::collection::vec((inner, gap()), 0..4);
        prop_oneof![
            (members, gap(), any::<bool>()).prop_map(|(mut members, gap, trailing)| {
                let mut seen = Vec::new();
                members.retain(|(key, ..)| {
                    !seen.contains(key) && {
                        seen.push(*key);
                        true
                    }
                });
                let count = members.len();
                let body = members.into_iter().enumerate().map(|(index, (key, before, value, after))| {
                    let comma = if index + 1 < count || trailing { "," } else { "" };
                    format!("{before}\"{key}\": {value}{after}{comma}")
                });
                format!("{{{}{gap}}}", body.collect::<String>())
            }),
            (items, any::<bool>()).prop_map(|(items, trailing)| {
                let count = items.len();
                let body = items.into_iter().enumerate().map(|(index, (value, after))| {
                    let comma = if index + 1 < count || trailing { "," } else { "" };
                    format!("{value}{after}{comma}")
                });
                format!("[{}]", body.collect::<String>())
            }),
        ]
    });
    (gap(), value, gap()).prop_map(|(before, value, after)| format!("{before}{value}{after}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_of_any_layout_change_one_value_only(before in layouts()) {
        let Some(mut expected) = value(&before).unwrap() else { return Ok(()) };
        let result = set(&before, PATH, &entry());
        let supported = expected.is_object() && expected.get("servers").is_none_or(serde_json::Value::is_object);
        prop_assert_eq!(result.is_ok(), supported);
        if let Ok(after) = result {
            let replaced = expected["servers"].get("tenon").is_some();
            expected["servers"]["tenon"] = entry().to_json();
            prop_assert_eq!(value(&after).unwrap().unwrap(), expected.clone(), "{}", after);
            if !replaced {
                prop_assert!(is_subsequence(&without_space(&before), &without_space(&after)), "{}", after);
            }
            let removed = remove(&after, &steps(PATH)).unwrap().unwrap();
            expected["servers"].as_object_mut().unwrap().remove("tenon");
            let mut found = value(&removed).unwrap().unwrap();
            if found.get("servers").is_none() {
                found["servers"] = json!({});
            }
            prop_assert_eq!(found, expected, "{}", removed);
        }
    }
}
