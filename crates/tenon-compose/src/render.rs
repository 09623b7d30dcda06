//! The render runtime: renders the surfaces of one composition and contains the failure of any one of them.
//!
//! A runtime belongs to one host; there is no global registry. Every required handle needs exactly one supported and
//! admitted provider, from the handle's owner; order never selects one. A provider that fails, panics or hangs affects
//! only its own surface. The diagnostic names the provider but reveals no code, error text, stack or data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::composition::{Composition, ContributionOwner, RequiredRenderHandle};
use crate::diagnostic::{
    self, DiagnosticDetails, DiagnosticSubject, WorkspaceDiagnostic, sort_subjects, truncated,
};
use crate::grammar;
use crate::pipeline::versions;
use crate::registry::DiagnosticCode;

mod isolation;
mod pack;
mod template;

use isolation::Isolation;
pub use pack::{
    BlockReason, FailurePhase, Load, LoadKind, PackError, ProviderError, ProviderHandle, ProviderSource,
    ProviderSummary, Render, RenderPack, RenderProvider, ResolveProvider, UnsupportedReason,
};
pub use template::TemplateFile;

/// The host's decision whether a provider may run.
pub type Admission<'a> = dyn Fn(&ProviderSummary) -> Result<(), BlockReason> + 'a;

/// How long a provider may take to load or to render.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// The maximum size of a surface, in bytes.
pub const MAX_SURFACE: usize = 4 * 1024 * 1024;

/// What to render: the key of an entry and the kind of that entry's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderTarget<'a> {
    pub kind: &'a str,
    pub key: &'a str,
}

/// The rendered surface, or a fallback with its diagnostic.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedSurface {
    pub html: String,
    pub diagnostic: Option<WorkspaceDiagnostic>,
}

/// Renders the surfaces of one composition; see the module documentation.
pub struct RenderRuntime {
    slots: Vec<Slot>,
    /// Slot index by canonical key.
    keys: BTreeMap<Arc<str>, usize>,
    deadline: Duration,
}

/// A required handle and the provider found for it.
struct Slot {
    required: RequiredRenderHandle,
    provider: ProviderMatch,
}

enum ProviderMatch {
    Missing,
    Duplicate(Vec<ProviderSummary>),
    Unsupported(ProviderSummary, UnsupportedReason),
    Blocked(ProviderSummary, BlockReason),
    Usable(UsableProvider),
}

struct UsableProvider {
    summary: ProviderSummary,
    source: ProviderSource,
    /// The result of a lazy load; a failed load is retried on the next use.
    loaded: Mutex<Option<Arc<dyn Render>>>,
    isolation: Arc<Isolation>,
}

impl RenderRuntime {
    /// A runtime for the handles that `composition` requires.
    #[must_use]
    pub fn new(composition: &Composition, packs: Vec<RenderPack>, admission: &Admission<'_>) -> Self {
        let mut supplied: BTreeMap<(String, String, String), Vec<Candidate>> = BTreeMap::new();
        for pack in packs {
            let supported = versions::supported(&pack.schema_version);
            for provider in pack.providers {
                let key = (pack.owner_id.clone(), provider.handle.kind.clone(), provider.handle.id.clone());
                let summary =
                    provider.summary(&pack.owner_id, &pack.package_id, pack.package_version.as_deref());
                let candidate = Candidate { provider, summary, supported };
                supplied.entry(key).or_default().push(candidate);
            }
        }
        let mut slots = Vec::with_capacity(composition.required_render_handles.len());
        let mut keys = BTreeMap::new();
        for required in &composition.required_render_handles {
            let key =
                (required.owner.owner_id.clone(), required.kind.as_str().to_owned(), required.id.to_string());
            let provider = ProviderMatch::select(supplied.remove(&key).unwrap_or_default(), admission);
            keys.extend(required.keys.iter().map(|key| (Arc::clone(key), slots.len())));
            slots.push(Slot { required: required.clone(), provider });
        }
        Self { slots, keys, deadline: DEADLINE }
    }

    /// The same runtime with another deadline for its providers.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Reports every required handle that cannot be rendered, without rendering anything.
    #[must_use]
    pub fn coverage(&self) -> Vec<WorkspaceDiagnostic> {
        let mut diagnostics: Vec<WorkspaceDiagnostic> =
            self.slots.iter().filter_map(|slot| slot.fault(&slot.required.keys)).collect();
        diagnostic::sort(&mut diagnostics);
        diagnostics
    }

    /// Loads every lazy provider now and reports those that failed.
    #[must_use]
    pub fn preload(&self) -> Vec<WorkspaceDiagnostic> {
        let mut diagnostics = Vec::new();
        for slot in &self.slots {
            if let ProviderMatch::Usable(usable) = &slot.provider
                && usable.renderer(self.deadline).is_none()
            {
                let phase = FailurePhase::ProviderPreload;
                diagnostics.push(slot.load_failed(&usable.summary, phase, &slot.required.keys));
            }
        }
        diagnostic::sort(&mut diagnostics);
        diagnostics
    }

    /// Renders one surface; returns a fallback when that fails.
    #[must_use]
    pub fn render(&self, target: RenderTarget<'_>, props: &Value) -> RenderedSurface {
        match self.try_render(target, props) {
            Ok(html) => RenderedSurface { html, diagnostic: None },
            Err(diagnostic) => RenderedSurface::fallback(*diagnostic),
        }
    }

    fn try_render(
        &self,
        target: RenderTarget<'_>,
        props: &Value,
    ) -> Result<String, Box<WorkspaceDiagnostic>> {
        let slot = self.keys.get(target.key).map(|index| &self.slots[*index]);
        let Some(slot) = slot.filter(|slot| slot.required.kind.as_str() == target.kind) else {
            return Err(Box::new(unknown_target(target)));
        };
        let key = [Arc::from(target.key)];
        let ProviderMatch::Usable(usable) = &slot.provider else {
            return Err(Box::new(slot.fault(&key).unwrap_or_else(|| unknown_target(target))));
        };
        let Some(renderer) = usable.renderer(self.deadline) else {
            return Err(Box::new(slot.load_failed(&usable.summary, FailurePhase::LazyLoad, &key)));
        };
        let props = props.clone();
        let rendered = usable.isolation.run(self.deadline, move || renderer.render(&props));
        match rendered {
            Some(html) if html.len() <= MAX_SURFACE => Ok(html),
            _ => Err(Box::new(slot.diagnostic(
                DiagnosticCode::RenderFailed,
                Some(&usable.summary),
                None,
                &key,
            ))),
        }
    }
}

impl RenderedSurface {
    fn fallback(diagnostic: WorkspaceDiagnostic) -> Self {
        let html = format!(
            "<div class=\"surface-fallback\" role=\"alert\" data-code=\"{}\">This part of the workspace could not be shown.</div>",
            diagnostic.code
        );
        Self { html, diagnostic: Some(diagnostic) }
    }
}

struct Candidate {
    provider: RenderProvider,
    summary: ProviderSummary,
    /// Whether the pack's version is supported.
    supported: bool,
}

impl ProviderMatch {
    fn select(mut candidates: Vec<Candidate>, admission: &Admission<'_>) -> Self {
        let Some(candidate) = candidates.pop() else {
            return Self::Missing;
        };
        if !candidates.is_empty() {
            candidates.push(candidate);
            return Self::Duplicate(candidates.into_iter().map(|candidate| candidate.summary).collect());
        }
        let Candidate { provider, summary, supported } = candidate;
        let unsupported = if !supported {
            Some(UnsupportedReason::RuntimeSchemaVersion)
        } else if !versions::supported(&provider.handle.version) {
            Some(UnsupportedReason::RenderHandleVersion)
        } else if matches!(provider.source, ProviderSource::Unsupported) {
            Some(UnsupportedReason::ProviderShape)
        } else {
            None
        };
        if let Some(reason) = unsupported {
            return Self::Unsupported(summary, reason);
        }
        if let Err(reason) = admission(&summary) {
            return Self::Blocked(summary, reason);
        }
        Self::Usable(UsableProvider {
            summary,
            source: provider.source,
            loaded: Mutex::new(None),
            isolation: Arc::new(Isolation::default()),
        })
    }
}

impl UsableProvider {
    /// The renderer, loaded if necessary.
    fn renderer(&self, deadline: Duration) -> Option<Arc<dyn Render>> {
        let loader = match &self.source {
            ProviderSource::Eager(renderer) => return Some(Arc::clone(renderer)),
            ProviderSource::Lazy(loader) => loader,
            ProviderSource::Unsupported => return None,
        };
        let known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return known;
        }
        // Concurrent first calls may both load, so that neither waits for the other; `Load` allows that.
        let loader = Arc::clone(loader);
        let loaded = self.isolation.run(deadline, move || loader.load())?;
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&loaded));
        Some(loaded)
    }
}

impl Slot {
    /// The diagnostic for a handle without a usable provider.
    fn fault(&self, keys: &[Arc<str>]) -> Option<WorkspaceDiagnostic> {
        let diagnostic = |code, summary, extra| Some(self.diagnostic(code, summary, extra, keys));
        match &self.provider {
            ProviderMatch::Usable(_) => None,
            ProviderMatch::Missing => diagnostic(DiagnosticCode::MissingProvider, None, None),
            ProviderMatch::Duplicate(summaries) => {
                let providers = serde_json::to_value(summaries).expect("summaries hold only text");
                diagnostic(DiagnosticCode::DuplicateProvider, None, Some(("providers", providers)))
            }
            ProviderMatch::Unsupported(summary, reason) => {
                let reason = Some(("unsupportedReason", reason.as_str().into()));
                diagnostic(DiagnosticCode::UnsupportedProvider, Some(summary), reason)
            }
            ProviderMatch::Blocked(summary, reason) => {
                let reason = Some(("admissionReason", reason.as_str().into()));
                diagnostic(DiagnosticCode::ProviderBlocked, Some(summary), reason)
            }
        }
    }

    fn load_failed(
        &self,
        summary: &ProviderSummary,
        phase: FailurePhase,
        keys: &[Arc<str>],
    ) -> WorkspaceDiagnostic {
        let phase = Some(("failurePhase", phase.as_str().into()));
        self.diagnostic(DiagnosticCode::ProviderLoadFailed, Some(summary), phase, keys)
    }

    fn diagnostic(
        &self,
        code: DiagnosticCode,
        summary: Option<&ProviderSummary>,
        extra: Option<(&str, Value)>,
        keys: &[Arc<str>],
    ) -> WorkspaceDiagnostic {
        let owner: &ContributionOwner = &self.required.owner;
        let subject =
            DiagnosticSubject::owner(owner.owner_kind, Some(&owner.owner_id), owner.package_id.as_deref());
        let mut subjects: Vec<DiagnosticSubject> = keys
            .iter()
            .filter_map(|key| grammar::parse_key(key))
            .map(|parts| subject.clone().contribution(parts.kind, Some(parts.local_id)))
            .collect();
        sort_subjects(&mut subjects, |subject| subject);
        let mut details = DiagnosticDetails::default()
            .with("renderHandle", truncated(&self.required.id))
            .with_owner("owner", &subject.as_owner())
            .with("kind", self.required.kind.as_str());
        if let Some(summary) = summary {
            details =
                details.with("provider", serde_json::to_value(summary).expect("summaries hold only text"));
        }
        if let Some((name, value)) = extra {
            details = details.with(name, value);
        }
        WorkspaceDiagnostic::new(code, subjects, details)
    }
}

fn unknown_target(target: RenderTarget<'_>) -> WorkspaceDiagnostic {
    let parts = grammar::parse_key(target.key);
    let subject = parts.map_or_else(DiagnosticSubject::host, DiagnosticSubject::from_key);
    let owner = DiagnosticSubject {
        owner_kind: subject.owner_kind,
        owner_id: subject.owner_id.clone(),
        ..DiagnosticSubject::default()
    };
    let details = DiagnosticDetails::default()
        .with("renderHandle", if parts.is_some() { target.key } else { "unknown" })
        .with_owner("owner", &owner)
        .with("kind", truncated(target.kind));
    WorkspaceDiagnostic::new(DiagnosticCode::UnknownTarget, vec![subject], details)
}
