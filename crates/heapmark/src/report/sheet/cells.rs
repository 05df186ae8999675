//! Numbers of a row in the words of its cells.

use crate::analyse::{Case, Numbers, Purge, Ratio, Role, Row, TwoModes, Verdict};
use crate::report::{text, units, whole};

pub(in crate::report) fn ratio(row: &Row, ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1 (baseline)".into(),
        Some(ratio) => interval(ratio),
    }
}

/// `0.704 [0.690, 0.719]`.
pub(in crate::report) fn interval(Ratio { ratio, interval, pairs }: &Ratio) -> String {
    match interval {
        Some((low, high)) => format!("{} [{}, {}]", units::ratio(*ratio), units::ratio(*low), units::ratio(*high)),
        None => format!("{} [n = {pairs}]", units::ratio(*ratio)),
    }
}

pub(in crate::report) fn verdict(verdict: Option<Verdict>) -> String {
    match verdict {
        Some(Verdict::Unclear { blocks_more: Some(more) }) => format!("unclear (+{more})"),
        _ => verdict.map_or_else(String::new, |verdict| verdict.word().to_owned()),
    }
}

pub(in crate::report) fn cpu_ratio(row: &Row, ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1".into(),
        Some(ratio) => units::ratio(ratio.ratio),
    }
}

pub(in crate::report) fn memory_title(rows: &[(&Row, &Numbers)]) -> &'static str {
    let overheads = rows.iter().filter(|(_, n)| n.memory.is_some_and(|memory| memory.overhead.is_some())).count();
    match overheads {
        0 => "peak RSS",
        all if all == rows.len() => "overhead",
        _ => "overhead or peak RSS",
    }
}

pub(in crate::report) fn memory(numbers: &Numbers) -> String {
    match numbers.memory {
        None => "-".into(),
        Some(memory) => memory.overhead.map_or_else(|| units::bytes(memory.peak_rss_bytes), units::times),
    }
}

pub(super) fn notes(row: &Row, numbers: &Numbers, case: &Case, planned_blocks: u32) -> String {
    let mut notes: Vec<String> = whole::note(row, numbers).into_iter().chain(whole::sizes(row)).collect();
    if !row.left_to_libc.is_empty() {
        notes.push("partial".to_owned());
    }
    notes.extend(row.served.clone());
    if !row.findings.is_empty() {
        notes.push("flawed".to_owned());
    }
    if case.counts_purge {
        match row.purge {
            Purge::None => notes.push("not purged".to_owned()),
            Purge::Unknown => notes.push("purge unknown".to_owned()),
            Purge::Configured => notes.push("purge configured".to_owned()),
            Purge::Called => notes.extend(numbers.purge_share.map(|share| format!("purge {}", units::percent(share)))),
        }
        if row.purge == Purge::Called {
            notes.extend(row.purged_as.iter().map(|family| format!("purged as {family}")));
        }
    }
    if numbers.blocks < planned_blocks as usize {
        notes.push(format!("{} of {} blocks", numbers.blocks, planned_blocks));
    }
    if let Some(stalled) = &numbers.stalled {
        notes.push(format!("stalled in {} of {}", stalled.samples, numbers.samples));
    }
    if let Some(TwoModes { low, low_count, high, high_count }) = numbers.modes {
        let unit = units::time(low);
        let mode = |value: f64, count: usize| format!("{} ({count}x)", units::digits(value / unit.size));
        notes.push(format!("two modes: {} and {} {}", mode(low, low_count), mode(high, high_count), unit.name));
    }
    if let Some(pairs) = numbers.ratio.map(|ratio| ratio.pairs).filter(|pairs| *pairs < numbers.blocks) {
        notes.push(text::count(pairs, "pair"));
    }
    if numbers.unusable > 0 {
        notes.push(format!("{} unusable", numbers.unusable));
    }
    notes.join(", ")
}
