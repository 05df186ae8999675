//! The input of github-action-benchmark for custom tools. Each file has one direction, so times and memory are in one file and rates in
//! another.

use super::{ExportedRow, Figure, Foreign, told};
use crate::analyse::Analysis;
use crate::metric::Better;
use crate::report::text::count;
use crate::report::units::digits;
use serde_json::{Value, json};

/// The file for `tool: customSmallerIsBetter`.
pub fn smaller_is_better(analysis: &Analysis) -> Foreign {
    list(analysis, Better::Lower)
}

/// The file for `tool: customBiggerIsBetter`.
pub fn bigger_is_better(analysis: &Analysis) -> Foreign {
    list(analysis, Better::Higher)
}

fn list(analysis: &Analysis, better: Better) -> Foreign {
    let figures = |entry: &ExportedRow| -> Vec<Value> {
        let mut figures = entry.figures();
        figures.retain(|figure| figure.better == better);
        figures
            .iter()
            .map(|figure| told_of(entry, figure))
            .collect()
    };
    told(
        analysis,
        |entry| Some(figures(entry)),
        |rows: Vec<Vec<Value>>| rows.concat(),
    )
}

/// An entry of the file. The tool compares entries of the same name, so the name includes the figure. The range is shown behind the value,
/// `extra` as a tooltip.
fn told_of(entry: &ExportedRow, figure: &Figure) -> Value {
    let mut element = json!({
        "name": format!("{}: {}", entry.name, figure.title),
        "unit": figure.unit,
        "value": figure.median,
    });
    if let Some([least, most]) = figure.range.map(|range| range.map(digits)) {
        element["range"] = format!("{least} to {most}").into();
    }
    let processes = count(entry.row.samples, "process");
    element["extra"] = format!("median of {processes}").into();
    element
}
