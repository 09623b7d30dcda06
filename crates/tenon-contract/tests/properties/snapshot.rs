//! The snapshot store, compared with a simple model.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tenon_contract::clock::Clock;
use tenon_contract::cursor::{RequestKey, SnapshotKey};
use tenon_contract::epoch::{EpochSet, Epochs};
use tenon_contract::root::RootGate;
use tenon_contract::snapshot::{SnapshotLimits, SnapshotStore};

const LIMITS: SnapshotLimits =
    SnapshotLimits { entry_bytes: 40, total_bytes: 100, entries: 6, age: Duration::from_secs(30) };

#[derive(Clone, Debug)]
enum Step {
    Insert { key: u8, bytes: usize },
    Get { key: u8 },
    Wait { seconds: u64 },
    RemoveExpired,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..10, 0_usize..50).prop_map(|(key, bytes)| Step::Insert { key, bytes }),
        4 => (0_u8..10).prop_map(|key| Step::Get { key }),
        2 => (0_u64..20).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::RemoveExpired),
    ]
}

/// Least recently used first.
#[derive(Default)]
struct Model {
    now: u64,
    entries: Vec<(u8, usize, u64, usize)>,
}

impl Model {
    fn expire(&mut self) {
        let oldest = self.now.checked_sub(LIMITS.age.as_secs());
        self.entries.retain(|(_, _, stored, _)| oldest.is_none_or(|oldest| *stored > oldest));
    }

    fn bytes(&self) -> usize {
        self.entries.iter().map(|(_, bytes, ..)| bytes).sum()
    }

    fn insert(&mut self, key: u8, bytes: usize, value: usize) -> bool {
        self.entries.retain(|entry| entry.0 != key);
        self.expire();
        if bytes > LIMITS.entry_bytes {
            return false;
        }
        while self.bytes() + bytes > LIMITS.total_bytes || self.entries.len() >= LIMITS.entries {
            self.entries.remove(0);
        }
        self.entries.push((key, bytes, self.now, value));
        true
    }

    fn get(&mut self, key: u8) -> Option<usize> {
        self.expire();
        let at = self.entries.iter().position(|entry| entry.0 == key)?;
        let entry = self.entries.remove(at);
        self.entries.push(entry);
        Some(entry.3)
    }
}

fn key(number: u8) -> SnapshotKey {
    let (clock, _) = Clock::fixed(jiff::Timestamp::UNIX_EPOCH);
    let gate = RootGate::new(Vec::<&str>::new()).unwrap();
    let state = Epochs::starting_now(&clock).tuple(EpochSet::CODE, &gate);
    SnapshotKey::new(&RequestKey::new("tool", &[&number]), &state)
}

proptest! {
    #![proptest_config(crate::cases(512))]

    #[test]
    fn store_behaves_like_the_model(steps in prop::collection::vec(step(), 0..60)) {
        let (clock, control) = Clock::fixed(jiff::Timestamp::UNIX_EPOCH);
        let store = SnapshotStore::new(LIMITS, clock);
        let mut model = Model::default();
        for (value, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert { key: number, bytes } => {
                    let stored = store.insert(key(number), Arc::new(value), bytes).is_ok();
                    prop_assert_eq!(stored, model.insert(number, bytes, value));
                    prop_assert_eq!(store.usage(), (model.entries.len(), model.bytes()));
                }
                Step::Get { key: number } => {
                    prop_assert_eq!(store.get(&key(number)).map(|value| *value), model.get(number));
                }
                Step::Wait { seconds } => {
                    control.advance(Duration::from_secs(seconds));
                    model.now += seconds;
                }
                Step::RemoveExpired => {
                    store.remove_expired();
                    model.expire();
                    prop_assert_eq!(store.usage(), (model.entries.len(), model.bytes()));
                }
            }
            let (entries, bytes) = store.usage();
            prop_assert!(entries <= LIMITS.entries && bytes <= LIMITS.total_bytes);
        }
    }
}

#[test]
fn concurrent_inserts_keep_usage_consistent() {
    let store = SnapshotStore::new(LIMITS, Clock::system());
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..200_u8 {
                    let number = (thread + round) % 10;
                    store.insert(key(number), Arc::new(number), usize::from(number) * 4).unwrap();
                    if let Some(value) = store.get(&key(number)) {
                        assert_eq!(*value, number);
                    }
                }
            });
        }
    });
    let (entries, bytes) = store.usage();
    let present: Vec<u8> = (0..10).filter(|number| store.get(&key(*number)).is_some()).collect();
    assert_eq!(entries, present.len());
    assert_eq!(bytes, present.iter().map(|number| usize::from(*number) * 4).sum::<usize>());
}
