//! `tenon config`: shows the settings and where each comes from, and changes those of the user.

use serde_json::{Value, json};
use tenon_server::config::{Setting, SettingOrigin, schema};
use tenon_server::surfaces::workspace::masked;
use tenon_server::workspace::Workspace;

use crate::config_edit::edited_file::EditedFile;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::user_config;

/// Show settings and where they come from, and change your own
///
/// Settings come from built-in defaults, your `config.toml`, the workspace's `tenon.toml`, environment variables that start
/// with `TENON_`, and flags. Later sources override earlier ones.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print every setting with its origin, and each ignored setting with the reason
    Show {
        /// Leave out settings with their default value
        #[arg(long, alias = "made")]
        explicit: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a setting in your configuration file
    Set {
        /// Setting, for example `http.port`
        key: String,
        /// Value; a list is separated by commas
        value: String,
    },
    /// Print the JSON Schema of `tenon.toml`, for editors
    Schema,
    /// Print the path of your configuration file
    Path,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command {
        Command::Show { explicit, json } => {
            let root = invocation.root(None)?;
            let workspace = invocation.workspace(&root, vec![])?;
            let shown = |setting: &Setting| !explicit || setting.origins != [SettingOrigin::Default];
            let settings = workspace.settings().iter().filter(|(_, setting)| shown(setting));
            if json {
                let settings: Vec<Value> = settings.map(|(path, setting)| describe(path, setting)).collect();
                invocation.print_data(format!("{:#}", settings_json(&workspace, settings)))?;
            } else {
                invocation.eprint(format!("root: {root} ({})", workspace.trust().name()));
                let lines: Vec<String> = settings.map(|(path, setting)| line(path, setting)).collect();
                for line in lines {
                    invocation.print(line)?;
                }
                for ignored in workspace.settings().ignored() {
                    let line =
                        format!("ignored: `{}` in {}: {}", ignored.path, ignored.origin, ignored.reason);
                    invocation.eprint(line);
                }
            }
            for (name, nearest) in invocation.environment.unknown() {
                let hint = nearest.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
                invocation.eprint(format!("ignored: unknown environment variable `{name}`{hint}"));
            }
        }
        Command::Set { key, value } => {
            let dirs = invocation.dirs()?;
            let file = EditedFile::open(&dirs.config_file, &dirs.state)?;
            let value = user_config::write_text(file, &key, &value, invocation)?;
            invocation.print(format!("{key} = {}", masked(&value)))?;
            invocation.eprint(format!("changed: {}", dirs.config_file));
            invocation.eprint("  hint: run `tenon restart` if a daemon is running");
        }
        Command::Schema => invocation.print_data(schema::json())?,
        Command::Path => {
            let path = invocation.dirs()?.config_file;
            invocation.print(path)?;
        }
    }
    Ok(Exit::Success)
}

fn line(path: &str, setting: &Setting) -> String {
    let note = setting.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    format!("{path} = {}  # {}{note}", masked(&setting.value), origins(setting))
}

fn origins(setting: &Setting) -> String {
    let origins: Vec<String> = setting.origins.iter().map(SettingOrigin::to_string).collect();
    origins.join(", ")
}

fn describe(path: &str, setting: &Setting) -> Value {
    let mut described = json!({"key": path, "value": masked(&setting.value), "origin": origins(setting)});
    if let Some(note) = &setting.note {
        described["note"] = json!(note);
    }
    described
}

/// All settings with their origins, as `tenon config show --json` prints them.
pub(crate) fn all_settings(workspace: &Workspace) -> Value {
    let settings = workspace.settings().iter().map(|(path, setting)| describe(path, setting));
    settings_json(workspace, settings.collect())
}

fn settings_json(workspace: &Workspace, settings: Vec<Value>) -> Value {
    let ignored = workspace.settings().ignored().iter().map(|ignored| {
        json!({"key": ignored.path, "origin": ignored.origin.to_string(), "reason": ignored.reason})
    });
    json!({
        "root": workspace.root(),
        "trust": workspace.trust().name(),
        "settings": settings,
        "ignored": ignored.collect::<Vec<_>>(),
    })
}
