//! Cursors: round trips, and the right error for each of 100,000 damaged ones.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::Value;
use tenon_contract::clock::{Clock, Entropy};
use tenon_contract::cursor::{Cursor, CursorError, RequestKey, SnapshotKey};
use tenon_contract::epoch::{Epoch, EpochSet, Epochs};
use tenon_contract::root::RootGate;

struct Fixture {
    request: RequestKey,
    snapshot: SnapshotKey,
    later: SnapshotKey,
}

fn fixture(query: &str) -> Fixture {
    let (clock, _) = Clock::fixed("2026-01-02T12:00:00Z".parse().unwrap());
    let gate = RootGate::new(Vec::<&str>::new()).unwrap();
    let epochs = Epochs::starting_now(&clock);
    let request = RequestKey::new("vscode.lsp.workspaceSymbols", &[&query]);
    let snapshot = SnapshotKey::new(&request, &epochs.tuple(EpochSet::CODE, &gate));
    epochs.advance(Epoch::Text);
    let later = SnapshotKey::new(&request, &epochs.tuple(EpochSet::CODE, &gate));
    Fixture { request, snapshot, later }
}

impl Fixture {
    /// The cursor of the second page.
    fn cursor(&self, page_size: usize) -> Cursor {
        let start = Cursor::start(self.request.clone(), self.snapshot.clone());
        start.page(page_size, usize::MAX).1.unwrap()
    }

    fn read(&self, text: &str) -> Result<Cursor, CursorError> {
        Cursor::decode(text, &self.request)?.bind(&self.snapshot)
    }
}

/// The result that the contract requires, computed without the codec: `None` if invalid, else whether it is current.
fn expected(text: &str, fixture: &Fixture) -> Option<bool> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let object = value.as_object()?;
    let integer = |key: &str| {
        let number = object.get(key)?.as_number()?;
        let value = number
            .as_u64()
            .or_else(|| number.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0).map(|f| f as u64));
        value.filter(|value| *value < 1 << 53)
    };
    let intact = object.len() == 4
        && integer("v") == Some(2)
        && integer("o").is_some()
        && object.get("k")?.as_str()? == fixture.request.as_str();
    let snapshot = object.get("s")?.as_str()?;
    intact.then(|| snapshot == fixture.snapshot.as_str())
}

fn check(text: &str, fixture: &Fixture) -> &'static str {
    match (fixture.read(text), expected(text, fixture)) {
        (Ok(_), Some(true)) => "current",
        (Err(CursorError::Stale), Some(false)) => "stale",
        (Err(CursorError::Invalid(_)), None) => "invalid",
        (got, expected) => panic!("{text}: got {got:?}, expected {expected:?}"),
    }
}

#[test]
fn damaged_cursors_get_the_right_error() {
    let fixture = fixture("MyFunc");
    let random = Entropy::seeded(2);
    let intact = fixture.cursor(50).encode();
    let json = URL_SAFE_NO_PAD.decode(&intact).unwrap();
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    for round in 0..100_000 {
        let [kind, at_low, at_high, with, again @ ..] = random.bytes::<8>();
        // Half are damaged in the encoded text, half in the JSON.
        let in_text = round % 2 == 0;
        let mut bytes = if in_text { intact.clone().into_bytes() } else { json.clone() };
        let mut at = usize::from(u16::from_le_bytes([at_low, at_high]));
        // The two hashes make up most of the JSON; aim at the rest half the time.
        if !in_text && again[0] % 2 == 0 {
            at %= 20;
        }
        let at = at % bytes.len();
        const LIKELY: &[u8] = b"0123456789abcdefkosv\"{}[]:,.-eE+_=\\ \n\0";
        let with = if again[1] % 4 == 0 { with } else { LIKELY[usize::from(with) % LIKELY.len()] };
        match kind % 5 {
            0 => bytes[at] = with,
            1 => bytes.insert(at, with),
            2 => {
                bytes.remove(at);
            }
            3 => bytes.truncate(at),
            _ => bytes.swap(at, usize::from(again[2]) % json.len()),
        }
        let text = if in_text {
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            URL_SAFE_NO_PAD.encode(&bytes)
        };
        *counts.entry(check(&text, &fixture)).or_default() += 1;
    }
    // Some damage leaves a valid cursor (`50` to `51`) or only changes the state; most is invalid.
    assert!(counts["invalid"] > 50_000 && counts["stale"] > 1_000 && counts["current"] > 500, "{counts:?}");
}

proptest! {
    #![proptest_config(crate::cases(512))]

    #[test]
    fn encoded_cursor_decodes_to_itself(query: String, page_size in 1_usize..1 << 53, total: usize) {
        let fixture = fixture(&query);
        let cursor = fixture.cursor(page_size);
        let read = fixture.read(&cursor.encode()).unwrap();
        prop_assert_eq!(read.page(page_size, total), cursor.page(page_size, total));
        prop_assert_eq!(read.encode(), cursor.encode());
        prop_assert_eq!(read, cursor);
    }

    #[test]
    fn cursor_is_invalid_for_another_request(one: String, other: String) {
        prop_assume!(one != other);
        let cursor = fixture(&one).cursor(50).encode();
        prop_assert!(matches!(fixture(&other).read(&cursor), Err(CursorError::Invalid(_))));
    }

    #[test]
    fn cursor_is_stale_in_another_state(query: String) {
        let fixture = fixture(&query);
        let decoded = Cursor::decode(&fixture.cursor(50).encode(), &fixture.request).unwrap();
        prop_assert_eq!(decoded.bind(&fixture.later), Err(CursorError::Stale));
    }

    #[test]
    fn arbitrary_text_is_invalid(text: String) {
        prop_assert_eq!(check(&text, &fixture("MyFunc")), "invalid");
    }

    #[test]
    fn cursor_shaped_json_gets_the_result_of_the_contract(
        v in prop::sample::select(vec!["2", "2.0", "1", "3", "-2", "\"2\"", "null", "2e0", "02"]),
        o in prop::sample::select(vec!["0", "50", "50.0", "50.5", "-1", "-0", "1e3", "1e16", "9007199254740991", "9007199254740992", "18446744073709551616", "\"5\"", "[]"]),
        k_is_right: bool,
        s in prop::sample::select(vec!["right", "\"x\"", "5", "null", "\"\""]),
        order in Just([0, 1, 2, 3]).prop_shuffle(),
    ) {
        let fixture = fixture("MyFunc");
        let right = format!("\"{}\"", fixture.snapshot.as_str());
        let fields = [
            format!("\"v\":{v}"),
            format!("\"o\":{o}"),
            format!("\"k\":\"{}\"", if k_is_right { fixture.request.as_str() } else { "k" }),
            format!("\"s\":{}", if s == "right" { &right } else { s }),
        ];
        let json = format!("{{{}}}", order.map(|at| fields[at].clone()).join(","));
        check(&URL_SAFE_NO_PAD.encode(json), &fixture);
    }

    #[test]
    fn pages_partition_the_result(page_size in 1_usize..40, total in 0_usize..200) {
        let fixture = fixture("MyFunc");
        let mut cursor = Some(Cursor::start(fixture.request.clone(), fixture.snapshot.clone()));
        let mut next_item = 0;
        while let Some(current) = cursor {
            let (page, next) = current.page(page_size, total);
            prop_assert_eq!(page.start, next_item);
            prop_assert!(page.len() == page_size || next.is_none());
            next_item = page.end;
            cursor = next;
        }
        prop_assert_eq!(next_item, total);
    }
}
