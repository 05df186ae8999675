//! Runs of the same work on several machines: what they say together, and about the next one. A
//! ratio is always formed within a block on one machine; only ratios are pooled.

use super::compare::{Difference, LeftAlone, PACED, Side, counterpart, library};
use super::group::{CaseGroups, Group};
use super::ratio::Ratio;
use super::role::Role;
use super::verdict::{self, Verdict};
use super::{counting, grid};
use crate::metric::Process;
use crate::plan::Case;
use crate::store::{AllocatorInfo, RunFile};
use heapmark_stats::{
    ALPHA, Finding, Interval, Judgement, Machines, Rule, THRESHOLD, Tested, Transfer,
    blocks_needed, judge_tested, machines, mean, paired,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A run and the words by which its user knows it.
pub struct PooledRun<'a> {
    /// Its directory.
    pub name: &'a str,
    /// It.
    pub side: Side<'a>,
}

/// What several machines say.
#[derive(Debug, Serialize)]
pub struct Pool {
    /// In the order of their first runs.
    pub machines: Vec<PooledMachine>,
    /// By case and allocator, in the order of the first run.
    pub rows: Vec<PooledRow>,
    /// Rows of a run that cannot be pooled, and why.
    pub left_out: Vec<LeftAlone>,
}

/// A machine.
#[derive(Debug, Serialize)]
pub struct PooledMachine {
    /// A number, from 1.
    pub number: usize,
    /// As its first run describes it.
    pub facts: BTreeMap<String, String>,
    /// Its runs.
    pub runs: Vec<String>,
}

/// An allocator in a case.
#[derive(Debug, Serialize)]
pub struct PooledRow {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// On each machine that measured it.
    pub on: Vec<OnMachine>,
    /// The geometric mean of its ratios.
    pub ratio: f64,
    /// The 95 % interval of that mean; none of a single machine.
    pub mean: Option<(f64, f64)>,
    /// The 95 % interval of the ratio on the next machine.
    pub next: Option<(f64, f64)>,
    /// What may be said about the next machine.
    #[serde(serialize_with = "as_word")]
    pub word: Transfer,
    /// What would narrow the interval for the next machine most, if nothing can be said.
    pub help: Option<Help>,
}

/// A row on a machine.
#[derive(Debug, Serialize)]
pub struct OnMachine {
    /// The number of the machine.
    pub machine: usize,
    /// Over the baseline, of all its runs.
    pub ratio: f64,
    /// The 95 % interval, of its blocks.
    pub interval: Option<(f64, f64)>,
    /// Adjusted for the number of machines.
    pub verdict: Verdict,
}

/// Ratios between which the next machine would lie, if there were twice as much.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Help {
    /// Half-width of the interval now, as a share.
    pub now: f64,
    /// With twice as many machines.
    pub machines: f64,
    /// With twice as many blocks on each.
    pub blocks: f64,
}

/// The words for tables.
pub fn word(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::Lower => "transfers: faster",
        Transfer::Higher => "transfers: slower",
        Transfer::DiffersByMachine => "differs by machine",
        Transfer::LowerOnAverage => "faster on average, not everywhere",
        Transfer::HigherOnAverage => "slower on average, not everywhere",
        Transfer::Same => "same everywhere",
        Transfer::Unclear => "unclear",
        Transfer::TooFewMachines => "too few machines",
    }
}

fn as_word<S: serde::Serializer>(transfer: &Transfer, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(word(*transfer))
}

/// Why two runs are no replicates of the same experiment, if so: the first fact in which they differ
/// that moves ratios whatever the machine.
pub fn unlike(first: &RunFile, other: &RunFile) -> Option<Difference> {
    fn key(run: &RunFile) -> [(&'static str, String); 8] {
        let fact = |key: &str| run.machine.get(key).cloned().unwrap_or_default();
        let kernel = fact("kernel");
        let plan = &run.plan;
        [
            ("heapmark", run.heapmark.clone()),
            ("what is measured", format!("{:?}", plan.mode)),
            ("huge pages (--thp)", format!("{:?}", plan.huge_pages)),
            ("age of the heap (--age)", format!("{:?}", plan.age())),
            ("baseline", plan.baseline.clone()),
            ("architecture", fact("architecture")),
            ("page_size_bytes", fact("page_size_bytes")),
            (
                "kernel, its first number",
                kernel.split('.').next().unwrap_or_default().into(),
            ),
        ]
    }
    let mut pairs = key(first).into_iter().zip(key(other));
    let ((what, old), (_, new)) = pairs.find(|(one, other)| one != other)?;
    Some(Difference {
        what: what.into(),
        old,
        new,
    })
}

/// What these runs say together; the first one says what the others are replicates of.
pub fn pool(runs: &[PooledRun], value: fn(&Process) -> Option<f64>) -> Pool {
    let mut pool = Pool {
        machines: Vec::new(),
        rows: Vec::new(),
        left_out: Vec::new(),
    };
    let machine_of: Vec<usize> = machines_of(runs, &mut pool.machines);
    let grids: Vec<Vec<CaseGroups>> = runs
        .iter()
        .map(|run| grid(run.side.head, &counting(run.side.records)))
        .collect();
    let mut samples: BTreeMap<(usize, usize), Row> = BTreeMap::new();
    let Some(first) = runs.first() else {
        return pool;
    };
    let cases = &first.side.head.plan.cases;
    for (place, run) in runs.iter().enumerate() {
        let controls = verdict::verdicts(&grids[place], run.side.head.plan.alpha());
        for (table, calls) in grids[place].iter().zip(controls) {
            let found = counterpart(table.case, cases);
            for group in table.of(Role::Candidate) {
                let row = usable(group, table, &calls, value).and_then(|logs| {
                    let case = found.clone()?;
                    let known = first.side.head.allocators.iter();
                    let allocator = position(known, group.allocator)?;
                    Ok(((case, allocator), logs))
                });
                match row {
                    Ok((key, logs)) => {
                        let row = samples
                            .entry(key)
                            .or_insert_with(|| Row::new(table.case, group));
                        row.jobs.entry(machine_of[place]).or_default().push(logs);
                    }
                    Err(why) => pool.left_out.push(LeftAlone {
                        row: format!(
                            "{}/{} of {}",
                            table.case.label(),
                            group.allocator.name,
                            run.name
                        ),
                        why,
                    }),
                }
            }
        }
    }
    pool.rows = samples.values().filter_map(Row::pooled).collect();
    pool
}

/// The machine of each run. A run without the hash of its machine's id is a machine of its own.
fn machines_of(runs: &[PooledRun], machines: &mut Vec<PooledMachine>) -> Vec<usize> {
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places = Vec::new();
    for run in runs {
        let facts = &run.side.head.machine;
        let id = facts.get("machine_id").map(String::as_str);
        let known = id.and_then(|id| by_id.get(id).copied());
        let place = known.unwrap_or_else(|| {
            machines.push(PooledMachine {
                number: machines.len() + 1,
                facts: facts.clone(),
                runs: Vec::new(),
            });
            machines.len() - 1
        });
        by_id.extend(id.map(|id| (id, place)));
        machines[place].runs.push(run.name.into());
        places.push(place);
    }
    places
}

/// The log ratios of a row, or why it says nothing.
fn usable(
    group: &Group,
    table: &CaseGroups,
    calls: &verdict::Verdicts,
    value: fn(&Process) -> Option<f64>,
) -> Result<Vec<f64>, String> {
    if table.case.is_paced() {
        return Err(PACED.into());
    }
    if calls.aa_copy_differs {
        return Err(
            "the baseline differed from its own copy there: that machine was disturbed".into(),
        );
    }
    let logs = table.logs(group, value);
    if logs.is_empty() {
        return Err("it has no numbers beside the baseline's".into());
    }
    Ok(logs)
}

/// The place of the same library among others, or the reason why it is not there.
fn position<'a>(
    mut known: impl Iterator<Item = &'a AllocatorInfo> + Clone,
    of: &AllocatorInfo,
) -> Result<usize, String> {
    let name = &of.name;
    let place = known
        .clone()
        .position(|other| other.name == *name)
        .ok_or_else(|| format!("the first run does not have {name}"))?;
    let first = known.nth(place).map(library);
    let own = library(of);
    match first {
        Some(first) if first != own => {
            Err(format!("{name} was {first} and is {own}: another library"))
        }
        _ => Ok(place),
    }
}

/// A row before its machines are put together.
struct Row<'a> {
    case: &'a Case,
    allocator: &'a str,
    /// The log ratios of each run, by machine.
    jobs: BTreeMap<usize, Vec<Vec<f64>>>,
}

impl<'a> Row<'a> {
    fn new(case: &'a Case, group: &Group<'a>) -> Row<'a> {
        Row {
            case,
            allocator: &group.allocator.name,
            jobs: BTreeMap::new(),
        }
    }

    fn pooled(&self) -> Option<PooledRow> {
        let tests: Vec<Option<Tested>> = self
            .jobs
            .values()
            .map(|jobs| paired(&jobs.concat(), THRESHOLD))
            .collect();
        let least = blocks_needed(tests.len(), ALPHA) as usize;
        let rule = Rule::new(tests.len(), least, ALPHA);
        let judged: Vec<Judgement> = judge_tested(&tests, &rule).into_iter().flatten().collect();
        // Each run of a machine counts the same, however many blocks it has.
        let estimates: Vec<f64> = self
            .jobs
            .values()
            .filter_map(|jobs| {
                let of_jobs = jobs.iter().filter_map(|logs| Ratio::from_logs(logs));
                mean(&of_jobs.map(|it| it.ratio.ln()).collect::<Vec<_>>())
            })
            .collect();
        let findings: Vec<Finding> = judged.iter().map(|it| it.finding).collect();
        let together = machines(&estimates);
        let word = together.map_or(Transfer::TooFewMachines, |it| it.transfer(&findings));
        let ratios = |it: Interval| (it.low.exp(), it.high.exp());
        let on = self.jobs.keys().zip(&estimates).zip(&judged);
        Some(PooledRow {
            workload: self.case.workload.clone(),
            threads: self.case.threads,
            allocator: self.allocator.into(),
            on: on
                .map(|((machine, estimate), judgement)| OnMachine {
                    machine: machine + 1,
                    ratio: estimate.exp(),
                    interval: judgement.shift.interval.map(ratios),
                    verdict: Verdict::of(judgement),
                })
                .collect(),
            ratio: mean(&estimates)?.exp(),
            mean: together.map(|it| ratios(it.mean)),
            next: together.map(|it| ratios(it.next)),
            word,
            help: together
                .filter(|_| word == Transfer::Unclear)
                .and_then(|it| help(&it, &judged)),
        })
    }
}

/// What would narrow the interval most.
fn help(together: &Machines, judged: &[Judgement]) -> Option<Help> {
    let error = |it: &Judgement| Some(it.shift.interval?.half_width() / 1.96);
    let errors: Option<Vec<f64>> = judged.iter().map(error).collect();
    let doubled = together.if_doubled(&errors?)?;
    Some(Help {
        now: together.next.half_width().exp_m1(),
        machines: doubled.machines.exp_m1(),
        blocks: doubled.blocks.exp_m1(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::fake_run::{FakeRun, crash, noise};

    /// A run on a machine where hoard takes this share of glibc's time.
    fn on(machine: &str, share: f64) -> FakeRun {
        let mut run = FakeRun::new(&["glibc", "hoard"], &["larson"], 12).fill(|_, name, block| {
            let time = if name == "hoard" { 20.0 * share } else { 20.0 };
            time * noise(name, block)
        });
        run.run.machine.insert("machine_id".into(), machine.into());
        run
    }

    fn pooled(runs: &[FakeRun]) -> Pool {
        let names: Vec<String> = (1..=runs.len())
            .map(|number| format!("run-{number}"))
            .collect();
        let of = |(run, name): (&'_ FakeRun, &'_ String)| PooledRun {
            name: name.clone().leak(),
            side: Side {
                head: Box::leak(Box::new(run.run.clone())),
                records: run.records.clone().leak(),
            },
        };
        let runs: Vec<PooledRun> = runs.iter().zip(&names).map(of).collect();
        pool(&runs, |process| Some(process.ns_per_op))
    }

    #[test]
    fn each_machine_counts_once_however_many_runs_it_has() {
        let pool = pooled(&[on("a", 0.8), on("a", 0.82), on("b", 0.9), on("c", 0.85)]);
        let runs: Vec<usize> = pool.machines.iter().map(|it| it.runs.len()).collect();
        assert_eq!(runs, [2, 1, 1]);
        let [row] = &pool.rows[..] else {
            panic!("{pool:?}")
        };
        let ratios: Vec<f64> = row.on.iter().map(|it| it.ratio).collect();
        let expected = [(0.8f64 * 0.82).sqrt(), 0.9, 0.85];
        for (ratio, expected) in ratios.iter().zip(expected) {
            assert!((ratio / expected - 1.0).abs() < 0.01, "{ratios:?}");
        }
        assert_eq!(word(row.word), "faster on average, not everywhere");
        let (mean, next) = (row.mean.unwrap(), row.next.unwrap());
        assert!(
            next.0 < mean.0 && mean.1 < next.1 && 0.99 < next.1,
            "{next:?}"
        );
    }

    #[test]
    fn machines_of_two_kinds_are_not_averaged_away() {
        let shares = [0.9, 1.1, 0.9, 1.1, 0.9, 1.1];
        let runs = shares.iter().zip(["a", "b", "c", "d", "e", "f"]);
        let pool = pooled(
            &runs
                .map(|(share, name)| on(name, *share))
                .collect::<Vec<_>>(),
        );
        assert_eq!(word(pool.rows[0].word), "differs by machine");
        let faster = pool.rows[0]
            .on
            .iter()
            .filter(|it| it.verdict == Verdict::Faster);
        assert_eq!(faster.map(|it| it.machine).collect::<Vec<_>>(), [1, 3, 5]);
        let alike = ["a", "b", "c", "d"].map(|name| on(name, 0.7));
        assert_eq!(word(pooled(&alike).rows[0].word), "transfers: faster");
        assert_eq!(word(pooled(&alike[..2]).rows[0].word), "too few machines");
    }

    #[test]
    fn what_is_no_repetition_is_left_out_and_named() {
        let mut failed = on("b", 0.8);
        failed.cell("larson@2/b03/hoard").outcome = crash();
        let mut other_work = on("c", 0.8);
        other_work.run.plan.cases[0]
            .parameters
            .insert("slots".into(), "7".into());
        let mut other_library = on("d", 0.8);
        other_library.run.allocators[1].sha256 = vec!["0".repeat(64)];
        let pool = pooled(&[on("a", 0.8), failed, other_work, other_library]);
        assert_eq!(pool.rows[0].on.len(), 1);
        let whys: Vec<&str> = pool.left_out.iter().map(|left| left.why.as_str()).collect();
        for (why, expected) in whys
            .iter()
            .zip(["no numbers", "slots was", "another library"])
        {
            assert!(why.contains(expected), "{whys:?}");
        }
        assert_eq!(whys.len(), 3);
    }

    #[test]
    fn the_first_fact_that_differs_is_named() {
        let (one, mut other) = (on("a", 0.8), on("b", 0.8));
        assert!(unlike(&one.run, &other.run).is_none());
        other.run.machine.insert("kernel".into(), "5.10.1".into());
        let found = unlike(&one.run, &other.run).unwrap();
        assert_eq!(
            (found.what.as_str(), found.new.as_str()),
            ("kernel, its first number", "5")
        );
    }
}
