//! The values in the given runs: the value of a row at a place, or what is missing. Judges nothing.

use super::judged::Number;
use super::scene::{Measured, Scene};
use super::values::values;
use crate::analyse::group::Group;
use crate::analyse::interference::InterferenceSummary;
use crate::analyse::{Role, Spread};
use crate::catalog::claim::{Document, DocumentRow, Measure, Threads};
use crate::catalog::malloc_api::matches;
use crate::plan::Case;
use std::collections::BTreeSet;
use std::fmt;

/// Where a value was measured: a workload at a thread count, under a distribution of sizes if the
/// claim names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Workload.
    pub workload: String,
    /// Threads.
    pub threads: u32,
    /// Value of the parameter `distribution`.
    pub distribution: Option<String>,
}

/// The runs, by machine.
pub struct Evidence<'a> {
    pub(super) here: Vec<Scene<'a>>,
    pub(super) elsewhere: Vec<Scene<'a>>,
    /// Usable physical cores.
    pub cores: u32,
    pub(super) architecture: String,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lack {
    Workload(String),
    Cores {
        needed: u32,
        cores: u32,
    },
    Threads {
        workload: String,
        threads: u32,
    },
    Row {
        name: String,
        workload: String,
        bring: Option<String>,
    },
    Failed {
        name: String,
        workload: String,
        summary: String,
    },
    Figure {
        name: String,
        workload: String,
        measure: String,
    },
    Other(String),
}

impl<'a> Evidence<'a> {
    /// Groups the runs by the first one's machine and others. Ignores runs that timed single calls,
    /// counted or sampled memory.
    pub fn new(runs: &'a [Measured]) -> Evidence<'a> {
        let fact =
            |run: &Measured, key: &str| run.head.machine.get(key).cloned().unwrap_or_default();
        let machine = |run: &Measured| (fact(run, "architecture"), fact(run, "cpu_model"));
        let timed = runs
            .iter()
            .filter(|run| !run.head.plan.mode.is_for_kernels());
        let first = runs.first().map(machine).unwrap_or_default();
        let (here, elsewhere): (Vec<_>, Vec<_>) = timed.partition(|run| machine(run) == first);
        let cpus = runs
            .first()
            .and_then(|run| fact(run, "usable_cpus").parse::<u32>().ok())
            .unwrap_or(1);
        let smt = runs
            .first()
            .is_some_and(|run| fact(run, "smt_active") == "1");
        let scenes = |runs: Vec<&'a Measured>| runs.into_iter().map(Scene::new).collect();
        Evidence {
            here: scenes(here),
            elsewhere: scenes(elsewhere),
            cores: if smt { cpus.div_ceil(2) } else { cpus },
            architecture: first.0,
        }
    }

    /// Parts of blocks that had interference, and the number of all parts.
    pub fn disturbed(&self) -> (usize, usize) {
        let sum = |of: fn(&InterferenceSummary) -> usize| {
            self.here.iter().map(|scene| of(&scene.interference)).sum()
        };
        (
            sum(|interference| interference.disturbed),
            sum(|interference| interference.parts),
        )
    }

    /// Thread counts that a workload was run with here, ascending.
    pub fn counts(&self, workload: &str, distribution: Option<&str>) -> Vec<u32> {
        let cases = self
            .here
            .iter()
            .flat_map(|scene| &scene.cases)
            .map(|(case, _)| *case);
        let wanted = cases.filter(|case| case.workload == workload && is_of(case, distribution));
        wanted
            .map(|case| case.threads)
            .collect::<BTreeSet<u32>>()
            .into_iter()
            .collect()
    }

    /// The places of a workload that a claim covers.
    pub(super) fn spots(
        &self,
        workload: &str,
        threads: Threads,
        distribution: Option<&str>,
    ) -> Result<Vec<Spot>, Lack> {
        let counts = self.counts(workload, distribution);
        let fewest = *counts
            .first()
            .ok_or_else(|| Lack::Workload(named(workload, distribution)))?;
        let fitting: Vec<u32> = counts
            .iter()
            .copied()
            .filter(|count| *count <= self.cores)
            .collect();
        let chosen = match threads {
            Threads::Any => counts,
            Threads::Each => fitting,
            Threads::Most => fitting.last().copied().into_iter().collect(),
            Threads::Count(needed) if needed > self.cores => {
                return Err(Lack::Cores {
                    needed,
                    cores: self.cores,
                });
            }
            Threads::Count(threads) if !counts.contains(&threads) => {
                return Err(Lack::Threads {
                    workload: workload.into(),
                    threads,
                });
            }
            Threads::Count(threads) => vec![threads],
        };
        if chosen.is_empty() {
            return Err(Lack::Cores {
                needed: fewest,
                cores: self.cores,
            });
        }
        let spot = |threads| Spot {
            workload: workload.into(),
            threads,
            distribution: distribution.map(String::from),
        };
        Ok(chosen.into_iter().map(spot).collect())
    }

    /// The value of a row of the document.
    pub(super) fn number(
        &self,
        document: &Document,
        row: &str,
        spot: &Spot,
        measure: &Measure,
    ) -> Result<Number, Lack> {
        let Some(entry) = document.rows.get(row) else {
            return Err(Lack::Other(format!("no row {row}")));
        };
        let workload = entry
            .workload
            .clone()
            .unwrap_or_else(|| spot.workload.clone());
        // A sentence gives the place of its claim; the row's workload is added if it is another
        // one.
        let aside = if workload == spot.workload {
            String::new()
        } else {
            format!(" ({workload})")
        };
        let spot = &Spot {
            workload: workload.clone(),
            ..spot.clone()
        };
        if self.case(spot).is_none() {
            return Err(Lack::Workload(format!("{workload}@{}", spot.threads)));
        }
        // One run's plan may name the row without having samples of it yet, while another has them.
        let mut lack = None;
        for (scene, group) in self
            .at(spot)
            .filter_map(|(scene, groups)| Some((scene, find(entry, groups)?)))
        {
            if let Some(number) = number(scene, group, measure) {
                return Ok(Number {
                    row: number.row + &aside,
                    ..number
                });
            }
            let (name, workload) = (group.allocator.name.clone(), workload.clone());
            lack = lack.or_else(|| match &group.failed {
                Some(failed) => Some(Lack::Failed {
                    name,
                    workload,
                    summary: failed.summary(),
                }),
                None => Some(Lack::Figure {
                    name,
                    workload,
                    measure: measure.to_string(),
                }),
            });
        }
        let bring = entry
            .brought
            .then(|| entry.ours[0].trim_end_matches('*').to_string());
        Err(lack.unwrap_or_else(|| Lack::Row {
            name: row.into(),
            workload,
            bring,
        }))
    }

    /// The values of all allocators at a place, whether a document names them or not.
    pub(super) fn allocators(&self, spot: &Spot, measure: &Measure) -> Vec<Number> {
        let mut all: Vec<Number> = Vec::new();
        for (scene, groups) in self.at(spot) {
            for group in groups
                .iter()
                .filter(is_compared)
                .filter(|group| group.allocator.tier != "program")
            {
                let known = all.iter().any(|number| number.row == group.allocator.name);
                all.extend(number(scene, group, measure).filter(|_| !known));
            }
        }
        all
    }

    /// The case at a place, as the first run that has it ran it.
    pub(super) fn case(&self, spot: &Spot) -> Option<&'a Case> {
        self.here
            .iter()
            .flat_map(|scene| &scene.cases)
            .map(|(case, _)| *case)
            .find(|case| spot.is(case))
    }

    /// The rows at a place, run by run. Runs with other parameters than the first one's are other
    /// experiments.
    fn at<'e>(
        &'e self,
        spot: &'e Spot,
    ) -> impl Iterator<Item = (&'e Scene<'a>, &'e Vec<Group<'a>>)> {
        let first = self.case(spot);
        let same =
            move |case: &Case| first.is_some_and(|first| first.parameters == case.parameters);
        let cases = self.here.iter().flat_map(|scene| {
            scene
                .cases
                .iter()
                .map(move |(case, rows)| (scene, *case, rows))
        });
        cases
            .filter(move |(_, case, _)| spot.is(case) && same(case))
            .map(|(scene, _, rows)| (scene, rows))
    }
}

/// The row of an entry: the first of its names that the run has.
pub(super) fn find<'g, 'a>(entry: &DocumentRow, groups: &'g [Group<'a>]) -> Option<&'g Group<'a>> {
    let named = |pattern: &String| {
        groups
            .iter()
            .filter(is_compared)
            .find(|group| matches(pattern, &group.allocator.name))
    };
    entry.ours.iter().find_map(named)
}

fn is_compared(group: &&Group) -> bool {
    !matches!(Role::of(group.allocator, ""), Role::AaCopy | Role::Floor)
}

fn number(scene: &Scene, group: &Group, measure: &Measure) -> Option<Number> {
    let values = values(scene, group, measure);
    let Spread { median, min, max } = Spread::of(&values)?;
    let row = group.allocator.name.clone();
    Some(Number {
        row,
        measure: Some(measure.clone()),
        median,
        min,
        max,
        samples: values.len(),
    })
}

impl Spot {
    pub(super) fn is(&self, case: &Case) -> bool {
        (&case.workload, case.threads) == (&self.workload, self.threads)
            && is_of(case, self.distribution.as_deref())
    }
}

fn is_of(case: &Case, distribution: Option<&str>) -> bool {
    distribution.is_none_or(|wanted| {
        case.parameters
            .get("distribution")
            .is_some_and(|value| value == wanted)
    })
}

fn named(workload: &str, distribution: Option<&str>) -> String {
    distribution.map_or_else(
        || workload.to_string(),
        |distribution| format!("{workload} ({distribution})"),
    )
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.workload, self.threads)
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Workload(workload) => write!(f, "{workload} is in no run"),
            Lack::Cores { needed, cores } => write!(
                f,
                "{needed} threads need as many cores, and {cores} are usable"
            ),
            Lack::Threads { workload, threads } => {
                write!(f, "{workload} was not run with {threads} threads")
            }
            Lack::Row {
                name,
                bring: Some(bring),
                ..
            } => {
                write!(
                    f,
                    "{name} has no row: no registry has it, bring it with -a {bring}=/path/lib.so"
                )
            }
            Lack::Row {
                name,
                workload,
                bring: None,
            } => write!(f, "{name} has no row on {workload}"),
            Lack::Failed {
                name,
                workload,
                summary,
            } => write!(f, "{name} on {workload}: {summary}"),
            Lack::Figure {
                name,
                workload,
                measure,
            } => write!(f, "{name} on {workload} has no {measure}"),
            Lack::Other(words) => f.write_str(words),
        }
    }
}
