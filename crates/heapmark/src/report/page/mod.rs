//! Tables -> one self-contained HTML page: charts, tables, and the text above and below them.
//!
//! Three parts that know little of each other. The sections produce values: charts and text. The
//! template lays out text and tables, and escapes every string from outside. The script draws the
//! charts from JSON; only the script knows colours.

mod axes;
mod compared;
mod counts;
mod dot_plot;
mod downsample;
mod forest;
mod heat_map;
mod latency;
mod literature;
mod memory;
mod page_run;
mod pareto;
mod samples;
mod scaling;
mod section;
mod series_legend;
mod text_sections;
mod traced;
mod views;
mod whole;

#[cfg(test)]
mod tests;

pub use page_run::PageRun;
pub use traced::traced;

use super::text::{join, plain};
use super::{conclusion, user_command};
use crate::analyse::analyse;
use crate::analyse::claims::JudgedClaim;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use section::Section;
use serde::Serialize;
use serde_json::{Value, json};
use series_legend::{LegendEntry, LegendRun, SeriesLegend};

/// A page of one run, or of several side by side, with the verdicts on the claims of the reference
/// documents.
pub fn page(runs: &[PageRun], judged: &[JudgedClaim]) -> String {
    let told = runs.iter().map(|run| LegendRun {
        run,
        analysis: analyse(run.head, run.records),
    });
    let legend = SeriesLegend::new(told.collect());
    let head = |(run, told): (usize, &LegendRun)| Head {
        label: legend.caption(run),
        verdict: conclusion(&told.analysis),
        says: plain(&conclusion::head(told.run.head)),
    };
    let heads: Vec<Head> = legend.runs.iter().enumerate().map(head).collect();
    lay_out(
        &title(&legend),
        &heads,
        &legend.entries,
        (0..runs.len()).map(|run| legend.title(run)).collect(),
        sections(&legend, judged),
    )
}

/// The head of a page, for each run.
#[derive(Serialize)]
struct Head {
    label: Option<String>,
    verdict: String,
    says: String,
}

/// A page of those of the sections that are not empty.
fn lay_out(
    title: &str,
    heads: &[Head],
    entries: &[LegendEntry],
    runs: Vec<String>,
    mut sections: Vec<Section>,
) -> String {
    sections.retain(|section| !section.is_empty());
    let laid_out = context! {
        title => title,
        runs => Serde(heads),
        sections => sections.iter().map(laid_out).collect::<Vec<_>>(),
        charts => sections.iter().any(|section| !section.views.is_empty()),
        data => data(entries, runs, &sections),
        style => include_str!("page.css"),
        script => include_str!("page.js"),
        plotly => plotly_script(),
    };
    Environment::new()
        .render_named_str("page.html", include_str!("page.html"), laid_out)
        .expect("our own template has no fault, and every value is there")
}

/// All sections in the order of the page, empty ones too.
fn sections(legend: &SeriesLegend, judged: &[JudgedClaim]) -> Vec<Section> {
    vec![
        text_sections::trust(legend),
        compared::section(legend),
        forest::section(legend),
        pareto::section(legend),
        scaling::section(legend),
        heat_map::section(legend),
        memory::section(legend),
        latency::section(legend),
        counts::section(legend),
        samples::section(legend),
        text_sections::not_ok(legend),
        whole::section(legend),
        literature::section(judged),
        text_sections::results(legend),
        text_sections::method(legend),
    ]
}

fn title(legend: &SeriesLegend) -> String {
    let name = |told: &LegendRun| match user_command::of(&told.analysis) {
        Some((_, tried)) => plain(&user_command::heading(tried)),
        None => plain(&told.run.name),
    };
    format!("heapmark: {}", join(legend.runs.iter().map(name), ", "))
}

/// The part of a section that the template reads: the charts belong to the script.
fn laid_out(section: &Section) -> minijinja::Value {
    context! {
        id => section.id,
        heading => &section.heading,
        text => &section.text,
        tables => Serde(&section.tables),
        legend => &section.legend,
        charts => !section.views.is_empty(),
    }
}

/// The data that the script reads. It contains no `<` that could end its element.
fn data(entries: &[LegendEntry], runs: Vec<String>, sections: &[Section]) -> String {
    let charted = sections.iter().filter(|section| !section.views.is_empty());
    let charts = charted.map(|section| (section.id.to_owned(), json!(section.views)));
    let charts: serde_json::Map<String, Value> = charts.collect();
    let entry =
        |entry: &LegendEntry| json!({ "name": plain(&entry.name), "companion": entry.companion });
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    json!({ "entries": entries, "runs": runs, "charts": charts })
        .to_string()
        .replace('<', "\\u003c")
}

/// The plotting script, as its crate supplies it. The crate appends one for formulas, which no
/// chart here needs.
fn plotly_script() -> String {
    let elements = plotly::Plot::offline_js_sources();
    let first = elements.split_once("</script>");
    let script = first.and_then(|(first, _)| first.split_once('>'));
    script.map_or("", |(_, text)| text).to_owned()
}
