//! The cache root: resolves cache names from clients, never to a folder outside the root.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::staging;
use crate::system::is_absent;

/// A folder of caches that untrusted clients address by name.
#[derive(Clone, Debug)]
pub struct CacheRoot(PathBuf);

impl CacheRoot {
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of the cache `name`, which is one or more plain path components. Absolute paths, `..`, and links that
    /// lead outside are reported as missing.
    pub fn cache(&self, name: &str) -> Result<PathBuf, Error> {
        let missing = || Error::CacheMissing { cache: self.0.join(name) };
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if name.is_empty() || !Path::new(name).components().all(plain) {
            return Err(missing());
        }
        let real = |path: &Path| {
            fs::canonicalize(path).map_err(|error| {
                if is_absent(&error) { missing() } else { Error::io("open the cache", path)(error) }
            })
        };
        let root = real(&self.0)?;
        let path = root.join(name);
        let cache = match real(&path) {
            Err(Error::CacheMissing { .. }) if Self::roll_back_replacement(&root, &path) => real(&path)?,
            resolved => resolved?,
        };
        if cache.starts_with(&root) { Ok(cache) } else { Err(missing()) }
    }

    /// Rolls back an interrupted replacement of this cache, if it is inside the root.
    fn roll_back_replacement(root: &Path, path: &Path) -> bool {
        let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
        parent.is_some_and(|parent| parent.starts_with(root)) && staging::roll_back_replacement(path)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::error::ContextErrorCode;

    #[test]
    fn names_outside_the_root_are_missing() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(temp.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../outside", root.join("out")).unwrap();
        std::os::unix::fs::symlink("a", root.join("in")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        let caches = CacheRoot::new(&root);
        let real = fs::canonicalize(&root).unwrap();

        assert_eq!(caches.cache("a").unwrap(), real.join("a"));
        assert_eq!(caches.cache("a/b").unwrap(), real.join("a/b"));
        assert_eq!(caches.cache("in").unwrap(), real.join("a"));
        let long = "x".repeat(5000);
        let absolute = temp.path().join("outside");
        for name in
            ["", ".", "..", "a/..", "a/../a", "../root/a", "/", "out", "loop", "nope", "a\0", "./a", &long]
        {
            assert_eq!(caches.cache(name).unwrap_err().code(), ContextErrorCode::CacheMissing, "{name:?}");
        }
        assert_eq!(
            caches.cache(absolute.to_str().unwrap()).unwrap_err().code(),
            ContextErrorCode::CacheMissing
        );
        assert_eq!(
            CacheRoot::new(root.join("nope")).cache("a").unwrap_err().code(),
            ContextErrorCode::CacheMissing
        );
    }
}
