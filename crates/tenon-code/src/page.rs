//! Pages of a full canonical list (§3.5, §3.6): slices of one cached result.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde_json::{Value, json};
use tenon_contract::budget::serialized_len;
use tenon_contract::cursor::Cursor;
use tenon_contract::root::RootGate;

use crate::code_reply::CodeReply;
use crate::error::CodeError;
use crate::in_flight_cache::ByteSized;
use crate::limits::DEFAULT_PAGE_SIZE;
use crate::listing::Listed;
use crate::summary::Caveats;

/// The requested page size and cursor.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageRequest {
    pub(crate) size: Option<PageSize>,
    pub(crate) cursor: Option<String>,
}

/// A requested page size of at least one. Values that are too large are clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize(usize);

impl PageSize {
    /// The effective size, at most `max`.
    pub(crate) fn effective(asked: Option<Self>, max: usize) -> usize {
        asked.map_or(DEFAULT_PAGE_SIZE, |size| size.0).min(max)
    }
}

impl<'de> Deserialize<'de> for PageSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PageSizeVisitor;

        impl Visitor<'_> for PageSizeVisitor {
            type Value = PageSize;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number of at least one")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<PageSize, E> {
                match number {
                    0 => Err(E::invalid_value(Unexpected::Unsigned(0), &self)),
                    _ => Ok(PageSize(usize::try_from(number).unwrap_or(usize::MAX))),
                }
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<PageSize, E> {
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<PageSize, E> {
                if number.fract() != 0.0 || number < 1.0 {
                    return Err(E::invalid_value(Unexpected::Float(number), &self));
                }
                // The cast saturates at the largest integer.
                Ok(PageSize(number as usize))
            }
        }

        deserializer.deserialize_any(PageSizeVisitor)
    }
}

/// The items of a list of any kind.
trait Items: Send + Sync {
    fn len(&self) -> usize;
    fn values(&self, range: Range<usize>) -> Value;
    fn lines(&self, range: Range<usize>, gate: &RootGate) -> Vec<String>;
}

impl<T: Serialize + Listed + Send + Sync> Items for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn values(&self, range: Range<usize>) -> Value {
        serde_json::to_value(&self[range]).expect("plain data serialises")
    }

    fn lines(&self, range: Range<usize>, gate: &RootGate) -> Vec<String> {
        self[range].iter().flat_map(|item| item.lines(gate)).collect()
    }
}

/// The summary for a number of items: `Returned 3 references`.
pub(crate) type CountText = fn(usize) -> String;

/// The full canonical result of a paged query.
pub(crate) struct PagedList {
    items: Box<dyn Items>,
    bytes: usize,
    words: CountText,
    caveats: Caveats,
}

impl ByteSized for PagedList {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// How pages are delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery<'a> {
    pub(crate) gate: &'a RootGate,
    pub(crate) limit: usize,
    pub(crate) listing: bool,
}

impl PagedList {
    pub(crate) fn new<T>(items: Vec<T>, words: CountText, caveats: Caveats) -> Self
    where
        T: Serialize + Listed + Send + Sync + 'static,
    {
        let bytes = serialized_len(&items).expect("plain data serialises");
        Self { items: Box::new(items), bytes, words, caveats }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The page that starts at `cursor`. A page that is too long is an error with the size that fits.
    pub(crate) fn page(
        &self,
        cursor: &Cursor,
        size: usize,
        delivery: Delivery<'_>,
    ) -> Result<CodeReply, CodeError> {
        let Delivery { limit, .. } = delivery;
        let page = self.build(cursor, size, delivery);
        if page.bytes() <= limit {
            return Ok(page);
        }
        let (mut fits, mut too_long) = (0, cursor.page(size, self.len()).0.len());
        while too_long - fits > 1 {
            let middle = fits + (too_long - fits) / 2;
            if self.build(cursor, middle, delivery).bytes() <= limit {
                fits = middle;
            } else {
                too_long = middle;
            }
        }
        Err(CodeError::ResponseTooLarge { limit, fits: (fits > 0).then_some(fits) })
    }

    fn build(&self, cursor: &Cursor, size: usize, delivery: Delivery<'_>) -> CodeReply {
        let (range, next) = cursor.page(size, self.len());
        let summary = self.caveats.summary(&(self.words)(range.len()), next.is_some());
        let lines = delivery.listing.then(|| self.items.lines(range.clone(), delivery.gate));
        let payload = json!({
            "items": self.items.values(range),
            "nextCursor": next.map(|cursor| cursor.encode()),
            "summary": summary,
        });
        CodeReply::new(payload, lines)
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::clock::Clock;
    use tenon_contract::cursor::{RequestKey, SnapshotKey};
    use tenon_contract::epoch::{EpochSet, Epochs};

    use super::*;

    #[derive(Serialize)]
    struct Item {
        text: String,
    }

    impl Listed for Item {
        fn lines(&self, _gate: &RootGate) -> Vec<String> {
            vec![self.text.clone()]
        }
    }

    fn gate() -> RootGate {
        RootGate::new(Vec::<&str>::new()).unwrap()
    }

    fn keys() -> (RequestKey, SnapshotKey) {
        let request = RequestKey::new("tool", &[]);
        let state = Epochs::starting_now(&Clock::system()).tuple(EpochSet::CODE, &gate());
        let snapshot = SnapshotKey::new(&request, &state);
        (request, snapshot)
    }

    fn full(lengths: impl IntoIterator<Item = usize>) -> PagedList {
        let item =
            |(index, length): (usize, usize)| Item { text: format!("{index:05}{}", "x".repeat(length)) };
        let items: Vec<Item> = lengths.into_iter().enumerate().map(item).collect();
        PagedList::new(items, |count| format!("Returned {count} items"), Caveats::default())
    }

    fn delivery(gate: &RootGate) -> Delivery<'_> {
        Delivery { gate, limit: 500_000, listing: false }
    }

    #[test]
    fn s3_6_pages_have_no_gaps_and_no_duplicates_whatever_their_size() {
        let gate = gate();
        for total in [0, 1, 6, 7, 8, 199, 200, 201, 2_000] {
            let full = full(std::iter::repeat_n(0, total));
            for size in [1, 7, 200] {
                let (request, snapshot) = keys();
                let mut cursor = Cursor::start(request.clone(), snapshot.clone());
                let mut seen = Vec::new();
                loop {
                    let reply = full.page(&cursor, size, delivery(&gate)).unwrap();
                    let items = reply.payload["items"].as_array().unwrap();
                    assert!(items.len() <= size);
                    seen.extend(items.iter().map(|item| item["text"].as_str().unwrap().to_owned()));
                    let next = match &reply.payload["nextCursor"] {
                        Value::String(next) => next,
                        Value::Null => break,
                        other => panic!("{other}"),
                    };
                    assert!(reply.payload["summary"].as_str().unwrap().ends_with("(next page available)."));
                    cursor = Cursor::decode(next, &request).unwrap().bind(&snapshot).unwrap();
                }
                let expected: Vec<String> = (0..total).map(|index| format!("{index:05}")).collect();
                assert_eq!(seen, expected, "{total} items, {size} a page");
            }
        }
    }

    #[test]
    fn s5_3_a_page_that_is_too_long_is_refused_with_the_size_that_fits() {
        let gate = gate();
        let full = full((0..50).map(|index| index * 100));
        let (request, snapshot) = keys();
        let cursor = Cursor::start(request, snapshot);
        for listing in [false, true] {
            let delivery = Delivery { gate: &gate, limit: 20_000, listing };
            let refused = full.page(&cursor, 50, delivery).unwrap_err();
            let CodeError::ResponseTooLarge { limit: 20_000, fits: Some(fits) } = refused else {
                panic!("{refused:?}");
            };
            assert!(full.page(&cursor, fits, delivery).unwrap().bytes() <= 20_000);
            assert!(full.page(&cursor, fits + 1, delivery).is_err());
        }
        let tiny = Delivery { gate: &gate, limit: 10, listing: false };
        let refused = full.page(&cursor, 50, tiny).unwrap_err();
        assert_eq!(refused, CodeError::ResponseTooLarge { limit: 10, fits: None });
    }

    #[test]
    fn page_sizes_are_whole_and_clamped() {
        let read = |text: &str| serde_json::from_str::<PageSize>(text).ok();
        for (text, effective) in [("1", 1), ("7", 7), ("201", 200), ("1e9", 200), ("1e300", 200), ("5.0", 5)]
        {
            assert_eq!(PageSize::effective(read(text), 200), effective, "{text}");
        }
        assert_eq!(PageSize::effective(None, 200), 100);
        assert_eq!(PageSize::effective(None, 50), 50);
        for text in ["0", "-1", "1.5", "\"50\"", "null", "0.0", "-1e300"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn listing_ends_with_the_next_cursor() {
        let gate = gate();
        let (request, snapshot) = keys();
        let cursor = Cursor::start(request, snapshot);
        let delivery = Delivery { listing: true, ..delivery(&gate) };
        let reply = full([0, 0, 0]).page(&cursor, 2, delivery).unwrap();
        let next = reply.payload["nextCursor"].as_str().unwrap();
        let expected = format!("Returned 2 items (next page available).\n00000\n00001\nnext cursor: {next}");
        assert_eq!(reply.listing.unwrap(), expected);
    }
}
