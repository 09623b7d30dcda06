//! `tenon token`: the bearer tokens of HTTP clients.

use serde_json::{Value, json};
use tenon_contract::clock::{Clock, Entropy};
use tenon_server::token::{Token, TokenFile};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Show, add and revoke the tokens of HTTP clients
///
/// A client of `tenon serve --http` sends `Authorization: Bearer TOKEN`. Several tokens are valid at once, so that one
/// can be replaced without a gap: `rotate`, hand out the new one, `revoke` the old one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the newest token, which is made if there is none
    Show {
        /// List all tokens by id, without their secrets
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a token and print it; the others stay valid
    Rotate {
        /// The surfaces it opens; otherwise those that only read
        #[arg(long, value_delimiter = ',', value_name = "NAME")]
        surface: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a token invalid at once
    Revoke {
        /// Its id, as `tenon token show --all` lists it
        id: String,
    },
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let path = invocation.dirs()?.tokens();
    let tokens = TokenFile::new(path.into_std_path_buf(), Clock::system(), Entropy::system());
    match args.command {
        Command::Show { all: false, json } => show(&tokens.current()?, json, invocation)?,
        Command::Show { all: true, json } => {
            let listed = tokens.list()?;
            if json {
                let listed: Vec<Value> = listed.iter().map(describe).collect();
                invocation.print(Value::from(listed).to_string())?;
            } else {
                for token in listed {
                    let surfaces = token.surfaces.map_or("read-only".to_owned(), |names| names.join(","));
                    invocation.print(format!("{}  {}  {surfaces}", token.id, token.created_at))?;
                }
            }
        }
        Command::Rotate { surface, json } => {
            let surfaces = (!surface.is_empty()).then_some(surface);
            show(&tokens.rotate(surfaces)?, json, invocation)?;
        }
        Command::Revoke { id } => {
            tokens.revoke(&id)?;
            invocation.eprint(format!("revoked: {id}"));
        }
    }
    Ok(Exit::Success)
}

fn show(token: &Token, json: bool, invocation: &mut Invocation) -> Result<(), Failure> {
    if json {
        let mut described = describe(token);
        described["token"] = json!(token.secret);
        return invocation.print(described.to_string());
    }
    invocation.eprint(format!("id: {}", token.id));
    invocation.print(&token.secret)
}

fn describe(token: &Token) -> Value {
    json!({"id": token.id, "created_at": token.created_at, "surfaces": token.surfaces})
}
