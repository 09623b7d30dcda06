//! Answers to questions by symbol name, for people: the text that agents get, with colours, links and a pager.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::Utf8Path;
use tenon_code::explore::ExploreRequest;
use tenon_contract::root::RootGate;
use tenon_server::daemon::DaemonError;
use tenon_server::daemon::protocol::{DaemonRequest, DaemonResponse};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::styled_text::StyledText;

/// How long an answer may take, the start of the daemon and of a language server included.
const TIMEOUT: Duration = Duration::from_secs(100);

/// People scroll, so they get the largest answer.
pub(crate) const MAX_BYTES: usize = tenon_code::explore::MAX_BYTES;

/// Asks the daemon and shows the answer. Exits with 1 if there is none.
pub(crate) fn ask(request: ExploreRequest, invocation: &mut Invocation) -> Result<Exit, Failure> {
    ask_daemon(DaemonRequest::Explore(request), invocation)
}

/// As [`ask`], for any request that is answered with text.
pub(crate) fn ask_daemon(request: DaemonRequest, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let response = daemon_client::request_or_start(invocation, &root, request, TIMEOUT)?;
    match response {
        DaemonResponse::Explored(text) => {
            show(&text, &root, invocation)?;
            Ok(Exit::Success)
        }
        DaemonResponse::NotExplored(why) => {
            invocation.eprint(why);
            Ok(Exit::No)
        }
        _ => Err(DaemonError::InvalidResponse.into()),
    }
}

fn show(text: &str, root: &Utf8Path, invocation: &mut Invocation) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        return invocation.print_lines(text);
    }
    let styled = styled(text, root);
    match page(&styled, invocation) {
        true => Ok(()),
        false => invocation.print_styled(&styled),
    }
}

/// Shows a text in the user's pager. `false` if there is none.
fn page(text: &StyledText, invocation: &Invocation) -> bool {
    let pager = invocation.environment.get("PAGER").unwrap_or("less");
    if pager.is_empty() || pager == "cat" {
        return false;
    }
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if invocation.environment.get("LESS").is_none() {
        // Quit if the text fits one screen, show colours, leave the text on the screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut running) = command.spawn() else {
        return false;
    };
    if let Some(mut input) = running.stdin.take() {
        // A pager that is left early closes its input.
        let _ = input.write_all(text.as_str().as_bytes());
    }
    running.wait().is_ok_and(|status| status.success())
}

/// Colours places and links them to their files.
fn styled(text: &str, root: &Utf8Path) -> StyledText {
    let gate = RootGate::new([root]).ok();
    let uri = |path: &str| Some(gate.as_ref()?.admit_path(root.join(path)).ok()?.uri().as_str().to_owned());
    let mut styled = StyledText::default();
    let mut file: Option<String> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let indent = &line[..line.len() - bare.len()];
        let (number, rest) = bare.split_at(bare.find(|c: char| !c.is_ascii_digit()).unwrap_or(bare.len()));
        if let (Some(uri), false, false) = (&file, number.is_empty(), indent.is_empty()) {
            styled.linked_line(indent, number, uri, rest);
            continue;
        }
        file = uri(line);
        if let Some(uri) = &file {
            styled.linked_line("", line, uri, "");
            continue;
        }
        // `method QuerySet.filter django/db/models/query.py:1475-1481  def filter(…)`
        let place = line.split(' ').find_map(|word| {
            let path = word.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | ':'));
            Some((word, uri(path).filter(|_| path.len() < word.len())?))
        });
        match place.and_then(|(word, uri)| Some((line.split_once(word)?, word, uri))) {
            Some(((before, after), word, uri)) => styled.linked_line(before, word, &uri, after),
            None => styled.line(line),
        }
    }
    styled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_linked_and_everything_else_is_visible() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::write(root.join("a.py"), "x = 1\n").unwrap();
        let text =
            "f: 1 references in 1 files\na.py\n  1 in f: x = \u{1b}[31m1\nfunction f a.py:1-2  def f()";
        let styled = styled(text, &root);
        let link = format!("\u{1b}]8;;file://{root}/a.py\u{1b}\\");
        assert_eq!(styled.as_str().matches(&link).count(), 3, "{}", styled.as_str());
        assert!(!styled.as_str().contains("\u{1b}[31m1"));
    }
}
