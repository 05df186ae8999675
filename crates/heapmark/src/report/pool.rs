//! Runs of several machines as a table with its notes.

use super::machine::machine_name;
use super::sheet::{self, Column, Numberless, Sheet};
use super::text::count;
use super::{Screen, markdown, terminal, text, units};
use crate::analyse::pool::{Pool, PooledRow, word};
use crate::analyse::{Ratio, Verdict};
use crate::metric::Metric;
use heapmark_stats::Transfer;
use serde::Serialize;

/// More machines get no columns of their own.
const MOST_COLUMNS: usize = 6;

/// For a terminal.
pub fn pool(pool: &Pool, by: &Metric, baseline: &str, screen: Screen) -> String {
    let table = terminal::sheet_text(table(pool, by, baseline), screen, &mut Vec::new());
    let words = words(pool, by).into_iter();
    let words = text::join(words.map(|line| screen.wrap(&line, 2)), "\n");
    format!("{table}\n{words}\n")
}

/// For an issue.
pub fn pool_markdown(pool: &Pool, by: &Metric, baseline: &str) -> String {
    let mut out = markdown::sheet_text(&table(pool, by, baseline));
    for line in words(pool, by) {
        out += &format!("\n{}\n", text::markdown(&line));
    }
    out
}

/// For programs.
pub fn pool_json(pool: &Pool, by: &Metric, baseline: &str) -> String {
    #[derive(Serialize)]
    struct PoolDocument<'a> {
        by: &'static str,
        baseline: &'a str,
        #[serde(flatten)]
        pool: &'a Pool,
    }
    text::json(&PoolDocument {
        by: by.key,
        baseline,
        pool,
    })
}

fn table(pool: &Pool, by: &Metric, baseline: &str) -> Sheet {
    let rows = &pool.rows;
    let cell = |of: fn(&PooledRow) -> String| rows.iter().map(of).collect::<Vec<_>>();
    let mut columns = vec![
        Column::words(
            "workload",
            cell(|row| format!("{}@{}", row.workload, row.threads)),
        ),
        Column::words("allocator", cell(|row| row.allocator.clone())),
    ];
    if pool.machines.len() <= MOST_COLUMNS {
        for machine in &pool.machines {
            let own = |row: &PooledRow| {
                let mut all = row.on.iter();
                let on = all.find(|on| on.machine == machine.number);
                on.map_or_else(String::new, |on| units::ratio(on.ratio))
            };
            let title = format!("machine {}", machine.number);
            columns.push(Column::numbers(&title, rows.iter().map(own)));
        }
    }
    columns.extend([
        Column::numbers(
            "mean",
            cell(|row| {
                sheet::interval(&Ratio {
                    ratio: row.ratio,
                    interval: row.mean,
                    pairs: row.on.len(),
                })
            }),
        ),
        Column::numbers(
            "next machine",
            cell(|row| row.next.map(sheet::bounds).unwrap_or_default()),
        ),
        Column::words("verdict", cell(|row| word(row.word).into())),
    ]);
    if rows.is_empty() {
        columns.clear();
    }
    let left_out = pool
        .left_out
        .iter()
        .map(|left| Numberless::new(&left.row, None, || left.why.clone()));
    Sheet {
        heading: format!(
            "{} / {baseline} on {}",
            by.noun,
            count(pool.machines.len(), "machine")
        ),
        columns,
        numberless: left_out.collect(),
        ..Sheet::default()
    }
}

/// What the table must not be read without.
fn words(pool: &Pool, by: &Metric) -> Vec<String> {
    let machines = pool.machines.iter().map(|machine| {
        format!(
            "Machine {}: {}; {}.",
            machine.number,
            machine_name(&machine.facts),
            text::join(machine.runs.iter().cloned(), ", ")
        )
    });
    let mut words: Vec<String> = machines.collect();
    for row in &pool.rows {
        let name = format!("{}@{}/{}", row.workload, row.threads, row.allocator);
        if row.word == Transfer::DiffersByMachine {
            let of = |verdict: Verdict| {
                let own = row.on.iter().filter(|on| on.verdict == verdict);
                text::join(own.map(|on| on.machine.to_string()), ", ")
            };
            let [less, more] = [Verdict::Faster, Verdict::Slower].map(|it| it.word_of(by));
            words.push(format!(
                "{name}: {less} on {}, {more} on {}.",
                of(Verdict::Faster),
                of(Verdict::Slower)
            ));
        }
        if let Some(help) = row.help {
            let share = |value: f64| format!("{:.1} %", 100.0 * value);
            words.push(format!(
                "{name}: the next machine is known to +/- {}; twice as many machines like these would make it {}, twice as many \
                 blocks on each {}.",
                share(help.now),
                share(help.machines),
                share(help.blocks)
            ));
        }
    }
    words.push(
        "Next machine: where the ratio of a machine that was not measured lies, 95 times in 100, if it is one of the same kind as \
         these. Mean: where the mean of all such machines lies."
            .into(),
    );
    words
}
