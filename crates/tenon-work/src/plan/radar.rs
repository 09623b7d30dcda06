//! The state of a plan or task in few words: the radar, and what handoff and resume add to it.
//!
//! A radar is a list of items in order of importance, so that a small budget gets the most important ones. Sort keys are
//! positions in that list; cursors are therefore bound to the revision of the target.

use serde::Serialize;
use serde_json::{Value, json};

use super::step::{self, Counts, StepRow};
use super::target::{self, ReasoningRef, Status, TargetRow, reasoning_ref};
use crate::cursor::SortKey;
use crate::id::{StepId, TargetId, TargetKind};
use crate::page::{Cut, Item, NoHead, Page, PageRequest, Slot, Stream, object};
use crate::path::StepPath;
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
    slot: Slot,
    value: Value,
    keep: &'static [&'static str],
}

impl RadarItem {
    pub(crate) fn new(slot: Slot, value: impl Serialize, keep: &'static [&'static str]) -> Self {
        Self { slot, value: json!(value), keep }
    }
}

/// The head of `tasks_radar`, `tasks_handoff` and `tasks_resume`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RadarHead {
    pub target: Option<RadarTarget>,
    pub reasoning_ref: Option<ReasoningRef>,
    /// Filled in with the items.
    pub radar: NoHead,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepProgress>,
    /// `steps` of `tasks_resume`, where `steps` is the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<StepProgress>,
    /// The `task` argument; null if the focus was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<Option<TargetId>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RadarTarget {
    id: TargetId,
    kind: TargetKind,
    status: Status,
    revision: u64,
}

/// How far the steps of a target are.
#[derive(Debug, Serialize)]
pub(crate) struct StepProgress {
    total: i64,
    open: i64,
    completed: i64,
    missing_criteria: i64,
    missing_tests: i64,
    first_open: Option<FirstOpen>,
}

#[derive(Debug, Serialize)]
struct FirstOpen {
    step_id: StepId,
    path: StepPath,
}

#[derive(Debug, Serialize)]
struct NextStep<'a> {
    step_id: StepId,
    path: &'a StepPath,
    title: &'a str,
}

/// A checkpoint to confirm.
#[derive(Debug, Serialize)]
struct Verify<'a> {
    checkpoint: step::Checkpoint,
    text: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Blocker<'a> {
    kind: &'static str,
    id: String,
    text: &'a str,
}

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
    pub(crate) fn head(&self) -> RadarHead {
        let fields = &self.target.fields;
        RadarHead {
            target: Some(RadarTarget {
                id: self.target.id,
                kind: self.target.id.kind,
                status: fields.status,
                revision: fields.revision,
            }),
            reasoning_ref: Some(reasoning_ref(self.target.id)),
            ..RadarHead::default()
        }
    }

    pub(crate) fn progress(&self) -> StepProgress {
        StepProgress {
            total: self.counts.total,
            open: self.counts.total - self.counts.completed,
            completed: self.counts.completed,
            missing_criteria: self.counts.missing_criteria,
            missing_tests: self.counts.missing_tests,
            first_open: self
                .now
                .as_ref()
                .map(|step| FirstOpen { step_id: step.id, path: step.fields.path.clone() }),
        }
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
        let mut parts = vec![RadarItem::new(Slot::Value("/target/title"), &fields.title, &[])];
        let now = match (&self.now, fields.status) {
            (Some(step), _) => format!("{} {}", step.fields.path, step.fields.title),
            (None, Status::Done) => "done".to_owned(),
            (None, _) if self.counts.total > 0 => "all steps are done".to_owned(),
            (None, _) => "no steps yet".to_owned(),
        };
        parts.push(RadarItem::new(Slot::Value("/radar/now"), now, &[]));
        if let Some(why) = fields.contract.as_ref().or(fields.description.as_ref()) {
            parts.push(RadarItem::new(Slot::Value("/radar/why"), why, &[]));
        }
        for blocker in self.blockers() {
            parts.push(RadarItem::new(Slot::List("/radar/blockers"), blocker, &["kind", "id"]));
        }
        for check in self.verify() {
            parts.push(RadarItem::new(Slot::List("/radar/verify"), check, &["checkpoint"]));
        }
        for step in &self.next {
            let next = NextStep { step_id: step.id, path: &step.fields.path, title: &step.fields.title };
            parts.push(RadarItem::new(Slot::List("/radar/next"), next, &["step_id", "path"]));
        }
        parts
    }

    /// What must be confirmed before the current step can close.
    fn verify(&self) -> Vec<Verify<'_>> {
        let Some(step) = &self.now else { return Vec::new() };
        let mut verify = Vec::new();
        for checkpoint in step.fields.missing() {
            let texts = match checkpoint {
                step::Checkpoint::Criteria => &step.fields.success_criteria[..],
                step::Checkpoint::Tests => &step.fields.tests[..],
                _ => &[],
            };
            if texts.is_empty() {
                verify.push(Verify { checkpoint, text: None });
            }
            verify.extend(texts.iter().map(|text| Verify { checkpoint, text: Some(text) }));
        }
        verify
    }

    fn blockers(&self) -> Vec<Blocker<'_>> {
        let mut blockers = Vec::new();
        for text in &self.target.fields.blockers {
            blockers.push(Blocker { kind: "task", id: self.target.id.to_string(), text });
        }
        for (id, title) in &self.waits_for {
            blockers.push(Blocker { kind: "dependency", id: id.to_string(), text: title });
        }
        if let Some(step) = &self.now {
            for text in &step.fields.blockers {
                blockers.push(Blocker { kind: "step", id: step.id.to_string(), text });
            }
        }
        blockers
    }

    /// All blockers: of the target, of dependencies, and of every open step.
    pub(crate) fn risks<'a>(&'a self, steps: &'a [StepRow]) -> Vec<Blocker<'a>> {
        let mut risks = self.blockers();
        let current = self.now.as_ref().map(|step| step.id);
        for step in steps.iter().filter(|step| !step.fields.completed && Some(step.id) != current) {
            for text in &step.fields.blockers {
                risks.push(Blocker { kind: "step", id: step.id.to_string(), text });
            }
        }
        risks
    }
}

/// One page of a radar.
pub(crate) fn page(
    head: RadarHead,
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
        head: object(head),
        slots,
        items,
        streams: vec![Stream { pagination: "/pagination", more }],
        reversed: false,
    })
}

/// The unfinished tasks that a task depends on.
pub(crate) async fn waits_for(
    tx: &mut Tx,
    ws: i64,
    id: TargetId,
) -> Result<Vec<(TargetId, String)>, StoreError> {
    let sql =
        "SELECT t.target, t.title FROM dependencies d JOIN targets t ON t.ws = d.ws AND t.target = d.needs
        WHERE d.ws = $1 AND d.task = $2 AND t.status <> 'done' AND t.deleted = 0 ORDER BY t.target LIMIT 100";
    let rows = tx.rows(sql, args![ws, id.key()]).await?;
    rows.iter().map(|row: &Row| Ok((TargetId::from_key(row.int(0)?), row.text(1)?))).collect()
}
