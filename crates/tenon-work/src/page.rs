//! Pages that fit their budget to the byte.
//!
//! A read answers with a head, which is never cut, and items in order of importance. As many whole items as fit are
//! delivered, and the next page continues after the last one. Only if the first item does not fit is it cut: it is
//! delivered with its ids, `content_truncated`, `content_bytes` (of the whole), `content_offset` and a slice as
//! `content`, and the next page continues inside it. The slices of an entry join to its `content`, those of any other
//! item to its JSON.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tenon_contract::json::canonical_value;

use crate::cursor::{Cursor, CursorKey, ItemOffset, SortKey, digest};
use crate::envelope::{Envelope, Frame};
use crate::error::{WorkError, WorkErrorCode};

/// A page that cuts an item delivers at least this much of it, so that every page makes progress.
const MIN_SLICE: usize = 16;

/// The warning of a page that the budget ended.
const CUT_WARNING: &str = "cut to max_chars; continue with next_cursor";

/// What the client asked for.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    pub limit: usize,
    pub max_chars: usize,
    /// The cursor as it was given.
    pub given: Option<String>,
    pub start: Option<Cursor>,
    pub key: CursorKey,
}

impl PageRequest {
    /// Where a list starts: after this sort key, or at it if that item was delivered in part.
    pub(crate) fn from(&self) -> Option<(&SortKey, bool)> {
        let start = self.start.as_ref()?;
        Some((start.sort_key.as_ref()?, start.inside.is_some()))
    }

    /// The same for places that are one integer and lists that run upwards: the first that counts.
    pub(crate) fn first_above(&self) -> Result<Option<i64>, WorkError> {
        self.from().map(|(sort_key, at)| Ok(sort_key.int(0)?.saturating_add(i64::from(!at)))).transpose()
    }

    /// The same for lists that run downwards.
    pub(crate) fn first_below(&self) -> Result<Option<i64>, WorkError> {
        self.from().map(|(sort_key, at)| Ok(sort_key.int(0)?.saturating_sub(i64::from(!at)))).transpose()
    }
}

/// Where items go in the result: a JSON pointer to a list or to a single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    List(&'static str),
    Value(&'static str),
}

/// Which part of an item may be cut, and which fields stay beside the slice.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// The text field `content`; the other fields stay.
    Content,
    /// The JSON of the item; these fields stay.
    Json(&'static [&'static str]),
}

#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub slot: Slot,
    pub stream: usize,
    pub sort_key: SortKey,
    pub value: Value,
    pub cut: Cut,
}

impl Item {
    /// An item of the only list of an answer.
    pub(crate) fn new(list: &'static str, sort_key: SortKey, value: impl Serialize, cut: Cut) -> Self {
        Self { slot: Slot::List(list), stream: 0, sort_key, value: json!(value), cut }
    }

    /// What slices are cut from.
    fn text(&self) -> String {
        match self.cut {
            Cut::Content => self.value["content"].as_str().unwrap_or_default().to_owned(),
            Cut::Json(_) => match &self.value {
                Value::String(text) => text.clone(),
                value => canonical_value(value),
            },
        }
    }

    fn sliced(&self, text: &str, from: usize, to: usize) -> Value {
        let mut slice = match (self.cut, &self.value) {
            (Cut::Content, Value::Object(fields)) => fields.clone(),
            (Cut::Json(keep), Value::Object(fields)) => {
                let kept = fields.iter().filter(|(name, _)| keep.contains(&name.as_str()));
                kept.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            _ => Map::new(),
        };
        slice.insert("content".into(), json!(text[from..to]));
        slice.insert("content_bytes".into(), json!(text.len()));
        slice.insert("content_offset".into(), json!(from));
        slice.insert("content_truncated".into(), json!(true));
        Value::Object(slice)
    }
}

/// A list with its own cursor.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub pagination: &'static str,
    /// Whether the store has more after the last item.
    pub more: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub head: Map<String, Value>,
    pub slots: Vec<Slot>,
    pub items: Vec<Item>,
    pub streams: Vec<Stream>,
    /// Items were read newest first; each list is reversed before it is delivered.
    pub reversed: bool,
}

impl Page {
    /// A page with one list.
    pub(crate) fn list(head: impl Serialize, list: &'static str, items: Vec<Item>, more: bool) -> Self {
        Self {
            head: object(head),
            slots: vec![Slot::List(list)],
            items,
            streams: vec![Stream { pagination: "/pagination", more }],
            reversed: false,
        }
    }

    /// A page without lists.
    pub(crate) fn head(head: impl Serialize) -> Self {
        Self { head: object(head), ..Self::default() }
    }

    /// The envelope around as much of the page as fits.
    pub(crate) fn render(self, mut frame: Frame, request: &PageRequest) -> Result<Envelope, WorkError> {
        let mut fitter = Fitter::new(&self, &frame, request)?;
        if let Attempt::ValueRule(value) = fitter.attempt(request.max_chars) {
            return Ok(Envelope::new(value));
        }
        // Suggestions are the first part to leave out.
        frame.suggestions.clear();
        fitter = Fitter::new(&self, &frame, request)?;
        let mut minimum = match fitter.attempt(request.max_chars) {
            Attempt::ValueRule(value) => return Ok(Envelope::new(value)),
            Attempt::Needs(bytes) => bytes,
        };
        // The limit itself is part of the answer, so more digits may need more bytes.
        while let Attempt::Needs(bytes) = fitter.attempt(minimum) {
            minimum = bytes.max(minimum + 1);
        }
        Err(WorkError::new(
            WorkErrorCode::BudgetExceeded,
            format!("max_chars {} is below {minimum}", request.max_chars),
        )
        .recovery("call again with max_chars of at least error.minimum")
        .with("minimum", minimum))
    }
}

/// The JSON object that an answer, a head or a `json!` object serialises to.
pub(crate) fn object(value: impl Serialize) -> Map<String, Value> {
    match json!(value) {
        Value::Object(map) => map,
        _ => unreachable!("answers and heads are structs or JSON objects"),
    }
}

enum Attempt {
    ValueRule(Value),
    Needs(usize),
}

/// Where a list continues.
#[derive(Debug, Serialize)]
pub(crate) struct Pagination {
    pub cursor: Option<String>,
    pub next_cursor: Option<String>,
    pub has_more: bool,
    pub limit: usize,
    pub count: usize,
}

/// An empty object, filled with the items of the page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct NoHead {}

/// Which items are delivered: the first `taken` ones; of the last of them perhaps only up to `cut`.
#[derive(Clone, Copy)]
struct Choice {
    taken: usize,
    cut: Option<usize>,
}

struct Fitter<'a> {
    page: &'a Page,
    frame: &'a Frame,
    request: &'a PageRequest,
    /// What slices of the first item are cut from, and how much of it the client has.
    first: String,
    begun: usize,
    /// The items as they are delivered whole; the first may be the rest of one that was begun.
    values: Vec<Value>,
    sizes: Vec<usize>,
}

/// The largest budget that a read may ask for.
pub(crate) const MAX_CHARS: usize = 100_000;

impl<'a> Fitter<'a> {
    fn new(page: &'a Page, frame: &'a Frame, request: &'a PageRequest) -> Result<Self, WorkError> {
        let first = page.items.first().map(Item::text).unwrap_or_default();
        let mut values: Vec<Value> = page.items.iter().map(|item| item.value.clone()).collect();
        let mut begun = 0;
        if let Some(Cursor { sort_key, inside: Some(inside), .. }) = &request.start {
            let item = page.items.first().filter(|item| {
                Some(&item.sort_key) == sort_key.as_ref()
                    && digest(&first) == inside.digest
                    && first.is_char_boundary(inside.offset)
            });
            let Some(item) = item else {
                return Err(WorkError::invalid("the item at the cursor has changed")
                    .recovery("call again without cursor"));
            };
            begun = inside.offset;
            values[0] = item.sliced(&first, begun, first.len());
        }
        // Items far beyond the budget need no measuring.
        let mut sizes = Vec::new();
        let mut total = 0;
        for value in &values {
            let size = canonical_value(value).len();
            sizes.push(size);
            total += size;
            if total > MAX_CHARS {
                break;
            }
        }
        Ok(Self { page, frame, request, first, begun, values, sizes })
    }

    fn attempt(&self, limit: usize) -> Attempt {
        let all = self.values.len();
        let mut needed = usize::MAX;
        // The items alone must fit before it is worth looking at the rest.
        let mut left = limit;
        let fit = self
            .sizes
            .iter()
            .take_while(|&&size| left.checked_sub(size).inspect(|&rest| left = rest).is_some());
        let most = fit.count().max(1).min(all);
        for taken in (0..=most).rev() {
            if taken == 0 && all > 0 {
                break;
            }
            let choice = Choice { taken, cut: None };
            let size = self.size(choice, limit);
            if size <= limit {
                return Attempt::ValueRule(self.build(choice, limit));
            }
            needed = needed.min(size);
        }
        if all == 0 {
            return Attempt::Needs(needed);
        }
        let boundary = |at: usize| self.first.ceil_char_boundary(at.min(self.first.len()));
        let least = boundary(self.begun + MIN_SLICE);
        let cut = |to| Choice { taken: 1, cut: Some(to) };
        if least >= self.first.len() {
            return Attempt::Needs(needed);
        }
        let size = self.size(cut(least), limit);
        if size > limit {
            return Attempt::Needs(needed.min(size));
        }
        let mut to = least + fitting(&self.first[least..], limit - size);
        if to >= self.first.len() {
            // All of it would fit as a slice, but not as what it is; leave something for the next page.
            to = self.first.floor_char_boundary(self.first.len() - 1);
        }
        while to > least {
            let size = self.size(cut(to), limit);
            if size <= limit {
                break;
            }
            to = self.first.floor_char_boundary(to - (size - limit).min(to - least));
        }
        Attempt::ValueRule(self.build(cut(to.max(least)), limit))
    }

    fn value(&self, index: usize, choice: Choice) -> Value {
        match choice.cut {
            Some(to) if index == 0 => self.page.items[0].sliced(&self.first, self.begun, to),
            _ => self.values[index].clone(),
        }
    }

    /// The bytes of the whole envelope, without building it.
    fn size(&self, choice: Choice, limit: usize) -> usize {
        let skeleton = self.skeleton(choice, limit);
        let mut bytes = canonical_value(&skeleton).len() - "0".len();
        for (index, item) in self.page.items[..choice.taken].iter().enumerate() {
            bytes += match choice.cut {
                Some(_) if index == 0 => canonical_value(&self.value(0, choice)).len(),
                _ => self.sizes[index],
            };
            bytes = match item.slot {
                Slot::Value(_) => bytes - "null".len(),
                Slot::List(_) => bytes,
            };
        }
        for slot in &self.page.slots {
            let count = self.page.items[..choice.taken].iter().filter(|item| item.slot == *slot).count();
            if matches!(slot, Slot::List(_)) {
                bytes += count.saturating_sub(1);
            }
        }
        with_its_own_digits(bytes)
    }

    /// The envelope with empty lists and `used` still zero.
    fn skeleton(&self, choice: Choice, limit: usize) -> Value {
        let truncated = choice.cut.is_some() || choice.taken < self.page.items.len();
        let mut result = Value::Object(self.page.head.clone());
        for slot in &self.page.slots {
            match slot {
                Slot::List(pointer) => put(&mut result, pointer, json!([])),
                Slot::Value(pointer) => put(&mut result, pointer, Value::Null),
            }
        }
        for stream in 0..self.page.streams.len() {
            let pagination = self.pagination(stream, choice);
            put(&mut result, self.page.streams[stream].pagination, pagination);
        }
        result["truncated"] = json!(truncated);
        result["budget"] = json!({"used": 0, "limit": limit, "truncated": truncated});
        let Value::Object(result) = result else { unreachable!("built from a map above") };
        if truncated {
            let mut frame = self.frame.clone();
            frame.warnings.push(CUT_WARNING.into());
            return frame.around(result);
        }
        self.frame.around(result)
    }

    fn pagination(&self, stream: usize, choice: Choice) -> Value {
        let mine = |item: &&Item| item.stream == stream;
        let start = self.request.start.as_ref();
        let started = start.map_or(0, |start| start.stream);
        let asked = start.is_none() || started == stream;
        let delivered: Vec<&Item> = self.page.items[..choice.taken].iter().filter(mine).collect();
        let total = self.page.items.iter().filter(mine).count();
        let inside = match choice.cut {
            Some(to) if self.page.items[0].stream == stream => {
                Some(ItemOffset { offset: to, digest: digest(&self.first) })
            }
            _ => None,
        };
        let more = asked && (self.page.streams[stream].more || delivered.len() < total || inside.is_some());
        let next = more.then(|| {
            let sort_key = match delivered.last() {
                Some(item) => Some(item.sort_key.clone()),
                None => start.and_then(|start| start.sort_key.clone()),
            };
            Cursor { stream, sort_key, inside }.encode(&self.request.key)
        });
        let listed = delivered.iter().filter(|item| matches!(item.slot, Slot::List(_))).count();
        json!(Pagination {
            cursor: self.request.given.clone().filter(|_| asked),
            next_cursor: next,
            has_more: more,
            limit: self.request.limit,
            count: listed,
        })
    }

    fn build(&self, choice: Choice, limit: usize) -> Value {
        let mut envelope = self.skeleton(choice, limit);
        let result = &mut envelope["result"];
        for (index, item) in self.page.items[..choice.taken].iter().enumerate() {
            let value = self.value(index, choice);
            match item.slot {
                Slot::Value(pointer) => put(result, pointer, value),
                Slot::List(pointer) => {
                    if let Some(Value::Array(list)) = result.pointer_mut(pointer) {
                        list.push(value);
                    }
                }
            }
        }
        if self.page.reversed {
            for slot in &self.page.slots {
                if let Slot::List(pointer) = slot
                    && let Some(Value::Array(list)) = result.pointer_mut(pointer)
                {
                    list.reverse();
                }
            }
        }
        result["budget"]["used"] = json!(self.size(choice, limit));
        envelope
    }
}

/// Sets what a pointer points at; the objects on the way are in the head already.
fn put(result: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    if let Some(Value::Object(parent)) = result.pointer_mut(parent) {
        parent.insert(name.to_owned(), value);
    }
}

/// `bytes` and the digits of the result itself.
fn with_its_own_digits(bytes: usize) -> usize {
    let digits = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut total = bytes + 1;
    while bytes + digits(total) != total {
        total = bytes + digits(total);
    }
    total
}

/// How many bytes of a text fit into so many bytes of a JSON string.
fn fitting(text: &str, room: usize) -> usize {
    let mut spent = 0;
    for (at, character) in text.char_indices() {
        spent += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\u{0}'..'\u{20}' => 6,
            other => other.len_utf8(),
        };
        if spent > room {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame() -> Frame {
        Frame {
            intent: "show",
            timestamp: "2026-01-02T03:04:05.678Z".into(),
            workspace: None,
            warnings: vec![],
            suggestions: vec![json!({"reason": "x".repeat(50)})],
        }
    }

    fn request(max_chars: usize, given: Option<String>) -> PageRequest {
        let key = CursorKey::new("show", "w", &json!({}), "");
        let start = given.as_ref().map(|text| Cursor::decode(text, &key).unwrap());
        PageRequest { limit: 50, max_chars, given, start, key }
    }

    /// A page of what is left behind the start of a request.
    fn page(contents: &[String], request: &PageRequest) -> Page {
        let first = request.first_above().unwrap().unwrap_or(0) as usize;
        let items = contents.iter().enumerate().skip(first).map(|(at, content)| {
            let value = json!({"seq": at, "content": content});
            Item::new("/entries", SortKey::ints(&[at as i64]), value, Cut::Content)
        });
        Page::list(json!({"doc": "notes"}), "/entries", items.collect(), false)
    }

    #[test]
    fn size_includes_its_own_digits() {
        for bytes in 0..20_000 {
            let total = with_its_own_digits(bytes);
            assert_eq!(bytes + total.to_string().len(), total);
        }
    }

    #[test]
    fn budget_below_the_minimum_reports_the_minimum() {
        let contents = vec!["x".repeat(5000)];
        let small = request(100, None);
        let failure = page(&contents, &small).render(frame(), &small).unwrap_err();
        assert_eq!(failure.code(), WorkErrorCode::BudgetExceeded);
        let minimum = failure.to_value()["minimum"].as_u64().unwrap() as usize;
        let enough = request(minimum, None);
        let envelope = page(&contents, &enough).render(frame(), &enough).unwrap();
        assert!(envelope.text().len() <= minimum);
        let less = request(minimum - 1, None);
        assert!(page(&contents, &less).render(frame(), &less).is_err());
    }

    proptest! {
        #[test]
        fn pages_fit_and_join_to_the_whole(
            contents in prop::collection::vec("[a-z\"\n\u{1}é😀]{0,300}", 0..12),
            max_chars in 600_usize..3000,
        ) {
            let mut joined = vec![String::new(); contents.len()];
            let mut cursor = None;
            for round in 0.. {
                prop_assert!(round < 2000, "the walk ends");
                let request = request(max_chars, cursor.clone());
                let envelope = page(&contents, &request).render(frame(), &request).unwrap();
                let result = &envelope.value()["result"];
                prop_assert!(envelope.text().len() <= max_chars);
                prop_assert_eq!(result["budget"]["used"].as_u64().unwrap() as usize, envelope.text().len());
                for entry in result["entries"].as_array().unwrap() {
                    joined[entry["seq"].as_u64().unwrap() as usize].push_str(entry["content"].as_str().unwrap());
                }
                prop_assert_eq!(&result["truncated"], &result["budget"]["truncated"]);
                cursor = result["pagination"]["next_cursor"].as_str().map(str::to_owned);
                prop_assert_eq!(&result["pagination"]["has_more"], &json!(cursor.is_some()));
                if cursor.is_none() { break; }
            }
            prop_assert_eq!(joined, contents);
        }
    }
}
