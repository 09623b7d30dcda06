//! Other names of the binary: a link or copy with such a name is one of its commands.
//!
//! `context` and `mcp-context-server` are what the first implementation of document caches is called, so that scripts
//! and configurations written for it run unchanged.

use std::ffi::OsString;
use std::path::Path;

/// The names, and what each stands for.
const ALIASES: [(&str, &[&str]); 2] =
    [("context", &["context"]), ("mcp-context-server", &["context-server", "--name", "mcp-context-server"])];

/// The command line with the name of the binary spelled out as the command it stands for.
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
    fn names_stand_for_commands() {
        assert_eq!(expanded(&["/usr/bin/context", "build"]), ["tenon", "context", "build"]);
        assert_eq!(
            expanded(&["mcp-context-server"]),
            ["tenon", "context-server", "--name", "mcp-context-server"]
        );
    }

    #[test]
    fn other_names_are_left_alone() {
        for line in [&["tenon", "context", "build"][..], &["./context.sh", "x"], &[]] {
            assert_eq!(expanded(line), line);
        }
    }
}
