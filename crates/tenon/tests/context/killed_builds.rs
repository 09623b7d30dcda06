//! Killed builds leave the old cache, the new cache or none, never an invalid one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenon_context::{CacheSummary, Error, verify};
use tenon_testkit::processes;

/// Number of kills per test.
const KILLS: u32 = 100;

struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        // In `/dev/shm` if available: on a disk, most kills would hit a build that only waits for a sync.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for name in ["one", "two"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            for n in 0..150 {
                let text = format!("{name} document {n} ").repeat(20);
                fs::write(folder.path().join(name).join(format!("{n}.md")), text).unwrap();
            }
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn build(&self, sources: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command.args(["context", "build", "--cache"]).arg(self.path("cache"));
        command.arg("--sources").arg(self.path(sources)).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn build_completely(&self, sources: &str) -> CacheSummary {
        assert!(self.build(sources, &["--force"]).status().unwrap().success());
        verify(&self.path("cache")).unwrap()
    }

    /// Starts a build and kills it after `delay`, unless it has finished.
    fn kill_after(&self, delay: Duration, sources: &str, arguments: &[&str]) {
        let mut child = self.build(sources, arguments).spawn().unwrap();
        processes::wait_for_exit(child.id(), delay);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Delays spread evenly over a little more than the duration of a build, in shuffled order.
fn delays(length: Duration) -> impl Iterator<Item = Duration> {
    (0..KILLS).map(move |n| length.mul_f64(f64::from(n * 37 % KILLS) / f64::from(KILLS) * 1.1))
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn remove(cache: &Path) {
    if let Err(error) = fs::remove_dir_all(cache) {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}

#[test]
fn killed_build_leaves_a_complete_cache_or_none() {
    let fixture = Fixture::new();
    let expected = fixture.build_completely("one");
    remove(&fixture.path("cache"));
    let length = time(|| assert!(fixture.build("one", &[]).status().unwrap().success()));
    let (mut none, mut complete) = (0, 0);
    for delay in delays(length) {
        remove(&fixture.path("cache"));
        fixture.kill_after(delay, "one", &[]);
        match verify(&fixture.path("cache")) {
            Ok(found) => {
                assert_eq!(found, expected);
                complete += 1;
            }
            Err(Error::CacheMissing { .. }) => none += 1,
            Err(error) => panic!("after {delay:?}: {error}"),
        }
    }
    assert!(none > 0, "no build was killed before it finished; {complete} were complete");
    assert_eq!(fixture.build_completely("one"), expected);
    assert_eq!(fixture.names(), ["cache", "one", "two"]);
}

#[test]
fn killed_replacement_leaves_the_old_or_the_new_cache() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.build_completely("one"), fixture.build_completely("two"));
    let length = time(|| drop(fixture.build_completely("one")));
    let mut old = one.clone();
    let mut kept_old = 0;
    for (n, delay) in delays(length).enumerate() {
        let (sources, new) = if n % 2 == 0 { ("two", &two) } else { ("one", &one) };
        fixture.kill_after(delay, sources, &["--force"]);
        let found = verify(&fixture.path("cache")).unwrap_or_else(|error| panic!("after {delay:?}: {error}"));
        assert!(found == old || found == *new, "after {delay:?}: {found:?}");
        kept_old += u32::from(found == old && old != *new);
        old = found;
    }
    assert!(kept_old > 0, "no build was killed before it finished");
    fixture.build_completely("one");
    assert_eq!(fixture.names(), ["cache", "one", "two"]);
}
