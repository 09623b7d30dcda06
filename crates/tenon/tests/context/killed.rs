//! Builds that are killed at any moment: afterwards there is the old cache, the new one or none, never a broken one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenon_context::{Error, Summary, verify};
use tenon_testkit::processes;

/// Kills of each kind of build.
const KILLS: u32 = 100;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        // In memory where the system has that: what is on the disk after a kill is not what is tested here, and a build
        // whose time goes into waiting for the disk is killed while it waits.
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

    fn build_whole(&self, sources: &str) -> Summary {
        assert!(self.build(sources, &["--force"]).status().unwrap().success());
        verify(&self.path("cache")).unwrap()
    }

    /// Starts a build and kills it after `delay`, unless it is done by then.
    fn kill_after(&self, delay: Duration, sources: &str, arguments: &[&str]) {
        let mut child = self.build(sources, arguments).spawn().unwrap();
        processes::wait_for(child.id(), delay);
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

/// Moments spread evenly over a build of this length and a little more, in an order that jumps about.
fn moments(length: Duration) -> impl Iterator<Item = Duration> {
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
fn a_killed_build_leaves_a_whole_cache_or_none() {
    let bench = Bench::new();
    let whole = bench.build_whole("one");
    remove(&bench.path("cache"));
    let length = time(|| assert!(bench.build("one", &[]).status().unwrap().success()));
    let (mut none, mut complete) = (0, 0);
    for moment in moments(length) {
        remove(&bench.path("cache"));
        bench.kill_after(moment, "one", &[]);
        match verify(&bench.path("cache")) {
            Ok(found) => {
                assert_eq!(found, whole);
                complete += 1;
            }
            Err(Error::CacheMissing { .. }) => none += 1,
            Err(error) => panic!("after {moment:?}: {error}"),
        }
    }
    assert!(none > 0, "no build was killed before its end; {complete} were complete");
    assert_eq!(bench.build_whole("one"), whole);
    assert_eq!(bench.names(), ["cache", "one", "two"]);
}

#[test]
fn a_killed_replacement_leaves_the_old_cache_or_the_new_one() {
    let bench = Bench::new();
    let (one, two) = (bench.build_whole("one"), bench.build_whole("two"));
    let length = time(|| drop(bench.build_whole("one")));
    let mut old = one.clone();
    let mut kept = 0;
    for (n, moment) in moments(length).enumerate() {
        let (sources, new) = if n % 2 == 0 { ("two", &two) } else { ("one", &one) };
        bench.kill_after(moment, sources, &["--force"]);
        let found = verify(&bench.path("cache")).unwrap_or_else(|error| panic!("after {moment:?}: {error}"));
        assert!(found == old || found == *new, "after {moment:?}: {found:?}");
        kept += u32::from(found == old && old != *new);
        old = found;
    }
    assert!(kept > 0, "no build was killed before its end");
    bench.build_whole("one");
    assert_eq!(bench.names(), ["cache", "one", "two"]);
}
