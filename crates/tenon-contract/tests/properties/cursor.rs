//! Cursors: round trips, and a hundred thousand damaged ones that must each get the right error.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::Value;
use tenon_contract::clock::{Clock, Entropy};
use tenon_contract::cursor::{Cursor, CursorError, RequestKey, SnapshotKey};
use tenon_contract::epoch::{Epoch, EpochSet, Epochs};
use tenon_contract::root::RootGate;

struct World {
    request: RequestKey,
    snapshot: SnapshotKey,
    later: SnapshotKey,
}

fn world(query: &str) -> World {
    let (clock, _) = Clock::fixed("2026-01-02T12:00:00Z".parse().unwrap());
    let gate = RootGate::new(Vec::<&str>::new()).unwrap();
    let epochs = Epochs::starting_now(&clock);
    let request = RequestKey::new("vscode.lsp.workspaceSymbols", &[&query]);
    let snapshot = SnapshotKey::new(&request, &epochs.tuple(EpochSet::CODE, &gate));
    epochs.advance(Epoch::Text);
    let later = SnapshotKey::new(&request, &epochs.tuple(EpochSet::CODE, &gate));
    World { request, snapshot, later }
}

impl World {
    /// The cursor of the second page.
    fn cursor(&self, page_size: usize) -> Cursor {
        let start = Cursor::start(self.request.clone(), self.snapshot.clone());
        start.page(page_size, usize::MAX).1.unwrap()
    }

    fn read(&self, text: &str) -> Result<Cursor, CursorError> {
        Cursor::decode(text, &self.request)?.bind(&self.snapshot)
    }
}

/// What the contract says of a text, read without the codec: `None` for invalid, else whether it is current.
fn verdict(text: &str, world: &World) -> Option<bool> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let object = value.as_object()?;
    let integer = |key: &str| {
        let number = object.get(key)?.as_number()?;
        let whole = number
            .as_u64()
            .or_else(|| number.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0).map(|f| f as u64));
        whole.filter(|whole| *whole < 1 << 53)
    };
    let intact = object.len() == 4
        && integer("v") == Some(2)
        && integer("o").is_some()
        && object.get("k")?.as_str()? == world.request.as_str();
    let snapshot = object.get("s")?.as_str()?;
    intact.then(|| snapshot == world.snapshot.as_str())
}

fn check(text: &str, world: &World) -> &'static str {
    match (world.read(text), verdict(text, world)) {
        (Ok(_), Some(true)) => "current",
        (Err(CursorError::Stale), Some(false)) => "stale",
        (Err(CursorError::Invalid(_)), None) => "invalid",
        (got, expected) => panic!("{text}: got {got:?}, expected {expected:?}"),
    }
}

#[test]
fn a_hundred_thousand_damaged_cursors_get_the_right_error() {
    let world = world("MyFunc");
    let random = Entropy::seeded(2);
    let intact = world.cursor(50).encode();
    let json = URL_SAFE_NO_PAD.decode(&intact).unwrap();
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    for round in 0..100_000 {
        let [kind, at_low, at_high, with, again @ ..] = random.bytes::<8>();
        // Half of them are damaged as text, the other half inside the JSON.
        let in_text = round % 2 == 0;
        let mut bytes = if in_text { intact.clone().into_bytes() } else { json.clone() };
        let mut at = usize::from(u16::from_le_bytes([at_low, at_high]));
        // Most of the JSON is the two keys; the interesting part is short.
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
        *counts.entry(check(&text, &world)).or_default() += 1;
    }
    // Damage that changes nothing (`50` to `51`) or only the state is among them; most is invalid.
    assert!(counts["invalid"] > 50_000 && counts["stale"] > 1_000 && counts["current"] > 500, "{counts:?}");
}

proptest! {
    #![proptest_config(crate::cases(512))]

    #[test]
    fn what_was_encoded_is_decoded(query: String, page_size in 1_usize..1 << 53, total: usize) {
        let world = world(&query);
        let cursor = world.cursor(page_size);
        let read = world.read(&cursor.encode()).unwrap();
        prop_assert_eq!(read.page(page_size, total), cursor.page(page_size, total));
        prop_assert_eq!(read.encode(), cursor.encode());
        prop_assert_eq!(read, cursor);
    }

    #[test]
    fn another_request_never_gets_it(one: String, other: String) {
        prop_assume!(one != other);
        let cursor = world(&one).cursor(50).encode();
        prop_assert!(matches!(world(&other).read(&cursor), Err(CursorError::Invalid(_))));
    }

    #[test]
    fn another_state_never_gets_it(query: String) {
        let world = world(&query);
        let decoded = Cursor::decode(&world.cursor(50).encode(), &world.request).unwrap();
        prop_assert_eq!(decoded.bind(&world.later), Err(CursorError::Stale));
    }

    #[test]
    fn any_text_at_all_is_refused(text: String) {
        prop_assert_eq!(check(&text, &world("MyFunc")), "invalid");
    }

    #[test]
    fn any_json_in_a_cursors_clothes_is_judged_by_the_contract(
        v in prop::sample::select(vec!["2", "2.0", "1", "3", "-2", "\"2\"", "null", "2e0", "02"]),
        o in prop::sample::select(vec!["0", "50", "50.0", "50.5", "-1", "-0", "1e3", "1e16", "9007199254740991", "9007199254740992", "18446744073709551616", "\"5\"", "[]"]),
        k_is_right: bool,
        s in prop::sample::select(vec!["right", "\"x\"", "5", "null", "\"\""]),
        order in Just([0, 1, 2, 3]).prop_shuffle(),
    ) {
        let world = world("MyFunc");
        let right = format!("\"{}\"", world.snapshot.as_str());
        let fields = [
            format!("\"v\":{v}"),
            format!("\"o\":{o}"),
            format!("\"k\":\"{}\"", if k_is_right { world.request.as_str() } else { "k" }),
            format!("\"s\":{}", if s == "right" { &right } else { s }),
        ];
        let json = format!("{{{}}}", order.map(|at| fields[at].clone()).join(","));
        check(&URL_SAFE_NO_PAD.encode(json), &world);
    }

    #[test]
    fn pages_partition_the_result(page_size in 1_usize..40, total in 0_usize..200) {
        let world = world("MyFunc");
        let mut cursor = Some(Cursor::start(world.request.clone(), world.snapshot.clone()));
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
