//! Problems: diagnostics by file with their source, and which of them are new.

use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_lsp::model::{Diagnostic, Severity};
use tenon_server::config::EditorLinks;
use tenon_server::web::DaemonAccess;

use super::{Page, PageContext, PageData, problem_counts, source_lines};
use crate::form::encoded;

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-problems",
    id: "problems",
    path: "/problems",
    title: "Problems",
    template: "problems.html",
    topics: "problems",
    load: |context| load(context).boxed(),
    act: None,
};

/// Files per page.
const FILES_PER_PAGE: usize = 10;

/// Diagnostics with source per file.
const MAX_PER_FILE: usize = 12;

/// The largest file whose source is shown.
const MAX_SOURCE: u64 = 512 * 1024;

/// How long the page waits for problems of the current state.
const PROBLEMS_WAIT: Duration = Duration::from_millis(1_500);

/// How long the comparison with `HEAD` may take.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// Lines around a diagnostic.
const AROUND: usize = 2;

/// A file with the diagnostics to show.
struct FileView {
    path: String,
    diagnostics: Vec<(Diagnostic, bool)>,
}

async fn load(context: PageContext) -> PageData {
    let query = &context.query;
    let view = context.problems.view(PROBLEMS_WAIT).await;
    let since = query.text("since").unwrap_or("all");
    let (severity, text) = (query.text("severity"), query.text("text").map(str::to_lowercase));
    let mut notes: Vec<String> = Vec::new();
    let mut files: Vec<FileView> = Vec::new();
    let mut failure = None;
    match since {
        "head" => match context.access.new_problems("HEAD", HEAD_WAIT).await {
            Ok(report) => {
                notes.extend(report.notes.clone());
                for (file, one) in report.findings() {
                    match files.last_mut().filter(|last| last.path == file.file) {
                        Some(last) => last.diagnostics.push((one.clone(), true)),
                        None => files.push(FileView {
                            path: file.file.clone(),
                            diagnostics: vec![(one.clone(), true)],
                        }),
                    }
                }
            }
            Err(why) => failure = Some(why),
        },
        _ => {
            if let Some(snapshot) = &view.snapshot {
                notes.clone_from(&snapshot.problems.notes);
                files.extend(snapshot.problems.files.iter().map(|file| {
                    FileView {
                        path: file.path.clone(),
                        diagnostics: file
                            .diagnostics
                            .iter()
                            .map(|one| {
                                (one.clone(), snapshot.is_new(&file.path, one.code.as_deref(), &one.message))
                            })
                            .collect(),
                    }
                }));
            }
        }
    }
    for file in &mut files {
        let path = file.path.to_lowercase();
        file.diagnostics.retain(|(one, is_new)| {
            let has_text = text
                .as_ref()
                .is_none_or(|text| path.contains(text) || one.message.to_lowercase().contains(text));
            (since != "edit" || *is_new)
                && severity.is_none_or(|name| one.severity().as_str() == name)
                && has_text
        });
    }
    files.retain(|file| !file.diagnostics.is_empty());
    let total: usize = files.iter().map(|file| file.diagnostics.len()).sum();
    let page = query.number::<usize>("page").unwrap_or(1).max(1);
    let shown: Vec<FileView> =
        files.iter_mut().skip((page - 1) * FILES_PER_PAGE).take(FILES_PER_PAGE).map(take).collect();
    let count = files.len();
    let access = context.access.clone();
    let drawn = tokio::task::spawn_blocking(move || {
        shown.iter().map(|file| file_props(&access, file)).collect::<Vec<_>>()
    });
    let link = |page: usize| {
        let filter =
            |name: &str, value: Option<&str>| value.map(|value| format!("{name}={}&", encoded(value)));
        let filters =
            [filter("since", Some(since)), filter("severity", severity), filter("text", query.text("text"))];
        format!("?{}page={page}", filters.into_iter().flatten().collect::<String>())
    };
    let shown_notes: Vec<&String> = notes.iter().take(10).collect();
    let props = json!({
        "counts": problem_counts(&view), "since": since, "severity": severity, "text": query.text("text"),
        "found_at": view.snapshot.as_ref().map(|snapshot| snapshot.found_at.clone()),
        "known": view.snapshot.is_some(), "failure": failure,
        "total": total, "file_count": count, "files": drawn.await.unwrap_or_default(),
        "notes": shown_notes, "more_notes": notes.len().saturating_sub(10),
        "page": page, "previous": (page > 1).then(|| link(page - 1)),
        "next": (page * FILES_PER_PAGE < count).then(|| link(page + 1)),
    });
    PageData::new(props)
}

fn take(file: &mut FileView) -> FileView {
    FileView { path: std::mem::take(&mut file.path), diagnostics: std::mem::take(&mut file.diagnostics) }
}

fn file_props(access: &DaemonAccess, file: &FileView) -> Value {
    let gate = access.workspace().gate();
    let admitted = gate.admit_path(&file.path).ok();
    let source = admitted.as_ref().and_then(|path| gate.read_to_string(path, MAX_SOURCE).ok());
    let items = file.diagnostics.iter().take(MAX_PER_FILE).map(|(one, is_new)| {
        let line = one.range.start.line as usize + 1;
        let excerpt = source.as_ref().map(|text| {
            let mark = |at: usize| if at == line { mark_of(one.severity()) } else { "" };
            source_lines::lines(&file.path, text, (line.saturating_sub(AROUND).max(1), line + AROUND), &mark, None)
        });
        json!({
            "severity": one.severity().as_str(), "message": one.message, "code": one.code, "source": one.source,
            "line": line, "column": one.range.start.character + 1, "is_new": is_new, "excerpt": excerpt,
            "editor": editor_link(access, &file.path, line, one.range.start.character as usize + 1),
        })
    });
    json!({
        "path": file.path, "count": file.diagnostics.len(), "more": file.diagnostics.len().saturating_sub(MAX_PER_FILE),
        "items": items.collect::<Vec<_>>(),
    })
}

fn mark_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Hint => "info",
    }
}

/// The address that opens a place in the editor of the settings.
pub(super) fn editor_link(access: &DaemonAccess, path: &str, line: usize, column: usize) -> Option<String> {
    let scheme = match access.workspace().config().console.editor {
        EditorLinks::None => return None,
        EditorLinks::Vscode => "vscode",
        EditorLinks::Cursor => "cursor",
        EditorLinks::Zed => "zed",
    };
    let file = access.workspace().root().join(path);
    Some(format!("{scheme}://file{}:{line}:{column}", encoded(file.as_str())))
}
