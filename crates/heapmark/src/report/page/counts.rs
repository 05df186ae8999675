//! Instructions per operation, of a run that counted them.

use super::cast::Cast;
use super::dots::{self, Dot};
use super::section::{Data, Plot, Section};
use super::views::{self, Placed};
use super::{axes, number};
use crate::analyse::CountCase;
use crate::report::text::plain;
use crate::report::units;

const COLUMNS: [&str; 8] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "instructions_per_op",
    "instructions_per_op_min",
    "instructions_per_op_max",
    "ratio",
];

pub(super) fn section(cast: &Cast) -> Section {
    let cases: Vec<Placed<CountCase>> = cast.all(|told| &told.analysis.counts);
    Section {
        id: "instructions",
        heading: "Instructions".into(),
        text: vec![
            "Instructions for each operation, counted by callgrind. Fewer are often, but not always, less time.".into(),
        ],
        views: views::by_threads(&cases, &COLUMNS, |cases, heading, data| vec![plot(cast, cases, heading, data)]),
        ..Section::default()
    }
}

fn plot(cast: &Cast, cases: &[Placed<CountCase>], heading: &str, data: &mut Data) -> Plot {
    let mut dots = Vec::new();
    for (run, case) in cases {
        for row in &case.rows {
            let Some(counted) = row.instructions else { continue };
            data.row([
                (run + 1).into(),
                plain(&case.workload).into(),
                case.threads.into(),
                plain(&row.allocator).into(),
                number(counted.median),
                number(counted.min),
                number(counted.max),
                row.ratio.into(),
            ]);
            let words = format!("{} instructions per operation", units::digits(counted.median));
            dots.push(Dot { run: *run, name: &row.allocator, value: counted.median, interval: None, words });
        }
    }
    let axis = axes::values("instructions per operation", &dots::extent(&dots), units::digits);
    dots::plot(cast, heading.to_owned(), dots, axis)
}
