//! TypeScript and JavaScript projects: `files`, `include`, `exclude`, `extends` and `references` of `tsconfig.json`.
//!
//! A file belongs to the nearest configuration above it that includes it, itself or through its references; tsserver
//! looks for the project of an opened file in the same order.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::globs::PathPatterns;
use super::{ProjectFiles, ProjectSearch, Samples, jsonc, normalised};

/// The names that tsserver looks for, in its order.
const NAMES: [&str; 2] = ["tsconfig.json", "jsconfig.json"];
const TYPESCRIPT: [&str; 4] = [".ts", ".tsx", ".mts", ".cts"];
const JAVASCRIPT: [&str; 4] = [".js", ".jsx", ".mjs", ".cjs"];
/// Included by servers that serve them.
const COMPONENTS: [&str; 2] = [".svelte", ".vue"];
/// How many configurations may extend each other.
const MAX_EXTENDS: usize = 8;
/// The most configurations to read.
const MAX_CONFIGS: usize = 2_000;
/// Replaced by the folder of the configuration that is not extended itself.
const CONFIG_DIR: &str = "${configDir}";

pub(super) fn find(search: &ProjectSearch<'_>) -> ProjectFiles {
    let configs = Configs::read(search);
    let mut samples = Samples::default();
    let mut outside = Vec::new();
    for file in search.served() {
        match (search.owns)(file).then(|| configs.project_of(search.root, file)).flatten() {
            Some(project) => samples.add(project, file),
            None => outside.push(file.to_owned()),
        }
    }
    let imports_javascript = configs.by_path.values().any(|config| config.allow_js);
    let projects: Vec<Vec<Utf8PathBuf>> = samples.0.into_values().collect();
    let packages = if outside.is_empty() { BTreeSet::new() } else { package_names(search) };
    let all_outside = projects.is_empty();
    let compiler_options = configs.by_path.into_iter().map(|(path, config)| (path, config.options)).collect();
    ProjectFiles {
        all_outside,
        projects,
        outside,
        imports_javascript,
        packages,
        compiler_options,
        ..ProjectFiles::default()
    }
}

/// The names in the `package.json` files.
fn package_names(search: &ProjectSearch<'_>) -> BTreeSet<String> {
    let files = search.files.iter().filter(|file| file.file_name() == Some("package.json"));
    let name = |file: &Utf8PathBuf| Some(jsonc::parse(&(search.read)(file)?)?["name"].as_str()?.to_owned());
    files.take(MAX_CONFIGS).filter_map(name).collect()
}

/// All configurations below a root, by path.
struct Configs {
    by_path: BTreeMap<Utf8PathBuf, Config>,
    /// The configuration that tsserver finds in a folder.
    by_folder: BTreeMap<Utf8PathBuf, Utf8PathBuf>,
}

impl Configs {
    fn read(search: &ProjectSearch<'_>) -> Self {
        let mut by_folder: BTreeMap<Utf8PathBuf, Utf8PathBuf> = BTreeMap::new();
        for name in NAMES {
            for file in search.files.iter().filter(|file| file.file_name() == Some(name)) {
                if let Some(folder) = file.parent().filter(|folder| folder.starts_with(search.root)) {
                    by_folder.entry(folder.to_owned()).or_insert_with(|| file.clone());
                }
            }
        }
        let mut by_path = BTreeMap::new();
        let mut waiting: Vec<Utf8PathBuf> = by_folder.values().rev().cloned().collect();
        while let Some(path) = waiting.pop() {
            if by_path.contains_key(&path) || by_path.len() == MAX_CONFIGS {
                continue;
            }
            let Some(raw) = RawConfig::read(search, &path, MAX_EXTENDS) else {
                continue;
            };
            let config = raw.resolved(&path);
            waiting.extend(config.references.iter().rev().cloned());
            by_path.insert(path, config);
        }
        Self { by_path, by_folder }
    }

    /// The project that tsserver finds for a file.
    fn project_of(&self, root: &Utf8Path, file: &Utf8Path) -> Option<&Utf8Path> {
        let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
        folders.filter_map(|folder| self.by_folder.get(folder)).find_map(|path| {
            let mut seen = BTreeSet::new();
            self.including(path, file, &mut seen)
        })
    }

    /// The first configuration that includes a file: this one or one that it references.
    fn including<'a>(
        &'a self,
        path: &Utf8Path,
        file: &Utf8Path,
        seen: &mut BTreeSet<&'a Utf8Path>,
    ) -> Option<&'a Utf8Path> {
        let (path, config) = self.by_path.get_key_value(path)?;
        if !seen.insert(path) {
            return None;
        }
        if config.includes(file) {
            return Some(path);
        }
        config.references.iter().find_map(|reference| self.including(reference, file, seen))
    }
}

/// One configuration with absolute paths.
struct Config {
    files: BTreeSet<Utf8PathBuf>,
    include: PathPatterns,
    exclude: PathPatterns,
    allow_js: bool,
    references: Vec<Utf8PathBuf>,
    options: BTreeMap<String, String>,
}

impl Config {
    fn includes(&self, file: &Utf8Path) -> bool {
        let ends_with = |endings: &[&str]| endings.iter().any(|ending| file.as_str().ends_with(ending));
        if self.files.contains(file) {
            return true;
        }
        (ends_with(&TYPESCRIPT) || ends_with(&COMPONENTS) || self.allow_js && ends_with(&JAVASCRIPT))
            && self.include.matches(file)
            && !self.exclude.matches(file)
    }
}

/// What a configuration says, with what it extends. Paths are absolute or begin with [`CONFIG_DIR`].
#[derive(Default)]
struct RawConfig {
    files: Option<Vec<String>>,
    include: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
    allow_js: Option<bool>,
    outputs: BTreeMap<&'static str, String>,
    references: Vec<String>,
    /// The compiler options that are a text or a truth value, in lower case; the others are empty.
    options: BTreeMap<String, String>,
}

impl RawConfig {
    fn read(search: &ProjectSearch<'_>, path: &Utf8Path, depth: usize) -> Option<Self> {
        let value = jsonc::parse(&(search.read)(path)?)?;
        let folder = path.parent()?;
        let mut raw = Self::default();
        for base in strings(&value["extends"]).filter(|_| depth > 0) {
            let found = extended(folder, base).find_map(|path| Self::read(search, &path, depth - 1));
            if let Some(found) = found {
                raw.extend(found);
            }
        }
        let own =
            |key: &str| value.get(key).map(|list| strings(list).map(|path| absolute(folder, path)).collect());
        let options = &value["compilerOptions"];
        let mut outputs = BTreeMap::new();
        for key in ["outDir", "declarationDir"] {
            if let Some(path) = options[key].as_str() {
                outputs.insert(key, absolute(folder, path));
            }
        }
        raw.extend(Self {
            files: own("files"),
            include: own("include"),
            exclude: own("exclude"),
            allow_js: options["allowJs"].as_bool().or_else(|| options["checkJs"].as_bool()),
            outputs,
            references: Vec::new(),
            options: options.as_object().into_iter().flatten().map(option_text).collect(),
        });
        let references = value["references"].as_array().into_iter().flatten();
        // References are not inherited.
        raw.references = references
            .filter_map(|reference| reference["path"].as_str())
            .map(|path| absolute(folder, path))
            .collect();
        Some(raw)
    }

    /// Adds what another configuration says, which wins.
    fn extend(&mut self, other: Self) {
        self.files = other.files.or(self.files.take());
        self.include = other.include.or(self.include.take());
        self.exclude = other.exclude.or(self.exclude.take());
        self.allow_js = other.allow_js.or(self.allow_js);
        self.outputs.extend(other.outputs);
        self.options.extend(other.options);
    }

    fn resolved(self, path: &Utf8Path) -> Config {
        let folder = path.parent().unwrap_or(path);
        let at = |path: String| match path.strip_prefix(CONFIG_DIR) {
            Some(rest) => absolute(folder, rest.trim_start_matches('/')),
            None => path,
        };
        let include = match (self.include, &self.files) {
            (Some(include), _) => include,
            (None, Some(_)) => Vec::new(),
            (None, None) => vec![absolute(folder, "**/*")],
        };
        let exclude = self.exclude.unwrap_or_else(|| self.outputs.into_values().collect());
        let reference = |path: String| {
            let path = Utf8PathBuf::from(at(path));
            if path.extension() == Some("json") { path } else { path.join(NAMES[0]) }
        };
        Config {
            files: self.files.into_iter().flatten().map(|path| Utf8PathBuf::from(at(path))).collect(),
            include: PathPatterns::exact(include.into_iter().map(at).map(whole_folder)),
            exclude: PathPatterns::with_below(exclude.into_iter().map(at)),
            allow_js: self.allow_js.unwrap_or(path.file_name() == Some(NAMES[1])),
            references: self.references.into_iter().map(reference).collect(),
            options: self.options,
        }
    }
}

/// A compiler option with its value as text.
fn option_text((name, value): (&String, &Value)) -> (String, String) {
    let text = match value {
        Value::String(text) => text.to_lowercase(),
        Value::Bool(value) => value.to_string(),
        _ => String::new(),
    };
    (name.clone(), text)
}

/// A pattern whose last part has neither a dot nor a wildcard is a folder.
fn whole_folder(pattern: String) -> String {
    let last = pattern.rsplit('/').next().unwrap_or_default();
    if last.contains(['.', '*', '?']) { pattern } else { format!("{pattern}/**/*") }
}

fn absolute(folder: &Utf8Path, path: &str) -> String {
    if path.starts_with(CONFIG_DIR) {
        return path.to_owned();
    }
    normalised(&folder.join(path)).into_string()
}

/// A string or the strings of a list.
fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().into_iter().chain(value.as_array().into_iter().flatten().filter_map(Value::as_str))
}

/// The files that `extends` may name.
fn extended(folder: &Utf8Path, name: &str) -> impl Iterator<Item = Utf8PathBuf> {
    let bases: Vec<Utf8PathBuf> = if name.starts_with('.') || name.starts_with('/') {
        vec![normalised(&folder.join(name))]
    } else {
        folder.ancestors().map(|above| above.join("node_modules").join(name)).collect()
    };
    bases
        .into_iter()
        .flat_map(|path| [path.clone(), Utf8PathBuf::from(format!("{path}.json")), path.join(NAMES[0])])
}
