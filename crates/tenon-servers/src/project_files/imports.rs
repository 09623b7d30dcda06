//! Which TypeScript and JavaScript files can refer to each other: the imports that are written in them.
//!
//! A file outside all projects refers to a symbol only if its imports lead to a file that the symbol's own file leads to. And
//! a server that has it open also knows what it imports (decision 0332).

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};

use super::normalised;

/// The most files to follow imports through.
const MAX_FOLLOWED: usize = 20_000;
const TYPED: [&str; 3] = [".ts", ".tsx", ".d.ts"];
const UNTYPED: [&str; 2] = [".js", ".jsx"];
/// Which typed files a server prefers to a JavaScript file that an import names.
const INSTEAD_OF: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts"]),
    (".jsx", &[".tsx", ".ts", ".d.ts"]),
    (".mjs", &[".mts", ".d.mts"]),
    (".cjs", &[".cts", ".d.cts"]),
];

/// The known imports of files. Texts are read again only if they changed.
#[derive(Debug, Default)]
pub struct ImportGraph {
    /// The number of each file, by its path as text: paths are slow to compare.
    numbers: BTreeMap<String, usize>,
    files: Vec<FileImports>,
}

/// A file, and its imports as numbers of files.
#[derive(Debug)]
struct FileImports {
    path: Utf8PathBuf,
    /// Whether the rest is up to date.
    is_checked: bool,
    version: Option<(SystemTime, u64)>,
    /// Files that are certainly loaded with it.
    loaded: Vec<usize>,
    /// Files that it may import, with the loaded ones.
    possible: Vec<usize>,
    is_unknown: bool,
    is_script: bool,
}

/// What a text imports.
#[derive(Debug, Default)]
struct Imports {
    loaded: Vec<Utf8PathBuf>,
    possible: Vec<Utf8PathBuf>,
    /// Whether it imports a package that may be part of the workspace.
    is_unknown: bool,
    /// Whether its declarations are global.
    is_script: bool,
}

/// A search for the files that a question needs.
pub struct ImportSearch<'a> {
    /// The names of the packages in the workspace.
    pub packages: &'a BTreeSet<String>,
    pub exists: &'a dyn Fn(&Utf8Path) -> bool,
    pub read: &'a dyn Fn(&Utf8Path) -> Option<String>,
}

impl ImportGraph {
    /// Files may have changed.
    pub fn check_again(&mut self) {
        for file in &mut self.files {
            file.is_checked = false;
        }
    }

    /// The candidates that may refer to what `asked` refers to. `is_outside`: whether `asked` belongs to no project, so that it
    /// shares global declarations with the candidates.
    pub fn related(
        &mut self,
        search: &ImportSearch<'_>,
        asked: &Utf8Path,
        is_outside: bool,
        candidates: &[Utf8PathBuf],
    ) -> Vec<Utf8PathBuf> {
        let asked = self.number(asked);
        let starts: Vec<usize> = candidates.iter().map(|file| self.number(file)).collect();
        let (Some(mut related), Some(followed)) =
            (self.follow(search, &[asked]), self.follow(search, &starts))
        else {
            return candidates.to_vec();
        };
        if self.files[asked].is_unknown {
            return candidates.to_vec();
        }
        let mut importers: Vec<Vec<usize>> = vec![Vec::new(); self.files.len()];
        for number in followed {
            let file = &self.files[number];
            if file.is_unknown || is_outside && file.is_script {
                related.push(number);
            }
            for imported in &file.possible {
                importers[*imported].push(number);
            }
        }
        let mut reached = vec![false; self.files.len()];
        while let Some(number) = related.pop() {
            if !std::mem::replace(&mut reached[number], true) {
                related.extend(&importers[number]);
            }
        }
        let kept = candidates.iter().zip(starts).filter(|(_, number)| reached[*number]);
        kept.map(|(file, _)| file.clone()).collect()
    }

    /// The fewest of these files whose imports load all of them, in the given order.
    pub fn loading(&mut self, search: &ImportSearch<'_>, files: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
        let starts: Vec<usize> = files.iter().map(|file| self.number(file)).collect();
        if self.follow(search, &starts).is_none() {
            return files.to_vec();
        }
        // A file that loads others is finished after them.
        let mut finished = Vec::new();
        let mut seen = vec![false; self.files.len()];
        for number in &starts {
            self.visit(*number, &mut seen, &mut |number| finished.push(number));
        }
        let mut is_wanted = vec![false; self.files.len()];
        for number in &starts {
            is_wanted[*number] = true;
        }
        let mut is_chosen = vec![false; self.files.len()];
        let mut is_loaded = vec![false; self.files.len()];
        for number in finished.into_iter().rev().filter(|number| is_wanted[*number]) {
            if !is_loaded[number] {
                is_chosen[number] = true;
                self.visit(number, &mut is_loaded, &mut |_| {});
            }
        }
        let kept = files.iter().zip(starts).filter(|(_, number)| is_chosen[*number]);
        kept.map(|(file, _)| file.clone()).collect()
    }

    /// Walks the loaded files depth first and calls `finish` after those below.
    fn visit(&self, start: usize, seen: &mut [bool], finish: &mut dyn FnMut(usize)) {
        if std::mem::replace(&mut seen[start], true) {
            return;
        }
        let mut path = vec![(start, self.files[start].loaded.iter())];
        while let Some((number, rest)) = path.last_mut() {
            match rest.next() {
                Some(next) if !seen[*next] => {
                    seen[*next] = true;
                    path.push((*next, self.files[*next].loaded.iter()));
                }
                Some(_) => {}
                None => {
                    finish(*number);
                    path.pop();
                }
            }
        }
    }

    /// Reads files and all that they may import; `None` if there are too many.
    fn follow(&mut self, search: &ImportSearch<'_>, starts: &[usize]) -> Option<Vec<usize>> {
        let mut followed: Vec<usize> = Vec::new();
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let mut waiting = starts.to_vec();
        while let Some(number) = waiting.pop() {
            if !seen.insert(number) {
                continue;
            }
            self.check(search, number);
            waiting.extend(&self.files[number].possible);
            followed.push(number);
            if followed.len() > MAX_FOLLOWED {
                return None;
            }
        }
        Some(followed)
    }

    fn number(&mut self, path: &Utf8Path) -> usize {
        if let Some(number) = self.numbers.get(path.as_str()) {
            return *number;
        }
        let number = self.files.len();
        self.numbers.insert(path.as_str().to_owned(), number);
        self.files.push(FileImports {
            path: path.to_owned(),
            is_checked: false,
            version: None,
            loaded: Vec::new(),
            possible: Vec::new(),
            is_unknown: false,
            is_script: false,
        });
        number
    }

    /// Reads a file if it changed.
    fn check(&mut self, search: &ImportSearch<'_>, number: usize) {
        if std::mem::replace(&mut self.files[number].is_checked, true) {
            return;
        }
        let path = self.files[number].path.clone();
        let metadata = std::fs::metadata(&path).ok();
        let version = metadata.and_then(|found| Some((found.modified().ok()?, found.len())));
        if version.is_some() && self.files[number].version == version {
            return;
        }
        let imports = (search.read)(&path).map(|text| search.imports(&path, &text)).unwrap_or_default();
        let loaded = imports.loaded.iter().map(|path| self.number(path)).collect();
        let possible = imports.possible.iter().map(|path| self.number(path)).collect();
        let file = &mut self.files[number];
        (file.version, file.loaded, file.possible) = (version, loaded, possible);
        (file.is_unknown, file.is_script) = (imports.is_unknown, imports.is_script);
    }
}

impl ImportSearch<'_> {
    fn imports(&self, file: &Utf8Path, text: &str) -> Imports {
        let mut imports = Imports { is_script: true, ..Imports::default() };
        let is_javascript = INSTEAD_OF.iter().any(|(ending, _)| file.as_str().ends_with(ending));
        let mut is_in_comment = false;
        for line in text.lines() {
            let trimmed = line.trim_start();
            is_in_comment |= trimmed.starts_with("/*");
            let is_statement = !is_in_comment && !trimmed.starts_with("//");
            if is_statement && (trimmed.starts_with("import") || trimmed.starts_with("export")) {
                imports.is_script = false;
            }
            imports.is_script &=
                !["exports.", "module.exports", "require("].iter().any(|word| trimmed.contains(word));
            for (before, quoted) in quoted(line) {
                let before = before.trim_end();
                let ends_with = |words: &[&str]| words.iter().any(|word| before.ends_with(word));
                let is_static = is_statement
                    && (ends_with(&["from", "import"])
                        && ["import", "export", "}"].iter().any(|start| trimmed.starts_with(start))
                        || is_javascript && before.ends_with("require("));
                let is_path = before.ends_with("path=");
                if is_path || quoted.starts_with('.') {
                    self.add_file(&mut imports, file, quoted, is_static);
                } else if is_statement && ends_with(&["from", "import", "require("])
                    || ends_with(&["import(", "types="])
                {
                    imports.is_unknown |= self.may_be_here(quoted);
                }
            }
            is_in_comment &= !line.contains("*/");
        }
        imports
    }

    /// Whether a package may be part of the workspace.
    fn may_be_here(&self, name: &str) -> bool {
        let parts = if name.starts_with('@') { 2 } else { 1 };
        let end = name.match_indices('/').nth(parts - 1).map_or(name.len(), |(at, _)| at);
        name.starts_with(['#', '/']) || self.packages.contains(&name[..end])
    }

    fn add_file(&self, imports: &mut Imports, file: &Utf8Path, name: &str, is_static: bool) {
        let Some(folder) = file.parent() else {
            return;
        };
        let base = normalised(&folder.join(name));
        if (self.exists)(&base.join("package.json")) {
            // It names the file that is meant.
            imports.is_unknown = true;
        }
        let mut found = candidates(&base).into_iter().filter(|path| (self.exists)(path));
        if let Some(first) = found.next() {
            if is_static && !imports.loaded.contains(&first) {
                imports.loaded.push(first.clone());
            }
            imports.possible.push(first);
            imports.possible.extend(found);
        }
    }
}

/// The files that an import of this path may mean, in the order of preference.
fn candidates(base: &Utf8Path) -> Vec<Utf8PathBuf> {
    let with = |base: &Utf8Path, endings: &[&str]| -> Vec<Utf8PathBuf> {
        endings.iter().map(|ending| Utf8PathBuf::from(format!("{base}{ending}"))).collect()
    };
    let index = base.join("index");
    let mut all = Vec::new();
    let replaced =
        INSTEAD_OF.iter().find_map(|(ending, typed)| Some((base.as_str().strip_suffix(ending)?, typed)));
    if let Some((stem, typed)) = replaced {
        all.extend(with(Utf8Path::new(stem), typed));
    }
    if base.extension().is_some_and(|extension| extension.ends_with("ts") || extension.ends_with("tsx")) {
        all.push(base.to_owned());
    }
    all.extend(with(base, &TYPED));
    all.extend(with(&index, &TYPED));
    all.extend(replaced.is_some().then(|| base.to_owned()));
    all.extend(with(base, &UNTYPED));
    all.extend(with(&index, &UNTYPED));
    all
}

/// The texts in quotes in a line, each with what is before it.
fn quoted(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + line[from..].find(['"', '\'', '`'])?;
        let quote = line[start..].chars().next()?;
        let length = line[start + 1..].find(quote)?;
        from = start + length + 2;
        Some((&line[..start], &line[start + 1..start + 1 + length]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of files that are not on disk.
    fn search<T>(files: &[(&str, &str)], ask: impl FnOnce(&mut ImportGraph, &ImportSearch<'_>) -> T) -> T {
        let texts: BTreeMap<&Utf8Path, &str> =
            files.iter().map(|(file, text)| (Utf8Path::new(file), *text)).collect();
        let packages = BTreeSet::from(["@all/core".to_owned()]);
        let exists = |path: &Utf8Path| texts.contains_key(path);
        let read = |path: &Utf8Path| texts.get(path).map(|text| (*text).to_owned());
        ask(&mut ImportGraph::default(), &ImportSearch { packages: &packages, exists: &exists, read: &read })
    }

    fn paths(files: &[&str]) -> Vec<Utf8PathBuf> {
        files.iter().map(Utf8PathBuf::from).collect()
    }

    #[test]
    fn files_that_import_other_files_only_are_not_related() {
        let files = [
            ("/src/take.ts", "import { a } from './util';\nexport function take() {}\n"),
            ("/src/util.ts", "export const a = 1;\n"),
            ("/src/index.ts", "export * from './take';\n"),
            ("/dist/take.js", "import { a } from './util.js';\nexport function take() {}\n"),
            ("/dist/util.js", "export const a = 1;\n"),
            ("/dist/bundle.js", "/**\n * import { take } from '@all/core';\n */\nvar take = 1;\n"),
            ("/test/a.js", "const { take } = require('../src/index');\n"),
            ("/test/b.js", "import { take } from '@all/core/take';\n"),
            ("/test/c.js", "import { take } from 'other';\n"),
            ("/test/d.js", "import '../src/util.js'; // take\n"),
        ];
        let candidates = paths(&[
            "/dist/bundle.js",
            "/dist/take.js",
            "/test/a.js",
            "/test/b.js",
            "/test/c.js",
            "/test/d.js",
        ]);
        let related = |asked: &str, is_outside: bool| {
            search(&files, |graph, search| graph.related(search, asked.into(), is_outside, &candidates))
        };
        assert_eq!(related("/src/take.ts", false), paths(&["/test/a.js", "/test/b.js", "/test/d.js"]));
        let outside = paths(&["/dist/bundle.js", "/dist/take.js", "/test/b.js"]);
        assert_eq!(related("/dist/take.js", true), outside);
    }

    #[test]
    fn importing_files_load_the_imported_ones() {
        let files = [
            ("/a.ts", "import { b } from './b.js';\nimport {\n  c,\n} from './c';\n"),
            ("/b.ts", "export { c } from './c';\n"),
            ("/c/index.ts", "import './b';\n/*\nimport './d';\n*/\nconst text = './e';\n"),
            ("/d.ts", "export {};\n"),
            ("/e.ts", "export {};\n"),
            ("/e.js", "require('./e.js');\n"),
        ];
        let all: Vec<Utf8PathBuf> = files.iter().map(|(file, _)| Utf8PathBuf::from(file)).collect();
        let loading = search(&files, |graph, search| graph.loading(search, &all));
        assert_eq!(loading, paths(&["/a.ts", "/d.ts", "/e.js"]));
        let cycle = paths(&["/b.ts", "/c/index.ts"]);
        assert_eq!(search(&files, |graph, search| graph.loading(search, &cycle)).len(), 1);
    }
}
