//! The values in the given runs: the value of a row at a place, or what is missing. Makes no
//! judgement.

use super::judged::{Number, ValueBlocks};
use super::scene::{Machine, Measured, Scene};
use super::values::{time_of, values};
use crate::document::{DocumentRow, Measure, Rows, Threads};
use heapmark_core::analyse::Role;
use heapmark_core::analyse::group::{CaseGroups, Group, PairKey};
use heapmark_core::analyse::interference::InterferenceSummary;
use heapmark_core::catalog::Workload;
use heapmark_core::catalog::malloc_api::matches;
use heapmark_core::plan::{Case, case_name};
use heapmark_stats::geometric_mean;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

/// Where a value was measured: a workload at a thread count, under a distribution of sizes if the
/// claim names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The workload's name.
    pub workload: String,
    /// The thread count.
    pub threads: u32,
    /// The value of the parameter `distribution`.
    pub distribution: Option<String>,
}

/// The runs, seen from one machine: a claim compares only rows that were measured on one machine.
pub struct Evidence<'a> {
    /// The catalogue's workloads, for the documents' sizes.
    pub workloads: &'a [Workload],
    scenes: Rc<[Scene<'a>]>,
    machine: Machine<'a>,
    /// The number of usable physical cores.
    pub cores: u32,
}

/// Why there is no value.
#[derive(Clone, Debug)]
pub enum Lack {
    /// No run has measured the value.
    Missing(String),
    /// A process of the row did not end `ok`, or the row had too few cores.
    Failed {
        words: String,
        /// The row and how its process failed.
        row: String,
    },
    /// There are values, but they cannot be compared.
    Other(String),
}

impl<'a> Evidence<'a> {
    /// The runs as seen from the first run's machine. Ignores runs that timed single calls, counted
    /// or sampled memory.
    pub fn new(workloads: &'a [Workload], runs: &'a [Measured]) -> Evidence<'a> {
        let runs = runs.iter().filter(|run| run.head.plan.mode.spec().plain);
        let scenes: Rc<[Scene]> = runs.map(Scene::new).collect();
        Evidence::seen_from(scenes.first(), workloads, &scenes)
    }

    /// Returns the evidence as seen from each machine that ran one of these workloads, the machine
    /// with the most cores first; if no machine did, the evidence is unchanged.
    pub fn of_machines<'n>(
        &self,
        workloads: impl Iterator<Item = &'n String> + Clone,
    ) -> Vec<Evidence<'a>> {
        let is_of_it = |case: &Case| workloads.clone().any(|name| *name == case.workload);
        let has_any = |scene: &&Scene| scene.tables.iter().any(|table| is_of_it(table.case));
        let from = |scene| Evidence::seen_from(Some(scene), self.workloads, &self.scenes);
        let mut all: Vec<Evidence> = Vec::new();
        for seen in self.scenes.iter().filter(has_any).map(from) {
            if !all.iter().any(|other| other.machine == seen.machine) {
                all.push(seen);
            }
        }
        all.sort_by_key(|seen| Reverse(seen.cores));
        if all.is_empty() {
            let here = self.here().next();
            all.push(Evidence::seen_from(here, self.workloads, &self.scenes));
        }
        all
    }

    /// The machine in words, as in `AMD EPYC, 2 usable CPUs`.
    pub fn machine_words(&self) -> String {
        let Machine {
            cpu_model,
            usable_cpus,
            ..
        } = self.machine;
        format!("{cpu_model}, {usable_cpus} usable CPUs")
    }

    /// Counts the parts of blocks in the runs that have one of these places, and those among them
    /// that were disturbed.
    pub fn disturbed(&self, spots: &[Spot]) -> (usize, usize) {
        let is_of_them = |case: &Case| spots.iter().any(|spot| spot.is(case));
        let has_any = |scene: &&Scene| scene.tables.iter().any(|table| is_of_them(table.case));
        let seen = self.here().filter(has_any).map(|scene| &scene.interference);
        seen.fold((0, 0), |(parts, disturbed), interference| {
            (
                parts + interference.parts,
                disturbed + interference.disturbed,
            )
        })
    }

    /// The evidence as seen from the machine of this run.
    fn seen_from(
        run: Option<&Scene<'a>>,
        workloads: &'a [Workload],
        scenes: &Rc<[Scene<'a>]>,
    ) -> Evidence<'a> {
        let machine = run.map(Scene::machine).unwrap_or_default();
        let smt = run.is_some_and(|run| run.fact("smt_active") == "1");
        let cpus: u32 = machine.usable_cpus.parse().unwrap_or(1);
        Evidence {
            workloads,
            scenes: Rc::clone(scenes),
            cores: if smt { cpus.div_ceil(2) } else { cpus },
            machine,
        }
    }

    /// The architecture of this machine.
    pub fn architecture(&self) -> &'a str {
        self.machine.architecture
    }

    fn is_here(&self, scene: &Scene) -> bool {
        scene.machine() == self.machine
    }

    /// The runs on this machine.
    pub fn here<'e>(&'e self) -> impl Iterator<Item = &'e Scene<'a>> {
        self.scenes.iter().filter(|scene| self.is_here(scene))
    }

    /// The runs that the values come from.
    pub fn runs(&self) -> impl Iterator<Item = &'a Measured> {
        self.here().map(|scene| scene.measured)
    }

    /// The runs on other machines.
    pub fn elsewhere<'e>(&'e self) -> impl Iterator<Item = &'e Scene<'a>> {
        self.scenes.iter().filter(|scene| !self.is_here(scene))
    }

    /// The runs on all machines, each with the interference that was seen in it.
    pub fn runs_of_all_machines(
        &self,
    ) -> impl Iterator<Item = (&'a Measured, &InterferenceSummary)> {
        self.scenes
            .iter()
            .map(|scene| (scene.measured, &scene.interference))
    }

    /// The thread counts with which a workload was run here, ascending.
    pub fn counts(&self, workload: &str, distribution: Option<&str>) -> Vec<u32> {
        let counts: BTreeSet<u32> = self
            .tables()
            .map(|(_, table)| table.case)
            .filter(|case| case.workload == workload && is_of(case, distribution))
            .map(|case| case.threads)
            .collect();
        Vec::from_iter(counts)
    }

    /// The places of a workload that a claim covers.
    pub fn spots(
        &self,
        workload: &str,
        threads: Threads,
        distribution: Option<&str>,
    ) -> Result<Vec<Spot>, Lack> {
        let counts = self.counts(workload, distribution);
        let Some(fewest) = counts.first().copied() else {
            let under = distribution
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            return Err(Lack::Missing(format!("{workload}{under} is in no run")));
        };
        let cores = self.cores;
        let too_few_cores = |needed: u32| {
            Lack::Missing(format!(
                "{needed} threads need as many cores, and {cores} are usable"
            ))
        };
        let fitting = counts.iter().copied().filter(|count| *count <= cores);
        let chosen: Vec<u32> = match threads {
            Threads::Any => counts,
            Threads::Each => fitting.collect(),
            Threads::Most => fitting.max().into_iter().collect(),
            Threads::Count(needed) if needed > cores => return Err(too_few_cores(needed)),
            Threads::Count(threads) if !counts.contains(&threads) => {
                return Err(Lack::Missing(format!(
                    "{workload} was not run with {threads} threads"
                )));
            }
            Threads::Count(threads) => vec![threads],
        };
        if chosen.is_empty() {
            return Err(too_few_cores(fewest));
        }
        Ok(chosen
            .into_iter()
            .map(|threads| Spot {
                workload: workload.into(),
                threads,
                distribution: distribution.map(String::from),
            })
            .collect())
    }

    /// The value of a row of the document.
    pub fn number(
        &self,
        rows: &Rows,
        row: &str,
        spot: &Spot,
        measure: &Measure,
    ) -> Result<Number, Lack> {
        let Some(entry) = rows.get(row) else {
            return Err(Lack::Other(format!("no row {row}")));
        };
        if entry.cores > self.cores {
            let (needed, usable) = (entry.cores, self.cores);
            return Err(Lack::Failed {
                words: format!("{row} keeps {needed} cores busy, and {usable} are usable"),
                row: format!("{row} (keeps {needed} cores busy)"),
            });
        }
        let workload = entry.workload.as_ref().unwrap_or(&spot.workload);
        // A sentence gives the place of its claim; the row's workload is added if it differs from
        // the place's.
        let aside = if *workload == spot.workload {
            String::new()
        } else {
            format!(" ({workload})")
        };
        let spot = &spot.on(workload);
        if self.case(spot).is_none() {
            return Err(Lack::Missing(format!("{spot} is in no run")));
        }
        // One run's plan may name the row without having samples of it yet, while another run has
        // them.
        let mut lack = None;
        for (scene, groups) in self.at(spot) {
            let Some(group) = find(entry, groups) else {
                continue;
            };
            if let Some(number) = number(scene, groups, group, measure) {
                return Ok(Number {
                    row: number.row + &aside,
                    ..number
                });
            }
            let name = &group.allocator.name;
            lack = lack.or_else(|| {
                Some(match &group.failed {
                    Some(failed) => {
                        let summary = failed.summary();
                        // The words after the colon are about the row's process alone.
                        let outcome = summary.split(':').next().unwrap_or_default();
                        Lack::Failed {
                            row: format!("{name} ({outcome})"),
                            words: format!("{name} on {workload}: {summary}"),
                        }
                    }
                    None => Lack::Missing(format!("{name} on {workload} has no {measure}")),
                })
            });
            // Success in another run does not undo a failure.
            if has_failed(group) {
                break;
            }
        }
        Err(lack.unwrap_or_else(|| {
            Lack::Missing(if entry.brought {
                let bring = entry.ours[0].trim_end_matches('*');
                format!(
                    "{row} has no row: no registry has it, bring it with -a {bring}=/path/lib.so"
                )
            } else {
                format!("{row} has no row on {workload}")
            })
        }))
    }

    /// The values of all allocators at a place, whether a document names them or not.
    pub fn allocators(&self, spot: &Spot, measure: &Measure) -> Vec<Number> {
        let mut all: Vec<Number> = Vec::new();
        let mut failed = BTreeSet::new();
        for (scene, groups) in self.at(spot) {
            for group in groups.iter().filter(is_compared) {
                let name = group.allocator.name.as_str();
                let known = failed.contains(name) || all.iter().any(|number| number.row == name);
                if !known && group.allocator.tier != "program" {
                    failed.extend(has_failed(group).then_some(name));
                    all.extend(number(scene, groups, group, measure));
                }
            }
        }
        all
    }

    /// All cases on this machine and their rows, run by run.
    fn tables<'e>(&'e self) -> impl Iterator<Item = (&'e Scene<'a>, &'e CaseGroups<'a>)> {
        self.here()
            .flat_map(|scene| scene.tables.iter().map(move |table| (scene, table)))
    }

    /// The case at a place, from the first run that has one.
    pub fn case(&self, spot: &Spot) -> Option<&'a Case> {
        self.tables()
            .map(|(_, table)| table.case)
            .find(|case| spot.is(case))
    }

    /// Whether a case is the one at a place. A case with other parameters than the first run's is
    /// another experiment.
    pub fn is_at<'e>(&'e self, spot: &'e Spot) -> impl Fn(&Case) -> bool + 'e {
        let first = self.case(spot);
        move |case| spot.is(case) && first.is_some_and(|first| first.parameters == case.parameters)
    }

    /// The rows at a place, run by run.
    fn at<'e>(&'e self, spot: &'e Spot) -> impl Iterator<Item = (&'e Scene<'a>, &'e [Group<'a>])> {
        let is_at = self.is_at(spot);
        self.tables()
            .filter(move |(_, table)| is_at(table.case))
            .map(|(scene, table)| (scene, table.groups.as_slice()))
    }
}

/// The row for a document's entry: the first of the entry's names that the run has.
pub fn find<'g, 'a>(entry: &DocumentRow, groups: &'g [Group<'a>]) -> Option<&'g Group<'a>> {
    entry.ours.iter().find_map(|pattern| {
        groups
            .iter()
            .filter(is_compared)
            .find(|group| matches(pattern, &group.allocator.name))
    })
}

/// Whether any process of a row failed. A row that cannot run here has not failed.
fn has_failed(group: &Group) -> bool {
    let failed = group.failed.as_ref();
    failed.is_some_and(|failed| !failed.first.is_absent())
}

fn is_compared(group: &&Group) -> bool {
    !group.role.is_companion()
}

fn number(scene: &Scene, groups: &[Group], group: &Group, measure: &Measure) -> Option<Number> {
    let row = group.allocator.name.clone();
    let run = scene.measured.head.plan.seed;
    if let Some((of, values)) = in_duets(scene, groups, group, measure) {
        return Some(Number {
            blocks: Some(ValueBlocks { run, of }),
            ..Number::of(row, Some(measure.clone()), values)?
        });
    }
    let values = values(scene, group, measure);
    // A value that only some processes have does not belong to any block.
    let blocks = (values.len() == group.processes.len()).then(|| ValueBlocks {
        run,
        of: group.processes.keys().map(|(block, _)| *block).collect(),
    });
    Some(Number {
        blocks,
        ..Number::of(row, Some(measure.clone()), values)?
    })
}

/// Returns the times of a row that took turns with the baseline, and their blocks: the ratio in
/// each duet times the baseline's mean in the block, so that rows compare as their duets do. `None`
/// for the baseline, for a row that ran alone, and for a measure other than time.
fn in_duets(
    scene: &Scene,
    groups: &[Group],
    group: &Group,
    measure: &Measure,
) -> Option<(Vec<u32>, Vec<f64>)> {
    if !group.took_turns() || group.role == Role::Baseline {
        return None;
    }
    let baseline = groups.iter().find(|other| other.role == Role::Baseline)?;
    let ratios = group.log_ratios(baseline, time_of(measure)?);
    let mut of_baseline: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for ((block, _), value) in baseline
        .processes
        .keys()
        .zip(values(scene, baseline, measure))
    {
        of_baseline.entry(*block).or_default().push(value);
    }
    let scaled = |((block, _), ratio): (PairKey, f64)| {
        Some((
            block,
            geometric_mean(of_baseline.get(&block)?)? * ratio.exp(),
        ))
    };
    Some(ratios.into_iter().filter_map(scaled).unzip())
}

impl Spot {
    pub fn is(&self, case: &Case) -> bool {
        (&case.workload, case.threads) == (&self.workload, self.threads)
            && is_of(case, self.distribution.as_deref())
    }

    /// The same spot in another workload.
    pub fn on(&self, workload: &str) -> Spot {
        Spot {
            workload: workload.into(),
            ..self.clone()
        }
    }
}

fn is_of(case: &Case, distribution: Option<&str>) -> bool {
    let of_case = case.parameters.get("distribution").map(String::as_str);
    distribution.is_none() || of_case == distribution
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&case_name(&self.workload, self.threads))
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Lack::Missing(words) | Lack::Failed { words, .. } | Lack::Other(words)) = self;
        f.write_str(words)
    }
}
