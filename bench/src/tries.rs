//! Tried edits under concurrent questions: no other answer shows the tried text, and servers have the text on disk afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tenon_testkit::direct_server::uri;
use tenon_testkit::{McpClient, RealProject, Sandbox, code_tools};

use crate::error::BenchError;
use crate::output::{log, print};
use crate::source_sample::{self, Random};

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Tried edits per project
    #[arg(long, default_value_t = 250)]
    tries: usize,
    /// Files that are tried in turn
    #[arg(long, default_value_t = 25)]
    files: usize,
    /// The seed of the choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the server with this id
    #[arg(long)]
    only: Option<String>,
}

const CASES: [(RealProject, &str, &str); 2] =
    [(RealProject::Django, "pyright", "py"), (RealProject::Rxjs, "typescript-native", "ts")];

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Tried edits under concurrent questions\n");
    print(
        "| project | tries | files | tried error reported | refused | questions meanwhile | that show a tried text | answers afterwards: same as before, other |",
    );
    print("|---|---|---|---|---|---|---|---|");
    for (project, server, extension) in CASES {
        if options.only.as_ref().is_none_or(|only| only == server) {
            measure(tenon, project, server, extension, options)?;
        }
    }
    Ok(())
}

/// A line before which a declaration is tried.
struct Place {
    file: String,
    line: String,
    name: String,
}

fn measure(
    tenon: &Path,
    project: RealProject,
    server: &str,
    extension: &str,
    options: &Options,
) -> Result<(), BenchError> {
    let sandbox = Sandbox::with_project(project);
    let mut client = session(tenon, server, &sandbox)?;
    let mut random = Random::new(options.seed);
    let places = places(&mut random, &sandbox, extension, options.files);
    log(&format!("{project:?}: {} files", places.len()));
    let before = truths(&mut client, &sandbox, &places);
    let (mut reported, mut refused, mut asked) = (0, 0, 0);
    let mut shown = Vec::new();
    for number in 0..options.tries {
        let Some(place) = random.choose(&places) else { break };
        let (marker, wrong) = (format!("triedMarker{number}x"), format!("undefinedName{number}x"));
        let text = match extension {
            "py" => format!("def {marker}():\n    return {wrong}\n\n\n{}", place.line),
            _ => format!("function {marker}() {{ return {wrong}; }}\n{}", place.line),
        };
        let arguments = json!({ "file": place.file, "old_text": place.line, "new_text": text });
        let tried = client.start("tools/call", json!({ "name": "try_edit", "arguments": arguments }));
        let others: Vec<u64> = questions(&sandbox, place)
            .into_iter()
            .map(|(tool, arguments)| {
                client.start("tools/call", json!({ "name": tool, "arguments": arguments }))
            })
            .collect();
        for id in others {
            asked += 1;
            let text = match client.answer(id) {
                Ok(answer) => answer.to_string(),
                Err(error) => error.message,
            };
            if text.contains("triedMarker") || text.contains("undefinedName") {
                shown.push(format!("{number}: {}", text.chars().take(300).collect::<String>()));
            }
        }
        match client.answer(tried) {
            Ok(answer) if answer["isError"] == true => {
                refused += 1;
                log(&format!("{number}: {}", answer["content"][0]["text"]));
            }
            Ok(answer) if answer.to_string().contains(&wrong) => reported += 1,
            Ok(answer) => {
                log(&format!("{number} {}: not reported: {}", place.file, answer["content"][0]["text"]))
            }
            Err(error) => return Err(BenchError::new(format!("`try_edit` answered {error:?}"))),
        }
        if number % 20 == 19 {
            log(&format!("{project:?}: {} tries, {reported} reported, {refused} refused", number + 1));
        }
    }
    let after = truths(&mut client, &sandbox, &places);
    let other = before.iter().filter(|(question, answer)| after.get(*question) != Some(*answer));
    let other: Vec<&String> = other.map(|(question, _)| question).collect();
    for question in &other {
        log(&format!("other answer: {question}\n{}\nthen\n{}", before[*question], after[*question]));
    }
    for line in &shown {
        log(&format!("shows a tried text: {line}"));
    }
    print(&format!(
        "| {project:?}, {server} | {} | {} | {reported} | {refused} | {asked} | {} | {}, {} |",
        options.tries,
        places.len(),
        shown.len(),
        before.len() - other.len(),
        other.len()
    ));
    Ok(())
}

/// Questions about a file: the index, the server's symbols, references and diagnostics.
fn questions(sandbox: &Sandbox, place: &Place) -> Vec<(&'static str, Value)> {
    vec![
        ("outline", json!({ "path": place.file })),
        ("find", json!({ "name": format!("{}#{}", place.file, place.name), "body": "yes" })),
        ("references", json!({ "symbol": format!("{}#{}", place.file, place.name) })),
        ("problems", json!({ "scope": place.file })),
        (code_tools::DOCUMENT_SYMBOLS, json!({ "uri": uri(sandbox, &place.file) })),
        (code_tools::DOCUMENT_DIAGNOSTICS, json!({ "uri": uri(sandbox, &place.file) })),
    ]
}

/// The answers about all files, each asked until no server is loading.
fn truths(client: &mut McpClient, sandbox: &Sandbox, places: &[Place]) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    for place in places {
        for (tool, arguments) in questions(sandbox, place) {
            let key = format!("{tool} {arguments}");
            let text = loop {
                let text = match client.call_tool(tool, arguments.clone()) {
                    Ok(answer) if tool.starts_with("vscode") => stable(&answer.structured),
                    Ok(answer) => answer.text.join("\n"),
                    Err(error) if error.data["details"]["retryAfterMs"].is_null() => error.message,
                    Err(_) => continue,
                };
                if !text.contains("ask again") {
                    break text;
                }
            };
            answers.insert(key, text);
        }
    }
    answers
}

/// What an answer says about the code, without snapshot numbers.
fn stable(answer: &Value) -> String {
    ["symbols", "items", "diagnostics"].map(|key| answer[key].to_string()).join("\n")
}

/// Top-level declarations whose line occurs once, each in another file.
fn places(random: &mut Random, sandbox: &Sandbox, extension: &str, count: usize) -> Vec<Place> {
    let files = source_sample::files(sandbox, extension);
    let mut chosen = BTreeSet::new();
    let mut places = Vec::new();
    for _ in 0..count * 40 {
        let Some(file) = random.choose(&files).filter(|_| places.len() < count) else { break };
        let text = sandbox.tree().read(file);
        let lines =
            text.lines().filter(|line| !line.starts_with([' ', '\t']) && text.matches(*line).count() == 1);
        let declared = lines.filter_map(|line| Some((line, source_sample::declared(line)?)));
        let declared: Vec<(&str, (usize, usize))> = declared.collect();
        if let Some((line, (start, end))) = random.choose(&declared)
            && chosen.insert(file.clone())
        {
            let name = line[*start..*end].to_owned();
            places.push(Place { file: file.clone(), line: (*line).to_owned(), name });
        }
    }
    places
}

fn session(tenon: &Path, server: &str, sandbox: &Sandbox) -> Result<McpClient, BenchError> {
    let switch = |id: &str| format!("[servers.{id}]\nenabled = {}\n", id == server);
    let ids = ["pyright", "ty", "ruff", "typescript-language-server", "typescript-native"];
    sandbox.write_user_config(&ids.map(switch).concat());
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "explore,code"]).stderr(Stdio::null());
    Ok(McpClient::connect(&mut command))
}
