//! Definition and hover at random names, compared with the bare language server.

use std::collections::BTreeSet;

use serde_json::Value;
use tenon_testkit::code_tools;
use tenon_testkit::direct_server::{DirectServer, FilePosition};

use super::Options;
use super::project::{Project, SourceSymbol};
use crate::error::BenchError;
use crate::output::{log, print};
use crate::source_sample::{self, Random};

pub(super) fn measure(project: &Project, options: &Options) -> Result<(), BenchError> {
    let Some(server) = project.bare() else {
        return Ok(());
    };
    let mut random = Random::new(options.seed + 2);
    let positions: Vec<SourceSymbol> = (0..options.positions * 20)
        .filter_map(|_| choose(&mut random, project))
        .take(options.positions)
        .collect();
    let mut bare = DirectServer::start(server, &project.sandbox)?;
    let mut opened = BTreeSet::new();
    let mut session = project.session();
    let (mut definitions, mut hovers) = (0, 0);
    for symbol in &positions {
        if opened.insert(&symbol.file) {
            bare.open(&symbol.file)?;
            if opened.len() == 1 {
                bare.wait_until_ready()?;
            }
        }
        let position = FilePosition {
            file: &symbol.file,
            line: symbol.line as usize,
            character: symbol.character as usize,
        };
        let at = symbol.arguments(project);
        let expected = targets(project, &bare.request("definition", position)?);
        let found = session.ask(code_tools::DEFINITION, &at);
        let found = found.map(|answer| targets(project, &answer["locations"])).unwrap_or_default();
        match expected == found {
            true => definitions += 1,
            false => log(&format!("definition: {symbol:?}: {found:?}, bare {expected:?}")),
        }
        let expected = !bare.request("hover", position)?["contents"].is_null();
        let found = session.ask(code_tools::HOVER, &at);
        let found =
            found.is_ok_and(|answer| answer["contents"].as_array().is_some_and(|list| !list.is_empty()));
        match expected == found {
            true => hovers += 1,
            false => log(&format!("hover: {symbol:?}: {found}, bare {expected}")),
        }
    }
    let count = positions.len();
    print(&format!(
        "\nAs the bare server: {definitions} of {count} definitions, {hovers} of {count} hovers."
    ));
    Ok(())
}

/// A random name in code.
fn choose(random: &mut Random, project: &Project) -> Option<SourceSymbol> {
    let file = random.choose(&project.files)?;
    let text = project.sandbox.tree().read(file);
    let lines: Vec<&str> = text.lines().collect();
    let line = random.below(lines.len());
    let written = lines.get(line).filter(|line| line.is_ascii() && !source_sample::is_comment(line))?;
    let (start, end) = *random.choose(&source_sample::names(written))?;
    Some(SourceSymbol {
        file: file.clone(),
        line: line as u64,
        character: start as u64,
        name: written[start..end].to_owned(),
        is_outermost: false,
    })
}

/// The places inside the workspace, of locations or links.
fn targets(project: &Project, found: &Value) -> BTreeSet<String> {
    let all = match found {
        Value::Array(list) => list.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let place = |one: &Value| {
        let uri = one["targetUri"].as_str().or(one["uri"].as_str())?;
        let start = one["targetSelectionRange"].get("start").or(one["range"].get("start"))?;
        let file = project.file(uri);
        (file != uri).then(|| format!("{file}:{}:{}", start["line"], start["character"]))
    };
    all.iter().filter_map(place).collect()
}
