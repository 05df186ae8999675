//! The answer of a run of real programs: a matrix of programs against allocators, of time and of peak
//! memory, with each program's time in malloc and free; what to do next. The full tables are in `terminal`.

use super::conclusion;
use super::legend::failed_checks_in_brief;
use super::machine::{machine_line, machine_name, price_warning};
use super::matrix::{Cell, Column, absent, bands, cell, marks, names, short};
use super::screen::{BOLD, Screen, YELLOW};
use super::terminal::failures;
use super::text::{count, list, plain};
use super::{units, user_command};
use crate::analyse::{Analysis, CommandFacts, Conclusion, Role, Table, TableRow};
use crate::catalog::joined;
use crate::store::RunFile;
use std::path::Path;

/// A program of a run.
type MeasuredProgram<'a> = (&'a Table, &'a CommandFacts);

/// `None` if the run has no two real programs. `place` is its directory.
pub fn programs(
    run: &RunFile,
    analysis: &Analysis,
    place: &Path,
    screen: Screen,
) -> Option<String> {
    let mut programs = analysis.real_programs();
    if programs.len() < 2 {
        return None;
    }
    // Those that spend most in malloc and free stand first.
    let share = |program: &MeasuredProgram| program.1.malloc_share.unwrap_or(0.0);
    programs.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let (counted, without): (Vec<MeasuredProgram>, Vec<MeasuredProgram>) =
        programs.into_iter().partition(|(case, _)| case.counts());
    let head = format!(
        "heapmark {}, suite {}, preset {}, {} on {}",
        run.heapmark,
        run.suite,
        run.preset,
        count(analysis.planned_blocks, "block"),
        machine_name(&run.machine)
    );
    let mut lines = vec![screen.paint(BOLD, &screen.wrap(&head, 2))];
    let all: Vec<MeasuredProgram> = [&counted[..], &without].concat();
    let base = &analysis.baseline;
    for (what, of) in [("Time", TIME), ("Peak memory", MEMORY)] {
        let heading = format!("{what} over {base}'s, below 1 is {}", of.better);
        lines.extend([
            String::new(),
            screen.paint(BOLD, &heading),
            matrix(analysis, &all, counted.len(), of, screen),
        ]);
    }
    lines.push(String::new());
    let mut remarks = vec![
        "in malloc: the share of the program's CPU time in calls of malloc and free under glibc."
            .to_owned(),
        format!(
            "{}Mean: geometric, over {}.",
            joined(marks(analysis).map(|mark| mark + ". "), ""),
            count(counted.len(), "program")
        ),
    ];
    let names = |programs: &[MeasuredProgram]| list(programs.iter().map(|it| &it.0.workload));
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
    remarks.extend(failed_checks_in_brief(analysis));
    remarks.extend(conclusion::interference(analysis));
    remarks.extend(machine_line(analysis));
    remarks.extend(analysis.prices.as_ref().and_then(price_warning));
    remarks.extend(conclusion::unplanned(analysis));
    remarks.extend(absent(analysis));
    lines.extend(remarks.iter().map(|line| screen.wrap(line, 2)));
    lines.extend(failures(analysis, screen));
    let colour = match analysis.conclusion {
        Conclusion::Fastest(_) => BOLD,
        _ => YELLOW,
    };
    let sentences = conclusion::conclusion(analysis) + &conclusion::smallest(analysis);
    lines.extend([
        String::new(),
        screen.paint(colour, &screen.wrap(&sentences, 0)),
        screen.wrap(
            &format!("All numbers: heapmark show {}", place.display()),
            2,
        ),
    ]);
    Some(lines.join("\n") + "\n")
}

/// Characters of the bar of the highest share.
const BAR_COLUMNS: usize = 6;

/// What a matrix shows of the rows.
#[derive(Clone, Copy)]
struct Shown {
    better: &'static str,
    /// The baseline's value, and its heading's last word.
    own: fn(&TableRow) -> Option<String>,
    cell: fn(&TableRow, &TableRow) -> Cell,
    mean: fn(&Analysis, &str) -> Option<f64>,
}

const TIME: Shown = Shown {
    better: "faster",
    own: |row| Some(units::duration(row.median("wall_ns")?)),
    cell: |row, _| cell(row),
    mean: |analysis, name| Some(overall(analysis, name)?.ratio),
};

const MEMORY: Shown = Shown {
    better: "less",
    own: |row| Some(units::bytes(peak_bytes(row)?)),
    cell: |row, base| match peak_bytes(row).zip(peak_bytes(base)) {
        _ if row.role == Role::Baseline => cell(row),
        Some((own, base)) => Cell::of(short(own / base)),
        None => cell(row),
    },
    mean: |analysis, name| Some(overall(analysis, name)?.memory?.ratio),
};

fn peak_bytes(row: &TableRow) -> Option<f64> {
    row.median("peak_rss_bytes")
}

fn overall<'a>(analysis: &'a Analysis, name: &str) -> Option<&'a crate::analyse::Overall> {
    analysis.overall.iter().find(|one| one.allocator == name)
}

/// The share of a program's CPU time in malloc and free.
pub fn in_malloc(facts: &CommandFacts) -> Option<String> {
    facts.malloc_share.map(units::percent)
}

/// The lengths of the bars of shares, over that of the longest one, which is the highest share's.
pub fn bars(shares: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let shares: Vec<Option<f64>> = shares.collect();
    let highest = shares.iter().flatten().copied().fold(0.0, f64::max);
    let length = |share: Option<f64>| Some(share? / highest).filter(|length| length.is_finite());
    shares.into_iter().map(length).collect()
}

/// A bar of this share of [`BAR_COLUMNS`], to an eighth of a character.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * (BAR_COLUMNS * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Programs, the mean behind those that count, then the others.
fn matrix(
    analysis: &Analysis,
    all: &[MeasuredProgram],
    counted: usize,
    of: Shown,
    screen: Screen,
) -> String {
    let with_mean = !analysis.overall.is_empty();
    let column = |heading: &str, cells: Vec<Cell>, mean: Option<String>| {
        let mut cells = cells;
        if with_mean {
            let mean = mean.unwrap_or_default();
            cells.insert(counted, Cell::of(mean));
        }
        Column::new(heading, cells)
    };
    let text = |of: &dyn Fn(&MeasuredProgram) -> Option<String>| -> Vec<Cell> {
        let texts = all.iter().map(of);
        texts
            .map(|text| Cell::of(text.unwrap_or("-".into())))
            .collect()
    };
    let bars = bars(all.iter().map(|(_, facts)| facts.malloc_share));
    let shares = all.iter().zip(bars).map(|((_, facts), length)| {
        let bar = bar(length.unwrap_or_default());
        let text = in_malloc(facts).unwrap_or("-".into());
        Cell::of(format!("{bar:<BAR_COLUMNS$}{text:>7}"))
    });
    let own = all.iter().map(|(program, _)| {
        let row = program.baseline_row();
        let own = row.and_then(of.own);
        own.map(Cell::of)
            .or_else(|| row.map(cell))
            .unwrap_or_else(|| Cell::of("-".into()))
    });
    let mut programs = column(
        "",
        text(&|(case, _)| Some(plain(&case.workload))),
        Some("mean".into()),
    );
    programs.gap = 0;
    let mut columns = vec![
        programs,
        column("in malloc", shares.collect(), None),
        column(&plain(&analysis.baseline), own.collect(), None),
    ];
    let others = names(analysis, &analysis.cases);
    for name in others.iter().filter(|name| **name != analysis.baseline) {
        let cells = all.iter().map(|(case, _)| {
            let row = case.row(name);
            let pair = row.zip(case.baseline_row());
            let cell = pair.map(|(row, base)| (of.cell)(row, base));
            cell.unwrap_or_else(|| Cell::of("-".into()))
        });
        let mean = (of.mean)(analysis, name).map(short);
        columns.push(column(&plain(name), cells.collect(), mean));
    }
    bands(&columns, screen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_is_that_of_the_highest_share() {
        let shown = bars([Some(0.4), Some(0.1), None].into_iter());
        assert_eq!(shown, [Some(1.0), Some(0.25), None]);
        assert_eq!(bar(1.0), "██████");
        assert_eq!(bar(0.25), "█▌");
        assert_eq!(bar(0.0), "");
        // Nothing calls malloc: no bar, and no division by zero.
        assert_eq!(bars([Some(0.0)].into_iter()), [None]);
    }
}
