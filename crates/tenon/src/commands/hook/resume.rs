//! The task that was being worked on, read from the store without a daemon.

use std::time::Duration;

use camino::Utf8Path;
use tenon_server::surfaces::work::StoreHandle;
use tenon_work::{Access, LeanCaller, StoreLocation};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// Time limit for the store: an agent waits for the hook when it starts.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The text; empty if no task is open. A store that does not exist yet is not created.
pub(super) fn text(root: &Utf8Path, invocation: &Invocation) -> Result<String, Failure> {
    let handle = StoreHandle::new(&invocation.workspace(root, vec![])?);
    if let Ok(StoreLocation::Sqlite(path)) = handle.location()
        && !path.exists()
    {
        return Ok(String::new());
    }
    let reading = async {
        let work = handle.work_for(Access::Read).await?;
        let answer = work.resume_text(&LeanCaller::default()).await;
        handle.close().await;
        answer
    };
    let read = block_on(async { tokio::time::timeout(STORE_TIMEOUT, reading).await })?;
    match read {
        Ok(Ok(answer)) => Ok(answer.text),
        Ok(Err(error)) => Err(Failure::new(Exit::Files, error.to_string())),
        Err(_) => Err(Failure::new(Exit::Files, "the store of tasks did not answer in time")),
    }
}
