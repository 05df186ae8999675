//! A chart with a line for each allocator and a dot on it, with or without an interval.

use super::axes;
use super::section::{Plot, Trace};
use super::series_legend::{SeriesLegend, in_chart};
use plotly::common::{ErrorData, ErrorType, HoverInfo, Mode};
use plotly::layout::{Axis, Shape, ShapeLayer, ShapeType};
use plotly::{Layout, Scatter};

/// A line of the chart.
pub(super) struct Dot<'a> {
    pub run: usize,
    pub name: &'a str,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    /// Its tooltip.
    pub words: String,
}

/// The smallest on top, with the same allocator of several runs together.
pub(super) fn plot(legend: &SeriesLegend, title: String, mut dots: Vec<Dot>, axis: Axis) -> Plot {
    let least = |name: &str, dots: &[Dot]| {
        dots.iter()
            .filter(|dot| dot.name == name)
            .map(|dot| dot.value)
            .fold(f64::INFINITY, f64::min)
    };
    let mut keyed: Vec<(f64, Dot)> = Vec::new();
    while let Some(dot) = dots.pop() {
        let own = least(dot.name, &dots).min(dot.value);
        let known = keyed
            .iter()
            .filter(|(_, other)| other.name == dot.name)
            .map(|(key, _)| *key);
        keyed.push((known.fold(own, f64::min), dot));
    }
    keyed.sort_by(|(a, left), (b, right)| a.total_cmp(b).then(left.run.cmp(&right.run)));
    let traces = keyed
        .into_iter()
        .map(|(_, dot)| trace(legend, dot))
        .collect();
    Plot {
        title,
        traces,
        layout: Layout::new().x_axis(axis).y_axis(axes::names()),
    }
}

/// The same for ratios, with a line at 1.
pub(super) fn ratios(legend: &SeriesLegend, title: String, dots: Vec<Dot>, baseline: &str) -> Plot {
    let axis = axes::ratios(&format!("time / {}", in_chart(baseline)), &extent(&dots));
    let Plot {
        title,
        traces,
        layout,
    } = plot(legend, title, dots, axis);
    let line = Shape::new()
        .shape_type(ShapeType::Line)
        .x_ref("x")
        .x0(1.0)
        .x1(1.0)
        .y_ref("paper")
        .y0(0.0)
        .y1(1.0);
    Plot {
        title,
        traces,
        layout: layout.shapes(vec![line.layer(ShapeLayer::Below)]),
    }
}

/// All values that a chart of these dots has to show.
pub(super) fn extent(dots: &[Dot]) -> Vec<f64> {
    dots.iter()
        .flat_map(|dot| {
            dot.interval
                .map_or(vec![dot.value], |(low, high)| vec![low, dot.value, high])
        })
        .collect()
}

fn trace(
    legend: &SeriesLegend,
    Dot {
        run,
        name,
        value,
        interval,
        words,
    }: Dot,
) -> Trace {
    let label = legend.label(run, name);
    let mut drawn = Scatter::new(vec![value], vec![label.clone()])
        .name(&label)
        .mode(Mode::Markers)
        .hover_info(HoverInfo::Text)
        .hover_text(format!("<b>{label}</b><br>{words}"));
    if let Some((low, high)) = interval {
        let error = ErrorData::new(ErrorType::Data).symmetric(false);
        drawn = drawn.error_x(
            error
                .array(vec![high - value])
                .array_minus(vec![value - low]),
        );
    }
    Trace {
        entry: legend.entry(name),
        run,
        drawn,
    }
}
