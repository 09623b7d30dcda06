//! The exported tables: their columns, and rules for values and rows.
//!
//! Import and store check use the same rules, on both backends. A value is checked against its column, a row against the
//! rule of the table; [`crate::store_check`] checks references between rows.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::catalog::WorkTool;
use crate::graph::conflict;
use crate::graph::id::{GraphKey, GraphKind, GraphNodeId, GraphRel, GraphType};
use crate::id::{TargetId, TargetKind};
use crate::limits;
use crate::memory::branch;
use crate::name::{BranchName, DocName, Tag, WorkspaceName};
use crate::path::{MAX_DEPTH, StepPath};
use crate::plan::step::Evidence;
use crate::plan::target::stored;
use crate::request::holds_nul;
use crate::store::Arg;

/// The largest number that fits a row of the search index.
const LARGEST: i64 = (1 << 40) - 1;

/// What a column may contain.
#[derive(Clone, Copy)]
pub(crate) struct ColumnRule {
    /// In words, for error messages.
    what: &'static str,
    fits: ValueRule,
    nullable: bool,
}

#[derive(Clone, Copy)]
enum ValueRule {
    Int(fn(i64) -> bool),
    Text(fn(&str) -> bool),
}

const fn int(what: &'static str, fits: fn(i64) -> bool) -> ColumnRule {
    ColumnRule { what, fits: ValueRule::Int(fits), nullable: false }
}

const fn text(what: &'static str, fits: fn(&str) -> bool) -> ColumnRule {
    ColumnRule { what, fits: ValueRule::Text(fits), nullable: false }
}

impl ColumnRule {
    const fn or_null(self) -> Self {
        Self { nullable: true, ..self }
    }

    fn fit(self, value: &Value) -> bool {
        match (self.fits, value) {
            (_, Value::Null) => self.nullable,
            (ValueRule::Int(fits), Value::Number(number)) => number.as_i64().is_some_and(fits),
            (ValueRule::Text(fits), Value::String(text)) => !text.contains('\0') && fits(text),
            _ => false,
        }
    }

    fn arg(self, value: &Value) -> Arg<'_> {
        match self.fits {
            ValueRule::Int(_) => value.as_i64().into(),
            ValueRule::Text(_) => value.as_str().into(),
        }
    }
}

/// Whether a text is the canonical JSON of such a list, without NUL.
fn is_list<T: DeserializeOwned + Serialize>(text: &str, sorted: impl Fn(&[T]) -> bool) -> bool {
    let list: Result<Vec<T>, _> = serde_json::from_str(text);
    let good = list.is_ok_and(|list| sorted(&list) && stored(&list) == text);
    good && (!text.contains("\\u0000") || is_data(text))
}

fn is_target(key: i64) -> bool {
    let id = TargetId::from_key(key);
    id.key() == key && id != TargetId::new(id.kind, 0)
}

fn is_data(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|data: Value| !holds_nul(&data))
}

fn is_payload(text: &str) -> bool {
    let of_records = |payload: &Value| payload["before"].is_object() && payload["after"].is_object();
    serde_json::from_str(text).is_ok_and(|payload: Value| of_records(&payload) && !holds_nul(&payload))
}

const FLAG: ColumnRule = int("0 or 1", |number| (0..=1).contains(&number));
const RANK: ColumnRule = int("0, 1 or 2", |number| (0..=2).contains(&number));
const COUNT: ColumnRule = int("a count", |number| (0..=LARGEST).contains(&number));
const NUMBER: ColumnRule = int("a number from 1 on", |number| (1..=LARGEST).contains(&number));
const TIME: ColumnRule = int("a time", |ms| jiff::Timestamp::from_millisecond(ms).is_ok());
const TARGET: ColumnRule = int("a plan or task", is_target);
const BRANCH: ColumnRule = int("a branch", |number| match branch::target_of(number) {
    Some(target) => is_target(target.key()) && branch::number_of(target) == number,
    None => number >= 1,
});
const DECLARED: ColumnRule = int("a set of checkpoints", |bits| bits & !0b11100 == 0);
const CONFIRMED: ColumnRule = int("a set of checkpoints", |bits| bits & !0b11111 == 0);

const TEXT: ColumnRule = text("a text without NUL", |_| true);
const TITLE: ColumnRule = text("a title", |title| limits::title(title).is_ok());
const TEXTS: ColumnRule = text("a list of texts", |list| is_list(list, |_: &[String]| true));
const TAGS: ColumnRule =
    text("a list of tags", |list| is_list(list, |tags: &[Tag]| tags.is_sorted_by(|a, b| a < b)));
const TASKS: ColumnRule =
    text("a list of tasks", |list| is_list(list, |tasks: &[TargetId]| tasks.is_sorted_by(|a, b| a < b)));
const EVIDENCE: ColumnRule = text("a list of evidence", |list| is_list(list, |_: &[Evidence]| true));
const DATA: ColumnRule = text("JSON without NUL", is_data);
const PAYLOAD: ColumnRule = text("what an event changed", is_payload);
const STATUS: ColumnRule = text("a status", |word| matches!(word, "todo" | "active" | "done"));
const OPEN: ColumnRule = text("a status", |word| matches!(word, "open" | "resolved"));
const RESOLUTION: ColumnRule = text("a resolution", |word| matches!(word, "use_from" | "use_into"));
const ENTRY: ColumnRule = text("a kind of entry", |word| matches!(word, "note" | "event"));
const FORMAT: ColumnRule = text("a format", |format| (1..=64).contains(&format.len()));
const TYPE: ColumnRule = text("a kind of event", |word| {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
});
const TOOL: ColumnRule = text("a tool", |name| WorkTool::by_name(name).is_some());
const WORKSPACE: ColumnRule = text("a name", |name| WorkspaceName::parse(name).is_ok());
const NAME: ColumnRule = text("a name", |name| BranchName::parse(name).is_ok());
const DOC: ColumnRule = text("a document", |name| DocName::parse(name).is_ok());
const PLACE: ColumnRule = text("a place of a step", |key| {
    StepPath::from_sort_key(key).is_some_and(|path| path.depth() <= MAX_DEPTH && path.sort_key() == key)
});
const NODE_TYPE: ColumnRule =
    text("a graph type", |name| GraphType::parse(name).is_ok_and(|kind| kind.as_str() == name));
const CONFLICT: ColumnRule = text("a conflict", |id| conflict::parse_id(id).is_ok());

pub(crate) struct Table {
    pub name: &'static str,
    /// The columns that rows are sorted by.
    pub order: &'static [&'static str],
    pub columns: &'static [(&'static str, ColumnRule)],
    /// The rule between the columns of a row.
    rule: fn(&Cells<'_>) -> Result<(), &'static str>,
}

/// A row whose values are valid.
struct Cells<'a> {
    table: &'a Table,
    values: &'a [Value],
}

impl Cells<'_> {
    fn get(&self, name: &str) -> &Value {
        let at = self.table.columns.iter().position(|(column, _)| *column == name);
        at.and_then(|at| self.values.get(at)).unwrap_or(&Value::Null)
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.get(name).as_i64()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).as_str()
    }

    fn has(&self, name: &str) -> bool {
        !self.get(name).is_null()
    }

    fn has_none(&self, names: &[&str]) -> bool {
        names.iter().all(|name| !self.has(name))
    }

    fn flag(&self, name: &str) -> bool {
        self.int(name) == Some(1)
    }

    /// Whether a column is empty, or less than another.
    fn comes_before(&self, name: &str, other: &str) -> bool {
        self.int(name).is_none_or(|number| Some(number) < self.int(other))
    }
}

fn holds(rule: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if rule { Ok(()) } else { Err(otherwise) }
}

impl Table {
    /// The names of the columns, as a statement lists them.
    pub(crate) fn list(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {} WHERE ws = $1 ORDER BY {}", self.list(), self.name, self.order.join(", "))
    }

    /// Checks a row, given in column order.
    pub(crate) fn validate(&self, values: &[Value]) -> Result<(), String> {
        let invalid = self.columns.iter().zip(values).find(|((_, holds), value)| !holds.fit(value));
        if let Some(((column, holds), _)) = invalid {
            return Err(format!("`{column}` of {} is not {}", self.name, holds.what));
        }
        let broken = (self.rule)(&Cells { table: self, values });
        broken.map_err(|rule| format!("a row of {}: {rule}", self.name))
    }

    /// The row as arguments of a statement. PostgreSQL needs the type of a null value.
    pub(crate) fn args<'a>(&self, values: &'a [Value]) -> impl Iterator<Item = Arg<'a>> {
        self.columns.iter().zip(values).map(|((_, holds), value)| holds.arg(value))
    }

    /// The sort key of a row, unique in the table.
    pub(crate) fn key(&self, values: &[Value]) -> Vec<Key> {
        let cells = Cells { table: self, values };
        let part = |name: &&str| match cells.text(name) {
            Some(text) => Key::Text(text.to_owned()),
            None => Key::Int(cells.int(name).unwrap_or_default()),
        };
        self.order.iter().map(part).collect()
    }
}

/// A part of the key of a row.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Int(i64),
    Text(String),
}

pub(crate) const WORKSPACES: Table = Table {
    name: "workspaces",
    order: &["name"],
    columns: &[
        ("name", WORKSPACE),
        ("created_ms", TIME),
        ("plans", COUNT),
        ("tasks", COUNT),
        ("steps", COUNT),
        ("events", COUNT),
        ("seqs", COUNT),
        ("branches", COUNT),
        ("focus", TARGET.or_null()),
        ("checkout", BRANCH),
    ],
    rule: |_| Ok(()),
};

pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "targets",
        order: &["target"],
        columns: &[
            ("target", TARGET),
            ("parent", TARGET.or_null()),
            ("title", TITLE),
            ("description", TEXT.or_null()),
            ("contract", TEXT.or_null()),
            ("contract_data", DATA.or_null()),
            ("status", STATUS),
            ("priority", RANK),
            ("tags", TAGS),
            ("depends_on", TASKS),
            ("blockers", TEXTS),
            ("claim_agent", TEXT.or_null()),
            ("claim_expires_ms", TIME.or_null()),
            ("notes", COUNT),
            ("revision", COUNT),
            ("deleted", FLAG),
            ("created_ms", TIME),
            ("updated_ms", TIME),
            ("search_seq", COUNT),
            ("undone", FLAG),
        ],
        rule: |row| {
            let kind = |name| row.int(name).map(|key| TargetId::from_key(key).kind);
            let parent = (kind("target") == Some(TargetKind::Task)).then_some(TargetKind::Plan);
            holds(kind("parent") == parent, "a task has a plan as parent, a plan has none")?;
            holds(
                row.has("claim_agent") == row.has("claim_expires_ms"),
                "a claim has an agent and an expiry",
            )?;
            is_indexed(row)
        },
    },
    Table {
        name: "dependencies",
        order: &["task", "needs"],
        columns: &[("task", TARGET), ("needs", TARGET)],
        rule: |_| Ok(()),
    },
    Table {
        name: "steps",
        order: &["step"],
        columns: &[
            ("step", NUMBER),
            ("target", TARGET),
            ("place", PLACE),
            ("title", TITLE),
            ("success_criteria", TEXTS),
            ("tests", TEXTS),
            ("blockers", TEXTS),
            ("checkpoints", DECLARED),
            ("confirmed", CONFIRMED),
            ("completed", FLAG),
            ("evidence", EVIDENCE),
            ("notes", COUNT),
            ("revision", COUNT),
            ("deleted", FLAG),
            ("created_ms", TIME),
            ("updated_ms", TIME),
            ("search_seq", COUNT),
        ],
        rule: is_indexed,
    },
    Table {
        name: "events",
        order: &["event"],
        columns: &[
            ("event", NUMBER),
            ("ts_ms", TIME),
            ("target", TARGET),
            ("place", PLACE.or_null()),
            ("type", TYPE),
            ("tool", TOOL),
            ("operation", COUNT),
            ("undone", RANK),
            ("revision", COUNT),
            ("payload", PAYLOAD),
        ],
        rule: |row| {
            holds(row.int("operation") <= row.int("event"), "an operation starts with the first event")?;
            let is_first = row.int("operation") == row.int("event");
            holds(is_first || row.int("undone") == Some(0), "only an operation can be undone")
        },
    },
    Table {
        name: "branches",
        order: &["branch"],
        columns: &[
            ("branch", BRANCH),
            ("name", NAME),
            ("base", BRANCH.or_null()),
            ("base_seq", COUNT),
            ("created_ms", TIME),
        ],
        rule: |row| {
            let (number, name) =
                (row.int("branch").unwrap_or_default(), row.text("name").unwrap_or_default());
            let is_main = number == branch::MAIN_NUMBER;
            let good = match branch::target_of(number) {
                Some(target) => target.branch() == name,
                None => {
                    is_main == (name == branch::MAIN)
                        && BranchName::parse(name).is_ok_and(|name| !name.is_reserved())
                }
            };
            holds(good, "the branch name does not match the branch")?;
            let starts = !is_main && branch::target_of(number).is_none();
            holds(row.has("base") == starts, "only branches other than main and those of targets have a base")
        },
    },
    Table {
        name: "entries",
        order: &["seq"],
        columns: &[
            ("seq", NUMBER),
            ("ts_ms", TIME),
            ("branch", BRANCH),
            ("doc", DOC),
            ("kind", ENTRY),
            ("title", TITLE.or_null()),
            ("format", FORMAT.or_null()),
            ("meta", DATA.or_null()),
            ("content", TEXT.or_null()),
            ("event", NUMBER.or_null()),
            ("origin", NUMBER.or_null()),
        ],
        rule: |row| {
            if row.text("kind") == Some("event") {
                let said = row.has_none(&["title", "format", "meta", "content", "origin"]);
                holds(said && row.has("event"), "an event entry has an event and no other content")?;
                let trace = row.int("branch").and_then(branch::target_of).map(TargetId::trace_doc);
                return holds(
                    trace.as_deref() == row.text("doc"),
                    "an event entry is in the trace of the target",
                );
            }
            holds(row.has("content") && !row.has("event"), "a note has content and no event")?;
            holds(row.comes_before("origin", "seq"), "a copy comes after the original")
        },
    },
    Table {
        name: "graph",
        order: &["seq"],
        columns: &[
            ("seq", NUMBER),
            ("branch", BRANCH),
            ("doc", DOC),
            ("kind", FLAG),
            ("id", TEXT),
            ("next", NUMBER.or_null()),
            ("revision", COUNT),
            ("deleted", FLAG),
            ("type", NODE_TYPE.or_null()),
            ("title", TITLE.or_null()),
            ("body", TEXT.or_null()),
            ("status", TITLE.or_null()),
            ("tags", TAGS.or_null()),
            ("meta", DATA.or_null()),
            ("start", TEXT.or_null()),
            ("goal", TEXT.or_null()),
            ("ts_ms", TIME),
            ("origin", NUMBER.or_null()),
        ],
        rule: |row| {
            let key = graph_key(row)?;
            let ends = match &key {
                GraphKey::Node(_) => (None, None),
                GraphKey::Edge { from, to, .. } => (Some(from.as_str()), Some(to.as_str())),
            };
            holds(
                (row.text("start"), row.text("goal")) == ends,
                "only an edge has ends, and they match the key",
            )?;
            let is_node = key.kind() == GraphKind::Node && !row.flag("deleted");
            holds(
                if is_node {
                    row.has("type") && row.has("tags")
                } else {
                    row.has_none(&["type", "title", "body", "status", "tags"])
                },
                "only a live node has type and tags",
            )?;
            holds(!row.flag("deleted") || !row.has("meta"), "a tombstone has no content")?;
            holds(row.comes_before("origin", "seq"), "a copy comes after the original")
        },
    },
    Table {
        name: "merges",
        order: &["source", "doc"],
        columns: &[("source", BRANCH), ("doc", DOC), ("seq", COUNT)],
        rule: |_| Ok(()),
    },
    Table {
        name: "conflicts",
        order: &["seq"],
        columns: &[
            ("seq", NUMBER),
            ("conflict", CONFLICT),
            ("source", BRANCH),
            ("branch", BRANCH),
            ("doc", DOC),
            ("kind", FLAG),
            ("id", TEXT),
            ("base_seq", NUMBER.or_null()),
            ("theirs_seq", NUMBER.or_null()),
            ("ours_seq", NUMBER.or_null()),
            ("status", OPEN),
            ("resolution", RESOLUTION.or_null()),
            ("created_ms", TIME),
            ("resolved_ms", TIME.or_null()),
        ],
        rule: |row| {
            graph_key(row)?;
            let resolved = row.text("status") == Some("resolved");
            let so = ["resolution", "resolved_ms"].iter().all(|name| row.has(name) == resolved);
            holds(so, "only a resolved conflict has a resolution")
        },
    },
];

/// Live records are indexed, deleted ones are not.
fn is_indexed(row: &Cells<'_>) -> Result<(), &'static str> {
    holds(
        row.flag("deleted") == (row.int("search_seq") == Some(0)),
        "live records are indexed, deleted ones are not",
    )
}

/// The key of a version or conflict, in the form that is stored.
fn graph_key(row: &Cells<'_>) -> Result<GraphKey, &'static str> {
    let kind = GraphKind::from_number(row.int("kind").unwrap_or_default());
    let text = row.text("id").unwrap_or_default();
    let is_id = |id: &GraphNodeId| GraphNodeId::parse(id.as_str()).is_ok_and(|canonical| canonical == *id);
    let is_rel = |rel: &GraphRel| GraphRel::parse(rel.as_str()).is_ok_and(|canonical| canonical == *rel);
    let is_canonical = |key: &GraphKey| match key {
        GraphKey::Node(id) => is_id(id),
        GraphKey::Edge { from, rel, to } => {
            is_id(from) && is_rel(rel) && is_id(to) && key.to_string() == text
        }
    };
    GraphKey::from_stored(kind, text).filter(is_canonical).ok_or("`id` is not a graph key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoreLocation, args};

    /// A column missing here would be missing in every export.
    #[tokio::test]
    async fn every_column_of_the_schema_is_listed() {
        let folder = tempfile::TempDir::new().unwrap();
        let store = Store::open(&StoreLocation::Sqlite(folder.path().join("store.db"))).await.unwrap();
        let mut tx = store.read().await.unwrap();
        let mut described: Vec<&str> = Vec::new();
        for table in std::iter::once(&WORKSPACES).chain(TABLES) {
            let sql =
                "SELECT name, type, \"notnull\" FROM pragma_table_info($1) WHERE name <> 'ws' ORDER BY cid";
            let rows = tx.rows(sql, args![table.name]).await.unwrap();
            let found =
                rows.iter().map(|row| (row.text(0).unwrap(), row.text(1).unwrap(), row.int(2).unwrap() == 0));
            let ours = table.columns.iter().map(|(name, holds)| {
                let kind = if matches!(holds.fits, ValueRule::Int(_)) { "INTEGER" } else { "TEXT" };
                ((*name).to_owned(), kind.to_owned(), holds.nullable)
            });
            assert_eq!(found.collect::<Vec<_>>(), ours.collect::<Vec<_>>(), "{}", table.name);
            described.push(table.name);
        }
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'
            AND name NOT LIKE 'search%' AND name <> 'tenon_schema' ORDER BY name";
        let tables = tx.rows(sql, args![]).await.unwrap();
        described.sort_unstable();
        assert_eq!(tables.iter().map(|row| row.text(0).unwrap()).collect::<Vec<_>>(), described);
    }

    #[test]
    fn escaped_backslash_is_not_nul() {
        assert!(TEXTS.fit(&Value::from(stored(&["a \\u0000 b"]))));
        assert!(!TEXTS.fit(&Value::from(stored(&["a \0 b"]))));
        assert!(DATA.fit(&Value::from(r#"{"a":"\\u0000"}"#)));
        assert!(!DATA.fit(&Value::from(r#"{"a\u0000":1}"#)));
        assert!(!TEXTS.fit(&Value::from("[ ]")));
    }
}
