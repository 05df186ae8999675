//! Numbers of a row in the words of its cells.

use crate::analyse::{Ratio, Role, TableRow, Verdict};
use crate::report::units;

pub fn ratio(row: &TableRow, ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1 (baseline)".into(),
        Some(ratio) => interval(ratio),
    }
}

/// `<= ` or `>= ` before a ratio that a high floor moves towards 1.
pub fn bound(row: &TableRow) -> &'static str {
    match row.time().ratio {
        Some(ratio) if row.ratio_is_bound && ratio.ratio < 1.0 => "<= ",
        Some(_) if row.ratio_is_bound => ">= ",
        _ => "",
    }
}

/// `0.704 [0.690, 0.719]`.
pub fn interval(ratio: &Ratio) -> String {
    let estimate = units::ratio(ratio.ratio);
    match ratio.interval {
        Some(ends) => format!("{estimate} {}", bounds(ends)),
        None => format!("{estimate} [n = {}]", ratio.pairs),
    }
}

/// `[0.690, 0.719]`.
pub fn bounds((low, high): (f64, f64)) -> String {
    format!("[{}, {}]", units::ratio(low), units::ratio(high))
}

pub fn verdict(verdict: Option<Verdict>) -> String {
    match verdict {
        Some(Verdict::Unclear {
            blocks_more: Some(more),
        }) => format!("unclear (+{more})"),
        Some(Verdict::TooFew {
            blocks_more: Some(more),
        }) => format!("too few (+{more})"),
        Some(verdict) => verdict.word().into(),
        None => String::new(),
    }
}

pub fn cpu_ratio(row: &TableRow) -> String {
    estimate(row, row.ratio("cpu_ns_per_op"))
}

pub fn user_ratio(row: &TableRow) -> String {
    estimate(row, row.ratio("user_ns_per_op"))
}

/// A ratio without its interval.
fn estimate(row: &TableRow, ratio: Option<Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1".into(),
        Some(ratio) => units::ratio(ratio.ratio),
    }
}

pub fn peak_rss(row: &TableRow) -> String {
    let bytes = row.median("peak_rss_bytes");
    bytes.map_or("-".into(), units::bytes)
}
