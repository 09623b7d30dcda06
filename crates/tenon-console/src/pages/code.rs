//! Code: symbols by name, source with every declared name a link, uses and hierarchies.

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_code::explore::IndexReader;
use tenon_server::web::{DaemonAccess, PREFIX};

use super::problems::editor_link;
use super::{Page, PageContext, PageData, source_lines};
use crate::form::encoded;
use crate::tool_answer;

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-code",
    id: "code",
    path: "/code",
    title: "Code",
    template: "code.html",
    topics: "problems",
    load: |context| load(context).boxed(),
    act: None,
};

/// Matches, outline entries and files that are listed.
const MAX_LISTED: usize = 60;
/// Lines of source per page.
const MAX_LINES: usize = 400;
/// The largest file whose source is shown.
const MAX_SOURCE: u64 = 2 * 1024 * 1024;
/// The longest answer about uses, in bytes.
const MAX_ANSWER: usize = 24_000;

/// The size of the index, or why there is none.
pub(super) async fn index_state(access: &DaemonAccess) -> Value {
    match access.index().await {
        Ok(index) => json!({"files": index.files(), "symbols": index.symbols(), "current": index.is_current}),
        Err(why) => json!({"failure": why}),
    }
}

async fn load(context: PageContext) -> PageData {
    let query = &context.query;
    let index = match context.access.index().await {
        Ok(index) => index,
        Err(why) => return PageData::new(json!({"failure": why, "q": query.text("q")})),
    };
    let mut props = json!({
        "q": query.text("q"), "view": query.text("view").unwrap_or("find"), "current": index.is_current,
        "files": index.files(), "symbols": index.symbols(),
    });
    if let Some(path) = query.text("file") {
        props["file"] = file(&context, path, &index).await;
    } else if let Some(name) = query.text("q") {
        match query.text("view") {
            Some(view @ ("references" | "callers" | "callees" | "subtypes" | "supertypes")) => {
                let (tool, arguments) = match view {
                    "references" => ("references", json!({"symbol": name, "max_bytes": MAX_ANSWER})),
                    direction => (
                        "hierarchy",
                        json!({"symbol": name, "direction": direction, "max_bytes": MAX_ANSWER}),
                    ),
                };
                props["answer"] = match tool_answer::text(&context.access, tool, arguments).await {
                    Ok(text) => json!({"lines": linked(&text, &index)}),
                    Err(failure) => json!({"failure": failure.message}),
                };
            }
            _ => {
                let (found, total) = index.find(name, MAX_LISTED);
                props["total"] = json!(total);
                if let [one] = found.as_slice() {
                    let (first, last) =
                        (one.line as usize, (one.last_line as usize).min(one.line as usize + MAX_LINES));
                    props["source"] = source(&context, &one.path, (first, last), &index).await;
                }
                props["found"] = json!(found);
            }
        }
    } else {
        let folder = query.text("folder").unwrap_or_default();
        let (entries, total) = index.folder(folder, MAX_LISTED);
        props["folder"] = json!(folder);
        props["parent"] =
            json!(folder.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent));
        props["entries"] = json!(entries);
        props["more_entries"] = json!(total.saturating_sub(MAX_LISTED));
    }
    PageData::new(props)
}

/// A file with its outline and one page of source.
async fn file(context: &PageContext, path: &str, index: &IndexReader) -> Value {
    let (outline, total) = index.outline(path, MAX_LISTED).unwrap_or_default();
    let line = context.query.number::<usize>("line").unwrap_or(1).max(1);
    let first = (line - 1) / MAX_LINES * MAX_LINES + 1;
    json!({
        "path": path, "outline": outline, "more": total.saturating_sub(MAX_LISTED), "line": line,
        "source": source(context, path, (first, first + MAX_LINES - 1), index).await,
        "editor": editor_link(&context.access, path, line, 1),
        "earlier": (first > 1).then(|| first - MAX_LINES), "later": first + MAX_LINES,
    })
}

async fn source(context: &PageContext, path: &str, range: (usize, usize), index: &IndexReader) -> Value {
    let gate = context.access.workspace().gate().clone();
    let wanted = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let admitted = gate.admit_path(&wanted).map_err(|error| error.to_string())?;
        gate.read_to_string(&admitted, MAX_SOURCE).map_err(|error| error.to_string())
    });
    let marked = context.query.number::<usize>("line");
    match read.await {
        Ok(Ok(text)) => {
            let lines = text.lines().count();
            let mark = |at: usize| if Some(at) == marked { "info" } else { "" };
            json!({"lines": source_lines::lines(path, &text, range, &mark, Some(index)), "count": lines})
        }
        Ok(Err(why)) => json!({"failure": why}),
        Err(_) => json!({"failure": "cannot read the file"}),
    }
}

/// The lines of an answer, each with the address of the place that it names. Lines below a file name begin with a line
/// number of that file.
fn linked(text: &str, index: &IndexReader) -> Vec<Value> {
    let href =
        |path: &str, number: u32| format!("{PREFIX}/code?file={}&line={number}#L{number}", encoded(path));
    let mut file = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let heading = line.trim_end_matches(':');
        let trimmed = line.trim_start();
        let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        let places = line.split([' ', '(', ')', ',']).filter_map(|word| {
            let mut parts = word.split(':');
            // A place is `path:line`, `path:line:column` or `path:first-last`.
            let (path, lines) = (parts.next()?, parts.next()?);
            let number = lines.split('-').next()?.parse::<u32>().ok()?;
            index.outline(path, 0)?;
            Some((word, href(path, number)))
        });
        lines.push(if index.outline(heading, 0).is_some() {
            file = Some(heading);
            json!({"before": "", "place": line, "after": "", "href": format!("{PREFIX}/code?file={}", encoded(heading))})
        } else if let (Some(path), Ok(number)) = (file, trimmed[..digits].parse::<u32>()) {
            let (blanks, rest) = (&line[..line.len() - trimmed.len()], &trimmed[digits..]);
            json!({"before": blanks, "place": &trimmed[..digits], "after": rest, "href": href(path, number)})
        } else if let Some((word, href)) = places.into_iter().next() {
            let (before, after) = line.split_once(word).unwrap_or(("", line));
            json!({"before": before, "place": word, "after": after, "href": href})
        } else {
            json!({"before": line})
        });
    }
    lines
}
