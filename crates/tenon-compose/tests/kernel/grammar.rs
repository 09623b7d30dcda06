//! Grammar checks on every short string over a hostile alphabet, compared with reference regular expressions.

use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;
use tenon_compose::grammar::{builtin_id, claim, instance_id, local_id, parse_key, route_path};
use tenon_compose::schema::schemas;

/// One character of every class that the grammars distinguish, and characters that are special elsewhere.
const ALPHABET: [char; 15] = ['a', '0', '-', '.', '_', '/', ':', 'A', '*', '%', '\\', '?', ' ', '\n', 'é'];

/// Every string of up to `length` characters.
fn strings(length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut longest = all.clone();
    for _ in 0..length {
        longest =
            longest.iter().flat_map(|start| ALPHABET.map(|letter| format!("{start}{letter}"))).collect();
        all.extend_from_slice(&longest);
    }
    all
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

#[test]
fn instance_ids_match_the_reference() {
    let reference = regex(r"\A[a-z0-9][a-z0-9-]{2,63}\z");
    let builtin = regex(r"\Abuiltin-[a-z0-9-]{0,56}\z");
    for text in strings(4) {
        assert_eq!(instance_id(&text).is_ok(), reference.is_match(&text), "{text:?}");
        assert!(builtin_id(&text).is_err(), "{text:?}");
        let prefixed = format!("builtin-{text}");
        assert_eq!(builtin_id(&prefixed).is_ok(), builtin.is_match(&prefixed), "{prefixed:?}");
        assert!(instance_id(&prefixed).is_err(), "{prefixed:?}");
    }
}

#[test]
fn local_ids_match_the_reference() {
    let reference = regex(r"\A[a-z0-9][a-z0-9.-]{0,79}\z");
    for text in strings(4) {
        assert_eq!(local_id(&text).is_ok(), reference.is_match(&text), "{text:?}");
    }
}

#[test]
fn route_paths_match_the_reference() {
    let reference = regex(r"\A/([a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*)?\z");
    for text in strings(4) {
        assert_eq!(route_path(&text).is_ok(), reference.is_match(&text), "{text:?}");
        let path = format!("/{text}");
        assert_eq!(route_path(&path).is_ok(), reference.is_match(&path), "{path:?}");
    }
}

#[test]
fn claims_match_the_reference() {
    let reference = regex(r"\A(message|tool|activity):[a-z0-9][a-z0-9_./-]*\z");
    for text in strings(4) {
        for candidate in
            [text.clone(), format!("tool:{text}"), format!("message:{text}"), format!("activity{text}")]
        {
            assert_eq!(claim(&candidate).is_ok(), reference.is_match(&candidate), "{candidate:?}");
        }
    }
}

#[test]
fn keys_match_their_parts() {
    for text in strings(4) {
        for key in [format!("{text}:routes/{text}"), format!("abc:{text}/x"), format!("abc{text}routes/x")] {
            let read = parse_key(&key);
            let well_formed = key.split_once(':').and_then(|(owner, rest)| {
                let (kind, local) = rest.split_once('/')?;
                Some(kind == "routes" && instance_id(owner).is_ok() && local_id(local).is_ok())
            });
            assert_eq!(read.is_some(), well_formed == Some(true), "{key:?}");
        }
    }
}

#[test]
fn length_limits_count_characters() {
    for (length, fits) in [(2, false), (3, true), (64, true), (65, false)] {
        assert_eq!(instance_id(&"z".repeat(length)).is_ok(), fits, "{length}");
    }
    for (length, fits) in [(0, false), (1, true), (80, true), (81, false)] {
        assert_eq!(local_id(&"z".repeat(length)).is_ok(), fits, "{length}");
    }
    // Characters are counted, not bytes.
    assert_eq!(instance_id("éé"), Err("too-short"));
    assert_eq!(instance_id(&"é".repeat(64)), Err("invalid-start"));
    assert_eq!(local_id(&format!("a{}", "é".repeat(80))), Err("too-long"));
}

/// Names that are nearly valid.
fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("builtin-".to_owned()),
        Just("123e4567-e89b-12d3-a456-426614174000".to_owned()),
        "[0-9a-f]{14,18}",
        "[a-z0-9-]{1,8}",
        "[a-z0-9.]{1,8}",
        Just("-".to_owned()),
        Just(".".to_owned()),
        Just("A".to_owned()),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn random_suffixes_are_rejected(value in name()) {
        let random = regex(r"(^|[-.])([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,})$");
        let plain = regex(r"\A[a-z0-9][a-z0-9.-]{0,79}\z");
        let expected = plain.is_match(&value) && !random.is_match(&value);
        prop_assert_eq!(local_id(&value).is_ok(), expected);
    }

    /// The published patterns accept what the composer accepts.
    #[test]
    fn schemas_agree_with_the_grammar(value in name()) {
        static VALIDATORS: LazyLock<[jsonschema::Validator; 3]> = LazyLock::new(|| [
            validator("module.schema.json", "/properties/instanceId"),
            validator("input.schema.json", "/$defs/BuiltinDeclaration/properties/ownerId"),
            validator("module.schema.json", "/$defs/RouteContribution/properties/id"),
        ]);
        let grammar = [instance_id(&value), builtin_id(&value), local_id(&value)];
        for (schema, grammar) in VALIDATORS.iter().zip(grammar) {
            prop_assert_eq!(schema.is_valid(&value.as_str().into()), grammar.is_ok());
        }
    }
}

#[test]
fn path_and_claim_schemas_agree_with_the_grammar() {
    let path = validator("module.schema.json", "/$defs/RouteContribution/properties/path");
    let tool = validator("module.schema.json", "/$defs/ToolRendererContribution/properties/claim");
    for text in strings(3) {
        let route = format!("/{text}");
        assert_eq!(path.is_valid(&route.as_str().into()), route_path(&route).is_ok(), "{route:?}");
        let value = format!("tool:{text}");
        assert_eq!(tool.is_valid(&value.as_str().into()), claim(&value).is_ok(), "{value:?}");
    }
    let message = validator("module.schema.json", "/$defs/MessageRendererContribution/properties/claim");
    for (value, allowed) in [
        ("message:assistant-text", false),
        ("message:user-text", false),
        ("message:user-text2", true),
        ("message:my-user-text", true),
        ("tool:x", false),
    ] {
        assert_eq!(message.is_valid(&value.into()), allowed, "{value}");
    }
}

fn validator(file: &str, pointer: &str) -> jsonschema::Validator {
    let (_, schema) = schemas().into_iter().find(|(name, _)| *name == file).unwrap();
    jsonschema::validator_for(schema.pointer(pointer).unwrap()).unwrap()
}
