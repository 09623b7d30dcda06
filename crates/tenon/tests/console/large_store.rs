//! A store with 100,000 tasks and a graph of 100,000 nodes: pages stay small and say that they show a part.

use std::process::Stdio;

use tenon_testkit::console::SignedIn;
use tenon_testkit::{McpClient, Sandbox, large_store};

#[test]
fn pages_show_a_bounded_part_and_say_so() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.args(["mcp", "--surface", "tasks,memory"]).stderr(Stdio::null());
    let mut agent = McpClient::connect(&mut command);
    for (tool, arguments) in large_store::first_calls() {
        agent.call_tool(tool, arguments).unwrap();
    }
    agent.close();
    large_store::fill(&sandbox.dir("data").join("tenon/work.sqlite3"));

    let user = SignedIn::new(&sandbox);
    let tasks = user.page("/console/tasks");
    assert!(tasks.contains("100,000") && tasks.matches("task-card").count() == 15, "{}", tasks.len());
    let (_, more) = tasks.split_once("class=\"more\"><a href=\"").unwrap();
    let more = more.split('"').next().unwrap().replace("&#x2f;", "/").replace("&amp;", "&");
    assert!(user.page(&format!("/console/tasks{more}")).contains("Task 16<"));
    assert!(user.page("/console/tasks?task=TASK-99999").contains("Task 99999"));

    // The newest nodes, and the neighbourhood of one that is not among them.
    let graph = user.page("/console/memory");
    assert_eq!(graph.matches("<circle").count(), 60);
    assert!(graph.contains("60 nodes of a larger graph"), "{graph}");
    let around = user.page("/console/memory?graph=graph&node=one");
    assert_eq!(around.matches("<circle").count(), 2);
    assert!(around.contains("2 of 2 nodes"), "{around}");
    assert!(user.page("/console/memory?graph=graph&node=nowhere").contains("has no node"));
    for page in ["", "tasks", "memory", "workspace"] {
        let size = user.page(&format!("/console/{page}")).len();
        assert!(size < 200_000, "/console/{page} has {size} bytes");
    }
}
