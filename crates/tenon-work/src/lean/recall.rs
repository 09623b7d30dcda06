//! `recall`: notes, cards, decisions and tasks by any of the words, best first.

use serde_json::{Value, json};

use super::natural::Fields;
use super::reference::position;
use super::task_text::{kind, one_line};
use super::{LeanAnswer, LeanError, LeanTool, max_bytes, within};
use crate::graph::version::{self, Content, Version};
use crate::id::{StepId, TargetId};
use crate::memory::branch;
use crate::memory::entry::{self, Entry};
use crate::memory::ranking::{self, Candidate, Question};
use crate::memory::search::{Hit, SearchKind};
use crate::memory::search_query::words;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, TargetRow, time};
use crate::store::StoreError;
use crate::work_call::WorkCall;

const SHOWN: usize = 10;
/// Evidence is output of programs, which is rarely what is asked for.
const EVIDENCE_WEIGHT: f64 = 0.5;
const STEP_WEIGHT: f64 = 0.8;

#[derive(Debug, Clone)]
pub(super) struct Args {
    query: String,
    most: usize,
    max_bytes: usize,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, LeanError> {
        let query =
            fields.text(&["query", "q", "text", "question", "search", "words", "about", "keywords", "topic"]);
        let most = fields.number(&["limit", "count", "max", "maxresults", "top", "k"]);
        let bytes = max_bytes(fields);
        match query {
            Some(query) => Ok(Self { query, most: most.unwrap_or(SHOWN).clamp(1, 50), max_bytes: bytes }),
            None => Err(LeanError::new("say what to look for")
                .lead("for example")
                .call(LeanTool::Recall, json!({"query": "build on arm"}))),
        }
    }
}

/// What a hit refers to.
enum Found {
    Note(Entry),
    Card(Version),
    Target(TargetRow),
    Step(StepRow, TargetId),
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: &Args) -> Result<LeanAnswer, LeanError> {
    let query: String = args.query.chars().take(1000).collect();
    let Some(question) = Question::parse(&query) else {
        return Err(LeanError::new("the query contains no word")
            .lead("for example")
            .call(LeanTool::Recall, json!({"query": "build on arm"})));
    };
    let (ws, last_seq) = (call.ws.id, call.ws.last_seq());
    let found = ranking::candidates(call.tx, ws, last_seq, &question).await?;
    let candidates = load(call, &found.hits).await?;
    let ranked = ranking::rank(&question, &found, last_seq, candidates);
    let total = ranked.len();
    let mut lines = Vec::new();
    let mut data = Vec::new();
    for candidate in ranked.iter().take(args.most) {
        let Candidate { title, body, .. } = candidate;
        let (line, id) = shown(&candidate.value, &question.snippet(&joined(title, body)));
        lines.push(line);
        data.push(id);
    }
    if lines.is_empty() {
        let text = format!("nothing about {}", crate::name::quoted(&query));
        return Ok(LeanAnswer::new(text, json!({"hits": []})));
    }
    let more = total.saturating_sub(args.most);
    match (more, found.is_cut) {
        (0, _) => {}
        (more, false) => lines.push(format!("{more} more; use other words to narrow it down")),
        (more, true) => lines.push(format!(
            "at least {more} more; of a common word, the newest {} are compared: use rarer words to find older ones",
            ranking::PER_WORD
        )),
    }
    Ok(LeanAnswer::new(within(lines.join("\n"), args.max_bytes), json!({"hits": data})))
}

/// Title and body as one text. A title with which its body begins is not repeated, nor the other way round.
fn joined(title: &str, body: &str) -> String {
    let (title, body) = (title.trim(), body.trim());
    let words = |text: &str| words(text).map(|(_, word)| word).collect::<Vec<_>>();
    let (in_title, in_body) = (words(title), words(body));
    // The last word of a title that was cut may be a part of a word.
    let begins = match title.strip_suffix('…').and_then(|_| in_title.split_last()) {
        Some((last, rest)) => {
            in_body.starts_with(rest)
                && in_body.get(rest.len()).is_some_and(|word| word.starts_with(last.as_str()))
        }
        None => in_body.starts_with(&in_title),
    };
    if begins {
        body.to_owned()
    } else if in_title.starts_with(&in_body) {
        title.to_owned()
    } else {
        format!("{title}: {body}")
    }
}

/// The texts of hits. What is deleted or superseded is left out.
async fn load(call: &mut WorkCall<'_>, hits: &[Hit]) -> Result<Vec<Candidate<Found>>, StoreError> {
    let of_kind = |kind: SearchKind| {
        hits.iter().filter(|hit| hit.kind == kind).map(|hit| hit.reference).collect::<Vec<i64>>()
    };
    let ws = call.ws.id;
    let mut candidates = Vec::new();
    for note in entry::by_seqs(call.tx, ws, &of_kind(SearchKind::Note)).await? {
        let weight = if note.format.as_deref() == Some(entry::EVIDENCE) { EVIDENCE_WEIGHT } else { 1.0 };
        if note.format.as_deref() != Some(entry::FORGOTTEN) {
            candidates.push(Candidate {
                seq: note.seq,
                title: note.title.clone().unwrap_or_default(),
                body: note.content.clone(),
                weight,
                value: Found::Note(note),
            });
        }
    }
    for card in version::by_seqs(call.tx, ws, &of_kind(SearchKind::Card)).await? {
        if let (None, Content::Node { title, text, .. }) = (card.next, &card.content) {
            let (title, body) = (title.clone().unwrap_or_default(), text.clone().unwrap_or_default());
            candidates.push(Candidate { seq: card.seq, title, body, weight: 1.0, value: Found::Card(card) });
        }
    }
    let mut targets = of_kind(SearchKind::Task);
    targets.extend(of_kind(SearchKind::Plan));
    for row in target::by_keys(call.tx, ws, &targets).await? {
        let body = row.fields.searchable();
        let body = body.strip_prefix(&row.fields.title).unwrap_or(&body).trim().to_owned();
        candidates.push(Candidate {
            seq: row.search_seq,
            title: row.fields.title.clone(),
            body,
            weight: 1.0,
            value: Found::Target(row),
        });
    }
    for row in step::by_numbers(call.tx, ws, &of_kind(SearchKind::Step)).await? {
        // A criterion that repeats the title does not count twice.
        let mut parts: Vec<&str> = row.fields.success_criteria.iter().map(String::as_str).collect();
        parts.retain(|part| *part != row.fields.title);
        parts.extend(row.fields.tests.iter().map(String::as_str));
        candidates.push(Candidate {
            seq: row.search_seq,
            title: row.fields.title.clone(),
            body: parts.join("\n"),
            weight: STEP_WEIGHT,
            value: Found::Step(row.clone(), row.target),
        });
    }
    Ok(candidates)
}

/// One line, and the id for programs.
fn shown(found: &Found, snippet: &str) -> (String, Value) {
    let snippet = one_line(snippet, 240);
    match found {
        Found::Note(note) => {
            let day = time(note.ts_ms);
            let day = day.get(..10).unwrap_or(&day);
            let task = branch::target_of(note.branch).map(|task| format!(" {task}")).unwrap_or_default();
            (format!("#{} note {day}{task}: {snippet}", note.seq), json!(note.seq))
        }
        Found::Card(card) => {
            let day = time(card.ts_ms);
            let day = day.get(..10).unwrap_or(&day);
            let task = branch::target_of(card.branch).map(|task| format!(" {task}")).unwrap_or_default();
            (format!("#{} {} {day}{task}: {snippet}", card.seq, kind(card)), json!(card.seq))
        }
        Found::Target(row) => {
            (format!("{} {}: {snippet}", row.id, row.fields.status.as_str()), json!(row.id))
        }
        Found::Step(row, task) => {
            let id = StepId(row.id.0);
            (format!("{task} step {}: {snippet}", position(&row.fields.path)), json!(id))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_that_begins_its_body_is_shown_once() {
        for (title, body, text) in [
            ("Use zstd", "use zstd", "use zstd"),
            ("Use zstd.", "Use zstd. It is small", "Use zstd. It is small"),
            ("Use zst…", "Use zstd for caches", "Use zstd for caches"),
            ("Use zstd for caches", "Use zstd", "Use zstd for caches"),
            ("", "text", "text"),
            ("title", "", "title"),
            ("Cache", "use zstd", "Cache: use zstd"),
            ("Us", "use zstd", "Us: use zstd"),
        ] {
            assert_eq!(joined(title, body), text, "{title} {body}");
        }
    }
}
