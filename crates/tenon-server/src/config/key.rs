//! The list of every setting: its name, what it may hold, who may set it, and what it means.
//!
//! One table feeds everything that knows settings: the reader of `tenon.toml`, environment variables, `tenon config
//! show`, the editors' schema and the reference page. A setting that is not in [`KEYS`] does not exist.
//!
//! Invariant: a key reaches as far as its [`SettingScope`] says and no further. What an untrusted repository may set can only
//! hide files, choose what is reported, or tighten a limit.

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// Dotted name; `*` stands for a name that the user chooses.
    pub path: &'static str,
    pub kind: ValueKind,
    pub default: DefaultValue,
    /// Environment variables that set it, the first that is present wins.
    pub variables: &'static [&'static str],
    pub scope: SettingScope,
    pub merge: MergeRule,
    /// Complete sentences for the reference page and for editors.
    pub doc: &'static str,
}

/// What a setting may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Flag,
    /// A whole number; outside the bounds is an error.
    Number {
        min: u64,
        max: u64,
    },
    /// A whole number; above the maximum it is taken as the maximum.
    Limit {
        min: u64,
        max: u64,
    },
    /// A span of time in words: `15m`, `1h 30m`, `250ms`.
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    Text,
    Choice(&'static [&'static str]),
    Texts,
    Choices(&'static [&'static str]),
    /// Gitignore-style patterns.
    Globs,
    /// Absolute, or `~/…`; in `tenon.toml` also relative to the workspace root.
    Path,
    Paths,
    /// A path, or a URL.
    Store,
    /// The name of a workspace.
    Workspace,
    /// Names and strings.
    TextMap,
    /// Any table.
    Object,
}

/// The value when nobody sets one.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    Absent,
    Flag(bool),
    Number(u64),
    Text(&'static str),
    Texts(&'static [&'static str]),
}

/// Whose word counts for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// Everyone's, an untrusted repository's too.
    Anyone,
    /// The user's, and a repository's once it is trusted.
    Trusted,
    /// The user's alone: a repository cannot set it, trusted or not.
    User,
}

/// How a layer meets the layers below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeRule {
    Replace,
    /// Lists grow.
    Append,
    /// Like `Replace`, but a repository can only make the number smaller.
    Strictest,
}

/// The names of all surfaces, in the order in which they are listed.
pub const SURFACES: &[&str] = &["code", "nav", "edit", "context", "tasks", "memory", "workspace"];

const SEVERITIES: &[&str] = &["error", "warning", "info", "hint"];
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

const fn key(
    path: &'static str,
    kind: ValueKind,
    default: DefaultValue,
    scope: SettingScope,
    doc: &'static str,
) -> Key {
    Key { path, kind, default, variables: &[], scope, merge: MergeRule::Replace, doc }
}

const fn limit(
    path: &'static str,
    maximum: u64,
    variables: &'static [&'static str],
    doc: &'static str,
) -> Key {
    let kind = ValueKind::Limit { min: 1, max: maximum };
    let default = DefaultValue::Number(maximum);
    Key { path, kind, default, variables, scope: SettingScope::Anyone, merge: MergeRule::Strictest, doc }
}

impl Key {
    const fn with_variables(mut self, variables: &'static [&'static str]) -> Self {
        self.variables = variables;
        self
    }

    const fn appending(mut self) -> Self {
        self.merge = MergeRule::Append;
        self
    }

    /// The table the key stands in, and its own name: `limits` and `max_page_size`.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }

    /// Whether `path` names this key, `*` standing for any one segment.
    pub fn matches(&self, path: &str) -> bool {
        let mut ours = self.path.split('.');
        let mut theirs = path.split('.');
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(our), Some(their)) if our == "*" || our == their => {}
                _ => return false,
            }
        }
    }
}

/// Every setting, in the order of the reference page.
pub static KEYS: &[Key] = &[
    key(
        "workspace.id",
        ValueKind::Workspace,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The name under which plans and memory of this workspace are kept. Without it the git remote decides, or else \
         the folder.",
    )
    .with_variables(&["TENON_WORKSPACE_ID"]),
    key(
        "workspace.roots",
        ValueKind::Paths,
        DefaultValue::Texts(&[]),
        SettingScope::Trusted,
        "More folders that may be read, beside the workspace root.",
    )
    .with_variables(&["TENON_WORKSPACE_ROOTS"]),
    key(
        "workspace.ignore",
        ValueKind::Globs,
        DefaultValue::Texts(&[]),
        SettingScope::Anyone,
        "Files to leave out, beside what `.gitignore` already leaves out: gitignore-style patterns, relative to the root.",
    )
    .appending(),
    key(
        "mcp.surfaces",
        ValueKind::Choices(SURFACES),
        DefaultValue::Texts(&["code", "workspace"]),
        SettingScope::Trusted,
        "The surfaces a client gets that does not choose. `edit` also needs `edit.allow`.",
    )
    .with_variables(&["TENON_MCP_SURFACES"]),
    key(
        "mcp.content",
        ValueKind::Choice(&["structured", "text"]),
        DefaultValue::Text("structured"),
        SettingScope::Trusted,
        "Whether results carry structured content alone, or also a compact listing in words for clients that show the \
         model nothing else.",
    )
    .with_variables(&["TENON_MCP_CONTENT"]),
    key(
        "mcp.tool_names",
        ValueKind::Choice(&["dotted", "underscore"]),
        DefaultValue::Text("dotted"),
        SettingScope::Trusted,
        "How tool names are listed. Calls are accepted in both forms.",
    )
    .with_variables(&["TENON_MCP_TOOL_NAMES"]),
    limit(
        "limits.max_request_bytes",
        1024 * 1024,
        &["TENON_LIMITS_MAX_REQUEST_BYTES"],
        "The largest request that is read.",
    ),
    limit(
        "limits.max_response_bytes",
        512 * 1024,
        &["TENON_LIMITS_MAX_RESPONSE_BYTES"],
        "The largest answer that is sent.",
    ),
    limit(
        "limits.request_timeout_ms",
        2000,
        &["TENON_LIMITS_REQUEST_TIMEOUT_MS"],
        "How long a call of the `code` surface may take, in milliseconds.",
    ),
    limit(
        "limits.max_items_nonpaged",
        200,
        &["TENON_LIMITS_MAX_ITEMS_NONPAGED"],
        "The most items in an answer without pages.",
    ),
    limit(
        "limits.max_page_size",
        200,
        &["TENON_LIMITS_MAX_PAGE_SIZE"],
        "The most items on one page.",
    ),
    limit(
        "limits.max_workspace_diagnostics_items_total",
        5000,
        &["TENON_LIMITS_MAX_WORKSPACE_DIAGNOSTICS_ITEMS_TOTAL"],
        "The most diagnostics that one question may yield over all pages.",
    ),
    limit(
        "limits.max_workspace_symbols_items_total",
        20_000,
        &["TENON_LIMITS_MAX_WORKSPACE_SYMBOLS_ITEMS_TOTAL"],
        "The most symbols that one question may yield over all pages.",
    ),
    limit(
        "limits.max_references_items_total",
        20_000,
        &["TENON_LIMITS_MAX_REFERENCES_ITEMS_TOTAL"],
        "The most references that one question may yield over all pages.",
    ),
    key(
        "http.port",
        ValueKind::Number { min: 0, max: 65_535 },
        DefaultValue::Number(0),
        SettingScope::Trusted,
        "The loopback port of `tenon serve --http`. 0 takes any free one and says which.",
    )
    .with_variables(&["TENON_HTTP_PORT"]),
    key(
        "daemon.idle",
        ValueKind::Duration { min_ms: 50, max_ms: 30 * DAY_MS },
        DefaultValue::Text("15m"),
        SettingScope::Trusted,
        "How long the daemon stays when no client is connected.",
    )
    .with_variables(&["TENON_DAEMON_IDLE"]),
    key(
        "log.level",
        ValueKind::Choice(&["off", "error", "warn", "info", "debug", "trace"]),
        DefaultValue::Text("info"),
        SettingScope::Trusted,
        "What the daemon writes to its log.",
    )
    .with_variables(&["TENON_LOG_LEVEL"]),
    key(
        "log.folder",
        ValueKind::Path,
        DefaultValue::Absent,
        SettingScope::User,
        "Where logs go instead of the user's state folder.",
    )
    .with_variables(&["TENON_LOG_FOLDER"]),
    key(
        "log.max_bytes",
        ValueKind::Number { min: 64 * 1024, max: 1024 * 1024 * 1024 },
        DefaultValue::Number(8 * 1024 * 1024),
        SettingScope::Trusted,
        "The size at which a log file is set aside and a new one begun.",
    ),
    key(
        "log.keep",
        ValueKind::Number { min: 0, max: 100 },
        DefaultValue::Number(3),
        SettingScope::Trusted,
        "How many set-aside log files are kept.",
    ),
    key(
        "servers.*.command",
        ValueKind::Text,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The language server's program: a name to look up, or a path; a relative path starts at the workspace root.",
    ),
    key("servers.*.args", ValueKind::Texts, DefaultValue::Absent, SettingScope::Trusted, "Its arguments."),
    key(
        "servers.*.extensions",
        ValueKind::Texts,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The files it is asked about, by extension with the dot.",
    ),
    key("servers.*.languageId", ValueKind::Text, DefaultValue::Absent, SettingScope::Trusted, "The language id of those files."),
    key(
        "servers.*.rootMarkers",
        ValueKind::Texts,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "File names that mark a project root for it.",
    ),
    key("servers.*.env", ValueKind::TextMap, DefaultValue::Absent, SettingScope::Trusted, "Environment variables it is started with."),
    key(
        "servers.*.initializationOptions",
        ValueKind::Object,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "What it is told in `initialize`, merged into what Tenon says.",
    ),
    key(
        "servers.*.settings",
        ValueKind::Object,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "What it gets when it asks for its configuration, merged into what Tenon says.",
    ),
    key("servers.*.enabled", ValueKind::Flag, DefaultValue::Absent, SettingScope::Trusted, "Whether it is used at all."),
    key(
        "check.severities",
        ValueKind::Choices(SEVERITIES),
        DefaultValue::Texts(&["error", "warning"]),
        SettingScope::Anyone,
        "What `tenon check` reports and counts as a finding.",
    )
    .with_variables(&["TENON_CHECK_SEVERITIES"]),
    key(
        "context.cache_root",
        ValueKind::Path,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The folder that holds the context caches the `context` surface may name.",
    )
    .with_variables(&["TENON_CONTEXT_CACHE_ROOT", "CONTEXT_CACHE_ROOT"]),
    key(
        "work.store",
        ValueKind::Store,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "Where plans and memory are kept: the path of an SQLite file or a `postgres://` URL. Without it, a file in the \
         user's data folder.",
    )
    .with_variables(&["TENON_WORK_STORE"]),
    key(
        "work.strict",
        ValueKind::Flag,
        DefaultValue::Flag(false),
        SettingScope::Trusted,
        "Whether plans and memory want `memory_init` before the first write.",
    )
    .with_variables(&["TENON_WORK_STRICT"]),
    key(
        "edit.allow",
        ValueKind::Paths,
        DefaultValue::Texts(&[]),
        SettingScope::User,
        "The workspaces, by folder, whose files the `edit` surface may change. Folders below a named one count too.",
    )
    .with_variables(&["TENON_EDIT_ALLOW"]),
    key(
        "edit.severities",
        ValueKind::Choices(SEVERITIES),
        DefaultValue::Texts(&["error"]),
        SettingScope::User,
        "Which diagnostics an agent is told after an edit, by the `edit` surface or by a hook.",
    )
    .with_variables(&["TENON_EDIT_SEVERITIES"]),
    key(
        "edit.wait_ms",
        ValueKind::Number { min: 0, max: 600_000 },
        DefaultValue::Number(2000),
        SettingScope::User,
        "How long what an edit broke in other files may take to show, in milliseconds. Nobody waits longer than the language \
         servers take.",
    )
    .with_variables(&["TENON_EDIT_WAIT_MS"]),
];

/// The key that `path` names, if there is one.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.matches(path))
}

/// The names that may stand directly below `table` (a concrete path), without repeats, in table order.
///
/// A `*` among them means that the user chooses the name.
pub fn names_below(table: &str) -> Vec<&'static str> {
    let depth = if table.is_empty() { 0 } else { table.split('.').count() };
    let mut names: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let segments: Vec<&'static str> = key.path.split('.').collect();
        let prefix = table.split('.').filter(|segment| !segment.is_empty());
        let below = segments.len() > depth
            && segments.iter().zip(prefix).all(|(ours, theirs)| *ours == "*" || *ours == theirs);
        if below && !names.contains(&segments[depth]) {
            names.push(segments[depth]);
        }
    }
    names
}

/// What the user most likely meant by the unknown `name` below `table`, as a whole path.
pub fn nearest(table: &str, name: &str) -> Option<String> {
    let within = |distance: usize, length: usize| distance <= (length / 3).max(2);
    let join = |known: &str| {
        if table.is_empty() { known.to_owned() } else { format!("{table}.{known}") }
    };
    let sibling = names_below(table)
        .into_iter()
        .filter(|known| *known != "*")
        .map(|known| (closeness(name, known), known))
        .filter(|(distance, known)| within(*distance, known.len()))
        .min();
    if let Some((_, known)) = sibling {
        return Some(join(known));
    }
    // The right name in the wrong table.
    let elsewhere = KEYS.iter().find(|key| key.split().1 == name && !key.path.contains('*'));
    elsewhere.map(|key| key.path.to_owned())
}

/// Edit distance that does not mind case, `-` for `_`, or a missing word at either end (`page_size`).
fn closeness(given: &str, known: &str) -> usize {
    let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
    let (given, known) = (plain(given), plain(known));
    if given.len() >= 4 && (known.ends_with(&given) || known.starts_with(&given)) {
        return 1;
    }
    strsim::damerau_levenshtein(&given, &known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_their_variables_too() {
        let mut paths: Vec<_> = KEYS.iter().map(|key| key.path).collect();
        let mut variables: Vec<_> = KEYS.iter().flat_map(|key| key.variables).collect();
        let counts = (paths.len(), variables.len());
        paths.sort_unstable();
        paths.dedup();
        variables.sort_unstable();
        variables.dedup();
        assert_eq!((paths.len(), variables.len()), counts);
    }

    #[test]
    fn a_variable_is_named_after_its_key() {
        for key in KEYS.iter().filter(|key| !key.variables.is_empty()) {
            let expected = format!("TENON_{}", key.path.replace('.', "_").to_uppercase());
            assert_eq!(key.variables[0], expected);
        }
    }

    #[test]
    fn an_untrusted_repository_can_only_narrow() {
        let narrowing = ["workspace.ignore", "check.severities"];
        for key in KEYS.iter().filter(|key| key.scope == SettingScope::Anyone) {
            assert!(key.path.starts_with("limits.") || narrowing.contains(&key.path), "{}", key.path);
        }
        for key in KEYS.iter().filter(|key| key.path.starts_with("limits.")) {
            assert_eq!(key.merge, MergeRule::Strictest, "{}", key.path);
        }
    }

    #[test]
    fn finds_what_was_meant() {
        assert_eq!(nearest("", "limit").as_deref(), Some("limits"));
        assert_eq!(nearest("limits", "page_size").as_deref(), Some("limits.max_page_size"));
        assert_eq!(nearest("limits", "max-page-size").as_deref(), Some("limits.max_page_size"));
        assert_eq!(nearest("servers.pyright", "language_id").as_deref(), Some("servers.pyright.languageId"));
        assert_eq!(nearest("workspace", "surfaces").as_deref(), Some("mcp.surfaces"));
        assert_eq!(nearest("", "zebra"), None);
    }
}
