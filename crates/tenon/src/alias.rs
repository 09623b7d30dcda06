//! Aliases of the binary: a link or copy with one of these names runs the matching command.
//!
//! `context` and `mcp-context-server` are the program names of the first implementation of document caches. Scripts and
//! configurations written for it run unchanged.

use std::ffi::OsString;
use std::path::Path;

/// Each program name, and the arguments it expands to.
const ALIASES: [(&str, &[&str]); 2] =
    [("context", &["context"]), ("mcp-context-server", &["context-server", "--name", "mcp-context-server"])];

/// Replaces an alias in `line[0]` with `tenon` and the command.
pub(crate) fn expand(mut line: Vec<OsString>) -> Vec<OsString> {
    let name = line.first().and_then(|program| Path::new(program).file_name());
    let alias = ALIASES.iter().find(|(alias, _)| name.is_some_and(|name| name == *alias));
    if let Some((_, command)) = alias {
        line.splice(..1, ["tenon"].iter().chain(*command).map(OsString::from));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &[&str]) -> Vec<OsString> {
        expand(line.iter().map(OsString::from).collect())
    }

    #[test]
    fn alias_expands_to_its_command() {
        assert_eq!(expanded(&["/usr/bin/context", "build"]), ["tenon", "context", "build"]);
        assert_eq!(
            expanded(&["mcp-context-server"]),
            ["tenon", "context-server", "--name", "mcp-context-server"]
        );
    }

    #[test]
    fn other_program_names_are_unchanged() {
        for line in [&["tenon", "context", "build"][..], &["./context.sh", "x"], &[]] {
            assert_eq!(expanded(line), line);
        }
    }
}
