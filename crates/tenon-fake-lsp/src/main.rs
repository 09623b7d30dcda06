//! Runs a script as a language server on stdin and stdout.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tenon_fake_lsp::{Script, serve};

/// A scriptable fake language server.
#[derive(Parser)]
struct Args {
    /// The script, a JSON file
    #[arg(long)]
    script: PathBuf,
    /// Where to write received messages, one JSON object per line
    #[arg(long)]
    transcript: Option<PathBuf>,
    /// Accepted and ignored: many servers require it
    #[arg(long)]
    stdio: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let script = match std::fs::read(&args.script).map(|text| serde_json::from_slice::<Script>(&text)) {
        Ok(Ok(script)) => script,
        Ok(Err(error)) => {
            eprintln!("{}: {error}", args.script.display());
            return ExitCode::from(2);
        }
        Err(error) => {
            eprintln!("{}: {error}", args.script.display());
            return ExitCode::from(2);
        }
    };
    let code = serve(script, tokio::io::stdin(), tokio::io::stdout(), args.transcript).await;
    // A thread that reads stdin cannot be stopped.
    std::process::exit(code)
}
