//! Changes that servers propose (`WorkspaceEdit`, lists of `TextEdit`): parsed strictly, and applied to exactly the texts that
//! the server saw.
//!
//! One invalid item rejects the whole change: half of a rename breaks more than none.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tenon_contract::position::{Encoding, LineIndex, Position, Range};
use tenon_contract::root::WorkspacePath;

use crate::from_protocol::WireRange;

/// A change of texts that a server proposes.
#[derive(Debug, Clone, Default)]
pub struct ServerEdit {
    /// By path, without those that stay the same.
    pub files: Vec<EditedText>,
}

/// The change of one file.
#[derive(Debug, Clone)]
pub struct EditedText {
    pub path: WorkspacePath,
    /// The text that the change is for, which is the one on disk.
    pub before: LineIndex,
    pub after: String,
    /// The replaced ranges of the text before, ascending.
    pub places: Vec<Range>,
}

/// Why a server's change is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    #[error("the change would {0} a file, which this tool does not do")]
    FileOperation(&'static str),
    #[error("the change needs a command of the language server, which is never run")]
    Command,
    #[error("the change has a file outside the workspace: {0}")]
    Outside(String),
    #[error("the change has a file that does not exist: {0}")]
    Missing(String),
    #[error("the change is for another version of {0}")]
    Version(String),
    #[error("the change does not fit the text of {0}")]
    Range(String),
    #[error("parts of the change overlap in {0}")]
    Overlap(String),
    #[error("cannot read {0}")]
    Unreadable(String),
    #[error("the files kept changing while the language server was asked")]
    Changing,
    #[error("the change is invalid: {0}")]
    Malformed(String),
}

/// The edits of one document, as the server sent them.
#[derive(Debug)]
pub(crate) struct DocumentEdit {
    pub(crate) uri: String,
    /// `None` if the server does not say.
    pub(crate) version: Option<i64>,
    pub(crate) edits: Vec<TextEdit>,
}

/// A replacement, in the server's encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextEdit {
    range: Range,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEdit {
    range: WireRange,
    #[serde(default)]
    new_text: Option<String>,
    /// A non-standard mark of snippets.
    #[serde(default)]
    insert_text_format: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireWorkspaceEdit {
    #[serde(default)]
    changes: Option<BTreeMap<String, Vec<WireEdit>>>,
    #[serde(default)]
    document_changes: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDocumentEdit {
    text_document: WireDocument,
    edits: Vec<WireEdit>,
}

#[derive(Deserialize)]
struct WireDocument {
    uri: String,
    #[serde(default)]
    version: Option<i64>,
}

impl TryFrom<WireEdit> for TextEdit {
    type Error = EditRefusal;

    fn try_from(wire: WireEdit) -> Result<Self, EditRefusal> {
        let is_snippet = wire.insert_text_format.is_some_and(|format| format != 1);
        match wire.new_text.filter(|_| !is_snippet) {
            Some(text) => Ok(Self { range: wire.range.into(), text }),
            None => Err(EditRefusal::Malformed("it has a snippet".to_owned())),
        }
    }
}

fn malformed(error: impl std::fmt::Display) -> EditRefusal {
    EditRefusal::Malformed(error.to_string())
}

/// A `WorkspaceEdit`. The versioned form counts if there are both.
pub(crate) fn workspace_edit(value: &Value) -> Result<Vec<DocumentEdit>, EditRefusal> {
    if !value.is_object() {
        return Err(EditRefusal::Malformed("it is not an object".to_owned()));
    }
    let wire = WireWorkspaceEdit::deserialize(value).map_err(malformed)?;
    let Some(documents) = wire.document_changes else {
        let changes = wire.changes.unwrap_or_default().into_iter();
        return changes
            .map(|(uri, edits)| Ok(DocumentEdit { uri, version: None, edits: text_edits(edits)? }))
            .collect();
    };
    documents.iter().map(document_edit).collect()
}

fn document_edit(value: &Value) -> Result<DocumentEdit, EditRefusal> {
    match value.get("kind").and_then(Value::as_str) {
        None => {}
        Some("create") => return Err(EditRefusal::FileOperation("create")),
        Some("rename") => return Err(EditRefusal::FileOperation("rename")),
        Some("delete") => return Err(EditRefusal::FileOperation("delete")),
        Some(_) => return Err(EditRefusal::Malformed("it has an unknown operation".to_owned())),
    }
    let WireDocumentEdit { text_document, edits } =
        WireDocumentEdit::deserialize(value).map_err(malformed)?;
    let WireDocument { uri, version } = text_document;
    Ok(DocumentEdit { uri, version, edits: text_edits(edits)? })
}

fn text_edits(edits: Vec<WireEdit>) -> Result<Vec<TextEdit>, EditRefusal> {
    edits.into_iter().map(TextEdit::try_from).collect()
}

/// The answer to a request for formatting.
pub(crate) fn formatting(value: &Value) -> Result<Vec<TextEdit>, EditRefusal> {
    text_edits(Option::<Vec<WireEdit>>::deserialize(value).map_err(malformed)?.unwrap_or_default())
}

/// Why edits do not fit a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Range,
    Overlap,
}

/// Applies edits to a text. Also returns the replaced ranges, in UTF-16.
pub(crate) fn apply(
    lines: &LineIndex,
    encoding: Encoding,
    edits: &[TextEdit],
) -> Result<(String, Vec<Range>), Misfit> {
    let text = lines.text();
    // A formatter may name a line past the end for the end of the text.
    let offset = |at: Position| match at.line >= lines.line_count() {
        true => Ok(text.len()),
        false => lines.offset(at, encoding).map_err(|_| Misfit::Range),
    };
    let mut parts = Vec::with_capacity(edits.len());
    for edit in edits {
        let (start, end) = (offset(edit.range.start)?, offset(edit.range.end)?);
        if start > end {
            return Err(Misfit::Range);
        }
        parts.push((start, end, edit.text.as_str()));
    }
    // A stable sort: texts that are inserted at one place keep their order, and come before a replacement that begins there.
    parts.sort_by_key(|(start, end, _)| (*start, *end));
    // A server that knows a file from two projects may send the same replacement twice.
    parts.dedup_by(|a, b| a == b && a.0 < a.1);
    let mut after = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(parts.len());
    let mut done = 0;
    for (start, end, new) in parts {
        if start < done {
            return Err(Misfit::Overlap);
        }
        after.push_str(&text[done..start]);
        after.push_str(&with_endings_of(text, new));
        let place = |at| lines.position_clamped(at, Encoding::Utf16);
        places.push(Range::new(place(start), place(end)));
        done = end;
    }
    after.push_str(&text[done..]);
    Ok((after, places))
}

/// A new text with the line endings of the text around it, if those are all equal.
fn with_endings_of(text: &str, new: &str) -> String {
    let (all, dos) = (text.matches('\n').count(), text.matches("\r\n").count());
    let plain = || new.replace("\r\n", "\n");
    match all {
        0 => new.to_owned(),
        _ if dos == 0 => plain(),
        _ if dos == all => plain().replace('\n', "\r\n"),
        _ => new.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn edit(start: (u32, u32), end: (u32, u32), text: &str) -> TextEdit {
        let range = Range::new(Position::new(start.0, start.1), Position::new(end.0, end.1));
        TextEdit { range, text: text.to_owned() }
    }

    fn applied(text: &str, edits: &[TextEdit]) -> Result<String, Misfit> {
        apply(&LineIndex::new(text), Encoding::Utf16, edits).map(|(after, _)| after)
    }

    #[test]
    fn edits_are_applied_together() {
        let text = "a 😀 b\nc\n";
        let edits = [edit((1, 0), (1, 1), "C"), edit((0, 5), (0, 6), "B"), edit((0, 0), (0, 0), "x")];
        assert_eq!(applied(text, &edits).unwrap(), "xa 😀 B\nC\n");
        let inserted = [edit((0, 0), (0, 0), "1"), edit((0, 0), (0, 0), "2"), edit((0, 0), (0, 1), "3")];
        assert_eq!(applied("a", &inserted).unwrap(), "123");
        assert_eq!(applied("a\n", &[edit((0, 0), (9, 0), "b\n")]).unwrap(), "b\n");
        let twice = [edit((0, 0), (0, 1), "b"), edit((0, 0), (0, 1), "b")];
        assert_eq!(applied("a", &twice).unwrap(), "b");
    }

    #[test]
    fn line_endings_of_the_file_are_kept() {
        assert_eq!(applied("a\r\nb\r\n", &[edit((0, 0), (0, 1), "x\ny")]).unwrap(), "x\r\ny\r\nb\r\n");
        assert_eq!(applied("a\nb\n", &[edit((0, 0), (0, 1), "x\r\ny")]).unwrap(), "x\ny\nb\n");
        assert_eq!(applied("a\r\nb\n", &[edit((0, 0), (0, 1), "x\ny")]).unwrap(), "x\ny\r\nb\n");
    }

    #[test]
    fn overlapping_and_misplaced_edits_are_rejected() {
        let overlapping = [edit((0, 0), (0, 2), "x"), edit((0, 1), (0, 3), "y")];
        assert_eq!(applied("abc", &overlapping), Err(Misfit::Overlap));
        let different = [edit((0, 0), (0, 1), "x"), edit((0, 0), (0, 1), "y")];
        assert_eq!(applied("abc", &different), Err(Misfit::Overlap));
        assert_eq!(applied("abc", &[edit((0, 2), (0, 1), "")]), Err(Misfit::Range));
        assert_eq!(applied("abc", &[edit((0, 0), (0, 4), "")]), Err(Misfit::Range));
        assert_eq!(applied("😀", &[edit((0, 1), (0, 2), "")]), Err(Misfit::Range));
    }

    #[test]
    fn file_operations_snippets_and_invalid_parts_reject_the_whole_change() {
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
        let good = json!({ "textDocument": { "uri": "file:///a", "version": null },
            "edits": [{ "range": range, "newText": "x", "annotationId": "1" }] });
        let parsed = workspace_edit(&json!({ "documentChanges": [good] })).unwrap();
        assert_eq!((parsed.len(), parsed[0].version, parsed[0].edits.len()), (1, None, 1));
        let parsed =
            workspace_edit(&json!({ "changes": { "file:///a": [{ "range": range, "newText": "x" }] } }));
        assert_eq!(parsed.unwrap()[0].uri, "file:///a");
        for (kind, refusal) in [("create", "create"), ("rename", "rename"), ("delete", "delete")] {
            let operation = json!({ "kind": kind, "uri": "file:///b" });
            let refused = workspace_edit(&json!({ "documentChanges": [good, operation] })).unwrap_err();
            assert_eq!(refused, EditRefusal::FileOperation(refusal));
        }
        for bad in [
            json!({ "documentChanges": [good, 7] }),
            json!({ "documentChanges": [{ "kind": "move" }] }),
            json!({ "documentChanges": "all" }),
            json!({ "changes": { "file:///a": [{ "range": range }] } }),
            json!({ "changes": { "file:///a": [{ "range": range, "newText": "$0", "insertTextFormat": 2 }] } }),
            json!({ "changes": { "file:///a": [{ "range": { "start": { "line": -1, "character": 0 } }, "newText": "" }] } }),
            json!([]),
        ] {
            assert!(matches!(workspace_edit(&bad), Err(EditRefusal::Malformed(_))), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn applied_edits_equal_replacing_from_the_end(text in "[ab\n]{0,30}", cuts in prop::collection::vec((0..31usize, 0..4usize, "[xy\n]{0,3}"), 0..5)) {
            let lines = LineIndex::new(text.as_str());
            let mut parts: Vec<(usize, usize, String)> = Vec::new();
            for (start, length, new) in cuts {
                let (start, end) = (start.min(text.len()), (start + length).min(text.len()));
                if parts.iter().all(|(s, e, _)| end < *s || *e < start) {
                    parts.push((start, end, new));
                }
            }
            let edits: Vec<TextEdit> = parts.iter().map(|(start, end, new)| {
                let at = |offset| lines.position(offset, Encoding::Utf16).unwrap();
                TextEdit { range: Range::new(at(*start), at(*end)), text: new.clone() }
            }).collect();
            let mut expected = text.clone();
            parts.sort();
            for (start, end, new) in parts.iter().rev() {
                expected.replace_range(start..end, new);
            }
            prop_assert_eq!(applied(&text, &edits).unwrap(), expected);
        }
    }
}
