//! Runs of the same work on several machines: what they show together, and about the next one. A
//! ratio is always formed within a block on one machine; only ratios are pooled.

use heapmark_core::analyse::compare::{
    Difference, LeftAlone, Side, counterpart, have_other_turns, library, no_times, variables,
};
use heapmark_core::analyse::group::{CaseGroups, Group};
use heapmark_core::analyse::role::Role;
use heapmark_core::analyse::verdict::{self, Verdict};
use heapmark_core::analyse::{counting, grid, releases, with_release};
use heapmark_core::metric::{Metric, Process, Unit, Value};
use heapmark_core::observe::preflight::ItemState;
use heapmark_core::plan::Case;
use heapmark_core::store::{AllocatorInfo, Purpose, RunFile};
use heapmark_stats::{
    ALPHA, Finding, Interval, Judgement, LEAST_MACHINES, Machines, Rule, Tested, Transfer,
    judge_tested, machines, mean, median, paired, spreads,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The pooled results of several machines.
#[derive(Debug, Serialize)]
pub struct Pool {
    /// The machines, in the order of their first runs.
    pub machines: Vec<PooledMachine>,
    /// Kinds of machines, in the order of their first machines.
    pub types: Vec<MachineType>,
    /// Rows by case and allocator, in the order of the first run.
    pub rows: Vec<PooledRow>,
    /// Rows of a run that cannot be pooled, and why.
    pub left_out: Vec<LeftAlone>,
    /// Runs that do not count at all, and why.
    pub refused: Vec<RefusedRun>,
    /// Memory by the number of usable CPUs, if the machines differ in it: allocators keep arenas for
    /// each CPU.
    pub memory: Vec<MemoryByCpus>,
    /// The release of each allocator in the first run.
    #[serde(skip)]
    pub releases: BTreeMap<String, String>,
}

impl Pool {
    /// An allocator's name with its release: `mimalloc2 (mimalloc 2.5.2, 2026-09)`.
    pub fn named(&self, allocator: &str) -> String {
        with_release(allocator, &self.releases)
    }
}

/// Machines of one kind.
#[derive(Debug, Serialize)]
pub struct MachineType {
    /// The user's label, or what the machines have in common: `AMD EPYC, 2 CPUs, up to 32 GiB, libc 2.36`.
    pub name: String,
    /// The numbers of the type's machines.
    pub machines: Vec<usize>,
}

/// The memory of an allocator in a case.
#[derive(Debug, Serialize)]
pub struct MemoryByCpus {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// The number of usable CPUs, and the median over all runs on machines with that number.
    pub bytes: Vec<(u32, f64)>,
}

/// A machine whose runs are pooled.
#[derive(Debug, Serialize)]
pub struct PooledMachine {
    /// The machine's number, from 1.
    pub number: usize,
    /// The number of the machine's type, from 1.
    pub machine_type: usize,
    /// The machine as its first run describes it.
    pub facts: BTreeMap<String, String>,
    /// The machine's runs.
    pub runs: Vec<String>,
    /// The number of blocks in all these runs.
    pub blocks: usize,
}

/// A run that cannot be pooled with the others.
#[derive(Debug, Serialize)]
pub struct RefusedRun {
    /// The run's name.
    pub run: String,
    /// The run's machine, as the run describes it.
    pub facts: BTreeMap<String, String>,
    /// Why the run is refused.
    pub why: String,
}

/// The pooled results of an allocator in a case.
#[derive(Debug, Serialize)]
pub struct PooledRow {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// The row's results on each machine that measured it.
    pub on: Vec<OnMachine>,
    /// The geometric mean of the row's ratios; of the types' if it was measured on several.
    pub ratio: f64,
    /// The 95 % interval of that mean; `None` if there is a single machine.
    pub mean: Option<(f64, f64)>,
    /// The 95 % interval of the ratio on the next machine.
    pub next: Option<(f64, f64)>,
    /// The row by type of machine, if it was measured on several.
    pub types: Vec<OnType>,
    /// The 95 % interval of the mean ratio of the next type of machines; `None` if there are fewer than three types.
    pub next_type: Option<(f64, f64)>,
    /// What may be said about the next type of machines; about the next machine of the type if there
    /// is only one.
    #[serde(skip)]
    pub transfer: Transfer,
    /// The verdict in the metric's words.
    pub word: String,
    /// What would narrow the interval for the next machine most, if nothing can be said.
    pub help: Option<Help>,
    /// Where the spread of the row's ratios comes from.
    pub spreads: Option<RatioSpreads>,
}

/// Standard deviations of a row's ratios, as shares.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RatioSpreads {
    /// The spread between machines; with one run on each machine, it includes the spread between runs.
    pub machines: f64,
    /// The spread between runs of one machine, if some machine has two.
    pub runs: Option<f64>,
    /// The spread between blocks of one run.
    pub blocks: f64,
}

/// The results of a row on one machine.
#[derive(Debug, Serialize)]
pub struct OnMachine {
    /// The number of the machine.
    pub machine: usize,
    /// The ratio to the baseline, over all runs of the machine.
    pub ratio: f64,
    /// The 95 % interval of the ratio, over all blocks of the machine.
    pub interval: Option<(f64, f64)>,
    /// The verdict, adjusted for the number of machines.
    pub verdict: Verdict,
}

/// The results of a row on machines of one type.
#[derive(Debug, Serialize)]
pub struct OnType {
    /// The number of the type.
    pub machine_type: usize,
    /// The type's machines that measured the row.
    pub machines: usize,
    /// The geometric mean of these machines' ratios.
    pub ratio: f64,
}

/// How wide the interval for the next machine is, and how wide it would be with twice as much data.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Help {
    /// Half-width of the interval now, as a share.
    pub now: f64,
    /// Half-width with twice as many machines.
    pub machines: f64,
    /// Half-width with twice as many blocks on each machine.
    pub blocks: f64,
}

/// The words for less and more of a metric.
pub fn ways(by: &Metric) -> [&'static str; 2] {
    [Verdict::Faster, Verdict::Slower].map(|verdict| verdict.word_of(by))
}

/// Returns the verdict in words for a row with these findings, on machines of this many types.
fn in_words(transfer: Transfer, types: usize, findings: &[Finding], by: &Metric) -> String {
    let [less, more] = ways(by);
    // Machines of one type say nothing about other types.
    let transfers = match types {
        1 => "transfers within the type",
        _ => "transfers",
    };
    match transfer {
        Transfer::Lower => format!("{transfers}: {less}"),
        Transfer::Higher => format!("{transfers}: {more}"),
        Transfer::DiffersByMachine => "differs by machine".into(),
        Transfer::LowerOnAverage => format!("{less} on average of these, not everywhere"),
        Transfer::HigherOnAverage => format!("{more} on average of these, not everywhere"),
        Transfer::Same if types == 1 => "same within the type".into(),
        Transfer::Same => "same everywhere".into(),
        Transfer::Unclear => "unclear".into(),
        Transfer::TooFew => {
            let units = if types == 1 { "machines" } else { "types" };
            let on_all = |way| format!("{way} on all {}, too few {units}", findings.len());
            match findings {
                [_] | [] => format!("too few {units}"),
                all if all.iter().all(|finding| *finding == Finding::Lower) => on_all(less),
                all if all.iter().all(|finding| *finding == Finding::Higher) => on_all(more),
                _ => format!("too few {units}"),
            }
        }
    }
}

/// Why two runs are no replicates of the same experiment, if so: the first fact in which they differ
/// that moves ratios whatever the machine.
pub fn unlike(first: &RunFile, other: &RunFile) -> Option<Difference> {
    fn key(run: &RunFile) -> [(&'static str, String); 9] {
        let fact = |key: &str| run.machine.get(key).cloned().unwrap_or_default();
        let kernel = fact("kernel");
        let plan = &run.plan;
        [
            ("heapmark", run.heapmark.clone()),
            ("what is measured", format!("{:?}", plan.mode)),
            ("huge pages (--thp)", format!("{:?}", plan.huge_pages)),
            ("age of the heap (--age)", format!("{:?}", plan.age())),
            ("baseline", plan.baseline.clone()),
            ("the baseline's library", content(run, &plan.baseline)),
            ("architecture", fact("architecture")),
            ("page_size_bytes", fact("page_size_bytes")),
            (
                "kernel, its first number",
                kernel.split('.').next().unwrap_or_default().into(),
            ),
        ]
    }
    // The C library belongs to the machine, and has no hash.
    fn content(run: &RunFile, name: &str) -> String {
        let Some(info) = run.allocators.iter().find(|info| info.name == name) else {
            return String::new();
        };
        info.hashes().concat() + &variables(info)
    }
    if have_other_turns(&first.plan, &other.plan) {
        let [old, new] = [first, other].map(|run| format!("{:?}", run.plan.turn_lengths_ms));
        let what = "length of turns in milliseconds (--turns)".into();
        return Some(Difference { what, old, new });
    }
    let mut pairs = key(first).into_iter().zip(key(other));
    let ((what, old), (_, new)) = pairs.find(|(one, other)| one != other)?;
    Some(Difference {
        what: what.into(),
        old,
        new,
    })
}

/// Pools runs one after the other. Only the log ratios of each run are kept, not its samples: a campaign of many machines
/// does not fit into memory.
pub struct Pooling<'a> {
    by: &'a Metric,
    value: fn(&Process) -> Option<f64>,
    /// The run that the others must repeat.
    first: Option<RunFile>,
    /// Machines by the hash of their ID; a run without an ID counts as a machine of its own.
    by_id: BTreeMap<String, usize>,
    /// Samples by case and allocator of the first run.
    samples: BTreeMap<(usize, usize), LogRatios>,
    /// The median of each run of a row, by the usable CPUs of its machine, if memory is pooled.
    memory: BTreeMap<(usize, usize), BTreeMap<u32, Vec<f64>>>,
    /// The smallest significance level of all runs, with which p-values are compared.
    alpha: f64,
    pool: Pool,
}

/// The log ratios of each run of a row, by machine.
type LogRatios = BTreeMap<usize, Vec<Vec<f64>>>;

impl<'a> Pooling<'a> {
    /// A pool without any run; `None` if a single process has no value of the metric.
    pub fn new(by: &'a Metric) -> Option<Pooling<'a>> {
        let Value::Process(value) = by.of else {
            return None;
        };
        Some(Pooling {
            by,
            value,
            first: None,
            by_id: BTreeMap::new(),
            samples: BTreeMap::new(),
            memory: BTreeMap::new(),
            alpha: ALPHA,
            pool: Pool {
                machines: Vec::new(),
                types: Vec::new(),
                rows: Vec::new(),
                left_out: Vec::new(),
                refused: Vec::new(),
                memory: Vec::new(),
                releases: BTreeMap::new(),
            },
        })
    }

    /// Adds a run under the name by which its user knows it, or refuses it. The run's machine is of the type with this label
    /// or, without a label, of the type of all machines that have the same processor and C library and as many CPUs and as much
    /// memory.
    pub fn add(&mut self, name: &str, label: Option<&str>, run: &Side) {
        if let Some(why) = self.refusal(run.head) {
            self.refuse(name, run.head, why);
            return;
        }
        let first = self.first.get_or_insert_with(|| {
            self.pool.releases = releases(run.head);
            run.head.clone()
        });
        let machine = machine_of(&mut self.by_id, &mut self.pool, name, label, run);
        let cpus = usable_cpus(&run.head.machine);
        let tables = grid(run.head, &counting(run.records));
        let alpha = run.head.plan.alpha();
        self.alpha = self.alpha.min(alpha);
        let controls = verdict::verdicts(&tables, alpha);
        for (table, calls) in tables.iter().zip(controls) {
            let found = counterpart(table.case, &first.plan.cases);
            if let (Unit::Bytes, Ok(case), Some(cpus)) = (self.by.unit, &found, cpus) {
                for (allocator, median) in medians(table, first, self.value) {
                    let row = self.memory.entry((*case, allocator)).or_default();
                    row.entry(cpus).or_default().push(median);
                }
            }
            for group in table.of(Role::Candidate) {
                let row = usable(group, table, &calls, self.by, self.value).and_then(|logs| {
                    let case = found.clone()?;
                    let allocator = position(first.allocators.iter(), group.allocator)?;
                    Ok(((case, allocator), logs))
                });
                match row {
                    Ok((key, logs)) => {
                        let row = self.samples.entry(key).or_default();
                        row.entry(machine).or_default().push(logs);
                    }
                    Err(why) => self.pool.left_out.push(LeftAlone {
                        row: format!("{}/{} of {name}", table.case.label(), group.allocator.name),
                        why,
                    }),
                }
            }
        }
    }

    /// Notes that nothing of a run counts.
    pub fn refuse(&mut self, name: &str, run: &RunFile, why: String) {
        self.pool.refused.push(RefusedRun {
            run: name.into(),
            facts: run.machine.clone(),
            why,
        });
    }

    /// Why a run is refused; `None` if it counts.
    fn refusal(&self, run: &RunFile) -> Option<String> {
        if let Some(setting) = unlike_any(run) {
            return Some(format!("its machine is like no other: {setting}"));
        }
        let difference = unlike(self.first.as_ref()?, run)?;
        let first = &self.pool.machines[0].runs[0];
        Some(format!(
            "it is no repetition of {first}: {} is {} there and {} here",
            difference.what, difference.old, difference.new
        ))
    }

    /// The pooled results of all runs, and the head of the run that the others repeat.
    pub fn end(mut self) -> (Pool, Option<RunFile>) {
        if let Some(first) = &self.first {
            let machines = &self.pool.machines;
            let rule = Rule::new(self.samples.len(), self.alpha);
            let rows = self.samples.iter().filter_map(|((case, allocator), logs)| {
                let name = &first.allocators[*allocator].name;
                let case = &first.plan.cases[*case];
                pooled(case, name, logs, machines, self.by, &rule)
            });
            self.pool.rows = rows.collect();
            let with_several = self.memory.iter().filter(|(_, by_cpus)| by_cpus.len() > 1);
            let memory = with_several.map(|((case, allocator), by_cpus)| {
                let case = &first.plan.cases[*case];
                MemoryByCpus {
                    workload: case.workload.clone(),
                    threads: case.threads,
                    allocator: first.allocators[*allocator].name.clone(),
                    bytes: by_cpus
                        .iter()
                        .filter_map(|(cpus, medians)| Some((*cpus, median(medians)?)))
                        .collect(),
                }
            });
            self.pool.memory = memory.collect();
        }
        (self.pool, self.first)
    }
}

/// Settings whose warning means that a machine's ratios do not apply to others: a single CPU, a
/// slow or coarse clock, the same addresses in each process, memory that may not be reserved.
const LIKE_NO_OTHER: [&str; 4] = ["usable-cpus", "clock-source", "aslr", "overcommit"];

/// The first of those settings that gave a warning on a run's machine, with what was found.
fn unlike_any(run: &RunFile) -> Option<String> {
    let warned = run.preflights.before.iter();
    let mut warned = warned.flat_map(|look| look.in_state(ItemState::Warning));
    let item = warned.find(|item| LIKE_NO_OTHER.contains(&item.name.as_str()))?;
    let found = item.found.as_deref().unwrap_or("not told");
    Some(format!("{} is {found}", item.name))
}

fn usable_cpus(facts: &BTreeMap<String, String>) -> Option<u32> {
    facts.get("usable_cpus")?.parse().ok()
}

/// What machines of a type have in common: processor, usable CPUs, memory up to the next power of
/// two, since a little of it is always missing, and the release of the C library.
fn type_of(facts: &BTreeMap<String, String>) -> String {
    let known = |key: &str| facts.get(key).map_or("unknown", String::as_str);
    let kib = known("memory_total").trim_end_matches(" kB").parse::<u64>();
    let memory = kib.map_or(String::new(), |kib| {
        let gib = kib.div_ceil(1 << 20).next_power_of_two();
        format!(", up to {gib} GiB")
    });
    let release = |version: &String| {
        let digits = |character: char| character.is_ascii_digit() || character == '.';
        let end = version
            .find(|character| !digits(character))
            .unwrap_or(version.len());
        format!(", libc {}", &version[..end])
    };
    format!(
        "{}, {} CPUs{memory}{}",
        known("cpu_model"),
        known("usable_cpus"),
        facts.get("c_library").map_or(String::new(), release)
    )
}

/// The machine of a run, to which the run is added.
fn machine_of(
    by_id: &mut BTreeMap<String, usize>,
    pool: &mut Pool,
    name: &str,
    label: Option<&str>,
    run: &Side,
) -> usize {
    let Pool {
        machines, types, ..
    } = pool;
    let facts = &run.head.machine;
    let id = facts.get("machine_id");
    let known = id.and_then(|id| by_id.get(id).copied());
    let place = known.unwrap_or_else(|| {
        let number = machines.len() + 1;
        let name = label.map_or_else(|| type_of(facts), String::from);
        let found = types.iter().position(|kind| kind.name == name);
        let its_type = found.unwrap_or_else(|| {
            types.push(MachineType {
                name,
                machines: Vec::new(),
            });
            types.len() - 1
        });
        types[its_type].machines.push(number);
        machines.push(PooledMachine {
            number,
            machine_type: its_type + 1,
            facts: facts.clone(),
            runs: Vec::new(),
            blocks: 0,
        });
        number - 1
    });
    by_id.extend(id.map(|id| (id.clone(), place)));
    let samples = run
        .records
        .iter()
        .filter(|record| record.purpose == Purpose::Sample);
    let blocks: BTreeSet<u32> = samples.map(|record| record.block).collect();
    machines[place].blocks += blocks.len();
    machines[place].runs.push(name.into());
    place
}

/// The median of each row that has one, by the place of its allocator in the first run.
fn medians(
    table: &CaseGroups,
    first: &RunFile,
    value: fn(&Process) -> Option<f64>,
) -> Vec<(usize, f64)> {
    let rows = [Role::Baseline, Role::Candidate].map(|role| table.of(role));
    let rows = rows.into_iter().flatten();
    rows.filter(|row| row.failed.is_none())
        .filter_map(|row| {
            let allocator = position(first.allocators.iter(), row.allocator).ok()?;
            Some((allocator, row.median_of(value)?))
        })
        .collect()
}

/// The log ratios of a row, or why the row cannot be pooled.
fn usable(
    group: &Group,
    table: &CaseGroups,
    calls: &verdict::Verdicts,
    by: &Metric,
    value: fn(&Process) -> Option<f64>,
) -> Result<Vec<f64>, String> {
    if let Some(why) = no_times(table, by) {
        return Err(why.into());
    }
    if calls.equals_apart(table, by) > 0.0 {
        return Err(
            "the baseline differed from its own copy there: that machine was disturbed".into(),
        );
    }
    // As measured: turns that are too short are found in some runs and not in others, and all ratios must be of the same kind.
    let logs = table.measured_logs(group, value);
    if logs.is_empty() {
        return Err("it has no numbers beside the baseline's".into());
    }
    if logs.iter().any(|log| !log.is_finite()) {
        return Err("it or the baseline has a 0, of which there is no ratio".into());
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
    let found = library(of);
    match first {
        Some(first) if first != found => Err(format!(
            "{name} was {first} and is {found}: another library"
        )),
        _ => Ok(place),
    }
}

/// Pools a row over all machines; the family of the rule are the rows.
fn pooled(
    case: &Case,
    allocator: &str,
    jobs: &LogRatios,
    all: &[PooledMachine],
    by: &Metric,
    rows: &Rule,
) -> Option<PooledRow> {
    // Each block of a machine counts the same, in its ratio and in its interval.
    let on_machines = Rule::new(jobs.len(), rows.alpha);
    let of_blocks = jobs
        .values()
        .map(|jobs| paired(&jobs.concat(), &on_machines));
    let of_blocks: Vec<Tested> = of_blocks.collect::<Option<_>>()?;
    // How much the machine's runs differ is taken as known: one or two runs do not show it.
    let tested = of_blocks.iter().zip(jobs.values()).map(|(tested, jobs)| {
        let of_runs = by.between_runs() / (jobs.len() as f64).sqrt();
        Some(tested.with_scatter(of_runs, &on_machines))
    });
    let judged = judge_tested(&Vec::from_iter(tested), &on_machines);
    let judged: Vec<Judgement> = judged.into_iter().collect::<Option<_>>()?;
    let findings: Vec<Finding> = judged.iter().map(|judgement| judgement.finding).collect();
    let estimates: Vec<f64> = judged
        .iter()
        .map(|judgement| judgement.shift.estimate)
        .collect();
    let together = machines(&estimates);
    let ratios = |interval: Interval| (interval.low.exp(), interval.high.exp());
    let mut by_type: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (machine, estimate) in jobs.keys().zip(&estimates) {
        let its_type = by_type.entry(all[*machine].machine_type);
        its_type.or_default().push(*estimate);
    }
    let of_types: Vec<f64> = by_type
        .values()
        .map(|estimates| mean(estimates))
        .collect::<Option<_>>()?;
    let types_together = machines(&of_types);
    let next_type = types_together.filter(|types| types.machines >= LEAST_MACHINES);
    // Machines of one type agree more than types do, and must not outvote the others.
    let is_one_type = by_type.len() == 1;
    let units = if is_one_type {
        together
    } else {
        types_together
    };
    let word = units.map_or(Transfer::TooFew, |units| {
        units.transfer(&findings, rows.family)
    });
    let types = by_type.iter().zip(&of_types);
    let types = types.map(|((machine_type, estimates), estimate)| OnType {
        machine_type: *machine_type,
        machines: estimates.len(),
        ratio: estimate.exp(),
    });
    let on = jobs.keys().zip(&estimates).zip(&judged);
    Some(PooledRow {
        workload: case.workload.clone(),
        threads: case.threads,
        allocator: allocator.into(),
        on: on
            .map(|((machine, estimate), judgement)| OnMachine {
                machine: machine + 1,
                ratio: estimate.exp(),
                interval: judgement.shift.interval.map(ratios),
                verdict: Verdict::of(judgement),
            })
            .collect(),
        ratio: mean(if is_one_type { &estimates } else { &of_types })?.exp(),
        mean: units
            .filter(|units| is_one_type || units.machines >= LEAST_MACHINES)
            .map(|units| ratios(units.mean)),
        next: together.map(|machines| ratios(machines.next)),
        types: match is_one_type {
            true => Vec::new(),
            false => types.collect(),
        },
        next_type: next_type.map(|types| ratios(types.next)),
        transfer: word,
        word: in_words(word, by_type.len(), &findings, by),
        help: together
            .filter(|_| word == Transfer::Unclear && is_one_type)
            .and_then(|machines| help(&machines, &of_blocks)),
        spreads: spreads(&Vec::from_iter(jobs.values().cloned())).map(|spreads| RatioSpreads {
            machines: spreads.machines.exp_m1(),
            runs: spreads.runs.map(f64::exp_m1),
            blocks: spreads.blocks.exp_m1(),
        }),
    })
}

/// What would narrow the interval for the next machine most.
fn help(together: &Machines, of_blocks: &[Tested]) -> Option<Help> {
    let error = |tested: &Tested| Some(tested.shift.interval?.half_width() / 1.96);
    let errors: Option<Vec<f64>> = of_blocks.iter().map(error).collect();
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
    use crate::fake_run::{FakeRun, crash, measurement, noise};
    use heapmark_core::analyse::compare::FIXED_TIME;
    use heapmark_core::execute::user_command::{SLOWER_CALLS, SLOWER_WALL};
    use heapmark_core::metric::{self, WALL};
    use heapmark_core::observe::preflight::{Preflight, PreflightItem};
    use heapmark_core::plan::Turns;

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
        pooled_by(Pooling::new(WALL).unwrap().value, runs)
    }

    fn pooled_by(value: fn(&Process) -> Option<f64>, runs: &[FakeRun]) -> Pool {
        let mut pooling = Pooling::new(WALL).unwrap();
        pooling.value = value;
        of_runs(pooling, None, runs)
    }

    fn of_runs(mut pooling: Pooling, label: Option<&str>, runs: &[FakeRun]) -> Pool {
        for (run, number) in runs.iter().zip(1..) {
            let side = Side {
                head: &run.run,
                records: &run.records,
            };
            pooling.add(&format!("run-{number}"), label, &side);
        }
        pooling.end().0
    }

    #[test]
    fn each_machine_counts_once_however_many_runs_it_has() {
        let pool = pooled(&[on("a", 0.8), on("a", 0.82), on("b", 0.9), on("c", 0.85)]);
        let runs: Vec<usize> = pool
            .machines
            .iter()
            .map(|machine| machine.runs.len())
            .collect();
        assert_eq!(runs, [2, 1, 1]);
        let [row] = &pool.rows[..] else {
            panic!("{pool:?}")
        };
        let ratios: Vec<f64> = row.on.iter().map(|result| result.ratio).collect();
        let expected = [(0.8f64 * 0.82).sqrt(), 0.9, 0.85];
        for (ratio, expected) in ratios.iter().zip(expected) {
            assert!((ratio / expected - 1.0).abs() < 0.01, "{ratios:?}");
        }
        assert_eq!(pool.rows[0].word, "faster on all 3, too few machines");
        let (mean, next) = (row.mean.unwrap(), row.next.unwrap());
        assert!(
            next.0 < mean.0 && mean.1 < next.1 && 0.99 < next.1,
            "{next:?}"
        );
    }

    #[test]
    fn a_machines_ratio_lies_in_its_interval_though_one_of_its_runs_differs() {
        let mut runs = vec![on("a", 1.0), on("b", 0.8), on("c", 0.8)];
        runs.extend((0..5).map(|_| on("a", 0.8)));
        let pool = pooled(&runs);
        let first = &pool.rows[0].on[0];
        let (low, high) = first.interval.unwrap();
        assert!(low <= first.ratio && first.ratio <= high, "{first:?}");
    }

    #[test]
    fn with_another_library_as_baseline_it_is_another_experiment() {
        let against = |machine: &str, content: &str| {
            let mut run = on(machine, 0.8);
            run.allocator("glibc").sha256 = vec![content.repeat(64)];
            run
        };
        let pool = pooled(&[against("a", "1"), against("b", "1"), against("c", "2")]);
        assert_eq!(pool.machines.len(), 2);
        let [refused] = &pool.refused[..] else {
            panic!("{:?}", pool.refused)
        };
        assert!(
            refused.why.contains("the baseline's library"),
            "{refused:?}"
        );
    }

    /// Nine of ten blocks agree, and the tenth is not the smallest: p is 0.037.
    #[test]
    fn a_run_that_ended_by_precision_is_held_against_a_smaller_p() {
        let word = |precision: Option<f64>| {
            let mut run =
                FakeRun::new(&["glibc", "hoard"], &["larson"], 10).fill(|_, name, block| {
                    let sign = if block == 6 { -1.0 } else { 1.0 };
                    let more = sign * 0.05 * f64::from(block + 1);
                    20.0 * if name == "hoard" { more.exp() } else { 1.0 }
                });
            run.run.plan.precision = precision;
            pooled(&[run]).rows[0].on[0].verdict.word()
        };
        assert_eq!((word(None), word(Some(0.01))), ("slower", "unclear"));
    }

    /// Ten machines of one type do not outvote four of others, and machines that differ no more than runs do are not told apart.
    #[test]
    fn the_mean_is_that_of_the_types_and_runs_differ_by_themselves() {
        let mut runs: Vec<FakeRun> = (0..10)
            .map(|machine| on(&format!("a{machine}"), 0.94))
            .collect();
        for cpus in 2..6 {
            let mut other = on(&format!("b{cpus}"), 1.0);
            other
                .run
                .machine
                .insert("usable_cpus".into(), cpus.to_string());
            runs.push(other);
        }
        let pool = pooled(&runs);
        let row = &pool.rows[0];
        assert_eq!(row.types.len(), 5, "{:?}", row.types);
        assert!(
            (row.ratio.ln() - 0.94f64.ln() / 5.0).abs() < 0.002,
            "{}",
            row.ratio
        );
        let runs = [1.036, 1.021, 1.004, 0.975, 1.032].map(|share| on(&share.to_string(), share));
        assert_eq!(pooled(&runs).rows[0].transfer, Transfer::Unclear);
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
        assert_eq!(pool.rows[0].word, "differs by machine");
        let faster = pool.rows[0]
            .on
            .iter()
            .filter(|result| result.verdict == Verdict::Faster);
        assert_eq!(
            faster.map(|result| result.machine).collect::<Vec<_>>(),
            [1, 3, 5]
        );
        let alike = ["a", "b", "c", "d", "e", "f"].map(|name| on(name, 0.7));
        let word = |runs: &[FakeRun]| pooled(runs).rows[0].word.clone();
        assert_eq!(word(&alike), "transfers within the type: faster");
        assert_eq!(word(&alike[..4]), "faster on all 4, too few machines");
        assert_eq!(word(&alike[..1]), "too few machines");
        let apart = [0.6, 0.7, 0.8, 0.85, 0.9, 0.95];
        let apart = apart.iter().zip(["a", "b", "c", "d", "e", "f"]);
        let apart: Vec<FakeRun> = apart.map(|(share, name)| on(name, *share)).collect();
        let average = "faster on average of these, not everywhere";
        assert_eq!(word(&apart), average);
    }

    /// The processor of each machine, and hoard's time there as a share of glibc's.
    const KINDS: [(&str, f64); 5] = [("A", 0.8), ("A", 0.8), ("B", 0.9), ("C", 0.85), ("C", 0.85)];

    fn of_kinds(label: Option<&str>) -> Pool {
        let of_machine = |((kind, share), number): ((&str, f64), usize)| {
            let mut run = on(&format!("machine-{number}"), share);
            run.run.machine.insert("cpu_model".into(), kind.into());
            run
        };
        let runs: Vec<FakeRun> = KINDS.into_iter().zip(1..).map(of_machine).collect();
        of_runs(Pooling::new(WALL).unwrap(), label, &runs)
    }

    #[test]
    fn each_type_of_machine_counts_once_however_many_machines_it_has() {
        let pool = of_kinds(None);
        let machines: Vec<&[usize]> = pool.types.iter().map(|kind| &kind.machines[..]).collect();
        assert_eq!(machines, [&[1, 2][..], &[3], &[4, 5]]);
        let row = &pool.rows[0];
        let types = row.types.iter();
        let types: Vec<(usize, usize)> = types
            .map(|kind| (kind.machine_type, kind.machines))
            .collect();
        assert_eq!(types, [(1, 2), (2, 1), (3, 2)]);
        for (found, expected) in row.types.iter().zip([0.8, 0.9, 0.85]) {
            assert!((found.ratio / expected - 1.0).abs() < 0.01, "{row:?}");
        }
        let (low, high) = row.next_type.unwrap();
        assert!(low < 0.8 && 0.9 < high, "{row:?}");
        assert_eq!(row.word, "faster on all 5, too few types");
        // One label makes all machines one type, and of one type there is no interval over types.
        let pool = of_kinds(Some("fleet"));
        assert_eq!(
            (pool.types.len(), pool.types[0].name.as_str()),
            (1, "fleet")
        );
        assert!(pool.rows[0].types.is_empty() && pool.rows[0].next_type.is_none());
    }

    #[test]
    fn machines_of_one_type_do_not_outvote_the_other_types() {
        let of_type = |kind: usize, machine: usize| {
            let mut run = on(&format!("machine-{kind}-{machine}"), 0.8);
            let facts = &mut run.run.machine;
            facts.insert("cpu_model".into(), format!("kind {kind}"));
            run
        };
        let word = |kinds: usize, machines: usize| {
            let all = (0..kinds).flat_map(|kind| (0..machines).map(move |machine| (kind, machine)));
            let runs: Vec<FakeRun> = all.map(|(kind, machine)| of_type(kind, machine)).collect();
            pooled(&runs).rows[0].word.clone()
        };
        assert_eq!(word(2, 4), "faster on all 8, too few types");
        assert_eq!(word(6, 1), "transfers: faster");
    }

    #[test]
    fn another_release_of_the_c_library_makes_another_type_of_machine_and_a_patch_does_not() {
        let with = |machine: &str, libc: &str| {
            let mut run = on(machine, 0.8);
            run.run.machine.insert("c_library".into(), libc.into());
            run
        };
        let runs = [
            with("a", "2.36-9+deb12u13"),
            with("b", "2.36-9+deb12u14"),
            with("c", "2.41-12"),
        ];
        let types = pooled(&runs).types;
        let machines: Vec<&[usize]> = types.iter().map(|kind| &kind.machines[..]).collect();
        assert_eq!(machines, [&[1, 2][..], &[3]]);
        assert!(types[1].name.ends_with(", libc 2.41"), "{}", types[1].name);
    }

    #[test]
    fn memory_is_shown_by_usable_cpus_and_time_is_not() {
        let with = |machine: &str, cpus: &str, more: u64| {
            let mut run = on(machine, 0.8);
            run.run.machine.insert("usable_cpus".into(), cpus.into());
            let of_hoard = run
                .records
                .iter_mut()
                .filter(|record| record.allocator == "hoard");
            for measurement in of_hoard.filter_map(|record| record.measurement.as_mut()) {
                measurement.peak_rss_bytes += more << 20;
            }
            run
        };
        let runs = [with("a", "2", 0), with("b", "16", 5), with("c", "16", 7)];
        let by = |metric: &Metric| of_runs(Pooling::new(metric).unwrap(), None, &runs).memory;
        let memory = by(metric::judged()
            .find(|metric| metric.is_named("memory"))
            .unwrap());
        let of = |name: &str| {
            &memory
                .iter()
                .find(|row| row.allocator == name)
                .unwrap()
                .bytes
        };
        let glibc: Vec<u32> = of("glibc").iter().map(|(cpus, _)| *cpus).collect();
        assert_eq!(glibc, [2, 16]);
        assert_eq!(of("glibc")[0].1, of("glibc")[1].1);
        assert_eq!(of("hoard")[1].1 - of("hoard")[0].1, f64::from(6 << 20));
        assert!(by(WALL).is_empty());
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
        let mut other_variables = on("e", 0.8);
        other_variables.run.allocators[1].environment =
            BTreeMap::from([("HOARD_HEAPS".into(), "4".into())]);
        let pool = pooled(&[
            on("a", 0.8),
            failed,
            other_work,
            other_library,
            other_variables,
        ]);
        assert_eq!(pool.rows[0].on.len(), 1);
        let whys: Vec<&str> = pool.left_out.iter().map(|left| left.why.as_str()).collect();
        for (why, expected) in whys.iter().zip([
            "no numbers",
            "slots was",
            "another library",
            "with HOARD_HEAPS=4: another library",
        ]) {
            assert!(why.contains(expected), "{whys:?}");
        }
        assert_eq!(whys.len(), 4);
    }

    #[test]
    fn a_command_that_runs_for_a_fixed_time_is_left_out_and_its_memory_is_not() {
        let fixed = |machine: &str| {
            let figures = [(SLOWER_CALLS, 0.1), (SLOWER_WALL, 1.0)];
            on(machine, 0.8).told("larson@2/check/glibc", &figures)
        };
        let runs = [fixed("a"), fixed("b")];
        let pool = pooled(&runs);
        assert!(pool.rows.is_empty(), "{:?}", pool.rows);
        let whys: Vec<&str> = pool.left_out.iter().map(|left| left.why.as_str()).collect();
        assert_eq!(whys, [FIXED_TIME, FIXED_TIME]);
        let by_memory = Pooling::new(metric::named("grown_bytes")).unwrap();
        let left_out = of_runs(by_memory, None, &runs).left_out;
        assert!(left_out.is_empty(), "{left_out:?}");
    }

    /// Half of the duets have turns of 10 ms, in which hoard pays more for its caches.
    #[test]
    fn ratios_are_pooled_as_they_were_measured() {
        let is_short = |block: u32| block.is_multiple_of(2);
        let run = FakeRun::new(&["glibc", "hoard"], &["larson"], 12).fill(|_, name, block| {
            let ns = match name {
                "hoard" if is_short(block) => 14.0,
                "hoard" => 11.0,
                _ => 20.0,
            };
            ns * noise(name, block)
        });
        let ratio = pooled(&[run.in_turns()]).rows[0].ratio;
        let expected = (0.7_f64 * 0.55).sqrt();
        // Of turns without end it would be 0.51.
        assert!((ratio / expected - 1.0).abs() < 0.03, "{ratio}");
    }

    #[test]
    fn a_zero_takes_its_row_away_and_shifts_no_verdict_to_another_machine() {
        let mut none = on("b", 1.3);
        none.cell("larson@2/b03/hoard").measurement = Some(measurement(1000.0));
        let value = |process: &Process| Some(process.ns_per_op() % 1000.0);
        let pool = pooled_by(value, &[on("a", 0.8), none, on("c", 0.8)]);
        let on: Vec<(usize, Verdict)> = pool.rows[0]
            .on
            .iter()
            .map(|result| (result.machine, result.verdict))
            .collect();
        assert_eq!(on, [(1, Verdict::Faster), (3, Verdict::Faster)]);
        assert!(
            pool.left_out[0].why.contains("no ratio"),
            "{:?}",
            pool.left_out
        );
    }

    #[test]
    fn a_machine_like_no_other_is_refused_with_its_setting() {
        let fixed = |state| {
            let mut run = on("b", 0.5);
            let item = PreflightItem {
                name: "aslr".into(),
                found: Some("0 (off)".into()),
                state,
                means: String::new(),
                change: String::new(),
            };
            let look = Preflight {
                looked: String::new(),
                root: None,
                items: vec![item],
            };
            run.run.preflights.before.push(look);
            run
        };
        let pool = pooled(&[fixed(ItemState::Warning), on("a", 0.8), on("c", 0.8)]);
        let machines: Vec<usize> = pool.rows[0]
            .on
            .iter()
            .map(|result| result.machine)
            .collect();
        assert_eq!((pool.machines.len(), machines), (2, vec![1, 2]));
        let [refused] = &pool.refused[..] else {
            panic!("{:?}", pool.refused)
        };
        assert_eq!(refused.run, "run-1");
        assert!(refused.why.contains("aslr is 0 (off)"), "{}", refused.why);
        assert!(
            pooled(&[fixed(ItemState::Note), on("a", 0.8)])
                .refused
                .is_empty()
        );
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
        let in_turns_of = |ms| {
            let mut run = on("b", 0.8).run;
            run.plan.cases[0].turns = Some(Turns::Stop);
            run.plan.turn_lengths_ms = vec![ms];
            run
        };
        assert!(unlike(&in_turns_of(80), &in_turns_of(80)).is_none());
        let found = unlike(&in_turns_of(10), &in_turns_of(80)).unwrap();
        assert!(found.what.contains("(--turns)"), "{found:?}");
    }
}
