//! Memory, descriptors and threads of the daemon over a run, and whether they grow.

use std::fmt;
use std::fs;

use tenon_testkit::processes::ProcessInfo;

/// Samples at the start that do not count: caches fill.
const WARM_UP: usize = 3;
/// Fewer samples after the warm-up decide nothing.
const MIN_SAMPLES: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    memory_kib: u64,
    descriptors: u64,
    threads: u64,
}

/// The samples of one process.
#[derive(Debug, Default)]
pub(super) struct ProcessSeries {
    id: u32,
    samples: Vec<Sample>,
}

impl ProcessSeries {
    /// Adds a sample; another process starts a new series.
    pub(super) fn add(&mut self, process: &ProcessInfo) {
        if process.id != self.id {
            *self = Self { id: process.id, samples: Vec::new() };
        }
        let threads = fs::read_dir(format!("/proc/{}/task", process.id));
        let descriptors = fs::read_dir(format!("/proc/{}/fd", process.id));
        let count = |entries: std::io::Result<fs::ReadDir>| entries.map_or(0, |list| list.count() as u64);
        self.samples.push(Sample {
            memory_kib: process.resident_kib(),
            descriptors: count(descriptors),
            threads: count(threads),
        });
    }

    /// What grew beyond its bound between the first and the last third of the samples after the warm-up: memory by a quarter
    /// and 32 MiB, descriptors by 20, threads by 8. `None` if the samples are too few.
    pub(super) fn growth(&self) -> Option<Vec<String>> {
        let counted = self.samples.get(WARM_UP..).filter(|samples| samples.len() >= MIN_SAMPLES)?;
        let third = counted.len() / 3;
        let (first, last) = (&counted[..third], &counted[counted.len() - third..]);
        let mean = |samples: &[Sample], of: fn(&Sample) -> u64| {
            samples.iter().map(of).sum::<u64>() / samples.len() as u64
        };
        let mut grown = Vec::new();
        let mut check = |what: &str, of: fn(&Sample) -> u64, bound: fn(u64) -> u64| {
            let (before, after) = (mean(first, of), mean(last, of));
            if after > bound(before) {
                grown.push(format!(
                    "{what} of the daemon grew from {before} to {after}, at most {} is allowed",
                    bound(before)
                ));
            }
        };
        check("memory (KiB)", |sample| sample.memory_kib, |before| before + before / 4 + 32 * 1024);
        check("descriptors", |sample| sample.descriptors, |before| before + 20);
        check("threads", |sample| sample.threads, |before| before + 8);
        Some(grown)
    }
}

impl fmt::Display for ProcessSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |of: fn(&Sample) -> u64| {
            let texts: Vec<String> = self.samples.iter().map(|sample| of(sample).to_string()).collect();
            texts.join(" ")
        };
        writeln!(f, "memory of the last daemon (MiB): {}", list(|sample| sample.memory_kib / 1024))?;
        writeln!(f, "descriptors: {}", list(|sample| sample.descriptors))?;
        write!(f, "threads: {}", list(|sample| sample.threads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(memory_mib: impl Iterator<Item = u64>) -> ProcessSeries {
        let sample = |mib: u64| Sample { memory_kib: mib * 1024, descriptors: 40, threads: 20 };
        ProcessSeries { id: 1, samples: memory_mib.map(sample).collect() }
    }

    #[test]
    fn growth_beyond_the_bound_is_found() {
        assert_eq!(series((0..30).map(|_| 100)).growth(), Some(Vec::new()));
        assert_eq!(series((0..30).map(|step| 100 + step)).growth(), Some(Vec::new()));
        assert_eq!(series((0..30).map(|step| 100 + 10 * step)).growth().map(|grown| grown.len()), Some(1));
        assert_eq!(series((0..5).map(|_| 100)).growth(), None);
    }
}
