//! The hard caps of the contract (§5.1). Configuration may make them stricter, never weaker.

use std::time::Duration;

/// The limits of every answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLimits {
    pub response_bytes: usize,
    pub timeout: Duration,
    pub items: usize,
    pub page_size: usize,
    pub workspace_diagnostics: usize,
    pub workspace_symbols: usize,
    pub references: usize,
}

impl CodeLimits {
    /// The contract's defaults, which are its maxima.
    pub const MAXIMA: Self = Self {
        response_bytes: 524_288,
        timeout: Duration::from_millis(2_000),
        items: 200,
        page_size: 200,
        workspace_diagnostics: 5_000,
        workspace_symbols: 20_000,
        references: 20_000,
    };

    /// The stricter of both, each at least one.
    #[must_use]
    pub fn clamped(self) -> Self {
        let max = Self::MAXIMA;
        Self {
            response_bytes: self.response_bytes.clamp(1, max.response_bytes),
            timeout: self.timeout.clamp(Duration::from_millis(1), max.timeout),
            items: self.items.clamp(1, max.items),
            page_size: self.page_size.clamp(1, max.page_size),
            workspace_diagnostics: self.workspace_diagnostics.clamp(1, max.workspace_diagnostics),
            workspace_symbols: self.workspace_symbols.clamp(1, max.workspace_symbols),
            references: self.references.clamp(1, max.references),
        }
    }

    /// The part of a response that its payload may use.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.response_bytes.saturating_sub(ENVELOPE)
    }
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self::MAXIMA
    }
}

/// The size of a response without its payload: `jsonrpc`, an `id`, `isError`, `resultType` and similar fields.
const ENVELOPE: usize = 512;

/// The default page size.
pub(crate) const DEFAULT_PAGE_SIZE: usize = 100;

/// The most symbols to visit in one document.
pub(crate) const VISITED_SYMBOLS: usize = 20_000;

/// How long a computation may continue after its caller timed out.
pub(crate) const DETACHED_TIMEOUT: Duration = Duration::from_secs(30);

/// When a caller that timed out may retry.
pub const RETRY_AFTER: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_1_limits_are_clamped_to_the_maxima_and_stricter_ones_taken() {
        let weaker = CodeLimits {
            response_bytes: usize::MAX,
            timeout: Duration::from_secs(60),
            items: 201,
            page_size: 1_000_000,
            workspace_diagnostics: 5_001,
            workspace_symbols: 20_001,
            references: usize::MAX,
        };
        assert_eq!(weaker.clamped(), CodeLimits::MAXIMA);
        let stricter = CodeLimits {
            response_bytes: 1_000,
            timeout: Duration::from_millis(10),
            items: 3,
            page_size: 2,
            workspace_diagnostics: 4,
            workspace_symbols: 5,
            references: 6,
        };
        assert_eq!(stricter.clamped(), stricter);
        let nothing = CodeLimits { items: 0, page_size: 0, timeout: Duration::ZERO, ..CodeLimits::MAXIMA };
        let nothing = nothing.clamped();
        assert_eq!((nothing.items, nothing.page_size, nothing.timeout.as_millis()), (1, 1, 1));
    }
}
