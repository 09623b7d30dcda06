//! The passages of the workspace, kept up to date by the journal of changed files.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::{Value, json};
use tenon_code::explore::Explorer;
use tenon_code::followed_index::{FileIndex, FollowedIndex};
use tenon_context::{ExtraText, ExtraTexts, FindAnswer, FindError, FindRequest, PassageIndex, PassageKind};
use tenon_contract::id::sha256_hex;
use tenon_lsp::CallContext;
use tenon_servers::registry::OverrideError;
use tenon_work::WorkTool;
use tokio::task::spawn_blocking;

use super::Engine;
use crate::surfaces::work::StoreHandle;

/// Words of a question that are looked up among tasks and notes.
const STORE_WORDS: usize = 6;
/// Tasks and notes for each of them.
const STORE_HITS: usize = 20;

/// Why there is no answer about passages.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassageError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("the configured language servers cannot be used; run `tenon doctor`")]
    Servers(#[from] OverrideError),
    #[error("{0}")]
    Task(String),
    #[error("the question failed; ask again")]
    Internal,
}

/// How long a question waits for files that are read. Then it is answered from those that are known.
const READ_WAIT: Duration = Duration::from_secs(10);

/// How long a refresh waits until the folders are walked.
const WALK_WAIT: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Passages(Arc<FollowedIndex<WorkspacePassages>>);

/// The passages, and who knows the declarations in source files.
struct WorkspacePassages {
    passages: PassageIndex,
    explorer: Arc<Explorer>,
}

impl FileIndex for WorkspacePassages {
    fn load(&self) {
        self.passages.load();
    }

    fn replace_files(&self, files: &[Utf8PathBuf]) {
        self.passages.replace_files(files, self.explorer.index());
    }

    fn update_files(&self, changed: &[Utf8PathBuf]) {
        self.passages.update_files(changed, self.explorer.index());
    }

    fn save(&self) -> io::Result<()> {
        self.passages.save()
    }
}

impl Passages {
    fn new(engine: &Engine, explorer: Arc<Explorer>) -> Self {
        let workspace = &engine.workspace;
        let root = workspace.root().to_owned();
        let name = &sha256_hex(root.as_str())[..16];
        let store = workspace.dirs().state.join("index").join(format!("{name}.passages"));
        let passages = PassageIndex::open(root, Some(store), workspace.clock().clone());
        Self(Arc::new(FollowedIndex::new(Arc::new(WorkspacePassages { passages, explorer }))))
    }

    /// Keeps the index for the next start.
    pub(super) async fn close(&self) {
        self.0.index().passages.stop_updates();
        self.0.close().await;
    }
}

impl Engine {
    /// The passages that answer a question.
    pub(crate) async fn find_passages(
        self: &Arc<Self>,
        request: FindRequest,
        call: &CallContext,
    ) -> Result<FindAnswer, PassageError> {
        let budget = request.check()?;
        let explorer = Arc::clone(self.explorer().await?);
        let passages = self.passages.get_or_init(|| async { Passages::new(self, explorer) }).await;
        let servers = self.orchestrator().await?.clone();
        let wait = call.at_most(READ_WAIT);
        let followed = Arc::clone(&passages.0);
        // A refresh that takes longer than this call continues, and the next question finds it done.
        let refresh =
            tokio::spawn(async move { followed.refresh(&servers, &CallContext::within(WALK_WAIT)).await });
        let (is_current, extra) = tokio::join!(wait.bound(refresh), self.tasks_and_notes(&request));
        let is_current = is_current.map(|done| done.unwrap_or(false));
        let tokenizer = request.tokenizer;
        let index = Arc::clone(passages.0.index());
        let answered = spawn_blocking(move || index.passages.find(&request, &extra, index.explorer.index()));
        let mut answer = answered.await.map_err(|_| PassageError::Internal)??;
        match is_current {
            Ok(true) => {}
            Ok(false) => answer.add_note("not all files were read; ask again", budget, tokenizer),
            Err(_) => {
                let (read, all) = passages.0.index().passages.update_progress();
                let note = format!("{read} of {all} files were read so far; ask again");
                answer.add_note(&note, budget, tokenizer);
            }
        }
        Ok(answer)
    }

    /// Tasks and notes with a word of the question. None if the store cannot be read: files still answer.
    async fn tasks_and_notes(&self, request: &FindRequest) -> ExtraTexts {
        let kinds = &request.kinds;
        let wanted = |kind: PassageKind| kinds.is_empty() || kinds.contains(&kind);
        let is_wanted = wanted(PassageKind::Task) || wanted(PassageKind::Note);
        let Some(store) =
            self.store.get().filter(|store| is_wanted && request.path.is_none() && store.exists())
        else {
            return ExtraTexts::default();
        };
        let mut words: Vec<&str> = request
            .query
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() > 3 && word.len() < 64)
            .collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.dedup();
        words.truncate(STORE_WORDS);
        let mut texts = Vec::new();
        for word in words {
            texts.extend(search_store(store, word).await);
        }
        texts.retain(|text| wanted(text.kind));
        ExtraTexts::new(texts)
    }
}

async fn search_store(store: &StoreHandle, word: &str) -> Vec<ExtraText> {
    let arguments = json!({ "query": word, "in": ["notes", "cards", "tasks"], "limit": STORE_HITS });
    let result = call_store(store, WorkTool::MemorySearch, arguments).await;
    let hits = result.as_ref().ok().and_then(|result| result["hits"].as_array().cloned()).unwrap_or_default();
    let text = |hit: &Value| {
        let kind = hit["kind"].as_str()?;
        let text = hit["snippet"].as_str()?.to_owned();
        let (kind, id) = match (kind, hit["id"].as_str(), hit["seq"].as_i64()) {
            ("plan" | "task" | "step", Some(id), _) => (PassageKind::Task, id.to_owned()),
            (_, Some(id), _) => (PassageKind::Note, id.to_owned()),
            (_, None, Some(seq)) => (PassageKind::Note, format!("note {seq}")),
            _ => return None,
        };
        let title = text.lines().next().unwrap_or_default().to_owned();
        Some(ExtraText { kind, id, title, text })
    };
    hits.iter().filter_map(text).collect()
}

/// The result of a tool of plans, tasks and memory, or its error message.
pub(super) async fn call_store(
    store: &StoreHandle,
    tool: WorkTool,
    arguments: Value,
) -> Result<Value, String> {
    let Value::Object(arguments) = arguments else { return Err("arguments are not an object".to_owned()) };
    let envelope = match store.parse(tool, arguments) {
        Ok(request) => store.call(&request).await,
        Err(rejected) => *rejected,
    };
    if !envelope.success() {
        let (value, _) = envelope.into_parts();
        return Err(value["error"]["message"].as_str().unwrap_or("the store failed").to_owned());
    }
    let (mut value, _) = envelope.into_parts();
    Ok(value["result"].take())
}
