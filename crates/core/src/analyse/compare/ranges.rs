//! Compares by a metric that hardly varies from process to process: ranges decide, not a test. What
//! other programs do hardly changes such a value, so two runs need no common baseline.

use super::counterpart::{counterpart, differences};
use super::{Compared, Comparison, NO_BASELINE, NO_EARLIER, NO_NUMBERS, Side};
use crate::analyse::Verdict;
use crate::analyse::ratio::Ratio;
use crate::analyse::role::Role;
use crate::analyse::table_cell::{TableCell, by_range};
use crate::analyse::tables::tables;
use crate::metric::Metric;
use crate::plan::Case;

/// Compares every candidate with the baseline of its run.
pub fn within(side: &Side, by: &Metric, threshold: f64) -> Comparison {
    let exact = side.head.plan.mode.spec().simulated;
    let mut comparison = Comparison::default();
    let tables = tables(side.head, side.records);
    for (case, table) in side.head.plan.cases.iter().zip(&tables) {
        let of = |role: Role| table.rows.iter().filter(move |row| row.role == role);
        let baseline = of(Role::Baseline).next().and_then(|row| row.cell(by.key));
        for row in of(Role::Candidate) {
            let name = &row.allocator;
            let cells = row.cell(by.key).zip(baseline).ok_or(NO_BASELINE);
            let row = cells.map(|cells| Compared {
                // As in the run's own table: of values of the same block, if none of them is 0.
                ratio: match cells.0.ratio {
                    Some(ratio) => Ratio {
                        interval: None,
                        ..ratio
                    },
                    None => of_medians(cells),
                },
                ..compared(case, name, cells, threshold, exact)
            });
            comparison.add(case, name, row);
        }
    }
    comparison
}

/// Compares every row of the new run with the same row of the old one.
pub fn between(old: &Side, new: &Side, by: &Metric, threshold: f64) -> Comparison {
    let exact = [old, new]
        .iter()
        .all(|side| side.head.plan.mode.spec().simulated);
    let before = tables(old.head, old.records);
    let mut comparison = Comparison {
        differences: differences(old.head, new.head),
        ..Comparison::default()
    };
    let tables = tables(new.head, new.records);
    for (case, table) in new.head.plan.cases.iter().zip(&tables) {
        let earlier = counterpart(case, &old.head.plan.cases).map(|place| &before[place]);
        for row in table.rows.iter().filter(|row| !row.role.is_companion()) {
            let name = &row.allocator;
            let earlier = earlier.as_ref().map_err(String::as_str);
            let cells = earlier.and_then(|earlier| {
                let other = earlier.row(name).ok_or(NO_EARLIER)?;
                row.cell(by.key).zip(other.cell(by.key)).ok_or(NO_NUMBERS)
            });
            let row = cells.map(|cells| compared(case, name, cells, threshold, exact));
            comparison.add(case, name, row);
        }
    }
    comparison.add_missing(old.head, new.head);
    comparison
}

fn compared(
    case: &Case,
    allocator: &str,
    (cell, other): (&TableCell, &TableCell),
    threshold: f64,
    exact: bool,
) -> Compared {
    let is_withheld = |cell: &TableCell| cell.verdict == Some(Verdict::AaCopyDiffers);
    let verdict = match is_withheld(cell) || is_withheld(other) {
        true => Verdict::AaCopyDiffers,
        false => by_range(cell, other, threshold, exact),
    };
    Compared {
        verdict: Some(verdict),
        ..Compared::new(case, allocator, of_medians((cell, other)))
    }
}

fn of_medians((cell, other): (&TableCell, &TableCell)) -> Ratio {
    let [median, others] = [cell, other].map(|cell| cell.spread.median);
    Ratio {
        // Two zeros have no quotient: they count as equal.
        ratio: if median == others {
            1.0
        } else {
            median / others
        },
        interval: None,
        pairs: cell.n.min(other.n) as usize,
    }
}
