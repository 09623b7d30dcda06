//! Random file changes in a small Python, TypeScript or C++ project, each with a question and its right answer.
//!
//! Every file of a slot calls `hub` and declares its own name; every slot has a user that imports the slot's file by
//! its first name. So each change has an effect on symbols, on references and on the diagnostics of another file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

const SLOTS: usize = 12;

/// A language of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    TypeScript,
    Cpp,
}

/// What to ask after a change. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileQuestion {
    /// The file declares this name.
    DocumentSymbols { file: String, name: String },
    /// Exactly these files declare this name.
    WorkspaceSymbols { name: String, files: BTreeSet<String> },
    /// Exactly these files refer to the function at this zero-based position.
    References { file: String, line: u32, character: u32, files: BTreeSet<String> },
    /// The import at this zero-based position leads to this file, or to none.
    Definition { file: String, line: u32, character: u32, target: Option<String> },
    /// The file has an import that is not resolved, or none.
    Diagnostics { file: String, is_broken: bool },
}

/// One file, somewhere or nowhere.
struct Slot {
    language: Language,
    number: usize,
    /// Without the extension, relative to the language's folder.
    place: Option<String>,
    name: String,
}

/// A project whose files change.
pub struct FileChanges {
    root: PathBuf,
    slots: Vec<Slot>,
    random: u64,
    steps: usize,
    last_change: String,
}

impl FileChanges {
    /// Writes the project. `seed` decides all changes.
    pub fn new(root: &Path, languages: &[Language], seed: u64) -> Self {
        let slot = |(number, language): (usize, Language)| Slot {
            language,
            number,
            place: None,
            name: String::new(),
        };
        let all = languages.iter().flat_map(|language| (0..SLOTS).map(|number| (number, *language)));
        let changes = Self {
            root: root.to_owned(),
            slots: all.map(slot).collect(),
            random: seed | 1,
            steps: 0,
            last_change: String::new(),
        };
        for language in languages {
            let (file, text) = changes.project_file(*language);
            changes.write(file, &text);
            changes.write(&language.file("hub"), language.hub());
        }
        for slot in &changes.slots {
            changes.write(&slot.user_file(), &slot.user_text());
        }
        changes
    }

    /// The configuration of a language's server.
    fn project_file(&self, language: Language) -> (&'static str, String) {
        match language {
            Language::Python => {
                ("pyproject.toml", "[project]\nname = \"changes\"\nversion = \"1\"\n".to_owned())
            }
            Language::TypeScript => {
                let options = json!({
                    "strict": true, "module": "esnext", "moduleResolution": "bundler", "types": [],
                });
                let project = json!({ "compilerOptions": options, "include": ["lib_ts"] });
                ("tsconfig.json", project.to_string())
            }
            Language::Cpp => {
                let slots = self.slots.iter().filter(|slot| slot.language == language);
                let commands = slots.map(|slot| {
                    let file = slot.user_file();
                    let arguments = ["c++", "-std=c++17", "-Ilib_cpp", "-c", &file];
                    json!({ "directory": self.root, "file": file, "arguments": arguments })
                });
                ("compile_commands.json", Value::from_iter(commands).to_string())
            }
        }
    }

    /// Changes one file or folder, and returns what to ask.
    pub fn step(&mut self) -> FileQuestion {
        self.steps += 1;
        let chosen = self.below(self.slots.len());
        let kind = self.below(5);
        let (language, first) = (self.slots[chosen].language, self.slots[chosen].first_place());
        let old_name = self.slots[chosen].name.clone();
        match (self.slots[chosen].place.clone(), kind) {
            (None, _) => {
                let place = match self.below(3) {
                    0 => format!("dir{}/{first}", self.slots[chosen].number),
                    _ => first,
                };
                self.last_change = format!("create {place}");
                self.put(chosen, place);
            }
            (Some(place), 0 | 1) => {
                fs::remove_file(self.root.join(language.file(&place))).expect("the slot's file is there");
                self.slots[chosen].place = None;
                self.last_change = format!("delete {place}");
            }
            (Some(place), 2) => {
                self.last_change = format!("modify {place}");
                self.put(chosen, place);
            }
            (Some(place), _) => {
                let other = match place.split_once('/') {
                    // The whole folder is renamed.
                    Some((folder, file)) => format!("{}/{file}", toggled(folder)),
                    None => toggled(&place),
                };
                let end = |place: &str| match place.split_once('/') {
                    Some((folder, _)) => self.root.join(language.folder()).join(folder),
                    None => self.root.join(language.file(place)),
                };
                // An emptied folder of that name may be left.
                let _ = fs::remove_dir(end(&other));
                fs::rename(end(&place), end(&other)).expect("the slot's file can be renamed");
                self.last_change = format!("rename {place} to {other}");
                self.slots[chosen].place = Some(other);
            }
        }
        self.question(chosen, &old_name)
    }

    /// What the last step changed.
    pub fn last_change(&self) -> &str {
        &self.last_change
    }

    fn question(&mut self, chosen: usize, old_name: &str) -> FileQuestion {
        let kind = self.below(6);
        let slot = &self.slots[chosen];
        let file = slot.place.as_ref().map(|place| slot.language.file(place));
        match (kind, file) {
            (0, Some(file)) => FileQuestion::DocumentSymbols { file, name: slot.name.clone() },
            (1, Some(file)) => {
                FileQuestion::WorkspaceSymbols { name: slot.name.clone(), files: BTreeSet::from([file]) }
            }
            (1, None) => FileQuestion::WorkspaceSymbols { name: old_name.to_owned(), files: BTreeSet::new() },
            (2, _) => {
                let hub = slot.language.file("hub");
                let same = self.slots.iter().filter(|one| one.language == slot.language);
                let files = same.filter_map(|one| Some(one.language.file(one.place.as_ref()?)));
                let files = files.chain([hub.clone()]).collect();
                let (line, character) = slot.language.hub_position();
                FileQuestion::References { file: hub, line, character, files }
            }
            (3, file) => {
                let (line, character) = slot.language.import_position();
                let target = file.filter(|_| slot.is_at_first_place());
                FileQuestion::Definition { file: slot.user_file(), line, character, target }
            }
            _ => FileQuestion::Diagnostics { file: slot.user_file(), is_broken: !slot.is_at_first_place() },
        }
    }

    /// Writes a slot's file with a new name in it.
    fn put(&mut self, chosen: usize, place: String) {
        let steps = self.steps;
        let slot = &mut self.slots[chosen];
        slot.name = format!("unique{}x{steps}", slot.number);
        let (file, text) = (slot.language.file(&place), slot.text(&place));
        slot.place = Some(place);
        self.write(&file, &text);
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        fs::write(path, text).expect("a written file");
    }

    /// A number below `limit` (xorshift).
    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % limit as u64).expect("a small number")
    }
}

impl Language {
    fn folder(self) -> &'static str {
        match self {
            Self::Python => "lib_py",
            Self::TypeScript => "lib_ts",
            Self::Cpp => "lib_cpp",
        }
    }

    fn file(self, place: &str) -> String {
        match self {
            Self::Python => format!("lib_py/{place}.py"),
            Self::TypeScript => format!("lib_ts/{place}.ts"),
            Self::Cpp => format!("lib_cpp/{place}.h"),
        }
    }

    fn hub(self) -> &'static str {
        match self {
            Self::Python => "def hub():\n    return 1\n",
            Self::TypeScript => "export function hub(): number { return 1; }\n",
            Self::Cpp => "#pragma once\ninline int hub() { return 1; }\n",
        }
    }

    fn hub_position(self) -> (u32, u32) {
        match self {
            Self::Python => (0, 5),
            Self::TypeScript => (0, 17),
            Self::Cpp => (1, 12),
        }
    }

    /// Inside the name of the imported file in a user's text.
    fn import_position(self) -> (u32, u32) {
        match self {
            Self::Python => (0, 16),
            Self::TypeScript => (0, 26),
            Self::Cpp => (0, 12),
        }
    }
}

impl Slot {
    fn first_place(&self) -> String {
        format!("slot{}", self.number)
    }

    fn is_at_first_place(&self) -> bool {
        self.place.as_ref() == Some(&self.first_place())
    }

    fn user_file(&self) -> String {
        match self.language {
            Language::Cpp => format!("lib_cpp/user{}.cpp", self.number),
            language => language.file(&format!("user{}", self.number)),
        }
    }

    fn user_text(&self) -> String {
        let place = self.first_place();
        match self.language {
            Language::Python => format!("import lib_py.{place}\n\nused = lib_py.{place}\n"),
            Language::TypeScript => format!("import * as all from './{place}';\nexport const used = all;\n"),
            Language::Cpp => {
                let number = self.number;
                format!("#include \"{place}.h\"\nint used{number}() {{ return 1; }}\n")
            }
        }
    }

    fn text(&self, place: &str) -> String {
        let name = &self.name;
        match self.language {
            Language::Cpp => {
                format!("#pragma once\n#include \"hub.h\"\ninline int {name}() {{ return hub(); }}\n")
            }
            Language::Python => {
                format!("from lib_py.hub import hub\n\n\ndef {name}():\n    return hub()\n")
            }
            Language::TypeScript => {
                let up = if place.contains('/') { ".." } else { "." };
                format!(
                    "import {{ hub }} from '{up}/hub';\nexport function {name}(): number {{ return hub(); }}\n"
                )
            }
        }
    }
}

/// The other of two names.
fn toggled(name: &str) -> String {
    name.strip_prefix("moved").map_or_else(|| format!("moved{name}"), str::to_owned)
}
