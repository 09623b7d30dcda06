//! What right answers contain, computed from the text of the tree alone.

use std::collections::{BTreeMap, BTreeSet};

use tenon_testkit::Sandbox;

use crate::source_sample;

/// The text of every source file.
pub(super) struct Sources(BTreeMap<String, String>);

impl Sources {
    pub(super) fn read(sandbox: &Sandbox, extension: &str) -> Self {
        let files = source_sample::files(sandbox, extension);
        Self(files.into_iter().map(|file| (file.clone(), sandbox.tree().read(&file))).collect())
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(file, text)| (file.as_str(), text.as_str()))
    }

    /// Writes back every file that a task changed or removed.
    pub(super) fn restore(&self, sandbox: &Sandbox) {
        for (file, text) in self.files() {
            if std::fs::read_to_string(sandbox.tree().path(file)).ok().as_deref() != Some(text) {
                sandbox.tree().write(file, text);
            }
        }
    }

    /// The files in which `part` occurs.
    pub(super) fn with(&self, part: &str) -> Vec<String> {
        self.files().filter(|(_, text)| text.contains(part)).map(|(file, _)| file.to_owned()).collect()
    }

    /// The Python files that import `name` from `module`.
    pub(super) fn importing(&self, name: &str, module: &str) -> Vec<String> {
        let files = self.files().filter(|(_, text)| imported_from(text, name) == module);
        files.map(|(file, _)| file.to_owned()).collect()
    }

    /// The names of Python functions around lines that contain `part`, where that line does not declare it.
    pub(super) fn python_functions_around(&self, part: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (_, text) in self.files() {
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate() {
                if !line.contains(part) || line.contains(&format!("def {part}")) {
                    continue;
                }
                let depth = indentation(line);
                let before = lines[..number].iter().rev();
                let mut around = before.filter(|line| indentation(line) < depth && !line.trim().is_empty());
                let name = around.find_map(|line| line.trim_start().strip_prefix("def ")?.split('(').next());
                names.extend(name.map(str::to_owned));
            }
        }
        names
    }

    /// Names of top-level declarations that start with one of `keywords`, in files below `folder`.
    pub(super) fn top_level(&self, folder: &str, keywords: &[&str]) -> BTreeSet<String> {
        let below = self.files().filter(|(file, _)| file.starts_with(folder));
        let lines = below.flat_map(|(_, text)| text.lines());
        let name = |line: &str| {
            let rest = keywords.iter().find_map(|keyword| line.strip_prefix(keyword))?;
            let name: String = rest.chars().take_while(|one| one.is_alphanumeric() || *one == '_').collect();
            (!name.is_empty()).then_some(name)
        };
        lines.filter_map(name).collect()
    }

    /// Classes that inherit from `base` of `file`, directly or not. A base counts if the file declares it, or imports it
    /// from a module that is not about forms.
    pub(super) fn python_subclasses(&self, base: &str, file: &str) -> BTreeSet<String> {
        let mut known = BTreeSet::from([(file.to_owned(), base.to_owned())]);
        loop {
            let before = known.len();
            for (file, text) in self.files() {
                for (name, bases) in python_classes(text) {
                    if bases.iter().any(|base| is_known(&known, file, text, base)) {
                        known.insert((file.to_owned(), name));
                    }
                }
            }
            if known.len() == before {
                known.remove(&(file.to_owned(), base.to_owned()));
                return known.into_iter().map(|(_, name)| name).collect();
            }
        }
    }
}

fn is_known(known: &BTreeSet<(String, String)>, file: &str, text: &str, base: &str) -> bool {
    let (module, name) = base.rsplit_once('.').unwrap_or(("", base));
    if module.is_empty() && known.contains(&(file.to_owned(), name.to_owned())) {
        return true;
    }
    let is_declared_here =
        text.contains(&format!("\nclass {name}(")) || text.contains(&format!("\nclass {name}:"));
    if module.contains("form")
        || (module.is_empty() && (is_declared_here || imported_from(text, name).contains("form")))
    {
        return false;
    }
    let is_imported = !module.is_empty() || !imported_from(text, name).is_empty();
    is_imported && known.iter().any(|(_, one)| one == name)
}

/// The module in `from MODULE import … name …`, also over several lines.
fn imported_from<'a>(text: &'a str, name: &str) -> &'a str {
    for start in
        text.match_indices("from ").map(|(at, _)| at).filter(|at| *at == 0 || text[..*at].ends_with('\n'))
    {
        let Some((module, names)) = text[start + 5..].split_once(" import ") else { continue };
        let end = if names.starts_with('(') { names.find(')') } else { names.find('\n') };
        let names = &names[..end.unwrap_or(names.len())];
        let mut words = names.split(|one: char| !one.is_alphanumeric() && one != '_');
        if !module.contains('\n') && words.any(|word| word == name) {
            return module;
        }
    }
    ""
}

/// Top-level classes with their bases as written.
fn python_classes(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let starts = text.match_indices("class ").filter(|(at, _)| *at == 0 || text[..*at].ends_with('\n'));
    for (at, keyword) in starts {
        let rest = &text[at + keyword.len()..];
        let Some(end) = rest.find([':', '(']) else { continue };
        let name = rest[..end].trim().to_owned();
        let bases = match rest[end..].strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((bases, _)) => bases.split(',').map(|base| base.trim().to_owned()).collect(),
            None => Vec::new(),
        };
        found.push((name, bases));
    }
    found
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Sources {
        Sources(files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn subclasses_are_followed_through_imports_and_form_fields_are_not() {
        let sources = sources(&[
            ("m.py", "class Field(Mixin):\n    pass\nclass A(Field):\n    pass\n"),
            ("o.py", "from m import (\n    A,\n)\nclass B(A):\n    pass\n"),
            ("forms.py", "class Field:\n    pass\nclass C(Field):\n    pass\n"),
            ("f.py", "import forms\nclass D(forms.A):\n    pass\n"),
        ]);
        assert_eq!(sources.python_subclasses("Field", "m.py"), ["A", "B"].map(str::to_owned).into());
    }

    #[test]
    fn function_around_a_call_is_named() {
        let sources = sources(&[(
            "m.py",
            "def f():\n    pass\n\nclass A:\n    def g(self):\n        if x:\n            f()\n",
        )]);
        assert_eq!(sources.python_functions_around("f()"), ["g"].map(str::to_owned).into());
    }
}
