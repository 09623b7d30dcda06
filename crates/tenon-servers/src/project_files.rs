//! Finds out which files belong to a server's projects, as the server itself decides from their configuration.
//!
//! A server knows the other files only while they are open. Its answers about the workspace would depend on earlier
//! questions, so the caller opens what is outside before it asks (decision 0331).

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::registry::ServerEntry;

pub use imports::{ImportGraph, ImportSearch};

mod compile_commands;
mod globs;
mod imports;
mod jsonc;
mod pyright;
mod tsconfig;

/// The most files per project that are kept as samples: the first may be unreadable.
const SAMPLES: usize = 3;

/// The most files that a note names.
const MAX_NAMED: usize = 3;

/// How a server decides which files belong to a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectKind {
    /// `tsconfig.json` and `jsconfig.json` with their `references`. A project is loaded while a file in it is open.
    Tsconfig,
    /// `include` and `exclude` of `pyrightconfig.json` or `[tool.pyright]`.
    Pyright,
    /// As pyright, with `[tool.basedpyright]` before `[tool.pyright]`.
    Basedpyright,
    /// `compile_commands.json`.
    CompileCommands,
}

impl ProjectKind {
    /// The most files outside the projects that are opened for one question. Opening a C++ file compiles it.
    pub fn most_opened(self) -> usize {
        match self {
            Self::Tsconfig | Self::Pyright | Self::Basedpyright => 100,
            Self::CompileCommands => 40,
        }
    }

    /// Whether only a server that has read its projects can say which headers belong to them.
    pub fn stores_index(self) -> bool {
        self == Self::CompileCommands
    }

    /// Whether a file is normally read as a part of others, which define what it needs.
    pub fn is_part_of_others(self, file: &Utf8Path) -> bool {
        self == Self::CompileCommands && !compile_commands::is_source(file)
    }

    /// Whether the server's workspace symbols include those of open files outside its projects.
    pub fn lists_open_files(self) -> bool {
        match self {
            Self::Tsconfig | Self::CompileCommands => true,
            Self::Pyright | Self::Basedpyright => false,
        }
    }
}

/// The files of a workspace, as one server sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    /// A few files of each project, in the order of the configuration files. Opening one loads the project. Empty for
    /// servers that load their project by themselves.
    pub projects: Vec<Vec<Utf8PathBuf>>,
    /// Files that belong to no project of this server, in byte order.
    pub outside: Vec<Utf8PathBuf>,
    /// Headers, which belong to a project if a file of the project includes them.
    pub headers: Vec<Utf8PathBuf>,
    /// Headers of which it is not known whether they belong to a project, because others have the same name.
    pub doubtful: Vec<Utf8PathBuf>,
    /// Whether there is no project: the server knows no file without opening it.
    pub all_outside: bool,
    /// Whether a project may contain JavaScript files that it does not include, because others import them.
    pub imports_javascript: bool,
    /// The names of the JavaScript packages in the workspace.
    pub packages: BTreeSet<String>,
    /// The compiler options of each `tsconfig.json` that has projects, with what it extends; values in lower case.
    pub compiler_options: BTreeMap<Utf8PathBuf, BTreeMap<String, String>>,
}

/// Compiler options that a server no longer accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedOptions {
    /// `baseUrl`, or with the value that is refused: `target: es5`.
    pub options: BTreeSet<String>,
    /// The files that set one of them, or extend one that does.
    pub files: BTreeSet<Utf8PathBuf>,
}

impl RefusedOptions {
    /// One sentence about what the server does with them and what to do, if there are any. Files are shown relative to
    /// `root`.
    pub fn note(&self, entry: &ServerEntry, root: &Utf8Path) -> Option<String> {
        if self.options.is_empty() {
            return None;
        }
        let quoted = |text: &str| format!("`{text}`");
        let options: Vec<String> = self.options.iter().map(|option| quoted(option)).collect();
        let files = self.files.iter().map(|file| quoted(file.strip_prefix(root).unwrap_or(file).as_str()));
        let mut files: Vec<String> = files.collect();
        let more = files.len().saturating_sub(MAX_NAMED);
        files.truncate(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (id, options, files) = (&entry.id, options.join(", "), files.join(", "));
        let older = entry.older_package.as_ref();
        let instead = older
            .map(|older| format!("; for an older version set `servers.{}.enabled = true`", older.server));
        Some(format!("`{id}` ignores {options} in {files}{more}{}", instead.unwrap_or_default()))
    }
}

impl ProjectFiles {
    /// With the headers outside that a server, which has read its projects, did not find to belong to them. `index` is the
    /// folder that holds its index.
    pub fn with_unindexed_headers(&self, index: &Utf8Path) -> Self {
        let mut files = self.clone();
        let (outside, doubtful) = compile_commands::unindexed(index, &self.headers);
        files.outside.extend(outside);
        files.outside.sort_unstable();
        files.doubtful = doubtful;
        files
    }

    /// The compiler options that a server does not accept, by its [`ServerEntry::removed_options`].
    pub fn refused_options(&self, entry: &ServerEntry) -> RefusedOptions {
        let removed = &entry.removed_options;
        let mut refused = RefusedOptions::default();
        for (file, options) in &self.compiler_options {
            for (name, value) in options {
                let shown = match removed.get(name) {
                    Some(values) if values.is_empty() => name.clone(),
                    Some(values) if values.contains(value) => format!("{name}: {value}"),
                    _ => continue,
                };
                refused.options.insert(shown);
                refused.files.insert(file.clone());
            }
        }
        refused
    }

    /// Whether a file outside cannot be part of a project through imports either.
    pub fn is_in_no_project(&self, file: &Utf8Path) -> bool {
        let is_javascript = matches!(file.extension(), Some("js" | "jsx" | "mjs" | "cjs"));
        is_javascript && !self.imports_javascript
    }
}

/// The input of a search for projects.
pub struct ProjectSearch<'a> {
    pub root: &'a Utf8Path,
    /// All files of the workspace, in byte order.
    pub files: &'a [Utf8PathBuf],
    /// Whether the server serves a file.
    pub serves: &'a dyn Fn(&Utf8Path) -> bool,
    /// Whether a file belongs to the server with this root, not to one with a nested root.
    pub owns: &'a dyn Fn(&Utf8Path) -> bool,
    /// Reads a configuration file inside the workspace.
    pub read: &'a dyn Fn(&Utf8Path) -> Option<String>,
}

impl ProjectSearch<'_> {
    pub fn run(&self, kind: ProjectKind) -> ProjectFiles {
        match kind {
            ProjectKind::Tsconfig => tsconfig::find(self),
            ProjectKind::Pyright => pyright::find(self, &["/tool/pyright"]),
            ProjectKind::Basedpyright => pyright::find(self, &["/tool/basedpyright", "/tool/pyright"]),
            ProjectKind::CompileCommands => compile_commands::find(self),
        }
    }

    fn served(&self) -> impl Iterator<Item = &Utf8Path> {
        self.files.iter().map(Utf8PathBuf::as_path).filter(|file| (self.serves)(file))
    }

    /// The served files that a test does not accept.
    fn outside(&self, is_inside: impl Fn(&Utf8Path) -> bool) -> Vec<Utf8PathBuf> {
        self.served().filter(|file| !is_inside(file)).map(Utf8Path::to_owned).collect()
    }
}

/// Keeps the first files of each project.
#[derive(Default)]
struct Samples(BTreeMap<Utf8PathBuf, Vec<Utf8PathBuf>>);

impl Samples {
    fn add(&mut self, project: &Utf8Path, file: &Utf8Path) {
        let samples = self.0.entry(project.to_owned()).or_default();
        if samples.len() < SAMPLES {
            samples.push(file.to_owned());
        }
    }
}

/// A path without `.` and `..`.
fn normalised(path: &Utf8Path) -> Utf8PathBuf {
    let mut result = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            camino::Utf8Component::CurDir => {}
            camino::Utf8Component::ParentDir => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests;
