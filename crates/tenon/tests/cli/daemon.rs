//! The daemon's life cycle: shared by clients, killed, idle, stopped.

use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use serde_json::json;
use tenon_testkit::small_disk::SmallDisk;
use tenon_testkit::{PATIENCE, Sandbox, processes};

use crate::{connect, connect_with, running, tenon, the_daemon, wait_for_status};

#[test]
fn twenty_concurrent_bridges_share_one_daemon() {
    let sandbox = Sandbox::new();
    let barrier = Barrier::new(20);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                barrier.wait();
                let mut client = connect(&sandbox, &["--surface", "workspace"]);
                assert!(client.list_tools().contains(&"workspace_status".to_owned()));
                let status = client.call_tool("workspace_status", json!({})).unwrap();
                assert_eq!(status.structured["root"], sandbox.root().to_str().unwrap());
                barrier.wait();
                the_daemon(&sandbox);
                barrier.wait();
            });
        }
    });
    assert!(tenon(&sandbox, &["stop"]).status.success());
    sandbox.assert_no_processes();
}

#[test]
fn daemon_serves_the_next_client_after_a_bridge_is_killed() {
    let sandbox = Sandbox::new();
    let mut bridge = sandbox
        .tenon()
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut other = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    wait_for_status(&sandbox, "both clients are connected", |status| status["clients"] == 2);
    bridge.kill().unwrap();
    bridge.wait().unwrap();
    wait_for_status(&sandbox, "the killed bridge is disconnected", |status| status["clients"] == 1);
    assert!(other.call_tool("workspace_status", json!({})).is_ok());
    drop(other);
    drop(connect(&sandbox, &[]));
    assert_eq!(the_daemon(&sandbox).id, daemon.id);
}

#[test]
fn killed_daemon_ends_its_bridges_and_the_next_client_starts_another() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut bridge = command.spawn().unwrap();
    drop(connect(&sandbox, &[]));
    wait_for_status(&sandbox, "the bridge is connected", |status| status["clients"] == 1);
    let daemon = the_daemon(&sandbox);
    daemon.kill();
    assert!(processes::wait_for_exit(bridge.id(), PATIENCE), "the bridge did not exit with its daemon");
    let mut stderr = String::new();
    bridge.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(bridge.wait().unwrap().code(), Some(5));
    assert!(stderr.contains("error: the daemon exited during the session"), "{stderr}");

    let mut next = connect(&sandbox, &[]);
    assert!(next.call_tool("workspace_status", json!({})).is_ok());
    assert_ne!(the_daemon(&sandbox).id, daemon.id);
}

#[test]
fn only_one_of_two_racing_daemons_starts() {
    let sandbox = Sandbox::new();
    let barrier = Barrier::new(2);
    let outputs: Vec<String> = thread::scope(|scope| {
        let race = || {
            barrier.wait();
            let mut daemon = sandbox.tenon();
            daemon.arg("daemon").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut output = String::new();
            daemon.spawn().unwrap().stdout.take().unwrap().read_to_string(&mut output).unwrap();
            output
        };
        let racers = [scope.spawn(race), scope.spawn(race)];
        racers.map(|racer| racer.join().unwrap()).to_vec()
    });
    let ready = outputs.iter().filter(|output| output.as_str() == "\"ready\"\n").count();
    assert_eq!(ready, 1, "{outputs:?}");
    let rejected = |output: &String| output.contains("a daemon already serves this workspace");
    assert!(outputs.iter().any(rejected), "{outputs:?}");
    drop(connect(&sandbox, &[]));
    the_daemon(&sandbox);
}

#[test]
fn stale_socket_does_not_prevent_a_new_daemon() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    the_daemon(&sandbox).kill();
    let files = std::fs::read_dir(sandbox.dir("run").join("tenon")).unwrap();
    let socket = files.flatten().map(|entry| entry.path()).find(|path| path.extension().unwrap() == "sock");
    let socket = socket.expect("a killed daemon leaves its socket");
    // A socket without a listener in place of the daemon's.
    sandbox.assert_no_processes();
    std::fs::remove_file(&socket).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    drop(connect(&sandbox, &[]));
    the_daemon(&sandbox);
}

#[test]
fn idle_daemon_exits() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.arg("mcp").env("TENON_DAEMON_IDLE", "100ms");
    let mut client = connect_with(&mut command);
    the_daemon(&sandbox);
    assert!(client.call_tool("workspace_status", json!({})).is_ok());
    drop(client);
    sandbox.assert_no_processes();
    assert_eq!(tenon(&sandbox, &["status"]).status.code(), Some(1));
}

#[test]
fn stop_ends_the_daemon_and_disconnects_its_clients() {
    let sandbox = Sandbox::new();
    let mut bridge = sandbox.tenon().arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _input = bridge.stdin.take();
    drop(connect(&sandbox, &[]));
    wait_for_status(&sandbox, "the bridge is connected", |status| status["clients"] == 1);
    assert!(tenon(&sandbox, &["stop"]).status.success());
    assert!(running(&sandbox, "daemon").is_empty(), "`stop` returned before the daemon exited");
    assert_eq!(bridge.wait().unwrap().code(), Some(5));
    assert_eq!(tenon(&sandbox, &["stop"]).status.code(), Some(1));
}

#[test]
fn daemon_of_a_removed_root_reports_that_and_can_be_stopped() {
    let sandbox = Sandbox::new();
    let mut client = connect(&sandbox, &["--surface", "code"]);
    let ask = json!({ "query": "x" });
    assert!(client.call_tool("vscode.lsp.workspaceSymbols", ask.clone()).is_ok());
    std::fs::remove_dir_all(sandbox.root()).unwrap();
    let error = client.call_tool("vscode.lsp.workspaceSymbols", ask.clone()).unwrap_err();
    assert_eq!(error.data["code"], "MCP_LSP_GATEWAY/NOT_FOUND", "{error:?}");
    std::fs::create_dir_all(sandbox.root()).unwrap();
    assert!(client.call_tool("vscode.lsp.workspaceSymbols", ask).is_ok());
    std::fs::remove_dir_all(sandbox.root()).unwrap();
    let mut stop = sandbox.tenon();
    // The root is the working folder otherwise, which is gone.
    stop.arg("stop").arg("--root").arg(sandbox.root()).current_dir("/");
    assert!(stop.output().unwrap().status.success());
    sandbox.assert_no_processes();
    std::fs::create_dir_all(sandbox.root()).unwrap();
}

#[test]
fn stop_force_kills_a_hung_daemon() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    let daemon = the_daemon(&sandbox);
    let paused = sandbox.command("kill").args(["-STOP", &daemon.id.to_string()]).status().unwrap();
    assert!(paused.success());
    assert!(tenon(&sandbox, &["stop", "--force"]).status.success());
    sandbox.assert_no_processes();
    drop(connect(&sandbox, &[]));
}

#[test]
fn bridge_of_a_stopped_daemon_ends_with_an_error() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    drop(connect(&sandbox, &[]));
    let mut bridge = command.spawn().unwrap();
    wait_for_status(&sandbox, "the bridge is connected", |status| status["clients"] == 1);
    let daemon = the_daemon(&sandbox);
    assert!(sandbox.command("kill").args(["-STOP", &daemon.id.to_string()]).status().unwrap().success());
    let question = b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\n";
    std::io::Write::write_all(bridge.stdin.as_mut().unwrap(), question).unwrap();
    let mut stderr = String::new();
    bridge.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(bridge.wait().unwrap().code(), Some(5));
    assert!(stderr.contains("error: the daemon is stopped or hangs"), "{stderr}");
    assert!(tenon(&sandbox, &["stop", "--force"]).status.success());
}

#[test]
fn terminated_daemon_removes_its_socket() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    let daemon = the_daemon(&sandbox);
    assert!(sandbox.command("kill").arg(daemon.id.to_string()).status().unwrap().success());
    sandbox.assert_no_processes();
    let files = std::fs::read_dir(sandbox.dir("run").join("tenon")).unwrap().flatten();
    let names: Vec<_> = files.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.ends_with(".sock")), "{names:?}");
}

#[test]
fn daemon_does_not_inherit_from_the_client_that_starts_it() {
    let sandbox = Sandbox::new();
    // Descriptor 9 is the pipe that `output` reads: a daemon that inherited it would block this test.
    let mut shell = sandbox.command("sh");
    let program = env!("CARGO_BIN_EXE_tenon");
    shell
        .args(["-c", "exec 9>&1; \"$0\" up >/dev/null", program])
        .env("GITHUB_TOKEN", "x")
        .env("PYTHONPATH", "/x");
    assert!(shell.output().unwrap().status.success());
    let daemon = the_daemon(&sandbox);
    let environment = std::fs::read(format!("/proc/{}/environ", daemon.id)).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(!environment.contains("GITHUB_TOKEN") && !environment.contains("PYTHONPATH"), "{environment}");
    let link = |name: &str| std::fs::read_link(format!("/proc/{}/{name}", daemon.id)).unwrap();
    assert_eq!(link("cwd").to_str(), Some("/"));
    for descriptor in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(link(descriptor).to_str(), Some("/dev/null"), "{descriptor}");
    }
    let session = std::fs::read_to_string(format!("/proc/{}/stat", daemon.id)).unwrap();
    let session = session.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(session, daemon.id.to_string(), "the daemon is not a session leader");
}

#[test]
fn no_daemon_serves_from_one_process() {
    let sandbox = Sandbox::new();
    let mut client = connect(&sandbox, &["--no-daemon"]);
    assert!(client.call_tool("workspace_status", json!({})).is_ok());
    assert!(running(&sandbox, "daemon").is_empty());
    assert!(client.close().unwrap().success());
    sandbox.assert_no_processes();
}

#[test]
fn full_disk_under_the_log_does_not_stop_the_daemon() {
    // Without the right to mount, a folder that cannot be created replaces the full disk.
    let disk = SmallDisk::mount(64);
    let folder = disk.as_ref().map_or("/dev/null/logs".into(), |disk| disk.path().join("logs"));
    let filler = disk.as_ref().map(SmallDisk::fill);
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.arg("mcp").env("TENON_LOG_FOLDER", &folder);
    let mut client = connect_with(&mut command);
    assert!(client.call_tool("workspace_status", json!({})).is_ok());
    drop(client);
    if let Some(filler) = filler {
        std::fs::remove_file(filler).unwrap();
    }
    let mut client = connect(&sandbox, &[]);
    assert!(client.call_tool("workspace_status", json!({})).is_ok());
    drop(client);
    assert!(tenon(&sandbox, &["stop"]).status.success());
    if disk.is_some() {
        let log = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.lines().next().unwrap().contains("lines lost"), "{log}");
        assert!(log.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{log}");
    }
}

/// A change of the folder for sockets.
type Damage = fn(&Path);

/// What can happen to the folder for sockets while a daemon runs.
fn damages() -> [(&'static str, Damage); 5] {
    [
        ("socket removed", |folder| std::fs::remove_file(socket_in(folder)).unwrap()),
        ("socket replaced", |folder| {
            let socket = socket_in(folder);
            std::fs::remove_file(&socket).unwrap();
            drop(UnixListener::bind(socket).unwrap());
        }),
        ("folder removed", |folder| std::fs::remove_dir_all(folder).unwrap()),
        ("folder replaced", |folder| {
            std::fs::rename(folder, folder.with_extension("old")).unwrap();
            std::fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
        }),
        ("parent folder removed", |folder| std::fs::remove_dir_all(folder.parent().unwrap()).unwrap()),
    ]
}

fn socket_in(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    files.find(|path| path.extension().unwrap() == "sock").unwrap()
}

#[test]
fn daemon_that_lost_its_socket_stays_the_only_one_and_is_reached() {
    for (what, damage) in damages() {
        let sandbox = Sandbox::new();
        let folder = sandbox.dir("run").join("tenon");
        let mut first = connect(&sandbox, &[]);
        let daemon = the_daemon(&sandbox);
        damage(&folder);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut client = connect(&sandbox, &[]);
                    assert!(client.call_tool("workspace_status", json!({})).is_ok(), "{what}");
                    assert_eq!(the_daemon(&sandbox).id, daemon.id, "{what}");
                });
            }
        });
        assert!(first.call_tool("workspace_status", json!({})).is_ok(), "{what}");
        if let "socket removed" | "folder removed" = what {
            damage(&folder);
        }
        assert_eq!(crate::json(&sandbox, &["status", "--json"])["pid"], daemon.id, "{what}");
        if let "socket removed" | "folder removed" = what {
            damage(&folder);
        }
        let stopped = tenon(&sandbox, &["stop"]);
        assert!(stopped.status.success(), "{what}: {stopped:?}");
        sandbox.assert_no_processes();
        assert_eq!(tenon(&sandbox, &["stop"]).status.code(), Some(1), "{what}");
    }
}

#[test]
fn clients_with_another_socket_folder_share_the_daemon() {
    let sandbox = Sandbox::new();
    let _first = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    let other = sandbox.dir("tmp").join("other");
    let mut command = sandbox.tenon();
    let mut second = connect_with(command.arg("mcp").env("TENON_RUNTIME_DIR", &other));
    assert!(second.call_tool("workspace_status", json!({})).is_ok());
    assert_eq!(the_daemon(&sandbox).id, daemon.id);
}

#[test]
fn stop_force_kills_a_hung_daemon_without_a_socket() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    let daemon = the_daemon(&sandbox);
    assert!(sandbox.command("kill").args(["-STOP", &daemon.id.to_string()]).status().unwrap().success());
    std::fs::remove_dir_all(sandbox.dir("run").join("tenon")).unwrap();
    let stopped = tenon(&sandbox, &["stop", "--force"]);
    assert!(stopped.status.success(), "{stopped:?}");
    sandbox.assert_no_processes();
}

#[test]
fn daemon_whose_lock_file_was_removed_takes_it_again() {
    let sandbox = Sandbox::new();
    let _client = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    let locks = sandbox.dir("state").join("tenon/daemons");
    std::fs::remove_dir_all(&locks).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let noted = || {
        std::fs::read_dir(&locks).into_iter().flatten().flatten().any(|file| {
            std::fs::read_to_string(file.path())
                .is_ok_and(|note| note.starts_with(&format!("{}\n", daemon.id)))
        })
    };
    while !noted() {
        assert!(Instant::now() < deadline, "the daemon did not take its lock again");
        thread::yield_now();
    }
    std::fs::remove_dir_all(sandbox.dir("run").join("tenon")).unwrap();
    drop(connect(&sandbox, &[]));
    assert_eq!(the_daemon(&sandbox).id, daemon.id);
}
