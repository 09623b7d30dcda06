//! rustup's proxies: programs in `~/.cargo/bin` that are rustup itself and fail if the component is not installed.
//!
//! We read rustup's folder instead of running rustup, which might install the toolchain that a file in the workspace
//! names. The component of any toolchain works: the workspace's own is preferred, then the default one, then the first by
//! name.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use tenon_contract::regular_file;

use super::search_path::is_program;
use super::virtualenv::up_to;

#[derive(Deserialize)]
struct Settings {
    default_toolchain: Option<String>,
}

#[derive(Deserialize)]
struct ToolchainFile {
    toolchain: Toolchain,
}

#[derive(Deserialize)]
struct Toolchain {
    channel: Option<String>,
}

/// `$RUSTUP_HOME`, or `~/.rustup`.
pub(super) fn home_from_env() -> Option<Utf8PathBuf> {
    let from = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    from("RUSTUP_HOME")
        .map(Utf8PathBuf::from)
        .or_else(|| from("HOME").map(|home| Utf8PathBuf::from(home).join(".rustup")))
}

/// Whether a program is rustup under another name, by a symbolic or a hard link.
pub(super) fn is_proxy(path: &Utf8Path, real: &Utf8Path) -> bool {
    if real.file_name() == Some("rustup") {
        return true;
    }
    is_same(path, &path.with_file_name("rustup"))
}

#[cfg(unix)]
fn is_same(one: &Utf8Path, other: &Utf8Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Hard links are not detected on other systems.
#[cfg(not(unix))]
fn is_same(_: &Utf8Path, _: &Utf8Path) -> bool {
    false
}

/// The real program behind a proxy.
pub(super) fn component(
    home: &Utf8Path,
    command: &str,
    project: &Utf8Path,
    root: &Utf8Path,
) -> Option<Utf8PathBuf> {
    let programs =
        toolchains(home, project, root)?.into_iter().map(|folder| folder.join("bin").join(command));
    programs.into_iter().find(|path| is_program(path))
}

/// The folders of all toolchains: the workspace's own, then the default one, then the others by name.
fn toolchains(home: &Utf8Path, project: &Utf8Path, root: &Utf8Path) -> Option<Vec<Utf8PathBuf>> {
    let toolchains = home.join("toolchains");
    let mut names: Vec<String> = toolchains
        .read_dir_utf8()
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_owned()))
        .collect();
    names.sort();
    let wished = [named_by_workspace(project, root), default_toolchain(home)];
    names.sort_by_key(|name| {
        wished
            .iter()
            .position(|wish| wish.as_deref().is_some_and(|wish| is_named(name, wish)))
            .unwrap_or(wished.len())
    });
    Some(names.into_iter().map(|name| toolchains.join(name)).collect())
}

/// `stable` names `stable-x86_64-unknown-linux-gnu`.
fn is_named(name: &str, wish: &str) -> bool {
    name.strip_prefix(wish).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn default_toolchain(home: &Utf8Path) -> Option<String> {
    let text = fs_err::read_to_string(home.join("settings.toml")).ok()?;
    toml::from_str::<Settings>(&text).ok()?.default_toolchain
}

fn read_small(path: &Utf8Path) -> Option<String> {
    String::from_utf8(regular_file::read(path, 64 * 1024).ok()?).ok()
}

fn named_by_workspace(project: &Utf8Path, root: &Utf8Path) -> Option<String> {
    up_to(project, root).find_map(|folder| {
        ["rust-toolchain.toml", "rust-toolchain"]
            .iter()
            .find_map(|name| read_small(&folder.join(name)))
            .and_then(|text| match toml::from_str::<ToolchainFile>(&text) {
                Ok(file) => file.toolchain.channel,
                // The legacy format is the bare name.
                Err(_) => text.lines().next().map(|line| line.trim().to_owned()),
            })
    })
}
