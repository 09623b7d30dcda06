//! All surfaces of one served workspace, and selecting some of them by name.

use std::sync::Arc;

use crate::activity::ActivityLog;
use crate::surface::{AnySurface, ContentMode, Surface, SurfaceSet, ToolNames};

pub mod code;
pub mod context;
pub(crate) mod edit;
pub(crate) mod explore;
pub(crate) mod lean;
pub(crate) mod nav;
pub mod work;
pub mod workspace;

/// A surface name that is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown surface `{name}`; available: {}{}", available.join(", "), hint(name))]
pub struct UnknownSurface {
    pub name: String,
    pub available: Vec<&'static str>,
}

/// The names of all surfaces that exist, in catalog order. `edit` needs the user's permission.
pub const NAMES: &[&str] = &[
    explore::ExploreSurface::NAME,
    code::CodeSurface::NAME,
    nav::NavSurface::NAME,
    edit::EditSurface::NAME,
    context::ContextSurface::NAME,
    lean::LeanSurface::NAME,
    "tasks",
    "memory",
    workspace::WorkspaceSurface::NAME,
];

/// Refuses names of surfaces that do not exist.
pub fn require_known<S: AsRef<str>>(names: &[S]) -> Result<(), UnknownSurface> {
    match names.iter().find(|name| !NAMES.contains(&name.as_ref())) {
        Some(unknown) => {
            let name = unknown.as_ref().chars().take(100).collect();
            Err(UnknownSurface { name, available: NAMES.to_vec() })
        }
        None => Ok(()),
    }
}

/// How to make an unavailable surface available.
fn hint(name: &str) -> &'static str {
    match name {
        edit::EditSurface::NAME => "; `edit` needs your permission: run `tenon allow-edit` in the workspace",
        _ => "",
    }
}

/// Every surface that this process can serve, in the order in which they are listed.
#[derive(Clone, Default)]
pub struct Surfaces {
    all: Vec<Arc<dyn AnySurface>>,
    names: ToolNames,
    content: ContentMode,
    activity: Option<Arc<ActivityLog>>,
}

impl Surfaces {
    pub fn new(names: ToolNames, content: ContentMode) -> Self {
        Self { all: Vec::new(), names, content, activity: None }
    }

    pub fn with(mut self, surface: impl Surface) -> Self {
        self.all.push(Arc::new(surface));
        self
    }

    /// Records the calls of clients.
    pub(crate) fn recorded(mut self, activity: &Arc<ActivityLog>) -> Self {
        self.activity = Some(Arc::clone(activity));
        self
    }

    pub(crate) fn activity(&self) -> Option<&Arc<ActivityLog>> {
        self.activity.as_ref()
    }

    /// Adds a surface that may be absent.
    pub(crate) fn with_allowed(self, surface: Option<impl Surface>) -> Self {
        match surface {
            Some(surface) => self.with(surface),
            None => self,
        }
    }

    /// The names of all surfaces.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.all.iter().map(|surface| surface.name()).collect()
    }

    /// The error for a name that is not available.
    pub(crate) fn unknown(&self, name: &str) -> UnknownSurface {
        UnknownSurface { name: name.chars().take(100).collect(), available: self.names() }
    }

    /// The named surfaces, each once, in catalog order.
    pub fn select<S: AsRef<str>>(&self, names: &[S]) -> Result<SurfaceSet, UnknownSurface> {
        let available = self.names();
        if let Some(unknown) = names.iter().find(|name| !available.contains(&name.as_ref())) {
            return Err(self.unknown(unknown.as_ref()));
        }
        let picked =
            self.all.iter().filter(|surface| names.iter().any(|name| name.as_ref() == surface.name()));
        let set = SurfaceSet::new(picked.cloned().collect(), self.names, self.content);
        Ok(set.recorded(self.activity.clone()))
    }
}
