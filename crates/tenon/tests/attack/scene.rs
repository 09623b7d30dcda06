//! Plays an attack: prepares the repository, runs every command in it, and collects what must not have happened.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenon_testkit::{McpClient, PATIENCE, Sandbox, code_tools, processes, program};

use crate::attack::Attack;
use crate::trace::{MARK, Rules, traced};

/// In every file of the user that the attack must not reach.
const SECRET: &str = "swordfish-7d1f";
/// Files of the home folder, with the forms that servers would quote in a diagnostic.
const SECRETS: [&str; 7] = [
    ".ssh/id_ed25519",
    ".netrc",
    ".aws/credentials",
    "secret.json",
    "secret.c",
    "secret.py",
    "code/secret.toml",
];
/// The time limit of `tenon check`, in seconds: a repository may make a server hang.
const WAIT: &str = "60";
/// Longer than every time limit of Tenon; a command that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(240);
/// Peak memory of the daemon, with debug code. The largest measured one is about a fifth.
const MEMORY_KIB: u64 = 1024 * 1024;
/// The git remote of another project of the user, which has a plan.
const REMOTE: &str = "https://example.org/victim/notes.git";

pub struct Scene {
    attack: Attack,
    sandbox: Sandbox,
    rules: Rules,
    violations: Vec<String>,
    commands: usize,
}

/// What a command left behind.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Scene {
    pub fn new(attack: Attack) -> Self {
        let sandbox = Sandbox::new();
        let home = sandbox.dir("home");
        for secret in SECRETS {
            let path = home.join(secret);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{{\"token\": {SECRET}}}\n")).unwrap();
        }
        let secrets = SECRETS.iter().map(|secret| home.join(secret)).collect();
        fs::create_dir(sandbox.folder().join("trace")).unwrap();
        let rules = Rules::new(&sandbox, secrets);
        let scene = Self { attack, sandbox, rules, violations: Vec::new(), commands: 0 };
        scene.plant_notes();
        scene.fill();
        scene
    }

    /// Another project of the user, with a plan in the store.
    fn plant_notes(&self) {
        let project = self.sandbox.dir("home").join("code/notes");
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::write(project.join(".git/config"), format!("[remote \"origin\"]\n\turl = {REMOTE}\n")).unwrap();
        let mut command = self.sandbox.tenon();
        command.args(["mcp", "--no-daemon", "--surface", "tasks", "--root"]).arg(&project);
        let created =
            McpClient::connect(&mut command).call_tool("tasks_create", json!({ "title": SECRET })).unwrap();
        assert!(!created.is_error, "{created:?}");
    }

    /// Writes the repository.
    fn fill(&self) {
        let sandbox = &self.sandbox;
        let mark = sandbox.folder().join(MARK);
        let (root, home) = (sandbox.root().to_str().unwrap(), sandbox.dir("home"));
        let names = [
            ("{root}", root),
            ("{home}", home.to_str().unwrap()),
            ("{mark}", mark.to_str().unwrap()),
            ("{remote}", REMOTE),
        ];
        let text =
            names.iter().fold(self.attack.tree.clone(), |text, (name, value)| text.replace(name, value));
        sandbox.tree().fill(&text);
        if !self.attack.user_config.is_empty() {
            sandbox.write_user_config(&self.attack.user_config);
        }
        let mut shell = sandbox.command("bash");
        shell.args(["-euc", &self.attack.setup]).env("ROOT", root).env("MARK", &mark).env("REMOTE", REMOTE);
        shell.env("RUN", format!("touch {}", mark.display()));
        shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let done = shell.output().unwrap();
        assert!(done.status.success(), "setup: {}", String::from_utf8_lossy(&done.stderr));
        // Git itself may have run something while the repository was prepared.
        let _ = fs::remove_file(mark);
    }

    /// Runs everything; returns what must not have happened.
    pub fn play(mut self) -> Vec<String> {
        let before = self.files();
        let mut serving = self.serve();
        if let Some(serving) = &mut serving {
            self.ask();
            self.measure();
            self.run("stop", &["stop"], None);
            if !processes::wait_for_exit(serving.id(), PATIENCE) {
                self.violations.push("the daemon does not stop".into());
                serving.kill().unwrap();
            }
            serving.wait().unwrap();
        } else {
            self.commands();
        }
        let after = self.files();
        let changed =
            before.iter().filter(|(path, state)| after.get(*path) != Some(state)).map(|(path, _)| path);
        let new = after.keys().filter(|path| !before.contains_key(*path));
        self.violations.extend(changed.chain(new).map(|path| format!("changed: {}", path.display())));
        for record in fs::read_dir(self.sandbox.folder().join("trace")).unwrap() {
            let record = record.unwrap().path().join("calls");
            self.violations.extend(self.rules.violations(&record));
        }
        self.find_secret();
        self.violations
    }

    /// Starts the daemon; `None` if it rejects the repository with a documented exit code.
    fn serve(&mut self) -> Option<Child> {
        let record = self.record("serve");
        let mut command = traced(&self.sandbox, &record.join("calls"), program::tenon());
        command.arg("serve").stdin(Stdio::null()).stdout(File::create(record.join("stdout")).unwrap());
        let serving = command.stderr(Stdio::piped()).spawn();
        let mut serving =
            serving.expect("strace is missing: run `cargo xtask setup`, or `apt-get install strace`");
        let mut stderr = BufReader::new(serving.stderr.take().unwrap());
        let mut errors = File::create(record.join("stderr")).unwrap();
        let mut line = String::new();
        while stderr.read_line(&mut line).unwrap() > 0 {
            errors.write_all(line.as_bytes()).unwrap();
            if line.starts_with("serving ") {
                std::thread::spawn(move || std::io::copy(&mut stderr, &mut errors));
                return Some(serving);
            }
            line.clear();
        }
        let code = serving.wait().unwrap().code();
        self.check_code("serve", code);
        None
    }

    /// The commands that work with and without a daemon.
    fn commands(&mut self) {
        let checked = self.run("check", &["check", "--format", "json", "--wait", WAIT], None);
        let report: Value = serde_json::from_str(&checked.stdout).unwrap_or_default();
        for file in &self.attack.found {
            let files = report["files"].as_array().into_iter().flatten();
            if !files.clone().any(|one| one["file"] == *file.as_str() && one["diagnostics"] != json!([])) {
                self.violations.push(format!("nothing was found in {file}: {report}"));
            }
        }
        self.run("changed", &["check", "--changed", "--wait", WAIT], None);
        for symbol in self.attack.symbols.clone() {
            self.run("find", &["find", &symbol], None);
            self.run("refs", &["refs", &symbol], None);
        }
        for symbol in self.attack.declared.clone() {
            let found = self.run("find", &["find", &symbol], None);
            if found.code != Some(0) {
                let Ended { code, stdout, stderr } = found;
                self.violations.push(format!("`{symbol}` is not found: {code:?} {stdout}{stderr}"));
            }
        }
        self.run("outline", &["outline"], None);
        self.run("search", &["search", "swordfish"], None);
        self.run("search", &["search", "--regex", "sw[a-z]+sh"], None);
        self.run("doctor", &["doctor"], None);
        self.run("config", &["config", "show"], None);
        self.run("trust", &["trust", "--show"], None);
        self.run("tasks", &["tasks", "list"], None);
        for file in self.attack.files.clone() {
            let event = json!({
                "session_id": "s", "transcript_path": "/dev/null", "cwd": self.sandbox.root(),
                "permission_mode": "default", "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_use_id": "t",
                "tool_input": { "file_path": self.sandbox.root().join(file), "content": "" },
                "tool_response": { "success": true },
            });
            self.run("hook", &["hook", "post-edit"], Some(event.to_string()));
        }
        let event = json!({ "session_id": "s", "cwd": self.sandbox.root(), "hook_event_name": "Stop" });
        self.run("stop-hook", &["hook", "stop"], Some(event.to_string()));
    }

    /// Everything that a daemon answers.
    fn ask(&mut self) {
        self.commands();
        self.ask_mcp();
        let listed = self.run("servers", &["servers", "list", "--json"], None).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
        let active = |id: &str| {
            let servers = listed["servers"].as_array().into_iter().flatten();
            servers.clone().any(|server| server["id"] == id && server["state"] == "active")
        };
        let missing = self
            .attack
            .servers
            .iter()
            .filter(|id| !active(id))
            .map(|id| format!("{id} did not start: {listed}"));
        let present = self.attack.off.iter().filter(|id| active(id)).map(|id| format!("{id} started"));
        let found: Vec<String> = missing.chain(present).collect();
        self.violations.extend(found);
    }

    /// Questions of an agent. Any answer will do, except that of a bug.
    fn ask_mcp(&mut self) {
        let record = self.record("mcp");
        let mut command = traced(&self.sandbox, &record.join("calls"), program::tenon());
        command.args(["mcp", "--surface", "code,explore,tasks,memory"]);
        let mut client = McpClient::connect(&mut command);
        let mut questions = vec![
            (code_tools::WORKSPACE_SYMBOLS, json!({ "query": "a" })),
            (code_tools::WORKSPACE_DIAGNOSTICS, json!({})),
            ("outline", json!({})),
            ("problems", json!({})),
            ("search", json!({ "pattern": "sword" })),
            ("search", json!({ "pattern": "$A($$$)", "mode": "syntax" })),
            ("tasks_context", json!({})),
            ("tasks_context", json!({ "workspace": "example.org/victim/notes" })),
            ("memory_status", json!({})),
        ];
        for symbol in &self.attack.symbols {
            questions.push(("find", json!({ "name": symbol })));
            questions.push(("references", json!({ "symbol": symbol })));
            questions.push(("hierarchy", json!({ "symbol": symbol, "direction": "callers" })));
        }
        let root = self.sandbox.root().display().to_string();
        for file in &self.attack.files {
            let uri = format!("file://{root}/{}", file.replace('%', "%25").replace(' ', "%20"));
            questions.extend(code_tools::FILE_TOOLS.map(|tool| (tool, code_tools::arguments(tool, &uri))));
            questions.push(("outline", json!({ "path": file })));
        }
        let mut answers = File::create(record.join("stdout")).unwrap();
        for (tool, arguments) in questions {
            let answer = format!("{:?}", client.call_tool(tool, arguments.clone()));
            writeln!(answers, "{tool} {answer}").unwrap();
            // A question that the schema rejects would attack nothing.
            if ["/INTERNAL", "INTERNAL_ERROR", "unknown field", "is missing"]
                .iter()
                .any(|word| answer.contains(word))
            {
                self.violations.push(format!("{tool} {arguments}: {answer}"));
            }
        }
        drop(client);
    }

    /// Runs a command to its end.
    fn run(&mut self, name: &str, arguments: &[&str], input: Option<String>) -> Ended {
        let record = self.record(name);
        let mut command = traced(&self.sandbox, &record.join("calls"), program::tenon());
        command.args(arguments);
        command.stdout(File::create(record.join("stdout")).unwrap());
        command.stderr(File::create(record.join("stderr")).unwrap());
        command.stdin(match &input {
            Some(text) => {
                fs::write(record.join("stdin"), text).unwrap();
                Stdio::from(File::open(record.join("stdin")).unwrap())
            }
            None => Stdio::null(),
        });
        let mut child = command.spawn().unwrap();
        if !processes::wait_for_exit(child.id(), LIMIT) {
            self.violations.push(format!("`tenon {}` hangs", arguments.join(" ")));
            child.kill().unwrap();
        }
        let code = child.wait().unwrap().code();
        self.check_code(name, code);
        let output = |name| String::from_utf8_lossy(&fs::read(record.join(name)).unwrap()).into_owned();
        Ended { code, stdout: output("stdout"), stderr: output("stderr") }
    }

    fn check_code(&mut self, name: &str, code: Option<i32>) {
        if !code.is_some_and(|code| self.attack.accepts(name, code)) {
            let record = self.sandbox.folder().join(format!("trace/{}-{name}/stderr", self.commands));
            let stderr = fs::read_to_string(record).unwrap_or_default();
            self.violations.push(format!("`{name}` exits with {code:?}: {stderr}"));
        }
    }

    /// A new folder for the output and the calls of a command.
    fn record(&mut self, name: &str) -> PathBuf {
        self.commands += 1;
        let record = self.sandbox.folder().join(format!("trace/{}-{name}", self.commands));
        fs::create_dir_all(record.join("calls")).unwrap();
        record
    }

    /// The daemon must not have used more memory than its limit.
    fn measure(&mut self) {
        let daemons = self.sandbox.processes().into_iter();
        let daemon = daemons.filter(|process| {
            process.command.first().is_some_and(|program| program.ends_with("/tenon"))
                && process.command.get(1).is_some_and(|word| word == "serve")
        });
        let peaks: Vec<u64> = daemon.map(|process| process.peak_kib()).collect();
        if peaks.len() != 1 || peaks[0] > MEMORY_KIB {
            self.violations.push(format!("peak memory of the daemons in KiB: {peaks:?}"));
        }
    }

    /// Kind, size, mode and time of every file that no command may change.
    fn files(&self) -> BTreeMap<PathBuf, (u32, u64, i64, i64)> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.sandbox.root().to_owned(), self.sandbox.dir("home")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let data = fs::symlink_metadata(&path).unwrap();
                if data.is_dir() {
                    folders.push(path.clone());
                }
                found.insert(path, (data.mode(), data.size(), data.mtime(), data.mtime_nsec()));
            }
        }
        found
    }

    /// No output and no log contains the secret.
    fn find_secret(&mut self) {
        let mut folders = vec![self.sandbox.folder().join("trace"), self.sandbox.dir("state")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.ends_with("calls") {
                    folders.push(path);
                } else if path.is_file() && is_output(&path) {
                    let text = fs::read(&path).unwrap();
                    if text.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                        self.violations.push(format!("shows the secret: {}", path.display()));
                    }
                }
            }
        }
    }
}

/// Output of a command, or a log.
fn is_output(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ["stdout", "stderr"].contains(&name) || name.contains("log")
}
