//! The packages, installed as a user would: by the install script, by pip and by npm, with neither cargo nor a compiler on
//! `PATH`. They are packed around the debug build, stripped, which takes seconds instead of minutes.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Output, Stdio};

use serde_json::{Value, json};
use tenon_testkit::{Sandbox, program};

use super::*;

/// A Python file with an error that language servers report.
const WORKSPACE: &str =
    "//- tariff.py\ndef price(grams: int) -> int:\n    return grams * 2\n\n\nprice(\"heavy\")\n";

/// Packs the debug build into a folder of the sandbox.
fn pack(sandbox: &Sandbox) -> PathBuf {
    let stripped = sandbox.dir("tmp").join("tenon");
    let mut strip = Command::new("strip");
    output(strip.arg("-o").arg(&stripped).arg(program::tenon())).unwrap();
    let packaging = Packaging {
        binaries: vec![(Target::host().unwrap(), stripped)],
        base_url: None,
        out: sandbox.dir("tmp").join("packages"),
        level: flate2::Compression::fast(),
    };
    packaging.write().unwrap();
    packaging.out
}

/// The only packed file whose name ends so.
fn packed(packages: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(packages).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    assert_eq!(found.len(), 1, "{ending}: {found:?}");
    found[0].clone()
}

/// A folder with links to the tools that an installer may use, for a `PATH` without cargo and compilers.
fn tools_of_a_user(sandbox: &Sandbox) -> PathBuf {
    let bin = sandbox.dir("tmp").join("bin");
    fs::create_dir(&bin).unwrap();
    let tools = [
        "awk",
        "basename",
        "cat",
        "cp",
        "cut",
        "dirname",
        "env",
        "getconf",
        "gzip",
        "ldd",
        "mkdir",
        "mktemp",
        "mv",
        "npm",
        "python3",
        "rm",
        "sed",
        "sh",
        "sha256sum",
        "tar",
        "uname",
    ];
    for name in tools {
        let path = std::env::split_paths(&program::search_path())
            .map(|folder| folder.join(name))
            .find(|path| path.is_file());
        let path = path.unwrap_or_else(|| panic!("{name} is not installed"));
        symlink(path, bin.join(name)).unwrap();
    }
    for name in ["node", "pyright-langserver"] {
        symlink(program::tool(name), bin.join(name)).unwrap();
    }
    bin
}

fn path_of(folders: &[&Path]) -> OsString {
    std::env::join_paths(folders).unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `tenon` of an installation prints its version, and `tenon up` starts a daemon that serves tools and a language server.
fn assert_works(sandbox: &Sandbox, folder: &Path, tools: &Path) {
    let path = path_of(&[folder, tools]);
    let tenon = |arguments: &[&str]| {
        let mut command = sandbox.command("env");
        command.arg("tenon").args(arguments).env("PATH", &path);
        succeed(&mut command)
    };
    assert_eq!(tenon(&["--version"]), format!("tenon {VERSION}\n"));
    let up: Value = serde_json::from_str(&tenon(&["up", "--no-install", "--json"])).unwrap();
    assert_eq!(up["root"], sandbox.root().to_str().unwrap());
    assert!(!up["tools"].as_array().unwrap().is_empty(), "{up:#}");
    let servers = up["servers"].as_array().unwrap();
    assert!(servers.iter().any(|server| server["id"] == "pyright" && server["ready"] == true), "{up:#}");
    tenon(&["stop"]);
    sandbox.assert_no_processes();
}

/// One test, because packing the program takes longer than installing it.
#[test]
fn packages_install_and_run_without_cargo() {
    let sandbox = Sandbox::new();
    let packages = pack(&sandbox);
    install_script_installs_checked_files_only(&packages);
    wheel_installs_with_pip(&packages);
    npm_package_installs_the_binary_of_this_system(&packages);
}

fn install_script_installs_checked_files_only(packages: &Path) {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    let tools = tools_of_a_user(&sandbox);
    let script = packages.join("install.sh");
    let install = |arguments: &[&str]| {
        let mut command = sandbox.command("sh");
        command.arg(&script).args(arguments).env("PATH", path_of(&[&tools]));
        command
    };
    let from = packages.to_str().unwrap();

    // Refusals come before anything is written.
    let refused = |command: &mut Command, message: &str| {
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{}", text(&output));
        assert!(text(&output).contains(message), "{message}: {}", text(&output));
        assert!(!sandbox.dir("home").join(".local").exists());
    };
    refused(&mut install(&[]), "no address to install from");
    refused(&mut install(&["--prefix"]), "unknown argument `--prefix`");
    refused(install(&["--from", from]).env_remove("HOME"), "`HOME` is not set");
    refused(&mut install(&["--from", "/nowhere"]), "cannot get `SHA256SUMS` from /nowhere");
    let sums = fs::read_to_string(packages.join("SHA256SUMS")).unwrap();
    let archive = packed(packages, ".tar.gz");
    let bytes = fs::read(&archive).unwrap();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&archive, changed).unwrap();
    refused(&mut install(&["--from", from]), "checksum of `tenon-");
    fs::write(&archive, bytes).unwrap();
    fs::write(packages.join("SHA256SUMS"), "").unwrap();
    refused(&mut install(&["--from", from]), "SHA256SUMS does not list `tenon-");
    fs::write(packages.join("SHA256SUMS"), sums).unwrap();

    let printed = succeed(&mut install(&["--from", from]));
    let local = sandbox.dir("home").join(".local");
    assert!(printed.contains(&format!("{}/bin/tenon", local.display())), "{printed}");
    assert!(printed.contains("Add it to your PATH"), "{printed}");
    for file in [
        "share/man/man1/tenon-check.1",
        "share/bash-completion/completions/tenon",
        "share/zsh/site-functions/_tenon",
    ] {
        assert!(local.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    assert_works(&sandbox, &local.join("bin"), &tools);
}

/// The oracle for the format is pip: it checks names, tags and hashes.
fn wheel_installs_with_pip(packages: &Path) {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    let tools = tools_of_a_user(&sandbox);
    let environment = sandbox.dir("home").join("venv");
    succeed(sandbox.command("python3").args(["-m", "venv"]).arg(&environment));
    let pip = || {
        let mut pip = sandbox.command(environment.join("bin/python"));
        pip.args(["-m", "pip", "--disable-pip-version-check"]).env("PATH", path_of(&[&tools]));
        pip
    };
    // By name, so that pip has to accept the tags of the file name.
    succeed(pip().args(["install", "--no-index", "--find-links"]).arg(packages).arg(PACKAGE));
    let shown = succeed(pip().args(["show", "--files", PACKAGE]));
    assert!(shown.contains(&format!("Version: {VERSION}\n")) && shown.contains("bin/tenon"), "{shown}");
    assert_works(&sandbox, &environment.join("bin"), &tools);
}

/// A registry on loopback that serves the packed files, for as long as it is held.
struct Registry(Child, String);

impl Registry {
    fn start(sandbox: &Sandbox, packages: &Path) -> Self {
        let folder = sandbox.dir("tmp").join("registry");
        fs::create_dir(&folder).unwrap();
        let mut server = sandbox.command("python3");
        server.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"]).arg(&folder);
        let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split(['(', ')']).nth(1).unwrap().trim_end_matches('/').to_owned();
        for package in fs::read_dir(packages).unwrap().map(|entry| entry.unwrap().path()) {
            if package.extension().is_none_or(|extension| extension != "tgz") {
                continue;
            }
            let name = package.file_name().unwrap().to_str().unwrap();
            fs::copy(&package, folder.join(name)).unwrap();
            let manifest =
                output(Command::new("tar").arg("-xzOf").arg(&package).arg("package/package.json")).unwrap();
            let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
            manifest["dist"] = json!({"tarball": format!("{address}/{name}")});
            let document = json!({"name": manifest["name"], "dist-tags": {"latest": VERSION}, "versions": {VERSION: manifest}});
            fs::write(folder.join(manifest["name"].as_str().unwrap()), document.to_string()).unwrap();
        }
        Self(server, address)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn npm_package_installs_the_binary_of_this_system(packages: &Path) {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    let tools = tools_of_a_user(&sandbox);
    let registry = Registry::start(&sandbox, packages);
    let prefix = sandbox.dir("home").join("npm");
    let npm = |arguments: &[&str]| {
        let mut npm = sandbox.command("npm");
        npm.args(arguments).args([
            "--registry",
            &registry.1,
            "--no-audit",
            "--no-fund",
            "--global",
            "--prefix",
        ]);
        npm.arg(&prefix);
        npm
    };
    succeed(&mut npm(&["install", PACKAGE]));
    drop(registry);
    // The exit code of the program passes through, with and without `execve`.
    for start in ["", "process.execve = undefined;"] {
        let mut node = sandbox.command(program::tool("node"));
        let preload = sandbox.dir("tmp").join("preload.cjs");
        fs::write(&preload, start).unwrap();
        node.arg("--require").arg(&preload).arg(prefix.join("bin/tenon")).arg("no-such-command");
        let output = node.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains("no-such-command"), "{}", text(&output));
    }
    assert_works(&sandbox, &prefix.join("bin"), &tools);

    // As on a system that has no package.
    let (system, processor) = Target::host().unwrap().npm;
    let platform = format!("lib/node_modules/{PACKAGE}/node_modules/{PACKAGE}-{system}-{processor}");
    fs::remove_dir_all(prefix.join(platform)).unwrap();
    let output = sandbox.command(prefix.join("bin/tenon")).arg("--version").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("is not installed\n  hint: reinstall"), "{}", text(&output));
}

#[test]
fn equal_files_make_equal_packages() {
    let folder = tempfile::tempdir().unwrap();
    let binary = read(Target::host().unwrap(), Path::new("/bin/sh")).unwrap();
    let write = |name: &str| {
        let out = folder.path().join(name);
        fs::create_dir(&out).unwrap();
        wheel::write(&out, &binary, flate2::Compression::fast()).unwrap();
        npm::write_platform(&out, &binary, flate2::Compression::fast()).unwrap();
        npm::write_launcher(&out, std::slice::from_ref(&binary), flate2::Compression::fast()).unwrap();
        checksums(&out).unwrap()
    };
    let files = write("first");
    assert_eq!(files, write("second"));
    assert_eq!(files.len(), 3);
}

#[test]
fn foreign_folder_is_not_emptied() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let packaging = Packaging {
        binaries: vec![],
        base_url: None,
        out: folder.path().to_owned(),
        level: flate2::Compression::fast(),
    };
    let error = packaging.check_replaceable().unwrap_err().to_string();
    assert!(error.contains("choose an empty folder with `--out`"), "{error}");
    assert!(parse_binary("vax-unknown-vms=tenon").unwrap_err().contains("unknown target"));
}
