//! The script of a fake server, as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fake server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Sent unchanged in the answer to `initialize`.
    pub capabilities: Value,
    pub initialize: Initialize,
    /// All rules that match a message run, each in its own task.
    pub rules: Vec<Rule>,
    /// Finish the rules of a message before reading the next one, as a server without threads does.
    pub in_order: bool,
    /// Do not answer requests without a rule.
    pub ignores_unknown: bool,
    /// Keep running when stdin ends.
    pub deaf_to_eof: bool,
    /// Ignore SIGTERM.
    pub deaf_to_sigterm: bool,
    /// Keep running after `exit`.
    pub deaf_to_exit: bool,
    /// Start a process that inherits the pipes and outlives the server.
    pub child: bool,
    /// Write every frame in pieces.
    pub partial: Option<Partial>,
}

/// What happens on `initialize`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Initialize {
    pub delay_ms: u64,
    /// Never answer.
    pub hang: bool,
    /// Exit with this code instead of answering.
    pub exit: Option<i32>,
    /// Answer with this error message.
    pub refuse: Option<String>,
    /// Run before the answer, without delay.
    pub before: Vec<Action>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partial {
    pub bytes: usize,
    pub pause_ms: u64,
}

/// Actions for a message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// The method.
    pub on: String,
    /// Only for documents whose URI ends with this.
    pub file: Option<String>,
    /// Only for the nth message of this method and file filter, counted from 1.
    pub nth: Option<u64>,
    /// Only from the nth message on.
    pub from: Option<u64>,
    /// Only when the document's text contains this.
    pub text: Option<String>,
    #[serde(rename = "do")]
    pub actions: Vec<Action>,
}

/// One step. In values, the strings `$uri`, `$version` and `$root` are replaced by those of the message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Answer the request.
    Reply(Value),
    /// Answer with an error.
    Refuse {
        code: i64,
        message: String,
    },
    /// Answer with a location at the position of the request.
    ReplyHere,
    /// Answer with a hover of the word at the position of the request.
    ReplyWord,
    /// Answer with many locations.
    ReplyLocations(Locations),
    /// Answer with the places of the word at the position of the request in these files, relative to the root.
    ReplyMentions(Vec<String>),
    /// Answer with a rename of the word at the position of the request in these files, relative to the root.
    ReplyRename(Vec<String>),
    /// Answer a pull with one error for each `bad` in the document's text.
    ReplyLint,
    /// Answer a pull with one error for each `import NAME` whose file `NAME.EXT` beside the document is missing, contains
    /// `bad`, or has such an import itself.
    ReplyImports,
    /// Answer with the id of no request.
    ReplyWrongId(Value),
    WaitMs(u64),
    Publish(Publish),
    Progress(Progress),
    Notify {
        method: String,
        params: Value,
    },
    /// Send a request to the client; the transcript has its answer.
    Request {
        method: String,
        params: Value,
    },
    /// Write bytes that do not form a frame.
    Raw(String),
    /// Write a frame with this body.
    RawFrame(String),
    /// Write this many bytes to stderr.
    FloodStderr(usize),
    /// Send this many requests to the client at once.
    FloodRequests(usize),
    /// Publish one diagnostic for each of this many files that are not open.
    FloodFiles(usize),
    Exit(i32),
    /// Abort.
    Die,
    /// Close stdout and keep running.
    CloseStdout,
    /// Close stdin and keep running.
    CloseStdin,
    /// Stop reading stdin.
    StopReading,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locations {
    /// The file they are in; `$uri` is that of the request.
    pub uri: String,
    pub count: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// `$uri`, or a path relative to the root.
    pub uri: String,
    #[serde(default)]
    pub version: Version,
    /// `None` publishes one error for each `bad` in the document's current text.
    #[serde(default)]
    pub diagnostics: Option<Vec<Diagnostic>>,
}

/// The version in a publish.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Version {
    /// That of the document when the rule matched.
    #[default]
    Caused,
    None,
    Exactly(i32),
}

/// A diagnostic on one line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Diagnostic {
    pub line: u32,
    pub message: String,
    pub severity: Option<u32>,
    pub code: Option<Value>,
    pub source: Option<String>,
    /// Sent instead of the line's range, to be invalid.
    pub range: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub token: String,
    /// `begin`, `report` or `end`.
    pub kind: String,
}
