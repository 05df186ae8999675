//! What each allocator holds, compared with what is live, in a run that measures this beside its times.

use super::matrix::of_runs;
use super::section::Section;
use super::series_legend::SeriesLegend;
use crate::analyse::{Analysis, MemoryShape, distinct};
use crate::report::document::{Cell, Mark, Sheet};
use crate::report::matrix::{heat, names, way};
use crate::report::names::{kernel_of, shape_number};
use crate::report::units;

/// The natural logarithm of the largest ratio that counts as no difference.
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

fn matrix(analysis: &Analysis, caption: String) -> Option<Sheet> {
    if analysis.held.is_empty() {
        return None;
    }
    let others = analysis.held.iter().map(|held| held.allocator.as_str());
    let names = distinct(names(analysis, &analysis.cases).into_iter().chain(others));
    let row = |shape| {
        let cells = names.iter().map(move |name| cell(analysis, name, shape));
        [Cell::from(heading(shape))].into_iter().chain(cells)
    };
    let columns = [&["case"], &names[..]].concat();
    Some(Sheet {
        is_matrix: true,
        ..Sheet::new(caption, &columns, MemoryShape::ALL.map(row))
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

fn cell(analysis: &Analysis, name: &str, shape: MemoryShape) -> Cell {
    let of = |name: &str| {
        let held = analysis.held_by(name)?;
        Some((held.of(shape)?, held.burden(shape)?))
    };
    let Some((number, burden)) = of(name) else {
        return Cell {
            mark: Mark::Gap,
            words: "no number".into(),
            ..Cell::default()
        };
    };
    let baseline = &analysis.baseline;
    let base = of(baseline);
    let ratio = base.map(|(_, base)| burden / base);
    let mark = match ratio {
        _ if name == baseline => Mark::Baseline,
        None => Mark::Unclear,
        Some(ratio) if ratio.ln().abs() < SAME => Mark::Same,
        Some(ratio) => way(ratio),
    };
    let words = match (base, shape) {
        _ if name == baseline => "baseline".to_owned(),
        (None, _) => "no baseline".to_owned(),
        (Some((base, _)), MemoryShape::Returned) => {
            let kept = |returned: f64| units::percent((1.0 - returned).max(0.0));
            format!("{name} keeps {} ({baseline} {})", kept(number), kept(base))
        }
        (Some((_, base)), _) => format!("{name} {}", units::times(burden / base)),
    };
    Cell {
        mark,
        heat: heat(mark, ratio.unwrap_or(1.0)),
        words,
        ..shape_number(shape, number).into()
    }
}
