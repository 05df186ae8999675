//! Runs of several machines as a table with its notes.

pub mod page;

use crate::judge::{Help, MemoryByCpus, Pool, PooledRow, ways};
use heapmark_core::analyse::{Ratio, Spread, Verdict, distinct};
use heapmark_core::metric::{Metric, Unit};
use heapmark_core::plan::{case_name, row_name};
use heapmark_core::report::document::{Block, Cell, Sheet};
use heapmark_core::report::machine::machine_name;
use heapmark_core::report::sheet::{SheetOf, numberless};
use heapmark_core::report::text::{self, count};
use heapmark_core::report::units::{self, bounds};
use heapmark_stats::{LEAST_TO_TRANSFER, Transfer};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// If there are more machines than this, they get no columns of their own.
const MOST_COLUMNS: usize = 6;

/// Returns the tables of the pooled results, and their notes.
pub fn pool(pool: &Pool, by: &Metric, baseline: &str) -> Vec<Block> {
    let sheets = [Some(table(pool, by, baseline)), memory(pool)];
    let mut blocks: Vec<Block> = sheets.into_iter().flatten().map(Block::Sheet).collect();
    blocks.push(Block::notes(words(pool, by)));
    blocks
}

/// The pooled results as JSON, for other programs.
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

/// Returns a table with a line for each row.
fn table(pool: &Pool, by: &Metric, baseline: &str) -> Sheet {
    let machines = count(pool.machines.len(), "machine");
    let mut table = SheetOf::new(
        format!("{} / {baseline} on {machines}", by.noun),
        &pool.rows,
    );
    table.sheet.heads = 2;
    table.add("workload", |row| case_name(&row.workload, row.threads));
    table.add("allocator", |row| &row.allocator);
    if pool.machines.len() <= MOST_COLUMNS {
        for machine in &pool.machines {
            table.add(format!("on {}", machine.number), |row| {
                let mut all = row.on.iter();
                let on = all.find(|on| on.machine == machine.number);
                on.map(|on| Cell::ratio(on.ratio))
            });
        }
    }
    table.add("mean", |row| Ratio {
        ratio: row.ratio,
        interval: row.mean,
        pairs: row.on.len(),
    });
    table.add("next machine", |row| row.next.map(bounds));
    if pool.rows.iter().any(|row| row.next_type.is_some()) {
        table.add("next type", |row| row.next_type.map(bounds));
    }
    table.add("verdict", |row| &row.word);
    let mut sheet = table.sheet;
    let rows = pool.left_out.iter().map(|entry| (&entry.row, &entry.why));
    let runs = pool
        .refused
        .iter()
        .map(|refused| (&refused.run, &refused.why));
    let left_out = rows
        .chain(runs)
        .map(|(what, why)| numberless(what, None, || why.clone()));
    sheet.notes.extend(left_out);
    sheet
}

/// Medians that differ by less than this share count as the same.
const SAME_MEMORY: f64 = 0.02;

/// Memory by number of usable CPUs, for rows where it differs; `None` if all machines have the same number.
fn memory(pool: &Pool) -> Option<Sheet> {
    let differs = |row: &&MemoryByCpus| {
        let bytes: Vec<f64> = row.bytes.iter().map(|(_, bytes)| *bytes).collect();
        Spread::of(&bytes).is_some_and(|spread| spread.max > spread.min * (1.0 + SAME_MEMORY))
    };
    let (shown, alike): (Vec<_>, Vec<_>) = pool.memory.iter().partition(differs);
    let counts: BTreeSet<u32> = (pool.memory.iter())
        .flat_map(|row| row.bytes.iter().map(|(cpus, _)| *cpus))
        .collect();
    if counts.is_empty() {
        return None;
    }
    let mut table = SheetOf::new("memory by usable CPUs", shown);
    table.sheet.heads = 2;
    table.add("workload", |row| case_name(&row.workload, row.threads));
    table.add("allocator", |row| &row.allocator);
    for cpus in counts {
        table.add(count(cpus, "CPU"), |row| {
            let found = row.bytes.iter().find(|(count, _)| *count == cpus);
            found.map(|(_, bytes)| (*bytes, Unit::Bytes))
        });
    }
    let alike = (!alike.is_empty()).then(|| {
        let rows = count(alike.len(), "row");
        format!(
            "within {} on all of them: {rows}",
            units::percent(SAME_MEMORY)
        )
    });
    table.sheet.remark(alike);
    Some(table.sheet)
}

/// The notes that must be shown with the table.
fn words(pool: &Pool, by: &Metric) -> Vec<String> {
    let several = pool.types.len() > 1;
    let machines = pool.machines.iter().map(|machine| {
        let its_type = match several {
            true => format!(" (type {})", machine.machine_type),
            false => String::new(),
        };
        format!(
            "Machine {}{its_type}: {}; {}.",
            machine.number,
            machine_name(&machine.facts),
            text::join(machine.runs.iter().cloned(), ", ")
        )
    });
    let mut words: Vec<String> = machines.collect();
    let types = pool.types.iter().zip(1..).filter(|_| several);
    words.extend(types.map(|(kind, number)| format!("Type {number}: {}.", kind.name)));
    for row in &pool.rows {
        let name = name_of(row);
        let notes = notes_of(row, by).into_iter();
        words.extend(notes.map(|note| format!("{name}: {note}")));
    }
    words.push(
        "Next machine: where the ratio of a machine that was not measured lies, 95 times in 100, if it is one of the same kind as \
         these. Mean: where the mean of all such machines lies, if their ratios scatter normally; if one machine in five is of \
         another kind, it lies there in 67 to 84 of 100 cases (simulated, 3 to 8 machines)."
            .into(),
    );
    words.push(match several {
        true => format!(
            "The verdict is about the next type of machines; each type counts once, however many machines it has. It takes {LEAST_TO_TRANSFER} \
             types: of fewer, all may be of a kind that the next one is not of."
        ),
        false => format!(
            "These machines are of one type: nothing follows for another one. About the next machine of the type it takes {LEAST_TO_TRANSFER} of \
             them."
        ),
    });
    if pool.rows.iter().any(|row| row.next_type.is_some()) {
        words.push("Next type: where the mean ratio of machines of another type lies.".into());
    }
    words
}

/// A row's name: `larson@2/hoard`.
pub fn name_of(row: &PooledRow) -> String {
    row_name(&row.workload, row.threads, &row.allocator)
}

/// How a row's machines and their types differ, or what would help to say something about the next
/// machine.
pub fn notes_of(row: &PooledRow, by: &Metric) -> Vec<String> {
    let types = row.types.iter().map(|kind| {
        let ratio = units::ratio(kind.ratio);
        format!(
            "{ratio} on {} of type {}",
            count(kind.machines, "machine"),
            kind.machine_type
        )
    });
    let types = (!row.types.is_empty()).then(|| format!("{}.", text::join(types, ", ")));
    let contradiction = contradiction(row).map(|[less, more]| {
        let [faster, slower] = ways(by);
        format!("{faster} on {less}, {slower} on {more}.")
    });
    let help = row.help.map(|help| {
        let [now, machines, blocks] = half_widths(help);
        format!(
            "the next machine is known to {now}; twice as many machines like these would make it {machines}, \
             twice as many blocks on each {blocks}."
        )
    });
    types.into_iter().chain(contradiction).chain(help).collect()
}

/// The numbers of the machines with less, and of those with more, if they contradict each other.
fn contradiction(row: &PooledRow) -> Option<[String; 2]> {
    let of = |verdict: Verdict| {
        let machines = row.on.iter().filter(|on| on.verdict == verdict);
        text::join(machines.map(|on| on.machine.to_string()), ", ")
    };
    let differs = row.transfer == Transfer::DiffersByMachine;
    differs.then(|| [of(Verdict::Faster), of(Verdict::Slower)])
}

/// The half-widths of an interval: now, with twice as many machines, with twice as many blocks.
fn half_widths(help: Help) -> [String; 3] {
    [help.now, help.machines, help.blocks].map(|share| format!("+/- {}", units::percent(share)))
}

/// A sentence about what holds on the next machine, too.
pub fn conclusion(pool: &Pool, by: &Metric, baseline: &str) -> String {
    let machines = count(pool.machines.len(), "machine");
    let (counted, units, next) = match pool.types.len() {
        0 | 1 => (pool.machines.len(), machines, "machine of this type"),
        types => (
            types,
            format!("{machines} of {}", count(types, "type")),
            "type of machines",
        ),
    };
    if counted < LEAST_TO_TRANSFER {
        return format!("{units}: too few to say anything about the next {next}.");
    }
    let names = distinct(pool.rows.iter().map(|row| row.allocator.as_str()));
    let mut all: Vec<Certain> = names
        .into_iter()
        .map(|name| Certain::of(name, pool))
        .collect();
    all.retain(|entry| entry.less + entry.more > 0);
    all.sort_by_key(|entry| (Reverse(entry.less), entry.more));
    let differing = pool.rows.iter().filter(|row| contradiction(row).is_some());
    let differing = match differing.count() {
        0 => String::new(),
        rows => format!(
            " The machines contradict each other in {}.",
            count(rows, "row")
        ),
    };
    if all.is_empty() {
        return format!(
            "{units}: no difference from {baseline} is sure to be there on the next {next}, too.{differing}"
        );
    }
    let first = all.iter().take(MOST_NAMED);
    let first = first.map(|entry| entry.words(&pool.named(entry.allocator), ways(by)));
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("; {more} more in the matrix"),
    };
    format!(
        "On the next {next}, too, beside {baseline}: {}{more}.{differing}",
        text::join(first, "; ")
    )
}

/// The most allocators that the conclusion names.
const MOST_NAMED: usize = 3;

/// In how many cases an allocator has certainly less, or more, on the next machine.
struct Certain<'a> {
    allocator: &'a str,
    less: usize,
    more: usize,
    cases: usize,
}

impl Certain<'_> {
    fn of<'a>(allocator: &'a str, pool: &Pool) -> Certain<'a> {
        let rows = || pool.rows.iter().filter(|row| row.allocator == allocator);
        let with = |word| rows().filter(|row| row.transfer == word).count();
        Certain {
            allocator,
            less: with(Transfer::Lower),
            more: with(Transfer::Higher),
            cases: rows().count(),
        }
    }

    /// The counts in words: `hoard (2017) faster in 3 and slower in 1 of 6 cases`.
    fn words(&self, named: &str, [less, more]: [&str; 2]) -> String {
        let parts = [(less, self.less), (more, self.more)];
        let parts = parts.iter().filter(|(_, cases)| *cases > 0);
        let parts = text::list(parts.map(|(way, cases)| format!("{way} in {cases}")));
        format!("{named} {parts} of {}", count(self.cases, "case"))
    }
}
