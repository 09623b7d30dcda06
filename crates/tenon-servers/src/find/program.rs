//! A found program with everything that its process needs in a project.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::json_values::{fill, lookup, set};
use super::{Finder, FoundProgram, ProgramOrigin, Trust, packages_of, search_path, virtualenv};
use crate::compilation_database;
use crate::confinement::{ConfinedServer, Confinement};
use crate::install::Managed;
use crate::registry::ServerEntry;

/// A server that can be started: program, arguments, environment and settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub path: Utf8PathBuf,
    pub args: Vec<String>,
    /// Added to our own environment. Always has `PATH`.
    pub env: BTreeMap<String, String>,
    /// The entry's, completed for this project.
    pub initialization_options: Option<Value>,
    /// The entry's, completed for this project.
    pub settings: Value,
    pub origin: ProgramOrigin,
    /// What its process may do; `None` if the user excepts the server.
    pub confinement: Option<Confinement>,
    /// Whether its toolchain lacks the standard library's source.
    pub lacks_library: bool,
    /// The project whose compilation database is copied with harmless options only.
    filtered_project: Option<FilteredProject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FilteredProject {
    root: Utf8PathBuf,
    project: Utf8PathBuf,
}

impl Program {
    /// Makes the private folder of the server and what it reads there.
    pub fn prepare(&self) -> io::Result<()> {
        let Some(confinement) = &self.confinement else {
            return Ok(());
        };
        create_private(&confinement.private)?;
        create_private(&confinement.private.join(TEMPORARY))?;
        match &self.filtered_project {
            Some(FilteredProject { root, project }) => {
                compilation_database::write_filtered(root, project, &confinement.private)
            }
            None => Ok(()),
        }
    }

    /// The folder whose compilation database it reads, for servers that read one.
    pub fn database_folder<'p>(&'p self, project: &'p Utf8Path) -> &'p Utf8Path {
        match (&self.filtered_project, &self.confinement) {
            (Some(_), Some(confinement)) => &confinement.private,
            _ => project,
        }
    }
}

/// The folder for temporary files in a private folder.
const TEMPORARY: &str = "tmp";

/// A folder that only the user can enter.
fn create_private(folder: &Utf8Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

impl Finder {
    /// Completes a program for a project. Reads what its process needs, so this is done for servers that start, not for all.
    pub(super) fn equip(
        &self,
        path: &[&Utf8Path],
        entry: &ServerEntry,
        found: FoundProgram,
        project: &Utf8Path,
    ) -> Program {
        let mut program = Program {
            args: found.launch.args,
            env: entry.env.clone(),
            initialization_options: entry.initialization_options.clone(),
            settings: entry.settings.clone(),
            origin: found.origin,
            path: found.path,
            confinement: None,
            lacks_library: self.library_of(entry, project).is_some(),
            filtered_project: None,
        };
        if let (false, Some(options)) = (entry.needs_packages.is_empty(), &mut program.initialization_options)
            && let Some(packages) = packages_of(&program.path)
        {
            fill(options, "{packages}", packages.as_str());
        }
        program.env.entry("PATH".to_owned()).or_insert_with(|| search_path::join(path));
        self.confine(path, entry, project, &mut program);
        if let (Some(pin), Some(copy)) = (&entry.pin, found.own_copy) {
            let options =
                program.initialization_options.get_or_insert_with(|| Value::Object(serde_json::Map::new()));
            set(options, &pin.option, Value::String(copy.into_string()));
        }
        if let Some(settings) = &entry.virtualenv
            && let Some(found) = virtualenv::find(project, &self.root)
        {
            let interpreter = found.interpreter();
            let (key, value) = match self.trust {
                Trust::Trusted if self.is_pinned(&interpreter) => {
                    (&settings.interpreter, Value::String(interpreter.into_string()))
                }
                Trust::Trusted | Trust::Untrusted => (&settings.packages, Value::from(found.packages())),
            };
            if lookup(&program.settings, key).is_none() {
                set(&mut program.settings, key, value);
            }
        }
        program
    }

    fn confine(&self, path: &[&Utf8Path], entry: &ServerEntry, project: &Utf8Path, program: &mut Program) {
        let server = ConfinedServer {
            entry,
            program: &program.path,
            root: &self.root,
            project,
            trust: self.trust,
            path,
            managed: self.managed.as_ref().map(Managed::folder),
        };
        let confinement = self.confinement.as_ref().and_then(|settings| settings.confine(&server));
        let Some(confinement) = confinement else {
            return;
        };
        let private = &confinement.private;
        for (name, folder) in [("TMPDIR", private.join(TEMPORARY)), ("XDG_CACHE_HOME", private.clone())] {
            program.env.entry(name.to_owned()).or_insert_with(|| folder.into_string());
        }
        if self.trust == Trust::Untrusted {
            let words = entry.untrusted_args.iter().map(|word| word.replace("{private}", private.as_str()));
            program.args.extend(words);
            program.filtered_project = entry
                .filters_database
                .then(|| FilteredProject { root: self.root.clone(), project: project.to_owned() });
        }
        program.confinement = Some(confinement);
    }
}
