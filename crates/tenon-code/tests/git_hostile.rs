//! Reading hostile repositories runs none of their programs and reads nothing outside.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_code::git::{GitError, GitRepository};
use tenon_servers::find::SearchPath;

const CONFIGURATIONS: &str = include_str!("hostile/git/configurations.txt");

struct Configuration<'a> {
    name: &'a str,
    commands: String,
    expected: &'a str,
}

fn configurations() -> Vec<Configuration<'static>> {
    let blocks = CONFIGURATIONS.split("\n\n").filter(|block| !block.starts_with('#'));
    blocks
        .map(|block| {
            let mut lines: Vec<&str> = block.trim().lines().collect();
            let expected = lines.pop().unwrap();
            assert!(expected.starts_with(['=', '!']), "{block}");
            let name = lines.remove(0);
            Configuration { name, commands: lines.join("\n"), expected }
        })
        .collect()
}

fn shell(commands: &str, folder: &Utf8Path, secret: &Utf8Path, mark: &Utf8Path) {
    let done = Command::new("sh")
        .args(["-ec", commands])
        .current_dir(folder)
        .env("RUN", format!("touch {mark}"))
        .env("SECRET", secret)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{commands}: {}", String::from_utf8_lossy(&done.stderr));
}

const COMMIT: &str =
    "git init -q && git add . && git -c user.name=A -c user.email=a@example.org commit -q -m first";

/// What a caller does with a repository; all texts must belong to it.
async fn use_repository(root: &Utf8Path, time_limit: Duration) -> Result<String, GitError> {
    let mut path = OsString::from(root.as_str());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let repository = GitRepository::open(root, &SearchPath::new(&path), time_limit).await?;
    let revision = repository.revision("HEAD").await?;
    let changes = repository.changes(&revision, Vec::new(), |path| path.extension() == Some("py")).await?;
    let blobs: Vec<_> = changes.iter().filter_map(|change| change.before.clone()).collect();
    let mut texts = repository.texts(&blobs).await?;
    for change in &changes {
        texts.push(repository.text_before(&change.path).await?);
    }
    assert!(texts.iter().flatten().all(|text| text.starts_with("old")), "{texts:?}");
    let names = changes.iter().map(|change| match change.exists {
        true => change.path.to_string(),
        false => format!("-{}", change.path),
    });
    Ok(names.collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn hostile_repository_runs_nothing_and_reads_nothing_outside() {
    let configurations = configurations();
    assert!(configurations.len() >= 30, "{}", configurations.len());
    for Configuration { name, commands, expected } in configurations {
        let folder = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let (root, secret, mark) = (base.join("w"), base.join("secret"), base.join("mark"));
        for folder in [root.join("sub"), secret.clone()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for file in ["a.py", "b.py", "sub/c.py"] {
            std::fs::write(root.join(file), format!("old {file}\n")).unwrap();
        }
        std::fs::write(secret.join("a.py"), "secret\n").unwrap();
        shell(COMMIT, &root, &secret, &mark);
        shell(COMMIT, &secret, &secret, &mark);
        std::fs::write(root.join("a.py"), "new\n").unwrap();
        shell(&commands, &root, &secret, &mark);
        // Git itself may have run something while the repository was prepared.
        let _ = std::fs::remove_file(&mark);
        let pipe = expected.contains("took longer");
        let time_limit = Duration::from_secs(if pipe { 1 } else { 30 });
        let found = use_repository(&root, time_limit).await;
        assert!(!mark.exists(), "{name}: a program ran");
        match (expected.split_at(2), found) {
            (("= ", expected), Ok(found)) => {
                let mut expected: Vec<&str> = expected.split(' ').collect();
                expected.sort_by_key(|name| name.trim_start_matches('-'));
                assert_eq!(found, expected.join(" "), "{name}");
            }
            (("! ", expected), Err(error)) => {
                let expected = expected.replace("ROOT", root.as_str());
                assert!(error.to_string().starts_with(&expected), "{name}: {error}");
            }
            (_, found) => panic!("{name}: {found:?}"),
        }
    }
}
