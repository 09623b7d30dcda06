//! `LSP_BOOTSTRAP`: which workspace to serve and how, as one strict JSON object.
//!
//! Every error names the JSON path of the invalid value, so that the host's author finds it. Unknown keys are errors, and
//! so is one timeout given twice.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::{Map, Value};
use tenon_lsp::model::Severity;
use tenon_lsp::service::BOOTSTRAP;
use tenon_servers::registry::{OverrideError, Registry};

use super::host_servers::{self, HostIds};

/// The longest timeout: a typing mistake must not look like a hang.
const MAX_TIMEOUT_MS: u64 = 60 * 60 * 1000;

/// The parsed bootstrap.
#[derive(Debug)]
pub struct Bootstrap {
    pub root: Utf8PathBuf,
    pub check_timeout: Duration,
    pub first_check_timeout: Duration,
    pub navigation_timeout: Duration,
    pub request_timeout: Duration,
    pub navigation: bool,
    pub severities: Vec<Severity>,
    pub registry: Registry,
    /// The host's names of servers, by ours, where they differ.
    pub host_ids: HostIds,
}

/// An invalid value and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapError {
    pub path: String,
    pub problem: String,
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, problem } = self;
        match path.as_str() {
            "" => write!(f, "{BOOTSTRAP}: {problem}"),
            path => write!(f, "{BOOTSTRAP}: {path}: {problem}"),
        }
    }
}

impl std::error::Error for BootstrapError {}

fn wrong(path: impl Into<String>, problem: impl Into<String>) -> BootstrapError {
    BootstrapError { path: path.into(), problem: problem.into() }
}

impl Bootstrap {
    pub fn parse(text: Option<&str>) -> Result<Self, BootstrapError> {
        let text = text.ok_or_else(|| wrong("", "not set"))?;
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong("", format!("not JSON: {error}")))?;
        let mut top = Object::new(value, "")?;
        let root = match top.take("workspaceRoot") {
            Some(Value::String(root)) if root.is_empty() => return Err(wrong("workspaceRoot", "empty")),
            Some(Value::String(root)) if !root.starts_with('/') => {
                return Err(wrong("workspaceRoot", "not an absolute path"));
            }
            Some(Value::String(root)) => Utf8PathBuf::from(root),
            Some(other) => return Err(wrong("workspaceRoot", format!("{}, not a string", kind(&other)))),
            None => return Err(wrong("workspaceRoot", "missing")),
        };
        let config = match top.take("config") {
            Some(value) => Object::new(value, "config")?,
            None => Object::new(Value::Object(Map::new()), "config")?,
        };
        top.finish()?;
        Self::from_config(root, config)
    }

    fn from_config(root: Utf8PathBuf, mut config: Object) -> Result<Self, BootstrapError> {
        let (registry, host_ids) = config.servers()?;
        let bootstrap = Self {
            root,
            check_timeout: config
                .timeout(&["diagnosticTimeout", "diagnosticTimeoutMs", "diagnosticsTimeoutMs"], 3000)?,
            first_check_timeout: config.timeout(&["firstTouchTimeout", "firstTouchTimeoutMs"], 10_000)?,
            navigation_timeout: config.timeout(&["navigationTimeout", "navigationTimeoutMs"], 10_000)?,
            request_timeout: config.timeout(&["requestTimeout", "requestTimeoutMs"], 30_000)?,
            navigation: config.boolean("navigationTools", true)?,
            severities: config.severities()?,
            registry,
            host_ids,
        };
        // Only the host uses these; they are checked here so that mistakes are reported once.
        config.count("maxDiagnosticsPerFile")?;
        config.count("maxProjectDiagnosticsFiles")?;
        config.finish()?;
        Ok(bootstrap)
    }
}

/// An object whose keys must all be read.
struct Object {
    path: String,
    fields: Map<String, Value>,
}

impl Object {
    fn new(value: Value, path: &str) -> Result<Self, BootstrapError> {
        match value {
            Value::Object(fields) => Ok(Self { path: path.to_owned(), fields }),
            other => Err(wrong(path, format!("{}, not an object", kind(&other)))),
        }
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        self.fields.remove(key)
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn finish(self) -> Result<(), BootstrapError> {
        match self.fields.keys().min() {
            Some(key) => Err(wrong(self.at(key), "unknown key")),
            None => Ok(()),
        }
    }

    /// A time in milliseconds, under either of two keys.
    fn timeout(&mut self, spellings: &[&str], default: u64) -> Result<Duration, BootstrapError> {
        let mut found: Option<(String, u64)> = None;
        for spelling in spellings {
            let Some(value) = self.take(spelling) else {
                continue;
            };
            let path = self.at(spelling);
            let number = value.as_u64().filter(|number| (1..=MAX_TIMEOUT_MS).contains(number));
            let number = number
                .ok_or_else(|| wrong(&path, format!("not a whole number from 1 to {MAX_TIMEOUT_MS}")))?;
            if let Some((other, _)) = found {
                return Err(wrong(path, format!("the same as {other}")));
            }
            found = Some((path, number));
        }
        Ok(Duration::from_millis(found.map_or(default, |(_, number)| number)))
    }

    fn boolean(&mut self, key: &str, default: bool) -> Result<bool, BootstrapError> {
        match self.take(key) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(value),
            Some(other) => Err(wrong(self.at(key), format!("{}, not true or false", kind(&other)))),
        }
    }

    fn count(&mut self, key: &str) -> Result<(), BootstrapError> {
        match self.take(key) {
            Some(value) if value.as_u64().is_none() => Err(wrong(self.at(key), "not a whole number")),
            _ => Ok(()),
        }
    }

    fn severities(&mut self) -> Result<Vec<Severity>, BootstrapError> {
        let path = self.at("includeSeverities");
        let list = match self.take("includeSeverities") {
            None => return Ok(vec![Severity::Error]),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(wrong(path, format!("{}, not a list", kind(&other)))),
        };
        let all = [Severity::Error, Severity::Warning, Severity::Info, Severity::Hint];
        list.iter()
            .enumerate()
            .map(|(index, value)| {
                let found = all.into_iter().find(|one| value.as_str() == Some(one.as_str()));
                found.ok_or_else(|| {
                    wrong(format!("{path}[{index}]"), "not `error`, `warning`, `info` or `hint`")
                })
            })
            .collect()
    }

    /// The servers, changed and added by id: an object, or a list whose items have an `id`.
    fn servers(&mut self) -> Result<(Registry, HostIds), BootstrapError> {
        let path = self.at("servers");
        let mut servers: BTreeMap<String, Value> = BTreeMap::new();
        let mut named: BTreeMap<String, String> = BTreeMap::new();
        match self.take("servers") {
            None => {}
            Some(Value::Object(record)) => {
                for (id, value) in record {
                    named.insert(id.clone(), format!("{path}.{id}"));
                    servers.insert(id, value);
                }
            }
            Some(Value::Array(list)) => {
                for (index, value) in list.into_iter().enumerate() {
                    let at = format!("{path}[{index}]");
                    let mut entry = Object::new(value, &at)?;
                    let id = match entry.take("id") {
                        Some(Value::String(id)) => id,
                        Some(other) => {
                            return Err(wrong(format!("{at}.id"), format!("{}, not a string", kind(&other))));
                        }
                        None => return Err(wrong(format!("{at}.id"), "missing")),
                    };
                    if named.insert(id.clone(), at.clone()).is_some() {
                        return Err(wrong(format!("{at}.id"), "named twice"));
                    }
                    servers.insert(id, Value::Object(entry.fields));
                }
            }
            Some(other) => return Err(wrong(path, format!("{}, not an object or a list", kind(&other)))),
        }
        let mut host_ids = HostIds::new();
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        let mut paths: BTreeMap<String, String> = BTreeMap::new();
        for (id, value) in servers {
            let at = named[&id].clone();
            let (own, value) = host_servers::adapt(&id, value)
                .map_err(|(key, problem)| wrong(format!("{at}.{key}"), problem))?;
            if own != id {
                host_ids.insert(own.clone(), id);
            }
            if known.insert(own.clone(), value).is_some() {
                return Err(wrong(at, format!("`{own}` is configured twice")));
            }
            paths.insert(own, at);
        }
        let servers = known;
        // One by one, so that an error has its path.
        for (id, value) in &servers {
            let alone = BTreeMap::from([(id.clone(), value.clone())]);
            Registry::configured(&alone).map_err(|error| wrong(paths[id].clone(), explain(&error)))?;
        }
        let registry = Registry::configured(&servers).map_err(|error| wrong(path, explain(&error)))?;
        Ok((registry, host_ids))
    }
}

fn explain(error: &OverrideError) -> String {
    match error {
        OverrideError::Malformed { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(value: Value) -> String {
        Bootstrap::parse(Some(&value.to_string())).unwrap_err().to_string()
    }

    fn config(value: Value) -> Result<Bootstrap, BootstrapError> {
        Bootstrap::parse(Some(&json!({ "workspaceRoot": "/w", "config": value }).to_string()))
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let bootstrap = Bootstrap::parse(Some(r#"{"workspaceRoot":"/w"}"#)).unwrap();
        assert_eq!(bootstrap.check_timeout, Duration::from_secs(3));
        assert_eq!(bootstrap.first_check_timeout, Duration::from_secs(10));
        assert_eq!(bootstrap.request_timeout, Duration::from_secs(30));
        assert_eq!(bootstrap.severities, [Severity::Error]);
        assert!(bootstrap.navigation);
    }

    #[test]
    fn either_spelling_of_a_timeout_is_accepted_but_not_both() {
        assert_eq!(
            config(json!({ "diagnosticsTimeoutMs": 7 })).unwrap().check_timeout,
            Duration::from_millis(7)
        );
        assert_eq!(
            config(json!({ "diagnosticTimeoutMs": 7 })).unwrap().check_timeout,
            Duration::from_millis(7)
        );
        let twice = config(json!({ "requestTimeout": 1, "requestTimeoutMs": 1 })).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "LSP_BOOTSTRAP: config.requestTimeoutMs: the same as config.requestTimeout"
        );
    }

    #[test]
    fn every_error_names_its_path() {
        assert_eq!(Bootstrap::parse(None).unwrap_err().to_string(), "LSP_BOOTSTRAP: not set");
        for (value, expected) in [
            (json!([]), "LSP_BOOTSTRAP: a list, not an object"),
            (json!({}), "LSP_BOOTSTRAP: workspaceRoot: missing"),
            (json!({ "workspaceRoot": "" }), "LSP_BOOTSTRAP: workspaceRoot: empty"),
            (json!({ "workspaceRoot": "a/b" }), "LSP_BOOTSTRAP: workspaceRoot: not an absolute path"),
            (json!({ "workspaceRoot": 7 }), "LSP_BOOTSTRAP: workspaceRoot: a number, not a string"),
            (json!({ "workspaceRoot": "/w", "config": null }), "LSP_BOOTSTRAP: config: null, not an object"),
            (json!({ "workspaceRoot": "/w", "extra": 1 }), "LSP_BOOTSTRAP: extra: unknown key"),
        ] {
            assert_eq!(problem(value), expected);
        }
        for (value, path) in [
            (json!({ "navigationTools": "yes" }), "config.navigationTools"),
            (json!({ "diagnosticTimeout": -1 }), "config.diagnosticTimeout"),
            (json!({ "diagnosticTimeout": 1.5 }), "config.diagnosticTimeout"),
            (json!({ "includeSeverities": ["error", "fatal"] }), "config.includeSeverities[1]"),
            (json!({ "maxDiagnosticsPerFile": "20" }), "config.maxDiagnosticsPerFile"),
            (json!({ "unknown": 1 }), "config.unknown"),
            (json!({ "servers": 1 }), "config.servers"),
            (json!({ "servers": { "pyright": { "commnad": "x" } } }), "config.servers.pyright"),
            (json!({ "servers": { "pyrihgt": { "enabled": false } } }), "config.servers.pyrihgt"),
            (json!({ "servers": [{ "command": "x" }] }), "config.servers[0].id"),
            (json!({ "servers": [{ "id": "a" }] }), "config.servers[0]"),
        ] {
            assert_eq!(config(value).unwrap_err().path, path);
        }
    }

    /// What the known host sends: its own ids, no extensions, a `rootUri`.
    #[test]
    fn known_hosts_servers_are_accepted() {
        let servers = json!([
            { "id": "ts", "command": "/opt/bin/typescript-language-server", "args": ["--stdio"], "rootUri": "file:///w" },
            { "id": "rust", "command": "rust-analyzer" },
            { "id": "python", "command": "pylsp" },
            { "id": "gopls", "command": "gopls" },
            { "id": "eslint", "command": "vscode-eslint-language-server", "args": ["--stdio"] },
        ]);
        let bootstrap = config(json!({ "servers": servers, "maxDiagnosticsPerFile": 20 })).unwrap();
        let entry = |id: &str| bootstrap.registry.get(id).unwrap_or_else(|| panic!("no `{id}`"));
        assert_eq!(entry("typescript-language-server").command, "/opt/bin/typescript-language-server");
        assert_eq!(entry("typescript-language-server").args, ["--stdio"]);
        assert!(entry("typescript-language-server").extensions.contains_key(".tsx"), "they are inherited");
        assert_eq!(entry("python").extensions.keys().collect::<Vec<_>>(), [".py"]);
        assert!(bootstrap.registry.get("ts").is_none() && bootstrap.registry.get("rust").is_none());
        let host_ids: Vec<_> =
            bootstrap.host_ids.iter().map(|(own, host)| (own.as_str(), host.as_str())).collect();
        assert_eq!(host_ids, [("rust-analyzer", "rust"), ("typescript-language-server", "ts")]);
        for (servers, path) in [
            (json!([{ "id": "ts", "command": "other" , "rootUri": 7 }]), "config.servers[0].rootUri"),
            (
                json!([{ "id": "ts", "command": "other" , "rootUri": "http://x" }]),
                "config.servers[0].rootUri",
            ),
            (json!([{ "id": "mine", "command": "other" }]), "config.servers[0]"),
            (
                json!([{ "id": "rust", "command": "rust-analyzer" }, { "id": "rust-analyzer", "command": "x" }]),
                "config.servers[1]",
            ),
        ] {
            assert_eq!(config(json!({ "servers": servers })).unwrap_err().path, path);
        }
    }

    #[test]
    fn servers_are_added_as_object_or_list() {
        let entry = json!({ "command": "/bin/mine", "extensions": [".mine"] });
        let mut listed = entry.clone();
        listed["id"] = json!("mine");
        for servers in [json!({ "mine": entry }), json!([listed])] {
            let bootstrap = config(json!({ "servers": servers })).unwrap();
            assert!(bootstrap.registry.get("mine").is_some() && bootstrap.registry.get("pyright").is_some());
        }
    }
}
