//! `find`: where a symbol is declared, with its source if there is one match, else the ranked matches with signatures.

use serde::{Deserialize, Serialize};
use tenon_contract::position::LineIndex;
use tenon_index::{DeclarationKind, SymbolFilter, SymbolRef, View as IndexView};

use super::answer::{Answer, Continuation, Line, View};
use super::{ExploreError, Explorer, Notes, allowed, source};
use crate::symbol_choice::{ChosenSymbol, Declaration, MAX_CANDIDATES, SymbolChoice};

/// The arguments of `find`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Find {
    pub name: String,
    pub kind: Option<String>,
    pub path: Option<String>,
    #[serde(default)]
    pub body: Body,
    pub max_bytes: Option<usize>,
}

/// Whether to show the source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// Of one match.
    #[default]
    Auto,
    Yes,
    No,
}

/// A symbol with its members, for the view without bodies.
struct Outlined {
    symbol: ChosenSymbol,
    members: Vec<String>,
}

impl Explorer {
    pub(super) async fn find(
        &self,
        input: Find,
        view: &IndexView,
        notes: Notes,
    ) -> Result<String, ExploreError> {
        let Find { name, kind, path, body, max_bytes } = input;
        let filter = self.filter(kind.as_deref(), path.as_deref())?;
        let choice = SymbolChoice::of(view, &name, &filter)?;
        let (shown, listed, total) = match choice {
            SymbolChoice::None { nearest } => {
                return Err(match self.first_match(&name)? {
                    Some(other) if !filter.kinds.is_empty() || filter.path.is_some() => {
                        ExploreError::FilteredOut { name, other: other.heading() }
                    }
                    _ => ExploreError::NoSymbol { name, nearest },
                });
            }
            SymbolChoice::One { symbol, others, total } => (vec![symbol], others, total),
            SymbolChoice::Several { candidates, total } => match body {
                Body::Yes => (candidates, Vec::new(), total),
                Body::Auto | Body::No => (Vec::new(), candidates, total),
            },
        };
        let (shown, listed) = match body {
            Body::No => (Vec::new(), shown.into_iter().chain(listed).take(MAX_CANDIDATES).collect()),
            Body::Auto | Body::Yes => (shown, listed),
        };
        let shown: Vec<Outlined> =
            shown.into_iter().map(|symbol| Outlined { members: members(view, &symbol), symbol }).collect();
        let mut sources = Vec::new();
        for outlined in &shown {
            let (_, lines) = self.read(&outlined.symbol.main().path).await?;
            sources.push(lines);
        }
        let rest = list(&listed, total - shown.len(), !shown.is_empty());
        let whole = shown.iter().zip(&sources).flat_map(|(one, lines)| with_source(&one.symbol, lines));
        let outlines = shown.iter().flat_map(without_bodies);
        let signatures = shown.iter().flat_map(|one| one.symbol.declarations.iter().map(item));
        let views = vec![
            View::new(whole.chain(rest.clone()).collect()),
            View::new(outlines.chain(rest.clone()).collect())
                .with_hint("bodies left out; find a member, or use max_bytes"),
            View::new(signatures.chain(rest).collect())
                .with_hint("members left out; use outline, or max_bytes"),
        ];
        let views = if shown.is_empty() { views.into_iter().take(1).collect() } else { views };
        let answer = Answer::new(views).with_notes(notes.into_lines());
        Ok(answer.continued_by(Continuation::Narrow("kind, path or max_bytes")).fit(allowed(max_bytes)))
    }

    /// The best match without a filter.
    fn first_match(&self, name: &str) -> Result<Option<Declaration>, ExploreError> {
        Ok(match SymbolChoice::of(&self.index().view(), name, &SymbolFilter::default())? {
            SymbolChoice::None { .. } => None,
            SymbolChoice::One { symbol, .. } => Some(symbol.main().clone()),
            SymbolChoice::Several { candidates, .. } => {
                candidates.first().map(|symbol| symbol.main().clone())
            }
        })
    }

    /// The filter for `kind` and `path` arguments.
    pub(super) fn filter(
        &self,
        kind: Option<&str>,
        path: Option<&str>,
    ) -> Result<SymbolFilter, ExploreError> {
        let unknown = |kind: &str| ExploreError::Arguments(format!("unknown kind `{kind}`"));
        let kinds = kind.map(|kind| DeclarationKind::parse(kind).ok_or_else(|| unknown(kind))).transpose()?;
        let path = path.map(|path| self.path_filter(path)).transpose()?;
        Ok(SymbolFilter { kinds: kinds.into_iter().collect(), path })
    }
}

fn item(declaration: &Declaration) -> Line {
    Line::item(declaration.line(), declaration.place())
}

/// The other matches, in one line each.
fn list(symbols: &[ChosenSymbol], total: usize, has_source: bool) -> Vec<Line> {
    let mut lines: Vec<Line> =
        symbols.iter().take(MAX_CANDIDATES).map(|symbol| item(symbol.main())).collect();
    if lines.is_empty() {
        return lines;
    }
    if has_source {
        lines.insert(0, Line::heading(format!("{total} more:")));
    } else if total > 1 {
        lines.insert(0, Line::heading(format!("{total} matches")));
    }
    if total > symbols.len().min(MAX_CANDIDATES) {
        let left = total - symbols.len().min(MAX_CANDIDATES);
        lines.push(Line::heading(format!("{left} not listed; narrow with kind, path or a longer name")));
    }
    lines
}

fn with_source(symbol: &ChosenSymbol, lines: &LineIndex) -> Vec<Line> {
    let mut shown = Vec::new();
    for declaration in &symbol.declarations {
        shown.push(Line::item(declaration.heading(), declaration.place()));
        shown.extend(source::lines_of(lines, declaration.range).into_iter().map(Line::heading));
    }
    shown
}

fn without_bodies(outlined: &Outlined) -> Vec<Line> {
    let mut lines: Vec<Line> = outlined.symbol.declarations.iter().map(item).collect();
    lines.extend(outlined.members.iter().map(Line::heading));
    lines
}

/// The members of a type, one line each, with their own members below them.
fn members(view: &IndexView, symbol: &ChosenSymbol) -> Vec<String> {
    let mut lines = Vec::new();
    for declaration in &symbol.declarations {
        if let Some(found) = view.symbol(declaration.id) {
            add_members(found, 1, &mut lines);
        }
    }
    lines
}

fn add_members(symbol: SymbolRef<'_>, depth: usize, lines: &mut Vec<String>) {
    // Functions inside functions are details of the body.
    if symbol.kind().is_callable() {
        return;
    }
    for child in symbol.children() {
        lines.push(source::outline_line(child, depth));
        add_members(child, depth + 1, lines);
    }
}
