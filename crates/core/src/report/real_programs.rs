//! The first tables of a run of real programs: programs against allocators, of time and of peak memory, with
//! each program's time in malloc and free.

use super::document::{Block, Cell, Sheet, Value};
use super::doubts::doubts;
use super::matrix::{cell, marks, names};
use super::sheet::SheetOf;
use super::text::{count, list};
use super::{units, user_command};
use crate::analyse::{Analysis, CommandFacts, Overall, Table};
use crate::catalog::joined;
use crate::metric::{Unit, WALL};

/// A program of a run.
type MeasuredProgram<'a> = (&'a Table, &'a CommandFacts);

/// The tables of time and memory; `None` unless the run has at least two real programs.
pub fn programs(analysis: &Analysis) -> Option<Vec<Block>> {
    let mut programs = analysis.real_programs();
    if programs.len() < 2 {
        return None;
    }
    // Programs that spend most in malloc and free stand first.
    let share = |program: &MeasuredProgram| program.1.malloc_share.unwrap_or(0.0);
    programs.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let (counted, without): (Vec<MeasuredProgram>, Vec<MeasuredProgram>) =
        programs.into_iter().partition(|(case, _)| case.counts());
    let all: Vec<MeasuredProgram> = [&counted[..], &without].concat();
    let base = &analysis.baseline;
    let mut blocks = Vec::new();
    for (what, of) in [("Time", TIME), ("Peak memory", MEMORY)] {
        let heading = format!("{what} over {base}'s, below 1 is {}", of.better);
        blocks.push(Block::Sheet(Sheet {
            heading,
            ..matrix(analysis, &all, counted.len(), of)
        }));
    }
    let mut remarks = vec![
        "in malloc: the share of the program's CPU time in calls of malloc and free under glibc."
            .to_owned(),
        format!(
            "{}Mean: geometric, over {}{}.",
            joined(marks(analysis).map(|mark| mark + ". "), ""),
            count(counted.len(), "program"),
            if TIME.tells_next(analysis) {
                "; another program: 95 % of those that were not measured"
            } else {
                ""
            }
        ),
    ];
    let names =
        |programs: &[MeasuredProgram]| list(programs.iter().map(|program| &program.0.workload));
    if !without.is_empty() {
        let names = names(&without);
        remarks.push(format!(
            "No numbers under {base}, and so in no mean: {names}."
        ));
    }
    let cautions = all.iter().flat_map(|(case, facts)| {
        let both = [case.caution.clone(), user_command::reached_in_part(facts)];
        let both = both.into_iter().flatten();
        both.map(|caution| format!("{}: {caution}", case.workload))
    });
    remarks.extend(cautions);
    remarks.extend(doubts(analysis));
    blocks.push(Block::notes(remarks));
    Some(blocks)
}

/// What a matrix shows about the rows.
#[derive(Clone, Copy)]
struct Shown {
    better: &'static str,
    /// The metric of the baseline's own value, and its unit.
    own: (&'static str, Unit),
    /// The metric whose ratio to the baseline's value the other allocators show.
    over: &'static str,
    mean: fn(&Overall) -> Option<f64>,
    /// The range in which another program is expected.
    next: fn(&Overall) -> Option<(f64, f64)>,
}

impl Shown {
    /// Whether enough programs were measured for a range in which another one is expected.
    fn tells_next(&self, analysis: &Analysis) -> bool {
        let mut overall = analysis.overall.iter();
        overall.any(|one| (self.next)(one).is_some())
    }
}

const TIME: Shown = Shown {
    better: "faster",
    own: ("wall_ns", Unit::Ns),
    over: WALL.key,
    mean: |one| Some(one.ratio),
    next: |one| one.next_case,
};

const MEMORY: Shown = Shown {
    better: "less",
    own: ("peak_rss_bytes", Unit::Bytes),
    over: "grown_bytes",
    mean: |one| Some(one.memory?.ratio),
    next: |_| None,
};

/// The share of a program's CPU time in malloc and free, with a bar over the highest share of all programs.
pub fn in_malloc(facts: &CommandFacts, all: &[&CommandFacts]) -> Cell {
    let shares = all.iter().filter_map(|facts| facts.malloc_share);
    let highest = shares.fold(0.0, f64::max);
    let share = facts.malloc_share;
    let bar = share.map(|share| share / highest);
    Cell {
        bar: bar.filter(|length| length.is_finite()).or(Some(0.0)),
        ..share.map(|share| (share, Unit::Share)).into()
    }
}

/// The programs that count, the mean over these, then the other programs.
fn matrix(analysis: &Analysis, all: &[MeasuredProgram], counted: usize, of: Shown) -> Sheet {
    let mut table = SheetOf::new("", all);
    let facts: Vec<&CommandFacts> = all.iter().map(|(_, facts)| *facts).collect();
    table.add("", |(case, _)| &case.workload);
    table.add("in malloc", |(_, command)| in_malloc(command, &facts));
    let baseline = &analysis.baseline;
    table.add(baseline, |(case, _)| {
        let (key, unit) = of.own;
        let median = case.baseline_row().and_then(|row| row.median(key));
        match median {
            Some(median) => (median, unit).into(),
            None => cell(case, baseline, of.over),
        }
    });
    let names = names(analysis, &analysis.cases);
    let others: Vec<&str> = names.into_iter().filter(|name| name != baseline).collect();
    for name in &others {
        table.add(*name, |(case, _)| cell(case, name, of.over));
    }
    let mut sheet = table.sheet;
    sheet.is_matrix = true;
    if !analysis.overall.is_empty() {
        let row = |label: &str, of_one: &dyn Fn(&Overall) -> Cell| {
            let cell = |name: &&str| analysis.overall_of(name).map(of_one);
            let first = [label, "", ""].map(Cell::from);
            let cells = others
                .iter()
                .map(|name| cell(name).unwrap_or_else(|| "".into()));
            first.into_iter().chain(cells).collect()
        };
        let mean = |one: &Overall| match (of.mean)(one) {
            Some(mean) => Value::Short(mean).into(),
            None => "".into(),
        };
        sheet.rows.insert(counted, row("mean", &mean));
        let next = |one: &Overall| {
            let range = |(low, high)| format!("{}-{}", units::short(low), units::short(high));
            (of.next)(one).map(range).into()
        };
        if of.tells_next(analysis) {
            sheet
                .rows
                .insert(counted + 1, row("another program", &next));
        }
    }
    sheet
}
