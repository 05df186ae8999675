//! All results of a run.

use super::candidate::LeftOut;
use super::clock::Clock;
use super::command_facts::CommandFacts;
use super::conclusion::Conclusion;
use super::failure::Failure;
use super::grid::grid;
use super::group::{CaseGroups, Group, RecordsByRow};
use super::held::Held;
use super::interference::InterferenceSummary;
use super::judged_case::JudgedCase;
use super::overall::Overall;
use super::releases::{c_libraries, releases, with_release};
use super::role::Role;
use super::table::{Table, TableRow};
use super::timed_tables::judged_cases;
use super::{
    conclusion, failure, group, held, huge_pages, interference, limit, overall, slices, tables,
    timed_document, verdict,
};
use crate::catalog::joined;
use crate::observe::Prices;
use crate::plan::{Cell, Counter, HugePages, LimitKind, Mode};
use crate::store::{Checked, KnownFault, Purpose, Record, RunFile, seconds_of_processes};
use serde::Serialize;
use std::collections::BTreeMap;

/// All results that are derived from a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Analysis {
    /// Name of the allocator that the others are compared with.
    pub baseline: String,
    /// The number of blocks that the run has begun, within its planned minimum and maximum.
    pub planned_blocks: u32,
    /// Whether the budget that the user gave is used up: if the run is resumed, no further block begins.
    #[serde(skip)]
    pub is_out_of_time: bool,
    /// A table for each workload and thread count, in plan order.
    #[serde(serialize_with = "timed_document::tables")]
    pub cases: Vec<Table>,
    /// Every allocator compared with the baseline over all cases that time operations.
    pub overall: Vec<Overall>,
    /// What else the machine did during the run.
    pub interference: InterferenceSummary,
    /// Tables of a run that timed single calls; such a run has no others.
    pub latency: Vec<Table>,
    /// Tables of a run that counted; such a run has no others.
    pub counts: Vec<Table>,
    /// The counter of a run that counted.
    pub counter: Option<Counter>,
    /// Tables of the cases whose memory was sampled, the least overhead at the peak of the
    /// footprint first; a run that times other cases has these tables, too.
    pub footprints: Vec<Table>,
    /// Tables of a run that looked for smallest limits, the least one first; such a run has no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Table>,
    /// The kind of limit in a run that looked for smallest limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitKind>,
    /// How much memory each allocator holds relative to what is live, if the run measured that besides times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// The largest share of huge pages that each allocator was seen to have, if the run sampled memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub huge_shares: Vec<(String, f64)>,
    /// Every process that failed, whatever its purpose, except those that failed under a limit that was tried.
    pub failures: Vec<Failure>,
    /// Checks and samples of a case or an allocator that the plan does not name; they are left out
    /// of all results.
    pub unplanned: usize,
    /// The conclusion of the run.
    pub conclusion: Conclusion,
    /// Allocators that the verdict cannot include.
    pub left_out: Vec<LeftOut>,
    /// The conclusion about later rounds of traces, if first rounds are judged too: `conclusion`
    /// and `overall` then exclude them.
    pub later_rounds: Option<LaterRounds>,
    /// Properties of the machine that make numbers vary; absent if it was not inspected.
    pub machine_warnings: Option<Vec<String>>,
    /// Which memory could be in transparent huge pages.
    #[serde(skip)]
    pub huge_pages: HugePages,
    /// The machine's own setting for transparent huge pages; empty if it is not known. Exports have
    /// it with the machine.
    #[serde(skip)]
    pub transparent_huge_pages: String,
    /// The prices of the machine's kernel, if they were measured; exports have them with the machine.
    #[serde(skip)]
    pub prices: Option<Prices>,
    /// What `heapmark check` had found out about allocators that rank; exports have it with each allocator.
    #[serde(skip)]
    pub checked: Vec<(String, Checked)>,
    /// Allocators that may be hardened: those of the tier `hardened`, and the user's own libraries.
    #[serde(skip)]
    pub hardened: Vec<String>,
    /// The release that each allocator's numbers are from; exports have it with each allocator.
    #[serde(skip)]
    pub releases: BTreeMap<String, String>,
    /// Allocators that are whole C libraries of their own; exports record where each comes from.
    #[serde(skip)]
    pub c_libraries: Vec<String>,
}

/// The conclusion about later rounds of traces.
#[derive(Clone, Debug, Serialize)]
pub struct LaterRounds {
    /// The conclusion.
    pub conclusion: Conclusion,
    /// Allocators that the conclusion cannot include.
    pub left_out: Vec<LeftOut>,
}

/// Derives all results from the records of a run, which has one record per cell, as the store reads them.
pub fn analyse(run: &RunFile, records: &[Record]) -> Analysis {
    let records: Vec<&Record> = records.iter().collect();
    let (counting, interference) = interference::pass(&records);
    let mut analysis = Analysis {
        baseline: run.plan.baseline.clone(),
        planned_blocks: group::blocks_begun(records.iter().copied())
            .clamp(run.plan.blocks, run.plan.most_blocks()),
        is_out_of_time: is_out_of_time(run, &records),
        counter: run.plan.mode.counter(),
        limit: run.plan.mode.limit(),
        interference,
        failures: failure::collect(&records),
        unplanned: RecordsByRow::new(records.iter().copied()).unplanned(run),
        machine_warnings: run.preflights.warnings(),
        huge_pages: run.plan.huge_pages,
        transparent_huge_pages: (run.machine.get("transparent_huge_pages"))
            .cloned()
            .unwrap_or_default(),
        prices: run.preflights.prices.last().cloned(),
        checked: checked(run),
        hardened: hardened(run),
        releases: releases(run),
        c_libraries: c_libraries(run),
        ..Analysis::default()
    };
    let counting = RecordsByRow::new(counting);
    for run in &run.parts() {
        match run.plan.mode {
            Mode::Time => analysis.judge_times(run, &counting),
            Mode::Latency { every } => analysis.latency = tables::of_calls(run, every, &counting),
            Mode::Count(_) => analysis.counts = tables::of_samples(run, Purpose::Count, &counting),
            Mode::Memory => {
                analysis.footprints = tables::of_memory(run, &counting);
                let plan = &run.plan;
                let tables = &analysis.footprints;
                analysis.huge_shares = huge_pages::shares(tables);
                if plan.cases.iter().all(|case| case.beside) {
                    analysis.held = held::held(&plan.allocators, &plan.cases, tables);
                }
                for table in &mut analysis.footprints {
                    table.sort_by_least("overhead_at_peak_footprint");
                }
            }
            Mode::Limit(_) => {
                analysis.limits = limit::tables(run, &counting);
                for table in &mut analysis.limits {
                    table.sort_by_least("smallest_limit_bytes");
                }
            }
        }
    }
    analysis
}

fn is_out_of_time(run: &RunFile, records: &[&Record]) -> bool {
    let own_s = run.plan.budget_s.filter(|_| !run.plan.budget_of_suite);
    let last_block = group::blocks_begun(records.iter().copied()).saturating_sub(1);
    let is_of_last =
        |record: &&Record| record.purpose == Purpose::Sample && record.block == last_block;
    let last = records.iter().copied().filter(is_of_last);
    let used_s = seconds_of_processes(records.iter().copied()) + seconds_of_processes(last);
    // What heapmark does between processes takes of the budget, too, and a signal seldom comes between two blocks.
    let is_whole = |cell: &Cell| records.iter().any(|record| record.cell == cell.id);
    own_s.is_some_and(|budget_s| {
        used_s >= budget_s || run.plan.block(last_block).iter().flatten().all(is_whole)
    })
}

fn hardened(run: &RunFile) -> Vec<String> {
    let may_be = run
        .allocators
        .iter()
        .filter(|info| matches!(&*info.tier, "hardened" | "user"));
    may_be.map(|info| info.name.clone()).collect()
}

fn checked(run: &RunFile) -> Vec<(String, Checked)> {
    let ranked = run.allocators.iter();
    let ranked = ranked.filter(|info| Role::of(info, &run.plan.baseline).ranks());
    ranked
        .filter_map(|info| Some((info.name.clone(), info.checked.clone()?)))
        .collect()
}

impl Analysis {
    /// The case of a run with a single case; cases with a factor do not count.
    pub fn only_case(&self) -> Option<&Table> {
        let mut cases = self.cases.iter().filter(|case| case.factor.is_none());
        cases.next().filter(|_| cases.next().is_none())
    }

    /// The rows of all tables of times.
    pub fn rows(&self) -> impl Iterator<Item = &TableRow> + Clone {
        self.cases.iter().flat_map(|case| &case.rows)
    }

    /// The tables of all other kinds.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.latency
            .iter()
            .chain(&self.counts)
            .chain(&self.footprints)
            .chain(&self.limits)
    }

    /// The checks that an allocator was known not to pass, the worst first.
    pub fn failed_by(&self, allocator: &str) -> &[KnownFault] {
        let entry = self.checked.iter().find(|(name, _)| name == allocator);
        entry.map_or(&[], |(_, checked)| &checked.findings)
    }

    /// An allocator's name with its release, such as `mimalloc2 (mimalloc 2.5.2, 2026-09)`: a
    /// verdict holds for that release alone.
    pub fn named(&self, allocator: &str) -> String {
        with_release(allocator, &self.releases)
    }

    /// The results of an allocator over all cases.
    pub fn overall_of(&self, allocator: &str) -> Option<&Overall> {
        self.overall.iter().find(|one| one.allocator == allocator)
    }

    /// What an allocator holds, if the run measured that besides times.
    pub fn held_by(&self, allocator: &str) -> Option<&Held> {
        self.held.iter().find(|held| held.allocator == allocator)
    }

    /// Returns the smallest and the largest time of a copy of the baseline in a case, over the baseline's: how far
    /// equals differ in this run. `None` if no case has a copy and times of its own.
    pub fn copies(&self) -> Option<(f64, f64)> {
        let judged = self.cases.iter().filter(|case| !case.paced);
        let ratios = || judged.clone().filter_map(|case| Some(case.aa_copy?.ratio));
        Some((
            ratios().min_by(f64::total_cmp)?,
            ratios().max_by(f64::total_cmp)?,
        ))
    }

    /// The real programs from the catalogue that the run executed with fresh heaps.
    pub fn real_programs(&self) -> Vec<(&Table, &CommandFacts)> {
        let real = |case: &'_ Table| {
            case.factor.is_none() && case.command.as_ref().is_some_and(|command| command.real)
        };
        let cases = self.cases.iter().filter(|case| real(case));
        cases
            .filter_map(|case| Some((case, case.command.as_ref()?)))
            .collect()
    }

    /// Judges the times of all cases.
    fn judge_times(&mut self, run: &RunFile, records: &RecordsByRow) {
        let tables = grid(run, records);
        self.cases = judged_cases(run, &tables, false);
        for (case, table) in self.cases.iter_mut().zip(&tables) {
            let why = records.alone(&case.workload, case.threads);
            let alone = why.map(|why| format!("Measured alone, {why}."));
            let given: Vec<_> = table
                .groups
                .iter()
                .flat_map(Group::turns_of_scheduler)
                .collect();
            let short = slices::cut_short(&given);
            let parts = case.caution.take().into_iter().chain(alone).chain(short);
            case.caution = parts
                .chain(depend_on_turns(table))
                .reduce(|text, alone| text + " " + &alone);
        }
        // Statements about all cases cover only the cases without a factor.
        let judged = self.cases.iter().zip(&tables);
        let judged = judged.filter(|(case, _)| case.factor.is_none());
        let judged = judged.map(|(case, table)| JudgedCase::new(case, table));
        let (mut later, mut rest): (Vec<JudgedCase>, Vec<JudgedCase>) =
            judged.partition(|judged| judged.table.case.plays_later_rounds());
        // If everything was disturbed, wall times show the load of other programs as much as the allocators.
        let disturbed = self.interference.all_timed_is_disturbed();
        let clock = |judged: &JudgedCase| match judged.table.clock() {
            Clock::Wall if disturbed => Clock::Cpu,
            clock => clock,
        };
        let judge = |judged: &[JudgedCase]| {
            let by_clock: Vec<_> = judged
                .iter()
                .map(|judged| judged.by(clock(judged)))
                .collect();
            conclusion::judge(run, &by_clock)
        };
        // First and later rounds of one trace answer different questions, so no verdict covers
        // both. If a suite plays each trace in only one way, all of its cases are judged together.
        let of_one_trace = |later: &JudgedCase| {
            rest.iter()
                .map(|first| first.table.case)
                .any(|first| first.plays_trace_of(later.table.case))
        };
        if !later.iter().any(of_one_trace) {
            rest.append(&mut later);
            rest.sort_by_key(|judged| {
                self.cases
                    .iter()
                    .position(|case| std::ptr::eq(case, judged.case))
            });
        }
        self.later_rounds = (!later.is_empty()).then(|| {
            let (conclusion, left_out) = judge(&later);
            LaterRounds {
                conclusion,
                left_out,
            }
        });
        // If there are several real programs, those without numbers for the baseline cannot be
        // compared and are left out.
        if self.real_programs().len() > 1 {
            rest.retain(|judged| judged.case.counts());
        }
        (self.conclusion, self.left_out) = judge(&rest);
        self.overall = overall::overall(run, &rest);
    }
}

/// The rows whose times depend on how long turns were, in words.
fn depend_on_turns(table: &CaseGroups) -> Option<String> {
    let baseline = table.baseline()?;
    let of_row = |group: &Group| {
        let found = group.depends_on_turns(baseline, verdict::TIME)?;
        let percent = (found.short_over_long.exp() - 1.0) * 100.0;
        Some(format!(
            "{} ({percent:+.1} % at the shortest)",
            group.allocator.name
        ))
    };
    let rows: Vec<String> = table.of(Role::Candidate).filter_map(of_row).collect();
    (!rows.is_empty()).then(|| {
        let rows = joined(rows, ", ");
        format!("Depends on slices: {rows}; the ratio is that of turns without end.")
    })
}
