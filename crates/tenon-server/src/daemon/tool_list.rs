//! Unix: a minimal MCP client that lists a daemon's tools, to test that the daemon answers.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::DaemonError;
use super::connection::DaemonConnection;

/// The time limit for the handshake and the list.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the MCP handshake and `tools/list` as any client would, and returns the names of the tools.
pub async fn list_tools(connection: DaemonConnection) -> Result<Vec<String>, DaemonError> {
    let timeout = |_| DaemonError::Timeout { seconds: TIMEOUT.as_secs(), pid: None };
    let listed = tokio::time::timeout(TIMEOUT, exchange(connection)).await.map_err(timeout)?;
    listed.map_err(DaemonError::Mcp)
}

async fn exchange(connection: DaemonConnection) -> io::Result<Vec<String>> {
    let mut stream = connection.stream;
    let initialize = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tenon", "version": env!("CARGO_PKG_VERSION")},
    });
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let mut response = Value::Null;
    for message in messages {
        stream.write_all(format!("{message}\n").as_bytes()).await?;
        if message.get("id").is_some() {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            response = serde_json::from_str(&line)?;
        }
    }
    let tools =
        response["result"]["tools"].as_array().ok_or_else(|| io::Error::other(response.to_string()))?;
    Ok(tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect())
}
