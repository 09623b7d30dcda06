//! Finds declarations by name: the best tier that has matches, ranked.

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::name_table::without_sigil;
use crate::symbol_query::QueryTarget;
use crate::{DeclarationKind, IndexedFile, PathFilter, SymbolQuery, SymbolRef, View};

/// More matches are counted, not listed.
const MAX_LISTED: usize = 1000;

/// Waking a thread costs as much as looking at the names of so many files.
const FILES_PER_TASK: usize = 2000;

/// Restricts a question.
#[derive(Clone, Debug, Default)]
pub struct SymbolFilter {
    /// Empty: all but [`DeclarationKind::Impl`].
    pub kinds: Vec<DeclarationKind>,
    pub path: Option<PathFilter>,
}

impl SymbolFilter {
    fn admits(&self, symbol: SymbolRef<'_>) -> bool {
        let kind = symbol.kind();
        let kind_fits = match self.kinds.as_slice() {
            [] => kind != DeclarationKind::Impl,
            kinds => kinds.contains(&kind),
        };
        kind_fits && self.admits_file(symbol.file())
    }

    fn admits_file(&self, file: &IndexedFile) -> bool {
        self.path.as_ref().is_none_or(|path| path.matches(file.path()))
    }
}

/// How well the matches fit the question. The best tier with matches is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchTier {
    Exact,
    /// Differs in upper and lower case.
    AnyCase,
    /// The name starts so, in any case.
    Prefix,
    /// The words of the question are words of the name: `resolverMatch` and `get_resolver_match`.
    Subword,
}

/// The matches of the best tier, ranked: types and callables before properties before values; source before tests before
/// generated and vendored files; shorter paths first (fewer folders, then fewer bytes); then by path and line.
#[derive(Clone, Debug)]
pub struct Matches<'v> {
    pub tier: MatchTier,
    /// At most 1,000.
    pub symbols: Vec<SymbolRef<'v>>,
    pub total: usize,
}

impl<'v> Matches<'v> {
    /// The matches with declarations of one name path in one file together, such as overloads. In ranked order, each
    /// group in source order.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<SymbolRef<'v>>> {
        let mut groups: Vec<(String, Vec<SymbolRef<'v>>)> = Vec::new();
        for symbol in &self.symbols {
            let name_path = symbol.name_path();
            let same = |(known, group): &&mut (String, Vec<SymbolRef<'v>>)| {
                group[0].id().file == symbol.id().file && *known == name_path
            };
            match groups.iter_mut().find(same) {
                Some((_, group)) => group.push(*symbol),
                None => groups.push((name_path, vec![*symbol])),
            }
        }
        let sorted = |(_, mut group): (String, Vec<SymbolRef<'v>>)| {
            group.sort_by_key(|symbol| symbol.id());
            group
        };
        groups.into_iter().map(sorted).collect()
    }
}

pub(crate) fn find<'v>(view: &'v View, query: &SymbolQuery, filter: &SymbolFilter) -> Matches<'v> {
    let segments = match &query.target {
        QueryTarget::Line(line) => return at_line(view, query, *line, filter),
        QueryTarget::Name(segments) => segments,
    };
    let wanted = |symbol: &SymbolRef<'v>| {
        filter.admits(*symbol) && query.path.as_ref().is_none_or(|path| ends_with_path(symbol.path(), path))
    };
    let undivided = [query.undivided_name().to_owned()];
    for tier in [MatchTier::Exact, MatchTier::AnyCase, MatchTier::Prefix, MatchTier::Subword] {
        let mut readings = vec![NameMatch::new(tier, segments, false)];
        if segments.len() > 1 {
            // Containers that are not declarations may be the folders and the file: `django.db.models.QuerySet`.
            readings.push(NameMatch::new(tier, segments, true));
            // Some names contain separators: `install::run` in Bash.
            readings.push(NameMatch::new(tier, &undivided, false));
        }
        for reading in readings {
            let found = reading.candidates(view, wanted);
            if !found.is_empty() {
                return rank(tier, found);
            }
        }
    }
    Matches { tier: MatchTier::Subword, symbols: Vec::new(), total: 0 }
}

fn at_line<'v>(view: &'v View, query: &SymbolQuery, line: u32, filter: &SymbolFilter) -> Matches<'v> {
    let path = query.path.as_deref().unwrap_or_default();
    let files = view.files().filter(|file| ends_with_path(file.path(), path) && filter.admits_file(file));
    let kind = |symbol: &SymbolRef<'_>| filter.kinds.is_empty() || filter.kinds.contains(&symbol.kind());
    rank(MatchTier::Exact, files.filter_map(|file| file.enclosing(line)).filter(kind).collect())
}

fn rank(tier: MatchTier, mut symbols: Vec<SymbolRef<'_>>) -> Matches<'_> {
    let total = symbols.len();
    if total > MAX_LISTED {
        symbols.select_nth_unstable_by(MAX_LISTED, by_rank);
        symbols.truncate(MAX_LISTED);
    }
    symbols.sort_unstable_by(by_rank);
    Matches { tier, symbols, total }
}

fn by_rank(a: &SymbolRef<'_>, b: &SymbolRef<'_>) -> Ordering {
    let key = |symbol: &SymbolRef<'_>| {
        let path = symbol.path();
        let folders = path.bytes().filter(|byte| *byte == b'/').count();
        (symbol.kind().rank(), symbol.file().class(), folders, path.len())
    };
    let place = |symbol: &SymbolRef<'_>| (symbol.range().start, symbol.id().index);
    key(a).cmp(&key(b)).then_with(|| a.path().cmp(b.path())).then_with(|| place(a).cmp(&place(b)))
}

/// Whether `path` is `end` or ends in it at a folder boundary.
pub(crate) fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|folders| folders.is_empty() || folders.ends_with('/'))
}

struct NameMatch<'q> {
    tier: MatchTier,
    segments: &'q [String],
    /// Of the last segment, in lower case.
    letters: Vec<char>,
    /// Containers may be folders and files.
    modules: bool,
}

impl<'q> NameMatch<'q> {
    fn new(tier: MatchTier, segments: &'q [String], modules: bool) -> Self {
        let letters = segments.last().map(|name| letters(name).collect()).unwrap_or_default();
        Self { tier, segments, letters, modules }
    }

    fn candidates<'v>(
        &self,
        view: &'v View,
        wanted: impl Fn(&SymbolRef<'v>) -> bool + Sync,
    ) -> Vec<SymbolRef<'v>> {
        let fits = |symbol: &SymbolRef<'v>| self.fits(*symbol) && wanted(symbol);
        let Some(name) = self.segments.last() else { return Vec::new() };
        match self.tier {
            MatchTier::Exact | MatchTier::AnyCase => {
                let ids = view.state.names.candidates(name);
                ids.filter_map(|id| view.symbol(id)).filter(fits).collect()
            }
            MatchTier::Prefix | MatchTier::Subword => {
                let files = view.state.files.par_iter().with_min_len(FILES_PER_TASK);
                files.flat_map_iter(|file| file.symbols().filter(&fits)).collect()
            }
        }
    }

    fn fits(&self, symbol: SymbolRef<'_>) -> bool {
        let mut wanted = self.segments.iter().rev();
        let mut given = symbol.segments_upward();
        let name_fits =
            wanted.next().zip(given.next()).is_some_and(|(wanted, given)| self.name_fits(wanted, given));
        if !name_fits {
            return false;
        }
        let mut wanted = wanted.peekable();
        while let Some(segment) = wanted.peek() {
            match given.next() {
                Some(container) if self.container_fits(segment, container) => {
                    wanted.next();
                }
                None if self.modules => return self.modules_fit(wanted, symbol.path()),
                _ => return false,
            }
        }
        !self.modules
    }

    /// The rest of the containers, the innermost first, are folders and the file, in this order. Some may be left out.
    fn modules_fit<'s>(&self, wanted: impl Iterator<Item = &'s String>, path: &str) -> bool {
        let stem = path.rfind('.').filter(|dot| !path[*dot..].contains('/')).map_or(path, |dot| &path[..dot]);
        let mut given = stem.rsplit('/');
        wanted.into_iter().all(|segment| given.any(|folder| self.container_fits(segment, folder)))
    }

    fn container_fits(&self, wanted: &str, given: &str) -> bool {
        match self.tier {
            MatchTier::Exact => wanted == given,
            _ => same_in_any_case(wanted, given),
        }
    }

    fn name_fits(&self, wanted: &str, given: &str) -> bool {
        let bare = without_sigil(given);
        match self.tier {
            MatchTier::Exact => wanted == given || wanted == bare,
            MatchTier::AnyCase => same_in_any_case(wanted, given) || same_in_any_case(wanted, bare),
            MatchTier::Prefix => starts_in_any_case(bare, without_sigil(wanted)),
            MatchTier::Subword => has_subwords(bare, &self.letters),
        }
    }
}

fn same_in_any_case(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() { a.eq_ignore_ascii_case(b) } else { lower(a).eq(lower(b)) }
}

fn lower(text: &str) -> impl Iterator<Item = char> + Clone {
    text.chars().flat_map(char::to_lowercase)
}

fn starts_in_any_case(name: &str, start: &str) -> bool {
    match name.get(..start.len()) {
        Some(same_length) if start.is_ascii() => same_length.eq_ignore_ascii_case(start),
        _ => starts_with(lower(name), lower(start)),
    }
}

fn starts_with(mut text: impl Iterator<Item = char>, start: impl Iterator<Item = char>) -> bool {
    start.into_iter().all(|c| text.next() == Some(c))
}

fn letters(text: &str) -> impl Iterator<Item = char> + Clone {
    lower(text).filter(|c| c.is_alphanumeric())
}

/// Whether the letters of `wanted` follow each other in `name` from the start of a word, ignoring `_`.
fn has_subwords(name: &str, wanted: &[char]) -> bool {
    let Some(first) = wanted.first() else { return false };
    let starts =
        |at: &usize| name[*at..].chars().next().is_some_and(|c| c.to_lowercase().next() == Some(*first));
    wanted.len() <= name.len()
        && word_starts(name)
            .filter(starts)
            .any(|at| starts_with(letters(&name[at..]), wanted.iter().copied()))
}

/// `getHTTPResponse_v2` has words at `get`, `HTTP`, `Response` and `v2`.
fn word_starts(name: &str) -> impl Iterator<Item = usize> + '_ {
    let mut before: Option<char> = None;
    name.char_indices().filter_map(move |(at, c)| {
        let next = || name[at + c.len_utf8()..].chars().next();
        let starts = match before {
            None => true,
            Some(before) if !before.is_alphanumeric() => c.is_alphanumeric(),
            Some(before) => {
                c.is_uppercase() && (!before.is_uppercase() || next().is_some_and(char::is_lowercase))
            }
        };
        before = Some(c);
        starts.then_some(at)
    })
}

pub(crate) fn nearest_names<'v>(view: &'v View, name: &str, at_most: usize) -> Vec<SymbolRef<'v>> {
    /// A longer name is not a slip of the finger.
    const MAX_CHARS: usize = 64;
    let wanted: Vec<char> = lower(without_sigil(name)).take(MAX_CHARS).collect();
    let limit = (wanted.len() / 3).clamp(1, 4);
    let distance = |symbol: SymbolRef<'v>| -> Option<(usize, &'v str)> {
        let given = without_sigil(symbol.name());
        if given.len() > 4 * MAX_CHARS || given.chars().count().abs_diff(wanted.len()) > limit {
            return None;
        }
        let given: Vec<char> = lower(given).collect();
        let distance = strsim::generic_damerau_levenshtein(&wanted, &given);
        (distance <= limit && symbol.kind() != DeclarationKind::Impl).then_some((distance, symbol.name()))
    };
    let files = view.state.files.par_iter().with_min_len(FILES_PER_TASK);
    let mut near: Vec<(usize, &str)> =
        files.flat_map_iter(|file| file.symbols().filter_map(distance)).collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(at_most);
    let best = |(_, name): &(usize, &str)| {
        let same = view.state.names.candidates(name).filter_map(|id| view.symbol(id));
        same.filter(|symbol| symbol.name() == *name && symbol.kind() != DeclarationKind::Impl).min_by(by_rank)
    };
    near.iter().filter_map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subwords_start_at_words() {
        for (name, wanted, found) in [
            ("get_resolver_match", "resolverMatch", true),
            ("ResolverMatch", "match", true),
            ("ResolverMatch", "atch", false),
            ("getHTTPResponse", "response", true),
            ("getHTTPResponse", "http_resp", true),
            ("getHTTPResponse", "TPResponse", false),
            ("MAX_SIZE", "size", true),
            ("abc", "_", false),
        ] {
            let letters: Vec<char> = letters(wanted).collect();
            assert_eq!(has_subwords(name, &letters), found, "{name} {wanted}");
        }
    }

    #[test]
    fn path_ends_at_a_folder() {
        assert!(ends_with_path("a/query.py", "query.py"));
        assert!(ends_with_path("query.py", "query.py"));
        assert!(!ends_with_path("a/subquery.py", "query.py"));
    }
}
