//! Finds the files that may depend on a change.
//!
//! With the old text: files that reference a symbol whose declaration the change touches, and files that contain a name which
//! the change removed. With the new text: files that reference a symbol which is new, or whose type changed together with
//! its body. A changed member also affects everything that uses the class or interface.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::json;
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;

use super::convert::converted;
use super::includers;
use super::name_search::{IMPORT_WORDS, ModuleImport, NameSearch};
use super::server_change::ChangedDocument;
use super::touched::{self, Hunk, Place};
use super::{Orchestrator, lock};
use crate::call_context::CallContext;
use crate::client::{Client, gap_reason};
use crate::from_protocol;
use crate::identifiers;
use crate::model::{Doubt, GapReason, Symbol};
use tenon_servers::registry::Capability;

/// The most symbols to request references for; files with the names of the others count as dependents.
const MAX_SYMBOLS: usize = 24;

/// The most symbols whose types are compared.
const MAX_HOVERS: usize = 64;

/// A symbol by its containers and name.
type SymbolKey = (Vec<String>, String);

/// The files that may depend on a change.
#[derive(Default)]
pub(super) struct Dependents {
    /// Files that reference a changed symbol.
    users: BTreeSet<WorkspacePath>,
    /// Files that contain its name.
    namesakes: BTreeSet<WorkspacePath>,
    /// Files that import a created file. It is on disk, so servers cannot report on the state before any more.
    pub(super) importers: BTreeSet<WorkspacePath>,
    /// How many files were not searched for names.
    pub(super) not_searched: usize,
    /// What the changed files declared before.
    declared: BTreeMap<WorkspacePath, Declared>,
    /// Why some may be missing.
    pub(super) gap: Option<GapReason>,
}

/// What a file declared before a change.
#[derive(Default)]
struct Declared {
    all: BTreeSet<SymbolKey>,
    /// The hover texts of symbols whose bodies changed.
    hovers: BTreeMap<SymbolKey, Option<String>>,
}

/// A place to request references for.
struct Asked {
    place: Place,
    /// Only files that also contain this name.
    mentions: Option<String>,
}

impl Dependents {
    pub(super) fn add(&mut self, other: Self) {
        self.users.extend(other.users);
        self.namesakes.extend(other.namesakes);
        self.importers.extend(other.importers);
        self.not_searched = self.not_searched.max(other.not_searched);
        self.declared.extend(other.declared);
        self.gap = self.gap.take().or(other.gap);
    }

    /// All files but the changed ones, those with references first.
    pub(super) fn files(&self, changed: &[WorkspacePath]) -> Vec<WorkspacePath> {
        let namesakes = self.namesakes.difference(&self.users);
        let others = self
            .importers
            .iter()
            .filter(|path| !self.users.contains(*path) && !self.namesakes.contains(*path));
        let all = self.users.iter().chain(namesakes).chain(others);
        all.filter(|path| !changed.contains(path)).cloned().collect()
    }

    fn missed(&mut self, why: GapReason) {
        self.gap.get_or_insert(why);
    }
}

/// The search for dependents of one changed document in one server.
pub(super) struct DependentSearch<'a> {
    pub(super) orchestrator: &'a Orchestrator,
    pub(super) client: &'a Arc<Client>,
    pub(super) document: &'a ChangedDocument,
    pub(super) call: &'a CallContext,
}

impl DependentSearch<'_> {
    /// The dependents that can be found only with the old text.
    pub(super) async fn before(&self) -> Dependents {
        let mut found = Dependents::default();
        let Some(before) = &self.document.before else {
            return found;
        };
        if before.text().is_empty() {
            let module = (!self.client.checks_files_alone())
                .then(|| ModuleImport::of(self.document.path.as_path(), Vec::new()));
            let named = self.search(NameSearch { words: Vec::new(), module }).await;
            found.importers = named.namesakes;
            found.not_searched = named.not_searched;
            return found;
        }
        let empty = LineIndex::new("");
        let after = self.document.after.as_ref().unwrap_or(&empty);
        let hunks = touched::hunks(before, after);
        if hunks.is_empty() || self.client.checks_files_alone() {
            return found;
        }
        let dropped = dropped_words(before, after, &hunks);
        if !self.can_find() {
            return self.search(NameSearch::words(dropped)).await;
        }
        let symbols = match self.symbols_in(before).await {
            Ok(symbols) => symbols,
            Err(why) => {
                found = self.search(NameSearch::words(dropped)).await;
                found.missed(why);
                return found;
            }
        };
        let old: Vec<Range<u32>> = hunks.iter().map(|hunk| hunk.old.clone()).collect();
        let new: Vec<Range<u32>> = hunks.iter().map(|hunk| hunk.new.clone()).collect();
        let all = touched::declared(&symbols, before);
        let mut places = touched::touched(&symbols, before, &old);
        let kept = touched::assigned_attributes(after, &new);
        for place in places.iter_mut().filter(|place| place.is_attribute) {
            place.header |= !kept.contains(&place.name);
        }
        let imported =
            imported_names(before, &old, &symbols).chain(imported_names(after, &new, &symbols)).collect();
        touched::add_mentions(&mut places, &symbols, before, &imported);
        let (headers, mut bodies): (Vec<Place>, Vec<Place>) =
            places.into_iter().partition(|place| place.header);
        if bodies.len() > MAX_HOVERS {
            bodies.truncate(MAX_HOVERS);
            found.missed(GapReason::Limit);
        }
        let asked = with_containers(headers, &all, false);
        if self.client.entry().rebuilds && includers::changes_structure(before, after, &hunks, &symbols) {
            let includers = self.orchestrator.includers(self.client, &self.document.path, self.call).await;
            found.namesakes.extend(includers.files);
            found.not_searched = includers.not_searched;
        }
        // References miss files that the server's project leaves out.
        let names: BTreeSet<&str> = all.iter().map(|place| place.name.as_str()).collect();
        let dropped = dropped.into_iter().filter(|word| names.contains(word.as_str())).collect();
        let lost = imported_again(before, after, &hunks, &symbols);
        let module = module_names(
            lost,
            dropped_words(after, before, &hunks.iter().map(Hunk::reversed).collect::<Vec<_>>()),
        )
        .filter(|_| self.document.after.is_some())
        .or_else(|| self.document.after.is_none().then(Vec::new))
        .map(|names| ModuleImport::of(self.document.path.as_path(), names));
        let (hovers, users, named) = tokio::join!(
            join_all(bodies.iter().map(|place| self.hover_of(before, place))),
            self.users_of(before, asked),
            self.search(NameSearch { words: dropped, module }),
        );
        found.add(users);
        found.add(named);
        let hovers = bodies.iter().map(Place::key).zip(hovers).collect();
        let declared = Declared { all: all.iter().map(Place::key).collect(), hovers };
        found.declared.insert(self.document.path.clone(), declared);
        found
    }

    /// The dependents that become known with the new text.
    pub(super) async fn after(&self, before: &Dependents) -> Dependents {
        let mut found = Dependents::default();
        let (Some(old), Some(new)) = (&self.document.before, &self.document.after) else {
            return found;
        };
        let hunks = touched::hunks(old, new);
        if hunks.is_empty() || self.client.checks_files_alone() || !self.can_find() {
            return found;
        }
        let symbols = match self.symbols_in(new).await {
            Ok(symbols) => symbols,
            Err(why) => {
                found.missed(why);
                return found;
            }
        };
        let nothing = Declared::default();
        let declared = before.declared.get(&self.document.path).unwrap_or(&nothing);
        let all = touched::declared(&symbols, new);
        let changed: Vec<Range<u32>> = hunks.iter().map(|hunk| hunk.new.clone()).collect();
        let places = touched::touched(&symbols, new, &changed);
        let mut asked = Vec::new();
        let mut words = Vec::new();
        for (key, hover) in &declared.hovers {
            match places.iter().chain(&all).find(|place| place.key() == *key) {
                Some(place)
                    if !is_same_type(hover.as_deref(), self.hover_of(new, place).await.as_deref()) =>
                {
                    asked.push(place.clone());
                }
                Some(_) => {}
                None => words.push(key.1.clone()),
            }
        }
        if !asked.is_empty() {
            // Their types were not compared, so they count as changed.
            asked.iter_mut().for_each(|place| place.header = true);
            touched::add_mentions(&mut asked, &symbols, new, &BTreeSet::new());
        }
        let mut asked = with_containers(asked, &all, false);
        let is_new = |place: &Place| !place.is_attribute && !declared.all.contains(&place.key());
        asked.extend(with_containers(places.into_iter().filter(is_new).collect(), &all, true));
        let (users, named) = tokio::join!(self.users_of(new, asked), self.search(NameSearch::words(words)));
        found.add(users);
        found.add(named);
        found
    }

    fn can_find(&self) -> bool {
        let able = [Capability::DocumentSymbols, Capability::References];
        able.into_iter().all(|capability| self.client.has(capability))
    }

    /// The files that references name. What has no position to query is searched by name.
    async fn users_of(&self, lines: &LineIndex, mut asked: Vec<Asked>) -> Dependents {
        let mut found = Dependents::default();
        let mut seen = BTreeSet::new();
        asked.sort_by_key(|one| (one.place.containers.len(), one.mentions.is_some()));
        asked.retain(|one| seen.insert((one.place.offset, one.mentions.clone())));
        if asked.is_empty() {
            return found;
        }
        if !self.client.ready(self.call).await {
            found.missed(if self.client.is_alive() { GapReason::Indexing } else { GapReason::Broken });
        } else if !self.client.is_proven() {
            found.missed(GapReason::Unproven(Doubt::NoProgress));
        }
        let mut words: BTreeSet<String> =
            asked.split_off(asked.len().min(MAX_SYMBOLS)).into_iter().map(|one| one.place.name).collect();
        if self.client.lacks_library() {
            // Uses inside macros are missing in its answers.
            words.extend(asked.iter().map(|one| one.place.name.clone()));
        }
        let users = join_all(asked.iter().map(|one| self.users_at(lines, one))).await;
        for (one, users) in asked.iter().zip(users) {
            match users {
                Ok(users) => found.users.extend(users),
                Err(why) => {
                    found.missed(why);
                    words.insert(one.place.name.clone());
                }
            }
        }
        found.add(self.search(NameSearch::words(words.into_iter().collect())).await);
        found
    }

    async fn search(&self, search: NameSearch) -> Dependents {
        let named = self.orchestrator.files_named(self.client, &self.document.path, search, self.call).await;
        let namesakes = named.files.into_iter().collect();
        Dependents { namesakes, not_searched: named.not_searched, ..Dependents::default() }
    }

    /// The symbols of a text, which the server is shown if it does not have it.
    async fn symbols_in(&self, lines: &LineIndex) -> Result<Vec<Symbol>, GapReason> {
        let path = &self.document.path;
        let params = json!({ "textDocument": { "uri": path.uri().as_str() } });
        let asked =
            self.client.ask_about(self.call, path, lines, "textDocument/documentSymbol", &params).await;
        let payload = asked.map_err(|error| gap_reason(&error))?;
        let owner = path.clone();
        let gate = &self.orchestrator.0.gate;
        let symbols = converted(gate, self.client, payload, move |converter, payload| {
            converter.symbols(payload, Some(&owner)).items
        });
        symbols.await.ok_or(GapReason::Pending)
    }

    /// The files that reference a symbol. Cached until another file changes.
    async fn users_at(&self, lines: &LineIndex, asked: &Asked) -> Result<Vec<WorkspacePath>, GapReason> {
        let path = &self.document.path;
        let (pid, key) = (self.client.pid(), asked.place.key());
        let known = lock(&self.orchestrator.0.users).users(pid, path, &key);
        let users = match known {
            Some(users) => users,
            None => {
                let params = json!({
                    "textDocument": { "uri": path.uri().as_str() },
                    "position": lines.position_clamped(asked.place.offset, self.client.encoding()),
                    // Some servers count an export from another file as a declaration.
                    "context": { "includeDeclaration": true },
                });
                let method = "textDocument/references";
                let payload = self.client.ask_about(self.call, path, lines, method, &params).await;
                let payload = payload.map_err(|error| gap_reason(&error))?;
                let files =
                    converted(&self.orchestrator.0.gate, self.client, payload, |converter, payload| {
                        converter.locations(payload).items.into_iter().map(|one| one.path).collect()
                    });
                let users: BTreeSet<WorkspacePath> = files.await.ok_or(GapReason::Pending)?;
                lock(&self.orchestrator.0.users).add(pid, path, key, users.clone());
                users
            }
        };
        let users: Vec<WorkspacePath> = users.into_iter().filter(|user| user != path).collect();
        match &asked.mentions {
            Some(name) => Ok(self.orchestrator.files_containing(users, name.clone()).await),
            None => Ok(users),
        }
    }

    /// The hover text of a symbol, which contains its type.
    async fn hover_of(&self, lines: &LineIndex, place: &Place) -> Option<String> {
        if !self.client.has(Capability::Hover) {
            return None;
        }
        let path = &self.document.path;
        let params = json!({
            "textDocument": { "uri": path.uri().as_str() },
            "position": lines.position_clamped(place.offset, self.client.encoding()),
        });
        let payload =
            self.client.ask_about(self.call, path, lines, "textDocument/hover", &params).await.ok()?;
        let hover = from_protocol::hover(&payload)?;
        Some(hover.parts.into_iter().map(|part| part.value).collect())
    }
}

/// Whether two hover texts show the same type. A shortened text shows only a part of it, and an overload only one signature.
fn is_same_type(before: Option<&str>, after: Option<&str>) -> bool {
    let shortened = |text: &str| text.contains("...") || text.contains("overload");
    before.is_some() && before == after && !after.is_some_and(shortened)
}

/// Adds the class or interface around each member, whose users may break, too. A file with an override contains the name of the
/// member; one that creates an object, or implements an interface with a new member, does not.
fn with_containers(places: Vec<Place>, all: &[Place], added: bool) -> Vec<Asked> {
    let around = |place: &Place| {
        let (name, containers) = place.containers.split_last()?;
        let container = all.iter().find(|one| one.name == *name && one.containers == containers)?;
        let creates = matches!(place.kind, "constructor" | "variable" | "constant" | "field")
            || ["__init__", "__new__", "constructor"].contains(&place.name.as_str());
        let required = added && (container.kind == "interface" || place.is_abstract);
        let mentions = (!creates && !required).then(|| place.name.clone());
        Some(Asked { place: container.clone(), mentions })
    };
    let containers: Vec<Asked> = places.iter().filter_map(around).collect();
    places.into_iter().map(|place| Asked { place, mentions: None }).chain(containers).collect()
}

/// Identifiers that changed lines lose and the new text does not contain.
fn dropped_words(old: &LineIndex, new: &LineIndex, hunks: &[Hunk]) -> Vec<String> {
    let lines = hunks.iter().flat_map(|hunk| hunk.old.clone()).filter_map(|line| old.line(line));
    let words: BTreeSet<&str> = lines.flat_map(identifiers::of).collect();
    let gone = words.into_iter().filter(|word| !identifiers::contains(new.text(), word));
    gone.map(str::to_owned).collect()
}

/// The names that changed import and export lines lose: other files may import them from this one. Empty if such a line has no
/// names, `None` if there is no such line.
fn imported_again(
    old: &LineIndex,
    new: &LineIndex,
    hunks: &[Hunk],
    symbols: &[Symbol],
) -> Option<Vec<String>> {
    let mut names: Option<BTreeSet<String>> = None;
    let kept: BTreeSet<&str> = hunks
        .iter()
        .flat_map(|hunk| hunk.new.clone())
        .filter_map(|line| new.line(line))
        .flat_map(identifiers::of)
        .collect();
    for line in hunks.iter().flat_map(|hunk| hunk.old.clone()) {
        let Some(text) = old.line(line).filter(|_| !is_inside(symbols, line)) else {
            continue;
        };
        if !is_import(text) {
            continue;
        }
        if text.contains('*') {
            return Some(Vec::new());
        }
        let words = identifiers::of(text).filter(|word| !kept.contains(word) && !is_keyword(word));
        names.get_or_insert_default().extend(words.map(str::to_owned));
    }
    names.filter(|names| !names.is_empty()).map(|names| names.into_iter().collect())
}

/// The names on changed import lines: what they stand for may be another thing now, or nothing.
fn imported_names<'a>(
    text: &'a LineIndex,
    changed: &'a [Range<u32>],
    symbols: &'a [Symbol],
) -> impl Iterator<Item = String> + 'a {
    let lines = changed.iter().flat_map(Clone::clone).filter(|line| !is_inside(symbols, *line));
    let imports = lines.filter_map(|line| text.line(line)).filter(|line| is_import(line));
    imports.flat_map(identifiers::of).filter(|word| !is_keyword(word)).map(str::to_owned)
}

/// Whether a line belongs to a declaration.
fn is_inside(symbols: &[Symbol], line: u32) -> bool {
    let inside = |symbol: &Symbol| {
        symbol.name != "__all__" && symbol.range.start.line <= line && line <= symbol.range.end.line
    };
    symbols.iter().any(inside)
}

/// Names that other files may import from this one, in vain before or after the change. Empty means any name.
fn module_names(lost: Option<Vec<String>>, added: Vec<String>) -> Option<Vec<String>> {
    match lost {
        Some(lost) if lost.is_empty() => Some(lost),
        lost => {
            let names: Vec<String> = lost.into_iter().flatten().chain(added).collect();
            (!names.is_empty()).then_some(names)
        }
    }
}

/// Whether a line begins an import or export, or continues one as a list of names.
fn is_import(line: &str) -> bool {
    let line = line.trim().trim_start_matches("pub ");
    let begins =
        |word: &str| line.strip_prefix(word).is_some_and(|rest| !rest.starts_with(identifiers::is_part));
    let is_name = |part: &str| {
        let part = part.trim().trim_matches(['\'', '"']);
        let mut words = part.split(" as ");
        words.all(|word| !word.is_empty() && word.chars().all(identifiers::is_part))
    };
    IMPORT_WORDS.into_iter().any(begins) || line.trim_end_matches(',').split(',').all(is_name)
}

/// A word of an import that does not name anything.
fn is_keyword(word: &str) -> bool {
    IMPORT_WORDS.contains(&word) || ["type", "default", "const", "class", "function"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_lines_are_recognized() {
        for line in
            ["from .x import a", "export { a } from './a';", "    Flask as Flask,", "    'a', \"b\",", "  a"]
        {
            assert!(is_import(line), "{line}");
        }
        for line in ["# a comment", "important = 1", " * from here, and there", "call(a, b)", ""] {
            assert!(!is_import(line), "{line}");
        }
    }

    #[test]
    fn shortened_or_unknown_hover_is_not_the_same_type() {
        assert!(is_same_type(Some("(a: int) -> str"), Some("(a: int) -> str")));
        for (before, after) in
            [(None, None), (Some("a"), Some("b")), (Some("{ a; ... }"), Some("{ a; ... }"))]
        {
            assert!(!is_same_type(before, after));
        }
    }
}
