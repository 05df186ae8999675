//! Compares by a metric that hardly varies from process to process: ranges decide, not a test. What
//! other programs do hardly changes such a value, so two runs need no common baseline.

use super::counterpart::{counterpart, differences};
use super::{Compared, Comparison, LeftAlone, Side};
use crate::analyse::ratio::Ratio;
use crate::analyse::role::Role;
use crate::analyse::table::{Table, TableCell, TableRow, by_range, is_exact, tables};
use crate::metric::Metric;

/// Every candidate beside the baseline of its run.
pub(super) fn within(side: &Side, by: &Metric, threshold: f64) -> Comparison {
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for table in tables(side.head, side.records) {
        let base = table
            .rows
            .iter()
            .find(|row| row.role == Role::Baseline)
            .and_then(|row| row.cell(by.key));
        for row in table.rows.iter().filter(|row| row.role == Role::Candidate) {
            match base.zip(row.cell(by.key)) {
                Some((base, cell)) => rows.push(compared(
                    &table,
                    row,
                    cell,
                    base,
                    threshold,
                    is_exact(side.head),
                )),
                None => left_out.push(left(&table, row, "it has no numbers beside the baseline's")),
            }
        }
    }
    Comparison {
        rows,
        left_out,
        differences: Vec::new(),
        anchor: None,
    }
}

/// Every row of the new run beside the same row of the old one.
pub(super) fn between(old: &Side, new: &Side, by: &Metric, threshold: f64) -> Comparison {
    let exact = is_exact(old.head) && is_exact(new.head);
    let before = tables(old.head, old.records);
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for (case, table) in new
        .head
        .plan
        .cases
        .iter()
        .zip(tables(new.head, new.records))
    {
        let earlier = counterpart(case, &old.head.plan.cases).map(|place| &before[place]);
        for row in table
            .rows
            .iter()
            .filter(|row| !matches!(row.role, Role::AaCopy | Role::Floor))
        {
            let other = match &earlier {
                Err(why) => Err(why.as_str()),
                Ok(earlier) => {
                    let other = earlier
                        .rows
                        .iter()
                        .find(|other| other.allocator == row.allocator);
                    other.ok_or("the old run does not have it")
                }
            };
            let pair = other.and_then(|other| {
                let cells = row.cell(by.key).zip(other.cell(by.key));
                cells.ok_or("one of the runs has no numbers for it")
            });
            match pair {
                Ok((cell, other)) => {
                    rows.push(compared(&table, row, cell, other, threshold, exact))
                }
                Err(why) => left_out.push(left(&table, row, why)),
            }
        }
    }
    Comparison {
        rows,
        left_out,
        differences: differences(old.head, new.head),
        anchor: None,
    }
}

fn compared(
    table: &Table,
    row: &TableRow,
    cell: &TableCell,
    other: &TableCell,
    threshold: f64,
    exact: bool,
) -> Compared {
    let pairs = cell.n.min(other.n) as usize;
    Compared {
        workload: table.workload.clone(),
        threads: table.threads,
        allocator: row.allocator.clone(),
        ratio: Ratio {
            ratio: cell.spread.median / other.spread.median,
            interval: None,
            pairs,
        },
        beside_anchor: None,
        verdict: Some(by_range(cell, other, threshold, exact)),
    }
}

fn left(table: &Table, row: &TableRow, why: &str) -> LeftAlone {
    LeftAlone {
        row: format!("{}/{}", table.label(), row.allocator),
        why: why.to_owned(),
    }
}
