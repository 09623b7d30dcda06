//! Two machines of a team: two daemons, each in its own network namespace, and one PostgreSQL server.
//!
//! Namespaces need root. Without it, the same test runs with both daemons in the network of the test.

use std::process::{Command, Stdio};

use serde_json::json;
use tenon_testkit::{McpClient, Sandbox, postgres, program};

use super::connect_by;

/// A network namespace with a link to the network of the test. Removed when dropped.
struct Namespace {
    name: String,
    /// The address of the test's network as the namespace sees it.
    gateway: String,
}

fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Namespace {
    /// `None` without the rights or the program to make one.
    fn new(number: u32) -> Option<Self> {
        // The third part of the address is taken from the process, so that tests do not meet.
        let net = (std::process::id() % 120) * 2 + number;
        let (name, link) = (format!("tenon{net}"), format!("tn{net}"));
        let gateway = format!("10.203.{net}.1");
        ip(&format!("netns add {name}")).then_some(())?;
        let namespace = Self { name: name.clone(), gateway };
        let is_linked = ip(&format!("link add {link} type veth peer name eth0 netns {name}"))
            && ip(&format!("addr add 10.203.{net}.1/24 dev {link}"))
            && ip(&format!("link set {link} up"))
            && ip(&format!("-n {name} addr add 10.203.{net}.2/24 dev eth0"))
            && ip(&format!("-n {name} link set eth0 up"))
            && ip(&format!("-n {name} link set lo up"));
        is_linked.then_some(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.name));
    }
}

struct Machine {
    sandbox: Sandbox,
    namespace: Option<Namespace>,
    store: String,
}

impl Machine {
    fn new(number: u32, server: &postgres::PostgresServer, database: &str) -> Self {
        let namespace = Namespace::new(number);
        let address = namespace.as_ref().map_or("127.0.0.1", |namespace| namespace.gateway.as_str());
        let name = database.rsplit('/').next().unwrap();
        let store = format!("postgres://tenon@{address}:{}/{name}", server.port());
        Self { sandbox: Sandbox::new(), namespace, store }
    }

    fn tenon(&self, args: &[&str]) -> Command {
        let mut command = match &self.namespace {
            Some(namespace) => {
                let mut command = self.sandbox.command("ip");
                command.args(["netns", "exec", &namespace.name]).arg(program::tenon());
                command
            }
            None => self.sandbox.tenon(),
        };
        command.args(args).env("TENON_WORK_STORE", &self.store).env("TENON_WORKSPACE_ID", "team/project");
        command
    }

    fn connect(&self) -> McpClient {
        connect_by(&mut self.tenon(&["mcp", "--surface", "work"]))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.tenon(&["stop"]).output();
    }
}

#[test]
fn two_machines_share_tasks_and_memory_through_one_database() {
    let server = postgres::PostgresServer::on_private_network();
    let database = server.database();
    let (ada, bob) = (Machine::new(0, &server, &database), Machine::new(1, &server, &database));
    let said = |client: &mut McpClient, tool: &str, arguments| {
        let result = client.call_tool(tool, arguments).unwrap();
        assert!(!result.is_error, "{tool}: {:?}", result.text);
        result.text.concat()
    };
    let (mut on_ada, mut on_bob) = (ada.connect(), bob.connect());
    said(&mut on_ada, "task_add", json!({"title": "One"}));
    said(&mut on_bob, "task_add", json!({"title": "Two"}));
    // Each gets another task, although both ask for the next one.
    assert!(said(&mut on_ada, "task_claim", json!({})).starts_with("TASK-001 One"));
    assert!(said(&mut on_bob, "task_claim", json!({})).starts_with("TASK-002 Two"));
    let refused = on_bob.call_tool("task_claim", json!({"id": 1})).unwrap();
    assert!(refused.is_error && refused.text.concat().contains("is claimed by"), "{:?}", refused.text);
    said(&mut on_ada, "remember", json!({"text": "Decision: the wire format is CBOR", "about": "project"}));
    assert!(
        said(&mut on_bob, "recall", json!({"query": "which wire format"}))
            .contains("the wire format is CBOR")
    );
    // Without an id, each sees the own task.
    assert!(said(&mut on_ada, "task_show", json!({})).starts_with("TASK-001"));
    assert!(said(&mut on_bob, "task_show", json!({})).starts_with("TASK-002"));
    on_ada.close();
    on_bob.close();
}
