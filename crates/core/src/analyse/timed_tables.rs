//! Makes the tables of times, with ratios and verdicts.

use super::command_facts::CommandFacts;
use super::group::CaseGroups;
use super::measured_cell::Beside;
use super::role::Role;
use super::table::{Table, TableRow};
use super::table_cell::TableCell;
use super::verdict::{Verdict, Verdicts};
use super::{factor, interaction, user_command, verdict};
use crate::metric::Judged;
use crate::store::RunFile;

/// The tables of all cases; with `all`, metrics that are only described have ratios, too.
pub fn judged_cases(run: &RunFile, tables: &[CaseGroups], all: bool) -> Vec<Table> {
    let calls = verdict::verdicts(tables, run.plan.alpha());
    let judged = tables.iter().zip(&calls);
    let judged = judged.map(|(table, calls)| judged_case(run, table, calls, all));
    let mut cases: Vec<Table> = judged.collect();
    for (case, row, over) in factor::judge(tables, &calls, run.plan.alpha()) {
        cases[case].rows[row].factor = Some(over);
    }
    cases
}

fn judged_case(run: &RunFile, table: &CaseGroups, calls: &Verdicts, all: bool) -> Table {
    let case = table.case;
    let paced = table.is_paced();
    let beside = Beside::new(table, all);
    let mut rows = Vec::new();
    for (group, calls) in table.groups.iter().zip(&calls.rows) {
        let mut row = TableRow::timed(run, group, &beside);
        row.judge(calls, paced);
        rows.push(row);
    }
    withhold(&mut rows);
    let least = rows
        .iter()
        .filter(|row| row.role == Role::Candidate)
        .filter(|_| case.whole_process && case.command().is_none())
        .filter_map(|row| Some(row.ratio("cpu_ns_per_op")?.ratio))
        .min_by(f64::total_cmp);
    Table {
        paced,
        took_turns: table.took_turns(),
        command: case.command().map(|command| CommandFacts {
            interactions: interaction::interactions(command, table, calls, run.plan.alpha()),
            ..user_command::facts(command, table, &rows)
        }),
        aa_copy: calls.aa_copy,
        aa_copy_differs: calls.aa_copy_differs,
        won_at_most: least.map(|least| (1.0 - least).max(0.0)),
        floor_is_high: table.floor_is_high(),
        ..Table::new(run, case, rows)
    }
}

/// Withholds all verdicts on a metric that is judged by ranges, if the A/A copy came out different by that metric.
fn withhold(rows: &mut [TableRow]) {
    let differs = |cell: &&TableCell| {
        let is_other =
            |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower | Verdict::Small);
        cell.metric.judged == Judged::ByRange && cell.verdict.is_some_and(is_other)
    };
    let copy = rows.iter().find(|row| row.role == Role::AaCopy);
    let cells = copy.into_iter().flat_map(|copy| &copy.cells);
    let differing: Vec<&str> = cells.filter(differs).map(|cell| cell.metric.key).collect();
    for row in rows.iter_mut().filter(|row| row.role != Role::AaCopy) {
        let cells = row.cells.iter_mut();
        cells
            .filter(|cell| differing.contains(&cell.metric.key) && cell.verdict.is_some())
            .for_each(|cell| cell.verdict = Some(Verdict::AaCopyDiffers));
    }
}
