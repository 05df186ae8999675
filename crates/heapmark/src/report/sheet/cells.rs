//! Numbers of a row in the words of its cells.

use crate::analyse::{Numbers, Ratio, Role, Row, Verdict};
use crate::report::units;

pub(in crate::report) fn ratio(row: &Row, ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1 (baseline)".into(),
        Some(ratio) => interval(ratio),
    }
}

/// `0.704 [0.690, 0.719]`.
pub(in crate::report) fn interval(
    Ratio {
        ratio,
        interval,
        pairs,
    }: &Ratio,
) -> String {
    match interval {
        Some((low, high)) => format!(
            "{} [{}, {}]",
            units::ratio(*ratio),
            units::ratio(*low),
            units::ratio(*high)
        ),
        None => format!("{} [n = {pairs}]", units::ratio(*ratio)),
    }
}

pub(in crate::report) fn verdict(verdict: Option<Verdict>) -> String {
    match verdict {
        Some(Verdict::Unclear {
            blocks_more: Some(more),
        }) => format!("unclear (+{more})"),
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
    let overheads = rows
        .iter()
        .filter(|(_, n)| n.memory.is_some_and(|memory| memory.overhead.is_some()))
        .count();
    match overheads {
        0 => "peak RSS",
        all if all == rows.len() => "overhead",
        _ => "overhead or peak RSS",
    }
}

pub(in crate::report) fn memory(numbers: &Numbers) -> String {
    match numbers.memory {
        None => "-".into(),
        Some(memory) => memory
            .overhead
            .map_or_else(|| units::bytes(memory.peak_rss_bytes), units::times),
    }
}
