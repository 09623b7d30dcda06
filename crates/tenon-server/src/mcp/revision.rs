//! The protocol revisions: which ones are negotiated, and what an answer leaves out in an older one.
//!
//! | revision | what it adds |
//! |---|---|
//! | 2025-03-26 | annotations of tools, the message of a progress report, batches |
//! | 2025-06-18 | structured results and their schemas, the header `MCP-Protocol-Version`; no batches any more |
//! | 2025-11-25 | nothing that we send; the revision of the gateway contract |
//! | 2026-07-28 | requests without a session, `resultType` |
//!
//! `rmcp` adds and removes what belongs to 2026-07-28; the rest is here.

use rmcp::model::{CallToolResult, ContentBlock, ProtocolVersion, Tool};

/// Every revision, oldest first.
pub(crate) const REVISIONS: [ProtocolVersion; 5] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// The revisions of the gateway contract.
const CONTRACT_REVISIONS: [ProtocolVersion; 2] =
    [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// How strict a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The gateway contract: its revisions only, and no request before `notifications/initialized`.
    Contract,
    /// Every revision. A client that omits `notifications/initialized` is served.
    Compatible,
}

impl Handshake {
    /// The revisions that a client may ask for. One that asks for another gets 2025-11-25.
    pub(crate) fn revisions(self) -> &'static [ProtocolVersion] {
        match self {
            Self::Contract => &CONTRACT_REVISIONS,
            Self::Compatible => &REVISIONS,
        }
    }
}

/// Whether results have a structured part.
pub(crate) fn has_structured_content(revision: &ProtocolVersion) -> bool {
    *revision >= ProtocolVersion::V_2025_06_18
}

/// Whether a client must name the revision in a header of each request.
pub(crate) fn has_version_header(revision: &ProtocolVersion) -> bool {
    *revision >= ProtocolVersion::V_2025_06_18
}

/// Whether a client may send several messages at once. Only one revision had this.
pub(crate) fn has_batches(revision: &ProtocolVersion) -> bool {
    *revision == ProtocolVersion::V_2025_03_26
}

/// Whether a progress report has a message.
pub(crate) fn has_progress_message(revision: &ProtocolVersion) -> bool {
    *revision >= ProtocolVersion::V_2025_03_26
}

/// Removes from a listed tool what `revision` does not know.
pub(crate) fn fit_tool(tool: &mut Tool, revision: &ProtocolVersion) {
    if !has_structured_content(revision) {
        tool.output_schema = None;
        tool.title = None;
    }
    if *revision < ProtocolVersion::V_2025_03_26 {
        tool.annotations = None;
    }
}

/// Moves a structured result that `revision` does not know into the text, unless there is a text already.
pub(crate) fn fit_result(result: &mut CallToolResult, revision: &ProtocolVersion) {
    if has_structured_content(revision) {
        return;
    }
    if let Some(structured) = result.structured_content.take()
        && result.content.is_empty()
    {
        result.content.push(ContentBlock::text(structured.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn structured_result_becomes_text_before_2025_06_18() {
        let fitted = |revision: &ProtocolVersion, texts: &[&str]| {
            let mut result =
                CallToolResult::success(texts.iter().map(|text| ContentBlock::text(*text)).collect());
            result.structured_content = Some(json!({ "b": 1, "a": [] }));
            fit_result(&mut result, revision);
            let texts =
                result.content.iter().map(|item| item.as_text().unwrap().text.clone()).collect::<Vec<_>>();
            (result.structured_content.is_some(), texts.join("|"))
        };
        for revision in &REVISIONS[..2] {
            assert_eq!(fitted(revision, &["one line"]), (false, "one line".to_owned()));
            assert_eq!(fitted(revision, &[]).1.len(), r#"{"a":[],"b":1}"#.len());
        }
        for revision in &REVISIONS[2..] {
            assert_eq!(fitted(revision, &[]), (true, String::new()));
        }
    }
}
