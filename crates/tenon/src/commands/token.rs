//! `tenon token`: manages the bearer tokens of HTTP clients.

use serde_json::{Value, json};
use tenon_contract::clock::{Clock, Entropy};
use tenon_server::token::{Token, TokenFile};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Show, create and revoke tokens for HTTP clients
///
/// Clients of `tenon serve --http` send `Authorization: Bearer TOKEN`. Several tokens can be valid at the same time. To
/// replace one without downtime, run `rotate`, distribute the new token, then `revoke` the old one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the newest token, creating one if necessary
    Show {
        /// List the ids of all tokens, without their secrets
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a token and print it; existing tokens stay valid
    Rotate {
        /// Surfaces that the token gives access to [default: all except `edit`]
        #[arg(long, value_delimiter = ',', value_name = "NAME")]
        surface: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token immediately
    Revoke {
        /// Token id, as shown by `tenon token show --all`
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
                invocation.print_data(Value::from(listed).to_string())?;
            } else {
                for token in listed {
                    let surfaces =
                        token.surfaces.map_or("all except edit".to_owned(), |names| names.join(","));
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
        return invocation.print_data(described.to_string());
    }
    invocation.eprint(format!("id: {}", token.id));
    invocation.print(&token.secret)
}

fn describe(token: &Token) -> Value {
    json!({"id": token.id, "created_at": token.created_at, "surfaces": token.surfaces})
}
