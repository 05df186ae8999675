//! The claims and published figures of a reference document: the keys of `claims/*.toml`. Says what would have to be true;
//! whether it is, only a run can tell.

mod check;
mod data;
mod measure;
mod place;

pub use check::Check;
pub use measure::Measure;
pub use place::{Needs, Over, Place, Shape, Take, Threads};

use super::Catalog;
use super::faults::{self, Fault, Faults};
use super::folder;
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

static CLAIMS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../claims");

/// A reference document.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Document {
    /// The file's name: `bt`.
    #[serde(skip)]
    pub name: String,
    /// Its short name in `workloads/`: `BT`.
    pub short: String,
    /// What it is.
    pub title: String,
    /// When its numbers were made.
    pub date: String,
    /// Where its numbers were made.
    pub machine: String,
    /// Why there are no figures, where it published none that anybody can read.
    pub no_figures: Option<String>,
    /// What the reader of its figures has to know.
    pub remark: Option<String>,
    /// Its rows by the names that it gives them.
    pub rows: BTreeMap<String, DocumentRow>,
    /// Its tables.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// What it says.
    pub claims: Vec<Claim>,
}

/// A row of a document, and where a run has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DocumentRow {
    /// Names or patterns of allocators, or names of programs' rows; the first that a run has is taken.
    pub ours: Vec<String>,
    /// The workload that has it, where that is not the one that a claim names.
    pub workload: Option<String>,
    /// The version that the document used.
    #[serde(default)]
    pub version: String,
    /// No registry has it: users bring it under one of these names.
    #[serde(default)]
    pub brought: bool,
}

/// A published table: a column per thread count and measure.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// The workload that makes ours.
    pub workload: String,
    /// Thread counts, in the order of the columns.
    pub threads: Vec<u32>,
    /// What stands in the columns of each thread count.
    pub measures: Vec<Measure>,
    /// The row that the others are compared with, as ratios outlive machines.
    pub reference: String,
    /// Rows in the document's order.
    pub rows: Vec<FigureRow>,
}

/// A row of a published table.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FigureRow {
    /// A name of `rows`.
    pub row: String,
    /// For each thread count each measure.
    pub values: Vec<f64>,
}

/// What a document says, in our words, and what would have to be true.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// `BT-1`.
    pub id: String,
    /// The claim.
    pub says: String,
    /// What the document rests it on.
    #[serde(default)]
    pub evidence: String,
    /// Shown where it does not hold: why that may be.
    #[serde(default)]
    pub explain: String,
    /// Where it is looked at.
    pub workloads: Vec<String>,
    /// With how many threads.
    #[serde(default)]
    pub threads: Threads,
    /// By which measure.
    #[serde(default)]
    pub measure: Measure,
    /// Values of the parameter `distribution` under which it is checked, each for itself; empty: whatever was run.
    #[serde(default)]
    pub distributions: Vec<String>,
    /// All of them make the claim.
    pub checks: Vec<Check>,
}

impl Document {
    /// The documents that the binary carries, with the user's on top, in the order of their short names.
    pub fn load(catalog: &Catalog) -> Result<Vec<Document>, Faults> {
        let mut faults = Vec::new();
        let texts = folder::texts(&CLAIMS, "claims", &mut faults);
        let documents = texts.iter().filter_map(|(file, text)| parse(file, text, catalog, &mut faults)).collect();
        if faults.is_empty() { Ok(documents) } else { Err(Faults(faults)) }
    }
}

/// Reads one file.
pub fn parse(file: &str, text: &str, catalog: &Catalog, faults: &mut Vec<Fault>) -> Option<Document> {
    let name = Path::new(file).file_stem()?.to_string_lossy().into_owned();
    match faults::parse::<Document>(file, text) {
        Ok(document) => {
            let document = Document { name, ..document };
            data::check(&document, file, text, catalog, faults);
            Some(document)
        }
        Err(fault) => {
            faults.push(fault);
            None
        }
    }
}

#[cfg(test)]
mod tests;
