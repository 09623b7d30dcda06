//! Measures the index on a tree: `cargo run --release -p tenon-index --example measure -- FOLDER`.
//!
//! Prints one `name: value` per line. The tree is walked here, because the index does not walk.
#![expect(clippy::print_stdout, reason = "prints its results")]

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Clock;
use tenon_index::{
    IndexOptions, ParseOutcome, SearchLimits, SearchMode, SearchRequest, SearchScope, SymbolFilter,
    SymbolQuery, SyntaxIndex,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().expect("usage: measure FOLDER");
    let root = Utf8Path::new(&root).canonicalize_utf8().expect("the folder exists");
    let files = walk(&root);
    if let Some(store) = arguments.next() {
        return measure_memory(root, store.into(), &files);
    }
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let store = Utf8Path::from_path(scratch.path()).expect("a UTF-8 path").join("index");
    let options = IndexOptions { root: root.clone(), store: Some(store.clone()), clock: Clock::system() };

    let index = SyntaxIndex::open(options.clone());
    print("cold", time(|| index.replace_files(&files)));
    let view = index.view();
    let whole = view.files().filter(|file| file.outcome() == ParseOutcome::Whole).count();
    let symbols: usize = view.files().map(|file| file.symbols().len()).sum();
    println!("files: {}, parsed whole: {whole}, symbols: {symbols}", view.files().len());
    print("unchanged", time(|| index.replace_files(&files)));
    print("save", time(|| index.save().expect("the store can be written")));
    println!("store: {} bytes", std::fs::metadata(&store).map_or(0, |metadata| metadata.len()));
    let restarted = SyntaxIndex::open(options);
    print("stored", time(|| restarted.replace_files(&files)));
    println!("parsed after restart: {}", restarted.parsed_files());
    // In another process, so that parsing leaves no traces in the heap.
    let program = std::env::current_exe().expect("a path");
    let status = std::process::Command::new(program).args([root.as_str(), store.as_str()]).status();
    assert!(status.is_ok_and(|status| status.success()), "the memory of the index is measured");

    let view = index.view();
    for name in ["filter", "QuerySet.filter", "querySet", "querys", "responseStart", "nothing_like_this"] {
        let query = SymbolQuery::parse(name).expect("a query");
        let (mut total, mut tier) = (0, None);
        let spent = time(|| {
            let found = view.find(&query, &SymbolFilter::default());
            (total, tier) = (found.total, Some(found.tier));
        });
        println!("find {name}: {:.3?} ({total}, {tier:?})", spent.wall);
    }
    print("nearest names", time(|| drop(view.nearest_names("fitler", 5))));
    print("files mentioning", time(|| drop(view.files_mentioning("QuerySet"))));
    print("reference counts, first", time(|| drop(view.reference_counts())));
    print("reference counts, again", time(|| drop(view.reference_counts())));
    for (file, count) in view.reference_counts().iter().take(5) {
        println!("  {} {count}", file.path());
    }
    for (mode, pattern) in [
        (SearchMode::Text, "select_related"),
        (SearchMode::Regex, r"def \w+_related\("),
        (SearchMode::Text, "e"),
        (SearchMode::Syntax, "getattr($A, $B, None)"),
        (SearchMode::Syntax, "super().__init__($$$)"),
        (SearchMode::Syntax, "$A.subscribe($$$)"),
    ] {
        let request = SearchRequest {
            pattern: pattern.into(),
            mode,
            scope: SearchScope::default(),
            limits: SearchLimits::default(),
        };
        // The first search pays for files that the system has not read yet.
        let _ = view.search(&request, &files);
        let mut total = None;
        let spent =
            time(|| total = view.search(&request, &files).ok().map(|result| (result.total, result.files)));
        println!("search {mode:?} {pattern}: {spent} {total:?}");
    }
}

/// Wall time, and the processor time of all threads, which other load on the machine does not change much.
struct Spent {
    wall: Duration,
    processor: Duration,
}

impl std::fmt::Display for Spent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.3?} wall, {:.0?} processor", self.wall, self.processor)
    }
}

fn time(run: impl FnOnce()) -> Spent {
    let (start, before) = (Instant::now(), processor_time());
    run();
    Spent { wall: start.elapsed(), processor: processor_time().saturating_sub(before) }
}

/// To 10 ms; zero where the system does not tell.
fn processor_time() -> Duration {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = status.rsplit(") ").next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn print(name: &str, spent: Spent) {
    println!("{name}: {spent}");
}

fn measure_memory(root: Utf8PathBuf, store: Utf8PathBuf, files: &[Utf8PathBuf]) {
    let before = resident_kib();
    let index = SyntaxIndex::open(IndexOptions { root, store: Some(store), clock: Clock::system() });
    index.replace_files(files);
    println!("resident with the index: {} KiB more", resident_kib() - before);
}

fn walk(root: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().expect("a folder").flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.into_path()),
                Ok(kind) if kind.is_file() => files.push(entry.into_path()),
                _ => {}
            }
        }
    }
    files
}

/// In KiB; 0 where the system does not tell.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
