//! Twelve tasks on Django. Both products know the names in the task, and paths only if the task gives one.

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

use super::oracle::Sources;
use super::task::{Call, Task, call};

/// A function without users, added before the run.
const UNUSED: &str = "\n\ndef bench_unused(value):\n    return value\n";
const UNUSED_FILE: &str = "django/urls/utils.py";

pub(super) fn prepare(sandbox: &Sandbox) {
    let text = sandbox.tree().read(UNUSED_FILE);
    sandbox.tree().write(UNUSED_FILE, &format!("{text}{UNUSED}"));
}

fn find(name: &str) -> Call {
    call("find_symbol", json!({ "name_path_pattern": name }))
}

fn uses(name: &str, file: &str) -> Call {
    call("find_referencing_symbols", json!({ "name_path": name, "relative_path": file }))
}

fn pattern(regex: &str, more: Value) -> Call {
    let mut arguments = more;
    arguments["substring_pattern"] = json!(regex);
    call("search_for_pattern", arguments)
}

pub(super) fn tasks(sources: &Sources) -> Vec<Task> {
    let mut tasks = questions(sources);
    tasks.extend(changes(sources));
    tasks
}

fn questions(sources: &Sources) -> Vec<Task> {
    let filter = json!({ "name_path_pattern": "QuerySet/filter", "include_body": true });
    let resolvers = "django/urls/resolvers.py";
    let fields = "django/db/models/fields/__init__.py";
    let base = "django/core/files/storage/base.py";
    let csrf = json!({ "name_path_pattern": "Csrf", "substring_matching": true, "include_kinds": [5] });
    let new_line = "def urlencode(query, required, doseq=False):";
    let attempt = json!({ "file": "django/utils/http.py", "old_text": "def urlencode(query, doseq=False):", "new_text": new_line });
    let mut callers = sources.with("get_resolver(");
    callers.retain(|file| file != resolvers);
    vec![
        Task::new(
            "where is `QuerySet.filter`, with its body",
            vec![call("find", json!({ "name": "QuerySet.filter" }))],
            vec![call("find_symbol", filter)],
        )
        .must(["django/db/models/query.py", "return self._filter_or_exclude(False, args, kwargs)"]),
        Task::new(
            "who calls `get_resolver`",
            vec![call("hierarchy", json!({ "symbol": "get_resolver", "direction": "callers" }))],
            vec![find("get_resolver"), uses("get_resolver", resolvers)],
        )
        .must(sources.python_functions_around("get_resolver("))
        .must(callers),
        Task::new(
            "what implements `Storage`",
            vec![call("hierarchy", json!({ "symbol": "Storage", "direction": "subtypes" }))],
            // Pyright has no implementations; the subclasses of subclasses need the pattern.
            vec![pattern(r"^class \w+\([^)]*Storage", json!({}))],
        )
        .must(sources.python_subclasses("Storage", base)),
        Task::new(
            "what breaks if `urlencode` of `django/utils/http.py` gets a required parameter",
            vec![call("try_edit", attempt)],
            vec![uses("urlencode", "django/utils/http.py")],
        )
        .must(sources.importing("urlencode", "django.utils.http"))
        .must_not(["django/utils/html.py"]),
        Task::new(
            "overview of `django/urls`: all classes and their files",
            vec![call("outline", json!({ "path": "django/urls" }))],
            // `get_symbols_overview` takes one file at a time and does not list folders.
            vec![pattern(r"^(class|def) \w+", json!({ "relative_path": "django/urls" }))],
        )
        .must(sources.top_level("django/urls/", &["class "]))
        .must(["resolvers.py", "converters.py", "exceptions.py"]),
        Task::new(
            "the class that handles CSRF",
            vec![call("find", json!({ "name": "csrf", "kind": "class" }))],
            vec![call("find_symbol", csrf)],
        )
        .must(["CsrfViewMiddleware", "django/middleware/csrf.py"]),
        Task::new(
            "all subclasses of `Field` of `django/db/models/fields`",
            vec![call(
                "hierarchy",
                json!({ "symbol": format!("{fields}#Field"), "direction": "subtypes", "depth": 5 }),
            )],
            vec![pattern(
                r"^class \w+\([^)]*(Field|ForeignObject|ForeignKey)\b",
                json!({ "paths_exclude_glob": "{**/forms/**,**/forms.py}" }),
            )],
        )
        .must(sources.python_subclasses("Field", fields))
        .must_not(["UsernameField", "django/forms/"]),
        Task::new(
            "search `raise Http404(`",
            vec![call("search", json!({ "pattern": "raise Http404(" }))],
            vec![pattern(r"raise Http404\(", json!({}))],
        )
        .must(sources.with("raise Http404(")),
    ]
}

fn changes(sources: &Sources) -> Vec<Task> {
    let resolvers = "django/urls/resolvers.py";
    let rename = |apply: bool| json!({ "symbol": "get_resolver", "to": "resolver_for", "apply": apply });
    let renamed: Vec<String> = sources.with("get_resolver");
    let method = "def filter_all(self):\n    return self.filter()\n";
    let indented = "\n    def filter_all(self):\n        return self.filter()\n";
    let broken = "class Truncator(SimpleLazyObject):\n    undefined_name\n";
    let sound = "class Truncator(SimpleLazyObject):\n";
    let edited = "django/utils/text.py";
    vec![
        Task::new(
            "rename `get_resolver` in 9 files, after a look at the places",
            vec![call("rename", rename(false)), call("rename", rename(true))],
            // No preview: the uses show the places.
            vec![
                find("get_resolver"),
                uses("get_resolver", resolvers),
                call(
                    "rename_symbol",
                    json!({ "name_path": "get_resolver", "relative_path": resolvers, "new_name": "resolver_for" }),
                ),
            ],
        )
        .must(["django/conf/urls/i18n.py"])
        .check(move |sandbox| {
            let after = Sources::read(sandbox, "py");
            if after.with("resolver_for") != renamed {
                return Err(format!("{} of {} files renamed", after.with("resolver_for").len(), renamed.len()));
            }
            match after.with("get_resolver(").first() {
                Some(left) => Err(format!("{left} still calls the old name")),
                None => Ok(()),
            }
        }),
        Task::errors_after_edit(
            "errors after an edit of `django/utils/text.py`",
            edited,
            sound,
            broken,
        )
        .must(["undefined_name", "is not defined"]),
        Task::new(
            "insert a method after `QuerySet.filter`",
            vec![call("edit_symbol", json!({ "symbol": "QuerySet.filter", "op": "after", "text": method }))],
            vec![
                find("QuerySet/filter"),
                call(
                    "insert_after_symbol",
                    json!({ "name_path": "QuerySet/filter", "relative_path": "django/db/models/query.py", "body": indented }),
                ),
            ],
        )
        .check(move |sandbox| {
            let text = sandbox.tree().read("django/db/models/query.py");
            let follows = format!("return self._filter_or_exclude(False, args, kwargs)\n{indented}");
            if text.contains(&follows) { Ok(()) } else { Err("the method is not after `filter`".to_owned()) }
        }),
        Task::new(
            "delete safely: a used function is refused, an unused one is deleted",
            vec![
                call("edit_symbol", json!({ "symbol": "get_resolver", "op": "delete" })),
                call("edit_symbol", json!({ "symbol": "bench_unused", "op": "delete" })),
            ],
            vec![
                find("get_resolver"),
                call("safe_delete_symbol", json!({ "name_path_pattern": "get_resolver", "relative_path": resolvers })),
                find("bench_unused"),
                call("safe_delete_symbol", json!({ "name_path_pattern": "bench_unused", "relative_path": UNUSED_FILE })),
            ],
        )
        .must(["django/conf/urls/i18n.py"])
        .check(|sandbox| {
            let (used, unused) = (sandbox.tree().read("django/urls/resolvers.py"), sandbox.tree().read(UNUSED_FILE));
            match (used.contains("def get_resolver("), unused.contains("bench_unused")) {
                (true, false) => Ok(()),
                (false, _) => Err("the used function was deleted".to_owned()),
                (true, true) => Err("the unused function was not deleted".to_owned()),
            }
        }),
    ]
}
