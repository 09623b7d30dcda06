//! How a file is cut into passages, by its name.

use tenon_index::SourceLanguage;

/// What a passage is part of. Questions may ask for some kinds only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassageKind {
    /// A section of a document.
    Docs,
    /// A declaration of a source file.
    Code,
    /// A part of any other text: settings, data, templates, logs.
    Text,
    /// A plan or task.
    Task,
    /// A note of the memory.
    Note,
}

impl PassageKind {
    pub const ALL: [Self; 5] = [Self::Docs, Self::Code, Self::Text, Self::Task, Self::Note];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Docs => "docs",
            Self::Code => "code",
            Self::Text => "text",
            Self::Task => "task",
            Self::Note => "note",
        }
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// How a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    Markdown,
    ReStructuredText,
    AsciiDoc,
    /// Prose without markup. Underlined titles count, as in reStructuredText.
    Plain,
    Notebook,
    Code(SourceLanguage),
    /// Everything else that is text.
    Other,
}

impl TextFormat {
    /// `None` for files that hold no text worth asking: images, archives, lock files, translations.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let lower = name.to_ascii_lowercase();
        let (stem, extension) = match lower.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => (stem, extension),
            _ => (lower.as_str(), ""),
        };
        if SKIPPED_EXTENSIONS.contains(&extension)
            || SKIPPED_NAMES.contains(&lower.as_str())
            || stem.ends_with(".min")
        {
            return None;
        }
        if let Some(language) = SourceLanguage::of_path(path) {
            return Some(Self::Code(language));
        }
        Some(match extension {
            "md" | "markdown" | "mdx" | "mdown" | "qmd" | "rmd" => Self::Markdown,
            "rst" | "rest" => Self::ReStructuredText,
            "adoc" | "asciidoc" | "asc" => Self::AsciiDoc,
            "txt" | "text" | "org" | "tex" | "texi" | "pod" => Self::Plain,
            "ipynb" => Self::Notebook,
            "" if PROSE_NAMES.contains(&stem) => Self::Plain,
            _ => Self::Other,
        })
    }

    pub(crate) fn kind(self) -> PassageKind {
        match self {
            Self::Markdown | Self::ReStructuredText | Self::AsciiDoc | Self::Plain | Self::Notebook => {
                PassageKind::Docs
            }
            Self::Code(_) => PassageKind::Code,
            Self::Other => PassageKind::Text,
        }
    }
}

const PROSE_NAMES: &[&str] = &[
    "readme",
    "license",
    "copying",
    "authors",
    "contributing",
    "install",
    "news",
    "changes",
    "changelog",
    "notice",
    "todo",
];

const SKIPPED_NAMES: &[&str] =
    &["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "composer.lock", "go.sum"];

const SKIPPED_EXTENSIONS: &[&str] = &[
    "7z", "a", "avif", "bin", "bmp", "br", "bz2", "class", "dat", "db", "dll", "dmg", "doc", "docx", "dylib",
    "eot", "exe", "flac", "gif", "gmo", "gz", "icns", "ico", "jar", "jpeg", "jpg", "lib", "lock", "map",
    "mo", "mov", "mp3", "mp4", "o", "obj", "odt", "ogg", "otf", "parquet", "pdf", "pkl", "png", "po", "pot",
    "ppt", "pptx", "psd", "pyc", "pyd", "rar", "rlib", "rmeta", "snap", "so", "sqlite", "sqlite3", "svg",
    "tar", "tgz", "tif", "tiff", "ttf", "war", "wasm", "wav", "webm", "webp", "whl", "woff", "woff2", "xls",
    "xlsx", "xz", "zip", "zst",
];

/// How much a passage of this file counts, for files that rarely hold the answer: history, and records of decisions, which
/// say why and not how.
pub(crate) fn path_weight(path: &str) -> f64 {
    let lower = path.to_ascii_lowercase();
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let is_decision = folders.split('/').any(|folder| ["adr", "adrs", "decisions", "rfcs"].contains(&folder));
    let history =
        ["changelog", "changes", "history", "news", "release"].iter().any(|start| name.starts_with(start))
            || folders.split('/').any(|folder| {
                ["releases", "changes", "changelog", "changelogs", "news", "archive"].contains(&folder)
            });
    match (history, is_decision) {
        (true, _) => HISTORY_WEIGHT,
        (false, true) => DECISION_WEIGHT,
        (false, false) => 1.0,
    }
}

const HISTORY_WEIGHT: f64 = 0.5;
const DECISION_WEIGHT: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_decides_the_format() {
        for (path, kind) in [
            ("docs/a.md", Some(PassageKind::Docs)),
            ("docs/a.rst", Some(PassageKind::Docs)),
            ("a.adoc", Some(PassageKind::Docs)),
            ("LICENSE", Some(PassageKind::Docs)),
            ("src/a.py", Some(PassageKind::Code)),
            ("Makefile", Some(PassageKind::Text)),
            ("a.toml", Some(PassageKind::Text)),
            ("logo.png", None),
            ("Cargo.lock", None),
            ("a.min.js", None),
            ("locale/de/django.po", None),
        ] {
            assert_eq!(TextFormat::of_path(path).map(TextFormat::kind), kind, "{path}");
        }
        assert!(path_weight("docs/releases/5.2.txt") < path_weight("docs/topics/cache.txt"));
        assert!(path_weight("CHANGELOG.md") < 1.0);
        assert!(PassageKind::ALL.iter().all(|kind| PassageKind::parse(kind.as_str()) == Some(*kind)));
    }
}
