//! A named selection: the keys of `suites/*.toml`.

use super::faults::{self, Fault};
use serde::Deserialize;

/// The selection that `heapmark run NAME` measures without other flags.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Suite {
    /// The file's name.
    #[serde(skip)]
    pub name: String,
    /// The suite's purpose, in a line.
    pub about: String,
    /// The preset of the suite's workloads.
    pub preset: String,
    /// Names or patterns of workloads.
    pub workloads: Vec<String>,
    /// Workloads whose memory the suite measures beside the times of the others; names or patterns.
    #[serde(default)]
    pub memory_of: Vec<String>,
    /// Parameters of the suite's workloads: `WORKLOAD.PARAMETER=VALUE`, as after `--set`, which
    /// overrides them.
    #[serde(default)]
    pub set: Vec<String>,
    /// Thread counts; `all` is the number of usable CPUs.
    pub threads: Vec<String>,
    /// Tiers of the allocators that the suite measures.
    pub tiers: Vec<super::Tier>,
    /// The allocator that the others are compared with.
    pub baseline: String,
    /// How often each allocator runs each workload; without it, as often as a ranking needs.
    pub blocks: Option<u32>,
    /// Whether blocks are added until the intervals are narrow, beginning with as many as a verdict
    /// needs.
    #[serde(default)]
    pub adaptive: bool,
    /// No block begins that would end after this many minutes.
    pub budget_minutes: Option<f64>,
    /// The time that one process should measure on the baseline, if the preset is calibrated.
    pub target_ms: u32,
    /// Whether the suite measures memory instead of time, as `--retained` does.
    #[serde(default)]
    pub memory: bool,
    /// The changes that `--preset quick` makes to a suite with a document's size.
    pub quick: Option<Quick>,
}

/// Changes to a suite for a machine with few CPUs and a run of a few minutes.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quick {
    /// Thread counts, in place of the suite's.
    pub threads: Vec<String>,
    /// How often each allocator runs each workload: enough for a first look, not always for a
    /// verdict.
    pub blocks: u32,
    /// Names or patterns of workloads, if the reduced suite has fewer.
    pub workloads: Option<Vec<String>>,
}

impl Suite {
    /// Returns the suite, as changed by a preset.
    pub fn under(&self, preset: &str) -> Suite {
        let mut suite = self.clone();
        suite.preset = preset.into();
        if let Some(quick) = suite.quick.take_if(|_| preset == "quick") {
            suite.threads = quick.threads;
            suite.blocks = Some(quick.blocks);
            suite.workloads = quick.workloads.unwrap_or(suite.workloads);
        }
        suite
    }
}

/// Reads the file of a suite.
pub fn parse(file: &str, text: &str, faults: &mut Vec<Fault>) -> Option<Suite> {
    let name = std::path::Path::new(file)
        .file_stem()?
        .to_string_lossy()
        .into_owned();
    let suite = faults::read(file, text, faults)?;
    Some(Suite { name, ..suite })
}

/// Returns the thread counts that words mean on a machine with `cpus` usable CPUs, without
/// repetitions.
pub fn thread_counts(words: &[String], cpus: u32) -> Result<Vec<u32>, String> {
    let mut counts = Vec::new();
    for word in words {
        let count = match word.as_str() {
            "all" => cpus,
            word => match word.parse() {
                Ok(count @ 1..=4096) => count,
                _ => {
                    return Err(format!(
                        "`{word}` is no thread count: give numbers from 1 to 4096, or `all`"
                    ));
                }
            },
        };
        if !counts.contains(&count) {
            counts.push(count);
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_makes_a_suite_smaller_and_paper_leaves_it_alone() {
        let text = "about = \"a\"\npreset = \"paper\"\nworkloads = []\nthreads = [\"8\"]\ntiers = []\nbaseline = \"glibc\"\n\
                    target-ms = 250\nquick = { threads = [\"1\"], blocks = 2 }\n";
        let suite = parse("suites/x.toml", text, &mut Vec::new()).unwrap();
        assert_eq!(
            (suite.under("quick").threads, suite.under("quick").blocks),
            (vec!["1".to_string()], Some(2))
        );
        assert_eq!(
            (suite.under("paper").threads, suite.under("paper").blocks),
            (vec!["8".to_string()], None)
        );
    }

    #[test]
    fn all_means_the_usable_cpus_and_is_not_said_twice() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| word.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            thread_counts(&words(&["1", "all", "2"]), 2).unwrap(),
            [1, 2]
        );
        assert_eq!(thread_counts(&words(&["all"]), 1).unwrap(), [1]);
        assert!(thread_counts(&words(&["0"]), 2).is_err());
        assert!(
            thread_counts(&words(&["many"]), 2)
                .unwrap_err()
                .contains("`many`")
        );
    }
}
