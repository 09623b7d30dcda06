//! Modules on disk: a folder yields a declaration and a pack, and templates cannot leave the folder.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use tenon_compose::disk_module::{DiskModule, DiskModuleError};
use tenon_compose::kind::RuntimeStatus;
use tenon_compose::render::{BlockReason, ProviderSummary, RenderRuntime, RenderTarget, RenderedSurface};
use tenon_compose::{CompositionInput, ModuleRuntime, compose};

struct Folder(tempfile::TempDir);

impl Folder {
    /// A module folder with one route for each template.
    fn with(templates: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let routes: Vec<Value> = (0..templates.len())
            .map(|n| json!({"id": format!("r{n}"), "path": format!("/r{n}"), "renderHandle": {"renderHandleVersion": "0.1", "kind": "route", "id": format!("r{n}")}}))
            .collect();
        let providers: Vec<Value> = templates
            .iter()
            .enumerate()
            .map(|(n, (path, _))| json!({"renderHandle": {"renderHandleVersion": "0.1", "kind": "route", "id": format!("r{n}")}, "loadKind": "lazy", "template": path}))
            .collect();
        folder.write("module.json", &json!({"packageId": "@acme/lab", "moduleApiVersion": "0.1", "instanceId": "lab", "contributions": {"routes": routes}}).to_string());
        folder.write("pack.json", &json!({"renderRuntimeSchemaVersion": "0.1", "ownerId": "lab", "packageId": "@acme/lab", "providers": providers}).to_string());
        for (path, text) in templates {
            if !path.contains("..") && !path.starts_with('/') {
                folder.write(path, text);
            }
        }
        folder
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    fn write(&self, path: &str, text: &str) -> Utf8PathBuf {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn runtime(&self) -> RenderRuntime {
        let module = DiskModule::read(self.path()).unwrap();
        let ready = ModuleRuntime { status: RuntimeStatus::Ready, reason: None };
        let input = json!({"compositionSchemaVersion": "0.1", "modules": [module.instance(&ready)]});
        let outcome = compose(&CompositionInput::from_value(&input).unwrap());
        let admit_all = |_: &ProviderSummary| Ok::<(), BlockReason>(());
        RenderRuntime::new(&outcome.composition.unwrap(), module.pack.into_iter().collect(), &admit_all)
    }
}

fn render(runtime: &RenderRuntime, n: usize, props: &Value) -> RenderedSurface {
    runtime.render(RenderTarget { kind: "route", key: &format!("lab:routes/r{n}") }, props)
}

#[test]
fn template_renders_with_the_hosts_props() {
    let folder = Folder::with(&[(
        "home.html",
        "<h1>{{ title }}</h1>{% for run in runs %}<p>{{ run.name }}</p>{% endfor %}",
    )]);
    let runtime = folder.runtime();
    assert!(runtime.coverage().is_empty() && runtime.preload().is_empty());
    let surface = render(&runtime, 0, &json!({"title": "Lab", "runs": [{"name": "one"}, {"name": "two"}]}));
    assert_eq!(surface.html, "<h1>Lab</h1><p>one</p><p>two</p>");
}

#[test]
fn template_output_is_always_escaped() {
    let hostile = json!({"x": "<script>alert('&\"')</script>", "list": ["<b>"], "map": {"<k>": "<v>"}});
    for (path, text) in [
        ("plain.html", "{{ x }}"),
        ("plain.txt", "{{ x }}"),
        ("plain.js", "{{ x }}"),
        ("no-extension", "{{ x }}"),
        ("off.html", "{% autoescape false %}{{ x }}{% endautoescape %}"),
        ("none.html", "{% autoescape 'none' %}{{ x }}{% endautoescape %}"),
        ("set.html", "{% autoescape false %}{% set y %}{{ x }}{% endset %}{{ y }}{% endautoescape %}"),
        ("macro.html", "{% macro m(v) %}{{ v }}{% endmacro %}{{ m(x) }}"),
        ("list.html", "{{ list }}{{ map }}"),
        ("join.html", "{{ list|join('') }}"),
        ("json.html", "{{ x|tojson }}"),
    ] {
        let folder = Folder::with(&[(path, text)]);
        let surface = render(&folder.runtime(), 0, &hostile);
        assert!(surface.diagnostic.is_none(), "{path}");
        assert!(!surface.html.contains('<') && !surface.html.is_empty(), "{path}: {}", surface.html);
    }
    let folder = Folder::with(&[("safe.html", "{{ x|safe }}")]);
    assert!(render(&folder.runtime(), 0, &hostile).diagnostic.is_some());
}

#[test]
fn template_includes_only_files_of_the_module_folder() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), "top secret").unwrap();
    let outside_name = outside.path().file_name().unwrap().to_str().unwrap().to_owned();
    let absolute = outside.path().to_str().unwrap().to_owned();
    let templates = [
        ("inside.html".to_owned(), "{% include 'parts/head.html' %}".to_owned(), true),
        ("parent.html".to_owned(), format!("{{% include '../{outside_name}' %}}"), false),
        ("absolute.html".to_owned(), format!("{{% include '{absolute}' %}}"), false),
        ("link.html".to_owned(), "{% include 'link' %}".to_owned(), false),
        ("missing.html".to_owned(), "{% include 'gone.html' %}".to_owned(), false),
        ("extends.html".to_owned(), format!("{{% extends '../{outside_name}' %}}"), false),
        ("import.html".to_owned(), format!("{{% import '{absolute}' as x %}}"), false),
        (format!("../{outside_name}"), String::new(), false),
        (absolute.clone(), String::new(), false),
        ("link".to_owned(), String::new(), false),
    ];
    let files: Vec<(&str, &str)> =
        templates.iter().map(|(path, text, _)| (path.as_str(), text.as_str())).collect();
    let folder = Folder::with(&files);
    folder.write("parts/head.html", "<header>{{ n }}</header>");
    std::fs::remove_file(folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    let runtime = folder.runtime();
    for (n, (path, _, rendered)) in templates.iter().enumerate() {
        let surface = render(&runtime, n, &json!({"n": 1}));
        assert_eq!(surface.diagnostic.is_none(), *rendered, "{path}: {}", surface.html);
        assert!(!json!([surface.html, surface.diagnostic]).to_string().contains("top secret"), "{path}");
    }
}

#[test]
fn endless_or_oversized_template_is_contained() {
    let folder = Folder::with(&[
        (
            "loop.html",
            "{% for a in range(9999) %}{% for b in range(9999) %}{% set x = a * b %}{% endfor %}{% endfor %}",
        ),
        ("recursion.html", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
        ("itself.html", "{% include 'itself.html' %}"),
        ("large.html", "{% for a in range(9999) %}{{ 'x' * 1000 }}{% endfor %}"),
        ("broken.html", "{% for %}"),
        ("fine.html", "fine"),
    ]);
    let runtime = folder.runtime();
    let broken: Vec<String> = runtime.preload().iter().map(crate::inputs::brief).collect();
    assert_eq!(broken, ["WCP-HANDLE-005 provider-preload lab:routes/r4"]);
    for n in 0..5 {
        assert!(render(&runtime, n, &json!({})).diagnostic.is_some(), "{n}");
    }
    assert_eq!(render(&runtime, 5, &json!({})).html, "fine");
}

#[test]
fn invalid_module_folder_reports_the_reason() {
    let missing = DiskModule::read(Utf8Path::new("/nowhere/at/all"));
    assert!(matches!(missing, Err(DiskModuleError::Folder(_))));

    let folder = Folder::with(&[]);
    std::fs::remove_file(folder.path().join("module.json")).unwrap();
    assert!(matches!(
        DiskModule::read(folder.path()),
        Err(DiskModuleError::Missing { file: "module.json", .. })
    ));

    folder.write("module.json", "{\n  \"a\": 1,\n  \"a\": 2\n}");
    let error = DiskModule::read(folder.path()).err().unwrap();
    assert_eq!(error.to_string(), "`module.json` is invalid at 3:5: duplicate key `a`");

    folder.write("module.json", "[]");
    assert!(matches!(DiskModule::read(folder.path()), Err(DiskModuleError::NotAnObject)));

    folder.write("module.json", "{\"instanceId\": \"other\"}");
    let error = DiskModule::read(folder.path()).err().unwrap();
    assert_eq!(error.to_string(), "`pack.json` belongs to `lab`, the module is `other`");

    folder.write("pack.json", "{\"providers\": 7}");
    let error = DiskModule::read(folder.path()).err().unwrap();
    assert_eq!(error.to_string(), "`pack.json` is invalid: `providers` must be an array");

    std::fs::remove_file(folder.path().join("pack.json")).unwrap();
    assert!(DiskModule::read(folder.path()).unwrap().pack.is_none());
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("pack.json")).unwrap();
    assert!(matches!(
        DiskModule::read(folder.path()),
        Err(DiskModuleError::Missing { file: "pack.json", .. })
    ));
}

#[test]
fn invalid_providers_are_unsupported_and_a_declared_runtime_is_overwritten() {
    let folder = Folder::with(&[("a.html", ""), ("b.html", ""), ("c.html", "")]);
    let handle = |n: u8| json!({"renderHandleVersion": "0.1", "kind": "route", "id": format!("r{n}")});
    folder.write(
        "pack.json",
        &json!({"renderRuntimeSchemaVersion": "0.1", "ownerId": "lab", "packageId": "@acme/lab", "providers": [
            {"renderHandle": handle(0), "loadKind": "eager", "template": "a.html"},
            {"renderHandle": handle(1), "loadKind": "lazy"},
            {"renderHandle": handle(2), "loadKind": "lazy", "template": "c.html", "trustTier": 7},
            {"loadKind": "lazy", "template": "c.html"},
            "nonsense",
        ]})
        .to_string(),
    );
    let reported: Vec<String> = folder.runtime().coverage().iter().map(crate::inputs::brief).collect();
    assert_eq!(reported, [0, 1, 2].map(|n| format!("WCP-HANDLE-004 provider-shape lab:routes/r{n}")));

    folder.write("module.json", "{\"instanceId\": \"lab\", \"runtime\": {\"status\": \"ready\"}}");
    let module = DiskModule::read(folder.path()).unwrap();
    let rejected =
        ModuleRuntime { status: RuntimeStatus::Unauthorized, reason: Some("not-trusted".to_owned()) };
    assert_eq!(
        module.instance(&rejected)["runtime"],
        json!({"status": "unauthorized", "reason": "not-trusted"})
    );
}
