//! Files that edits never change, whatever the user allowed: they decide what runs on the user's machine, or who may do what.
//!
//! Names are compared case-insensitively, without trailing dots and invisible characters, since some file systems treat such
//! names as equal.

use camino::{Utf8Component, Utf8Path};

const GIT: &str = "version control owns this file";
const TENON: &str = "Tenon's settings decide what may run here";
const AGENT: &str = "agent configuration decides what may run";
const EDITOR: &str = "editor configuration decides what runs";
const HOOKS: &str = "hook configuration decides what git runs";
const SERVER: &str = "it configures what language servers run or write";
const STATE: &str = "Tenon keeps its own state there";

/// Protected paths of one or two names, at any depth, with the reason. A name may have one `*`.
const TABLE: &[(&str, &str)] = &[
    (".git", GIT),
    (".gitmodules", GIT),
    (".jj", GIT),
    (".hg", GIT),
    (".svn", GIT),
    (".bzr", GIT),
    ("tenon.toml", TENON),
    (".agents", AGENT),
    (".aider.conf.yml", AGENT),
    (".amazonq", AGENT),
    (".amp", AGENT),
    (".augment", AGENT),
    (".claude", AGENT),
    (".claude.json", AGENT),
    (".cline", AGENT),
    (".clinerules", AGENT),
    (".codex", AGENT),
    (".continue", AGENT),
    (".copilot", AGENT),
    (".crush", AGENT),
    (".crush.json", AGENT),
    (".cursor", AGENT),
    (".cursorrules", AGENT),
    (".factory", AGENT),
    (".gemini", AGENT),
    (".goose", AGENT),
    (".github/hooks", AGENT),
    (".junie", AGENT),
    (".kilocode", AGENT),
    (".kiro", AGENT),
    (".mcp.json", AGENT),
    (".opencode", AGENT),
    (".qwen", AGENT),
    (".roo", AGENT),
    (".roomodes", AGENT),
    (".trae", AGENT),
    (".windsurf", AGENT),
    (".windsurfrules", AGENT),
    ("crush.json", AGENT),
    ("mcp.json", AGENT),
    ("opencode.json", AGENT),
    ("opencode.jsonc", AGENT),
    ("*.code-workspace", EDITOR),
    (".devcontainer", EDITOR),
    (".devcontainer.json", EDITOR),
    (".dir-locals*", EDITOR),
    (".envrc", EDITOR),
    (".exrc", EDITOR),
    (".fleet", EDITOR),
    (".helix", EDITOR),
    (".idea", EDITOR),
    (".nvim.lua", EDITOR),
    (".nvimrc", EDITOR),
    (".vimrc", EDITOR),
    (".vscode", EDITOR),
    (".zed", EDITOR),
    (".githooks", HOOKS),
    (".husky", HOOKS),
    (".lefthook*", HOOKS),
    (".pre-commit-config.y*", HOOKS),
    ("lefthook.*", HOOKS),
    ("lefthook-local.*", HOOKS),
    (".cargo/config*", SERVER),
    (".clangd", SERVER),
    ("compile_commands.json", SERVER),
    ("compile_flags.txt", SERVER),
    ("rust-project.json", SERVER),
];

/// The entries that identify a git directory of any name.
const GIT_FOLDER: [&str; 3] = ["HEAD", "objects", "refs"];

/// Why a file may not be changed, if it may not. `real` is its real path below the real path `root`; `asked` is the requested
/// path below the root, with links. `own_paths` are Tenon's own files and folders.
pub(super) fn reason(
    root: &Utf8Path,
    real: &Utf8Path,
    asked: &Utf8Path,
    own_paths: &[camino::Utf8PathBuf],
) -> Option<&'static str> {
    if own_paths.iter().any(|own| *own != root && real.starts_with(own)) {
        return Some(STATE);
    }
    let below = real.strip_prefix(root).ok()?;
    named(below).or_else(|| named(asked)).or_else(|| {
        let mut folders = below.ancestors().skip(1);
        folders.any(|folder| is_git_folder(&root.join(folder), real)).then_some(GIT)
    })
}

/// Why a path is protected by its names.
fn named(path: &Utf8Path) -> Option<&'static str> {
    let names: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Utf8Component::Normal(name) => Some(folded(name)),
            _ => None,
        })
        .collect();
    let fits = |pattern: &str| {
        let wanted: Vec<&str> = pattern.split('/').collect();
        names
            .windows(wanted.len())
            .any(|names| names.iter().zip(&wanted).all(|(name, wanted)| matches(wanted, name)))
    };
    TABLE.iter().find(|(pattern, _)| fits(pattern)).map(|(_, why)| *why)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
        None => name == pattern,
    }
}

/// A name as the most tolerant file system compares it.
fn folded(name: &str) -> String {
    let visible = name.chars().filter(|one| !is_ignored(*one));
    // Upper case first: `ſ` has no lower case, but is the same letter as `s`.
    let visible: String = visible.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    // An NTFS stream, and the NTFS short name of `.git`.
    let file = visible.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    if file == "git~1" { ".git".to_owned() } else { file.to_owned() }
}

/// Characters that HFS+ ignores in names.
fn is_ignored(one: char) -> bool {
    matches!(one, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Whether a folder is a git directory, or becomes one when `written` is there.
fn is_git_folder(folder: &Utf8Path, written: &Utf8Path) -> bool {
    let part = |name: &str| folder.join(name);
    GIT_FOLDER.iter().all(|name| written.starts_with(part(name)) || part(name).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(path: &str) -> Option<&'static str> {
        let root = Utf8Path::new("/nowhere/root");
        reason(root, &root.join(path), Utf8Path::new(path), &["/nowhere/root/state".into()])
    }

    #[test]
    fn protected_names_match_at_any_depth_and_in_any_case() {
        for path in [
            ".git/hooks/pre-commit",
            "sub/.git",
            ".GIT/config",
            "a/.Git./config",
            ".g\u{200c}it/config",
            "git~1/config",
            ".git::$INDEX_ALLOCATION/config",
            "tenon.toml",
            "packages/x/Tenon.TOML",
            ".claude/settings.json",
            ".mcp.json",
            ".cursor/mcp.json",
            ".vscode/settings.json",
            ".v\u{17f}code/settings.json",
            "app.code-workspace",
            ".dir-locals.el",
            ".devcontainer/devcontainer.json",
            "lefthook.toml",
            ".lefthook-local.yml",
            ".clangd",
            "build/compile_commands.json",
            ".cargo/config.toml",
            ".github/hooks/x.json",
            ".husky/pre-commit",
            "state/trust/x",
        ] {
            assert!(why(path).is_some(), "{path}");
        }
    }

    #[test]
    fn other_files_are_not_protected() {
        for path in [
            "src/git.rs",
            ".gitignore",
            ".github/workflows/ci.yml",
            "hooks/a.ts",
            "git/x",
            "docs/tenon.toml.md",
            "CLAUDE.md",
            "AGENTS.md",
            "stateful/x",
            "lefthook/a.ts",
            ".cargo/readme",
            "code-workspace",
        ] {
            assert_eq!(why(path), None, "{path}");
        }
    }

    #[test]
    fn target_of_a_protected_link_is_protected() {
        let root = Utf8Path::new("/nowhere/root");
        let asked = Utf8Path::new(".claude/settings.json");
        assert_eq!(reason(root, &root.join("dotfiles/settings.json"), asked, &[]), Some(AGENT));
    }

    #[test]
    fn bare_repository_is_recognized_by_its_entries() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["bare/objects", "bare/refs", "bare/hooks"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let hook = root.join("bare/hooks/update");
        let asked = Utf8Path::new("bare/hooks/update");
        assert_eq!(reason(root, &hook, asked, &[]), None);
        // The last part that is missing.
        assert_eq!(reason(root, &root.join("bare/HEAD"), Utf8Path::new("bare/HEAD"), &[]), Some(GIT));
        std::fs::write(root.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(reason(root, &hook, asked, &[]), Some(GIT));
    }
}
