//! Workspace diagnostics of large trees: the first time, and again after edits by another process.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::{McpClient, RealProject, Sandbox, code_tools};

use crate::error::BenchError;
use crate::output::{log, print};

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// The server for Python
    #[arg(long, default_value = "pyright")]
    server: String,
    /// Files of the generated tree; 0 leaves it out
    #[arg(long, default_value_t = 20_000)]
    files: usize,
    /// Leave out Django
    #[arg(long)]
    generated_only: bool,
}

/// Files per folder of the generated tree.
const FOLDER: usize = 100;

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print(&format!("# Workspace diagnostics with {}\n", options.server));
    print("| tree | question | time | progress answers, longest time between two | files with diagnostics |");
    print("|---|---|---|---|---|");
    if !options.generated_only {
        let sandbox = Sandbox::with_project(RealProject::Django);
        let (leaf, imported) = ("django/contrib/humanize/apps.py", "django/utils/functional.py");
        measure(tenon, "Django", &sandbox, &options.server, leaf, imported)?;
    }
    if options.files > 0 {
        let sandbox = Sandbox::new();
        generate(&sandbox, options.files);
        let title = format!("{} generated files", options.files);
        measure(tenon, &title, &sandbox, &options.server, "p0/m99.py", "p0/m0.py")?;
    }
    Ok(())
}

/// Packages of modules: each imports the first module in its package and the module before it; one in a hundred is wrong.
fn generate(sandbox: &Sandbox, files: usize) {
    sandbox.tree().write("pyproject.toml", "[project]\nname = \"generated\"\nversion = \"0\"\n");
    for index in 0..files {
        let (package, module) = (index / FOLDER, index % FOLDER);
        let text = match module {
            0 => "def base(value: int) -> int:\n    return value + 1\n".to_owned(),
            1 => format!("from p{package}.m0 import base\n\nresult: str = base(1)\n"),
            _ => format!(
                "from p{package}.m0 import base\nfrom p{package}.m{} import base as again\n\n\
                 def call_{module}() -> int:\n    return base({module}) + again(1)\n",
                module - 1
            ),
        };
        sandbox.tree().write(format!("p{package}/m{module}.py"), &text);
    }
}

fn measure(
    tenon: &Path,
    title: &str,
    sandbox: &Sandbox,
    server: &str,
    leaf: &str,
    imported: &str,
) -> Result<(), BenchError> {
    let switch = |id: &str| format!("[servers.{id}]\nenabled = {}\n", id == server);
    sandbox.write_user_config(&["pyright", "ty", "ruff"].map(switch).concat());
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "code"]).stderr(Stdio::null());
    let mut client = McpClient::connect(&mut command);
    let mut row = |question: &str| -> Result<(), BenchError> {
        log(&format!("{title}: {question}"));
        let round = Round::ask(&mut client)?;
        let Round { time, progress, longest, files } = round;
        print(&format!(
            "| {title} | {question} | {:.1} s | {progress}, {:.1} s | {files} |",
            time.as_secs_f64(),
            longest.as_secs_f64()
        ));
        Ok(())
    };
    row("first")?;
    row("again")?;
    for (file, what) in
        [(leaf, "after an edit of a leaf file"), (imported, "after an edit of an imported file")]
    {
        let text = sandbox.tree().read(file);
        sandbox.tree().write(file, &format!("{text}\nundefined_name\n"));
        row(what)?;
    }
    Ok(())
}

/// One complete list of diagnostics.
struct Round {
    time: Duration,
    /// Answers that say how many files are done.
    progress: usize,
    longest: Duration,
    files: usize,
}

impl Round {
    /// Asks until the list is complete, and reads all pages.
    fn ask(client: &mut McpClient) -> Result<Self, BenchError> {
        let start = Instant::now();
        let mut round = Self { time: Duration::ZERO, progress: 0, longest: Duration::ZERO, files: 0 };
        let mut last = start;
        let mut arguments = json!({ "pageSize": 20 });
        loop {
            let answer = client.call_tool(code_tools::WORKSPACE_DIAGNOSTICS, arguments.clone());
            round.longest = round.longest.max(last.elapsed());
            last = Instant::now();
            match answer {
                Ok(answer) => {
                    let page = answer.structured;
                    round.files += page["items"].as_array().map_or(0, Vec::len);
                    match page["nextCursor"].as_str() {
                        Some(cursor) => arguments["cursor"] = json!(cursor),
                        None => {
                            round.time = start.elapsed();
                            return Ok(round);
                        }
                    }
                }
                Err(error) => {
                    let details: &Value = &error.data["details"];
                    if details["retryAfterMs"].is_null() {
                        return Err(BenchError::new(format!("workspace diagnostics: {}", error.message)));
                    }
                    round.progress += usize::from(details["done"].is_u64());
                    log(&format!(
                        "{:.0} s: {} of {}",
                        start.elapsed().as_secs_f64(),
                        details["done"],
                        details["total"]
                    ));
                }
            }
        }
    }
}
