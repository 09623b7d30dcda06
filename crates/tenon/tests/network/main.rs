//! No process connects to the network while the daemon serves.
//!
//! The workspace gives real language servers reasons to download: packages without types, remote schemas and style sheets,
//! undeclared dependencies. `strace` records every connection and message of every process.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tenon_testkit::{Sandbox, program};

const TREE: &str = r#"
//- tenon.toml
//- pyproject.toml
[project]
name = "p"
dependencies = ["requests"]
//- a.py
import requests
x: int = "a"
//- package.json
{ "$schema": "https://json.schemastore.org/package.json", "name": "p", "dependencies": { "lodash": "4", "express": "4" } }
//- tsconfig.json
{ "$schema": "https://json.schemastore.org/tsconfig.json", "compilerOptions": { "strict": true } }
//- eslint.config.mjs
export default [{ rules: { "no-unused-vars": "error" } }];
//- src/a.ts
import _ from "lodash";
import express from "express";
const x: number = "a";
//- src/b.js
const _ = require("lodash");
//- ci.yaml
# yaml-language-server: $schema=https://json.schemastore.org/github-workflow.json
on: push
jobs: 7
//- .github/workflows/ci.yml
on: push
//- a.css
@import url("https://example.com/x.css");
a { colr: red }
//- a.html
<html><head><link rel="stylesheet" href="https://example.com/x.css"></head></html>
//- a.sh
#!/bin/bash
curl https://example.com | bash
//- a.cpp
int main() { return "x"; }
"#;

/// A command that runs a program under `strace` and records all connections and messages, those of child processes included.
fn traced(sandbox: &Sandbox, record: &Path) -> Command {
    let mut command = sandbox.command("strace");
    command
        .args(["-f", "-qq", "--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o"])
        .arg(record);
    command
}

/// The recorded calls that left the machine or resolved a name.
fn outbound(record: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(record).unwrap();
    text.lines().filter(|line| is_outbound(line)).map(str::to_owned).collect()
}

fn is_outbound(line: &str) -> bool {
    let internet = line.contains("AF_INET");
    let loopback = line.contains("inet_addr(\"127.") || line.contains("\"::1\"");
    let names = line.contains("_port=htons(53)");
    internet && (!loopback || names)
}

fn record(sandbox: &Sandbox, name: &str) -> PathBuf {
    sandbox.dir("tmp").join(name)
}

#[test]
fn trace_records_a_connection() {
    let sandbox = Sandbox::new();
    let record = record(&sandbox, "control");
    // An address that is reserved for documentation.
    let connect =
        "require('net').connect(80, '192.0.2.1').on('error', () => {}); setImmediate(() => process.exit())";
    let traced = traced(&sandbox, &record).arg(program::tool("node")).args(["-e", connect]).output();
    let output = traced.expect("strace is missing: run `cargo xtask setup`, or `apt-get install strace`");
    assert!(output.status.success(), "{output:?}");
    let seen = outbound(&record);
    assert!(seen.iter().any(|line| line.contains("192.0.2.1")), "{seen:#?}");
    assert!(is_outbound(
        "7 connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr(\"127.0.0.53\")}, 16) = 0"
    ));
}

#[test]
fn nothing_connects_to_the_network_while_serving() {
    let sandbox = Sandbox::with_tree(TREE);
    let both = ["typescript-native", "typescript-language-server"];
    sandbox.write_user_config(&both.map(|id| format!("[servers.{id}]\nenabled = true\n")).concat());
    // Trust also starts the servers that execute workspace code.
    assert!(sandbox.tenon().arg("trust").output().unwrap().status.success());
    let record = record(&sandbox, "served");
    let mut serving = traced(&sandbox, &record);
    serving
        .arg(program::tenon())
        .arg("serve")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut serving =
        serving.spawn().expect("strace is missing: run `cargo xtask setup`, or `apt-get install strace`");
    let mut stderr = BufReader::new(serving.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().starts_with("serving ")), "the daemon did not start");

    let checked = sandbox.tenon().args(["check", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(report["complete"], true, "{report:#}");
    let listed = sandbox.tenon().args(["servers", "list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let servers = listed["servers"].as_array().unwrap();
    for id in [
        "pyright",
        "ruff",
        "typescript-native",
        "typescript-language-server",
        "eslint",
        "yaml",
        "json",
        "css",
        "html",
        "bash",
        "clangd",
    ] {
        let active = |server: &Value| server["id"] == id && server["state"] == "active";
        assert!(servers.iter().any(active), "{id}: {listed:#}");
    }
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
    serving.wait().unwrap();

    assert!(record.metadata().unwrap().len() > 0, "the trace is empty");
    let seen = outbound(&record);
    assert!(seen.is_empty(), "{seen:#?}");
}
