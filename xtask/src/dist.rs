//! `cargo xtask dist`: builds everything that a release publishes.
//!
//! The packages are made around finished binaries: built here with the `dist` profile, or given with `--binary`, so that
//! one Linux machine packs the binaries of every system. The bytes of a package depend on the files in it and on nothing
//! else (decision 0810).

mod archive;
mod elf;
mod install_script;
#[cfg(test)]
mod install_tests;
mod npm;
mod sbom;
mod target;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::shell::{Error, cargo, heading, print, repository, run_checked};
use archive::{Entry, write_tar_gz};
use target::Target;

/// The version of all crates and packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a package says about Tenon.
const SUMMARY: &str = "Connects coding agents to a workspace";

/// The name on PyPI and npm, where `tenon` is taken. The program in it is `tenon`.
const PACKAGE: &str = "tenon-mcp";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pack this binary instead of building one, such as `aarch64-apple-darwin=path/tenon`; may be repeated
    #[arg(long, value_name = "TARGET=PATH", value_parser = parse_binary)]
    binary: Vec<(&'static Target, PathBuf)>,
    /// Where the files will be published: the install script downloads from there
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Folder for the packages; emptied first
    #[arg(long, value_name = "DIR", default_value = "target/packages")]
    out: PathBuf,
}

fn parse_binary(text: &str) -> Result<(&'static Target, PathBuf), String> {
    let (triple, path) = text.split_once('=').ok_or("expected TARGET=PATH")?;
    let target = Target::find(triple).map_err(|error| error.to_string())?;
    Ok((target, PathBuf::from(path)))
}

pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    let binaries = match options.binary.is_empty() {
        true => vec![(Target::host()?, build()?)],
        false => options.binary.clone(),
    };
    heading("packages");
    let packaging = Packaging {
        binaries,
        base_url: options.base_url.clone(),
        out: repository().join(&options.out),
        level: flate2::Compression::best(),
    };
    for file in packaging.write()? {
        print(&file);
    }
    Ok(true)
}

/// Builds the binary of this machine.
fn build() -> Result<PathBuf, Error> {
    heading("dist build");
    run_checked(cargo().args(["build", "--locked", "--profile", "dist", "--package", "tenon"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(repository().join(target).join("dist/tenon"))
}

/// The packages of one release.
struct Packaging {
    binaries: Vec<(&'static Target, PathBuf)>,
    base_url: Option<String>,
    out: PathBuf,
    level: flate2::Compression,
}

/// A binary and what its packages need to know about it.
struct Binary {
    target: &'static Target,
    bytes: Vec<u8>,
    /// The oldest glibc that it runs with.
    glibc: Option<elf::GlibcVersion>,
}

impl Packaging {
    /// Writes all packages. Returns a line per file: size and name.
    fn write(&self) -> Result<Vec<String>, Error> {
        let binaries =
            self.binaries.iter().map(|(target, path)| read(target, path)).collect::<Result<Vec<_>, _>>()?;
        let manual = self.manual()?;
        if self.out.exists() {
            self.check_replaceable()?;
            fs::remove_dir_all(&self.out)?;
        }
        fs::create_dir_all(&self.out)?;
        for binary in &binaries {
            let name = archive_name(binary.target);
            let mut entries = vec![Entry::program(binary.target.program(), binary.bytes.clone())];
            for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
                entries.push(Entry::file(file, fs::read(repository().join(file))?));
            }
            entries.extend(manual.iter().cloned());
            write_tar_gz(&self.out.join(format!("{name}.tar.gz")), &name, entries, self.level)?;
            let sbom = sbom::write(binary.target.triple)?;
            fs::write(self.out.join(format!("{name}.cdx.json")), sbom)?;
            wheel::write(&self.out, binary, self.level)?;
            npm::write_platform(&self.out, binary, self.level)?;
        }
        npm::write_launcher(&self.out, &binaries, self.level)?;
        let script = install_script::text(&binaries, self.base_url.as_deref())?;
        fs::write(self.out.join("install.sh"), script)?;
        let files = checksums(&self.out)?;
        let sums: String = files.iter().map(|(name, sum, _)| format!("{sum}  {name}\n")).collect();
        fs::write(self.out.join("SHA256SUMS"), sums)?;
        let mut lines: Vec<String> = binaries.iter().map(describe).collect();
        lines.extend(files.iter().map(|(name, _, size)| format!("{:>7.1} MB  {name}", megabytes(*size))));
        Ok(lines)
    }

    /// A folder that is not ours is not emptied.
    fn check_replaceable(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.out)?.collect::<Result<Vec<_>, _>>()?;
        if entries.is_empty() || self.out.join("SHA256SUMS").is_file() {
            return Ok(());
        }
        let what = format!("{} contains files that this command did not write", self.out.display());
        Err(Error::new(what).hint("choose an empty folder with `--out`"))
    }

    /// Completions and manual pages, printed by a binary that runs on this machine. They are the same for every system.
    fn manual(&self) -> Result<Vec<Entry>, Error> {
        let host = Target::host()?;
        let Some((_, program)) = self.binaries.iter().find(|(target, _)| target.triple == host.triple) else {
            let what = format!("no binary for {}, which prints completions and manual pages", host.triple);
            return Err(Error::new(what).hint(format!("add `--binary {}=PATH`", host.triple)));
        };
        let mut entries = Vec::new();
        for (shell, file) in
            [("bash", "tenon.bash"), ("zsh", "_tenon"), ("fish", "tenon.fish"), ("powershell", "tenon.ps1")]
        {
            let script = output(Command::new(program).args(["completions", shell]))?;
            entries.push(Entry::file(&format!("completions/{file}"), script));
        }
        let folder = tempfile::tempdir()?;
        output(Command::new(program).arg("man").arg(folder.path()))?;
        for page in fs::read_dir(folder.path())? {
            let page = page?;
            let name = page.file_name().to_string_lossy().into_owned();
            entries.push(Entry::file(&format!("man/man1/{name}"), fs::read(page.path())?));
        }
        Ok(entries)
    }
}

/// The name of a target's archive and of the folder in it.
fn archive_name(target: &Target) -> String {
    format!("tenon-{VERSION}-{}", target.triple)
}

fn read(target: &'static Target, path: &Path) -> Result<Binary, Error> {
    let bytes =
        fs::read(path).map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))?;
    let glibc = match target.is_linux() {
        true => Some(elf::needed_glibc(&bytes).map_err(|problem| {
            Error::new(format!("{} is not a Linux program: {problem}", path.display()))
        })?),
        false => None,
    };
    Ok(Binary { target, bytes, glibc })
}

fn describe(binary: &Binary) -> String {
    let needs = binary.glibc.map(|version| format!(", needs glibc {version}")).unwrap_or_default();
    format!(
        "{:>7.1} MB  {} ({}{needs})",
        megabytes(binary.bytes.len() as u64),
        binary.target.program(),
        binary.target.triple
    )
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Name, SHA-256 and size of each file in a folder, sorted by name.
fn checksums(folder: &Path) -> Result<Vec<(String, String, u64)>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let bytes = fs::read(entry.path())?;
        files.push((
            entry.file_name().to_string_lossy().into_owned(),
            hex(&Sha256::digest(&bytes)),
            bytes.len() as u64,
        ));
    }
    files.sort();
    Ok(files)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a command and returns its stdout.
fn output(command: &mut Command) -> Result<Vec<u8>, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::new(format!("cannot run `{program}`: {error}")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("`{program}` failed: {}", message.trim())));
    }
    Ok(output.stdout)
}
