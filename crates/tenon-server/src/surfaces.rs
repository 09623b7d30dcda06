//! All surfaces of one served workspace, and picking some of them by name.

use std::sync::Arc;

use crate::surface::{Surface, SurfaceSet, ToolNames};

pub mod code;
pub mod context;
pub mod nav;
pub mod work;
pub mod workspace;
mod workspace_compose;

/// A name that is no surface here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown surface `{name}`; there are: {}", available.join(", "))]
pub struct UnknownSurface {
    pub name: String,
    pub available: Vec<&'static str>,
}

/// Every surface that this process can serve, in the order in which they are listed.
#[derive(Clone, Default)]
pub struct Surfaces {
    all: Vec<Arc<dyn Surface>>,
    names: ToolNames,
}

impl Surfaces {
    pub fn new(names: ToolNames) -> Self {
        Self { all: Vec::new(), names }
    }

    pub fn with(mut self, surface: impl Surface) -> Self {
        self.all.push(Arc::new(surface));
        self
    }

    /// The names of all surfaces.
    pub fn names(&self) -> Vec<&'static str> {
        self.all.iter().map(|surface| surface.name()).collect()
    }

    /// The surfaces named, each once, in catalog order.
    pub fn select<S: AsRef<str>>(&self, names: &[S]) -> Result<SurfaceSet, UnknownSurface> {
        let available = self.names();
        if let Some(unknown) = names.iter().find(|name| !available.contains(&name.as_ref())) {
            let shown = unknown.as_ref().chars().take(100).collect();
            return Err(UnknownSurface { name: shown, available });
        }
        let picked =
            self.all.iter().filter(|surface| names.iter().any(|name| name.as_ref() == surface.name()));
        Ok(SurfaceSet::new(picked.cloned().collect(), self.names))
    }
}
