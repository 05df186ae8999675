//! The columns of a case whose operations are counted.

use super::sheet::{SheetOf, over_baseline, verdict};
use super::{factor, text, units};
use crate::analyse::{Analysis, Role, Table, TableCell, TableRow, Verdict};
use crate::metric::{FigureMode, FigureRole, Judged, Metric, Unit, figures_of, key_in};

/// The share by which a baseline's busy time may differ from the load before the rates are called wrong.
const OTHER_LOAD: f64 = 0.25;

/// The figures of a row that have columns, each with the column's title.
fn shown(row: &TableRow) -> impl Iterator<Item = (&'static str, &TableCell)> {
    let cells = row.cells.iter();
    cells.filter_map(|cell| Some((cell.metric.column()?, cell)))
}

/// The cells by which rows are judged, besides their time.
fn judged(row: &TableRow) -> impl Iterator<Item = (&'static str, &TableCell)> {
    shown(row).filter(|(_, cell)| cell.metric.judged != Judged::No)
}

/// Whether rows are judged by a figure of their kernel, which then decides the answer.
pub fn any_judged_figure(analysis: &Analysis) -> bool {
    let mut rows = analysis.rows();
    rows.any(|row| judged(row).next().is_some())
}

/// `; p50 480 ns, p99 3.20 us`: the times among the figures of a row, for tables without columns for them.
pub fn times(row: &TableRow) -> String {
    let texts = shown(row)
        .filter(|(_, cell)| cell.metric.unit == Unit::Ns)
        .map(|(title, cell)| format!("{title} {}", units::duration(cell.spread.median)));
    text::enclosed("; ", &text::list(texts), "")
}

/// `A/A: the copy's p99 is 1.02 of glibc's`, and whether that is called a difference.
pub fn judged_of_copy(case: &Table) -> Vec<String> {
    let of_cell = |(title, cell): (&str, &TableCell)| {
        let ratio = units::digits(cell.ratio?.ratio);
        let differs = match cell.verdict {
            None | Some(Verdict::Same | Verdict::Unclear { .. } | Verdict::TooFew { .. }) => "",
            _ => ": different, so nothing is claimed by it here",
        };
        Some(format!(
            "A/A: the copy's {title} is {ratio} of {}'s{differs}",
            case.baseline
        ))
    };
    let copy = case.rows.iter().find(|row| row.role == Role::AaCopy);
    copy.into_iter()
        .flat_map(judged)
        .filter_map(of_cell)
        .collect()
}

/// Returns how busy the baseline is, if that is far from the load: then either the process that the rates come from was disturbed, or the
/// baseline's processes in this case were.
pub fn other_load(case: &Table) -> Option<String> {
    let baseline = case.baseline_row()?;
    let [load, busy] =
        [FigureRole::Load, FigureRole::Busy].map(|role| baseline.median(key_in(role)));
    let (load, busy) = (load?, busy?);
    ((busy / load - 1.0).abs() > OTHER_LOAD).then(|| {
        format!(
            "load: {} serves requests {} of the time where the rates say {}: it was slower or faster when they were set; --set \
             {}.capacity=N sets them",
            case.baseline,
            units::percent(busy),
            units::percent(load),
            case.workload
        )
    })
}

pub fn columns(table: &mut SheetOf<TableRow>, case: &Table) {
    if case.paced {
        return held(table);
    }
    let smallest = |value: fn(&TableRow) -> f64| {
        table
            .rows
            .iter()
            .map(|row| value(row))
            .fold(f64::INFINITY, f64::min)
    };
    let time = units::time(smallest(|row| row.time().spread.median));
    let rate = units::rate(smallest(|row| row.rate().median));
    table.add(time.name, |row| row.time().spread.median / time.size);
    table.add(rate.name, |row| row.rate().median / rate.size);
    if table.rows.iter().any(|row| row.time().ratio.is_some()) {
        table.judged(&case.baseline);
        factor::columns(table, case);
        if !case.took_turns {
            table.add("CPU", |row| over_baseline(row, "cpu_ns_per_op"));
            table.add("by CPU", |row| verdict(row, "cpu_ns_per_op"));
        }
        table.add("user", |row| over_baseline(row, "user_ns_per_op"));
    }
    figures(table);
    held(table);
    if table.rows.iter().any(|row| row.floor_share.is_some()) {
        let share = |row: &TableRow| Some((row.floor_share?, Unit::Share));
        table.add("floor", share);
        let parts = |row: &TableRow| {
            let parts = row.parts?;
            let all = [parts.harness_ns, parts.kernel_ns, parts.allocator_ns];
            Some(all.map(|ns| time.digits(ns)).join(" + "))
        };
        table.add("floor + kernel + rest", parts);
    }
}

/// Returns whether a figure of a row is known and not 0.
pub fn says(figure: &Metric, row: &TableRow) -> bool {
    row.median(figure.key).is_some_and(|median| median != 0.0)
}

/// Adds columns for the figures that the kernel reports, except those that are 0 in each row.
fn figures(table: &mut SheetOf<TableRow>) {
    for metric in figures_of(FigureMode::Time) {
        let Some(title) = metric.column() else {
            continue;
        };
        if !table.rows.iter().any(|row| says(metric, row)) {
            continue;
        }
        let key = metric.key;
        table.metric(title, key);
        if table.rows.iter().any(|row| row.verdict(key).is_some()) {
            table.add(format!("by {title}"), |row| verdict(row, key));
        }
    }
}

/// Adds columns for memory, at its peak and over time.
fn held(table: &mut SheetOf<TableRow>) {
    table.memory();
    if table
        .rows
        .iter()
        .any(|row| row.cell("mean_footprint_bytes").is_some())
    {
        table.metric("mean footprint", "mean_footprint_bytes");
        table.metric("GiB*s", "gib_seconds");
    }
}

#[cfg(test)]
mod tests {
    use crate::analyse::analyse;
    use crate::analyse::fake_run::FakeRun;
    use crate::report::{Screen, terminal};

    /// The table of a run whose baseline is busy for this share of the time, at a load of 60 %.
    fn table(busy: f64) -> String {
        let mut lab = FakeRun::new(&["glibc", "hoard"], &["open-loop"], 3).fill(|_, _, _| 20.0);
        let figures = [
            ("open_load_share", 0.6),
            ("open_busy_share", busy),
            ("open_p50_ns", 900.0),
            ("open_p99_ns", 7000.0),
            ("closed_p99_9_ns", 4000.0),
        ];
        for measurement in lab
            .records
            .iter_mut()
            .filter_map(|record| record.measurement.as_mut())
        {
            let entries = figures.map(|(name, value)| (name.to_owned(), value));
            measurement.figures.extend(entries);
        }
        let screen = Screen {
            width: 200,
            colour: false,
        };
        terminal(&analyse(&lab.run, &lab.records), screen)
    }

    #[test]
    fn latencies_stand_beside_the_time_and_rates_that_do_not_fit_are_named() {
        let fits = table(0.5);
        let heading = fits.lines().find(|line| line.contains("ns/op")).unwrap();
        for title in ["p50", "p99", "by p99", "p99.9 closed"] {
            assert!(heading.contains(title), "{title}: {heading}");
        }
        assert!(
            !heading.contains("cold") && !heading.contains("max"),
            "{heading}"
        );
        assert!(
            fits.contains("7.00 us") && !fits.contains("load: "),
            "{fits}"
        );
        let line = "load: glibc serves requests 20 % of the time where the rates say 60 %";
        assert!(table(0.2).contains(line), "{}", table(0.2));
    }
}
