//! Which TypeScript server runs in which project, and what it does not support, as people and programs see it.

use std::os::unix::fs::symlink;

use serde_json::Value;
use tenon_testkit::{Sandbox, program};

use crate::{json, tenon};

/// Two projects; the one in `web` is for TypeScript 5.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n//- .gitignore\nnode_modules/\n\
         //- api/package-lock.json\n{}\n//- api/tsconfig.json\n{}\n//- api/a.ts\nexport const a = 1;\n\
         //- web/package-lock.json\n{}\n//- web/tsconfig.json\n{ \"compilerOptions\": { \"baseUrl\": \".\" } }\n\
         //- web/lib/b.ts\nexport const b = 1;\n\
         //- web/c.ts\nimport { b } from 'lib/b';\nexport const c: string = b;\n",
    );
    let modules = sandbox.root().join("web/node_modules");
    std::fs::create_dir(&modules).unwrap();
    symlink(program::node_modules().join("typescript"), modules.join("typescript")).unwrap();
    sandbox
}

/// The choices of the list, as `project server: why`, each followed by its notes.
fn choices(sandbox: &Sandbox) -> Vec<String> {
    let listed = json(sandbox, &["servers", "list", "--json"]);
    let shown = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        let chosen = format!("{} {}: {}", text("project"), text("server"), text("why"));
        let notes = one["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned());
        std::iter::once(chosen).chain(notes).collect::<Vec<_>>()
    };
    listed["choices"].as_array().unwrap().iter().flat_map(shown).collect()
}

fn lines(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let printed = tenon(sandbox, args);
    let text = String::from_utf8(printed.stdout).unwrap() + &String::from_utf8(printed.stderr).unwrap();
    text.lines().filter(|line| line.contains("typescript")).map(str::to_owned).collect()
}

const IGNORED: &str = "`typescript-native` ignores `baseUrl` in `web/tsconfig.json`; \
                       for an older version set `servers.typescript-language-server.enabled = true`";

#[test]
fn list_says_for_each_project_which_server_was_chosen_and_why() {
    let sandbox = workspace();
    let missed =
        "the project has `typescript` 5.9.3, which `typescript-language-server` would use: run `tenon trust`";
    assert_eq!(
        choices(&sandbox),
        ["api typescript-native: the default", "web typescript-native: the default", missed, IGNORED,]
    );
    assert!(tenon(&sandbox, &["trust"]).status.success());
    let kept = "web typescript-language-server: the project has `typescript` 5.9.3";
    assert_eq!(choices(&sandbox), ["api typescript-native: the default", kept]);
    let listed = lines(&sandbox, &["servers", "list"]);
    let text =
        "TypeScript and JavaScript in web: typescript-language-server, the project has `typescript` 5.9.3";
    assert!(listed.contains(&text.to_owned()), "{listed:#?}");
    let findings = lines(&sandbox, &["check", "--no-daemon"]);
    assert_eq!(findings, ["error[2322]: Type 'number' is not assignable to type 'string'. (typescript)"]);

    sandbox.write_user_config("[servers.typescript-native]\nenabled = true\n");
    let enabled = "web typescript-native: enabled in the configuration";
    assert_eq!(choices(&sandbox), ["api typescript-native: enabled in the configuration", enabled, IGNORED]);
}

#[test]
fn option_that_typescript_7_ignores_is_named_by_check_and_doctor() {
    let sandbox = workspace();
    let note = format!("note: {IGNORED}");
    assert_eq!(lines(&sandbox, &["check", "--no-daemon"]), [note]);
    let report = tenon(&sandbox, &["check", "--no-daemon", "--format", "json"]).stdout;
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["notes"], serde_json::json!([IGNORED]));
    let doctor = lines(&sandbox, &["doctor"]);
    assert!(doctor.iter().any(|line| line.ends_with(IGNORED)), "{doctor:#?}");
}
