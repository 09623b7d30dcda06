//! The `edit` surface: two tools that change files and answer with what that broke.
//!
//! It is only there where the user allowed it for this root. A result is the change and the diagnostics block as text, and
//! the same facts as structured content. A failure is a tool error with a code ([`classify`]), and then nothing was changed.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_code::edit::{Change, Changed, EditError, EditFile, Editor, Lines, WriteFile};
use tenon_lsp::aftermath::Aftermath;
use tenon_lsp::block::{Block, Limits};

use crate::engine::Engine;
use crate::surface::{
    Answer, Arguments, Call, CallLimits, Catalog, Outcome, Refusal, Surface, ToolSpec, tool,
};
use crate::workspace::Workspace;

mod classify;

use classify::{classify, refused};

const TOOLS: &[ToolSpec] = &[
    ToolSpec {
        read_only: false,
        ..tool!(
            "edit_file",
            "Replaces a text that occurs once in a file; says what the language servers then find wrong, there and elsewhere."
        )
    },
    ToolSpec {
        read_only: false,
        ..tool!(
            "write_file",
            "Makes or overwrites a file; says what the language servers then find wrong, there and elsewhere."
        )
    },
];

/// A server's start and a slow check fit in, besides the wait for what broke elsewhere; only then the change is told without
/// them.
const DEADLINE: Duration = Duration::from_secs(30);
/// What is left of a call's time for telling about a change that was made.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// See the module.
pub struct EditSurface {
    catalog: Catalog,
    editor: Editor,
    engine: Arc<Engine>,
    limits: Limits,
    wait: Duration,
}

impl EditSurface {
    pub const NAME: &'static str = "edit";

    /// The tools for a workspace whose user allows them; else nothing.
    pub fn allowed(workspace: &Workspace, engine: &Arc<Engine>, limits: Limits) -> Option<Self> {
        if !workspace.config().edit.allows(workspace.root()) {
            return None;
        }
        // A root that was just opened is a folder; should it be gone already, there is nothing to edit.
        let editor = Editor::new(workspace.root(), kept(workspace)).ok()?;
        let wait = workspace.config().edit.wait();
        Some(Self { catalog: Catalog::new(TOOLS), editor, engine: Arc::clone(engine), limits, wait })
    }

    async fn run(&self, tool: &str, arguments: Arguments) -> Result<Changed, Failure> {
        let changed = match tool {
            EditFile::TOOL => self.editor.edit(read(arguments)?).await,
            _ => self.editor.write(read::<WriteFile>(arguments)?).await,
        };
        Ok(changed?)
    }

    /// What a change broke, as far as language servers can say.
    async fn aftermath(&self, changed: Changed, call: Call) -> Aftermath {
        let call = tenon_lsp::call::Call::new(call.deadline - LAST_WORDS, call.caller.cancel);
        match self.engine.orchestrator().await {
            Ok(orchestrator) => changed.aftermath(orchestrator, self.wait, &call).await,
            Err(error) => {
                tracing::warn!(%error, "no language server can be used");
                Aftermath::default()
            }
        }
    }
}

/// Why there is no change.
enum Failure {
    Edit(EditError),
    /// The arguments satisfy the schema, but not their types.
    Arguments(String),
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        Self::Edit(error)
    }
}

fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::Arguments(error.to_string()))
}

/// What we keep for ourselves, wherever the user put it.
fn kept(workspace: &Workspace) -> Vec<camino::Utf8PathBuf> {
    let (dirs, config) = (workspace.dirs(), workspace.config());
    let mut kept = vec![dirs.config_file.clone(), dirs.state.clone(), dirs.data.clone()];
    kept.extend(config.log.folder.clone());
    kept.extend(config.work.store.as_ref().filter(|store| !store.contains("://")).map(Into::into));
    kept
}

fn answer(change: &Change, aftermath: &Aftermath, limits: &Limits) -> Answer {
    let block = Block::new(aftermath, limits);
    let lines = |lines: Lines| json!({ "first": lines.first, "last": lines.last });
    Answer::structured(json!({
        "file": change.file,
        "created": change.created(),
        "sha256_before": change.before,
        "sha256_after": change.after,
        "replaced": change.replaced.map(lines),
        "lines": lines(change.lines),
        "complete": aftermath.complete,
        "pending": block.pending,
        "in_this_file": block.touched,
        "in_other_files": block.others,
    }))
    .with_text(block.below(&success(change)))
}

/// The words before the block.
fn success(change: &Change) -> String {
    let Change { file, before, after, replaced, lines } = change;
    let done = match (before, replaced) {
        (Some(before), _) if before == after => format!("`{file}` is as it should be already."),
        (Some(_), Some(replaced)) if replaced == lines => format!("Changed `{file}`, {}.", span(*lines)),
        (Some(_), Some(replaced)) => {
            format!("Changed `{file}`: {} became {}.", span(*replaced), span(*lines))
        }
        _ => format!("Created `{file}`: {}.", span(*lines)),
    };
    format!("{done} SHA-256 {after}")
}

fn span(Lines { first, last }: Lines) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first} to {last}") }
}

impl Surface for EditSurface {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        CallLimits { deadline: DEADLINE + 2 * self.wait, ..CallLimits::default() }
    }

    fn call<'a>(&'a self, tool: &'static str, arguments: Arguments, call: Call) -> BoxFuture<'a, Outcome> {
        async move {
            let changed = match self.run(tool, arguments).await {
                Ok(changed) => changed,
                Err(Failure::Edit(error)) => return Ok(classify(&error)),
                Err(Failure::Arguments(message)) => return Ok(refused("INVALID_INPUT", &message, None)),
            };
            let change = changed.change.clone();
            let aftermath = self.aftermath(changed, call).await;
            Ok(answer(&change, &aftermath, &self.limits))
        }
        .boxed()
    }

    fn refuse(&self, tool: &str, refusal: Refusal) -> Outcome {
        classify::refuse(tool, refusal)
    }
}
