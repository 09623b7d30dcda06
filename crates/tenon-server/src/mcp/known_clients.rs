//! What known clients show their model of a result, by the name that they send in `clientInfo`.
//!
//! A result has a structured part and a text. No client shows both; docs/clients.md has the same table. A client is added
//! when its source or a recorded session shows what its model sees.

/// What a client's model sees of a result with both parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelView {
    /// The text, even if it is empty.
    Text,
    /// The text, or the structured part if there is no text.
    TextFirst,
    /// The structured part, or the text if there is none.
    StructuredFirst,
}

struct KnownClient {
    #[cfg_attr(not(test), expect(dead_code, reason = "for the table in the documentation"))]
    agent: &'static str,
    /// The name that it sends; some versions append `-` and the name of the server.
    name: &'static str,
    view: ModelView,
}

const fn client(agent: &'static str, name: &'static str, view: ModelView) -> KnownClient {
    KnownClient { agent, name, view }
}

const KNOWN: &[KnownClient] = &[
    client("Claude Code", "claude-code", ModelView::StructuredFirst),
    client("Codex", "codex-mcp-client", ModelView::StructuredFirst),
    client("Cursor", "cursor-vscode", ModelView::StructuredFirst),
    client("VS Code", "Visual Studio Code", ModelView::StructuredFirst),
    client("opencode", "opencode", ModelView::TextFirst),
    client("Cline", "Cline", ModelView::Text),
    client("Gemini CLI", "gemini-cli-mcp-client", ModelView::Text),
    client("Windsurf", "windsurf-client", ModelView::Text),
    client("Zed", "Zed", ModelView::Text),
];

/// Whether the model of the client called `name` sees nothing of a result without text.
pub(crate) fn sees_only_text(name: &str) -> bool {
    let is = |known: &KnownClient| {
        let rest = name.get(..known.name.len()).filter(|start| start.eq_ignore_ascii_case(known.name));
        rest.is_some() && (name.len() == known.name.len() || name[known.name.len()..].starts_with('-'))
    };
    KNOWN.iter().any(|known| known.view == ModelView::Text && is(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_their_name() {
        for name in
            ["gemini-cli-mcp-client", "gemini-cli-mcp-client-tenon", "Zed", "zed", "Cline", "windsurf-client"]
        {
            assert!(sees_only_text(name), "{name}");
        }
        for name in [
            "",
            "claude-code",
            "codex-mcp-client",
            "opencode",
            "Visual Studio Code",
            "zedd",
            "Ze",
            "Zé",
            "gemini-cli",
        ] {
            assert!(!sees_only_text(name), "{name}");
        }
    }

    #[test]
    fn documentation_has_the_same_table() {
        let page = include_str!("../../../../docs/clients.md");
        let rows: Vec<String> = KNOWN
            .iter()
            .map(|known| {
                let (sees, added) = match known.view {
                    ModelView::Text => ("the text", "yes"),
                    ModelView::TextFirst => ("the text, else the structured part", "no"),
                    ModelView::StructuredFirst => ("the structured part, else the text", "no"),
                };
                format!("| {} | `{}` | {sees} | {added} |", known.agent, known.name)
            })
            .collect();
        assert!(page.contains(&rows.join("\n")), "docs/clients.md must contain:\n{}", rows.join("\n"));
    }
}
