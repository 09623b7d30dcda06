//! The store of a workspace, opened by the first call that needs it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;
use tenon_contract::clock::Clock;
use tenon_work::{
    Access, Envelope, Store, StoreError, StoreLocation, StoreLocationError, Work, WorkError, WorkRequest,
    WorkSettings, WorkTool, WorkspaceName,
};
use tokio::sync::OnceCell;

use super::workspace_links::{Ownership, WorkspaceLinks};
use crate::surface::Arguments;
use crate::workspace::Workspace;

/// Why a folder cannot be linked to a workspace.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error(transparent)]
    Store(StoreError),
    #[error("cannot store links to workspaces")]
    Io(#[from] io::Error),
}

/// Where the store is, and the open store.
pub struct StoreHandle {
    /// An invalid `work.store` setting is reported by the first use, not at start-up.
    location: Result<StoreLocation, StoreLocationError>,
    settings: WorkSettings,
    clock: Clock,
    work: OnceCell<Work>,
    /// Whether the user or a trusted repository named the workspace.
    is_configured: bool,
    /// `None` if the location is invalid.
    links: Option<WorkspaceLinks>,
    /// Workspaces that this folder may use.
    admitted: Mutex<BTreeSet<WorkspaceName>>,
}

impl StoreHandle {
    pub fn new(workspace: &Workspace) -> Self {
        let config = workspace.config();
        let location = match &config.work.store {
            Some(store) => StoreLocation::parse(store),
            None => Ok(StoreLocation::Sqlite(workspace.dirs().store().into_std_path_buf())),
        };
        let root = workspace.root();
        let named = config.workspace.id.as_deref().and_then(|id| WorkspaceName::parse(id).ok());
        let is_configured = named.is_some();
        let name = named.unwrap_or_else(|| tenon_work::workspace_id(root.as_std_path()));
        let settings = WorkSettings { workspace: Some(name), strict: config.work.strict };
        let own = Utf8PathBuf::from_path_buf(tenon_work::repository_folder(root.as_std_path()));
        let own = own.unwrap_or_else(|_| root.to_owned());
        let links = location
            .as_ref()
            .ok()
            .map(|location| WorkspaceLinks::new(workspace.dirs().workspaces(), location, own));
        Self {
            location,
            settings,
            clock: workspace.clock().clone(),
            work: OnceCell::new(),
            is_configured,
            links,
            admitted: Mutex::default(),
        }
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

    /// Whether there is anything to read: a question does not create a store.
    pub(crate) fn exists(&self) -> bool {
        match &self.location {
            Ok(StoreLocation::Sqlite(path)) => path.exists(),
            Ok(_) => true,
            Err(_) => false,
        }
    }

    pub fn location(&self) -> Result<&StoreLocation, StoreError> {
        Ok(self.location.as_ref().map_err(|error| *error)?)
    }

    /// Parses the arguments of a call. The error is the envelope that reports why they were rejected.
    pub fn parse(&self, tool: WorkTool, arguments: Arguments) -> Result<WorkRequest, Box<Envelope>> {
        self.settings.parse(tool, arguments, &self.clock)
    }

    /// Runs a request of a client. Failures are envelopes too, also if the workspace belongs to another folder.
    pub async fn call(&self, request: &WorkRequest) -> Envelope {
        let admitted = async {
            let work = self.work().await?;
            self.admit(work, request.workspace(), request.tool().access()).await?;
            Ok(work)
        };
        match admitted.await {
            Ok(work) => Box::pin(work.call(request)).await,
            Err(error) => self.failed(request.tool(), error),
        }
    }

    /// The open store for calls about the workspace of this folder.
    ///
    /// # Errors
    /// When the store cannot be opened, or the workspace belongs to another folder.
    pub async fn work_for(&self, access: Access) -> Result<&Work, WorkError> {
        let work = self.work().await?;
        if let Some(name) = &self.settings.workspace {
            self.admit(work, name, access).await?;
        }
        Ok(work)
    }

    /// Runs a request about a workspace that the user named.
    pub async fn call_for_user(&self, request: &WorkRequest) -> Envelope {
        match self.work().await {
            Ok(work) => work.call(request).await,
            Err(error) => self.failed(request.tool(), error.into()),
        }
    }

    /// Rejects a request about a workspace of another folder.
    async fn admit(&self, work: &Work, name: &WorkspaceName, access: Access) -> Result<(), WorkError> {
        let is_admitted = |admitted: &Mutex<BTreeSet<WorkspaceName>>| {
            admitted.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
        };
        let Some(links) = self.links.as_ref().filter(|_| !is_admitted(&self.admitted)) else { return Ok(()) };
        let is_own_name = self.settings.workspace.as_ref() == Some(name);
        let is_users_word = is_own_name && self.is_configured;
        let failed = |error: io::Error| WorkError::links(&error);
        match links.ownership(name).map_err(failed)? {
            Ownership::Own => {}
            Ownership::Other if is_users_word => {}
            Ownership::Other => return Err(WorkError::other_folder(name)),
            // A client's word does not open what is in the store already, and a question does not take a name.
            Ownership::Free if !is_own_name && work.has_workspace(name).await? => {
                return Err(WorkError::other_folder(name));
            }
            Ownership::Free if !is_own_name && access == Access::Read => return Ok(()),
            Ownership::Free => {
                if !links.claim(name).map_err(failed)? && !is_users_word {
                    return Err(WorkError::other_folder(name));
                }
            }
        }
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        Ok(())
    }

    /// The workspace of calls that do not name one.
    pub fn workspace(&self) -> Option<&WorkspaceName> {
        self.settings.workspace.as_ref()
    }

    /// Links the folder to a workspace, by the user's word.
    pub fn link(&self, workspace: &WorkspaceName) -> Result<(), LinkError> {
        Ok(self.links()?.link(workspace)?)
    }

    /// Removes the link of the folder to a workspace. Returns whether there was one.
    pub fn unlink(&self, workspace: &WorkspaceName) -> Result<bool, LinkError> {
        Ok(self.links()?.unlink(workspace)?)
    }

    fn links(&self) -> Result<&WorkspaceLinks, LinkError> {
        let location = self.location().map_err(LinkError::Store)?;
        self.links.as_ref().ok_or_else(|| LinkError::Io(io::Error::other(location.to_string())))
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
