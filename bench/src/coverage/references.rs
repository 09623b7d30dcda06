//! References of random symbols: cold, in reverse order and after other questions; and every other occurrence of the word.

use std::collections::BTreeSet;

use serde_json::Value;
use tenon_testkit::code_tools;
use tenon_testkit::direct_server::{DirectServer, FilePosition};

use super::Options;
use super::project::{Places, Project, Session, SourceSymbol};
use super::undefined::{self, Undefined};
use super::word_search::{Occurrence, WordSearch};
use crate::error::BenchError;
use crate::output::{log, print};
use crate::source_sample::Random;

type Answer = Result<Places, String>;

/// Why occurrences of a word are not references.
#[derive(Default)]
struct Explained {
    comment: usize,
    other_symbol: usize,
    outside: usize,
    no_definition: Vec<Undefined>,
    not_asked: usize,
    /// Defined where a reference is, but not a reference: by the number of the symbol.
    missing: Vec<(usize, String)>,
}

pub(super) fn measure(project: &Project, options: &Options) -> Result<(), BenchError> {
    let mut random = Random::new(options.seed);
    let symbols = project.choose(&mut random, options.symbols, |_| true);
    let others = project.choose(&mut random, options.questions.min(100), |_| true);
    let ask = |session: &mut Session<'_>, order: &mut dyn Iterator<Item = usize>| -> Vec<Answer> {
        let mut answers: Vec<Answer> = vec![Err("not asked".to_owned()); symbols.len()];
        for index in order {
            answers[index] = session.references(&symbols[index]);
        }
        answers
    };
    log("cold");
    let cold = ask(&mut project.session(), &mut (0..symbols.len()));
    log("in reverse order");
    let backwards = ask(&mut project.session(), &mut (0..symbols.len()).rev());
    log("after other questions");
    let mut session = project.session();
    session.warm_up(&mut random, &others, options.questions);
    let warm = ask(&mut session, &mut (0..symbols.len()));

    log("a word search");
    let words = WordSearch::new(project);
    let (mut total, mut failed, mut renamed) = (0, 0, 0);
    let (mut differs, mut marked) = ([0, 0], [0, 0]);
    let mut explained = Explained::default();
    for (index, symbol) in symbols.iter().enumerate() {
        for (which, other) in [&backwards[index], &warm[index]].into_iter().enumerate() {
            if let Some(difference) = difference(&cold[index], other) {
                let is_marked =
                    [&cold[index], other].iter().any(|one| one.as_ref().is_ok_and(|one| one.is_marked));
                differs[which] += 1;
                marked[which] += usize::from(is_marked);
                log(&format!("differs, marked {is_marked}: {symbol:?}: {difference}"));
            }
        }
        let found = match &cold[index] {
            Ok(places) => &places.found,
            Err(error) => {
                failed += 1;
                log(&format!("failed: {symbol:?}: {error}"));
                continue;
            }
        };
        total += found.len();
        let occurrences = words.find(&symbol.name);
        let places: BTreeSet<String> = occurrences.iter().map(Occurrence::place).collect();
        for place in found.difference(&places) {
            renamed += 1;
            log(&format!("without the word `{}`: {place}", symbol.name));
        }
        let (code, text): (Vec<_>, Vec<_>) =
            occurrences.into_iter().filter(|one| !found.contains(&one.place())).partition(|one| one.is_code);
        explained.comment += text.len();
        let step = options.explained.map_or(1, |most| code.len().div_ceil(most.max(1)).max(1));
        explained.not_asked += code.len() - code.len().div_ceil(step);
        for occurrence in code.iter().step_by(step) {
            if is_defined_in(found, project, &mut session, occurrence, &mut explained) {
                explained.missing.push((index, occurrence.place()));
            }
        }
    }
    let without_bare = missing_in_bare_server(project, &symbols, &explained.missing)?;
    log("the bare server");
    let bare = undefined::ask(project, &explained.no_definition)?;
    print("| references | |\n|---|---|");
    print(&format!("| symbols, references | {}, {total} |", symbols.len()));
    print(&format!("| no answer | {failed} |"));
    let changed = |which: usize| {
        format!("{}, of these marked as possibly incomplete: {}", differs[which], marked[which])
    };
    print(&format!("| other answer in reverse order | {} |", changed(0)));
    print(&format!("| other answer after {} other questions | {} |", options.questions, changed(1)));
    print(&format!("| references without the word | {renamed} |"));
    print(&format!("| the word in comments and text | {} |", explained.comment));
    print(&format!("| the word as another symbol | {} |", explained.other_symbol));
    print(&format!("| the word as a symbol outside the workspace | {} |", explained.outside));
    print(&format!("| the word without a definition, in the bare server either | {} |", bare.none_total()));
    log(&format!("without a definition: {:?}", bare.none));
    print(&format!(
        "| the word without a definition, which the bare server has outside the workspace | {} |",
        bare.outside
    ));
    print(&format!("| the word, not queried | {} |", explained.not_asked + bare.not_queried));
    print(&format!(
        "| the word as this symbol, which the bare server does not list either | {without_bare} |"
    ));
    let missing = explained.missing.len() - without_bare + bare.this_symbol;
    print(&format!("| **the word as this symbol, missing** | {missing} |"));
    print(&format!(
        "| **the word without a definition, although the bare server has one in the workspace** | {} |",
        bare.other_symbol
    ));
    Ok(())
}

/// Whether an occurrence that is not a reference is defined where a reference is.
fn is_defined_in(
    found: &BTreeSet<String>,
    project: &Project,
    session: &mut Session<'_>,
    occurrence: &Occurrence,
    explained: &mut Explained,
) -> bool {
    let Occurrence { file, line, character, .. } = occurrence;
    let at = code_tools::at(&project.uri(file), *line as u32, *character as u32);
    let answer = match session.ask(code_tools::DEFINITION, &at) {
        Ok(answer) => answer,
        Err(error) => {
            let error = Some(error);
            let (occurrence, references) = (occurrence.clone(), found.clone());
            explained.no_definition.push(Undefined { occurrence, references, error });
            return false;
        }
    };
    let targets = answer["locations"].as_array().cloned().unwrap_or_default();
    if targets.iter().any(|target| found.contains(&project.place(target))) {
        return true;
    }
    let is_outside = answer["summary"].as_str().is_some_and(|summary| summary.contains("outside"));
    match (targets.is_empty(), is_outside) {
        (false, _) => explained.other_symbol += 1,
        (true, true) => explained.outside += 1,
        (true, false) => {
            let (occurrence, references) = (occurrence.clone(), found.clone());
            explained.no_definition.push(Undefined { occurrence, references, error: None });
        }
    }
    false
}

/// How many of the missing references the bare server does not list either.
fn missing_in_bare_server(
    project: &Project,
    symbols: &[SourceSymbol],
    missing: &[(usize, String)],
) -> Result<usize, BenchError> {
    let Some((server, (first, _))) = project.bare().zip(missing.first()) else {
        return Ok(0);
    };
    let mut bare = DirectServer::start(server, &project.sandbox)?;
    bare.open(&symbols[*first].file)?;
    bare.wait_until_ready()?;
    let mut opened = BTreeSet::from([&symbols[*first].file]);
    let mut count = 0;
    let mut known: Option<(usize, BTreeSet<String>)> = None;
    for (index, place) in missing {
        let symbol = &symbols[*index];
        if known.as_ref().is_none_or(|(asked, _)| asked != index) {
            if opened.insert(&symbol.file) {
                bare.open(&symbol.file)?;
            }
            let position = FilePosition {
                file: &symbol.file,
                line: symbol.line as usize,
                character: symbol.character as usize,
            };
            let answer = bare.request("references", position)?;
            let list = answer.as_array().map(Vec::as_slice).unwrap_or_default();
            known = Some((*index, list.iter().map(|one: &Value| project.place(one)).collect()));
        }
        let is_listed = known.as_ref().is_some_and(|(_, places)| places.contains(place));
        count += usize::from(!is_listed);
        log(&format!("missing: {symbol:?}: {place}, bare server: {is_listed}"));
    }
    Ok(count)
}

/// What differs between two answers.
fn difference(one: &Answer, other: &Answer) -> Option<String> {
    match (one, other) {
        (Ok(one), Ok(other)) if one.found == other.found => None,
        (Err(one), Err(other)) if one == other => None,
        (Ok(one), Ok(other)) => {
            let first = |from: &Places, without: &Places| {
                from.found.difference(&without.found).take(3).cloned().collect::<Vec<_>>()
            };
            let (gained, lost) = (first(other, one), first(one, other));
            let (before, after) = (one.found.len(), other.found.len());
            Some(format!("{before} cold, {after} then; gained {gained:?}, lost {lost:?}"))
        }
        _ => Some(format!("{:?}, {:?}", one.as_ref().err(), other.as_ref().err())),
    }
}
