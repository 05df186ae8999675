//! The tables of a run that followed memory. Strings from outside are still as they came.

use super::sheet::{Column, Numberless, Sheet, heading, missing};
use super::{text, units};
use crate::analyse::{Analysis, FootprintCase, FootprintRow, Footprints, Spread};

const CAUTION: &str = "Memory of processes in which every call is watched: each takes longer, so an allocator that gives memory \
    back by the clock has had more time to. Overhead: growth of the resident set over requested bytes. Idle: so long after \
    everything was freed, without a single call.";

/// All tables.
pub(super) fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    analysis.footprints.iter().map(|case| of_case(case, analysis.planned_blocks)).collect()
}

fn of_case(case: &FootprintCase, planned_blocks: u32) -> Sheet {
    let rows: Vec<(&FootprintRow, &Footprints)> =
        case.rows.iter().filter_map(|row| Some((row, row.footprints.as_ref()?))).collect();
    let sampled = case.sampling_share.map(|share| format!("looking took at most {} of a core", units::percent(share)));
    Sheet {
        heading: format!("{}: memory", heading(&case.workload, case.threads, case.oversubscribed)),
        columns: if rows.is_empty() { Vec::new() } else { columns(&rows) },
        trust: sampled.into_iter().collect(),
        caution: Some(CAUTION.to_owned()),
        numberless: case.rows.iter().filter_map(|row| numberless(row, planned_blocks)).collect(),
        ..Sheet::default()
    }
}

fn columns(rows: &[(&FootprintRow, &Footprints)]) -> Vec<Column> {
    let number = |title: &str, cell: &dyn Fn(&Footprints) -> String| {
        Column::numbers(title, rows.iter().map(|(_, held)| cell(held)))
    };
    let mut columns = vec![
        Column::words("allocator", rows.iter().map(|(row, _)| row.allocator.clone())),
        number("peak demand", &|held| units::bytes(held.peak_demand_bytes.median)).spare(),
        number("overhead then", &|held| median(held.overhead_at_peak_demand, units::times)),
        number("at peak RSS", &|held| median(held.overhead_at_peak_footprint, units::times)),
        number("peak/peak", &|held| median(held.peak_over_peak, units::times)).spare(),
        number("mean", &|held| median(held.mean_overhead, units::times)),
        number("page occupancy", &|held| median(held.page_occupancy, units::percent)).spare(),
        number("huge pages", &|held| median(held.huge_share, units::percent)).spare(),
    ];
    // Only a replay in strict order looks at each block and page.
    if rows.iter().any(|(_, held)| held.tenth_page.is_some()) {
        columns.extend([
            number("internal", &|held| median(held.internal, units::percent)),
            number("external", &|held| median(held.external, units::percent)),
            number("tenth page", &|held| median(held.tenth_page, units::percent)).spare(),
            number("sparse pages", &|held| median(held.sparse_pages, units::percent)).spare(),
        ]);
    }
    let moments = rows.first().map(|(_, held)| held.retained.iter().map(|kept| kept.after_ms)).into_iter().flatten();
    for after_ms in moments {
        let kept = |held: &Footprints| {
            let kept = held.retained.iter().find(|kept| kept.after_ms == after_ms);
            kept.map_or_else(|| "-".into(), |kept| units::bytes(kept.heap_bytes.median))
        };
        columns.push(number(&format!("idle {} s", after_ms as f64 / 1000.0), &kept));
    }
    columns
}

fn median(spread: Option<Spread>, text: fn(f64) -> String) -> String {
    spread.map_or_else(|| "-".into(), |spread| text(spread.median))
}

fn numberless(row: &FootprintRow, planned_blocks: u32) -> Option<Numberless> {
    let otherwise = || match row.unseen {
        0 => missing(planned_blocks),
        unseen => {
            let processes = text::count(unseen, "process");
            format!("{processes} over before anything live was seen: give more work (--set)")
        }
    };
    row.footprints.is_none().then(|| Numberless::new(&row.allocator, row.failed.as_ref(), otherwise))
}

#[cfg(test)]
mod tests {
    use crate::analyse::artificial::Lab;
    use crate::report::Format;
    use crate::report::tests::exported;

    #[test]
    fn a_row_that_was_over_too_soon_says_so() {
        let lab = Lab::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
        let lab = lab.following_memory(|name| (name == "glibc").then_some((8, 16)));
        let page = exported(Format::Markdown, &lab);
        assert!(page.contains("3 processes over before anything live was seen"), "{page}");
    }
}
