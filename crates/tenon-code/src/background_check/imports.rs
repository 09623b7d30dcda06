//! Which files may depend on a changed file, from the text alone.
//!
//! The rule only errs towards too many. A Python or TypeScript file depends on another one only through an import, directly or
//! through other files, and an import contains the file's name or the folder's. Where that does not hold, a change counts
//! for all files of the language: global declarations, package names and path mappings, configuration. Files of other
//! languages are always checked again together.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use tenon_contract::root::WorkspacePath;

/// Files whose servers follow the same rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Python,
    TypeScript,
    Other,
}

impl Family {
    pub(super) fn of(path: &Utf8Path) -> Self {
        match path.extension() {
            Some("py" | "pyi") => Self::Python,
            Some("ts" | "mts" | "cts" | "tsx" | "js" | "mjs" | "cjs" | "jsx") => Self::TypeScript,
            _ => Self::Other,
        }
    }
}

/// What the text of a file says about its dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Imports {
    /// Hashes of the names that imports contain, sorted.
    names: Vec<u64>,
    /// Whether it may depend on any file of the same family, for example through a package name.
    on_any: bool,
    /// Whether any file of the same family may depend on it: it declares globals or augments other modules.
    for_all: bool,
}

impl Imports {
    /// The imports of a file that was not read yet.
    pub(super) fn unknown() -> Self {
        Self { names: Vec::new(), on_any: true, for_all: false }
    }

    pub(super) fn of(path: &Utf8Path, text: &str) -> Self {
        let mut found = Found::default();
        match Family::of(path) {
            Family::Python => python(path, text, &mut found),
            Family::TypeScript => typescript(path, text, &mut found),
            Family::Other => {}
        }
        let names: BTreeSet<u64> = found.names.iter().map(|name| hash(name)).collect();
        Self { names: names.into_iter().collect(), on_any: found.on_any, for_all: found.for_all }
    }
}

#[derive(Default)]
struct Found {
    names: BTreeSet<String>,
    on_any: bool,
    for_all: bool,
}

/// The files to check again after changes.
///
/// `files` are all covered files with their imports; `before` are the imports of the changed files before the change, `None`
/// for a file that was not covered. Deleted files are in `changed` only.
pub(super) fn affected(
    changed: &BTreeSet<WorkspacePath>,
    files: &BTreeMap<WorkspacePath, Imports>,
    before: &BTreeMap<WorkspacePath, Imports>,
) -> BTreeSet<WorkspacePath> {
    let mut affected: BTreeSet<WorkspacePath> =
        changed.iter().filter(|path| files.contains_key(*path)).cloned().collect();
    let new_or_gone = new_or_gone_folders(changed, files);
    for family in [Family::Python, Family::TypeScript, Family::Other] {
        let of_family = || files.iter().filter(|(path, _)| Family::of(path.as_path()) == family);
        let for_all = |path: &WorkspacePath| {
            let declares = |imports: Option<&Imports>| imports.is_some_and(|imports| imports.for_all);
            is_for_all(family, path.as_path())
                || (Family::of(path.as_path()) == family
                    && (declares(files.get(path)) || declares(before.get(path))))
        };
        if changed.iter().any(for_all) {
            affected.extend(of_family().map(|(path, _)| path.clone()));
            continue;
        }
        let importable = |path: &Utf8Path| {
            Family::of(path) == family || (family == Family::TypeScript && path.extension() == Some("json"))
        };
        let mut changed_names: BTreeSet<u64> = changed
            .iter()
            .filter(|path| importable(path.as_path()))
            .flat_map(|path| names_of(path.as_path()))
            .collect();
        if family == Family::Python {
            changed_names.extend(&new_or_gone);
        }
        if changed_names.is_empty() {
            continue;
        }
        let mut rest: Vec<(&WorkspacePath, &Imports)> = of_family().collect();
        loop {
            let (hit, missed): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(_, imports)| {
                imports.on_any || imports.names.iter().any(|name| changed_names.contains(name))
            });
            rest = missed;
            let before = changed_names.len();
            for (path, _) in hit {
                changed_names.extend(names_of(path.as_path()));
                affected.insert(path.clone());
            }
            if changed_names.len() == before {
                break;
            }
        }
    }
    affected
}

/// The names of the changed files' folders without other files: each may be a package that came or went.
fn new_or_gone_folders(
    changed: &BTreeSet<WorkspacePath>,
    files: &BTreeMap<WorkspacePath, Imports>,
) -> BTreeSet<u64> {
    let mut folders: BTreeSet<&Utf8Path> =
        changed.iter().flat_map(|path| path.as_path().ancestors().skip(1)).collect();
    for path in files.keys().filter(|path| !changed.contains(*path)) {
        for folder in path.as_path().ancestors().skip(1) {
            folders.remove(folder);
        }
    }
    folders.iter().filter_map(|folder| folder.file_name()).map(hash).collect()
}

/// Whether a changed file may concern all files of a family, whatever they import.
fn is_for_all(family: Family, path: &Utf8Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let extension = path.extension().unwrap_or_default();
    match family {
        Family::Python => {
            matches!(extension, "toml" | "cfg" | "ini" | "pth" | "typed" | "so" | "pyd")
                || matches!(name, "pyrightconfig.json" | "Pipfile" | "__builtins__.pyi" | "setup.py")
                || (name.starts_with("requirements") && extension == "txt")
        }
        Family::TypeScript => {
            let configures = ["tsconfig", "jsconfig", "package", "eslint.config", "biome", "deno", "."];
            configures.iter().any(|start| name.starts_with(start))
                || name.contains("tsconfig")
                || matches!(extension, "lock" | "lockb" | "vue" | "svelte" | "astro" | "yaml")
        }
        // Their servers' rules are not known.
        Family::Other => Family::of(path) == Family::Other,
    }
}

/// The names by which imports may mention a file: its own and the names of the folders around it, which may be packages.
fn names_of(path: &Utf8Path) -> Vec<u64> {
    let stem = stem(path.file_name().unwrap_or_default());
    let folder = path.parent().and_then(Utf8Path::file_name).unwrap_or_default();
    let folder = folder.strip_suffix("-stubs").unwrap_or(folder);
    match stem {
        "__init__" | "index" => vec![hash(stem), hash(folder)],
        _ => vec![hash(stem), hash(&format!("{folder}/*"))],
    }
}

/// The name without extensions: `a` for `a.d.ts`.
fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// The names in all statements with the word `import`, in comments and strings, too.
fn python(path: &Utf8Path, text: &str, found: &mut Found) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut statement = line.to_owned();
        while statement.trim_end().ends_with('\\') {
            let Some(more) = lines.next() else { break };
            statement.push(' ');
            statement.push_str(more);
        }
        if !words(&statement).any(|word| word == "import") {
            continue;
        }
        let without_comment = |line: &str| line.split('#').next().unwrap_or_default().to_owned();
        let mut code = without_comment(&statement);
        while code.contains('(') && !code.contains(')') {
            let Some(more) = lines.next() else { break };
            code.push_str(&without_comment(more));
            statement.push(' ');
            statement.push_str(more);
        }
        found.names.extend(words(&statement).map(str::to_owned));
        let module = statement.split_once("from").map_or("", |(_, rest)| rest.trim_start());
        let dots = module.chars().take_while(|c| *c == '.').count();
        let package = path.ancestors().nth(dots).and_then(Utf8Path::file_name).filter(|_| dots > 0);
        found.names.extend(package.map(str::to_owned));
        if statement.contains('*') {
            // All modules of the package.
            let folder = module.split_whitespace().next().and_then(|name| name.rsplit('.').next());
            let folder = folder.filter(|name| !name.is_empty()).or(package).unwrap_or_default();
            found.names.insert(format!("{folder}/*"));
        }
    }
}

/// The names in all strings that may be module specifiers.
fn typescript(path: &Utf8Path, text: &str, found: &mut Found) {
    let mut is_module = false;
    for line in text.lines() {
        let start = line.trim_start();
        is_module |= start.starts_with("import") || start.starts_with("export");
        // Augments globals or another module.
        found.for_all |= words(start).take(2).eq(["declare", "global"])
            || words(start).take(2).eq(["declare", "module"])
            || start.starts_with("global ")
            || words(start).take(3).eq(["export", "as", "namespace"]);
    }
    let is_script = matches!(path.extension(), Some("js" | "cjs" | "jsx"));
    is_module |= is_script && ["require(", "module.exports", "exports."].iter().any(|one| text.contains(one));
    is_module |= matches!(path.extension(), Some("mts" | "mjs"));
    found.for_all |= !is_module;
    // A script also sees the globals of all others.
    found.on_any |= !is_module;
    let bytes = text.as_bytes();
    for (at, quote) in text.char_indices().filter(|(_, c)| matches!(c, '\'' | '"' | '`')) {
        let before = text[..at].trim_end_matches([' ', '\t', '\r', '\n', '(']);
        let after_keyword =
            ["from", "import", "require", "module", "path=", "types=", "importSource", "resolve"]
                .iter()
                .any(|keyword| before.ends_with(keyword));
        if !after_keyword {
            continue;
        }
        let rest = &bytes[at + 1..];
        let Some(end) = rest.iter().position(|byte| *byte == quote as u8 || *byte == b'\n') else {
            continue;
        };
        specifier(path, &text[at + 1..at + 1 + end], found);
    }
}

fn specifier(path: &Utf8Path, specifier: &str, found: &mut Found) {
    if specifier.starts_with("node:") {
        return;
    }
    if !specifier.starts_with('.') {
        // A package, perhaps of this workspace, or a mapped path.
        found.on_any = true;
        return;
    }
    let folder = path.parent().unwrap_or(path);
    let mut target = Utf8PathBuf::new();
    for component in folder.join(specifier).components() {
        match component {
            Utf8Component::ParentDir => drop(target.pop()),
            Utf8Component::CurDir => {}
            component => target.push(component),
        }
    }
    found.names.insert(stem(target.file_name().unwrap_or_default()).to_owned());
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use tenon_contract::root::RootGate;

    use super::*;

    struct Tree {
        _folder: tempfile::TempDir,
        gate: RootGate,
        files: BTreeMap<WorkspacePath, Imports>,
    }

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let gate = RootGate::new([folder.path()]).unwrap();
            let files = files.iter().map(|(name, text)| {
                let path = gate.admit_target(gate.roots()[0].join(name)).unwrap();
                let imports = Imports::of(path.as_path(), text);
                (path, imports)
            });
            Self { files: files.collect(), _folder: folder, gate }
        }

        fn affected(&self, changed: &[&str]) -> Vec<String> {
            let changed = changed.iter().map(|name| self.gate.admit_target(self.gate.roots()[0].join(name)));
            let changed = changed.collect::<Result<BTreeSet<_>, _>>().unwrap();
            let affected = affected(&changed, &self.files, &BTreeMap::new());
            affected.iter().map(|path| self.gate.display(path)).collect()
        }
    }

    #[test]
    fn python_importers_are_affected_directly_and_through_others() {
        let tree = Tree::new(&[
            ("app/__init__.py", ""),
            ("app/a.py", "x = 1"),
            ("app/b.py", "from .a import x"),
            ("app/c.py", "import app.b as b"),
            ("app/d.py", "from . import (\n    # why\n    b,\n    z,\n)"),
            ("app/e.py", "if True: from app.a \\\n  import x"),
            ("app/f.py", "from app import *"),
            ("app/g.py", "from . import nothing"),
            ("app/h.py", "a = b.c()"),
            ("other.py", "import os"),
        ]);
        let all = ["app/a.py", "app/b.py", "app/c.py", "app/d.py", "app/e.py", "app/f.py"];
        assert_eq!(tree.affected(&["app/a.py"]), all);
        assert_eq!(tree.affected(&["other.py"]), ["other.py"]);
        // A package is imported with every module below it, and by a leading dot.
        let importers = ["app/b.py", "app/c.py", "app/d.py", "app/e.py", "app/f.py", "app/g.py"];
        let package = tree.affected(&["app/__init__.py"]);
        assert!(importers.iter().all(|one| package.contains(&(*one).to_owned())), "{package:?}");
        assert_eq!(tree.affected(&["pyproject.toml"]).len(), 10);
        assert_eq!(tree.affected(&["notes.txt"]), Vec::<String>::new());
        // A new module may be what an import did not find.
        assert_eq!(tree.affected(&["app/nothing.py"]), ["app/f.py", "app/g.py"]);
        assert_eq!(tree.affected(&["os/data.txt"]), ["other.py"]);
    }

    #[test]
    fn typescript_importers_are_affected_directly_and_through_others() {
        let tree = Tree::new(&[
            ("src/a.ts", "export const x = 1;"),
            ("src/b.ts", "export {\n  x,\n} from './a.js';"),
            ("src/c.ts", "import { x } from \"./b\";\nexport const y = x;"),
            ("src/dir/index.ts", "export type T = import('../a').X;"),
            ("src/d.ts", "export * from './dir';"),
            ("src/dir/e.ts", "import x from '.';"),
            ("src/free.ts", "export const z = 'src/a';"),
            ("src/package.ts", "import { x } from 'app';"),
        ]);
        assert_eq!(
            tree.affected(&["src/a.ts"]),
            [
                "src/a.ts",
                "src/b.ts",
                "src/c.ts",
                "src/d.ts",
                "src/dir/e.ts",
                "src/dir/index.ts",
                "src/package.ts"
            ]
        );
        assert_eq!(tree.affected(&["src/free.ts"]), ["src/free.ts", "src/package.ts"]);
        assert_eq!(tree.affected(&["src/data.json"]), ["src/package.ts"]);
        assert_eq!(tree.affected(&["tsconfig.json"]).len(), 8);
    }

    #[test]
    fn global_declarations_affect_all_files_of_the_language() {
        for text in ["var shared = 1;", "export {};\ndeclare global { interface Window { x: 1 } }"] {
            let tree = Tree::new(&[("a.ts", "export const x = 1;"), ("g.ts", text), ("c.py", "")]);
            assert_eq!(tree.affected(&["g.ts"]), ["a.ts", "g.ts"]);
        }
        let tree = Tree::new(&[("a.ts", "export const x = 1;"), ("m.cjs", "module.exports = {};")]);
        assert_eq!(tree.affected(&["m.cjs"]), ["m.cjs"]);
    }

    #[test]
    fn files_of_other_languages_are_affected_together() {
        let tree = Tree::new(&[("a.c", ""), ("b.h", ""), ("p.py", "")]);
        assert_eq!(tree.affected(&["b.h"]), ["a.c", "b.h"]);
        assert_eq!(tree.affected(&["compile_flags.txt"]), ["a.c", "b.h"]);
        assert_eq!(tree.affected(&["p.py"]), ["p.py"]);
    }
}
