//! Tasks and steps as people and models name them: ids in any case, bare numbers, positions, titles.

use serde_json::json;

use super::{LeanError, LeanTool};
use crate::error::WorkErrorCode;
use crate::id::{StepId, TargetId, TargetKind};
use crate::name::quoted;
use crate::path::StepPath;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, TargetRow, excerpt};
use crate::store::{StoreError, args};
use crate::work_call::WorkCall;

/// How many of the newest tasks a title is compared with, and how many an error names.
const COMPARED: i64 = 2000;
const NAMED: usize = 5;

/// What a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named<'a> {
    Id(TargetId),
    Title(&'a str),
}

/// A plan or task, and what follows its id: `TASK-001 step 2`.
pub(super) fn parse(text: &str) -> (Named<'_>, Option<&str>) {
    let text = text.trim().trim_matches(['`', '"', '\'']).trim();
    let unmarked = text.trim_start_matches('#').trim_start();
    let (kind, rest) = match letters(unmarked) {
        "" => (TargetKind::Task, unmarked),
        word => {
            let rest = unmarked[word.len()..].trim_start_matches(['-', '_', ' ', '#', ':', '.']);
            match word.to_ascii_lowercase().as_str() {
                "task" | "t" => (TargetKind::Task, rest),
                "plan" | "p" => (TargetKind::Plan, rest),
                _ => return (Named::Title(text), None),
            }
        }
    };
    let digits = rest.len() - rest.trim_start_matches(|one: char| one.is_ascii_digit()).len();
    let after = &rest[digits..];
    let Ok(number) = rest[..digits].parse::<u64>() else { return (Named::Title(text), None) };
    if number == 0 || number >= 1 << 40 || after.starts_with(char::is_alphanumeric) {
        return (Named::Title(text), None);
    }
    let after = after.trim_start_matches([' ', '/', '.', ',', ':', '#', '-']).trim();
    // A title may begin with a number; an id is followed by nothing or by a step.
    if letters(unmarked).is_empty() && !after.is_empty() && !is_step(after) {
        return (Named::Title(text), None);
    }
    (Named::Id(TargetId::new(kind, number)), Some(after).filter(|after| !after.is_empty()))
}

fn letters(text: &str) -> &str {
    let end = text.find(|one: char| !one.is_ascii_alphabetic()).unwrap_or(text.len());
    &text[..end]
}

fn is_step(text: &str) -> bool {
    numbered(text).is_some() || text.to_ascii_lowercase().starts_with("step")
}

impl WorkCall<'_> {
    /// The plan or task that a text names; of `kind`, if only one is possible.
    pub(super) async fn named_target(
        &mut self,
        text: &str,
        kind: Option<TargetKind>,
    ) -> Result<TargetRow, LeanError> {
        match parse(text).0 {
            Named::Id(id) => Ok(self.load(id).await.map_err(|_| unknown_task(text))?),
            Named::Title(title) => {
                // A task is meant more often than its plan.
                let first = kind.or(Some(TargetKind::Task));
                let found = match self.titled_target(title, first).await? {
                    None if kind.is_none() => self.titled_target(title, Some(TargetKind::Plan)).await?,
                    found => found,
                };
                found.ok_or_else(|| unknown_task(text))
            }
        }
    }

    /// The plan or task with this title, or the only one that contains it.
    pub(super) async fn titled_target(
        &mut self,
        title: &str,
        kind: Option<TargetKind>,
    ) -> Result<Option<TargetRow>, LeanError> {
        let rows = newest(self, COMPARED).await?;
        let rows: Vec<TargetRow> =
            rows.into_iter().filter(|row| kind.is_none_or(|kind| row.id.kind == kind)).collect();
        let titles: Vec<&str> = rows.iter().map(|row| row.fields.title.as_str()).collect();
        match matching(&titles, title) {
            Match::None => Ok(None),
            Match::One(at) => Ok(rows.into_iter().nth(at)),
            Match::Several(found) => {
                let named = found
                    .iter()
                    .take(NAMED)
                    .map(|&at| format!("{} {}", rows[at].id, excerpt(&rows[at].fields.title, 60)));
                let named = named.collect::<Vec<_>>().join(", ");
                let first = rows[found[0]].id;
                Err(LeanError::new(format!("{} tasks match {}: {named}", found.len(), quoted(title)))
                    .call(LeanTool::TaskShow, json!({"id": first})))
            }
        }
    }

    /// The task of a call without one: the focus, else the active one, else the newest that is open, else the newest.
    ///
    /// Of several active tasks, those that the agent has claimed come first, then the one that changed last.
    pub(crate) async fn current_task(&mut self, agent: &str) -> Result<Option<TargetRow>, StoreError> {
        if let Some(focus) = self.ws.focus
            && let Some(row) = target::load(self.tx, self.ws.id, focus).await?
            && !row.fields.deleted
        {
            return Ok(Some(row));
        }
        let row = self.tx.row(CURRENT, args![self.ws.id, agent, self.now]).await?;
        row.as_ref().map(TargetRow::from_row).transpose()
    }

    /// The step of a task that a text names.
    pub(super) async fn named_step(&mut self, task: &TargetRow, text: &str) -> Result<StepRow, LeanError> {
        let mut steps = step::all(self.tx, self.ws.id, task.id).await?;
        let at = find_step(&steps, text).map_err(|found| no_step(task, &steps, text, &found))?;
        Ok(steps.swap_remove(at))
    }
}

const CURRENT: &str = target::select!(
    "WHERE ws = $1 AND deleted = 0 AND target >= 1099511627776 ORDER BY
    CASE WHEN status = 'active' THEN 0 WHEN status = 'todo' THEN 1 ELSE 2 END,
    CASE WHEN status = 'active' AND claim_agent = $2 AND claim_expires_ms > $3 THEN 0 ELSE 1 END,
    CASE WHEN status = 'active' THEN updated_ms ELSE 0 END DESC, target DESC LIMIT 1"
);

async fn newest(call: &mut WorkCall<'_>, most: i64) -> Result<Vec<TargetRow>, StoreError> {
    const NEWEST: &str =
        target::select!("WHERE ws = $1 AND deleted = 0 ORDER BY status = 'done', target DESC LIMIT $2");
    let rows = call.tx.rows(NEWEST, args![call.ws.id, most]).await?;
    rows.iter().map(TargetRow::from_row).collect()
}

pub(super) fn unknown_task(text: &str) -> LeanError {
    LeanError::new(format!("there is no task {}", quoted(text)))
        .code_of(WorkErrorCode::UnknownId)
        .call(LeanTool::TaskList, json!({}))
}

/// The position of a step as people count: `2.1` for `s:1.s:0`.
pub(super) fn position(path: &StepPath) -> String {
    let ordinals = path.ordinals().iter().map(|ordinal| (u64::from(*ordinal) + 1).to_string());
    ordinals.collect::<Vec<_>>().join(".")
}

/// `2.1` as a path.
fn numbered(text: &str) -> Option<StepPath> {
    let text = text.trim_end_matches(['.', ')', ':']);
    let numbers: Option<Vec<u32>> =
        text.split('.').map(|part| part.parse::<u32>().ok()?.checked_sub(1)).collect();
    let (first, below) = numbers?.split_first().map(|(first, below)| (*first, below.to_vec()))?;
    Some(below.into_iter().fold(StepPath::root(first), |path, ordinal| path.child(ordinal)))
}

/// How a text names a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StepName {
    Id(StepId),
    At(StepPath),
    /// The first open one.
    Next,
    Title,
}

impl StepName {
    pub(super) fn parse(text: &str) -> Self {
        let text = unquoted(text);
        let lower = text.to_lowercase();
        if let Ok(id) = text.to_ascii_uppercase().parse::<StepId>() {
            return Self::Id(id);
        }
        if let Some(path) = lower.parse::<StepPath>().ok().or_else(|| numbered(without_word(&lower))) {
            return Self::At(path);
        }
        match lower.as_str() {
            "next" | "current" | "first" | "now" | "this" | "open" => Self::Next,
            _ => Self::Title,
        }
    }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['`', '"', '\''])
}

/// `step 2` without its first word.
fn without_word(lower: &str) -> &str {
    lower.strip_prefix("step").unwrap_or(lower).trim_start_matches([' ', '#', '-', ':'])
}

/// The index of the step that a text names; otherwise those that it may mean.
fn find_step(steps: &[StepRow], text: &str) -> Result<usize, Vec<usize>> {
    let at_path = |path: &StepPath| steps.iter().position(|step| step.fields.path == *path);
    match StepName::parse(text) {
        StepName::Id(id) => return steps.iter().position(|step| step.id == id).ok_or_default(),
        StepName::At(path) => return at_path(&path).ok_or_default(),
        StepName::Next => {
            let mut open: Vec<StepRow> =
                steps.iter().filter(|step| !step.fields.completed).cloned().collect();
            let first = step::take_first_leaf(&mut open);
            return first.and_then(|first| steps.iter().position(|step| step.id == first.id)).ok_or_default();
        }
        StepName::Title => {}
    }
    let text = unquoted(text);
    let lower = text.to_lowercase();
    let number = without_word(&lower);
    let titles: Vec<&str> = steps.iter().map(|step| step.fields.title.as_str()).collect();
    match matching(&titles, text) {
        Match::One(at) => Ok(at),
        Match::Several(found) => Err(found),
        // `2. Find the cause`: the number decides if the title is written in another way.
        Match::None => match number.split_whitespace().next().and_then(numbered) {
            Some(path) if number.starts_with(|one: char| one.is_ascii_digit()) => {
                at_path(&path).ok_or_default()
            }
            _ => Err(Vec::new()),
        },
    }
}

trait OrDefault<T> {
    fn ok_or_default(self) -> Result<T, Vec<usize>>;
}

impl<T> OrDefault<T> for Option<T> {
    fn ok_or_default(self) -> Result<T, Vec<usize>> {
        self.ok_or_else(Vec::new)
    }
}

fn no_step(task: &TargetRow, steps: &[StepRow], text: &str, found: &[usize]) -> LeanError {
    let shown: Vec<&StepRow> = match found {
        [] => steps.iter().filter(|step| !step.fields.completed).take(NAMED).collect(),
        found => found.iter().take(NAMED).map(|&at| &steps[at]).collect(),
    };
    let list = shown
        .iter()
        .map(|step| format!("{} {}", position(&step.fields.path), excerpt(&step.fields.title, 60)));
    let list = list.collect::<Vec<_>>().join(", ");
    let text_shown = quoted(text);
    let what = match (found.len(), list.is_empty()) {
        (0, true) => format!("{} has no step {text_shown}", task.id),
        (0, false) => format!("{} has no step {text_shown}; open: {list}", task.id),
        (count, _) => format!("{count} steps of {} match {text_shown}: {list}", task.id),
    };
    match shown.first() {
        Some(first) if !found.is_empty() => LeanError::new(what).call(
            LeanTool::TaskUpdate,
            json!({"id": task.id, "step": position(&first.fields.path), "done": true}),
        ),
        _ => {
            let title: String = text.chars().take(100).collect();
            LeanError::new(what)
                .lead("to add it")
                .call(LeanTool::TaskUpdate, json!({"id": task.id, "steps": [title]}))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match {
    None,
    One(usize),
    Several(Vec<usize>),
}

/// The titles that a text means: the same, else those that begin with it, else those that contain it or all its words.
pub(super) fn matching(titles: &[&str], text: &str) -> Match {
    let wanted = text.trim().to_lowercase();
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let ways: [&dyn Fn(&str) -> bool; 4] = [
        &|title| title == wanted,
        &|title| title.starts_with(&wanted),
        &|title| title.contains(&wanted),
        &|title| !words.is_empty() && words.iter().all(|word| title.contains(word)),
    ];
    let titles: Vec<String> = titles.iter().map(|title| title.trim().to_lowercase()).collect();
    for matches in ways {
        let found: Vec<usize> = (0..titles.len()).filter(|&at| matches(&titles[at])).collect();
        match found[..] {
            [] => {}
            [one] => return Match::One(one),
            _ => return Match::Several(found),
        }
    }
    Match::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_any_form() {
        let task = Named::Id(TargetId::new(TargetKind::Task, 1));
        for text in
            ["TASK-001", "task-1", "Task 1", "#1", "1", "T1", "task_01", "`TASK-001`", "task#1", " 001 "]
        {
            assert_eq!(parse(text), (task.clone(), None), "{text}");
        }
        assert_eq!(parse("TASK-001 step 2"), (task.clone(), Some("step 2")));
        assert_eq!(parse("TASK-001/2.1"), (task, Some("2.1")));
        assert_eq!(parse("plan 2").0, Named::Id(TargetId::new(TargetKind::Plan, 2)));
        for title in
            ["Fix 1 bug", "2 factor login", "task", "0", "TASK-0", "99999999999999999999", "1st task", ""]
        {
            assert!(matches!(parse(title).0, Named::Title(_)), "{title}");
        }
    }

    #[test]
    fn positions_count_from_one() {
        let path: StepPath = "s:1.s:0".parse().unwrap();
        assert_eq!(position(&path), "2.1");
        assert_eq!(numbered("2.1"), Some(path));
        assert_eq!(numbered("2."), numbered("2"));
        assert_eq!(numbered("0"), None);
        assert_eq!(numbered("two"), None);
    }

    #[test]
    fn titles_match_by_the_closest_way() {
        let titles = ["Fix login", "Fix login test", "Write docs for login"];
        assert_eq!(matching(&titles, "fix LOGIN"), Match::One(0));
        assert_eq!(matching(&titles, "login docs"), Match::One(2));
        assert_eq!(matching(&titles, "fix"), Match::Several(vec![0, 1]));
        assert_eq!(matching(&titles, "deploy"), Match::None);
    }
}
