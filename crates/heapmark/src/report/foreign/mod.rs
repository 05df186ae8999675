//! Files that other benchmark tools read. They know numbers and no outcomes: a row that lacks what such a file must say of it is
//! left out and counted, never made up.

mod bmf;
mod github_action;
mod google_benchmark;
mod hyperfine;

pub(super) use bmf::bmf;
pub(super) use github_action::{bigger_is_better, smaller_is_better};
pub(super) use google_benchmark::google_benchmark;
pub(super) use hyperfine::hyperfine;

use super::text::plain;
use crate::analyse::{Analysis, Case, Numbers, Row};
use serde::Serialize;
use std::collections::HashSet;

/// A file, and how much of the run it tells.
pub(super) struct Foreign {
    pub text: String,
    /// Rows of tables that it tells of.
    pub rows: usize,
    /// Rows of tables that it cannot tell of.
    pub left_out: usize,
}

/// A row with numbers.
struct Entry<'a> {
    /// `churn@2/mimalloc3`, as cells are named.
    name: String,
    /// Place of the case and of the row in it.
    place: (usize, usize),
    case: &'a Case,
    row: &'a Row,
    numbers: &'a Numbers,
}

impl Entry<'_> {
    /// Its own of lists by case and row.
    fn own<'a, T>(&self, all: &'a [Vec<Vec<T>>]) -> &'a [T] {
        &all[self.place.0][self.place.1]
    }
}

/// What `tell` makes of each row that has numbers and a name of its own, and how many rows the run has.
fn told<T>(analysis: &Analysis, tell: impl Fn(&Entry) -> Option<T>) -> (Vec<T>, usize) {
    let rows =
        analysis.cases.iter().enumerate().flat_map(|(family, case)| {
            case.rows.iter().enumerate().map(move |(place, row)| ((family, place), case, row))
        });
    let mut taken = HashSet::new();
    let told = rows.clone().filter_map(|(place, case, row)| {
        let name = plain(&format!("{}@{}/{}", case.workload, case.threads, row.allocator));
        let entry = Entry { name, place, case, row, numbers: row.numbers()? };
        // The other tools take what has one name for one thing.
        taken.insert(entry.name.clone()).then(|| tell(&entry)).flatten()
    });
    (told.collect(), rows.count())
}

fn file(document: &impl Serialize, rows: usize, of: usize) -> Foreign {
    let mut text = serde_json::to_string_pretty(document).expect("all keys are strings");
    text.push('\n');
    Foreign { text, rows, left_out: of - rows }
}
