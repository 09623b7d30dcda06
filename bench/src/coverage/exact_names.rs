//! Exact names of declarations, looked up as workspace symbols, cold and warm.

use std::collections::BTreeSet;

use serde_json::json;
use tenon_testkit::code_tools;

use super::Options;
use super::project::{Project, Session, SourceSymbol};
use crate::error::BenchError;
use crate::output::{log, print};
use crate::source_sample::Random;

pub(super) fn measure(project: &Project, options: &Options) -> Result<(), BenchError> {
    let mut random = Random::new(options.seed + 1);
    let names = project.choose(&mut random, options.names, |symbol| symbol.is_outermost);
    let look_up = |session: &mut Session<'_>, when: &str| -> Vec<Result<BTreeSet<String>, String>> {
        let found: Vec<_> = names.iter().map(|symbol| places(project, session, symbol)).collect();
        for (symbol, found) in names.iter().zip(&found) {
            if !is_found(symbol, found) {
                log(&format!("{when}: {symbol:?} is not among {found:?}"));
            }
        }
        found
    };
    let cold = look_up(&mut project.session(), "cold");
    let mut session = project.session();
    session.warm_up(&mut random, &names, options.questions);
    let warm = look_up(&mut session, "warm");
    let count = |all: &[Result<BTreeSet<String>, String>]| {
        names.iter().zip(all).filter(|(symbol, found)| is_found(symbol, found)).count()
    };
    for (symbol, (cold, warm)) in names.iter().zip(cold.iter().zip(&warm)) {
        if cold != warm {
            log(&format!("differs: {symbol:?}: {cold:?}, then {warm:?}"));
        }
    }
    let differ = cold.iter().zip(&warm).filter(|(cold, warm)| cold != warm).count();
    print(&format!(
        "\nExact names: {} of {} found cold, {} warm; {differ} answers differ.",
        count(&cold),
        names.len(),
        count(&warm)
    ));
    Ok(())
}

/// The lines with a symbol of exactly that name.
fn places(
    project: &Project,
    session: &mut Session<'_>,
    symbol: &SourceSymbol,
) -> Result<BTreeSet<String>, String> {
    let (items, _) = session.pages(code_tools::WORKSPACE_SYMBOLS, &json!({ "query": symbol.name }))?;
    let is_exact = |item: &&serde_json::Value| item["name"] == *symbol.name;
    Ok(items.iter().filter(is_exact).map(|item| project.place(&item["location"])).collect())
}

fn is_found(symbol: &SourceSymbol, found: &Result<BTreeSet<String>, String>) -> bool {
    let file = format!("{}:", symbol.file);
    found.as_ref().is_ok_and(|places| places.iter().any(|place| place.starts_with(&file)))
}
