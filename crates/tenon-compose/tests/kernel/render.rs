//! The render runtime: a surface that panics, hangs or fails affects no other, and no diagnostic reveals provider data.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_compose::Composition;
use tenon_compose::render::{
    BlockReason, Load, ProviderError, ProviderHandle, ProviderSource, ProviderSummary, Render, RenderPack,
    RenderProvider, RenderRuntime, RenderTarget, RenderedSurface,
};

use crate::inputs::{brief, composed, module, route, with, workspace};

const SECRET: &str = "s3cr3t-of-the-provider";

/// One module with one route for each name.
fn composition(names: &[&str]) -> Composition {
    let routes: Vec<Value> = names
        .iter()
        .map(|name| {
            let mut route = route(name, &format!("/{name}"));
            route["renderHandle"]["data"] = json!({"secret": SECRET});
            route
        })
        .collect();
    composed(&workspace(vec![module("aaa", json!({"routes": routes}))], vec![])).composition.unwrap()
}

fn provider(id: &str, source: ProviderSource) -> RenderProvider {
    RenderProvider {
        handle: ProviderHandle { version: "0.1".to_owned(), kind: "route".to_owned(), id: id.to_owned() },
        source,
        module_id: Some(format!("module-of-{id}")),
        trust_tier: Some("local".to_owned()),
    }
}

fn pack(providers: Vec<RenderProvider>) -> RenderPack {
    RenderPack {
        schema_version: "0.1".to_owned(),
        owner_id: "aaa".to_owned(),
        package_id: "@acme/aaa".to_owned(),
        package_version: None,
        providers,
    }
}

fn eager(draw: impl Fn(&Value) -> Result<String, ProviderError> + Send + Sync + 'static) -> ProviderSource {
    ProviderSource::Eager(Arc::new(draw))
}

fn fine() -> ProviderSource {
    eager(|props| Ok(format!("<p>{}</p>", props["n"])))
}

struct Loader<F>(F);

impl<F: Fn() -> Result<Arc<dyn Render>, ProviderError> + Send + Sync> Load for Loader<F> {
    fn load(&self) -> Result<Arc<dyn Render>, ProviderError> {
        self.0()
    }
}

fn lazy(load: impl Fn() -> Result<Arc<dyn Render>, ProviderError> + Send + Sync + 'static) -> ProviderSource {
    ProviderSource::Lazy(Arc::new(Loader(load)))
}

fn admit_all(_: &ProviderSummary) -> Result<(), BlockReason> {
    Ok(())
}

fn render(runtime: &RenderRuntime, name: &str) -> RenderedSurface {
    runtime.render(
        RenderTarget { kind: "route", key: &format!("aaa:routes/{name}") },
        &json!({"n": 1, "secret": SECRET}),
    )
}

fn code(surface: &RenderedSurface) -> Option<&str> {
    surface.diagnostic.as_ref().map(|diagnostic| diagnostic.code.as_str())
}

#[test]
fn failing_provider_affects_one_surface_and_reveals_nothing() {
    let names = [
        "errs",
        "panics",
        "any-panic",
        "hangs",
        "no-load",
        "load-panics",
        "load-hangs",
        "huge",
        "fine",
        "bomb",
    ];
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let wait = move || {
        let released = Arc::clone(&released);
        move || drop(released.lock().map(|released| released.recv().is_ok()))
    };
    let (hang, load_hang) = (wait(), wait());
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("{SECRET}");
        }
    }
    let providers = vec![
        provider("errs", eager(|_| Err(SECRET.into()))),
        provider("panics", eager(|_| panic!("{SECRET}"))),
        provider("any-panic", eager(|_| std::panic::panic_any(vec![SECRET]))),
        provider("bomb", eager(|_| std::panic::panic_any(Bomb))),
        provider(
            "hangs",
            eager(move |_| {
                hang();
                Ok(SECRET.to_owned())
            }),
        ),
        provider("no-load", lazy(|| Err(SECRET.into()))),
        provider("load-panics", lazy(|| panic!("{SECRET}"))),
        provider(
            "load-hangs",
            lazy(move || {
                load_hang();
                Err(SECRET.into())
            }),
        ),
        provider("huge", eager(|_| Ok(SECRET.repeat(1 << 20)))),
        provider("fine", fine()),
    ];
    let runtime = RenderRuntime::new(&composition(&names), vec![pack(providers)], &admit_all)
        .with_deadline(Duration::from_millis(50));
    assert!(runtime.coverage().is_empty());
    let preloaded = runtime.preload();
    let phases: Vec<_> =
        preloaded.iter().map(|diagnostic| diagnostic.details.text("failurePhase").unwrap()).collect();
    assert_eq!(phases, ["provider-preload"; 3]);

    let mut output = json!(preloaded).to_string();
    for (name, expected) in [
        ("errs", "WCP-HANDLE-006"),
        ("panics", "WCP-HANDLE-006"),
        ("any-panic", "WCP-HANDLE-006"),
        ("bomb", "WCP-HANDLE-006"),
        ("hangs", "WCP-HANDLE-006"),
        ("huge", "WCP-HANDLE-006"),
        ("no-load", "WCP-HANDLE-005"),
        ("load-panics", "WCP-HANDLE-005"),
        ("load-hangs", "WCP-HANDLE-005"),
    ] {
        let surface = render(&runtime, name);
        assert_eq!(code(&surface), Some(expected), "{name}");
        output.push_str(&surface.html);
        output.push_str(&json!(surface.diagnostic).to_string());
        // Other surfaces still render.
        assert_eq!(render(&runtime, "fine").html, "<p>1</p>");
    }
    assert!(!output.contains(SECRET), "{output}");
    for forbidden in ["src/", ".rs", "stack", "panicked", "closure", "data\""] {
        assert!(!output.contains(forbidden), "{forbidden}: {output}");
    }
    drop(release);
}

#[test]
fn provider_renders_again_after_one_hang() {
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(Some(released));
    let hangs_first = eager(move |_| {
        let first = released.lock().unwrap().take();
        let _ = first.map(|first| first.recv().is_ok());
        Ok("well".to_owned())
    });
    let composition = composition(&["home"]);
    let runtime =
        RenderRuntime::new(&composition, vec![pack(vec![provider("home", hangs_first)])], &admit_all)
            .with_deadline(Duration::from_millis(200));
    assert_eq!(code(&render(&runtime, "home")), Some("WCP-HANDLE-006"));
    let runtime = runtime.with_deadline(Duration::from_secs(60));
    assert_eq!(render(&runtime, "home").html, "well");
    drop(release);
}

#[test]
fn lazy_provider_loads_once_and_retries_a_failed_load() {
    let loads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&loads);
    let third_time_lucky = lazy(move || match counted.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Err("not yet".into()),
        _ => Ok(Arc::new(|_: &Value| Ok("loaded".to_owned()))),
    });
    let runtime = RenderRuntime::new(
        &composition(&["home"]),
        vec![pack(vec![provider("home", third_time_lucky)])],
        &admit_all,
    );
    assert_eq!(runtime.preload().len(), 1);
    assert_eq!(code(&render(&runtime, "home")), Some("WCP-HANDLE-005"));
    for _ in 0..3 {
        assert_eq!(render(&runtime, "home").html, "loaded");
    }
    assert!(runtime.preload().is_empty());
    assert_eq!(loads.load(Ordering::SeqCst), 3);
}

#[test]
fn coverage_reports_every_handle_that_cannot_be_rendered() {
    let names = ["missing", "twice", "blocked", "old", "odd", "fine"];
    let mut old = provider("old", fine());
    old.handle.version = "9".to_owned();
    let first = pack(vec![
        provider("twice", fine()),
        provider("blocked", fine()),
        old,
        provider("odd", ProviderSource::Unsupported),
        provider("fine", fine()),
        provider("not-required", ProviderSource::Unsupported),
    ]);
    let stranger = RenderPack { owner_id: "zzz".to_owned(), ..pack(vec![provider("missing", fine())]) };
    let second = pack(vec![provider("twice", ProviderSource::Unsupported)]);
    let asked = std::cell::RefCell::new(Vec::new());
    let admission = |summary: &ProviderSummary| {
        asked.borrow_mut().push(summary.handle.id.clone());
        if summary.handle.id == "blocked" { Err(BlockReason::HostBlocked) } else { Ok(()) }
    };
    let runtime = RenderRuntime::new(&composition(&names), vec![first, stranger, second], &admission);
    // Admission is asked only for providers that could run.
    assert_eq!(asked.into_inner(), ["blocked", "fine"]);
    let reported: Vec<String> = runtime.coverage().iter().map(brief).collect();
    assert_eq!(
        reported,
        [
            "WCP-HANDLE-001 aaa:routes/missing",
            "WCP-HANDLE-002 aaa:routes/twice",
            "WCP-HANDLE-003 host-blocked aaa:routes/blocked",
            "WCP-HANDLE-004 provider-shape aaa:routes/odd",
            "WCP-HANDLE-004 render-handle-version aaa:routes/old",
        ]
    );
    let providers = runtime.coverage()[1].details.get("providers").unwrap().clone();
    assert_eq!(
        (&providers[0]["loadKind"], &providers[1]["loadKind"]),
        (&json!("eager"), &json!("unsupported"))
    );
    for name in ["missing", "twice", "blocked", "old", "odd"] {
        assert!(render(&runtime, name).diagnostic.is_some(), "{name}");
    }
    assert_eq!(render(&runtime, "fine").html, "<p>1</p>");
}

#[test]
fn pack_of_an_unsupported_version_is_rejected() {
    let future = RenderPack { schema_version: "7".to_owned(), ..pack(vec![provider("home", fine())]) };
    let runtime = RenderRuntime::new(&composition(&["home"]), vec![future], &admit_all);
    assert_eq!(brief(&runtime.coverage()[0]), "WCP-HANDLE-004 runtime-schema-version aaa:routes/home");
}

#[test]
fn handle_shared_by_several_entries_is_required_once() {
    let shared = |id: &str| {
        with(
            route(id, &format!("/{id}")),
            "renderHandle",
            json!({"renderHandleVersion": "0.1", "kind": "route", "id": "shared"}),
        )
    };
    let outcome =
        composed(&workspace(vec![module("aaa", json!({"routes": [shared("b"), shared("a")]}))], vec![]));
    let runtime = RenderRuntime::new(&outcome.composition.unwrap(), vec![], &admit_all);
    let reported: Vec<String> = runtime.coverage().iter().map(brief).collect();
    assert_eq!(reported, ["WCP-HANDLE-001 aaa:routes/a aaa:routes/b"]);
    assert_eq!(brief(&render(&runtime, "b").diagnostic.unwrap()), "WCP-HANDLE-001 aaa:routes/b");
}

#[test]
fn unknown_target_renders_a_fallback() {
    let runtime =
        RenderRuntime::new(&composition(&["home"]), vec![pack(vec![provider("home", fine())])], &admit_all);
    for (kind, key, handle, owner) in [
        ("route", "aaa:routes/gone", "aaa:routes/gone", json!({"ownerKind": "module", "ownerId": "aaa"})),
        (
            "route",
            "builtin-x:routes/home",
            "builtin-x:routes/home",
            json!({"ownerKind": "builtin", "ownerId": "builtin-x"}),
        ),
        (
            "tool-renderer",
            "aaa:routes/home",
            "aaa:routes/home",
            json!({"ownerKind": "module", "ownerId": "aaa"}),
        ),
        ("page", "aaa:routes/home", "aaa:routes/home", json!({"ownerKind": "module", "ownerId": "aaa"})),
        ("route", "<script>", "unknown", json!({"ownerKind": "host"})),
        ("", "", "unknown", json!({"ownerKind": "host"})),
    ] {
        let surface = runtime.render(RenderTarget { kind, key }, &json!({}));
        let diagnostic = surface.diagnostic.unwrap();
        assert_eq!(diagnostic.code.as_str(), "WCP-HANDLE-007");
        assert_eq!(diagnostic.details.text("renderHandle"), Some(handle));
        assert_eq!(diagnostic.details.get("owner"), Some(&owner));
        assert!(!surface.html.contains("<script>"));
    }
}

#[test]
fn many_threads_render_concurrently() {
    let runtime =
        RenderRuntime::new(&composition(&["home"]), vec![pack(vec![provider("home", fine())])], &admit_all)
            .with_deadline(Duration::from_secs(60));
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| assert_eq!(render(&runtime, "home").html, "<p>1</p>"));
        }
    });
}
