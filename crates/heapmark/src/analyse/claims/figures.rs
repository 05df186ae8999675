//! The published figures beside ours. Compares nothing: `report` computes the ratios within a
//! column.

use super::evidence::{Evidence, Spot};
use super::judged::Number;
use super::sizes;
use crate::catalog::Workload;
use crate::catalog::claim::{Document, Figure, Measure};
use std::collections::BTreeSet;

/// A published table with ours in the same columns.
pub struct Reproduced<'a> {
    /// The table.
    pub figure: &'a Figure,
    /// Thread counts of the document and of our runs, ascending, each with every measure.
    pub columns: Vec<(u32, &'a Measure)>,
    /// In the document's order.
    pub rows: Vec<PublishedRow<'a>>,
    /// Parameters that differ from the document's.
    pub sizes: Vec<String>,
}

/// A row as published, and as measured here.
pub struct PublishedRow<'a> {
    /// The document's name for it.
    pub name: &'a str,
    /// Per column.
    pub published: Vec<Option<f64>>,
    /// Per column.
    pub ours: Vec<Option<Number>>,
}

/// All tables of a document.
pub fn figures<'a>(
    document: &'a Document,
    evidence: &Evidence,
    workloads: &[Workload],
) -> Vec<Reproduced<'a>> {
    document
        .figures
        .iter()
        .map(|figure| reproduced(document, figure, evidence, workloads))
        .collect()
}

fn reproduced<'a>(
    document: &'a Document,
    figure: &'a Figure,
    evidence: &Evidence,
    workloads: &[Workload],
) -> Reproduced<'a> {
    let ours = evidence.counts(&figure.workload, None);
    let counts: BTreeSet<u32> = figure.threads.iter().copied().chain(ours).collect();
    let of = |threads| {
        figure
            .measures
            .iter()
            .map(move |measure| (threads, measure))
    };
    let columns: Vec<(u32, &Measure)> = counts.into_iter().flat_map(of).collect();
    let published = |values: &[f64], threads: u32, measure: &Measure| {
        let group = figure.threads.iter().position(|count| *count == threads)?;
        let place = figure.measures.iter().position(|other| other == measure)?;
        values.get(group * figure.measures.len() + place).copied()
    };
    let ours = |row: &str, threads: u32, measure: &Measure| {
        let spot = Spot {
            workload: figure.workload.clone(),
            threads,
            distribution: None,
        };
        evidence.number(document, row, &spot, measure).ok()
    };
    let row = |row: &'a crate::catalog::claim::FigureRow| PublishedRow {
        name: &row.row,
        published: columns
            .iter()
            .map(|(threads, measure)| published(&row.values, *threads, measure))
            .collect(),
        ours: columns
            .iter()
            .map(|(threads, measure)| ours(&row.row, *threads, measure))
            .collect(),
    };
    let rows = figure.rows.iter().map(row).collect();
    let first = evidence.counts(&figure.workload, None).into_iter().take(1);
    let spots: Vec<Spot> = first
        .map(|threads| Spot {
            workload: figure.workload.clone(),
            threads,
            distribution: None,
        })
        .collect();
    let sizes = sizes::other_than_paper(&spots, evidence, workloads, None);
    Reproduced {
        figure,
        columns,
        rows,
        sizes,
    }
}
