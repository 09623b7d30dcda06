//! `hierarchy`: callers, callees, subtypes and supertypes as an indented tree.
//!
//! All four come from definitions and references, which every language server has: callers are the declarations around calls,
//! callees the definitions of the names that a body calls, subtypes the declarations whose bases are defined by the symbol. What
//! no server could confirm is marked `?`.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use tenon_contract::position::{Encoding, LineIndex, Position};
use tenon_index::{DeclarationKind, NamePosition, SymbolFilter, SymbolRef};
use tenon_lsp::model::{AnswerNote, GapReason, Location, LspAnswer};
use tenon_lsp::{CallContext, ServerId};

use super::answer::{Answer, Continuation, Line, View};
use super::notes::Notes;
use super::reference_role::ReferenceRole;
use super::references::{Reference, name_position};
use super::{ExploreError, Explorer, NamedSymbol, allowed};
use crate::summary::count;
use crate::symbol_choice::{ChosenSymbol, Declaration, SymbolChoice};

/// The most declarations in a tree.
const MAX_NODES: usize = 1_000;
/// The most names of one body that are followed.
const MAX_CALLED: usize = 200;
/// How many questions a server gets at once.
const AT_ONCE: usize = 16;
/// The depth of trees of types, which are small; calls are followed only on request.
const TYPE_DEPTH: u8 = 5;

/// The arguments of `hierarchy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hierarchy {
    pub symbol: String,
    pub direction: Direction,
    pub depth: Option<u8>,
    pub max_bytes: Option<usize>,
}

/// What a tree shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Callers,
    Callees,
    Subtypes,
    Supertypes,
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Self::Callers => "caller",
            Self::Callees => "callee",
            Self::Subtypes => "subtype",
            Self::Supertypes => "supertype",
        }
    }

    fn default_depth(self) -> u8 {
        match self {
            Self::Callers | Self::Callees => 1,
            Self::Subtypes | Self::Supertypes => TYPE_DEPTH,
        }
    }
}

/// A neighbour of a declaration in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Neighbour {
    /// What is shown.
    text: String,
    /// Followed further; `None` outside the workspace and for files without an enclosing declaration.
    declaration: Option<Declaration>,
    order: (String, u32),
}

impl Explorer {
    pub(super) async fn hierarchy(
        &self,
        input: Hierarchy,
        mut notes: Notes,
        call: &CallContext,
    ) -> Result<String, ExploreError> {
        let Hierarchy { symbol, direction, depth, max_bytes } = input;
        let symbol = match self.named_symbol(&symbol, &notes, max_bytes)? {
            NamedSymbol::One(symbol) => symbol,
            NamedSymbol::Listed(text) => return Ok(text),
        };
        let depth = depth.unwrap_or(direction.default_depth());
        let call = &Self::server_call(call);
        let root = symbol.main().clone();
        let mut tree = Tree { seen: BTreeSet::from([key(&root)]), ..Tree::default() };
        // Level by level, so that a cut tree has the nearest declarations.
        let mut level = vec![(Vec::new(), symbol)];
        for _ in 0..depth {
            let mut next = Vec::new();
            for (path, symbol) in level {
                let found = self.neighbours(&symbol, direction, &mut notes, call).await?;
                for (number, neighbour) in found.into_iter().enumerate() {
                    let mut path: Vec<usize> = path.clone();
                    path.push(number);
                    let is_new = neighbour.declaration.as_ref().is_none_or(|one| tree.seen.insert(key(one)));
                    let text = if is_new { neighbour.text } else { format!("{} (repeated)", neighbour.text) };
                    tree.lines.insert(path.clone(), text);
                    if let Some(declaration) = neighbour.declaration.filter(|_| is_new) {
                        next.push((path, ChosenSymbol { declarations: vec![declaration] }));
                    }
                }
                tree.is_cut |= tree.lines.len() > MAX_NODES;
                if tree.is_cut {
                    break;
                }
            }
            level = next;
            if tree.is_cut || level.is_empty() {
                break;
            }
        }
        if tree.is_cut {
            notes.add(format!("more than {MAX_NODES} declarations; the rest was not followed"));
        }
        Ok(tree.answer(&root, direction).with_notes(notes.into_lines()).fit(allowed(max_bytes)))
    }

    async fn neighbours(
        &self,
        symbol: &ChosenSymbol,
        direction: Direction,
        notes: &mut Notes,
        call: &CallContext,
    ) -> Result<Vec<Neighbour>, ExploreError> {
        let mut found = match direction {
            Direction::Callers => self.callers(symbol, notes, call).await?,
            Direction::Callees => self.callees(symbol.main(), notes, call).await?,
            Direction::Subtypes => self.subtypes(symbol.main(), notes, call).await,
            Direction::Supertypes => self.supertypes(symbol.main(), notes, call).await,
        };
        found.sort_by(|a, b| (&a.order, &a.text).cmp(&(&b.order, &b.text)));
        found.dedup();
        Ok(found)
    }

    /// The declarations that call a symbol, each with the lines of the calls.
    async fn callers(
        &self,
        symbol: &ChosenSymbol,
        notes: &mut Notes,
        call: &CallContext,
    ) -> Result<Vec<Neighbour>, ExploreError> {
        let found = self.references_of(symbol, notes, call).await?;
        let is_call = |one: &&Reference| one.role == ReferenceRole::Call;
        let mut callers: BTreeMap<(String, u32), (Option<Declaration>, Vec<u32>)> = BTreeMap::new();
        let view = self.index().view();
        for one in found.references.iter().filter(is_call) {
            let line = one.range.start.line + 1;
            let caller = view.file(&one.path).and_then(|file| file.enclosing(line)).and_then(caller_of);
            let declaration = caller.map(Declaration::new);
            let first_line = declaration.as_ref().map_or(0, |one| one.range.first_line);
            let entry = callers.entry((one.path.clone(), first_line)).or_insert((declaration, Vec::new()));
            entry.1.push(line);
        }
        let mark = if found.by_name { " ?" } else { "" };
        let shown = callers.into_iter().map(|(order, (declaration, mut lines))| {
            lines.dedup();
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            let heading =
                declaration.as_ref().map_or_else(|| format!("file {}", order.0), Declaration::heading);
            Neighbour { text: format!("{heading} calls at {}{mark}", lines.join(", ")), declaration, order }
        });
        Ok(shown.collect())
    }

    /// The declarations that a body calls.
    async fn callees(
        &self,
        declaration: &Declaration,
        notes: &mut Notes,
        call: &CallContext,
    ) -> Result<Vec<Neighbour>, ExploreError> {
        let (_, lines) = self.read(&declaration.path).await?;
        let called = called_names(&lines, declaration, self.has_bare_calls(declaration));
        if called.len() > MAX_CALLED {
            notes.add(format!("{} names are called; the first {MAX_CALLED} were followed", called.len()));
        }
        let asked: Vec<(String, Position)> = called.into_iter().take(MAX_CALLED).collect();
        let answers =
            stream::iter(asked.into_iter().map(|(name, at)| async move {
                (self.defined_at(&declaration.path, at, call).await, name, at)
            }));
        let answers: Vec<_> = answers.buffered(AT_ONCE).collect().await;
        let mut found: Vec<Neighbour> = Vec::new();
        for (defined, name, at) in answers {
            match defined {
                Defined::Here(declarations) => found.extend(declarations.into_iter().map(|one| {
                    let order = (one.path.clone(), one.range.first_line);
                    Neighbour { text: one.heading(), declaration: Some(one), order }
                })),
                Defined::Outside(place) => found.push(Neighbour {
                    text: format!("{name} (outside: {place})"),
                    declaration: None,
                    order: ("\u{10ffff}".to_owned(), at.line),
                }),
                Defined::Nowhere => {}
                Defined::Unknown(why) => {
                    why.into_iter().for_each(|note| notes.add(note));
                    found.extend(self.by_name(&name));
                }
            }
        }
        Ok(found)
    }

    /// The types that extend a type, or the methods that override a method.
    async fn subtypes(&self, of: &Declaration, notes: &mut Notes, call: &CallContext) -> Vec<Neighbour> {
        match self.type_around(of) {
            Some(_) if self.is_go_method(of) => self.implicit_methods(of, notes, call).await,
            None if self.is_go_method(of) => Vec::new(),
            Some(parent) => {
                let types = self.transitive(parent, Step::Down, notes, call).await;
                self.members_named(&of.name, types)
            }
            None => self.extending(of, notes, call).await.into_iter().map(RelatedType::shown).collect(),
        }
    }

    /// The types that a type extends, or the methods that a method overrides.
    async fn supertypes(&self, of: &Declaration, notes: &mut Notes, call: &CallContext) -> Vec<Neighbour> {
        match self.type_around(of) {
            // One outside of a type has a receiver; an interface repeats no method of those that it embeds.
            None if self.is_go_method(of) => self.implicit_methods(of, notes, call).await,
            Some(_) if self.is_go_method(of) => Vec::new(),
            Some(parent) => {
                let types = self.transitive(parent, Step::Up, notes, call).await;
                self.members_named(&of.name, types)
            }
            None => self.extended(of, notes, call).await.into_iter().map(RelatedType::shown).collect(),
        }
    }

    /// All types above or below a type.
    async fn transitive(
        &self,
        from: Declaration,
        step: Step,
        notes: &mut Notes,
        call: &CallContext,
    ) -> Vec<RelatedType> {
        let mut seen = BTreeSet::from([key(&from)]);
        let mut open = vec![from];
        let mut all = Vec::new();
        while let Some(one) = open.pop() {
            let found = match step {
                Step::Down => self.extending(&one, notes, call).await,
                Step::Up => self.extended(&one, notes, call).await,
            };
            for related in found {
                if let Some(declaration) = &related.declaration
                    && seen.len() < MAX_NODES
                    && seen.insert(key(declaration))
                {
                    open.push(declaration.clone());
                    all.push(related);
                }
            }
        }
        all
    }

    /// The members with a name of these types.
    fn members_named(&self, name: &str, types: Vec<RelatedType>) -> Vec<Neighbour> {
        let view = self.index().view();
        let mut found = Vec::new();
        for related in types {
            let Some(symbol) = related.declaration.as_ref().and_then(|one| view.symbol(one.id)) else {
                continue;
            };
            for member in symbol.children().filter(|member| member.name() == name) {
                let one = Declaration::new(member);
                let order = (one.path.clone(), one.range.first_line);
                found.push(Neighbour {
                    text: format!("{}{}", one.heading(), related.mark),
                    declaration: None,
                    order,
                });
            }
        }
        found
    }

    /// The types whose bases a type defines.
    async fn extending(&self, of: &Declaration, notes: &mut Notes, call: &CallContext) -> Vec<RelatedType> {
        let candidates: Vec<(Declaration, Vec<NamePosition>)> = {
            let view = self.index().view();
            let symbols = view.subtypes_by_name(&of.name).into_iter();
            let bases = |symbol: SymbolRef<'_>| {
                let named = symbol.bases().filter(|base| base.last_segment() == of.name);
                named.map(|base| base.position).collect()
            };
            symbols.map(|symbol| (Declaration::new(symbol), bases(symbol))).collect()
        };
        let asked = candidates.into_iter().map(|(one, bases)| async move {
            let mut answers = Vec::new();
            for base in bases {
                answers.push(self.defined_at(&one.path, position(base), call).await);
            }
            (one, answers)
        });
        let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        let mut found = Vec::new();
        for (one, answers) in answers {
            let is_this = |other: &Declaration| key(other) == key(of);
            let mut mark = None;
            for defined in answers {
                match defined {
                    Defined::Here(declarations) if declarations.iter().any(is_this) => mark = Some(""),
                    Defined::Here(_) | Defined::Outside(_) => {}
                    Defined::Nowhere => mark = mark.or(Some(" ?")),
                    Defined::Unknown(why) => {
                        why.into_iter().for_each(|note| notes.add(note));
                        mark = mark.or(Some(" ?"));
                    }
                }
            }
            found.extend(mark.map(|mark| RelatedType { text: one.heading(), declaration: Some(one), mark }));
        }
        if of.kind == DeclarationKind::Interface {
            self.add_implicit(of, &mut found, notes, call).await;
        }
        found
    }

    /// Adds the types that implement an interface, or the interfaces that a type implements, which Go does not write down.
    async fn add_implicit(
        &self,
        of: &Declaration,
        found: &mut Vec<RelatedType>,
        notes: &mut Notes,
        call: &CallContext,
    ) {
        if self.language_of(&of.path) != "go" {
            return;
        }
        for one in self.implicit(of, notes, call).await {
            let is_known =
                |known: &RelatedType| known.declaration.as_ref().is_some_and(|known| key(known) == key(&one));
            if one.kind.is_type() && !found.iter().any(is_known) {
                found.push(RelatedType { text: one.heading(), declaration: Some(one), mark: "" });
            }
        }
    }

    fn is_go_method(&self, of: &Declaration) -> bool {
        of.kind == DeclarationKind::Method && self.language_of(&of.path) == "go"
    }

    /// The methods that implement a method of an interface, or the methods of interfaces that a method implements.
    async fn implicit_methods(
        &self,
        of: &Declaration,
        notes: &mut Notes,
        call: &CallContext,
    ) -> Vec<Neighbour> {
        let found = self.implicit(of, notes, call).await.into_iter().filter(|one| !one.kind.is_type());
        let shown = found.map(|one| Neighbour {
            text: one.heading(),
            order: (one.path.clone(), one.range.first_line),
            declaration: None,
        });
        shown.collect()
    }

    /// What the language server knows to implement this, or to be implemented by it.
    async fn implicit(&self, of: &Declaration, notes: &mut Notes, call: &CallContext) -> Vec<Declaration> {
        let answer = match self.admit(&of.path) {
            Ok(path) => self.servers().implementation(&path, name_position(of), call).await.ok(),
            Err(_) => None,
        };
        let is_known = answer.as_ref().is_some_and(|answer| is_served(answer) && answer.is_complete());
        if !is_known {
            notes.add("Go types do not name the interfaces that they implement; only gopls knows them");
        }
        let places = answer.into_iter().flat_map(|answer| answer.value);
        places.filter_map(|place| self.declaration_at(&place)).collect()
    }

    /// The types that the bases of a type are defined by.
    async fn extended(&self, of: &Declaration, notes: &mut Notes, call: &CallContext) -> Vec<RelatedType> {
        let bases: Vec<(String, String, NamePosition)> = {
            let view = self.index().view();
            let own = view.symbol(of.id).into_iter();
            let blocks = view.files_mentioning(&of.name).into_iter().flat_map(|file| file.symbols());
            let blocks = blocks.filter(|one| one.kind() == DeclarationKind::Impl && one.name() == of.name);
            own.chain(blocks)
                .flat_map(|symbol| {
                    let path = symbol.path();
                    symbol
                        .bases()
                        .map(|base| (path.to_owned(), base.last_segment().to_owned(), base.position))
                })
                .collect()
        };
        let asked = bases
            .into_iter()
            .map(|(path, name, at)| async move { (self.defined_at(&path, position(at), call).await, name) });
        let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        let mut found = Vec::new();
        for (defined, name) in answers {
            match defined {
                Defined::Here(declarations) => {
                    found.extend(declarations.into_iter().map(|one| RelatedType {
                        text: one.heading(),
                        declaration: Some(one),
                        mark: "",
                    }))
                }
                Defined::Outside(place) => found.push(RelatedType {
                    text: format!("{name} (outside: {place})"),
                    declaration: None,
                    mark: "",
                }),
                Defined::Nowhere => found.push(RelatedType { text: name, declaration: None, mark: " ?" }),
                Defined::Unknown(why) => {
                    why.into_iter().for_each(|note| notes.add(note));
                    let declaration = self.only_type(&name);
                    let text = declaration.as_ref().map_or(name, Declaration::heading);
                    found.push(RelatedType { text, declaration, mark: " ?" });
                }
            }
        }
        if of.kind.is_type() && of.kind != DeclarationKind::Interface {
            self.add_implicit(of, &mut found, notes, call).await;
        }
        found
    }

    /// The declarations that define the name at a position.
    async fn defined_at(&self, path: &str, at: Position, call: &CallContext) -> Defined {
        let Ok(path) = self.admit(path) else {
            return Defined::Nowhere;
        };
        let Ok(answer) = self.servers().definition(&path, at, call).await else {
            return Defined::Nowhere;
        };
        if !answer.value.is_empty() {
            let found: Vec<Declaration> =
                answer.value.iter().filter_map(|one| self.declaration_at(one)).collect();
            return if found.is_empty() { Defined::Nowhere } else { Defined::Here(found) };
        }
        let outside = answer.notes.iter().find_map(|note| match note {
            AnswerNote::Outside(place) => Some(place.to_string()),
            _ => None,
        });
        if let Some(place) = outside {
            return Defined::Outside(place);
        }
        if is_served(&answer) && answer.is_answered() {
            return Defined::Nowhere;
        }
        let mut notes = Notes::default();
        notes.add_gaps(&answer);
        if answer.servers.is_empty() {
            notes.add("by name only, no language server for these files");
        }
        Defined::Unknown(notes.into_lines())
    }

    /// The declaration whose name is at a location, else the innermost one around it.
    fn declaration_at(&self, location: &Location) -> Option<Declaration> {
        let view = self.index().view();
        let file = view.file(&self.servers().gate().display(&location.path))?;
        let start = location.range.start;
        let is_named = |symbol: &SymbolRef<'_>| position(symbol.name_position()) == start;
        let found = file.symbols().find(is_named).or_else(|| file.enclosing(start.line + 1))?;
        Some(Declaration::new(found))
    }

    /// The type that a member belongs to.
    fn type_around(&self, declaration: &Declaration) -> Option<Declaration> {
        let view = self.index().view();
        let symbol = view.symbol(declaration.id).filter(|symbol| !symbol.kind().is_type())?;
        symbol.parent().filter(|parent| parent.kind().is_type()).map(Declaration::new)
    }

    /// The type with a name, if there is only one.
    fn only_type(&self, name: &str) -> Option<Declaration> {
        match SymbolChoice::of(&self.index().view(), name, &SymbolFilter::default()) {
            Ok(SymbolChoice::One { symbol, .. }) => Some(symbol.main().clone()),
            _ => None,
        }
    }

    /// The callables with a name, unconfirmed.
    fn by_name(&self, name: &str) -> Vec<Neighbour> {
        let declaration = self.only_type(name).filter(|one| !one.kind.is_value());
        let shown = declaration.map(|one| Neighbour {
            text: format!("{} ?", one.heading()),
            order: (one.path.clone(), one.range.first_line),
            declaration: Some(one),
        });
        shown.into_iter().collect()
    }
}

/// Whether a server for these files is available.
fn is_served<T>(answer: &LspAnswer<T>) -> bool {
    let is_available = |server: &ServerId| {
        let mut gaps = answer.gaps.iter().filter(|gap| gap.server == *server);
        !gaps.any(|gap| matches!(gap.why, GapReason::Unavailable(_)))
    };
    answer.servers.iter().any(is_available)
}

/// The direction of a step between types.
#[derive(Debug, Clone, Copy)]
enum Step {
    Up,
    Down,
}

/// What defines a name.
enum Defined {
    Here(Vec<Declaration>),
    Outside(String),
    Nowhere,
    /// No server answered, for these reasons.
    Unknown(Vec<String>),
}

/// A type above or below another one.
struct RelatedType {
    text: String,
    declaration: Option<Declaration>,
    /// `?` if no server confirmed it.
    mark: &'static str,
}

impl RelatedType {
    fn shown(self) -> Neighbour {
        let order = self.declaration.as_ref().map(|one| (one.path.clone(), one.range.first_line));
        let order = order.unwrap_or_else(|| (self.text.clone(), 0));
        Neighbour { text: format!("{}{}", self.text, self.mark), declaration: self.declaration, order }
    }
}

/// The lines of a tree by the numbers of their branches.
#[derive(Default)]
struct Tree {
    lines: BTreeMap<Vec<usize>, String>,
    seen: BTreeSet<(String, u32)>,
    is_cut: bool,
}

impl Tree {
    fn answer(&self, root: &Declaration, direction: Direction) -> Answer {
        let heading = match self.lines.len() {
            0 => format!("{}: no {}s", root.heading(), direction.word()),
            many => format!("{}: {}", root.heading(), count(many, direction.word())),
        };
        // Types below a class are classes: the heading says it once.
        let kind = match direction {
            Direction::Subtypes | Direction::Supertypes => format!("{} ", root.kind),
            Direction::Callers | Direction::Callees => String::new(),
        };
        let to_depth = |depth: usize| {
            let shown = self.lines.iter().filter(|(path, _)| path.len() <= depth);
            let lines = shown.map(|(path, text)| {
                let text = text.strip_prefix(&kind).unwrap_or(text);
                Line::item(format!("{:indent$}{text}", "", indent = 2 * path.len()), text)
            });
            View::new(std::iter::once(Line::heading(&heading)).chain(lines).collect())
        };
        let deepest = self.lines.keys().map(Vec::len).max().unwrap_or(0);
        let mut views = vec![to_depth(deepest)];
        for depth in (1..deepest).rev() {
            views.push(to_depth(depth).with_hint(format!("cut at depth {depth}; use max_bytes")));
        }
        Answer::new(views).continued_by(Continuation::Narrow("depth or max_bytes"))
    }
}

/// Identifies a declaration while the tree is built.
fn key(declaration: &Declaration) -> (String, u32) {
    (declaration.path.clone(), declaration.name_at.start)
}

fn position(at: NamePosition) -> Position {
    Position::new(at.line.saturating_sub(1), at.column)
}

/// The function or method that a declaration is or is inside of; else the declaration itself.
fn caller_of(symbol: SymbolRef<'_>) -> Option<SymbolRef<'_>> {
    let around = std::iter::successors(Some(symbol), |symbol| symbol.parent());
    around.clone().find(|one| one.kind().is_callable()).or(Some(symbol))
}

/// The names that a declaration calls, each at its first place.
fn called_names(lines: &LineIndex, declaration: &Declaration, bare_calls: bool) -> Vec<(String, Position)> {
    let text = lines.text();
    let from = Position::new(declaration.range.first_line.saturating_sub(1), 0);
    let to = Position::new(declaration.range.last_line, 0);
    let start = lines.offset_clamped(from, Encoding::Utf16);
    let end = lines.offset_clamped(to, Encoding::Utf16);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut at = start;
    for word in text[start..end].split_inclusive(|c: char| !is_part(c)) {
        let name = word.trim_end_matches(|c: char| !is_part(c));
        let begins = name.chars().next().is_some_and(|c| !c.is_numeric());
        let is_own = at == declaration.name_at.start as usize;
        let role = ReferenceRole::of(text, at, at + name.len());
        let role = if bare_calls { role.or_call() } else { role };
        if begins && !is_own && role == ReferenceRole::Call {
            // One name may mean several methods, by what is before it.
            let receiver = text[..at].rsplit(|c: char| !is_part(c) && c != '.').next().unwrap_or_default();
            if seen.insert((receiver.to_owned(), name.to_owned())) {
                found.push((name.to_owned(), lines.position_clamped(at, Encoding::Utf16)));
            }
        }
        at += word.len();
    }
    found
}
