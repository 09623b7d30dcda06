//! Where a result outside the roots lies: its library and the file in it, never a path on this machine.

use std::fmt;

/// A file outside the roots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutsidePlace {
    library: Option<Library>,
    /// Relative to the library, or the file's name alone.
    file: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Library {
    /// The standard library of a language.
    Standard(&'static str),
    Package(String),
    Headers,
}

impl OutsidePlace {
    pub(crate) fn of_uri(uri: &str) -> Self {
        let path = crate::from_protocol::file_key(uri);
        let place = |library, file: &str| Self { library: Some(library), file: file.to_owned() };
        if let Some(file) =
            after(&path, "typeshed-fallback/stdlib/").or_else(|| after(&path, "typeshed/stdlib/"))
        {
            return place(Library::Standard("Python"), file);
        }
        for folder in ["/typeshed-fallback/stubs/", "/site-packages/", "/dist-packages/"] {
            if let Some(file) = after(&path, folder) {
                return place(Library::Package(first(file).trim_end_matches(".py").to_owned()), file);
            }
        }
        if let Some(file) = after(&path, "/lib/python3").and_then(|rest| rest.split_once('/')) {
            return place(Library::Standard("Python"), file.1);
        }
        if let Some(file) = after(&path, "bundled:///libs/") {
            return place(Library::Standard("TypeScript"), file);
        }
        if let Some(file) = after(&path, "/node_modules/") {
            return in_node_modules(file);
        }
        if let Some(file) = after(&path, "/rustlib/src/rust/library/") {
            return place(Library::Standard("Rust"), file);
        }
        if let Some((_, file)) = after(&path, "/registry/src/").and_then(|rest| rest.split_once('/')) {
            return place(Library::Package(first(file).to_owned()), file);
        }
        if let Some(file) = after(&path, "/pkg/mod/") {
            let package = file.split_once('@').map_or(first(file), |(package, _)| package);
            return place(Library::Package(package.to_owned()), file);
        }
        if let Some(file) = after(&path, "/go/src/") {
            return place(Library::Standard("Go"), file);
        }
        if let Some(file) = after(&path, "/include/") {
            return place(Library::Headers, file);
        }
        Self { library: None, file: path.rsplit('/').next().unwrap_or_default().to_owned() }
    }

    /// The library or module without a path: `json in Python's standard library`.
    pub fn module(&self) -> String {
        let module = || first(&self.file).split('.').next().unwrap_or_default().to_owned();
        match &self.library {
            Some(library @ Library::Standard("Python")) => format!("{} in {library}", module()),
            Some(Library::Headers) => {
                format!("{} in {}", self.file.rsplit('/').next().unwrap_or_default(), Library::Headers)
            }
            Some(library) => library.to_string(),
            None => self.file.clone(),
        }
    }
}

impl fmt::Display for OutsidePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.library {
            Some(library) => write!(formatter, "{} in {library}", self.file),
            None => formatter.write_str(&self.file),
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard(language) => write!(formatter, "{language}'s standard library"),
            Self::Package(name) => write!(formatter, "package {name}"),
            Self::Headers => formatter.write_str("the system headers"),
        }
    }
}

/// The path after the last folder with this name.
fn after<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.rsplit_once(folder).map(|(_, rest)| rest)
}

fn first(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// A file below the last `node_modules`: `@scope/name/file` or `name/file`.
fn in_node_modules(path: &str) -> OutsidePlace {
    let scope = if path.starts_with('@') { path.len().min(first(path).len() + 1) } else { 0 };
    let end = scope + first(path.get(scope..).unwrap_or_default()).len();
    let (package, file) = (&path[..end], path[end..].trim_start_matches('/'));
    let is_compiler = package == "typescript" || package.starts_with("@typescript/");
    if is_compiler && let Some(file) = file.strip_prefix("lib/lib.") {
        return OutsidePlace { library: Some(Library::Standard("TypeScript")), file: format!("lib.{file}") };
    }
    OutsidePlace { library: Some(Library::Package(package.to_owned())), file: file.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_names_library_and_file_without_the_machines_path() {
        for (uri, shown, module) in [
            (
                "file:///usr/lib/python3.11/json/__init__.py",
                "json/__init__.py in Python's standard library",
                "json in Python's standard library",
            ),
            (
                "file:///somewhere/x/node_modules/pyright/dist/typeshed-fallback/stdlib/os/path.pyi",
                "os/path.pyi in Python's standard library",
                "os in Python's standard library",
            ),
            (
                "file:///somewhere/.venv/lib/python3.12/site-packages/requests/api.py",
                "requests/api.py in package requests",
                "package requests",
            ),
            (
                "file:///somewhere/x/node_modules/typescript/lib/lib.es5.d.ts",
                "lib.es5.d.ts in TypeScript's standard library",
                "TypeScript's standard library",
            ),
            (
                "bundled:///libs/lib.es5.d.ts",
                "lib.es5.d.ts in TypeScript's standard library",
                "TypeScript's standard library",
            ),
            (
                "file:///srv/node_modules/a/node_modules/%40types/node/fs.d.ts",
                "fs.d.ts in package @types/node",
                "package @types/node",
            ),
            ("file:///usr/include/stdio.h", "stdio.h in the system headers", "stdio.h in the system headers"),
            (
                "file:///somewhere/.cargo/registry/src/index-1/serde-1.0.1/src/lib.rs",
                "serde-1.0.1/src/lib.rs in package serde-1.0.1",
                "package serde-1.0.1",
            ),
            ("file:///somewhere/secret/notes.py", "notes.py", "notes.py"),
        ] {
            let place = OutsidePlace::of_uri(uri);
            assert_eq!((place.to_string().as_str(), place.module().as_str()), (shown, module), "{uri}");
        }
    }

    #[test]
    fn odd_locations_have_a_place_too() {
        for uri in ["", "file://", "file:///node_modules/@", "file:///node_modules/@x", "untitled:1"] {
            assert!(!OutsidePlace::of_uri(uri).to_string().contains("node_modules"), "{uri}");
        }
    }
}
