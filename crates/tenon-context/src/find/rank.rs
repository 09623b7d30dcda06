//! Ranks passages for a query with BM25F.
//!
//! The score of a passage is the sum over the terms of the query of `idf · tf · (K + 1) / (tf + K)`, where `tf` is the
//! weighted sum of the counts in title, heading, name and body, each divided by the relative length of the field. The sum
//! is multiplied by the root of the share of the query that occurs, and by the weight of the file (tests, history and
//! generated files count less). Equal scores are ordered by path, then line.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::passage_index::LiveSegment;
use super::segment::{BODY, Counts, FIELDS, Lengths, NAME};
use super::text_format::PassageKind;
use super::words::{Term, for_each_term, is_stop_word};

/// How fast repetitions of a term stop to count.
const K: f32 = 1.2;

/// How much a term counts in each field: title, heading, name, body.
const WEIGHTS: [f32; FIELDS] = [0.7, 1.6, 3.0, 1.0];

/// How much the length of each field matters.
const LENGTH_WEIGHTS: [f32; FIELDS] = [0.3, 0.5, 0.5, 0.75];

/// Shorter bodies count as this share of the mean length: a bare heading is not a good answer.
const SHORTEST_BODY: f32 = 0.3;

/// Questions that name a kind of declaration want code.
const CODE_WORDS: &[&str] = &["class", "enum", "function", "interface", "macro", "method", "struct", "trait"];
const CODE_WEIGHT: f32 = 1.5;

/// How much more an identifier counts for what has that name.
const WHOLE_NAME: f32 = 2.0;

/// The most terms of a query; the rarest are kept.
const MAX_TERMS: usize = 32;

/// The terms of a question.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryTerms {
    /// In the order of the query, each once, with the word.
    pub terms: Vec<(Term, String)>,
    /// Those of them that are whole identifiers: what has that name is meant.
    whole: BTreeSet<Term>,
    pub wants_code: bool,
}

/// The most distinct words of a query that are looked up.
const MAX_WORDS: usize = 1000;

impl QueryTerms {
    pub(crate) fn new(query: &str) -> Self {
        let mut all: Vec<(Term, String)> = Vec::new();
        let mut seen: BTreeMap<Term, ()> = BTreeMap::new();
        let mut wants_code = false;
        let mut whole = BTreeSet::new();
        for_each_term(query, |found| {
            let word = found.word.to_lowercase();
            if found.is_whole {
                whole.insert(found.term);
            }
            wants_code |= CODE_WORDS.contains(&word.as_str());
            if seen.len() < MAX_WORDS && seen.insert(found.term, ()).is_none() {
                all.push((found.term, word));
            }
        });
        let says = |(_, word): &&(Term, String)| !is_stop_word(word) && !CODE_WORDS.contains(&word.as_str());
        let terms: Vec<(Term, String)> = all.iter().filter(says).cloned().collect();
        Self { terms: if terms.is_empty() { all } else { terms }, whole, wants_code }
    }
}

/// A passage that matches.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    pub score: f32,
    pub segment: usize,
    pub passage: usize,
    /// How often each term of the query occurs.
    pub counts: Vec<(usize, Counts)>,
}

/// Which passages are wanted.
pub(crate) struct Wanted<'a> {
    pub kinds: &'a [PassageKind],
    pub path: &'a dyn Fn(&str) -> bool,
}

/// The passages of a segment with one term.
type TermPostings = Vec<(u32, Counts)>;

/// The best passages, at most `limit`, and how many match.
pub(crate) fn rank(
    segments: &[&LiveSegment],
    query: &QueryTerms,
    wanted: &Wanted<'_>,
    limit: usize,
) -> (Vec<Ranked>, usize) {
    let statistics = Statistics::of(segments);
    let mut found: Vec<(usize, Vec<TermPostings>)> = Vec::new();
    for (number, (term, _)) in query.terms.iter().enumerate() {
        let by_segment: Vec<TermPostings> =
            segments.iter().map(|segment| live_postings(segment, *term)).collect();
        found.push((number, by_segment));
    }
    let frequency = |postings: &[TermPostings]| postings.iter().map(Vec::len).sum::<usize>();
    if found.len() > MAX_TERMS {
        found.sort_by_key(|(number, postings)| (frequency(postings), *number));
        found.retain(|(_, postings)| frequency(postings) > 0);
        found.truncate(MAX_TERMS);
        found.sort_by_key(|(number, _)| *number);
    }
    let idf: Vec<f32> = found.iter().map(|(_, postings)| statistics.idf(frequency(postings))).collect();
    let all: f32 = idf.iter().sum();
    let mut ranked: Vec<Ranked> = Vec::new();
    for (segment_number, segment) in segments.iter().enumerate() {
        let mut scores = vec![(0.0_f32, 0.0_f32); segment.data.passages.len()];
        for ((number, postings), idf) in found.iter().zip(&idf) {
            let is_whole = query.whole.contains(&query.terms[*number].0);
            for (passage, counts) in &postings[segment_number] {
                let place = *passage as usize;
                let tf = statistics.weighted(*counts, segment.data.lengths[place]);
                let entry = &mut scores[place];
                entry.0 += idf * tf * (K + 1.0) / (tf + K);
                if is_whole && counts[NAME] > 0 {
                    entry.0 += idf * WHOLE_NAME;
                }
                entry.1 += idf;
            }
        }
        let mut allowed: Vec<Option<bool>> = vec![None; segment.data.files.len()];
        for (passage, (score, covered)) in
            scores.into_iter().enumerate().filter(|(_, (score, _))| *score > 0.0)
        {
            let entry = &segment.data.passages[passage];
            let file = &segment.data.files[entry.file as usize];
            let is_wanted = wanted.kinds.is_empty() || wanted.kinds.contains(&entry.kind);
            if !is_wanted || !*allowed[entry.file as usize].get_or_insert_with(|| (wanted.path)(&file.path)) {
                continue;
            }
            let kind = if query.wants_code && entry.kind == PassageKind::Code { CODE_WEIGHT } else { 1.0 };
            let test = if entry.is_test && file.weight >= 1.0 { 0.5 } else { 1.0 };
            let score = score * (covered / all).sqrt() * file.weight * kind * test;
            ranked.push(Ranked { score, segment: segment_number, passage, counts: Vec::new() });
        }
    }
    let matching = ranked.len();
    let order =
        |a: &Ranked, b: &Ranked| b.score.total_cmp(&a.score).then_with(|| place_order(segments, a, b));
    if ranked.len() > limit {
        ranked.select_nth_unstable_by(limit, order);
        ranked.truncate(limit);
    }
    ranked.sort_unstable_by(order);
    for one in &mut ranked {
        for (number, postings) in &found {
            let postings = &postings[one.segment];
            if let Ok(at) = postings.binary_search_by_key(&(one.passage as u32), |(passage, _)| *passage) {
                one.counts.push((*number, postings[at].1));
            }
        }
    }
    (ranked, matching)
}

fn place_order(segments: &[&LiveSegment], a: &Ranked, b: &Ranked) -> Ordering {
    let place = |one: &Ranked| {
        let segment = &segments[one.segment].data;
        let entry = &segment.passages[one.passage];
        (&segment.files[entry.file as usize].path, entry.start)
    };
    place(a).cmp(&place(b))
}

fn live_postings(segment: &LiveSegment, term: Term) -> TermPostings {
    let passages = segment.data.passages.len();
    let postings = segment.data.postings(term).take_while(|(passage, _)| (*passage as usize) < passages);
    postings.filter(|(passage, _)| !segment.dead_at[*passage as usize]).collect()
}

/// Number and mean lengths of all passages.
struct Statistics {
    passages: f32,
    mean: [f32; FIELDS],
}

impl Statistics {
    fn of(segments: &[&LiveSegment]) -> Self {
        let mut totals = [0_u64; FIELDS];
        let mut passages = 0_u64;
        for segment in segments {
            for (lengths, _) in segment.data.lengths.iter().zip(&segment.dead_at).filter(|(_, dead)| !**dead)
            {
                passages += 1;
                for (total, length) in totals.iter_mut().zip(lengths) {
                    *total += u64::from(*length);
                }
            }
        }
        let mean = totals.map(|total| (total as f32 / passages.max(1) as f32).max(1.0));
        Self { passages: passages as f32, mean }
    }

    fn idf(&self, frequency: usize) -> f32 {
        let frequency = frequency as f32;
        (1.0 + (self.passages - frequency + 0.5) / (frequency + 0.5)).ln()
    }

    fn weighted(&self, counts: Counts, lengths: Lengths) -> f32 {
        let mut tf = 0.0;
        for field in 0..FIELDS {
            if counts[field] == 0 {
                continue;
            }
            let mut relative = f32::from(lengths[field]) / self.mean[field];
            if field == BODY {
                relative = relative.max(SHORTEST_BODY);
            }
            let length = 1.0 - LENGTH_WEIGHTS[field] + LENGTH_WEIGHTS[field] * relative;
            tf += WEIGHTS[field] * f32::from(counts[field]) / length;
        }
        tf
    }
}
