//! The `explore` surface through the real program and real language servers: each case is a project, questions, and the
//! answers to the byte.
//!
//! `TENON_UPDATE=1 cargo nextest run -p tenon --test explore` rewrites the answers.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenon_testkit::{McpClient, RealProject, Sandbox, generated, repository_root};

const CASES: &str = "crates/tenon/tests/explore/cases";

macro_rules! cases {
    ($($test:ident $name:literal $project:expr;)*) => {
        $(#[test]
        fn $test() {
            check($name, $project);
        })*

        /// The folders with cases.
        const NAMES: &[&str] = &[$($name),*];
    };
}

cases! {
    python_project_is_explored "python" None;
    typescript_project_is_explored "typescript" None;
    tsx_project_is_explored "tsx" None;
    javascript_project_is_explored "javascript" None;
    rust_project_is_explored "rust" None;
    go_project_is_explored "go" None;
    java_project_is_explored "java" None;
    c_project_is_explored "c" None;
    cpp_project_is_explored "cpp" None;
    csharp_project_is_explored "csharp" None;
    ruby_project_is_explored "ruby" None;
    php_project_is_explored "php" None;
    bash_project_is_explored "bash" None;
    django_is_explored "django" Some(RealProject::Django);
    rxjs_is_explored "rxjs" Some(RealProject::Rxjs);
    regex_syntax_is_explored "regex-syntax" Some(RealProject::RegexSyntax);
    eigen_is_explored "eigen" Some(RealProject::Eigen);
}

#[test]
fn every_case_has_a_test() {
    let mut folders: Vec<String> = fs::read_dir(repository_root().join(CASES))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut names = NAMES.to_vec();
    names.sort_unstable();
    assert_eq!(folders, names);
}

#[test]
fn go_types_and_methods_are_not_called_complete_without_gopls() {
    let tree = fs::read_to_string(repository_root().join(case("go", "project.tree"))).unwrap();
    let sandbox = Sandbox::with_tree(&tree);
    sandbox.write_user_config("[servers.gopls]\nenabled = false\n");
    let mut client = explore(&sandbox);
    for (symbol, direction) in [
        ("Shape", "subtypes"),
        ("Circle", "supertypes"),
        ("Shape.Area", "subtypes"),
        ("Circle.Area", "supertypes"),
    ] {
        let question = format!(r#"hierarchy {{"symbol": "{symbol}", "direction": "{direction}"}}"#);
        let answer = ask(&mut client, &question);
        assert!(answer.contains("only gopls knows them"), "{question}: {answer}");
    }
}

fn case(name: &str, file: &str) -> PathBuf {
    Path::new(CASES).join(name).join(file)
}

fn check(name: &str, project: Option<RealProject>) {
    let read = |file: &str| fs::read_to_string(repository_root().join(case(name, file))).unwrap();
    let sandbox = match project {
        Some(project) => Sandbox::with_project(project),
        None => Sandbox::with_tree(&read("project.tree")),
    };
    let mut client = explore(&sandbox);
    let mut answers = String::new();
    for question in read("questions").lines() {
        let answer = ask(&mut client, question);
        answers.push_str(&format!("> {question}\n{answer}\n\n"));
    }
    generated::check(case(name, "answers"), &answers);
}

fn explore(sandbox: &Sandbox) -> McpClient {
    McpClient::connect(sandbox.tenon().args(["mcp", "--no-daemon", "--surface", "explore"]))
}

/// The text of an answer; an error is marked.
fn ask(client: &mut McpClient, question: &str) -> String {
    let (tool, arguments) = question.split_once(' ').unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    let answer = client.call_tool(tool, arguments).unwrap();
    assert_eq!(answer.structured, Value::Null, "text is the only content");
    let text = answer.text.join("\n");
    if answer.is_error { format!("error: {text}") } else { text }
}
