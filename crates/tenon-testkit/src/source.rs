//! Real code that nobody here wrote, pinned and installed by set-up, laid out as a workspace.
//!
//! Only what language servers read is taken, and beside it lies what says how to read it. Each has a [`Landmark`] with
//! many uses: the place to see whether an answer is whole.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::program;
use crate::tree::Tree;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Python, 885 files.
    Django,
    /// TypeScript, 251 files.
    Rxjs,
    /// C++, headers only, read by way of two small programs.
    Eigen,
}

/// A declaration that is used all over a source.
#[derive(Debug, Clone, Copy)]
pub struct Landmark {
    /// Where it is declared.
    pub file: &'static str,
    /// A line of that file, and in it the name.
    pub line: &'static str,
    pub name: &'static str,
    /// A file that uses it, and the line in which it does.
    pub user: &'static str,
    pub use_line: &'static str,
}

impl Source {
    pub fn landmark(self) -> Landmark {
        match self {
            Self::Django => Landmark {
                file: "django/utils/functional.py",
                line: "class cached_property",
                name: "cached_property",
                user: "django/db/models/options.py",
                use_line: "    @cached_property",
            },
            Self::Rxjs => Landmark {
                file: "src/internal/Observable.ts",
                line: "export class Observable<T>",
                name: "Observable",
                user: "src/internal/observable/timer.ts",
                use_line: "return new Observable((subscriber)",
            },
            Self::Eigen => Landmark {
                file: "Eigen/src/Core/util/Meta.h",
                line: "INDEX_TYPE Index;",
                name: "Index",
                user: "dense.cpp",
                use_line: "Eigen::Index size()",
            },
        }
    }

    /// Fills `tree` with a copy.
    pub fn copy_to(self, tree: &Tree) {
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
        }
    }
}

/// The packages of the installed Python.
fn site_packages() -> PathBuf {
    let python = program::python();
    let lib = python.ancestors().nth(2).expect("<venv>/bin/python").join("lib");
    let versions = fs::read_dir(&lib).unwrap_or_else(|error| panic!("{}: {error}", lib.display()));
    let folders = versions.flatten().map(|version| version.path().join("site-packages"));
    folders.into_iter().find(|folder| folder.is_dir()).expect("a virtual environment has its packages")
}

/// Copies the files of `source` with one of these extensions to a folder of `tree`.
fn copy(source: &Path, tree: &Tree, folder: &str, extensions: &[&str]) {
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
