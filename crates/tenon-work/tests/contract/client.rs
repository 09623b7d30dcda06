//! The test client. It checks every answer against the envelope schema and executes every suggestion verbatim on a
//! copy of the store, where it must succeed.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenon_contract::clock::{Clock, ClockControl};
use tenon_contract::json::canonical_value;
use tenon_work::{Store, StoreLocation, Work, WorkSettings, WorkTool, WorkspaceName};

use tenon_testkit::postgres;

static ENVELOPE: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/envelope.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
});

/// The backend that a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
}

/// An answer that passed the checks of the client.
#[derive(Clone, Debug)]
pub struct Answer {
    pub envelope: Value,
    pub text: String,
}

impl Answer {
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.envelope["success"], json!(true), "{}", self.text);
        self.envelope["result"].clone()
    }

    #[track_caller]
    pub fn code(&self) -> &str {
        self.envelope["error"]["code"].as_str().unwrap_or_else(|| panic!("no error: {}", self.text))
    }

    #[track_caller]
    pub fn fails(self, code: &str) -> Self {
        assert_eq!(self.code(), code, "{}", self.text);
        self
    }

    pub fn error(&self) -> &Value {
        &self.envelope["error"]
    }

    /// The tools of the suggestions, in order.
    pub fn suggested(&self) -> Vec<&str> {
        let suggestions = self.envelope["suggestions"].as_array().unwrap();
        suggestions.iter().map(|suggestion| suggestion["target"].as_str().unwrap()).collect()
    }

    pub fn warns(&self, text: &str) -> bool {
        self.envelope["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning.as_str().unwrap().contains(text))
    }
}

pub struct Client {
    pub work: Work,
    pub clock_control: ClockControl,
    clock: Clock,
    settings: WorkSettings,
    folder: TempDir,
    pub location: StoreLocation,
}

impl Client {
    pub async fn new(on: On) -> Self {
        Self::with(on, WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false })
            .await
    }

    pub async fn with(on: On, settings: WorkSettings) -> Self {
        let folder = TempDir::new().unwrap();
        let location = match on {
            On::Sqlite => StoreLocation::Sqlite(folder.path().join("store.db")),
            On::Postgres => StoreLocation::Postgres(postgres::database()),
        };
        let store = Store::open(&location).await.unwrap();
        let start = "2026-01-02T03:04:05Z".parse().unwrap();
        let (clock, clock_control) = Clock::stepping(start, Duration::from_millis(1));
        let work = Work::new(store, clock.clone(), settings.clone());
        Self { work, clock_control, clock, settings, folder, location }
    }

    /// A second daemon on the same store.
    pub async fn peer(&self) -> Work {
        let store = Store::open(&self.location).await.unwrap();
        Work::new(store, self.clock.clone(), self.settings.clone())
    }

    /// A second daemon on the same PostgreSQL server whose writes always lock, as behind a pooler.
    pub async fn locking_peer(&self) -> Work {
        let StoreLocation::Postgres(url) = &self.location else { panic!("a server") };
        let location = StoreLocation::Postgres(format!("{url}?statement-cache-capacity=0"));
        let store = Store::open(&location).await.unwrap();
        Work::new(store, self.clock.clone(), self.settings.clone())
    }

    /// Calls a tool, which must succeed.
    #[track_caller]
    pub fn ok<'a>(&'a self, tool: &'a str, args: Value) -> Pin<Box<dyn Future<Output = Value> + 'a>> {
        let caller = std::panic::Location::caller();
        Box::pin(async move {
            let answer = self.call(tool, args).await;
            assert_eq!(answer.envelope["success"], json!(true), "{caller}: {tool}: {}", answer.text);
            answer.envelope["result"].clone()
        })
    }

    /// Calls a tool, checks the envelope, and executes the suggestions.
    pub async fn call(&self, tool: &str, args: Value) -> Answer {
        let answer = self.call_quietly(tool, args).await;
        for suggestion in answer.envelope["suggestions"].as_array().unwrap() {
            self.execute(suggestion).await;
        }
        answer
    }

    /// Like `call`, but does not execute the suggestions. For loops with many similar calls.
    pub async fn call_quietly(&self, tool: &str, args: Value) -> Answer {
        call(&self.work, tool, args).await
    }

    /// Executes a suggestion on a copy of the store.
    async fn execute(&self, suggestion: &Value) {
        let copy = self.copy().await;
        let (tool, params) = (suggestion["target"].as_str().unwrap(), suggestion["params"].clone());
        let answer = call(&copy, tool, params).await;
        assert_eq!(
            answer.envelope["success"],
            json!(true),
            "suggested {suggestion}\nanswered {}",
            answer.text
        );
        copy.store().close().await;
    }

    /// A copy of the store in a separate SQLite file, with the same clock and no default workspace.
    pub async fn copy(&self) -> Work {
        let mut export = Vec::new();
        self.work.store().export(&mut export).await.unwrap();
        let file = tempfile::Builder::new().suffix(".db").tempfile_in(self.folder.path()).unwrap();
        let path = file.into_temp_path().keep().unwrap();
        let store = Store::open(&StoreLocation::Sqlite(path)).await.unwrap();
        store.import(&mut export.as_slice()).await.unwrap();
        Work::new(store, self.clock.clone(), WorkSettings { workspace: None, strict: self.settings.strict })
    }
}

impl Deref for Client {
    type Target = Work;

    fn deref(&self) -> &Work {
        &self.work
    }
}

/// Calls a tool and checks the envelope.
pub async fn call(work: &Work, tool: &str, args: Value) -> Answer {
    let tool = WorkTool::by_name(tool).unwrap_or_else(|| panic!("there is no tool {tool}"));
    let Value::Object(args) = args else { panic!("arguments are an object") };
    let envelope = match work.parse(tool, args) {
        Ok(request) => work.call(&request).await,
        Err(rejected) => *rejected,
    };
    let (envelope, text) = envelope.into_parts();
    if let Err(fault) = ENVELOPE.validate(&envelope) {
        panic!("{fault} at {}\n{text}", fault.instance_path());
    }
    assert_eq!(canonical_value(&envelope), text);
    assert_eq!(envelope["intent"], json!(tool.intent()));
    if envelope["success"] == json!(false) {
        assert!(text.len() <= 2048, "{} bytes of error", text.len());
        assert!(envelope["error"]["recovery"].is_string(), "no recovery: {text}");
    }
    if let Some(used) = envelope["result"]["budget"]["used"].as_u64() {
        assert_eq!(used as usize, text.len());
        assert!(used <= envelope["result"]["budget"]["limit"].as_u64().unwrap());
    }
    Answer { envelope, text }
}

/// Runs the same test on both backends.
macro_rules! on_both {
    ($(async fn $name:ident($client:ident: &Client) $body:block)*) => {$(
        mod $name {
            use super::*;

            async fn check($client: &Client) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                check(&Client::new(crate::client::On::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                check(&Client::new(crate::client::On::Postgres).await).await;
            }
        }
    )*};
}
pub(crate) use on_both;
