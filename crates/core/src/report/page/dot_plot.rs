//! A chart with a line for each allocator and a dot on it, with or without an interval.

use super::axes;
use super::section::{Entry, Plot, Trace};
use super::series_legend::{SeriesLegend, in_chart};
use plotly::Scatter;
use plotly::common::{ErrorData, ErrorType, HoverInfo, Mode};
use plotly::layout::{Axis, Shape, ShapeLayer, ShapeType};
use std::collections::HashMap;

/// A line of the chart.
pub struct Dot<'a> {
    pub subject: Entry<'a>,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    /// Its tooltip.
    pub words: String,
}

/// The smallest on top, with the same allocator of several runs together.
pub fn plot(legend: &SeriesLegend, title: String, mut dots: Vec<Dot>, axis: Axis) -> Plot {
    let mut least: HashMap<&str, f64> = HashMap::new();
    for dot in &dots {
        let least = least.entry(dot.subject.name).or_insert(f64::INFINITY);
        *least = least.min(dot.value);
    }
    // Of equals, the last is on top.
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

/// The same for ratios, with a line at 1.
pub fn ratios(legend: &SeriesLegend, title: String, dots: Vec<Dot>, baseline: &str) -> Plot {
    let axis = axes::ratios(&format!("time / {}", in_chart(baseline)), &extent(&dots));
    with_line_at_one(plot(legend, title, dots, axis))
}

/// A line down the chart where two take the same.
pub fn with_line_at_one(plot: Plot) -> Plot {
    let line = Shape::new()
        .shape_type(ShapeType::Line)
        .x_ref("x")
        .x0(1.0)
        .x1(1.0)
        .y_ref("paper")
        .y0(0.0)
        .y1(1.0)
        .layer(ShapeLayer::Below);
    Plot {
        layout: plot.layout.shapes(vec![line]),
        ..plot
    }
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

/// A dot on the line of this label, its interval, and below the label the words of its tooltip.
pub fn mark(
    label: &str,
    value: f64,
    interval: Option<(f64, f64)>,
    words: &str,
) -> Box<Scatter<f64, String>> {
    let drawn = Scatter::new(vec![value], vec![label.to_owned()])
        .name(label)
        .mode(Mode::Markers)
        .hover_info(HoverInfo::Text)
        .hover_text(format!("<b>{label}</b><br>{words}"));
    let Some((low, high)) = interval else {
        return drawn;
    };
    let error = ErrorData::new(ErrorType::Data)
        .symmetric(false)
        .array(vec![high - value])
        .array_minus(vec![value - low]);
    drawn.error_x(error)
}
