//! Who may use the console: links, sessions, origins, hosts and form tokens.

use std::time::Duration;

use camino::Utf8PathBuf;
use tenon_console::Console;
use tenon_contract::clock::Clock;
use tenon_server::config::Environment;
use tenon_server::daemon::connection;
use tenon_server::daemon::daemon_paths::DaemonPaths;
use tenon_server::daemon::daemon_server::{DaemonServer, DaemonSocket, ExitPolicy};
use tenon_server::daemon::protocol::{ClientHello, ConnectionKind};
use tenon_server::dirs::Dirs;
use tenon_server::service::Service;
use tenon_server::workspace::{Workspace, WorkspaceOptions};
use tenon_testkit::Sandbox;
use tenon_testkit::console::{SignedIn, get, link};
use tenon_testkit::http::{Request, send};
use tokio_util::sync::CancellationToken;

const PAGES: [&str; 9] =
    ["", "problems", "code", "tasks", "memory", "context", "activity", "workspace", "connect"];

#[test]
fn only_a_signed_in_browser_of_this_daemon_is_served() {
    let sandbox = Sandbox::with_tree("//- readme.md\nx\n");
    let (address, path) = link(&sandbox);
    let status = |request: &Request| send(address, request).unwrap().status;

    // Without a session: 401 and no content, pages and assets alike.
    for path in
        ["/console/", "/console/tasks", "/console/-/style.css", "/console/-/console.js", "/console/-/events"]
    {
        let answer = send(address, &get(address, path)).unwrap();
        assert_eq!(answer.status, 401, "{path}");
        let text = String::from_utf8(answer.body).unwrap();
        assert!(!text.contains('<') && !text.contains(sandbox.root().to_str().unwrap()), "{text}");
    }
    // A link works once.
    assert_eq!(status(&get(address, &path)), 303);
    assert_eq!(status(&get(address, &path)), 401);
    assert_eq!(status(&get(address, "/console/-/open?code=0000")), 401);
    assert_eq!(status(&get(address, "/console/-/open")), 401);

    let user = SignedIn::new(&sandbox);
    for page in PAGES {
        let answer = user.get(&format!("/console/{page}"));
        assert_eq!(answer.status, 200, "{page}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        let text = String::from_utf8(answer.body).unwrap();
        assert!(
            !text.contains(" style=") && !text.contains("<script>") && !text.contains(" onclick"),
            "{page}"
        );
    }
    // Another host name, as after DNS rebinding.
    let foreign =
        get(address, "/console/").replace_header("Host", "evil.example").header("Cookie", &user.cookie);
    assert_eq!(status(&foreign), 403);
    // MCP is not served at the console's address.
    assert_eq!(status(&Request::mcp("/mcp", Some("x"), "{}")), 404);
    // No way out of the routes.
    for path in [
        "/console/../etc/passwd",
        "/console/%2e%2e/x",
        "/console//",
        "/console/-/../tasks",
        "/console/tasks/",
    ] {
        assert_eq!(user.get(path).status, 404, "{path}");
    }
    assert_eq!(status(&user.form("/console/tasks", "").replace_header("Cookie", "tenon_console_0=1")), 401);
}

#[test]
fn change_needs_the_form_token_and_the_origin() {
    let sandbox = Sandbox::with_tree("//- readme.md\nx\n");
    let user = SignedIn::new(&sandbox);
    let token = user.form_token();
    let fields = format!("form_token={token}&action=add&title=Planted");
    let status = |request: &Request| send(user.address, request).unwrap().status;
    let form = user.form("/console/tasks", &fields);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"] {
        assert_eq!(status(&form.clone().replace_header("Origin", origin)), 403, "{origin}");
    }
    assert_eq!(status(&form.clone().without_header("Origin")), 403);
    assert_eq!(status(&user.form("/console/tasks", "action=add&title=Planted")), 403);
    assert_eq!(status(&user.form("/console/tasks", "form_token=0&action=add&title=Planted")), 403);
    // The token of another session does not count.
    let other = SignedIn::new(&sandbox);
    assert_ne!(other.form_token(), token);
    assert_eq!(status(&other.form("/console/tasks", &fields)), 403);
    assert!(!user.page("/console/tasks").contains("Planted"));
    assert_eq!(status(&form), 303);
    assert!(user.page("/console/tasks").contains("Planted"));
    // A GET changes nothing.
    assert_eq!(user.get("/console/tasks?action=add&title=ByGet").status, 200);
    assert!(!user.page("/console/tasks").contains("ByGet"));
}

#[test]
fn session_of_another_workspace_does_not_count_and_a_restart_keeps_its_own() {
    let (one, two) = (Sandbox::with_tree("//- a.md\nx\n"), Sandbox::with_tree("//- b.md\nx\n"));
    let (first, second) = (SignedIn::new(&one), SignedIn::new(&two));
    let crossed = get(second.address, "/console/").header("Cookie", &first.cookie);
    assert_eq!(send(second.address, &crossed).unwrap().status, 401);
    let (name, _) = second.cookie.split_once('=').unwrap();
    let (_, token) = first.cookie.split_once('=').unwrap();
    let renamed = get(second.address, "/console/").header("Cookie", &format!("{name}={token}"));
    assert_eq!(send(second.address, &renamed).unwrap().status, 401);

    assert!(one.tenon().arg("stop").status().unwrap().success());
    assert!(one.tenon().args(["tasks"]).status().unwrap().success());
    let (address, _) = link(&one);
    assert_eq!(address, first.address, "the console keeps its port");
    assert!(first.page("/console/").contains("Overview"));
}

/// A daemon in this process, with a clock that the test moves.
#[tokio::test(flavor = "multi_thread")]
async fn link_expires_after_a_minute_and_a_session_after_twelve_hours() {
    let sandbox = Sandbox::with_tree("//- a.md\nx\n");
    let folder = |name: &str| Utf8PathBuf::from_path_buf(sandbox.dir(name)).unwrap();
    let root = Utf8PathBuf::from_path_buf(sandbox.root().canonicalize().unwrap()).unwrap();
    let environment = Environment::from([
        ("TENON_STATE_DIR", folder("state").as_str()),
        ("TENON_DATA_DIR", folder("data").as_str()),
        ("TENON_RUNTIME_DIR", folder("run").as_str()),
    ]);
    let (clock, time) = Clock::fixed("2026-01-02T03:04:05Z".parse().unwrap());
    let dirs = Dirs {
        home: folder("home"),
        config_file: folder("config").join("config.toml"),
        state: folder("state"),
        data: folder("data"),
    };
    let options = WorkspaceOptions { dirs, environment: environment.clone(), flags: vec![], clock };
    let workspace = Workspace::open(&root, options).unwrap();
    let paths = DaemonPaths::of(&root, &environment).unwrap();
    let stop = CancellationToken::new();
    let daemon = DaemonServer::new(Service::new(workspace), |access| Console::new(access), stop.clone());
    let socket = DaemonSocket::take(paths.clone()).await.unwrap();
    let running = tokio::spawn(daemon.run(socket, ExitPolicy::OnRequest));
    let link = async || {
        let hello = ClientHello::new(ConnectionKind::Console);
        let link = connection::connect(&paths, &hello).await.unwrap().welcome.console.unwrap();
        let (address, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        (address.parse().unwrap(), format!("/{path}"))
    };
    let answer = |address, request: Request| tokio::task::block_in_place(|| send(address, &request).unwrap());

    let (address, path) = link().await;
    time.advance(Duration::from_secs(60));
    assert_eq!(answer(address, get(address, &path)).status, 401, "a minute later");
    let (address, path) = link().await;
    time.advance(Duration::from_millis(59_999));
    let opened = answer(address, get(address, &path));
    assert_eq!(opened.status, 303, "just in time");
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let page = || answer(address, get(address, "/console/").header("Cookie", &cookie)).status;
    assert_eq!(page(), 200);
    time.advance(Duration::from_secs(12 * 60 * 60));
    assert_eq!(page(), 401);
    stop.cancel();
    drop(running.await.unwrap());
}
