//! The processes that count, by case and row.

use super::group::{CaseGroups, Group, RecordsByRow};
use super::interference;
use crate::metric::Process;
use crate::store::{Record, RunFile};

/// The records without the attempts that do not count, by row.
pub fn counting(records: &[Record]) -> RecordsByRow<'_> {
    RecordsByRow::new(interference::pass(&records.iter().collect::<Vec<_>>()).0)
}

/// The groups of each case.
pub fn grid<'a>(run: &'a RunFile, records: &RecordsByRow<'a>) -> Vec<CaseGroups<'a>> {
    run.plan
        .cases
        .iter()
        .filter(|case| !case.beside)
        .map(|case| CaseGroups {
            case,
            groups: run
                .rows_of(case)
                .map(|candidate| Group::new(run, case, candidate, records))
                .collect(),
        })
        .collect()
}

/// The processes that the numbers of each row come from, in block order; by case and row as in
/// [`Analysis::cases`]. A row that is not `ok` has none.
pub fn processes<'a>(run: &'a RunFile, records: &'a [Record]) -> Vec<Vec<Vec<Process<'a>>>> {
    grid(run, &counting(records))
        .into_iter()
        .map(|table| {
            table
                .groups
                .into_iter()
                .map(|group| group.processes.into_values().collect())
                .collect()
        })
        .collect()
}
