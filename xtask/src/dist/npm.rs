//! The npm packages: one per system with the program, and one that depends on all of them and starts the right one.
//!
//! npm installs only the optional dependencies whose `os`, `cpu` and `libc` fit.

use std::fs;
use std::path::Path;

use flate2::Compression;
use serde_json::{Map, Value, json};

use super::archive::{Entry, write_tar_gz};
use super::target::Target;
use super::{Binary, PACKAGE, SUMMARY, VERSION};
use crate::shell::{Error, repository};

/// The package of one system.
pub(super) fn write_platform(out: &Path, binary: &Binary, level: Compression) -> Result<(), Error> {
    let (os, cpu) = binary.target.npm;
    let name = platform_package(binary.target);
    let mut manifest = manifest(&name, &format!("The {os}-{cpu} binary of {PACKAGE}"));
    manifest.insert("os".to_owned(), json!([os]));
    manifest.insert("cpu".to_owned(), json!([cpu]));
    if binary.target.is_linux() {
        manifest.insert("libc".to_owned(), json!(["glibc"]));
    }
    let readme = format!(
        "# {name}\n\nThe program of [{PACKAGE}](https://www.npmjs.com/package/{PACKAGE}) for {os}-{cpu}. Install that package instead.\n"
    );
    let program = Entry::program(&format!("bin/{}", binary.target.program()), binary.bytes.clone());
    write(out, &name, manifest, vec![program, Entry::file("README.md", readme)], level)
}

/// The package that users install.
pub(super) fn write_launcher(out: &Path, binaries: &[Binary], level: Compression) -> Result<(), Error> {
    let mut manifest = manifest(PACKAGE, SUMMARY);
    let platforms = binaries.iter().map(|binary| (platform_package(binary.target), json!(VERSION)));
    manifest.insert("bin".to_owned(), json!({"tenon": "bin/tenon.js"}));
    manifest.insert("engines".to_owned(), json!({"node": ">=18"}));
    manifest.insert("optionalDependencies".to_owned(), Value::Object(platforms.collect()));
    let packaging = repository().join("packaging");
    let entries = vec![
        Entry::program("bin/tenon.js", fs::read(packaging.join("npm/tenon.js"))?),
        Entry::file("README.md", fs::read(packaging.join("package-readme.md"))?),
    ];
    write(out, PACKAGE, manifest, entries, level)
}

fn platform_package(target: &Target) -> String {
    format!("{PACKAGE}-{}-{}", target.npm.0, target.npm.1)
}

fn manifest(name: &str, description: &str) -> Map<String, Value> {
    let manifest = json!({
        "name": name,
        "version": VERSION,
        "description": description,
        "license": "MIT OR Apache-2.0",
    });
    match manifest {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn write(
    out: &Path,
    name: &str,
    manifest: Map<String, Value>,
    mut entries: Vec<Entry>,
    level: Compression,
) -> Result<(), Error> {
    entries.push(Entry::file("package.json", format!("{:#}\n", Value::Object(manifest))));
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        entries.push(Entry::file(license, fs::read(repository().join(license))?));
    }
    write_tar_gz(&out.join(format!("{name}-{VERSION}.tgz")), "package", entries, level)
}
