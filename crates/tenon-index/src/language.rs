//! The languages: each is a folder of data (`languages/README.md`) and one line here that links its grammar.

use std::fmt;
use std::sync::OnceLock;

use regex::RegexSet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use tree_sitter::{Language, Query};

use crate::{DeclarationKind, macro_words};

/// One of the languages that the index knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLanguage(u8);

struct LanguageData {
    settings: &'static str,
    declarations: &'static str,
    /// Later parts refine earlier ones.
    highlights: &'static [&'static str],
    grammar: fn() -> Language,
    /// Read when the language is first used: compiling a query takes milliseconds.
    rules: OnceLock<LanguageRules>,
}

macro_rules! languages {
    ($($folder:literal $queries:literal $grammar:path => $($highlights:path)+,)*) => {
        static LANGUAGES: [LanguageData; [$($folder),*].len()] = [$(LanguageData {
            settings: include_str!(concat!("../languages/", $folder, "/language.toml")),
            declarations: include_str!(concat!("../languages/", $queries, "/declarations.scm")),
            highlights: &[$($highlights),+],
            grammar: || $grammar.into(),
            rules: OnceLock::new(),
        },)*];
    };
}

// The folder of the settings, the folder of the query, the grammar, the queries for highlighting.
languages! {
    "bash" "bash" tree_sitter_bash::LANGUAGE => tree_sitter_bash::HIGHLIGHT_QUERY,
    "c" "c" tree_sitter_c::LANGUAGE => tree_sitter_c::HIGHLIGHT_QUERY,
    "cpp" "cpp" tree_sitter_cpp::LANGUAGE => tree_sitter_c::HIGHLIGHT_QUERY tree_sitter_cpp::HIGHLIGHT_QUERY,
    "csharp" "csharp" tree_sitter_c_sharp::LANGUAGE => tree_sitter_c_sharp::HIGHLIGHTS_QUERY,
    "go" "go" tree_sitter_go::LANGUAGE => tree_sitter_go::HIGHLIGHTS_QUERY,
    "java" "java" tree_sitter_java::LANGUAGE => tree_sitter_java::HIGHLIGHTS_QUERY,
    "javascript" "javascript" tree_sitter_javascript::LANGUAGE => tree_sitter_javascript::HIGHLIGHT_QUERY,
    "php" "php" tree_sitter_php::LANGUAGE_PHP => tree_sitter_php::HIGHLIGHTS_QUERY,
    "python" "python" tree_sitter_python::LANGUAGE => tree_sitter_python::HIGHLIGHTS_QUERY,
    "ruby" "ruby" tree_sitter_ruby::LANGUAGE => tree_sitter_ruby::HIGHLIGHTS_QUERY,
    "rust" "rust" tree_sitter_rust::LANGUAGE => tree_sitter_rust::HIGHLIGHTS_QUERY,
    "tsx" "typescript" tree_sitter_typescript::LANGUAGE_TSX => tree_sitter_javascript::HIGHLIGHT_QUERY tree_sitter_typescript::HIGHLIGHTS_QUERY,
    "typescript" "typescript" tree_sitter_typescript::LANGUAGE_TYPESCRIPT => tree_sitter_javascript::HIGHLIGHT_QUERY tree_sitter_typescript::HIGHLIGHTS_QUERY,
}

/// `language.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageSettings {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    extensions: Vec<String>,
    #[serde(default)]
    file_names: Vec<String>,
    #[serde(default)]
    wrappers: Vec<String>,
    #[serde(default)]
    attributes: Vec<String>,
    #[serde(default)]
    open_containers: Vec<String>,
    #[serde(default)]
    constructors: Vec<String>,
    #[serde(default)]
    constructors_named_after_type: bool,
    #[serde(default)]
    ignored_qualifiers: Vec<String>,
    #[serde(default)]
    upper_case_is_constant: bool,
    #[serde(default)]
    test_names: Vec<String>,
    #[serde(default)]
    test_attributes: Vec<String>,
    #[serde(default)]
    macro_words: Vec<String>,
    #[serde(default)]
    metavariable: Option<char>,
    #[serde(default = "alone")]
    pattern_contexts: Vec<String>,
}

fn alone() -> Vec<String> {
    vec!["{}".to_owned()]
}

/// A language ready for use.
pub(crate) struct LanguageRules {
    pub grammar: Language,
    pub query: Query,
    /// The meaning of each capture of the query, by its index.
    pub captures: Vec<Capture>,
    /// Ids of node kinds; see `languages/README.md`.
    pub wrappers: Vec<u16>,
    pub attributes: Vec<u16>,
    pub open_containers: Vec<u16>,
    pub constructors: &'static [String],
    pub constructors_named_after_type: bool,
    pub ignored_qualifiers: &'static [String],
    pub upper_case_is_constant: bool,
    pub test_names: RegexSet,
    pub test_attributes: RegexSet,
    /// What the parser does not see; see [`crate::macro_words`].
    pub macro_words: Vec<regex::Regex>,
    /// Replaces `$` in syntax patterns: a character of identifiers.
    pub metavariable: char,
    pub pattern_contexts: &'static [String],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    Declaration(DeclarationKind),
    Name,
    Qualifier,
    Base,
    Body,
    Doc,
    /// Starts with `_`: for predicates.
    Unused,
}

/// What is known of all languages without compiling a query.
struct LanguageNames {
    /// In the order of [`LANGUAGES`].
    settings: Vec<LanguageSettings>,
    /// Sorted.
    extensions: Vec<(String, SourceLanguage)>,
    file_names: Vec<(String, SourceLanguage)>,
}

fn names() -> &'static LanguageNames {
    static NAMES: OnceLock<LanguageNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        let settings: Vec<LanguageSettings> = LANGUAGES
            .iter()
            .map(|data| toml::from_str(data.settings).expect("a test reads the settings of every language"))
            .collect();
        let pairs = |list: fn(&LanguageSettings) -> &Vec<String>| {
            let of = |(index, settings)| {
                list(settings).iter().map(move |name| (name.clone(), SourceLanguage(index as u8)))
            };
            let mut pairs: Vec<_> = settings.iter().enumerate().flat_map(of).collect();
            pairs.sort_unstable();
            pairs
        };
        let extensions = pairs(|settings| &settings.extensions);
        let file_names = pairs(|settings| &settings.file_names);
        LanguageNames { settings, extensions, file_names }
    })
}

fn look_up(pairs: &[(String, SourceLanguage)], name: &str) -> Option<SourceLanguage> {
    let found = pairs.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
    Some(pairs[found].1)
}

impl SourceLanguage {
    /// In the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LANGUAGES.len()).map(|index| Self(index as u8))
    }

    /// The language of a file, by its name and extension.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit(['/', std::path::MAIN_SEPARATOR]).next()?;
        if let Some(language) = look_up(&names().file_names, name) {
            return Some(language);
        }
        let (stem, extension) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        // `.C` and `.H` are C++ by convention; otherwise case is an accident of old file systems.
        let lower = extension.to_ascii_lowercase();
        look_up(&names().extensions, extension).or_else(|| look_up(&names().extensions, &lower))
    }

    /// By its name or an alias: `typescript`, `ts`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Self::all().find(|language| {
            let settings = language.settings();
            settings.name == name || settings.aliases.contains(&name)
        })
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        &self.settings().name
    }

    fn settings(self) -> &'static LanguageSettings {
        &names().settings[usize::from(self.0)]
    }

    pub(crate) const COUNT: usize = LANGUAGES.len();

    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }

    /// The query for highlighting.
    pub(crate) fn highlights(self) -> String {
        LANGUAGES[self.number()].highlights.join("\n")
    }

    pub(crate) fn rules(self) -> &'static LanguageRules {
        let data = &LANGUAGES[usize::from(self.0)];
        data.rules
            .get_or_init(|| LanguageRules::new(data, self.settings()).expect("a test reads every language"))
    }
}

impl fmt::Debug for SourceLanguage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for SourceLanguage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// By name: numbers depend on the order of the table.
impl Serialize for SourceLanguage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SourceLanguage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::all()
            .find(|language| language.name() == name)
            .ok_or_else(|| serde::de::Error::custom("unknown language"))
    }
}

impl LanguageRules {
    fn new(data: &LanguageData, settings: &'static LanguageSettings) -> Result<Self, String> {
        let grammar = (data.grammar)();
        let query = Query::new(&grammar, data.declarations).map_err(|error| error.to_string())?;
        let captures =
            query.capture_names().iter().map(|name| Capture::parse(name)).collect::<Result<_, _>>()?;
        let ids = |names: &[String]| {
            let id = |name: &String| match grammar.id_for_node_kind(name, true) {
                0 => Err(format!("unknown node kind `{name}`")),
                id => Ok(id),
            };
            names.iter().map(id).collect::<Result<Vec<u16>, String>>()
        };
        let patterns = |list: &[String]| RegexSet::new(list).map_err(|error| error.to_string());
        Ok(Self {
            wrappers: ids(&settings.wrappers)?,
            attributes: ids(&settings.attributes)?,
            open_containers: ids(&settings.open_containers)?,
            constructors: &settings.constructors,
            constructors_named_after_type: settings.constructors_named_after_type,
            ignored_qualifiers: &settings.ignored_qualifiers,
            upper_case_is_constant: settings.upper_case_is_constant,
            test_names: patterns(&settings.test_names)?,
            test_attributes: patterns(&settings.test_attributes)?,
            macro_words: macro_words::patterns(&settings.macro_words)?,
            metavariable: settings.metavariable.unwrap_or('$'),
            pattern_contexts: &settings.pattern_contexts,
            query,
            captures,
            grammar,
        })
    }
}

impl Capture {
    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "name" => Self::Name,
            "qualifier" => Self::Qualifier,
            "base" => Self::Base,
            "body" => Self::Body,
            "doc" => Self::Doc,
            _ if name.starts_with('_') => Self::Unused,
            _ => {
                let kind = name.strip_prefix("declaration.").and_then(DeclarationKind::parse);
                Self::Declaration(kind.ok_or_else(|| format!("unknown capture `@{name}`"))?)
            }
        })
    }
}

/// Changes when a stored declaration could differ: queries, settings, grammars, or the code that reads them.
pub(crate) fn fingerprint() -> [u8; 32] {
    /// Raise it when the extraction or the format of the store changes.
    const VERSION: u32 = 2;
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    for data in &LANGUAGES {
        let grammar = (data.grammar)();
        hash.update(data.settings);
        hash.update([0]);
        hash.update(data.declarations);
        hash.update([0]);
        // Grammars of old ABI versions have no metadata; their tables differ in these numbers.
        for number in [
            grammar.abi_version(),
            grammar.node_kind_count(),
            grammar.parse_state_count(),
            grammar.field_count(),
        ] {
            hash.update((number as u64).to_le_bytes());
        }
        if let Some(metadata) = grammar.metadata() {
            hash.update([metadata.major_version, metadata.minor_version, metadata.patch_version]);
        }
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_compiles() {
        let mut errors = Vec::new();
        for (data, language) in LANGUAGES.iter().zip(SourceLanguage::all()) {
            if let Err(error) = LanguageRules::new(data, language.settings()) {
                errors.push(format!("{language}: {error}"));
            }
            assert_eq!(SourceLanguage::parse(language.name()), Some(language));
        }
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }

    #[test]
    fn extension_belongs_to_one_language() {
        for pairs in [&names().extensions, &names().file_names] {
            assert!(pairs.is_sorted_by(|a, b| a.0 < b.0), "{pairs:?}");
        }
        assert_eq!(SourceLanguage::of_path("a/b/C.PY").map(SourceLanguage::name), Some("python"));
        assert_eq!(SourceLanguage::of_path("a.py/readme"), None);
        assert_eq!(SourceLanguage::of_path(".py"), None);
    }
}
