//! What the fake server is told to do, as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A whole server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Sent as they are in the answer to `initialize`.
    pub capabilities: Value,
    pub initialize: Initialize,
    /// All rules that fit a message run, each as a task of its own.
    pub rules: Vec<Rule>,
    /// Stay when stdin ends.
    pub deaf_to_eof: bool,
    /// Stay when told to terminate.
    pub deaf_to_sigterm: bool,
    /// Stay after `exit`.
    pub deaf_to_exit: bool,
    /// Start a process that holds our pipes and outlives us.
    pub child: bool,
    /// Write every frame in pieces.
    pub partial: Option<Partial>,
}

/// How `initialize` goes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Initialize {
    pub delay_ms: u64,
    /// Never answer.
    pub hang: bool,
    /// Exit with this code instead of answering.
    pub exit: Option<i32>,
    /// Refuse with this message.
    pub refuse: Option<String>,
    /// Done before the answer, right away.
    pub before: Vec<Action>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partial {
    pub bytes: usize,
    pub pause_ms: u64,
}

/// What to do when a message arrives.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// The method.
    pub on: String,
    /// Only for documents whose URI ends so.
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

/// One step. Strings `$uri`, `$version`, `$root` and `$id` in values stand for those of the message.
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
    /// Answer with a location at the very place that was asked about.
    ReplyHere,
    /// Answer with a hover that holds the word at the place that was asked about.
    ReplyWord,
    /// Answer with many locations.
    ReplyLocations(Locations),
    /// Answer a pull with one error for each `bad` in the document's text.
    ReplyLint,
    /// Answer under an id that nobody used.
    ReplyWrongId(Value),
    WaitMs(u64),
    Publish(Publish),
    Progress(Progress),
    Notify {
        method: String,
        params: Value,
    },
    /// Ask the client something; its answer is in the transcript.
    Request {
        method: String,
        params: Value,
    },
    /// Bytes on stdout that are no frame.
    Raw(String),
    /// A frame whose body is no message.
    RawFrame(String),
    /// So many bytes on stderr.
    FloodStderr(usize),
    /// Ask the client so many things at once.
    FloodRequests(usize),
    Exit(i32),
    /// Die by SIGKILL.
    Die,
    /// Close stdout and live on.
    CloseStdout,
    /// Close stdin and live on.
    CloseStdin,
    /// Stop reading stdin.
    StopReading,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locations {
    /// The file they are in; `$uri` is the one asked about.
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
    /// `None` publishes one error for each `bad` in the document's text as it is then.
    #[serde(default)]
    pub diagnostics: Option<Vec<Diagnostic>>,
}

/// Which version a publish names.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Version {
    /// Of the message that caused it.
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
    /// Sent instead of the range, to be wrong.
    pub range: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub token: String,
    /// `begin`, `report` or `end`.
    pub kind: String,
}
