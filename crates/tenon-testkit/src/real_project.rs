//! Real projects as workspaces: third-party code that `cargo xtask setup` installs at a pinned version.
//!
//! Only the files that language servers read are copied, plus a project file. Each project has a [`SampleSymbol`] with
//! many uses, to test whether results are complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::file_tree::FileTree;
use crate::program;

/// A third-party project; see the module documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealProject {
    /// Python, 885 files.
    Django,
    /// TypeScript, 251 files.
    Rxjs,
    /// C++, headers only, included by two small programs.
    Eigen,
    /// Rust, 35 files, one of our own dependencies.
    RegexSyntax,
}

/// A declaration that is used throughout a project.
#[derive(Debug, Clone, Copy)]
pub struct SampleSymbol {
    /// The file that declares it.
    pub file: &'static str,
    /// The declaring line, and the name in it.
    pub line: &'static str,
    pub name: &'static str,
    /// A file that uses it, and the line with the use.
    pub user: &'static str,
    pub use_line: &'static str,
}

impl RealProject {
    pub fn sample_symbol(self) -> SampleSymbol {
        match self {
            Self::Django => SampleSymbol {
                file: "django/utils/functional.py",
                line: "class cached_property",
                name: "cached_property",
                user: "django/db/models/options.py",
                use_line: "    @cached_property",
            },
            Self::Rxjs => SampleSymbol {
                file: "src/internal/Observable.ts",
                line: "export class Observable<T>",
                name: "Observable",
                user: "src/internal/observable/timer.ts",
                use_line: "return new Observable((subscriber)",
            },
            Self::Eigen => SampleSymbol {
                file: "Eigen/src/Core/util/Meta.h",
                line: "INDEX_TYPE Index;",
                name: "Index",
                user: "dense.cpp",
                use_line: "Eigen::Index size()",
            },
            Self::RegexSyntax => SampleSymbol {
                file: "src/hir/mod.rs",
                line: "pub struct Hir {",
                name: "Hir",
                user: "src/parser.rs",
                use_line: "Result<hir::Hir, Error>",
            },
        }
    }

    /// Copies the project to `tree`.
    pub fn copy_to(self, tree: &FileTree) {
        match self {
            Self::Django => {
                copy(&site_packages().join("django"), tree, "django", &["py"]);
                tree.write("pyproject.toml", "[project]\nname = \"django\"\nversion = \"0\"\n");
            }
            Self::Rxjs => {
                copy(&program::node_modules().join("rxjs/src"), tree, "src", &["ts"]);
                tree.write("package.json", "{ \"name\": \"rxjs\", \"private\": true }\n");
                let options = json!({
                    "strict": true, "noEmit": true, "target": "es2019", "module": "esnext",
                    "moduleResolution": "node", "lib": ["esnext", "dom"], "types": [],
                });
                let project = json!({ "compilerOptions": options, "include": ["src"] });
                tree.write("tsconfig.json", &project.to_string());
            }
            Self::Eigen => {
                let headers = site_packages().join("cmeel.prefix/include/eigen3/Eigen");
                copy(&headers, tree, "Eigen", &["", "h"]);
                let root = tree.root().canonicalize().expect("a tree has a root");
                let commands = ["Dense", "Sparse"].map(|header| {
                    let file = format!("{}.cpp", header.to_lowercase());
                    let text = format!("#include <Eigen/{header}>\n\nEigen::Index size() {{ return 0; }}\n");
                    tree.write(&file, &text);
                    let arguments = ["c++", "-std=c++17", "-I.", "-c", &file];
                    json!({ "directory": root, "file": file, "arguments": arguments })
                });
                tree.write("compile_commands.json", &json!(commands).to_string());
            }
            Self::RegexSyntax => {
                copy(&dependency("regex-syntax").join("src"), tree, "src", &["rs"]);
                tree.write("Cargo.toml", REGEX_SYNTAX);
                tree.write(
                    "Cargo.lock",
                    "version = 4\n\n[[package]]\nname = \"regex-syntax\"\nversion = \"0.0.0\"\n",
                );
            }
        }
    }
}

/// Without dependencies and targets that need a nightly compiler.
const REGEX_SYNTAX: &str = r#"[package]
name = "regex-syntax"
version = "0.0.0"
edition = "2021"

[features]
default = ["std", "unicode"]
arbitrary = []
std = []
unicode = [
    "unicode-age", "unicode-bool", "unicode-case", "unicode-gencat", "unicode-perl", "unicode-script", "unicode-segment",
]
unicode-age = []
unicode-bool = []
unicode-case = []
unicode-gencat = []
unicode-perl = []
unicode-script = []
unicode-segment = []
"#;

/// The source of a crate that `Cargo.lock` pins and cargo has downloaded.
fn dependency(name: &str) -> PathBuf {
    let compiler = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let compiler = String::from_utf8_lossy(&compiler.stdout);
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc prints its host");
    let mut command = Command::new("cargo");
    // Only what this host needs was downloaded.
    command.args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host]);
    let output = command.current_dir(crate::repository_root()).output().expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.find(|package| package["name"] == name);
    let manifest = found.and_then(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifest.unwrap_or_else(|| panic!("`{name}` is not a dependency")));
    manifest.parent().expect("a manifest is in a folder").to_owned()
}

/// The package folder of the installed Python.
fn site_packages() -> PathBuf {
    let python = program::python();
    let lib = python.ancestors().nth(2).expect("<venv>/bin/python").join("lib");
    let versions = fs::read_dir(&lib).unwrap_or_else(|error| panic!("{}: {error}", lib.display()));
    let folders = versions.flatten().map(|version| version.path().join("site-packages"));
    folders.into_iter().find(|folder| folder.is_dir()).expect("a virtual environment has its packages")
}

/// Copies the files with one of these extensions from `source` to a folder of `tree`.
fn copy(source: &Path, tree: &FileTree, folder: &str, extensions: &[&str]) {
    let entries = fs::read_dir(source).unwrap_or_else(|error| {
        panic!("{}: {error}: run `cargo xtask setup`, or all tests with `cargo xtask test`", source.display())
    });
    for entry in entries {
        let path = entry.expect("an installed package can be listed").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        let to = format!("{folder}/{name}");
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() {
            copy(&path, tree, &to, extensions);
        } else if extensions.iter().any(|wanted| extension == *wanted) {
            tree.write(&to, &fs::read_to_string(&path).expect("source code is text"));
        }
    }
}
