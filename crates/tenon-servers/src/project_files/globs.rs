//! Path patterns of configuration files: `*`, `?` and `**/`, everything else is literal.

use camino::Utf8Path;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A set of absolute patterns.
#[derive(Debug, Clone)]
pub(super) struct PathPatterns(GlobSet);

impl PathPatterns {
    /// Patterns that match whole paths.
    pub(super) fn exact(patterns: impl IntoIterator<Item = String>) -> Self {
        Self::of(patterns.into_iter().collect())
    }

    /// Patterns that match a path or a folder above it.
    pub(super) fn with_below(patterns: impl IntoIterator<Item = String>) -> Self {
        let both = |pattern: String| {
            let pattern = pattern.trim_end_matches('/').to_owned();
            [format!("{pattern}/**"), pattern]
        };
        Self::of(patterns.into_iter().flat_map(both).collect())
    }

    fn of(patterns: Vec<String>) -> Self {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            let literal = pattern.replace('[', "[[]").replace('{', "[{]");
            let mut glob = GlobBuilder::new(&literal);
            // An invalid pattern matches nothing, as in the servers.
            if let Ok(glob) = glob.literal_separator(true).backslash_escape(false).build() {
                builder.add(glob);
            }
        }
        Self(builder.build().unwrap_or_default())
    }

    pub(super) fn matches(&self, file: &Utf8Path) -> bool {
        self.0.is_match(file)
    }
}
