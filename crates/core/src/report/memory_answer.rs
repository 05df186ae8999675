//! The answer of a run that measured memory and timed nothing: which allocator holds least at the peak, which ones give memory back after
//! it, and which ones are bad in which cases; and one table of allocators against cases.

use super::document::{Cell, Mark, Sheet, Value};
use super::footprint;
use super::matrix::{FAILED, closest_first, headings};
use super::names::AS_SMALL;
use super::sheet::SheetOf;
use super::text::{count, enclosed, join, list};
use super::units::{bytes, percent, times};
use crate::analyse::{Analysis, Spread, Table, TableRow, distinct, held};
use crate::metric::{FigureRole, MemoryShape, Unit, key_in};
use heapmark_stats::geometric_mean;

/// The highest resident heap.
const HEAP: &str = "peak_heap_bytes";
/// The memory that is resident right after everything was freed, and 5 s later, when a process looks for the last time.
const FREED: &str = "retained_bytes_0_ms";
const AT_REST: &str = "retained_bytes_5000_ms";
/// Giving back a smaller share of what is resident counts as giving back nothing.
const HARDLY: f64 = 0.05;
/// An allocator that holds this many times what the best one holds is called bad.
const BAD: f64 = 3.0;
/// The most allocators that a sentence calls bad.
const MOST_BAD: usize = 3;

/// `At the peak glibc holds least: 2.89x what is live (2.80x to 2.95x in each process), ...`
pub fn sentence(analysis: &Analysis) -> String {
    let (peaks, cases) = held::peaks(&analysis.footprints);
    let [(_, least), _, ..] = peaks[..] else {
        return of_heaps(analysis) + &returns(analysis);
    };
    let (small, others): (Vec<_>, Vec<_>) =
        (peaks.iter()).partition(|(_, held)| *held <= least * AS_SMALL);
    let smallest = list(small.iter().map(|(name, _)| name));
    let verb = match small.len() {
        1 => "holds least",
        _ => "hold least, within 3 % of each other",
    };
    let texts = others
        .iter()
        .map(|(name, held)| format!("{name} {}", times(*held)));
    let others = enclosed(" (", &join(texts, ", "), ")");
    let mean = match cases {
        1 => String::new(),
        cases => format!(", the mean of {}", count(cases, "case")),
    };
    let range = range(analysis, small[0].0);
    format!(
        "At the peak {smallest} {verb}: {} what is live{mean}{range}{others}.{}{}",
        times(least),
        returns(analysis),
        bad(analysis, &peaks)
    )
}

/// `At the peak mimalloc3 holds least: 192 KiB, ...`: for a single case in which too little is live for a ratio.
fn of_heaps(analysis: &Analysis) -> String {
    let [case] = &analysis.footprints[..] else {
        return "This run sampled memory, and timed nothing. Its tables are the answer.".into();
    };
    let mut heaps: Vec<(&str, &Spread)> = (case.rows.iter())
        .filter(|row| row.role.ranks())
        .filter_map(|row| Some((row.allocator.as_str(), &row.cell(HEAP)?.spread)))
        .collect();
    heaps.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    let Some(((name, held), others)) = heaps.split_first() else {
        return "This run sampled memory, and timed nothing.".into();
    };
    let texts = others
        .iter()
        .map(|(name, held)| format!("{name} {}", bytes(held.median)));
    format!(
        "At the peak {name} holds least: {}, {} to {} from process to process{}.",
        bytes(held.median),
        bytes(held.min),
        bytes(held.max),
        enclosed(" (", &join(texts, ", "), ")")
    )
}

/// `, 12.1 MiB, 2.80x to 2.95x from process to process`: what is known about an allocator's peak besides a median.
fn range(analysis: &Analysis, allocator: &str) -> String {
    let rows: Vec<&TableRow> = held::with_peaks(&analysis.footprints)
        .into_iter()
        .filter_map(|case| case.row(allocator))
        .collect();
    let end = |end: fn(&TableRow) -> Option<f64>| {
        let ends: Option<Vec<f64>> = rows.iter().map(|row| end(row)).collect();
        geometric_mean(&ends?)
    };
    let low = end(|row| Some(row.cell(held::PEAK)?.spread.min));
    let high = end(|row| Some(row.cell(held::PEAK)?.spread.max));
    let heap = match rows[..] {
        [row] => row.median(HEAP).map(|held| bytes(held) + ", "),
        _ => None,
    };
    let heap = heap.unwrap_or_default();
    let several = rows
        .iter()
        .all(|row| row.cell(held::PEAK).is_some_and(|cell| cell.n > 1));
    let Some((low, high)) = low.zip(high).filter(|_| several) else {
        return enclosed(", ", heap.trim_end_matches(", "), "");
    };
    match (times(low), times(high)) {
        (low, high) if low == high => format!(", {heap}the same in each process"),
        (low, high) => format!(", {heap}{low} to {high} from process to process"),
    }
}

/// ` After a burst mimalloc3 gives back 62 % while the process sleeps, ...`, ` Of what is resident when all is freed ...`.
fn returns(analysis: &Analysis) -> String {
    let burst = key_in(FigureRole::Held(MemoryShape::Returned));
    let asleep = shares(analysis, |row| row.median(burst));
    if !asleep.is_empty() {
        return told_of_shares(&asleep, "of a burst while the process sleeps");
    }
    let rest = shares(analysis, |row| {
        let freed = row.median(FREED).filter(|freed| *freed > 0.0)?;
        Some((1.0 - row.median(AT_REST)? / freed).max(0.0))
    });
    told_of_shares(&rest, "of what is resident when all is freed within 5 s")
}

/// Each allocator's share, the largest first. An allocator's share is the smallest over all cases that have one.
fn shares(analysis: &Analysis, share: impl Fn(&TableRow) -> Option<f64>) -> Vec<(&str, f64)> {
    let mut all: Vec<(&str, f64)> = Vec::new();
    for row in analysis.footprints.iter().flat_map(|case| &case.rows) {
        let Some(share) = share(row).filter(|_| row.role.ranks()) else {
            continue;
        };
        match all.iter_mut().find(|(name, _)| *name == row.allocator) {
            Some((_, least)) => *least = least.min(share),
            None => all.push((&row.allocator, share)),
        }
    }
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    all
}

fn told_of_shares(shares: &[(&str, f64)], what: &str) -> String {
    let giving = shares.iter().filter(|(_, share)| *share >= HARDLY);
    let giving: Vec<String> = giving
        .map(|(name, share)| format!("{name} {}", percent(*share)))
        .collect();
    let others = match shares.len() - giving.len() {
        0 => "",
        _ => "; others less than 5 %",
    };
    match (shares.is_empty(), giving.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!(" None gives back as much as 5 % {what}."),
        (false, false) => format!(" Given back {what}: {}{others}.", list(giving)),
    }
}

/// ` Bad: rpmalloc at chain (73.5x; tcmalloc 1.29x), ...`: the cases in which allocators hold most compared with the best one.
fn bad(analysis: &Analysis, peaks: &[(&str, f64)]) -> String {
    let rows = analysis.footprints.iter().flat_map(|case| &case.rows);
    let growing = rows.filter_map(|row| footprint::is_growing(row).then_some(&row.allocator));
    let growing = distinct(growing);
    let mut all: Vec<(f64, String)> = Vec::new();
    let cases = held::with_peaks(&analysis.footprints);
    for (name, _) in peaks {
        let worst = cases.iter().filter_map(|case| {
            let held = |row: &TableRow| row.median(held::PEAK).filter(|_| row.role.ranks());
            let peak = held(case.row(name)?)?;
            let others = case.rows.iter();
            let others = others.filter_map(|row| Some((held(row)?, &row.allocator)));
            let (least, best) = others.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
            let text = format!(
                "{name} at {} ({}; {best} {})",
                case.workload,
                times(peak),
                times(least)
            );
            (peak >= BAD * least).then_some((peak / least, text))
        });
        all.extend(worst.max_by(|(a, _), (b, _)| a.total_cmp(b)));
    }
    all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let texts = all.into_iter().take(MOST_BAD).map(|(_, text)| text);
    enclosed(" Bad: ", &list(texts), ".") + &enclosed(" Still growing: ", &list(growing), ".")
}

/// What each allocator holds at the peak of each case, over what is live at that moment; `None` for a single workload or allocator.
pub fn matrix(analysis: &Analysis) -> Option<Sheet> {
    let cases = held::with_peaks(&analysis.footprints);
    let (peaks, _) = held::peaks(&analysis.footprints);
    let workloads = distinct(cases.iter().map(|case| &case.workload)).len();
    if !analysis.cases.is_empty() || workloads < 2 || peaks.len() < 2 {
        return None;
    }
    let mut table = SheetOf::new("Highest resident heap over most live bytes", &peaks);
    table.add("", |(name, _)| *name);
    table.add("mean", |(_, mean)| Value::Short(*mean));
    let asleep = key_in(FigureRole::Held(MemoryShape::Returned));
    let asleep = shares(analysis, |row| row.median(asleep));
    if !asleep.is_empty() {
        table.add("given\nback", |(name, _)| {
            let entry = asleep.iter().find(|(other, _)| other == name);
            entry.map(|(_, share)| (*share, Unit::Share))
        });
    }
    let first = table.sheet.columns.len();
    for (case, title) in cases.iter().zip(headings(&cases)) {
        table.add(title, |(name, _)| of_case(case, name));
    }
    let mut sheet = table.sheet;
    sheet.is_matrix = true;
    let held = cases.iter().map(|case| {
        let rows = case.rows.iter();
        rows.filter_map(|row| row.median(held::PEAK)).collect()
    });
    sheet.spare = closest_first(held, first);
    sheet.remark(["1 would waste nothing; mean: geometric.".to_owned()]);
    Some(sheet)
}

fn of_case(case: &Table, name: &str) -> Cell {
    let row = case.row(name);
    let failed = row.and_then(|row| row.failed.as_ref());
    match (failed, row.and_then(|row| row.median(held::PEAK))) {
        (Some(failed), _) if !failed.first.is_absent() => Cell {
            mark: Mark::Failed,
            words: failed.summary(),
            ..FAILED.into()
        },
        (_, held) => held.map(Value::Short).map(Cell::from).into(),
    }
}
