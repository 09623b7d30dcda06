//! The same questions in five processes, compared byte for byte.

use serde_json::{Value, json};
use tenon_testkit::code_tools;

use super::Options;
use super::project::{Project, SourceSymbol};
use crate::error::BenchError;
use crate::output::{log, print};
use crate::source_sample::Random;

const PROCESSES: usize = 5;

pub(super) fn measure(project: &Project, options: &Options) -> Result<(), BenchError> {
    let mut random = Random::new(options.seed + 3);
    let symbols = project.choose(&mut random, options.repeats, |_| true);
    let questions: Vec<(&str, Value)> =
        symbols.iter().enumerate().map(|(index, symbol)| question(project, index, symbol)).collect();
    let mut rounds: Vec<Vec<String>> = Vec::new();
    for _ in 0..PROCESSES {
        let mut session = project.session();
        rounds.push(questions.iter().map(|(tool, arguments)| text(session.ask(tool, arguments))).collect());
    }
    let mut equal = 0;
    for (index, question) in questions.iter().enumerate() {
        let other = rounds.iter().find(|round| round[index] != rounds[0][index]);
        match other {
            None => equal += 1,
            Some(other) => {
                log(&format!("differs: {question:?}\n{}\n{}", cut(&rounds[0][index]), cut(&other[index])));
            }
        }
    }
    print(&format!("\nEqual in {PROCESSES} processes: {equal} of {} answers.", questions.len()));
    Ok(())
}

/// Each tool in turn.
fn question(project: &Project, index: usize, symbol: &SourceSymbol) -> (&'static str, Value) {
    let at = symbol.arguments(project);
    let document = json!({ "uri": at["uri"] });
    match index % 6 {
        0 => (code_tools::REFERENCES, at),
        1 => (code_tools::DEFINITION, at),
        2 => (code_tools::HOVER, at),
        3 => (code_tools::DOCUMENT_SYMBOLS, document),
        4 => (code_tools::WORKSPACE_SYMBOLS, json!({ "query": symbol.name })),
        _ => (code_tools::DOCUMENT_DIAGNOSTICS, document),
    }
}

/// An answer without its cursor, which only its own process accepts.
fn text(answer: Result<Value, String>) -> String {
    match answer {
        Ok(mut answer) => {
            if let Some(fields) = answer.as_object_mut() {
                fields.remove("nextCursor");
            }
            answer.to_string()
        }
        Err(error) => error,
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(600)]
}
