//! The store of a workspace, opened by the first call that needs it.

use tenon_contract::clock::Clock;
use tenon_work::{
    Envelope, Store, StoreError, StoreLocation, StoreLocationError, Work, WorkError, WorkRequest,
    WorkSettings, WorkTool, WorkspaceName,
};
use tokio::sync::OnceCell;

use crate::surface::Arguments;
use crate::workspace::Workspace;

/// Where the store is, and the open store.
pub struct StoreHandle {
    /// An invalid `work.store` setting is reported by the first use, not at start-up.
    location: Result<StoreLocation, StoreLocationError>,
    settings: WorkSettings,
    clock: Clock,
    work: OnceCell<Work>,
}

impl StoreHandle {
    pub fn new(workspace: &Workspace) -> Self {
        let config = workspace.config();
        let location = match &config.work.store {
            Some(store) => StoreLocation::parse(store),
            None => Ok(StoreLocation::Sqlite(workspace.dirs().store().into_std_path_buf())),
        };
        let named = config.workspace.id.as_deref().and_then(|id| WorkspaceName::parse(id).ok());
        let name = named.unwrap_or_else(|| tenon_work::workspace_id(workspace.root().as_std_path()));
        let settings = WorkSettings { workspace: Some(name), strict: config.work.strict };
        Self { location, settings, clock: workspace.clock().clone(), work: OnceCell::new() }
    }

    /// Opens the store, if it is not open yet. After a failure the next call tries again.
    pub async fn work(&self) -> Result<&Work, StoreError> {
        self.work
            .get_or_try_init(|| async {
                let store = Store::open(self.location()?).await?;
                Ok(Work::new(store, self.clock.clone(), self.settings.clone()))
            })
            .await
    }

    pub fn location(&self) -> Result<&StoreLocation, StoreError> {
        Ok(self.location.as_ref().map_err(|error| *error)?)
    }

    /// Parses the arguments of a call. The error is the envelope that reports why they were rejected.
    pub fn parse(&self, tool: WorkTool, arguments: Arguments) -> Result<WorkRequest, Box<Envelope>> {
        self.settings.parse(tool, arguments, &self.clock)
    }

    /// Runs a request. Failures are envelopes too.
    pub async fn call(&self, request: &WorkRequest) -> Envelope {
        match self.work().await {
            Ok(work) => work.call(request).await,
            Err(error) => self.failed(request.tool(), error.into()),
        }
    }

    /// The envelope of a call that did not complete.
    pub(super) fn failed(&self, tool: WorkTool, error: WorkError) -> Envelope {
        self.settings.failed(tool, error, &self.clock)
    }

    /// The envelope of a call whose arguments violate their schema.
    pub(super) fn rejected(&self, tool: WorkTool, arguments: &Arguments, error: WorkError) -> Envelope {
        self.settings.rejected(tool, arguments, error, &self.clock)
    }

    /// Closes the store, if it was opened.
    pub async fn close(&self) {
        if let Some(work) = self.work.get() {
            work.store().close().await;
        }
    }
}
