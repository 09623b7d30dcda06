//! Which declaration a `symbol` argument means: exactly one, or the ranked candidates, or none with the nearest names.
//!
//! Declarations of one name path in one file (overloads, a declaration and its definition) are one symbol. One match is
//! better than another if it is a type or callable and the other a value, or if its file is source and the other a test,
//! generated or vendored. Equally good matches are never guessed between.

use tenon_index::{
    DeclarationKind, FileClass, NamePosition, QueryError, SourceRange, SymbolFilter, SymbolId, SymbolQuery,
    SymbolRef, View,
};

/// The most candidates that are listed.
pub(crate) const MAX_CANDIDATES: usize = 20;
/// The most near names.
const MAX_NEAREST: usize = 5;

/// A declaration, with what answers show of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) id: SymbolId,
    /// Relative to the root.
    pub(crate) path: String,
    pub(crate) kind: DeclarationKind,
    pub(crate) name: String,
    pub(crate) name_path: String,
    pub(crate) signature: String,
    pub(crate) range: SourceRange,
    pub(crate) name_at: NamePosition,
    pub(crate) class: FileClass,
    pub(crate) has_body: bool,
}

impl Declaration {
    pub(crate) fn new(symbol: SymbolRef<'_>) -> Self {
        Self {
            id: symbol.id(),
            path: symbol.path().to_owned(),
            kind: symbol.kind(),
            name: symbol.name().to_owned(),
            name_path: symbol.name_path(),
            signature: symbol.signature().to_owned(),
            range: symbol.range(),
            name_at: symbol.name_position(),
            class: symbol.file().class(),
            has_body: symbol.body().is_some(),
        }
    }

    /// `django/db/models/query.py:1475-1481`.
    pub(crate) fn place(&self) -> String {
        let SourceRange { first_line, last_line, .. } = self.range;
        match first_line == last_line {
            true => format!("{}:{first_line}", self.path),
            false => format!("{}:{first_line}-{last_line}", self.path),
        }
    }

    /// `method QuerySet.filter django/db/models/query.py:1475-1481`.
    pub(crate) fn heading(&self) -> String {
        format!("{} {} {}", self.kind, self.name_path, self.place())
    }

    /// The heading with the signature.
    pub(crate) fn line(&self) -> String {
        match self.signature.is_empty() {
            true => self.heading(),
            false => format!("{}  {}", self.heading(), self.signature),
        }
    }

    /// Lower is better.
    fn quality(&self) -> (u8, FileClass) {
        let kind = match self.kind {
            kind if kind.is_value() => 3,
            DeclarationKind::Property | DeclarationKind::Module | DeclarationKind::Namespace => 2,
            // Often named like its class, which is meant then.
            DeclarationKind::Constructor => 1,
            _ => 0,
        };
        (kind, self.class)
    }
}

/// A symbol: its declarations in one file, in source order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChosenSymbol {
    pub(crate) declarations: Vec<Declaration>,
}

impl ChosenSymbol {
    /// The declaration that answers begin with: the last one, since overloads and declarations come before the definition.
    pub(crate) fn main(&self) -> &Declaration {
        self.declarations.last().expect("a symbol has a declaration")
    }
}

/// What a `symbol` argument means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SymbolChoice {
    /// One symbol is better than all others, which follow ranked.
    One { symbol: ChosenSymbol, others: Vec<ChosenSymbol>, total: usize },
    /// Equally good ones, ranked, and how many there are.
    Several { candidates: Vec<ChosenSymbol>, total: usize },
    /// None, with the nearest names.
    None { nearest: Vec<String> },
}

impl SymbolChoice {
    pub(crate) fn of(view: &View, text: &str, filter: &SymbolFilter) -> Result<Self, QueryError> {
        let query = SymbolQuery::parse(text)?;
        let matches = view.find(&query, filter);
        let groups = matches.groups();
        // Declarations of one symbol count once.
        let total = matches.total - (matches.symbols.len() - groups.len());
        let chosen = |group: Vec<SymbolRef<'_>>| ChosenSymbol {
            declarations: group.into_iter().map(Declaration::new).collect(),
        };
        let quality = |symbol: &ChosenSymbol| symbol.declarations.iter().map(Declaration::quality).min();
        let mut symbols: Vec<ChosenSymbol> = groups.into_iter().map(chosen).collect();
        symbols.sort_by_key(quality);
        let mut symbols = symbols.into_iter();
        let Some(first) = symbols.next() else {
            let name = query.name().unwrap_or_default();
            let nearest = view.nearest_names(name, MAX_NEAREST).into_iter();
            return Ok(Self::None { nearest: nearest.map(SymbolRef::name_path).collect() });
        };
        let mut others: Vec<ChosenSymbol> = symbols.take(MAX_CANDIDATES).collect();
        let best = quality(&first);
        let rivals = others.iter().take_while(|other| quality(other) <= best).count();
        if rivals == 0 {
            return Ok(Self::One { symbol: first, others, total });
        }
        others.insert(0, first);
        let choice = match definition(&others[..=rivals]) {
            Some(found) => Self::One { symbol: others.remove(found), others, total },
            None => {
                others.truncate(MAX_CANDIDATES);
                Self::Several { candidates: others, total }
            }
        };
        Ok(choice)
    }
}

/// The definition, if the others are declarations of the same name path: a header and its source file.
fn definition(candidates: &[ChosenSymbol]) -> Option<usize> {
    let has_body = |symbol: &ChosenSymbol| symbol.declarations.iter().any(|one| one.has_body);
    let name_path = &candidates.first()?.main().name_path;
    let is_same = |symbol: &ChosenSymbol| symbol.main().name_path == *name_path;
    let mut defined = candidates.iter().enumerate().filter(|(_, symbol)| has_body(symbol));
    let (found, _) = defined.next()?;
    (defined.next().is_none() && candidates.iter().all(is_same)).then_some(found)
}
