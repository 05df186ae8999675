//! The claims and published figures of a reference document: the keys of `claims/*.toml`. Defines
//! what would have to be true; only a run shows whether it is. Claims about hardening have a folder
//! and keys of their own.

mod check;
mod data;
mod hardening;
mod measure;
mod place;

pub use check::ClaimCheck;
pub use hardening::{Claimed, Feature, HardeningDocument, Sign, Signs};
pub use measure::Measure;
pub use place::{Needs, Over, Shape, Take, Threads};

use heapmark_core::catalog::Catalog;
use heapmark_core::catalog::faults::{self, Fault, Faults};
use heapmark_core::catalog::folder;
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

static CLAIMS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../claims");

/// A reference document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Document {
    /// The file's name: `bt`.
    #[serde(skip)]
    pub name: String,
    /// The document's short name in `workloads/`: `BT`.
    pub short: String,
    /// The document's title.
    pub title: String,
    /// The date of the document's numbers.
    pub date: String,
    /// The machine on which the document's numbers were measured.
    pub machine: String,
    /// Why there are no figures, if the document published none in readable form.
    pub no_figures: Option<String>,
    /// A remark for readers of the document's figures.
    pub remark: Option<String>,
    /// The most threads in the document's claims; 0 if that is not known.
    #[serde(default = "one")]
    pub threads: u32,
    /// Whether the file contains single comparisons that others published, and not a document with
    /// workloads of its own.
    #[serde(default)]
    pub comparisons: bool,
    /// The document's rows by the names that the document uses.
    pub rows: Rows,
    /// The document's tables.
    #[serde(default)]
    pub figures: Vec<PublishedFigure>,
    /// The document's claims.
    pub claims: Vec<Claim>,
}

fn one() -> u32 {
    1
}

/// The rows of a document by the names that the document uses.
pub type Rows = BTreeMap<String, DocumentRow>;

/// A row of a document, and its counterpart in a run.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DocumentRow {
    /// Names or patterns of allocators, or names of programs' rows; the first one that a run has is
    /// used.
    pub ours: Vec<String>,
    /// An allocator of ours with settings like those of the document's version, if they matter
    /// much: a claim that does not hold is checked with this allocator, too.
    pub as_then: Option<String>,
    /// The workload that has the row, if it is not the workload that a claim names.
    pub workload: Option<String>,
    /// The version of the allocator or program that the document used.
    #[serde(default)]
    pub version: String,
    /// Set if no registry has the allocator: users supply it under one of the names in `ours`.
    #[serde(default)]
    pub brought: bool,
    /// The number of cores that the row keeps busy whatever the workload's thread count
    /// (`GOMAXPROCS`, a collector's markers); if fewer are usable, the row has no value.
    #[serde(default)]
    pub cores: u32,
}

/// A published table: a column per thread count and measure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PublishedFigure {
    /// What the figure shows, as its title.
    pub title: String,
    /// The workload with which our values are measured.
    pub workload: String,
    /// Thread counts, in the order of the columns.
    pub threads: Vec<u32>,
    /// The columns of each thread count.
    pub measures: Vec<Measure>,
    /// The row by which the others are divided, since ratios carry over to other machines.
    pub reference: String,
    /// The figure's rows, in the document's order.
    pub rows: Vec<FigureRow>,
}

/// A row of a published table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureRow {
    /// The row's name in `rows`.
    pub row: String,
    /// The values, one per thread count and measure.
    pub values: Vec<f64>,
}

/// A document's claim in our words, and the checks that decide it.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// The claim's number: `BT-1`.
    pub id: String,
    /// The claim, in our words.
    pub says: String,
    /// The document's evidence for the claim.
    #[serde(default)]
    pub evidence: String,
    /// Why the claim may not hold; shown if it does not.
    #[serde(default)]
    pub explain: String,
    /// Why the claim does not hold, as a measurement of our own has shown, with its command; shown
    /// only if the claim does not hold.
    #[serde(default)]
    pub explain_measured: String,
    /// Why no measurement here shows whether the claim is true: then it is not testable, whatever
    /// was measured.
    #[serde(default)]
    pub not_comparable: String,
    /// Whether the claim is in no sentence of the document, but read off one of its tables.
    #[serde(default)]
    pub read_off: bool,
    /// Why the claim's checks cannot be held against the document's own figures, or do not hold
    /// there.
    #[serde(default)]
    pub not_on_its_figures: String,
    /// The most threads in the document for this claim, if not the document's `threads`.
    #[serde(default)]
    pub document_threads: Option<u32>,
    /// The fewest threads, on cores of their own, with which a claim about a curve is testable.
    #[serde(default)]
    pub least_threads: u32,
    /// Measures of the claim's rows that show why it does not hold; reported if it does not.
    #[serde(default)]
    pub measured: Vec<Measure>,
    /// The workloads in which the claim is checked.
    pub workloads: Vec<String>,
    /// The thread counts with which the claim is checked.
    #[serde(default)]
    pub threads: Threads,
    /// The measure that the claim is about.
    #[serde(default)]
    pub measure: Measure,
    /// Values of the parameter `distribution` under which the claim is checked, each separately; if
    /// empty, all values that were run.
    #[serde(default)]
    pub distributions: Vec<String>,
    /// The checks; the claim holds if all of them do.
    pub checks: Vec<ClaimCheck>,
}

impl Document {
    /// Returns the document's rows, with allocators of ours that have the settings of the
    /// document's time, if there are any; `None` if we have none.
    pub fn rows_as_then(&self) -> Option<Rows> {
        let mut rows = self.rows.clone();
        let mut changed = false;
        for row in rows.values_mut() {
            if let Some(then) = &row.as_then {
                row.ours.insert(0, then.clone());
                changed = true;
            }
        }
        changed.then_some(rows)
    }

    /// The workloads of the document's tables and claims.
    pub fn workloads(&self) -> impl Iterator<Item = &String> + Clone {
        let of_figures = self.figures.iter().map(|figure| &figure.workload);
        let of_claims = self.claims.iter().flat_map(|claim| &claim.workloads);
        of_figures.chain(of_claims)
    }

    /// Reads the documents that the binary carries, with the user's on top, in the order of their
    /// short names.
    pub fn load(catalog: &Catalog) -> Result<Vec<Document>, Faults> {
        let mut faults = Vec::new();
        let texts = folder::texts(&CLAIMS, "claims", &mut faults);
        let documents = texts
            .iter()
            .filter(|(file, _)| !file.starts_with("claims/hardening/"))
            .filter_map(|(file, text)| parse(file, text, catalog, &mut faults))
            .collect();
        faults::none(faults)?;
        Ok(documents)
    }
}

/// Reads the file of a document.
pub fn parse(
    file: &str,
    text: &str,
    catalog: &Catalog,
    faults: &mut Vec<Fault>,
) -> Option<Document> {
    let name = Path::new(file).file_stem()?.to_string_lossy().into_owned();
    let mut document: Document = faults::read(file, text, faults)?;
    document.name = name;
    let mut checker = data::DocumentChecker {
        document: &document,
        file,
        text,
        catalog,
        faults,
    };
    checker.check();
    Some(document)
}

#[cfg(test)]
mod tests;
