//! The diagnostics of the whole workspace as typed values, for callers that show them to people.

use tenon_lsp::CallContext;
use tenon_lsp::model::Diagnostic;

use crate::code_tools::CodeTools;
use crate::error::CodeError;

/// What all servers found in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkspaceProblems {
    /// Files with diagnostics, sorted by path.
    pub files: Vec<FileProblems>,
    /// How many files were checked, clean ones included.
    pub checked: usize,
    /// What was not checked, and why.
    pub notes: Vec<String>,
}

/// The diagnostics of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblems {
    /// Relative to the root.
    pub path: String,
    pub diagnostics: Vec<Diagnostic>,
}

impl CodeTools {
    /// The diagnostics of the whole workspace in its current state.
    pub async fn workspace_problems(&self, call: &CallContext) -> Result<WorkspaceProblems, CodeError> {
        let found = self.workspace_findings(call).await?;
        let gate = self.state.engine.gate();
        let files = found.value.files.iter().map(|(path, diagnostics)| FileProblems {
            path: gate.display(path),
            diagnostics: diagnostics.clone(),
        });
        let mut files: Vec<FileProblems> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let unchecked =
            found.value.unchecked.iter().map(|file| format!("not checked: {} ({})", file.file, file.why));
        let absent =
            found.unavailable.iter().map(|server| format!("{server} is not available; it checked no files"));
        Ok(WorkspaceProblems {
            files,
            checked: found.value.checked,
            notes: unchecked.chain(absent).collect(),
        })
    }
}
