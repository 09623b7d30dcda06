//! Server entries as the known host of the service sends them, adapted to our registry.
//!
//! The host has five built-in servers, three of them under names that are not ours, and leaves out their `extensions`. It may
//! send a `rootUri`, which neither its own service nor this one uses: the root of a server is found by its markers.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tenon_servers::registry::Registry;

/// The host's names of servers, by ours.
pub type HostIds = BTreeMap<String, String>;

/// The host's built-in servers whose names are not in our registry.
const HOST_SERVERS: &[(&str, &[&str])] =
    &[("python", &[".py"]), ("rust", &[".rs"]), ("ts", &[".ts", ".tsx", ".js", ".jsx"])];

/// The entry under our id. An entry without `extensions` whose program is in our registry changes that server; one of the
/// host's built-in servers gets the host's extensions. The error is a key and what is wrong with it.
pub(super) fn adapt(id: &str, mut entry: Value) -> Result<(String, Value), (&'static str, String)> {
    let Some(fields) = entry.as_object_mut() else { return Ok((id.to_owned(), entry)) };
    if let Some(root) = fields.remove("rootUri") {
        let is_uri = root.as_str().is_some_and(|root| root.starts_with("file:///"));
        if !is_uri && !root.is_null() {
            return Err(("rootUri", "not a `file:` URI".to_owned()));
        }
    }
    let registry = Registry::default();
    let host_extensions = HOST_SERVERS.iter().find(|(host_id, _)| *host_id == id).map(|(_, list)| *list);
    if fields.contains_key("extensions") || registry.get(id).is_some() {
        return Ok((id.to_owned(), entry));
    }
    let Some(extensions) = host_extensions else { return Ok((id.to_owned(), entry)) };
    let command = fields.get("command").and_then(Value::as_str).map(Path::new);
    let program = command.and_then(Path::file_name);
    let same = registry.entries().iter().find(|known| program == Path::new(&known.command).file_name());
    if let (Some(same), true) = (same, program.is_some()) {
        return Ok((same.id.to_string(), entry));
    }
    fields.insert("extensions".to_owned(), json!(extensions));
    Ok((id.to_owned(), entry))
}
