//! Ranks passages for a question with BM25F.
//!
//! The score of a passage is the sum over the words of the question of `idf · tf · (K + 1) / (tf + K)`, where `tf` is the
//! weighted sum of the counts in all fields, each divided by the relative length of the field. A word that means nearly the
//! same counts in place of the word of the question, with less weight; the better of both is taken. The sum is multiplied
//! by the root of the share of the question that occurs, and by the weights of the file (tests, history and generated
//! files count less) and of the declaration. Equal scores are ordered by path, then line.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tenon_index::DeclarationKind;

use super::closeness::{Closeness, PairedWord};
use super::excerpt::ShownTerms;
use super::passage_state::LiveSegment;
use super::segment::{Counts, FIELDS, Lengths, NAME, PassageEntry};
use super::synonyms::synonyms;
use super::text_format::PassageKind;
use super::words::{Term, for_each_term, question_weight};

/// How fast repetitions of a term stop to count.
const K: f32 = 1.6;

/// How much a term counts in each field: title, heading, name, lead, prose, code.
const WEIGHTS: [f32; FIELDS] = [0.7, 1.2, 4.0, 1.0, 1.0, 0.5];

/// How much the length of each field matters.
const LENGTH_WEIGHTS: [f32; FIELDS] = [0.3, 0.5, 0.5, 0.7, 0.75, 0.75];

/// A shorter field counts as this share of the field's mean length: a bare heading is not a good answer.
const SHORTEST: f32 = 0.5;

/// How much a word counts that means nearly the same as one of the question.
const SYNONYM_WEIGHT: f32 = 0.4;

/// How much a word of the question that occurs nowhere matters for the share that occurs.
const ABSENT_WEIGHT: f32 = 0.5;

/// How much more an identifier counts for what has that name.
const WHOLE_NAME: f32 = 2.0;

/// A question that says `function` or `class` wants such a declaration, and other code less.
const WANTED_WEIGHT: f32 = 1.5;
const OTHER_CODE_WEIGHT: f32 = 0.7;

/// Declarations that are tests, and those that are private by their name, count less.
const TEST_WEIGHT: f32 = 0.5;
const PRIVATE_WEIGHT: f32 = 0.85;

/// The most words of a question that count; the rarest are kept.
const MAX_TERMS: usize = 32;

/// The most distinct words of a question that are looked up.
const MAX_WORDS: usize = 1000;

/// What a question asks for by a word such as `function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WantedCode {
    Callable,
    Type,
}

impl WantedCode {
    fn of_word(word: &str) -> Option<Self> {
        match word {
            "function" | "macro" | "method" | "procedure" => Some(Self::Callable),
            "class" | "enum" | "interface" | "struct" | "trait" => Some(Self::Type),
            _ => None,
        }
    }

    fn includes(self, kind: DeclarationKind) -> bool {
        match self {
            Self::Callable => kind.is_callable() || kind == DeclarationKind::Macro,
            Self::Type => kind.is_type() || kind == DeclarationKind::TypeAlias,
        }
    }
}

/// A word of a question.
#[derive(Clone, Debug)]
pub(crate) struct QueryTerm {
    pub term: Term,
    pub word: String,
    /// A whole identifier: what has that name is meant.
    is_whole: bool,
    weight: f32,
}

/// A question.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryTerms {
    /// In the order of the question, each once.
    pub terms: Vec<QueryTerm>,
    wanted: Option<WantedCode>,
}

impl QueryTerms {
    pub(crate) fn new(query: &str) -> Self {
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut seen: BTreeSet<Term> = BTreeSet::new();
        let mut wanted = None;
        for_each_term(query, |found| {
            let word = found.word.to_lowercase();
            let kind = WantedCode::of_word(&word);
            wanted = wanted.or(kind);
            let weight = if kind.is_some() { 0.0 } else { question_weight(&word) };
            if seen.len() < MAX_WORDS && seen.insert(found.term) {
                terms.push(QueryTerm { term: found.term, word, is_whole: found.is_whole, weight });
            }
        });
        if terms.iter().any(|term| term.weight > 0.0) {
            terms.retain(|term| term.weight > 0.0);
        } else {
            terms.iter_mut().for_each(|term| term.weight = 1.0);
        }
        Self { terms, wanted }
    }

    fn weight_of(&self, entry: &PassageEntry) -> f32 {
        let wanted = match (self.wanted, entry.declares) {
            (Some(wanted), Some(kind)) if wanted.includes(kind) => WANTED_WEIGHT,
            (Some(_), _) if entry.kind == PassageKind::Code => OTHER_CODE_WEIGHT,
            _ => 1.0,
        };
        let name = || entry.place.rsplit(['.', ' ', ':']).next().unwrap_or_default();
        let is_private = entry.declares.is_some() && name().starts_with('_');
        if is_private { wanted * PRIVATE_WEIGHT } else { wanted }
    }
}

/// A word that a passage has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TermMatch {
    /// Which word of the question.
    pub number: usize,
    /// The word that is there instead.
    pub synonym: Option<&'static str>,
    pub counts: Counts,
}

/// A passage that matches.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    pub score: f32,
    pub segment: usize,
    pub passage: usize,
    pub matches: Vec<TermMatch>,
}

/// A passage that matches, before it is known to be one of the best.
#[derive(Clone, Copy)]
struct Place {
    score: f32,
    segment: u32,
    passage: u32,
}

impl Place {
    /// By path, then line.
    fn order(self, other: Self, segments: &[&LiveSegment]) -> Ordering {
        let key = |place: Self| {
            let segment = &segments[place.segment as usize].data;
            let entry = &segment.passages[place.passage as usize];
            (&segment.files[entry.file as usize].path, entry.start)
        };
        key(self).cmp(&key(other))
    }
}

/// The best passages for a question.
#[derive(Default)]
pub(crate) struct Ranking {
    pub best: Vec<Ranked>,
    /// How many passages match.
    pub matching: usize,
    pub terms: ShownTerms,
    pub closeness: Closeness,
}

/// Which passages are wanted.
pub(crate) struct Wanted<'a> {
    pub kinds: &'a [PassageKind],
    pub path: &'a dyn Fn(&str) -> bool,
}

/// A word of the question, or one that means nearly the same, and where it is.
struct Variant {
    term: Term,
    number: usize,
    synonym: Option<&'static str>,
    is_whole: bool,
    /// The weight of the word and its rarity.
    value: f32,
    /// By segment: passages with counts.
    postings: Vec<Vec<(u32, Counts)>>,
    frequency: usize,
}

/// The best passages, at most `limit`.
pub(crate) fn rank(
    segments: &[&LiveSegment],
    query: &QueryTerms,
    wanted: &Wanted<'_>,
    limit: usize,
) -> Ranking {
    let statistics = Statistics::of(segments);
    let words = looked_up(segments, query, &statistics);
    let values: Vec<f32> = words.iter().map(|variants| word_value(variants)).collect();
    let all: f32 = values.iter().sum();
    let mut found: Vec<Place> = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let scores = segment_scores(number, segment, &words, &values, &statistics);
        let mut allowed: Vec<Option<bool>> = vec![None; segment.data.files.len()];
        for (passage, (score, covered)) in scores.into_iter().enumerate() {
            if score <= 0.0 {
                continue;
            }
            let entry = &segment.data.passages[passage];
            let file = &segment.data.files[entry.file as usize];
            let is_wanted = wanted.kinds.is_empty() || wanted.kinds.contains(&entry.kind);
            if !is_wanted || !*allowed[entry.file as usize].get_or_insert_with(|| (wanted.path)(&file.path)) {
                continue;
            }
            let test = if entry.is_test && file.weight >= 1.0 { TEST_WEIGHT } else { 1.0 };
            let score = score * (covered / all).sqrt() * file.weight * query.weight_of(entry) * test;
            found.push(Place { score, segment: number as u32, passage: passage as u32 });
        }
    }
    let matching = found.len();
    let order = |a: &Place, b: &Place| b.score.total_cmp(&a.score).then_with(|| a.order(*b, segments));
    if found.len() > limit {
        found.select_nth_unstable_by(limit, order);
        found.truncate(limit);
    }
    found.sort_unstable_by(order);
    let ranked = |place: &Place| Ranked {
        score: place.score,
        segment: place.segment as usize,
        passage: place.passage as usize,
        matches: words.iter().filter_map(|variants| match_of(variants, *place)).collect(),
    };
    let best = found.iter().map(ranked).collect();
    let variants = || words.iter().flatten();
    let text = |one: &Variant| one.synonym.unwrap_or(&query.terms[one.number].word);
    let terms = ShownTerms::new(variants().map(|one| (one.term, text(one), one.value)));
    let paired = |one: &Variant| PairedWord { term: one.term, number: one.number, weight: one.value };
    let closeness = Closeness::new(variants().map(|one| (paired(one), text(one))));
    Ranking { best, matching, terms, closeness }
}

/// For each word of the question that counts: itself, then those that mean nearly the same.
fn looked_up(segments: &[&LiveSegment], query: &QueryTerms, statistics: &Statistics) -> Vec<Vec<Variant>> {
    let variant = |number: usize, term: Term, synonym: Option<&'static str>| {
        let postings: Vec<_> = segments.iter().map(|segment| live_postings(segment, term)).collect();
        let frequency = postings.iter().map(Vec::len).sum();
        let own = &query.terms[number];
        let weight = own.weight * if synonym.is_some() { SYNONYM_WEIGHT } else { 1.0 };
        Variant {
            term,
            number,
            synonym,
            is_whole: synonym.is_none() && own.is_whole,
            value: weight * statistics.idf(frequency),
            postings,
            frequency,
        }
    };
    let mut words: Vec<Vec<Variant>> =
        query.terms.iter().enumerate().map(|(number, one)| vec![variant(number, one.term, None)]).collect();
    if words.len() > MAX_TERMS {
        words.retain(|word| word[0].frequency > 0);
        words.sort_by_key(|word| (word[0].frequency, word[0].number));
        words.truncate(MAX_TERMS);
        words.sort_by_key(|word| word[0].number);
        // So many words say enough.
        return words;
    }
    for word in &mut words {
        for (term, synonym) in synonyms(word[0].term) {
            if query.terms.iter().all(|one| one.term != *term) {
                word.push(variant(word[0].number, *term, Some(synonym)));
            }
        }
        word.retain(|one| one.synonym.is_none() || one.frequency > 0);
    }
    words
}

/// How much a word of the question can add to the share that occurs.
fn word_value(variants: &[Variant]) -> f32 {
    let own = &variants[0];
    if own.frequency > 0 {
        return own.value;
    }
    variants[1..].iter().map(|one| one.value).fold(own.value * ABSENT_WEIGHT, f32::max)
}

/// For each passage the sum over its words, and which share of the question it has.
fn segment_scores(
    number: usize,
    segment: &LiveSegment,
    words: &[Vec<Variant>],
    values: &[f32],
    statistics: &Statistics,
) -> Vec<(f32, f32)> {
    let mut scores = vec![(0.0_f32, 0.0_f32); segment.data.passages.len()];
    let mut best = vec![(0.0_f32, 0.0_f32); segment.data.passages.len()];
    let mut touched: Vec<u32> = Vec::new();
    for (variants, word_value) in words.iter().zip(values) {
        for variant in variants {
            for (passage, counts) in &variant.postings[number] {
                let place = *passage as usize;
                let tf = statistics.weighted(*counts, segment.data.lengths[place]);
                let mut score = variant.value * tf * (K + 1.0) / (tf + K);
                if variant.is_whole && counts[NAME] > 0 {
                    score += variant.value * WHOLE_NAME;
                }
                let entry = &mut best[place];
                if entry.0 == 0.0 {
                    touched.push(*passage);
                }
                *entry = (entry.0.max(score), entry.1.max(variant.value.min(*word_value)));
            }
        }
        for passage in touched.drain(..) {
            let (score, covered) = std::mem::take(&mut best[passage as usize]);
            scores[passage as usize].0 += score;
            scores[passage as usize].1 += covered;
        }
    }
    scores
}

fn match_of(variants: &[Variant], place: Place) -> Option<TermMatch> {
    variants.iter().find_map(|variant| {
        let postings = &variant.postings[place.segment as usize];
        let at = postings.binary_search_by_key(&place.passage, |(passage, _)| *passage).ok()?;
        Some(TermMatch { number: variant.number, synonym: variant.synonym, counts: postings[at].1 })
    })
}

fn live_postings(segment: &LiveSegment, term: Term) -> Vec<(u32, Counts)> {
    let passages = segment.data.passages.len();
    let postings = segment.data.postings(term).take_while(|(passage, _)| (*passage as usize) < passages);
    postings.filter(|(passage, _)| !segment.dead_at[*passage as usize]).collect()
}

/// Number of passages, and mean length of each field where it is not empty.
struct Statistics {
    passages: f32,
    mean: [f32; FIELDS],
}

impl Statistics {
    fn of(segments: &[&LiveSegment]) -> Self {
        let passages: usize = segments.iter().map(|segment| segment.live_passages()).sum();
        let mut mean = [1.0; FIELDS];
        for (field, mean) in mean.iter_mut().enumerate() {
            let words: u64 = segments.iter().map(|segment| segment.field_words[field]).sum();
            let filled: u64 = segments.iter().map(|segment| segment.filled_fields[field]).sum();
            *mean = (words as f32 / filled.max(1) as f32).max(1.0);
        }
        Self { passages: passages as f32, mean }
    }

    fn idf(&self, frequency: usize) -> f32 {
        let frequency = frequency as f32;
        (1.0 + (self.passages - frequency + 0.5) / (frequency + 0.5)).ln()
    }

    fn weighted(&self, counts: Counts, lengths: Lengths) -> f32 {
        let mut tf = 0.0;
        for field in (0..FIELDS).filter(|field| counts[*field] > 0) {
            let relative = (f32::from(lengths[field]) / self.mean[field]).max(SHORTEST);
            let length = 1.0 - LENGTH_WEIGHTS[field] + LENGTH_WEIGHTS[field] * relative;
            tf += WEIGHTS[field] * f32::from(counts[field]) / length;
        }
        tf
    }
}
