//! The published figures beside ours. Makes no comparison: `report` computes the ratios within a
//! column.

use super::evidence::{Evidence, Spot};
use super::judged::Number;
use super::sizes;
use crate::document::{Document, Measure, PublishedFigure};
use heapmark_core::catalog::joined;
use std::collections::{BTreeMap, BTreeSet};

/// A published table, with our values in the same columns.
pub struct Reproduced<'a> {
    /// The published table.
    pub figure: &'a PublishedFigure,
    /// Thread counts of the document and of our runs, ascending, each with every measure.
    pub columns: Vec<(u32, &'a Measure)>,
    /// Thread counts that exceeded the usable CPUs in our runs.
    pub oversubscribed: BTreeSet<u32>,
    /// The rows, in the document's order.
    pub rows: Vec<PublishedRow<'a>>,
    /// Parameters whose values differ from the document's.
    pub sizes: Vec<String>,
}

/// A row with the published values and those measured here.
pub struct PublishedRow<'a> {
    /// The document's name for the row.
    pub name: &'a str,
    /// The published value in each column.
    pub published: Vec<Option<f64>>,
    /// Our value in each column.
    pub ours: Vec<Option<Number>>,
}

/// Sizes as text; if they differ between thread counts, with the thread counts.
fn by_threads(all: impl Iterator<Item = (u32, Vec<String>)>) -> Vec<String> {
    let mut counts: BTreeMap<Vec<String>, Vec<u32>> = BTreeMap::new();
    for (threads, sizes) in all {
        counts.entry(sizes).or_default().push(threads);
    }
    if counts.len() == 1 {
        return counts.into_keys().flatten().collect();
    }
    let with = |(sizes, counts): (Vec<String>, Vec<u32>)| {
        let noun = if counts == [1] { "thread" } else { "threads" };
        let counts = joined(counts, ", ");
        let label = move |size| format!("{size} with {counts} {noun}");
        sizes.into_iter().map(label)
    };
    counts.into_iter().flat_map(with).collect()
}

/// Reproduces a table of a document.
pub fn reproduced<'a>(
    document: &Document,
    figure: &'a PublishedFigure,
    evidence: &Evidence,
) -> Reproduced<'a> {
    let spot = |threads| Spot {
        workload: figure.workload.clone(),
        threads,
        distribution: None,
    };
    let ours = evidence.counts(&figure.workload, None);
    let sizes_at = |threads: &u32| sizes::other_than_paper(&[spot(*threads)], evidence, None);
    let sizes = by_threads(ours.iter().map(|threads| (*threads, sizes_at(threads))));
    let oversubscribed = ours.iter().copied().filter(|threads| {
        let case = evidence.case(&spot(*threads));
        case.is_some_and(|case| case.oversubscribed)
    });
    let oversubscribed = oversubscribed.collect();
    let counts: BTreeSet<u32> = figure.threads.iter().copied().chain(ours).collect();
    let columns: Vec<(u32, &Measure)> = counts
        .into_iter()
        .flat_map(|threads| {
            figure
                .measures
                .iter()
                .map(move |measure| (threads, measure))
        })
        .collect();
    let published = |values: &[f64], threads: u32, measure: &Measure| {
        let group = figure.threads.iter().position(|count| *count == threads)?;
        let place = figure.measures.iter().position(|other| other == measure)?;
        values.get(group * figure.measures.len() + place).copied()
    };
    let rows = figure
        .rows
        .iter()
        .map(|row| {
            let (published, ours) = columns
                .iter()
                .map(|(threads, measure)| {
                    let ours = evidence.number(&document.rows, &row.row, &spot(*threads), measure);
                    (published(&row.values, *threads, measure), ours.ok())
                })
                .unzip();
            PublishedRow {
                name: &row.row,
                published,
                ours,
            }
        })
        .collect();
    Reproduced {
        figure,
        columns,
        oversubscribed,
        rows,
        sizes,
    }
}
