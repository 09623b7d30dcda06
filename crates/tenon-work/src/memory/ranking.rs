//! Ranked search: one score for both backends, computed here from the texts of candidates.
//!
//! The full-text index only proposes candidates: for each word the newest rows with it, and for words with more rows than
//! that, the newest rows with all of these words, and with all of them but one. The score is BM25 over title and body, where
//! a word of the title counts as several of the body and newer entries count a little more. A word also matches its other
//! forms (`crash`, `crashes`) and longer words, for less.
//!
//! How common a word is follows from how densely its newest rows lie, so nothing has to count all of them.

use std::collections::BTreeMap;

use super::search::{self, Hit};
use super::search_query::{self, SearchQuery};
use crate::store::{StoreError, Tx};

/// Candidates per word, and texts that are read and scored.
pub(crate) const PER_WORD: i64 = 100;
const SCORED: usize = 150;
/// Words of a question that are looked up: the rest is noise.
const MOST_WORDS: usize = 12;

/// BM25: how soon repeated words stop to count, and how much long texts are held back.
const K1: f64 = 1.2;
const B: f64 = 0.6;
/// The length of a usual note, in words.
const USUAL_WORDS: f64 = 40.0;
/// How often a word of the title counts.
const TITLE_WEIGHT: f64 = 3.0;
/// How much more the newest entry counts than the oldest.
const RECENCY: f64 = 0.25;
/// How much another form of a word counts, and a longer word that begins with it.
const SAME_STEM: f64 = 0.9;
const PREFIX: f64 = 0.5;

/// Words that say nothing about what is asked.
const STOP_WORDS: &[&str] = &[
    "a", "about", "again", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "did", "do", "does", "for", "from", "get", "had", "has", "have", "how", "i", "if", "in",
    "into", "is", "it", "its", "know", "me", "my", "need", "of", "on", "or", "our", "should", "so", "some",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "us",
    "use", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your",
];

/// A word of a question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    text: String,
    stem: String,
}

/// A question: its words without those that say nothing, unless it has no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question(Vec<Word>);

impl Question {
    /// None if the text contains no word.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words: Vec<Word> = Vec::new();
        for text in search_query::words(text).map(|(_, word)| word) {
            let word = Word { stem: stem(&text), text };
            if !words.iter().any(|other| other.stem == word.stem) {
                words.push(word);
            }
        }
        let telling: Vec<Word> =
            words.iter().filter(|word| !STOP_WORDS.contains(&word.text.as_str())).cloned().collect();
        let mut words = if telling.is_empty() { words } else { telling };
        words.truncate(MOST_WORDS);
        (!words.is_empty()).then_some(Self(words))
    }

    /// The part of a text with the most of the words.
    pub(crate) fn snippet(&self, text: &str) -> String {
        SearchQuery::prefixes(self.0.iter().map(|word| word.stem.clone())).snippet(text)
    }
}

/// The beginning that the forms of an English word share.
fn stem(word: &str) -> String {
    let cut = |suffix: &str, least: usize| {
        word.strip_suffix(suffix).filter(|rest| rest.chars().count() >= least).map(str::to_owned)
    };
    let stem = cut("ions", 4)
        .or_else(|| cut("ion", 4))
        .or_else(|| cut("ingly", 4))
        .or_else(|| cut("ings", 4))
        .or_else(|| cut("ies", 3))
        .or_else(|| cut("ing", 4))
        .or_else(|| cut("ers", 4))
        .or_else(|| cut("es", 4))
        .or_else(|| cut("ed", 4))
        .or_else(|| cut("er", 4))
        .or_else(|| cut("ly", 4))
        .or_else(|| if word.ends_with("ss") { None } else { cut("s", 3) })
        .or_else(|| cut("e", 4))
        // `retry` and `retries`, but `deploy` and `deployed`
        .or_else(|| cut("y", 4).filter(|rest| !rest.ends_with(['a', 'e', 'o', 'u'])))
        .unwrap_or_else(|| word.to_owned());
    // `running` and `run`
    let letters: Vec<char> = stem.chars().collect();
    match letters[..] {
        [.., one, other] if one == other && letters.len() > 3 && stem != word && !"ls".contains(one) => {
            letters[..letters.len() - 1].iter().collect()
        }
        _ => stem,
    }
}

/// A candidate with its title and body.
pub(crate) struct Candidate<T> {
    pub seq: i64,
    pub title: String,
    pub body: String,
    /// Multiplies the score: less than one for texts that are rarely meant.
    pub weight: f64,
    pub value: T,
}

/// The most promising rows for a question, and how much each word tells.
pub(crate) struct Candidates {
    pub hits: Vec<Hit>,
    /// Whether there are rows with one of the words that are not among the hits.
    pub is_cut: bool,
    weights: Vec<f64>,
}

/// Looks up the candidates for a question. `last_seq` is the newest `seq` of the workspace.
pub(crate) async fn candidates(
    tx: &mut Tx,
    ws: i64,
    last_seq: i64,
    question: &Question,
) -> Result<Candidates, StoreError> {
    // `seq` → hit, and the sum of the weights of the words it is known to contain.
    let mut found: BTreeMap<i64, (Hit, f64)> = BTreeMap::new();
    let mut weights = Vec::with_capacity(question.0.len());
    // Words with more rows than were read.
    let mut common: Vec<(SearchQuery, f64)> = Vec::new();
    for (query, hits) in newest_with(tx, ws, question).await? {
        let weight = rarity(&hits, last_seq);
        weights.push(weight);
        if is_full(&hits) {
            common.push((query, weight));
        }
        for hit in hits {
            found.entry(hit.seq).or_insert((hit, 0.0)).1 += weight;
        }
    }
    // Of those, the rows with the other words, too, matter most. All rows of the other words are known.
    let sets = sets(&common);
    let together =
        sets.iter().map(|set| (SearchQuery::all(set.iter().map(|(query, _)| query)), None)).collect();
    for (set, (_, hits)) in sets.iter().zip(search::find_ranked(tx, ws, together, PER_WORD).await?) {
        let known: f64 = set.iter().map(|(_, weight)| weight).sum();
        for hit in hits {
            let entry = found.entry(hit.seq).or_insert((hit, 0.0));
            entry.1 = entry.1.max(known);
        }
    }
    let mut ranked: Vec<(Hit, f64)> = found.into_values().collect();
    ranked.sort_by(|(one, score), (other, other_score)| {
        other_score.total_cmp(score).then(other.seq.cmp(&one.seq))
    });
    let is_cut = !common.is_empty() || ranked.len() > SCORED;
    ranked.truncate(SCORED);
    Ok(Candidates { hits: ranked.into_iter().map(|(hit, _)| hit).collect(), is_cut, weights })
}

/// For each word the newest rows with it, and the query that found them. The rows of a word in many texts are found without
/// its other forms: the index would collect all rows of every form first.
async fn newest_with(
    tx: &mut Tx,
    ws: i64,
    question: &Question,
) -> Result<Vec<(SearchQuery, Vec<Hit>)>, StoreError> {
    let searches = question.0.iter().map(|word| {
        let forms = SearchQuery::prefixes(std::iter::once(word.stem.clone()));
        (SearchQuery::exact(&word.text), Some(forms))
    });
    search::find_ranked(tx, ws, searches.collect(), PER_WORD).await
}

fn is_full(hits: &[Hit]) -> bool {
    hits.len() as i64 >= PER_WORD
}

/// What is looked up together: all, and all but one.
fn sets<T: Clone>(common: &[T]) -> Vec<Vec<T>> {
    if common.len() < 2 {
        return Vec::new();
    }
    let mut sets = vec![common.to_vec()];
    if (3..=6).contains(&common.len()) {
        sets.extend((0..common.len()).map(|left_out| {
            let rest = common.iter().enumerate().filter(|(at, _)| *at != left_out);
            rest.map(|(_, word)| word.clone()).collect()
        }));
    }
    sets
}

/// The inverse document frequency of a word, from its newest rows.
fn rarity(newest: &[Hit], last_seq: i64) -> f64 {
    let all = last_seq.max(1) as f64;
    let rows = newest.len() as f64;
    let frequency = match newest.last() {
        Some(oldest) if is_full(newest) => {
            let span = (last_seq - oldest.seq + 1).max(1) as f64;
            (rows * all / span).min(all)
        }
        _ => rows,
    };
    (1.0 + (all - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}

/// Candidates by score, best first; those without any of the words are left out.
pub(crate) fn rank<T>(
    question: &Question,
    weights: &Candidates,
    last_seq: i64,
    candidates: Vec<Candidate<T>>,
) -> Vec<Candidate<T>> {
    let mut scored: Vec<(f64, Candidate<T>)> = candidates
        .into_iter()
        .map(|candidate| (score(question, &weights.weights, last_seq, &candidate), candidate))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    // Scores are rounded, so that the order does not depend on the last bit.
    let rounded = |score: f64| (score * 1e6).round();
    scored.sort_by(|(one, a), (other, b)| rounded(*other).total_cmp(&rounded(*one)).then(b.seq.cmp(&a.seq)));
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

fn score<T>(question: &Question, weights: &[f64], last_seq: i64, candidate: &Candidate<T>) -> f64 {
    let title = WordCounts::of(question, &candidate.title);
    let body = WordCounts::of(question, &candidate.body);
    let length = (title.words + body.words) as f64;
    let norm = K1 * (1.0 - B + B * length / USUAL_WORDS);
    let mut sum = 0.0;
    let mut matched = 0.0;
    let total: f64 = weights.iter().sum();
    for ((weight, title), body) in weights.iter().zip(&title.similar).zip(&body.similar) {
        let frequency = TITLE_WEIGHT * title + body;
        if frequency > 0.0 {
            sum += weight * frequency * (K1 + 1.0) / (frequency + norm);
            matched += weight;
        }
    }
    if total <= 0.0 {
        return 0.0;
    }
    // A text about more of the question is better than one that repeats a part of it.
    let coverage = 0.5 + 0.5 * matched / total;
    let age = 1.0 - candidate.seq as f64 / last_seq.max(1) as f64;
    sum * coverage * candidate.weight * (1.0 + RECENCY * (1.0 - age))
}

/// How many words a text has, and for each word of a question how many similar ones.
struct WordCounts {
    words: usize,
    similar: Vec<f64>,
}

impl WordCounts {
    fn of(question: &Question, text: &str) -> Self {
        let mut counts = Self { words: 0, similar: vec![0.0; question.0.len()] };
        search_query::each_word(text, |_, word| {
            counts.words += 1;
            for (count, wanted) in counts.similar.iter_mut().zip(&question.0) {
                *count += similarity(wanted, word);
            }
        });
        counts
    }
}

/// How far a word of a text is one of the question.
fn similarity(wanted: &Word, word: &str) -> f64 {
    if word == wanted.text {
        1.0
    } else if !word.starts_with(&wanted.stem) {
        0.0
    } else if stem(word) == wanted.stem {
        SAME_STEM
    } else if wanted.stem.chars().count() >= 4 {
        PREFIX
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (one, other) in [
            ("crash", "crashes"),
            ("migration", "migrate"),
            ("retry", "retries"),
            ("running", "runs"),
            ("token", "tokens"),
            ("cache", "caching"),
            ("deploy", "deployed"),
            ("parser", "parsers"),
            ("flake", "flaky"),
        ] {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        for word in ["class", "was", "ci", "css", "red"] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn question_keeps_the_words_that_tell() {
        let words = |text: &str| {
            Question::parse(text).unwrap().0.into_iter().map(|word| word.text).collect::<Vec<_>>()
        };
        assert_eq!(words("why does the linker fail on arm?"), ["linker", "fail", "arm"]);
        assert_eq!(words("what is it"), ["what", "is", "it"]);
        assert_eq!(Question::parse("?!"), None);
    }

    fn candidate(seq: i64, title: &str, body: &str) -> Candidate<i64> {
        Candidate { seq, title: title.into(), body: body.into(), weight: 1.0, value: seq }
    }

    #[test]
    fn titles_and_rare_words_come_first_and_ties_are_newest_first() {
        let question = Question::parse("linker arm").unwrap();
        let found = Candidates { hits: Vec::new(), is_cut: false, weights: vec![5.0, 1.0] };
        let order: Vec<i64> = rank(
            &question,
            &found,
            10,
            vec![
                candidate(1, "", "arm arm arm and more about arm"),
                candidate(2, "", "the linker needs libatomic on arm"),
                candidate(3, "Linker on arm", "it needs libatomic"),
                candidate(4, "", "nothing here"),
                candidate(5, "", "the linker is slow"),
                candidate(6, "", "the linker is slow"),
            ],
        )
        .into_iter()
        .map(|candidate| candidate.value)
        .collect();
        assert_eq!(order, [3, 2, 6, 5, 1]);
    }
}
