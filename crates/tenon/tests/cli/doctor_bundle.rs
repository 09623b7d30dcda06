//! `tenon doctor --bundle`: what the archive contains, and what it must not contain.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};

use flate2::read::GzDecoder;
use tenon_testkit::Sandbox;

use crate::{json, tenon, transcript};

const SECRETS: [&str; 5] = [
    "hunter2",
    "tok-0123456789abcdef",
    "ghp_0123456789abcdefABCDEF0123456789abcd",
    "sk-ant-api03-0123456789abcdef",
    "correct-horse-battery",
];

fn archive(path: &std::path::Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).unwrap()));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (name, text)
    });
    entries.collect()
}

#[test]
fn bundle_contains_the_facts_and_no_planted_secret() {
    let sandbox = Sandbox::with_tree("//- notes.txt\nx\n");
    sandbox.write_user_config(&format!(
        "[work]\nstore = \"postgres://ada:{}@localhost/db\"\n[servers.mine]\ncommand = \"{}/bin/mine\"\nextensions = [\".mine\"]\n\
         env = {{ API_TOKEN = \"{}\" }}\n",
        SECRETS[0],
        sandbox.dir("home").display(),
        SECRETS[1],
    ));
    assert!(tenon(&sandbox, &["restart"]).status.success());
    let log = json(&sandbox, &["status", "--json"])["log"].as_str().unwrap().to_owned();
    let mut log = fs::OpenOptions::new().append(true).open(log).unwrap();
    let home = sandbox.dir("home");
    writeln!(log, r#"{{"fields":{{"message":"cloned {}","path":"{}/w"}}}}"#, SECRETS[2], home.display())
        .unwrap();
    writeln!(log, "ada said {} and password: {}", SECRETS[3], SECRETS[4]).unwrap();
    drop(log);

    let doctor = |args: &[&str]| {
        let mut command = sandbox.tenon();
        command.args(["doctor", "--bundle"]).args(args).env("USER", "ada");
        transcript(&sandbox, &mut command)
    };
    let said = doctor(&["report.tar.gz"]);
    assert!(said.contains("written: report.tar.gz\n  doctor.txt: the checks above\n"), "{said}");
    assert!(said.contains("hint: secrets, your home folder and your name are replaced"), "{said}");
    let files = archive(&sandbox.root().join("report.tar.gz"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["README.txt", "daemon.log", "doctor.txt", "settings.json", "status.json"]
            .map(|name| format!("tenon-doctor/{name}"))
    );
    for (name, text) in &files {
        for planted in SECRETS.into_iter().chain(["ada", home.to_str().unwrap()]) {
            assert!(!text.contains(planted), "{name} contains `{planted}`: {text}");
        }
    }
    assert!(files["tenon-doctor/README.txt"].contains("settings.json: all settings and their origins"));
    assert!(files["tenon-doctor/doctor.txt"].contains("ok       version: "));
    let settings = &files["tenon-doctor/settings.json"];
    assert!(settings.contains("postgres://USER:[redacted]@localhost/db"), "{settings}");
    assert!(settings.contains("~/bin/mine") && settings.contains("\"origin\""), "{settings}");
    let log = &files["tenon-doctor/daemon.log"];
    assert!(log.contains("serving") && log.contains("\"path\":\"~/w\""), "{log}");
    assert!(log.contains("USER said [redacted] and password: [redacted]"), "{log}");
    assert!(files["tenon-doctor/status.json"].contains("\"pid\""));

    let again = doctor(&["report.tar.gz"]);
    assert!(again.starts_with("exit: 6") && again.contains("error: `report.tar.gz` exists"), "{again}");
    let nowhere = doctor(&["nowhere/report.tar.gz"]);
    assert!(nowhere.contains("error: there is no folder `nowhere`"), "{nowhere}");
    assert!(tenon(&sandbox, &["stop"]).status.success());
}

#[test]
fn bundle_outside_of_a_readable_workspace_says_why() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n[http]\nport = \"many\"\n");
    let output = tenon(&sandbox, &["doctor", "--bundle", "report.tar.gz"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let files = archive(&sandbox.root().join("report.tar.gz"));
    assert!(files["tenon-doctor/settings.json"].contains("http.port"), "{files:?}");
    assert!(files["tenon-doctor/status.json"].contains("\"running\": false"), "{files:?}");
}
