//! The list of all settings: name, kind of value, who may set it, and description.
//!
//! This one table is used by the reader of `tenon.toml`, environment variables, `tenon config show`, the editors' schema
//! and the reference page. A setting that is not in [`KEYS`] does not exist.
//!
//! Invariant: [`SettingScope`] limits who may make a setting. An untrusted repository can only hide files, choose
//! severities, or tighten a limit.

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// Dotted name; `*` matches a name that the user chooses.
    pub path: &'static str,
    pub kind: ValueKind,
    pub default: DefaultValue,
    /// Environment variables that set it; the first that is present wins.
    pub variables: &'static [&'static str],
    pub scope: SettingScope,
    pub merge: MergeRule,
    /// Full sentences for the reference page and for editors.
    pub doc: &'static str,
}

/// The kind of value that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Flag,
    /// A whole number; outside the bounds is an error.
    Number {
        min: u64,
        max: u64,
    },
    /// A whole number; above the maximum, the maximum is used.
    Limit {
        min: u64,
        max: u64,
    },
    /// A duration: `15m`, `1h 30m`, `250ms`.
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

/// The value of a setting that was not made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    Absent,
    Flag(bool),
    Number(u64),
    Text(&'static str),
    Texts(&'static [&'static str]),
}

/// Who may make a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingScope {
    /// Everyone, an untrusted repository included.
    Anyone,
    /// The user, and a trusted repository.
    Trusted,
    /// The user only: a repository cannot, trusted or not.
    User,
}

/// How a source combines with the sources before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeRule {
    Replace,
    /// Lists are concatenated.
    Append,
    /// As `Replace`, but a repository can only lower the number.
    Strictest,
}

/// The names of all surfaces, in the order in which they are listed.
pub(crate) const SURFACES: &[&str] =
    &["explore", "code", "nav", "edit", "context", "work", "tasks", "memory", "workspace"];

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

    /// The key's table and its name in it: `limits` and `max_page_size`.
    pub(crate) fn split(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }

    /// Whether `path` names this key; `*` matches any one segment.
    pub(crate) fn matches(&self, path: &str) -> bool {
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
pub(crate) static KEYS: &[Key] = &[
    key(
        "workspace.id",
        ValueKind::Workspace,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The name of this workspace in the store of plans and memory. By default it is derived from the git remote, or \
         else from the folder.",
    )
    .with_variables(&["TENON_WORKSPACE_ID"]),
    key(
        "workspace.roots",
        ValueKind::Paths,
        DefaultValue::Texts(&[]),
        SettingScope::Trusted,
        "Folders that may be read, in addition to the workspace root.",
    )
    .with_variables(&["TENON_WORKSPACE_ROOTS"]),
    key(
        "workspace.ignore",
        ValueKind::Globs,
        DefaultValue::Texts(&[]),
        SettingScope::Anyone,
        "Files to exclude, in addition to those in `.gitignore`: gitignore-style patterns, relative to the root.",
    )
    .appending(),
    key(
        "mcp.surfaces",
        ValueKind::Choices(SURFACES),
        DefaultValue::Texts(&["explore", "edit", "workspace"]),
        SettingScope::Trusted,
        "Default surfaces, for clients that do not select any. `edit` also needs `edit.allow`.",
    )
    .with_variables(&["TENON_MCP_SURFACES"]),
    key(
        "mcp.content",
        ValueKind::Choice(&["auto", "structured", "text"]),
        DefaultValue::Text("auto"),
        SettingScope::Trusted,
        "Whether results contain only structured content (`structured`), or also a compact text listing (`text`). `auto` \
         adds the listing for clients that show their model only text (docs/clients.md).",
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
        "The largest accepted request, in bytes.",
    ),
    limit(
        "limits.max_response_bytes",
        512 * 1024,
        &["TENON_LIMITS_MAX_RESPONSE_BYTES"],
        "The largest response, in bytes.",
    ),
    limit(
        "limits.request_timeout_ms",
        2000,
        &["TENON_LIMITS_REQUEST_TIMEOUT_MS"],
        "The time limit of a call of the `code` surface, in milliseconds.",
    ),
    limit(
        "limits.max_items_nonpaged",
        200,
        &["TENON_LIMITS_MAX_ITEMS_NONPAGED"],
        "The maximum number of items in a response without pages.",
    ),
    limit(
        "limits.max_page_size",
        200,
        &["TENON_LIMITS_MAX_PAGE_SIZE"],
        "The maximum number of items per page.",
    ),
    limit(
        "limits.max_workspace_diagnostics_items_total",
        5000,
        &["TENON_LIMITS_MAX_WORKSPACE_DIAGNOSTICS_ITEMS_TOTAL"],
        "The maximum number of diagnostics of one request over all pages.",
    ),
    limit(
        "limits.max_workspace_symbols_items_total",
        20_000,
        &["TENON_LIMITS_MAX_WORKSPACE_SYMBOLS_ITEMS_TOTAL"],
        "The maximum number of symbols of one request over all pages.",
    ),
    limit(
        "limits.max_references_items_total",
        20_000,
        &["TENON_LIMITS_MAX_REFERENCES_ITEMS_TOTAL"],
        "The maximum number of references of one request over all pages.",
    ),
    key(
        "http.port",
        ValueKind::Number { min: 0, max: 65_535 },
        DefaultValue::Number(0),
        SettingScope::Trusted,
        "The loopback port of `tenon serve --http`. 0 picks a free port and keeps it for the workspace.",
    )
    .with_variables(&["TENON_HTTP_PORT"]),
    key(
        "console.modules",
        ValueKind::Paths,
        DefaultValue::Texts(&[]),
        SettingScope::Trusted,
        "Folders of modules that the web console shows: each has a `module.json` and templates (docs/console.md).",
    )
    .with_variables(&["TENON_CONSOLE_MODULES"]),
    key(
        "console.policy",
        ValueKind::Path,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "A JSON file with the composition policy of the web console: which pages are hidden, replaced, renamed or reordered.",
    ),
    key(
        "console.editor",
        ValueKind::Choice(&["none", "vscode", "cursor", "zed"]),
        DefaultValue::Text("none"),
        SettingScope::Trusted,
        "The editor that links of the web console open.",
    )
    .with_variables(&["TENON_CONSOLE_EDITOR"]),
    key(
        "daemon.idle",
        ValueKind::Duration { min_ms: 50, max_ms: 30 * DAY_MS },
        DefaultValue::Text("15m"),
        SettingScope::Trusted,
        "How long the daemon keeps running without clients.",
    )
    .with_variables(&["TENON_DAEMON_IDLE"]),
    key(
        "log.level",
        ValueKind::Choice(&["off", "error", "warn", "info", "debug", "trace"]),
        DefaultValue::Text("info"),
        SettingScope::Trusted,
        "The level of the daemon's log.",
    )
    .with_variables(&["TENON_LOG_LEVEL"]),
    key(
        "log.folder",
        ValueKind::Path,
        DefaultValue::Absent,
        SettingScope::User,
        "The folder for logs, instead of the user's state folder.",
    )
    .with_variables(&["TENON_LOG_FOLDER"]),
    key(
        "log.max_bytes",
        ValueKind::Number { min: 64 * 1024, max: 1024 * 1024 * 1024 },
        DefaultValue::Number(8 * 1024 * 1024),
        SettingScope::Trusted,
        "The size at which a log file is rotated, in bytes.",
    ),
    key(
        "log.keep",
        ValueKind::Number { min: 0, max: 100 },
        DefaultValue::Number(3),
        SettingScope::Trusted,
        "How many rotated log files are kept.",
    ),
    key(
        "sandbox.except",
        ValueKind::Texts,
        DefaultValue::Texts(&[]),
        SettingScope::User,
        "Language servers, by id, or `*` for all, that run with all rights of the user instead of in the sandbox. One that needs the sandbox \
         then waits until the workspace is trusted.",
    ),
    key(
        "sandbox.write",
        ValueKind::Paths,
        DefaultValue::Texts(&[]),
        SettingScope::User,
        "Folders outside the root that language servers may change once the workspace is trusted.",
    ),
    key(
        "servers.*.command",
        ValueKind::Text,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The language server's program: a name to look up in `PATH`, or a path. A relative path starts at the workspace root.",
    ),
    key("servers.*.args", ValueKind::Texts, DefaultValue::Absent, SettingScope::Trusted, "The program's arguments."),
    key(
        "servers.*.extensions",
        ValueKind::Texts,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The extensions of the files it handles, with the dot.",
    ),
    key("servers.*.languageId", ValueKind::Text, DefaultValue::Absent, SettingScope::Trusted, "The language id of those files."),
    key(
        "servers.*.rootMarkers",
        ValueKind::Texts,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "File names that mark a project root for this server.",
    ),
    key("servers.*.env", ValueKind::TextMap, DefaultValue::Absent, SettingScope::Trusted, "Environment variables of the server."),
    key(
        "servers.*.initializationOptions",
        ValueKind::Object,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The `initializationOptions` of `initialize`, merged into Tenon's own.",
    ),
    key(
        "servers.*.settings",
        ValueKind::Object,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The answer to `workspace/configuration`, merged into Tenon's own.",
    ),
    key("servers.*.enabled", ValueKind::Flag, DefaultValue::Absent, SettingScope::Trusted, "Whether the server is used."),
    key(
        "check.severities",
        ValueKind::Choices(SEVERITIES),
        DefaultValue::Texts(&["error", "warning"]),
        SettingScope::Anyone,
        "The severities that `tenon check` reports and counts as findings.",
    )
    .with_variables(&["TENON_CHECK_SEVERITIES"]),
    key(
        "context.cache_root",
        ValueKind::Path,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The folder with the document caches of the `context` surface.",
    )
    .with_variables(&["TENON_CONTEXT_CACHE_ROOT", "CONTEXT_CACHE_ROOT"]),
    key(
        "work.store",
        ValueKind::Store,
        DefaultValue::Absent,
        SettingScope::Trusted,
        "The store of plans and memory: the path of an SQLite file or a `postgres://` URL. The default is a file in the \
         user's data folder.",
    )
    .with_variables(&["TENON_WORK_STORE"]),
    key(
        "work.strict",
        ValueKind::Flag,
        DefaultValue::Flag(false),
        SettingScope::Trusted,
        "Whether a workspace must be created with `memory_init` before the first write of plans and memory.",
    )
    .with_variables(&["TENON_WORK_STRICT"]),
    key(
        "work.run_commands",
        ValueKind::Paths,
        DefaultValue::Texts(&[]),
        SettingScope::User,
        "The workspace folders in which a check of a step (`cmd: make test`) may run its command. Folders below them are \
         included.",
    )
    .with_variables(&["TENON_WORK_RUN_COMMANDS"]),
    key(
        "edit.allow",
        ValueKind::Paths,
        DefaultValue::Texts(&[]),
        SettingScope::User,
        "The workspace folders in which the `edit` surface may change files. Folders below them are included.",
    )
    .with_variables(&["TENON_EDIT_ALLOW"]),
    key(
        "edit.severities",
        ValueKind::Choices(SEVERITIES),
        DefaultValue::Texts(&["error"]),
        SettingScope::User,
        "The severities of the diagnostics that an agent sees after an edit, through the `edit` surface or a hook.",
    )
    .with_variables(&["TENON_EDIT_SEVERITIES"]),
    key(
        "edit.wait_ms",
        ValueKind::Number { min: 0, max: 600_000 },
        DefaultValue::Number(2000),
        SettingScope::User,
        "How long to wait after an edit for new diagnostics in other files, in milliseconds. The wait ends early when all \
         language servers are done.",
    )
    .with_variables(&["TENON_EDIT_WAIT_MS"]),
];

/// The key that `path` names, if any.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.matches(path))
}

/// The names directly below `table` (a concrete path), without duplicates, in table order.
///
/// A `*` among them means that the user chooses the name.
pub(crate) fn names_below(table: &str) -> Vec<&'static str> {
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

/// The path that the user most likely meant by the unknown `name` below `table`.
pub(crate) fn nearest(table: &str, name: &str) -> Option<String> {
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
    // The name exists in another table.
    let elsewhere = KEYS.iter().find(|key| key.split().1 == name && !key.path.contains('*'));
    elsewhere.map(|key| key.path.to_owned())
}

/// Edit distance that ignores case, `-` for `_`, and a missing word at either end (`page_size`).
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
    fn keys_and_variables_are_unique() {
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
    fn variable_is_named_after_its_key() {
        for key in KEYS.iter().filter(|key| !key.variables.is_empty()) {
            let expected = format!("TENON_{}", key.path.replace('.', "_").to_uppercase());
            assert_eq!(key.variables[0], expected);
        }
    }

    #[test]
    fn untrusted_repository_can_only_narrow() {
        let narrowing = ["workspace.ignore", "check.severities"];
        for key in KEYS.iter().filter(|key| key.scope == SettingScope::Anyone) {
            assert!(key.path.starts_with("limits.") || narrowing.contains(&key.path), "{}", key.path);
        }
        for key in KEYS.iter().filter(|key| key.path.starts_with("limits.")) {
            assert_eq!(key.merge, MergeRule::Strictest, "{}", key.path);
        }
    }

    #[test]
    fn unknown_name_suggests_the_closest_key() {
        assert_eq!(nearest("", "limit").as_deref(), Some("limits"));
        assert_eq!(nearest("limits", "page_size").as_deref(), Some("limits.max_page_size"));
        assert_eq!(nearest("limits", "max-page-size").as_deref(), Some("limits.max_page_size"));
        assert_eq!(nearest("servers.pyright", "language_id").as_deref(), Some("servers.pyright.languageId"));
        assert_eq!(nearest("workspace", "surfaces").as_deref(), Some("mcp.surfaces"));
        assert_eq!(nearest("", "zebra"), None);
    }
}
