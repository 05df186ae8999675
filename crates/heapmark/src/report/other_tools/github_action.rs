//! The input of github-action-benchmark for custom tools. It has one direction per file, so times
//! and memory are in one and rates in the other.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, Spread};
use crate::report::text::count;
use crate::report::units::digits;
use serde_json::{Value, json};

/// For `tool: customSmallerIsBetter`.
pub fn smaller_is_better(analysis: &Analysis) -> Foreign {
    list(analysis, |entry| {
        let numbers = entry.numbers;
        let mut figures = vec![spread(entry, "time", "ns/op", numbers.ns_per_op, 1.0)];
        if let Some(cpu) = numbers.cpu_ns_per_op {
            figures.push(spread(entry, "CPU time", "ns/op", cpu, 1.0));
        }
        if let Some(memory) = numbers.memory {
            figures.push(figure(
                entry,
                "peak RSS",
                "bytes",
                memory.peak_rss_bytes,
                None,
            ));
        }
        figures
    })
}

/// For `tool: customBiggerIsBetter`.
pub fn bigger_is_better(analysis: &Analysis) -> Foreign {
    list(analysis, |entry| {
        vec![spread(
            entry,
            "throughput",
            "ops/s",
            entry.numbers.mops_per_s,
            1e6,
        )]
    })
}

fn list(analysis: &Analysis, figures: impl Fn(&ExportedRow) -> Vec<Value>) -> Foreign {
    told(
        analysis,
        |entry| Some(figures(entry)),
        |rows: Vec<Vec<Value>>| rows.concat(),
    )
}

fn spread(entry: &ExportedRow, what: &str, unit: &str, spread: Spread, size: f64) -> Value {
    let [min, max] = [spread.min, spread.max].map(|end| digits(end * size));
    let range = Some(format!("{min} to {max}"));
    figure(entry, what, unit, spread.median * size, range)
}

/// It compares entries of the same name, so the name includes the figure. The range is shown behind
/// the value, `extra` as a tooltip.
fn figure(entry: &ExportedRow, what: &str, unit: &str, value: f64, range: Option<String>) -> Value {
    let name = format!("{}: {what}", entry.name);
    let mut figure = json!({"name": name, "unit": unit, "value": value});
    if let Some(range) = range {
        figure["range"] = range.into();
    }
    let processes = count(entry.numbers.samples, "process");
    figure["extra"] = format!("median of {processes}").into();
    figure
}
