//! `outline`: the declarations of a file, or the map of a folder or the workspace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenon_index::{DeclarationKind, FileClass, IndexedFile, ParseOutcome, SymbolRef, View as IndexView};

use super::answer::{Answer, Continuation, Line, View};
use super::{ExploreError, Explorer, Notes, allowed, source};
use crate::summary::count;

/// The most names that a map shows for one file.
const MAX_NAMES: usize = 64;

/// The names that a map shows for one file if not all fit, and up to which values count as main declarations.
const SOME_NAMES: usize = 8;

/// The arguments of `outline`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outline {
    pub path: Option<String>,
    pub depth: Option<usize>,
    pub max_bytes: Option<usize>,
}

impl Explorer {
    pub(super) fn outline(&self, input: Outline, notes: Notes) -> Result<String, ExploreError> {
        let Outline { path, depth, max_bytes } = input;
        let given = path.as_deref().unwrap_or(".");
        let place = self.locate(given)?;
        let view = self.index().view();
        let answer = match &place {
            Place::File(path) => match view.file(path) {
                Some(file) => of_file(file, depth),
                None => {
                    return Err(ExploreError::Unreadable {
                        path: path.clone(),
                        why: "its language is not in the index; `search` finds text in it".to_owned(),
                    });
                }
            },
            Place::Folder(folder) => of_folder(&view, folder, depth),
        };
        Ok(answer.with_notes(notes.into_lines()).fit(allowed(max_bytes)))
    }

    /// The file or folder that a path means: exactly, or the only one whose path ends with it.
    pub(super) fn locate(&self, given: &str) -> Result<Place, ExploreError> {
        let missing = || ExploreError::NoPath { path: given.to_owned() };
        let relative = self.relative(given);
        if relative.is_empty() {
            return Ok(Place::Folder(String::new()));
        }
        let gate = self.servers().gate();
        if gate.admit_path(&relative).is_ok_and(|path| path.as_path().is_file()) {
            return Ok(Place::File(relative));
        }
        if gate.admit_folder(&relative).is_ok() {
            return Ok(Place::Folder(relative));
        }
        let view = self.index().view();
        let ending = format!("/{relative}");
        let files: Vec<String> = view
            .files()
            .map(IndexedFile::path)
            .filter(|path| path.ends_with(&ending))
            .map(str::to_owned)
            .collect();
        if let [only] = files.as_slice() {
            return Ok(Place::File(only.clone()));
        }
        if files.len() > 1 {
            let shown = files[..files.len().min(5)].join(", ");
            let message = format!("`{given}` means {} files: {shown}; give more of the path", files.len());
            return Err(ExploreError::Arguments(message));
        }
        let inside = format!("{ending}/");
        let mut folders: Vec<&str> = view
            .files()
            .filter_map(|file| file.path().find(&inside).map(|at| &file.path()[..at + ending.len()]))
            .collect();
        folders.dedup();
        match folders.as_slice() {
            [only] => Ok(Place::Folder((*only).to_owned())),
            _ => Err(missing()),
        }
    }
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Relative to the root.
    File(String),
    /// Relative to the root; empty for the root itself.
    Folder(String),
}

fn of_file(file: &IndexedFile, depth: Option<usize>) -> Answer {
    let deepest = file.symbols().map(SymbolRef::depth).max().map_or(0, |depth| depth + 1);
    let wanted = depth.unwrap_or(deepest).min(deepest);
    let heading =
        format!("{} {} lines, {}{}", file.path(), file.line_count(), file.language().name(), caution(file));
    let lines = |to_depth: usize, line: &dyn Fn(SymbolRef<'_>, usize) -> String| {
        let shown = file.symbols().map(|symbol| (symbol, symbol.depth()));
        // Functions inside functions are details of the body, unless asked for.
        let is_shown = |(symbol, at): &(SymbolRef<'_>, usize)| {
            *at < to_depth
                && (depth.is_some() || !symbol.parent().is_some_and(|parent| parent.kind().is_callable()))
        };
        let shown = shown.filter(is_shown).map(|(symbol, at)| Line::heading(line(symbol, at)));
        View::new(std::iter::once(Line::heading(&heading)).chain(shown).collect())
    };
    let names = |symbol: SymbolRef<'_>, depth: usize| {
        format!("{:indent$}{} {}", "", symbol.range().first_line, symbol.name(), indent = 2 * depth)
    };
    let mut views = vec![lines(wanted, &source::outline_line)];
    views.push(lines(wanted, &names).with_hint("signatures left out; find a name, or use max_bytes"));
    for depth in (1..wanted).rev() {
        let hint = format!("cut at depth {depth}; find a name, or use max_bytes");
        views.push(lines(depth, &source::outline_line).with_hint(hint.as_str()));
        views.push(lines(depth, &names).with_hint(hint));
    }
    Answer::new(views).continued_by(Continuation::Narrow("max_bytes"))
}

/// What to know about the declarations of a file.
fn caution(file: &IndexedFile) -> &'static str {
    match file.outcome() {
        ParseOutcome::Whole => "",
        ParseOutcome::SyntaxErrors => ", has syntax errors: declarations may be missing",
        ParseOutcome::TooLarge => ", too large: declarations are not known",
        ParseOutcome::Minified => ", minified: declarations are not known",
        ParseOutcome::TooComplex => ", too complex: declarations are not known",
        ParseOutcome::Unreadable => ", not readable: declarations are not known",
    }
}

/// A file of a map.
struct MappedFile<'v> {
    file: &'v IndexedFile,
    /// How many other files mention what it declares.
    users: u32,
}

fn of_folder(view: &IndexView, folder: &str, depth: Option<usize>) -> Answer {
    let counts: BTreeMap<&str, u32> =
        view.reference_counts().into_iter().map(|(file, count)| (file.path(), count)).collect();
    let mut files: Vec<MappedFile<'_>> = view
        .below(folder)
        .map(|file| MappedFile { file, users: counts.get(file.path()).copied().unwrap_or_default() })
        .collect();
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let relative = |file: &IndexedFile| file.path()[prefix.len()..].to_owned();
    if let Some(depth) = depth {
        files.retain(|one| relative(one.file).split('/').count() <= depth);
    }
    let class = |one: &MappedFile<'_>| one.file.class().max(FileClass::Source);
    files.sort_by(|a, b| {
        class(a).cmp(&class(b)).then(b.users.cmp(&a.users)).then_with(|| a.file.path().cmp(b.file.path()))
    });
    let name = if folder.is_empty() { "." } else { folder };
    let heading = format!("{name} {}, most used first", count(files.len(), "source file"));
    if files.is_empty() {
        return Answer::new(vec![View::of_text(&format!("{name}: no source files in the index"))]);
    }
    let with_names = |most: usize, line_of: &dyn Fn(&MappedFile<'_>, Vec<&str>) -> String| {
        let lines =
            files.iter().map(|one| Line::item(line_of(one, main_names(one.file, most)), one.file.path()));
        View::new(std::iter::once(Line::heading(&heading)).chain(lines).collect())
    };
    let line = |one: &MappedFile<'_>, names: Vec<&str>| {
        let users = if one.users > 0 { format!(" ({})", one.users) } else { String::new() };
        format!("{}{users} {}", relative(one.file), names.join(", ")).trim_end().to_owned()
    };
    let mut views = vec![with_names(MAX_NAMES, &line), with_names(SOME_NAMES, &line), with_names(3, &line)];
    views.push(with_folders(&heading, &files, &prefix));
    Answer::new(views).continued_by(Continuation::Narrow("path or max_bytes"))
}

/// The folders with their numbers of files, then the most used files with their main declarations.
fn with_folders(heading: &str, files: &[MappedFile<'_>], prefix: &str) -> View {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for one in files {
        let below = &one.file.path()[prefix.len()..];
        if let Some((folder, _)) = below.split_once('/') {
            *folders.entry(folder).or_default() += 1;
        }
    }
    let folders: Vec<String> = folders.iter().map(|(folder, count)| format!("{folder}/ {count}")).collect();
    let mut lines = vec![Line::heading(heading), Line::heading(folders.join(", "))];
    lines.extend(files.iter().map(|one| {
        let names = main_names(one.file, 5).join(", ");
        let users = if one.users > 0 { format!(" ({})", one.users) } else { String::new() };
        Line::item(format!("{}{users} {names}", &one.file.path()[prefix.len()..]), one.file.path())
    }));
    View::new(lines)
}

/// The names that a file is known for: types first, then functions, then the others, in source order.
fn main_names(file: &IndexedFile, most: usize) -> Vec<&str> {
    let rank = |symbol: &SymbolRef<'_>| match symbol.kind() {
        kind if kind.is_type() => 0,
        kind if kind.is_callable() => 1,
        _ => 2,
    };
    // A namespace says less than what is in it.
    let is_space = |kind| matches!(kind, DeclarationKind::Namespace | DeclarationKind::Module);
    let mut symbols: Vec<SymbolRef<'_>> = Vec::new();
    let mut open: Vec<SymbolRef<'_>> = file.top_level().filter(|symbol| !symbol.is_test()).collect();
    open.reverse();
    while let Some(symbol) = open.pop() {
        let inside: Vec<SymbolRef<'_>> =
            if is_space(symbol.kind()) { symbol.children().collect() } else { Vec::new() };
        if inside.is_empty() {
            symbols.push(symbol);
        }
        open.extend(inside.into_iter().rev());
    }
    symbols.sort_by_key(rank);
    let mut names: Vec<&str> = Vec::new();
    for symbol in symbols {
        // One more than is shown is enough: a generated file may declare a hundred thousand names.
        let most = if rank(&symbol) < 2 { most } else { most.min(SOME_NAMES) };
        if names.len() > most {
            break;
        }
        if !names.contains(&symbol.name()) {
            names.push(symbol.name());
        }
    }
    let more = names.len() > most;
    names.truncate(most);
    if more {
        names.push("…");
    }
    names
}
