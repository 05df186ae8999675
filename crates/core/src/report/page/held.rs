//! What each allocator holds for what is live, where a run measures that beside its times.

use super::matrix::{heat, of_runs, way};
use super::section::{Matrix, MatrixCell, MatrixRow, Section};
use super::series_legend::SeriesLegend;
use crate::analyse::{Analysis, MemoryShape, distinct};
use crate::report::conclusion::{kernel_of, shape_number};
use crate::report::matrix::names;
use crate::report::text::plain;
use crate::report::units;

/// ln of the largest ratio that is no difference.
const SAME: f64 = 0.02;

pub fn section(legend: &SeriesLegend) -> Section {
    of_runs(
        legend,
        "held",
        "Memory for what is live",
        "From processes that only measure memory, one of each allocator: blue is less than the baseline's, orange more. The \
         tables have each case alone, the charts the memory over time.",
        matrix,
    )
}

fn matrix(analysis: &Analysis, caption: String) -> Option<Matrix> {
    if analysis.held.is_empty() {
        return None;
    }
    let others = analysis.held.iter().map(|held| held.allocator.as_str());
    let names = distinct(names(analysis, &analysis.cases).into_iter().chain(others));
    let rows = MemoryShape::ALL.map(|shape| MatrixRow {
        heading: heading(shape),
        href: None,
        in_malloc: None,
        cells: names
            .iter()
            .map(|name| cell(analysis, name, shape))
            .collect(),
    });
    Some(Matrix {
        caption,
        rows_are: "case",
        columns: names.iter().map(|name| plain(name)).collect(),
        rows: rows.into(),
    })
}

fn heading(shape: MemoryShape) -> String {
    let what = match shape {
        MemoryShape::Peak => "highest resident heap / most live bytes",
        MemoryShape::Pool => "resident heap / memory of one request",
        MemoryShape::FanIn => "highest resident heap / the most that can be live",
        MemoryShape::Returned => "part of a burst that sleep returns",
    };
    format!("{}: {what}", kernel_of(shape))
}

fn cell(analysis: &Analysis, name: &str, shape: MemoryShape) -> MatrixCell {
    let of = |name: &str| {
        let held = analysis.held_by(name)?;
        Some((held.of(shape)?, held.burden(shape)?))
    };
    let Some((number, burden)) = of(name) else {
        return MatrixCell {
            shown: "\u{d7}".into(),
            class: "gap",
            words: "no number".into(),
            ..MatrixCell::default()
        };
    };
    let baseline = &analysis.baseline;
    let base = of(baseline);
    let ratio = base.map(|(_, base)| burden / base);
    let class = match ratio {
        _ if name == baseline => "baseline",
        None => "unclear",
        Some(ratio) if ratio.ln().abs() < SAME => "same",
        Some(ratio) => way(ratio),
    };
    let is_strong = matches!(class, "faster" | "slower");
    let words = match (base, shape) {
        _ if name == baseline => "baseline".to_owned(),
        (None, _) => "no baseline".to_owned(),
        (Some((base, _)), MemoryShape::Returned) => {
            let kept = |returned: f64| units::percent((1.0 - returned).max(0.0));
            format!("{name} keeps {} ({baseline} {})", kept(number), kept(base))
        }
        (Some((_, base)), _) => format!("{name} {}", units::times(burden / base)),
    };
    MatrixCell {
        shown: shape_number(shape, number),
        class,
        heat: ratio.filter(|_| is_strong).map_or(0, heat),
        words: plain(&words),
        compared: true,
        ..MatrixCell::default()
    }
}
