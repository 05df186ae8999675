//! A chart with a line for each allocator and a dot on it, with or without an interval.

use super::section::{Entry, Plot, Trace};
use super::series_legend::{SeriesLegend, in_chart};
use super::{axes, figure};
use serde_json::Value;
use std::collections::HashMap;

/// A line of the chart, with a dot for its value.
pub struct Dot<'a> {
    pub subject: Entry<'a>,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    /// The dot's tooltip.
    pub words: String,
}

/// A dot plot with the smallest value on top; the rows of an allocator in several runs stay together.
pub fn plot(legend: &SeriesLegend, title: String, mut dots: Vec<Dot>, axis: Value) -> Plot {
    let mut least: HashMap<&str, f64> = HashMap::new();
    for dot in &dots {
        let least = least.entry(dot.subject.name).or_insert(f64::INFINITY);
        *least = least.min(dot.value);
    }
    // Of equal dots, the last one is on top.
    dots.reverse();
    dots.sort_by(|a, b| {
        let a = a.subject;
        let b = b.subject;
        least[a.name]
            .total_cmp(&least[b.name])
            .then(a.run.cmp(&b.run))
    });
    let traces = dots.into_iter().map(|dot| trace(legend, dot)).collect();
    Plot::new(title, traces, axis, axes::names())
}

/// A dot plot of ratios, with a line at 1.
pub fn ratios(legend: &SeriesLegend, title: String, dots: Vec<Dot>, baseline: &str) -> Plot {
    let axis = axes::ratios(&format!("time / {}", in_chart(baseline)), &extent(&dots));
    plot(legend, title, dots, axis).with_line_at_one("x")
}

/// All values that a chart of these dots has to show.
pub fn extent(dots: &[Dot]) -> Vec<f64> {
    dots.iter()
        .flat_map(|dot| {
            let (low, high) = dot.interval.unwrap_or((dot.value, dot.value));
            [low, dot.value, high]
        })
        .collect()
}

fn trace(legend: &SeriesLegend, dot: Dot) -> Trace {
    let label = legend.label(dot.subject);
    legend.trace(
        dot.subject,
        mark(&label, dot.value, dot.interval, &dot.words),
    )
}

/// A dot on the line of this label, with its interval; the tooltip has the label, and the words below it.
pub fn mark(label: &str, value: f64, interval: Option<(f64, f64)>, words: &str) -> Value {
    let drawn = figure::scatter(label, "markers", [value], [label]);
    let mut drawn = figure::with_hover_text(drawn, format!("<b>{label}</b><br>{words}"));
    if let Some(ends) = interval {
        drawn["error_x"] = figure::intervals([(value, ends)]);
    }
    drawn
}
