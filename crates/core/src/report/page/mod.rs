//! Tables -> one self-contained HTML page: charts, tables, and the text above and below them.
//!
//! Three parts that depend little on each other. The sections produce values: charts and text. The template lays out text and tables, and
//! escapes every string from outside. The script draws the charts from JSON; only the script gives them colours.

#[doc(hidden)]
pub mod axes;
mod batches;
mod compared;
mod counts;
#[doc(hidden)]
pub mod dot_plot;
#[doc(hidden)]
pub mod downsample;
#[doc(hidden)]
pub mod figure;
mod forest;
mod hardening;
#[doc(hidden)]
pub mod head;
mod held;
mod latency;
mod load;
#[doc(hidden)]
pub mod matrix;
mod memory;
mod next_steps;
mod packed;
mod page_run;
mod pareto;
mod parts;
mod ranking;
mod samples;
mod scaling;
#[doc(hidden)]
pub mod section;
#[doc(hidden)]
pub mod series_legend;
mod shapes;
#[doc(hidden)]
pub mod text_sections;
mod views;
mod whole;

#[cfg(test)]
mod tests;

pub use page_run::PageRun;

use super::best_and_worst;
use super::document::{Alignment, Sheet};
use super::text::plain;
use crate::analyse::analyse;
use head::Head;
use minijinja::value::Serde;
use minijinja::{Environment, context, escape_formatter};
use packed::packed;
use section::Section;
use serde::Serialize;
use serde_json::{Value, json};
use series_legend::{LegendEntry, LegendRun, SeriesLegend};

/// The script that draws the charts, as the build script has packed it.
const PLOTTING: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.packed"));

/// A page of one run, or of several side by side, with further sections: one above all others, and more before the tables.
pub fn page(runs: &[PageRun], above: Option<Section>, more: Vec<Section>) -> String {
    let legend_runs = runs.iter().map(|run| LegendRun {
        run,
        analysis: analyse(run.head, run.records),
    });
    let legend = SeriesLegend::new(legend_runs.collect());
    lay_out(
        &head::title(&legend),
        &head::heads(&legend),
        &legend.entries,
        (0..runs.len()).map(|run| legend.title(run)).collect(),
        sections(&legend, above, more),
    )
}

/// A page of the sections that are not empty.
pub fn lay_out(
    title: &str,
    heads: &[Head],
    entries: &[LegendEntry],
    runs: Vec<String>,
    mut sections: Vec<Section>,
) -> String {
    sections.retain(|section| !section.is_empty());
    let charts = sections.iter().any(|section| !section.views.is_empty());
    let laid_out = context! {
        title => title,
        runs => Serde(heads),
        sections => sections.iter().map(laid_out).collect::<Vec<_>>(),
        plotting => charts.then_some(PLOTTING),
        data => charts.then(|| packed(&data(entries, runs, &sections))),
        style => include_str!("page.css"),
        script => include_str!("page.js"),
        copying => include_str!("copying.js"),
    };
    let mut environment = Environment::new();
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => escape_formatter(out, state, &plain(text).into()),
        _ => escape_formatter(out, state, value),
    });
    environment
        .render_named_str("page.html", include_str!("page.html"), laid_out)
        .expect("our own template has no fault, and every value is there")
}

/// All sections in the order of the page, including empty ones.
fn sections(legend: &SeriesLegend, above: Option<Section>, more: Vec<Section>) -> Vec<Section> {
    let figures = [
        matrix::of_times(legend).hiding("intervals, except at the pointer"),
        matrix::of_memory(legend).hiding("intervals, except at the pointer"),
        held::section(legend).hiding("memory over time"),
        compared::section(legend).hiding("drift between the runs, except the part that changed row and baseline alike"),
        forest::section(legend).hiding("absolute times"),
        parts::section(legend).hiding("waiting apart from the allocator's work"),
        pareto::section(legend).hiding("memory over time; whether a difference is more than chance"),
        scaling::section(legend).hiding("reasons: more threads than CPUs, and shared caches and clocks of CPUs bend a curve, too"),
        batches::section(legend).hiding("two allocators in one chart; sizes between the six"),
        shapes::section(legend).hiding("the range over processes; points below a tenth"),
        memory::section(legend).hiding("other processes of the row: series/ has them"),
        latency::section(legend).hiding("waiting before a call"),
        load::section(legend).hiding("the machine's own part, except as the null allocator's line"),
        counts::section(legend).hiding("time"),
        hardening::section(legend).hiding("which misuses; what they would do to a program"),
        samples::section(legend),
        text_sections::not_ok(legend),
        whole::section(legend).hiding("the share of allocation in it"),
    ];
    let extremes = legend.sheets(|analysis| [best_and_worst::sheet(analysis)]);
    let tables = [
        text_sections::results(legend),
        Section::of_tables("best-and-worst", "Best and worst case", extremes),
        text_sections::failed_checks(legend),
        text_sections::trust(legend),
        text_sections::method(legend),
        next_steps::section(legend),
    ];
    above
        .into_iter()
        .chain(figures)
        .chain(more)
        .chain(tables)
        .collect()
}

/// The part of a section that the template reads: the charts belong to the script.
fn laid_out(section: &Section) -> minijinja::Value {
    context! {
        id => &section.id,
        heading => &section.heading,
        text => &section.text,
        hides => section.hides,
        link => Serde(&section.link),
        parts => Serde(&section.parts),
        tables => Serde(section.tables.iter().map(LaidOut::new).collect::<Vec<_>>()),
        legend => &section.legend,
        charts => !section.views.is_empty(),
    }
}

/// Titles of columns that have commands.
const COMMANDS: [&str; 2] = ["command", "again"];

/// A table as the template reads it.
#[derive(Serialize)]
struct LaidOut<'a> {
    #[serde(flatten)]
    sheet: &'a Sheet,
    kinds: Vec<Alignment>,
    /// Whether each row is a card on a phone.
    cards: bool,
    /// Which columns contain commands.
    commands: Vec<bool>,
}

impl LaidOut<'_> {
    fn new(sheet: &Sheet) -> LaidOut<'_> {
        let columns = 0..sheet.columns.len();
        let kinds: Vec<Alignment> = columns.map(|column| sheet.alignment(column)).collect();
        LaidOut {
            sheet,
            cards: kinds.contains(&Alignment::Text) && !kinds.contains(&Alignment::Number),
            kinds,
            commands: sheet
                .columns
                .iter()
                .map(|title| COMMANDS.contains(&title.as_str()))
                .collect(),
        }
    }
}

/// The data that the script reads.
fn data(entries: &[LegendEntry], runs: Vec<String>, sections: &[Section]) -> String {
    let charts: serde_json::Map<String, Value> = sections
        .iter()
        .filter(|section| !section.views.is_empty())
        .map(|section| (section.id.clone(), json!(section.views)))
        .collect();
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| json!({ "name": entry.name, "companion": entry.companion }))
        .collect();
    let mut data = json!({ "entries": entries, "runs": runs, "charts": charts });
    make_harmless(&mut data);
    data.to_string()
}

/// Removes from all strings what [`plain`] removes.
fn make_harmless(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain(text),
        Value::Array(values) => values.iter_mut().for_each(make_harmless),
        Value::Object(values) => values.values_mut().for_each(make_harmless),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
