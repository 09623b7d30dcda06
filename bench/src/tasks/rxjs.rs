//! Seven tasks on rxjs.

use serde_json::json;

use super::oracle::Sources;
use super::task::{Task, call};

pub(super) fn tasks(sources: &Sources) -> Vec<Task> {
    let find = |name: &str| call("find_symbol", json!({ "name_path_pattern": name }));
    let at = |name: &str, file: &str| json!({ "name_path": name, "relative_path": file });
    let removed = "src/internal/util/arrRemove.ts";
    let rename = |apply: bool| json!({ "symbol": "arrRemove", "to": "removeFrom", "apply": apply });
    let mut new_name = at("arrRemove", removed);
    new_name["new_name"] = json!("removeFrom");
    // Each of them calls it or imports it; the module keeps its path.
    let renamed = sources.with("arrRemove }");
    let mut callers = sources.with("isFunction(");
    callers.retain(|file| file != "src/internal/util/isFunction.ts");
    let edited = "src/internal/util/identity.ts";
    let (sound, broken) =
        ("export function identity", "const wrong: number = 'text';\nexport function identity");
    let declared = ["export class ", "export abstract class "];
    vec![
        Task::new(
            "where is `switchMap`, with its body",
            vec![call("find", json!({ "name": "switchMap" }))],
            vec![call("find_symbol", json!({ "name_path_pattern": "switchMap", "include_body": true }))],
        )
        .must(["src/internal/operators/switchMap.ts", "innerSubscriber?.unsubscribe()"]),
        Task::new(
            "who calls `isFunction`",
            vec![call("references", json!({ "symbol": "isFunction", "only": "calls" }))],
            vec![
                find("isFunction"),
                call("find_referencing_symbols", at("isFunction", "src/internal/util/isFunction.ts")),
            ],
        )
        .must(callers),
        Task::new(
            "all subclasses of `Subscriber`",
            vec![call("hierarchy", json!({ "symbol": "Subscriber", "direction": "subtypes" }))],
            vec![
                find("Subscriber"),
                call("find_implementations", at("Subscriber", "src/internal/Subscriber.ts")),
            ],
        )
        .must(["SafeSubscriber", "OperatorSubscriber"]),
        Task::new(
            "overview of `src/internal/scheduler`: all classes",
            vec![call("outline", json!({ "path": "src/internal/scheduler" }))],
            vec![call(
                "search_for_pattern",
                json!({
                    "substring_pattern": r"^export (abstract )?(class|function|const|interface) \w+",
                    "relative_path": "src/internal/scheduler",
                }),
            )],
        )
        .must(sources.top_level("src/internal/scheduler/", &declared)),
        Task::new(
            "search `new Observable<`",
            vec![call("search", json!({ "pattern": "new Observable<" }))],
            vec![call("search_for_pattern", json!({ "substring_pattern": "new Observable<" }))],
        )
        .must(sources.with("new Observable<")),
        Task::new(
            "rename `arrRemove`, after a look at the places",
            vec![call("rename", rename(false)), call("rename", rename(true))],
            vec![
                find("arrRemove"),
                call("find_referencing_symbols", at("arrRemove", removed)),
                call("rename_symbol", new_name),
            ],
        )
        .must(["src/internal/Subscription.ts"])
        .check(move |sandbox| {
            let after = Sources::read(sandbox, "ts").with("removeFrom }");
            if after == renamed {
                Ok(())
            } else {
                Err(format!("{} of {} files renamed", after.len(), renamed.len()))
            }
        }),
        Task::errors_after_edit("errors after an edit of `identity.ts`", edited, sound, broken)
            .must(["is not assignable to type 'number'"]),
    ]
}
