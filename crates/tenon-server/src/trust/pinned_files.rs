//! Finds the files inside a root that a command line may run or read when it starts.
//!
//! Missing files count too: creating one later changes what the command does. So do files that an interpreter finds by its
//! own rules: `python -m tool` looks for `tool.py` in the root first, running a folder runs a file in it, and `node -r
//! hook` and `npx tool` look into `node_modules`.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use serde_json::Value;
use tenon_contract::regular_file;

/// The largest `package.json` that is read.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// The files inside `root` that the commands of `servers` name, relative to `root`.
pub(super) fn pinned_files(root: &Utf8Path, servers: &BTreeMap<String, Value>) -> BTreeSet<Utf8PathBuf> {
    let mut named = Named { root, files: BTreeSet::new() };
    for server in servers.values() {
        named.command(&Command::of(server));
    }
    named.files
}

/// A command line with its additional environment.
struct Command<'a> {
    program: &'a str,
    arguments: Vec<&'a str>,
    environment: Vec<(&'a str, &'a str)>,
}

/// A program that runs code from other files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpreter {
    Python,
    JavaScript,
    /// Runs programs of installed packages by name.
    Packages,
}

impl<'a> Command<'a> {
    fn of(server: &'a Value) -> Self {
        let arguments = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let environment = server["env"].as_object().into_iter().flatten();
        Self {
            program: server["command"].as_str().unwrap_or_default(),
            arguments: arguments.collect(),
            environment: environment
                .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
                .collect(),
        }
    }

    /// The interpreter that the command starts, directly or through a wrapper such as `env`.
    fn interpreter(&self) -> Option<Interpreter> {
        [self.program].into_iter().chain(self.arguments.iter().copied()).find_map(|word| {
            let name = word.rsplit(['/', '\\']).next().unwrap_or(word).trim_end_matches(".exe");
            let bare = name.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
            match bare {
                "python" | "pythonw" | "pypy" => Some(Interpreter::Python),
                "node" | "nodejs" | "bun" | "deno" | "tsx" => Some(Interpreter::JavaScript),
                "npx" | "bunx" | "pnpx" => Some(Interpreter::Packages),
                _ => None,
            }
        })
    }
}

struct Named<'a> {
    root: &'a Utf8Path,
    files: BTreeSet<Utf8PathBuf>,
}

impl Named<'_> {
    fn command(&mut self, command: &Command<'_>) {
        let values = command.environment.iter().map(|(_, value)| *value);
        for word in [command.program].into_iter().chain(command.arguments.iter().copied()).chain(values) {
            self.word(word);
        }
        match command.interpreter() {
            Some(Interpreter::Python) => self.python(command),
            Some(Interpreter::JavaScript) => self.javascript(command),
            Some(Interpreter::Packages) => {
                for tool in command.arguments.iter().filter(|word| is_name(word)) {
                    self.add(&format!("node_modules/.bin/{tool}"));
                }
            }
            None => {}
        }
    }

    /// Adds every part of an argument that may be a file: `--config=tools/x.json`, `./a:./b`, `--require ./hook.js`,
    /// `@arguments`, `-r./hook.js`, `file:///…`.
    fn word(&mut self, word: &str) {
        if let Some(path) = word.strip_prefix("file://") {
            self.files.extend(inside(self.root, path));
        }
        if word.contains("://") {
            return;
        }
        for part in word.split(['=', ':', ',', ' ']).chain([word]) {
            let attached = part.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            let attached = attached.and_then(|rest| rest.get(1..));
            for path in [Some(part), part.strip_prefix('@'), attached].into_iter().flatten() {
                self.files.extend(inside(self.root, path));
            }
        }
    }

    fn python(&mut self, command: &Command<'_>) {
        let paths = command.environment.iter().filter(|(name, _)| *name == "PYTHONPATH");
        let places: Vec<&str> =
            [""].into_iter().chain(paths.flat_map(|(_, value)| value.split(':'))).collect();
        for module in option_values(&command.arguments, &["-m"]).filter(|module| is_module(module)) {
            for place in &places {
                let path = self.root.join(place).join(module.replace('.', "/"));
                for file in [path.with_extension("py"), path.join("__init__.py"), path.join("__main__.py")] {
                    self.add(file.as_str());
                }
                // Parent packages are run first.
                for package in path.ancestors().skip(1).take(module.matches('.').count()) {
                    self.add(package.join("__init__.py").as_str());
                }
            }
        }
        for folder in self.folders(command) {
            self.add(folder.join("__main__.py").as_str());
        }
    }

    fn javascript(&mut self, command: &Command<'_>) {
        let options = ["-r", "--require", "--import", "--loader", "--experimental-loader", "--preload"];
        for module in option_values(&command.arguments, &options).filter(|module| is_name(module)) {
            let package = self.root.join("node_modules").join(module);
            self.add(&format!("{package}.js"));
            self.package(&package);
        }
        for folder in self.folders(command) {
            self.package(&folder);
        }
    }

    /// The files that run when the folder of a package is run.
    fn package(&mut self, folder: &Utf8Path) {
        let manifest = folder.join("package.json");
        let text = regular_file::read(&manifest, MAX_MANIFEST_BYTES).unwrap_or_default();
        let manifest_names: Option<Value> = serde_json::from_slice(&text).ok();
        if let Some(main) = manifest_names.as_ref().and_then(|manifest| manifest["main"].as_str()) {
            let main = folder.join(main);
            for file in [main.clone(), Utf8PathBuf::from(format!("{main}.js")), main.join("index.js")] {
                self.add(file.as_str());
            }
        }
        self.add(manifest.as_str());
        self.add(folder.join("index.js").as_str());
    }

    /// The folders among an interpreter's arguments: any of them may be run.
    fn folders(&self, command: &Command<'_>) -> Vec<Utf8PathBuf> {
        let paths = command.arguments.iter().map(|word| self.root.join(word));
        paths.filter(|path| path.is_dir() && path.starts_with(self.root)).collect()
    }

    /// Adds a path, absolute or relative to the root, if it is inside the root and not a folder.
    fn add(&mut self, path: &str) {
        if !self.root.join(path).is_dir() {
            self.files.extend(inside(self.root, path));
        }
    }
}

/// The values of any of `options`: the next argument, the part after `=` or, for short options, the attached part.
fn option_values<'a>(arguments: &'a [&'a str], options: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    arguments.iter().enumerate().filter_map(move |(index, word)| {
        options.iter().find_map(|option| {
            let rest = word.strip_prefix(option)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None if rest.is_empty() => arguments.get(index + 1).copied(),
                None => (!option.starts_with("--")).then_some(rest),
            }
        })
    })
}

fn is_module(word: &str) -> bool {
    !word.is_empty() && word.split('.').all(|part| !part.is_empty() && part.chars().all(is_in_name))
}

/// A package name, which may have a scope: `tool`, `@scope/tool`.
fn is_name(word: &str) -> bool {
    let bare = word.strip_prefix('@').unwrap_or(word);
    !word.starts_with(['-', '.', '/'])
        && bare.split('/').count() <= 2
        && bare.split('/').all(|part| {
            !part.is_empty() && part.chars().all(|letter| is_in_name(letter) || "-.".contains(letter))
        })
}

fn is_in_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// `word` as a path below `root`, if it is a file there or looks like a file name.
fn inside(root: &Utf8Path, word: &str) -> Option<Utf8PathBuf> {
    let path = root.join(word);
    let real = path.canonicalize_utf8().ok();
    let relative = match &real {
        // A link is followed; a link that leaves the root is pinned by its own path.
        Some(real) => {
            real.strip_prefix(root).ok().map(Utf8Path::to_owned).or_else(|| lexically_below(root, &path))
        }
        None => lexically_below(root, &path),
    }?;
    let like_a_file = real.as_ref().map_or(word.contains(['/', '.']), |real| real.is_file());
    (!word.is_empty() && !word.starts_with('-') && like_a_file).then_some(relative)
}

/// `path` relative to `root` with `.` and `..` resolved, or `None` if it leaves the root.
fn lexically_below(root: &Utf8Path, path: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut clean = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => drop(clean.pop()),
            other => clean.push(other),
        }
    }
    let below = clean.strip_prefix(root).ok()?;
    (!below.as_str().is_empty()).then(|| below.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The files pinned for one command, in a folder with some files.
    fn named(command: Value) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        for (path, text) in [
            ("src/index.js", ""),
            ("app/package.json", r#"{"main": "lib/start"}"#),
            ("app/lib/start.js", ""),
            ("tool/__main__.py", ""),
            ("more/helper.py", ""),
            ("server.args", "--stdio"),
            ("hook.js", ""),
            ("node_modules/spy/package.json", r#"{"main": "spy.js"}"#),
            ("node_modules/spy/spy.js", ""),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let text = command.to_string().replace("ROOT", root.as_str());
        let servers = BTreeMap::from([("a".to_owned(), serde_json::from_str(&text).unwrap())]);
        pinned_files(&root, &servers).iter().map(ToString::to_string).collect()
    }

    /// Other arguments that look like file names may be pinned as missing, which is harmless; these must be pinned.
    #[track_caller]
    fn pins(command: Value, expected: &[&str]) {
        let found = named(command);
        let missing: Vec<_> =
            expected.iter().filter(|path| !found.iter().any(|found| found == *path)).collect();
        assert!(missing.is_empty(), "{missing:?} are missing from {found:?}");
    }

    #[test]
    fn python_modules_are_found_where_python_looks() {
        let expected = ["pack/__init__.py", "pack/mod.py", "pack/mod/__init__.py", "pack/mod/__main__.py"];
        pins(json!({"command": "python3.12", "args": ["-m", "pack.mod"]}), &expected);
        pins(json!({"command": "/usr/bin/env", "args": ["python3", "-mpack.mod"]}), &expected);
        pins(
            json!({"command": "python", "args": ["-m", "helper"], "env": {"PYTHONPATH": "/x:more"}}),
            &["helper.py", "helper/__init__.py", "helper/__main__.py", "more/helper.py"],
        );
    }

    #[test]
    fn running_a_folder_pins_the_file_that_runs() {
        assert_eq!(named(json!({"command": "python3", "args": ["tool"]})), ["tool/__main__.py"]);
        pins(
            json!({"command": "node", "args": ["app"]}),
            &["app/index.js", "app/lib/start.js", "app/lib/start/index.js", "app/package.json"],
        );
        // No interpreter: the folder is only an argument.
        assert_eq!(named(json!({"command": "clangd", "args": ["src"]})), [""; 0]);
    }

    #[test]
    fn node_packages_are_found_where_node_looks() {
        pins(
            json!({"command": "node", "args": ["--require=spy", "hook.js"]}),
            &["hook.js", "node_modules/spy.js", "node_modules/spy/package.json", "node_modules/spy/spy.js"],
        );
        let tool = json!({"command": "npx", "args": ["--no-install", "tool-server"]});
        assert_eq!(named(tool), ["node_modules/.bin/tool-server"]);
    }

    #[test]
    fn paths_inside_arguments_are_found() {
        for word in [
            "@server.args",
            "--args=@server.args",
            "-Cserver.args",
            "ROOT/server.args",
            "file://ROOT/server.args",
        ] {
            pins(json!({"command": "x", "args": [word]}), &["server.args"]);
        }
        for word in ["https://example.org/server.args", "--verbose", "-v", "@", "-", "=", "info"] {
            assert_eq!(named(json!({"command": "x", "args": [word]})), [""; 0], "{word}");
        }
    }
}
