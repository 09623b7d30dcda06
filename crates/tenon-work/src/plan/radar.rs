//! The state of a plan or task in few words: the radar, and what handoff and resume add to it.
//!
//! A radar is a list of items in order of worth, so that a small budget gets the best of it and its cursor the
//! rest. Places are positions in that list; cursors are therefore bound to the revision of the target.

use serde_json::{Map, Value, json};

use super::step::{self, Counts, StepRow};
use super::target::{self, Status, TargetRow, reasoning_ref};
use crate::cursor::SortKey;
use crate::id::TargetId;
use crate::page::{Cut, Item, Page, PageRequest, Slot, Stream, object};
use crate::store::{Row, StoreError, Tx, args};

/// How many of the steps to come the radar names.
const NEXT: usize = 5;

/// How many open steps are read: enough for the longest chain of parents and the next steps.
pub(crate) const AHEAD: i64 = 24;

/// Everything a radar is made from.
pub(crate) struct Radar {
    pub target: TargetRow,
    pub counts: Counts,
    /// The step to work on: the first open one whose children are done.
    pub now: Option<StepRow>,
    next: Vec<StepRow>,
    waits_for: Vec<(TargetId, String)>,
}

/// An item without its position, which it gets when the list is complete.
pub(crate) struct RadarItem {
    pub slot: Slot,
    pub value: Value,
    pub keep: &'static [&'static str],
}

const STEP_IDS: &[&str] = &["step_id", "path"];

impl Radar {
    pub(crate) async fn read(tx: &mut Tx, ws: i64, target: TargetRow) -> Result<Self, StoreError> {
        let counts = step::counts(tx, ws, target.id).await?;
        let mut open = Vec::new();
        if counts.completed < counts.total {
            open = step::open(tx, ws, target.id, AHEAD).await?;
        }
        let now = step::take_first_leaf(&mut open);
        open.truncate(NEXT);
        let waits_for = match target.fields.depends_on.is_empty() {
            true => Vec::new(),
            false => waits_for(tx, ws, target.id).await?,
        };
        Ok(Self { target, counts, now, next: open, waits_for })
    }

    /// The part of every answer about a target that no budget cuts.
    pub(crate) fn head(&self) -> Map<String, Value> {
        let fields = &self.target.fields;
        let first_open = self.now.as_ref().map(|step| json!({"step_id": step.id, "path": step.fields.path}));
        object(json!({
            "target": {
                "id": self.target.id,
                "kind": self.target.id.kind,
                "status": fields.status,
                "revision": fields.revision,
            },
            "reasoning_ref": reasoning_ref(self.target.id),
            "radar": {},
            "steps": {
                "total": self.counts.total,
                "open": self.counts.total - self.counts.completed,
                "completed": self.counts.completed,
                "missing_criteria": self.counts.missing_criteria,
                "missing_tests": self.counts.missing_tests,
                "first_open": first_open,
            },
        }))
    }

    pub(crate) const SLOTS: [Slot; 6] = [
        Slot::Value("/target/title"),
        Slot::Value("/radar/now"),
        Slot::Value("/radar/why"),
        Slot::List("/radar/verify"),
        Slot::List("/radar/next"),
        Slot::List("/radar/blockers"),
    ];

    pub(crate) fn items(&self) -> Vec<RadarItem> {
        let fields = &self.target.fields;
        let item = |slot, value, keep| RadarItem { slot, value, keep };
        let mut parts = vec![item(Slot::Value("/target/title"), json!(fields.title), &[][..])];
        let now = match (&self.now, fields.status) {
            (Some(step), _) => format!("{} {}", step.fields.path, step.fields.title),
            (None, Status::Done) => "done".to_owned(),
            (None, _) if self.counts.total > 0 => "all steps are done".to_owned(),
            (None, _) => "no steps yet".to_owned(),
        };
        parts.push(item(Slot::Value("/radar/now"), json!(now), &[]));
        if let Some(why) = fields.contract.as_ref().or(fields.description.as_ref()) {
            parts.push(item(Slot::Value("/radar/why"), json!(why), &[]));
        }
        for value in self.blockers() {
            parts.push(item(Slot::List("/radar/blockers"), value, &["kind", "id"]));
        }
        for value in self.verify() {
            parts.push(item(Slot::List("/radar/verify"), value, &["checkpoint"]));
        }
        for step in &self.next {
            let value = json!({"step_id": step.id, "path": step.fields.path, "title": step.fields.title});
            parts.push(item(Slot::List("/radar/next"), value, STEP_IDS));
        }
        parts
    }

    /// What must be confirmed before the current step can close.
    fn verify(&self) -> Vec<Value> {
        let Some(step) = &self.now else { return Vec::new() };
        let mut verify = Vec::new();
        for checkpoint in step.fields.missing() {
            let texts = match checkpoint {
                step::Checkpoint::Criteria => &step.fields.success_criteria[..],
                step::Checkpoint::Tests => &step.fields.tests[..],
                _ => &[],
            };
            if texts.is_empty() {
                verify.push(json!({"checkpoint": checkpoint, "text": null}));
            }
            verify.extend(texts.iter().map(|text| json!({"checkpoint": checkpoint, "text": text})));
        }
        verify
    }

    fn blockers(&self) -> Vec<Value> {
        let mut blockers = Vec::new();
        for text in &self.target.fields.blockers {
            blockers.push(json!({"kind": "task", "id": self.target.id, "text": text}));
        }
        for (id, title) in &self.waits_for {
            blockers.push(json!({"kind": "dependency", "id": id, "text": title}));
        }
        if let Some(step) = &self.now {
            for text in &step.fields.blockers {
                blockers.push(json!({"kind": "step", "id": step.id, "text": text}));
            }
        }
        blockers
    }

    /// What can go wrong: everything that blocks, and steps that closed without evidence for their tests.
    pub(crate) fn risks(&self, steps: &[StepRow]) -> Vec<Value> {
        let mut risks = self.blockers();
        let current = self.now.as_ref().map(|step| step.id);
        for step in steps.iter().filter(|step| !step.fields.completed && Some(step.id) != current) {
            for text in &step.fields.blockers {
                risks.push(json!({"kind": "step", "id": step.id, "text": text}));
            }
        }
        risks
    }
}

/// One page of a radar.
pub(crate) fn page(
    head: Map<String, Value>,
    slots: Vec<Slot>,
    parts: Vec<RadarItem>,
    request: &PageRequest,
) -> Result<Page, crate::error::WorkError> {
    let first = usize::try_from(request.first_above()?.unwrap_or(0)).unwrap_or(usize::MAX);
    let total = parts.len();
    let items: Vec<Item> = parts
        .into_iter()
        .enumerate()
        .skip(first)
        .take(request.limit)
        .map(|(at, item)| Item {
            slot: item.slot,
            stream: 0,
            sort_key: SortKey::ints(&[target::signed(at as u64)]),
            value: item.value,
            cut: Cut::Json(item.keep),
        })
        .collect();
    let more = first.saturating_add(items.len()) < total;
    Ok(Page {
        head,
        slots,
        items,
        streams: vec![Stream { pagination: "/pagination", more }],
        reversed: false,
    })
}

/// The unfinished tasks that a task depends on.
async fn waits_for(tx: &mut Tx, ws: i64, id: TargetId) -> Result<Vec<(TargetId, String)>, StoreError> {
    let sql =
        "SELECT t.target, t.title FROM dependencies d JOIN targets t ON t.ws = d.ws AND t.target = d.needs
        WHERE d.ws = $1 AND d.task = $2 AND t.status <> 'done' AND t.deleted = 0 ORDER BY t.target LIMIT 100";
    let rows = tx.rows(sql, args![ws, id.key()]).await?;
    rows.iter().map(|row: &Row| Ok((TargetId::from_key(row.int(0)?), row.text(1)?))).collect()
}
