//! `tasks_context`: plans and tasks, filtered, counted and paged: plans first, then tasks, by number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenon_contract::json::canonical_value;

use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::id::{TargetId, TargetKind};
use crate::limits;
use crate::memory::search_query::SearchQuery;
use crate::name::Tag;
use crate::page::{Cut, Item, Page, Slot, Stream, object};
use crate::plan::target::{Status, StepTotals, TargetRow, signed};
use crate::store::{Arg, Sql, StoreError, args, matching_sqlite};
use crate::work_call::{WorkCall, WorkReply, parse_plan, parse_target};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    kind: Option<TargetKind>,
    status: Option<Status>,
    parent: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    text: Option<String>,
    ids: Option<Vec<String>>,
}

macro_rules! columns {
    () => {
        "SELECT target, parent, title, description, contract, contract_data, status, priority, tags, depends_on,
        blockers, claim_agent, claim_expires_ms, notes, revision, deleted, created_ms, updated_ms, search_seq, undone"
    };
}

/// A statement of each of three kinds: without other filters than the status, with a plan or tags, with words. The first
/// kind names no other column, so that the index of statuses answers it alone.
macro_rules! of_each_filter {
    ($head:expr, $status:literal, $tail:literal) => {
        [
            Sql::same(filtered!($head, $status, "$5 = 0 AND $6 = '' AND $7 = ''", $tail)),
            Sql::same(filtered!(
                $head,
                $status,
                "($5 = 0 OR parent = $5) AND ($6 = '' OR tags LIKE $6 ESCAPE '!') AND $7 = ''",
                $tail
            )),
            Sql {
                sqlite: filtered!(
                    $head,
                    $status,
                    concat!(
                        "($5 = 0 OR parent = $5) AND ($6 = '' OR tags LIKE $6 ESCAPE '!')
                        AND ws * 1099511627776 + search_seq IN (",
                        matching_sqlite!("rowid", "$7", ""),
                        ")"
                    ),
                    $tail
                ),
                postgres: filtered!(
                    $head,
                    $status,
                    "($5 = 0 OR parent = $5) AND ($6 = '' OR tags LIKE $6 ESCAPE '!')
                    AND EXISTS (SELECT 1 FROM search s WHERE s.rowid = ws * 1099511627776 + search_seq
                    AND s.lexemes @@ CAST($7 AS tsquery))",
                    $tail
                ),
            },
        ]
    };
}

macro_rules! filtered {
    ($head:expr, $status:literal, $rest:expr, $tail:literal) => {
        concat!(
            $head,
            " FROM targets WHERE ws = $1 AND deleted = 0 AND target >= $2 AND target <= $3 AND ",
            $status,
            " AND ",
            $rest,
            " ",
            $tail
        )
    };
}

/// Without a status, and with one.
const LIST: [[Sql; 3]; 2] = [
    of_each_filter!(columns!(), "$4 = ''", "ORDER BY target LIMIT $8"),
    of_each_filter!(columns!(), "status = $4", "ORDER BY target LIMIT $8"),
];

/// Counts one status at a time: grouping takes twice as long.
const COUNT: [Sql; 3] = of_each_filter!("SELECT count(*)", "status = $4", "");

struct Filter {
    first: i64,
    last: i64,
    status: String,
    parent: i64,
    tags: String,
    text: Option<SearchQuery>,
}

impl Filter {
    /// The statement for this filter, and its arguments.
    fn bind<'a>(
        &'a self,
        statements: &[Sql; 3],
        status: &'a str,
        ws: i64,
        range: (i64, i64),
    ) -> (Sql, Vec<Arg<'a>>) {
        let sql = match &self.text {
            Some(_) => statements[2],
            None => statements[usize::from(self.parent != 0 || !self.tags.is_empty())],
        };
        let (first, last) = (self.first.max(range.0), self.last.min(range.1));
        let text = self.text.as_ref().map_or(Arg::from(""), SearchQuery::to_arg);
        let args: &[Arg<'_>] = args![ws, first, last, status, self.parent, self.tags.as_str(), text];
        (sql, args.to_vec())
    }

    /// The rows in a range, by number.
    fn list(&self, ws: i64, range: (i64, i64), most: i64) -> (Sql, Vec<Arg<'_>>) {
        let statements = &LIST[usize::from(!self.status.is_empty())];
        let (sql, mut values) = self.bind(statements, &self.status, ws, range);
        values.push(most.into());
        (sql, values)
    }
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let filter = filter(call, &args).await?;
    let request = call.paging("")?;
    let first = request.first_above()?.unwrap_or(0);
    let (rows, more, counts) = match &args.ids {
        None => {
            let (sql, values) = filter.list(call.ws.id, (first, i64::MAX), signed(request.limit as u64 + 1));
            let rows = call.tx.rows(sql, &values).await?;
            let mut rows = rows.iter().map(TargetRow::from_row).collect::<Result<Vec<_>, _>>()?;
            let more = rows.len() > request.limit;
            rows.truncate(request.limit);
            (rows, more, count(call, &filter).await?)
        }
        Some(ids) => {
            let rows = by_ids(call, &filter, ids).await?;
            let counts = Counts::of(&rows);
            let mut rows: Vec<_> = rows.into_iter().filter(|row| row.id.key() >= first).collect();
            let more = rows.len() > request.limit;
            rows.truncate(request.limit);
            (rows, more, counts)
        }
    };
    let steps = steps(call, &rows).await?;
    let items = rows.iter().map(|row| {
        let mut view = row.view();
        view.steps = Some(steps.get(&row.id).copied().unwrap_or_default());
        let list = match row.id.kind {
            TargetKind::Plan => "/plans",
            TargetKind::Task => "/tasks",
        };
        let keep = &["id", "kind", "status", "revision"];
        Item::new(list, SortKey::ints(&[row.id.key()]), view, Cut::Json(keep))
    });
    let page = Page {
        head: object(Head { counts }),
        slots: vec![Slot::List("/plans"), Slot::List("/tasks")],
        items: items.collect(),
        streams: vec![Stream { pagination: "/pagination", more }],
        reversed: false,
    };
    Ok(WorkReply::page(page, request))
}

async fn filter(call: &mut WorkCall<'_>, args: &Args) -> Result<Filter, WorkError> {
    let parent = match &args.parent {
        None => None,
        Some(text) => Some(call.load(parse_plan(text)?).await?.id),
    };
    let first_task = TargetId::new(TargetKind::Task, 0).key();
    let (first, last) = match args.kind {
        None => (0, i64::MAX),
        Some(TargetKind::Plan) => (0, first_task - 1),
        Some(TargetKind::Task) => (first_task, i64::MAX),
    };
    let text = match &args.text {
        None => None,
        Some(text) => {
            let query = SearchQuery::parse(text).ok_or_else(|| {
                WorkError::invalid("text contains no word").recovery("give letters or digits")
            })?;
            Some(query)
        }
    };
    Ok(Filter {
        first,
        last,
        status: args.status.map(Status::as_str).unwrap_or_default().to_owned(),
        parent: parent.map_or(0, TargetId::key),
        tags: pattern(&Tag::list(&args.tags)?),
        text,
    })
}

/// A pattern that matches the canonical JSON of a list with all of these tags; both are sorted.
fn pattern(tags: &[Tag]) -> String {
    let mut pattern = String::new();
    for tag in tags {
        let text = canonical_value(&json!(tag));
        pattern.push('%');
        pattern.push_str(&text.replace('!', "!!").replace('%', "!%").replace('_', "!_"));
    }
    if !pattern.is_empty() {
        pattern.push('%');
    }
    pattern
}

async fn by_ids(
    call: &mut WorkCall<'_>,
    filter: &Filter,
    ids: &[String],
) -> Result<Vec<TargetRow>, WorkError> {
    limits::count("ids", ids.len(), limits::PER_CALL)?;
    let mut wanted = ids.iter().map(|text| parse_target(text)).collect::<Result<Vec<_>, _>>()?;
    wanted.sort();
    wanted.dedup();
    let mut rows = Vec::new();
    for id in wanted {
        let (sql, values) = filter.list(call.ws.id, (id.key(), id.key()), 1);
        match call.tx.row(sql, &values).await? {
            Some(row) => rows.push(TargetRow::from_row(&row)?),
            None => call.warn(format!("{id} does not exist or does not match")),
        }
    }
    Ok(rows)
}

#[derive(Debug, Serialize)]
struct Head {
    counts: Counts,
}

#[derive(Debug, Default, Serialize)]
struct Counts {
    plans: i64,
    tasks: i64,
    by_status: StatusCounts,
}

#[derive(Debug, Default, Serialize)]
struct StatusCounts {
    todo: i64,
    active: i64,
    done: i64,
}

impl Counts {
    fn add(&mut self, kind: TargetKind, status: Status, number: i64) {
        match kind {
            TargetKind::Plan => self.plans += number,
            TargetKind::Task => self.tasks += number,
        }
        match status {
            Status::Todo => self.by_status.todo += number,
            Status::Active => self.by_status.active += number,
            Status::Done => self.by_status.done += number,
        }
    }

    fn of(rows: &[TargetRow]) -> Self {
        let mut counts = Self::default();
        rows.iter().for_each(|row| counts.add(row.id.kind, row.fields.status, 1));
        counts
    }
}

async fn count(call: &mut WorkCall<'_>, filter: &Filter) -> Result<Counts, StoreError> {
    let first_task = TargetId::new(TargetKind::Task, 0).key();
    let kinds = [(TargetKind::Plan, (0, first_task - 1)), (TargetKind::Task, (first_task, i64::MAX))];
    let mut counts = Counts::default();
    let wanted = |status: &Status| filter.status.is_empty() || filter.status == status.as_str();
    for status in [Status::Todo, Status::Active, Status::Done].into_iter().filter(wanted) {
        for (kind, range) in kinds {
            if filter.first > range.1 || filter.last < range.0 {
                continue;
            }
            let (sql, values) = filter.bind(&COUNT, status.as_str(), call.ws.id, range);
            if let Some(row) = call.tx.row(sql, &values).await? {
                counts.add(kind, status, row.int(0)?);
            }
        }
    }
    Ok(counts)
}

/// Total and completed steps of the targets of a page.
async fn steps(
    call: &mut WorkCall<'_>,
    rows: &[TargetRow],
) -> Result<BTreeMap<TargetId, StepTotals>, StoreError> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(BTreeMap::new()) };
    let sql = "SELECT target, count(*), CAST(sum(completed) AS BIGINT) FROM steps
        WHERE ws = $1 AND target >= $2 AND target <= $3 AND deleted = 0 GROUP BY target";
    let found = call.tx.rows(sql, args![call.ws.id, first.id.key(), last.id.key()]).await?;
    found
        .iter()
        .map(|row| {
            Ok((TargetId::from_key(row.int(0)?), StepTotals { total: row.int(1)?, completed: row.int(2)? }))
        })
        .collect()
}
