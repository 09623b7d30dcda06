//! The formats of a report, and which files a check is about.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use tenon_contract::position::{LineIndex, Position, Range};
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::check::files::{FilesError, changed, of_paths};
use tenon_lsp::check::{Absent, CheckedFile, Missing, Report, Verdict, github, json, sarif, text};
use tenon_lsp::model::Diagnostic;
use tenon_servers::find::SearchPath;
use tenon_servers::registry::{Registry, ServerId};
use tenon_servers::walk::Walk;

fn found(range: [u32; 4], severity: u32, source: &str, code: &str, message: &str) -> Diagnostic {
    Diagnostic {
        range: Range::new(Position::new(range[0], range[1]), Position::new(range[2], range[3])),
        severity: Some(severity),
        code: (!code.is_empty()).then(|| code.to_owned()),
        source: (!source.is_empty()).then(|| source.to_owned()),
        message: message.to_owned(),
    }
}

fn file(name: &str, text: &str, diagnostics: Vec<Diagnostic>) -> CheckedFile {
    CheckedFile { file: name.to_owned(), lines: Some(LineIndex::new(text)), diagnostics, missing: Vec::new() }
}

fn report(files: Vec<CheckedFile>) -> Report {
    Report { checked: files.len(), files, ..Report::default() }
}

fn plain(report: &Report) -> String {
    let styled = text::render(report);
    // The styles are for terminals; who prints elsewhere strips them.
    anstream::adapter::strip_str(&styled).to_string()
}

fn example() -> Report {
    let a = file(
        "src/a b.py",
        "x: int = 'ä🎉'\nprint(undefined)\n",
        vec![
            found(
                [0, 9, 0, 14],
                1,
                "Pyright",
                "reportAssignmentType",
                "Type \"str\" is not\n  assignable to \"int\"",
            ),
            found([1, 6, 1, 15], 2, "", "", "100% wrong, really: yes"),
        ],
    );
    let b = file(
        "b.ts",
        "f(\n  1,\n  2,\n)\n",
        vec![found([0, 0, 3, 1], 3, "ts", "2554", "Expected 1 argument")],
    );
    report(vec![b, a])
}

#[test]
fn text_reads_like_a_compiler() {
    insta::assert_snapshot!(plain(&example()), @r#"
    info[2554]: Expected 1 argument (ts)
     --> b.ts:1:1
      |
    1 | / f(
    2 | |   1,
    3 | |   2,
    4 | | )
      | |_^

    error[reportAssignmentType]: Type "str" is not
                                   assignable to "int" (Pyright)
     --> src/a b.py:1:10
      |
    1 | x: int = 'ä🎉'
      |          ^^^^^

    warning: 100% wrong, really: yes
     --> src/a b.py:2:7
      |
    2 | print(undefined)
      |       ^^^^^^^^^
    "#);
    assert_eq!(text::summary(&example()), "1 error, 1 warning and 1 remark in 2 files");
    assert_eq!(text::summary(&report(vec![])), "nothing found in 0 files");
}

#[test]
fn places_beyond_the_text_and_control_characters_do_no_harm() {
    let odd = file(
        "a.py",
        "x\u{1b}[31m = 1",
        vec![
            found([9, 9, 9, 9], 1, "s\u{1b}", "c\u{7}", "red \u{1b}[31mmessage"),
            found([0, 3, 0, 1], 1, "", "", "backwards"),
            found([0, 0, 900, 0], 1, "", "", "to the end"),
        ],
    );
    let empty = file("empty.py", "", vec![found([0, 0, 0, 0], 1, "", "", "nothing here")]);
    let shown = plain(&report(vec![odd, empty]));
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
    insta::assert_snapshot!(shown, @r#"
    error[c]: red ␛[31mmessage (s)
     --> a.py:1:11
      |
    1 | x␛[31m = 1
      |           ^

    error: backwards
     --> a.py:1:4
      |
    1 | x␛[31m = 1
      |    ^

    error: to the end
     --> a.py:1:1
      |
    1 | x␛[31m = 1
      | ^^^^^^^^^^

    error: nothing here
     --> empty.py:1:1
      |
    1 |
      | ^
    "#);
}

#[test]
fn json_is_canonical_and_counts_from_one() {
    insta::assert_snapshot!(json::render(&example()), @r#"{"checked":2,"complete":true,"counts":{"error":1,"hint":0,"info":1,"warning":1},"files":[{"diagnostics":[{"character":1,"code":"2554","endCharacter":2,"endLine":4,"line":1,"message":"Expected 1 argument","severity":"info","source":"ts"}],"file":"b.ts","missing":[]},{"diagnostics":[{"character":10,"code":"reportAssignmentType","endCharacter":15,"endLine":1,"line":1,"message":"Type \"str\" is not\n  assignable to \"int\"","severity":"error","source":"Pyright"},{"character":7,"endCharacter":16,"endLine":2,"line":2,"message":"100% wrong, really: yes","severity":"warning"}],"file":"src/a b.py","missing":[]}],"unavailable":[],"unserved":[],"version":1}"#);
    let mut partial = report(vec![file("a.py", "", vec![])]);
    let pyright = ServerId::new("pyright").unwrap();
    partial.files[0].missing =
        vec![Missing { server: Some(pyright.clone()), why: "not done in time".to_owned() }];
    partial.absent = BTreeMap::from([(pyright, Absent { why: "not found".to_owned(), files: 3 })]);
    partial.unserved = vec!["LICENSE".to_owned()];
    insta::assert_snapshot!(json::render(&partial), @r#"{"checked":1,"complete":false,"counts":{"error":0,"hint":0,"info":0,"warning":0},"files":[{"diagnostics":[],"file":"a.py","missing":[{"reason":"not done in time","server":"pyright"}]}],"unavailable":[{"files":3,"reason":"not found","server":"pyright"}],"unserved":["LICENSE"],"version":1}"#);
}

#[test]
fn sarif_names_rules_and_escapes_addresses() {
    let text = sarif::render(&example());
    let value: Value = serde_json::from_str(&text).unwrap();
    let run = &value["runs"][0];
    assert_eq!(value["version"], "2.1.0");
    assert_eq!(run["columnKind"], "utf16CodeUnits");
    let rules: Vec<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["Pyright/reportAssignmentType", "ts/2554", "unnamed"]);
    insta::assert_json_snapshot!(run["results"][1], @r#"
    {
      "level": "error",
      "locations": [
        {
          "physicalLocation": {
            "artifactLocation": {
              "uri": "src/a%20b.py",
              "uriBaseId": "%SRCROOT%"
            },
            "region": {
              "endColumn": 15,
              "endLine": 1,
              "startColumn": 10,
              "startLine": 1
            }
          }
        }
      ],
      "message": {
        "text": "Type \"str\" is not\n  assignable to \"int\""
      },
      "ruleId": "Pyright/reportAssignmentType",
      "ruleIndex": 0
    }
    "#);
    assert_eq!(run["results"][0]["level"], "note");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    // A run without findings is a run: it closes alerts.
    let clean: Value = serde_json::from_str(&sarif::render(&report(vec![]))).unwrap();
    assert_eq!(clean["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn github_gets_one_command_a_line() {
    insta::assert_snapshot!(github::render(&example()), @r#"
    ::notice file=b.ts,line=1,endLine=4,title=ts 2554::Expected 1 argument
    ::error file=src/a b.py,line=1,col=10,endColumn=15,title=Pyright reportAssignmentType::Type "str" is not%0A  assignable to "int"
    ::warning file=src/a b.py,line=2,col=7,endColumn=16::100%25 wrong, really: yes
    "#);
}

#[test]
fn the_verdict_says_clean_only_when_everything_was_looked_at() {
    assert_eq!(report(vec![]).verdict(), Verdict::Clean);
    assert_eq!(report(vec![file("a.py", "", vec![])]).verdict(), Verdict::Clean);
    assert_eq!(example().verdict(), Verdict::Findings);
    let mut unread = report(vec![file("a.py", "", vec![])]);
    unread.files[0].missing.push(Missing { server: None, why: "gone".to_owned() });
    assert_eq!(unread.verdict(), Verdict::Incomplete);
    let nobody = Report { checked: 0, ..report(vec![file("a.py", "", vec![])]) };
    assert_eq!(nobody.verdict(), Verdict::Incomplete);
    let mut both = example();
    both.files[0].missing.push(Missing { server: None, why: "gone".to_owned() });
    assert_eq!(both.verdict(), Verdict::Findings);
}

/// A workspace in a folder.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with(files: &[&str]) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for file in files {
            place.write(file, "");
        }
        place
    }

    fn root(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn gate(&self) -> RootGate {
        RootGate::new([self.root()]).unwrap()
    }

    fn walk(&self) -> Walk {
        Walk::new(&self.root(), &["generated/".to_owned()]).unwrap()
    }

    fn names(&self, files: Vec<WorkspacePath>) -> Vec<String> {
        files.iter().map(|file| self.gate().display(file)).collect()
    }

    fn of(&self, paths: &[&str]) -> Vec<String> {
        let paths: Vec<Utf8PathBuf> = paths.iter().map(|path| self.root().join(path)).collect();
        self.names(of_paths(&paths, &self.walk(), &self.gate(), &Registry::built_in()).unwrap())
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let done =
            Command::new("git").args(identity).args(arguments).current_dir(self.root()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    async fn changed(&self) -> Result<Vec<String>, FilesError> {
        let search = SearchPath::from_env();
        let files = changed(&self.walk(), &self.gate(), &Registry::built_in(), &search).await?;
        Ok(self.names(files))
    }
}

#[test]
fn files_are_found_by_folder_and_taken_by_name() {
    let place = Place::with(&[
        "a.py",
        "sub/b.ts",
        "sub/c.txt",
        ".hidden/d.py",
        ".e.py",
        "ignored/f.py",
        "generated/g.py",
    ]);
    place.write(".gitignore", "ignored/\n");
    assert_eq!(place.of(&[]), ["a.py", "sub/b.ts"]);
    assert_eq!(place.of(&["sub"]), ["sub/b.ts"]);
    assert_eq!(place.of(&["sub", "sub/b.ts", "ignored/f.py"]), ["ignored/f.py", "sub/b.ts"]);
    let outside = [Utf8PathBuf::from("/etc/passwd")];
    let refused = of_paths(&outside, &place.walk(), &place.gate(), &Registry::built_in()).unwrap_err();
    assert_eq!(refused.to_string(), "`/etc/passwd` is not in the workspace");
    let missing = [place.root().join("no.py")];
    assert!(of_paths(&missing, &place.walk(), &place.gate(), &Registry::built_in()).is_err());
}

#[tokio::test]
async fn changed_files_are_those_that_differ_from_the_last_commit() {
    let place = Place::with(&["same.py", "edited.py", "deleted.py", "staged.py", "notes.txt", "ä b.py"]);
    place.git(&["init", "-q"]);
    assert_eq!(place.changed().await.unwrap().len(), 5, "without a commit everything is new");
    place.git(&["add", "."]);
    place.git(&["commit", "-q", "-m", "first"]);
    assert_eq!(place.changed().await.unwrap(), [""; 0]);
    place.write("edited.py", "x = 1\n");
    place.write("ä b.py", "x = 1\n");
    place.write("notes.txt", "changed\n");
    place.write("new/n.py", "");
    place.write("generated/g.py", "");
    place.write("staged.py", "x = 1\n");
    place.git(&["add", "staged.py"]);
    std::fs::remove_file(place.root().join("deleted.py")).unwrap();
    assert_eq!(place.changed().await.unwrap(), ["edited.py", "new/n.py", "staged.py", "ä b.py"]);
}

#[tokio::test]
async fn the_repositorys_configuration_runs_nothing() {
    let place = Place::with(&["a.py", "b.py"]);
    place.git(&["init", "-q"]);
    place.git(&["add", "."]);
    place.git(&["commit", "-q", "-m", "first"]);
    let trace = place.root().join("ran");
    let evil = format!("touch {trace}");
    place.git(&["config", "core.fsmonitor", &evil]);
    place.git(&["config", "filter.evil.one.clean", &evil]);
    place.git(&["config", "filter.evil.one.process", &evil]);
    place.git(&["config", "filter.evil.one.required", "true"]);
    place.write(".gitattributes", "*.py filter=evil.one\n");
    place.write("a.py", "changed\n");
    assert_eq!(place.changed().await.unwrap(), ["a.py"]);
    assert!(!trace.exists());
}

#[tokio::test]
async fn without_a_repository_nothing_can_be_said_to_have_changed() {
    let place = Place::with(&["a.py"]);
    // The temporary folder may lie in some repository of this machine; a broken one of its own ends the search.
    place.write(".git", "gitdir: /nowhere");
    let error = place.changed().await.unwrap_err();
    assert!(error.to_string().starts_with("`git` refused: "), "{error}");
}
