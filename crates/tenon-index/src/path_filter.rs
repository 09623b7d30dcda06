//! Restricts an answer to a folder, a file or a glob.

use globset::{GlobBuilder, GlobMatcher};

/// A folder, a file, or a glob if it contains `*`, `?`, `[` or `{`. Relative to the root.
#[derive(Clone, Debug)]
pub struct PathFilter(PathRule);

#[derive(Clone, Debug)]
enum PathRule {
    All,
    /// A file, or everything below a folder.
    Path(String),
    Glob(GlobMatcher),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFilterError {
    #[error("invalid glob: {0}")]
    Glob(String),
    #[error("path exceeds {MAX_BYTES} bytes")]
    TooLong,
    #[error("path leaves the root")]
    Outside,
}

const MAX_BYTES: usize = 4096;

impl PathFilter {
    /// # Errors
    /// See [`PathFilterError`].
    pub fn parse(text: &str) -> Result<Self, PathFilterError> {
        if text.len() > MAX_BYTES {
            return Err(PathFilterError::TooLong);
        }
        let text = text.trim();
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return Err(PathFilterError::Outside);
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let path = parts.join("/");
        if path.is_empty() {
            return Ok(Self(PathRule::All));
        }
        if !path.contains(['*', '?', '[', '{']) {
            return Ok(Self(PathRule::Path(path)));
        }
        // A pattern without a folder is about names anywhere, as in ignore files.
        let pattern = if path.contains('/') { path } else { format!("**/{path}") };
        let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| PathFilterError::Glob(error.kind().to_string()))?;
        Ok(Self(PathRule::Glob(glob.compile_matcher())))
    }

    /// Whether the file at `path`, relative to the root with `/`, belongs to it.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match &self.0 {
            PathRule::All => true,
            PathRule::Path(filter) => path
                .strip_prefix(filter.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            PathRule::Glob(glob) => glob.is_match(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_file_and_glob_match_their_files() {
        for (filter, path, matches) in [
            ("", "a.py", true),
            (".", "a/b.py", true),
            ("a", "a/b.py", true),
            ("a/", "a/b.py", true),
            ("./a", "a/b.py", true),
            ("a", "ab.py", false),
            ("a/b.py", "a/b.py", true),
            ("*.py", "a/b/c.py", true),
            ("a/*.py", "a/b/c.py", false),
            ("a/**/*.py", "a/b/c.py", true),
            ("**/*.{ts,tsx}", "src/a.tsx", true),
        ] {
            assert_eq!(PathFilter::parse(filter).unwrap().matches(path), matches, "{filter} {path}");
        }
    }

    #[test]
    fn invalid_filter_is_rejected() {
        assert_eq!(PathFilter::parse("../a").unwrap_err(), PathFilterError::Outside);
        assert_eq!(PathFilter::parse("/etc").unwrap_err(), PathFilterError::Outside);
        assert_eq!(PathFilter::parse(&"a".repeat(5000)).unwrap_err(), PathFilterError::TooLong);
        assert!(PathFilter::parse("a/[").unwrap_err().to_string().starts_with("invalid glob: "));
    }
}
