//! All cases and all allocators at a glance.

use super::section::{Data, Plot, Section, Trace, View};
use super::series_legend::{SeriesLegend, in_chart};
use super::views::{Placed, heading};
use super::{axes, number};
use crate::analyse::{Case, Numbers, Ratio, Role, Row, State, Verdict};
use crate::report::text::plain;
use crate::report::{sheet, units};
use plotly::common::{HoverInfo, Mode};
use plotly::{HeatMap, Layout, Scatter};

const COLUMNS: [&str; 6] = ["run", "workload", "threads", "allocator", "ratio", "shown"];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<Case>> = legend.all(|told| &told.analysis.cases);
    let cases: Vec<Placed<Case>> = cases
        .into_iter()
        .filter(|(_, case)| case.times_operations())
        .collect();
    Section {
        id: "heat",
        heading: "All cases".into(),
        text: vec![
            "Time over the baseline's: blue is faster, orange slower, the stronger the more. ~ is no difference that this run can \
             tell, × a failure or a gap, and the reason stands behind it."
                .into(),
        ],
        views: view(legend, &cases).into_iter().collect(),
        ..Section::default()
    }
}

/// One field: its place, the strength of its colour, its label and its tooltip.
struct Field {
    case: String,
    log2: f64,
    mark: String,
    words: String,
}

fn view(legend: &SeriesLegend, cases: &[Placed<Case>]) -> Option<View> {
    let mut data = Data::new(&COLUMNS);
    let (mut traces, mut gaps) = (Vec::new(), Vec::new());
    for (run, name) in columns(cases) {
        let of_run = cases.iter().filter(|(own, _)| *own == run);
        let rows = of_run.filter_map(|(_, case)| {
            Some((*case, case.rows.iter().find(|row| row.allocator == name)?))
        });
        let (mut fields, mut missing) = (Vec::new(), Vec::new());
        for (case, row) in rows {
            let field = field(case, row);
            data.row([
                (run + 1).into(),
                plain(&case.workload).into(),
                case.threads.into(),
                plain(name).into(),
                number(
                    row.numbers()
                        .and_then(|n| n.ratio)
                        .map_or(f64::NAN, |ratio| ratio.ratio),
                ),
                field.mark.clone().into(),
            ]);
            if field.log2.is_finite() {
                fields.push(field)
            } else {
                missing.push(field)
            }
        }
        let (label, entry) = (legend.label(run, name), legend.entry(name));
        let hover = |field: &Field| format!("<b>{label}</b>, {}<br>{}", field.case, field.words);
        if !fields.is_empty() {
            let drawn = HeatMap::new(
                vec![label.clone()],
                fields.iter().map(|field| field.case.clone()).collect(),
                fields.iter().map(|field| vec![field.log2]).collect(),
            );
            let drawn = drawn
                .text_matrix(
                    fields
                        .iter()
                        .map(|field| vec![field.mark.clone()])
                        .collect(),
                )
                .hover_text_matrix(fields.iter().map(|field| vec![hover(field)]).collect())
                .hover_info(HoverInfo::Text)
                .name(&label);
            traces.push(Trace { entry, run, drawn });
        }
        if !missing.is_empty() {
            let places = missing.iter().map(|field| field.case.clone()).collect();
            let drawn = Scatter::new(missing.iter().map(|_| label.clone()).collect(), places)
                .mode(Mode::Text)
                .text_array(
                    missing
                        .iter()
                        .map(|field| field.mark.clone())
                        .collect::<Vec<_>>(),
                )
                .hover_info(HoverInfo::Text)
                .hover_text_array(missing.iter().map(hover).collect::<Vec<_>>())
                .name(&label);
            gaps.push(Trace { entry, run, drawn });
        }
    }
    // A single column has nothing to compare, and a single case has a chart of its own.
    let compared = traces.len() > 1 && cases.len() > 1;
    traces.extend(gaps);
    let layout = Layout::new().x_axis(axes::names()).y_axis(axes::names());
    compared.then(|| View {
        workload: None,
        plots: vec![Plot {
            title: "Time over the baseline's".into(),
            traces,
            layout,
        }],
        data,
    })
}

/// The columns: allocators in the order of the plan, those of the same name side by side.
fn columns<'a>(cases: &[Placed<'a, Case>]) -> Vec<(usize, &'a str)> {
    let mut columns: Vec<(usize, &str)> = Vec::new();
    for (run, case) in cases {
        for row in case
            .rows
            .iter()
            .filter(|row| !matches!(row.role, Role::Floor | Role::AaCopy))
        {
            let own = (*run, row.allocator.as_str());
            if !columns.contains(&own) {
                let like = columns.iter().rposition(|(_, name)| *name == own.1);
                columns.insert(like.map_or(columns.len(), |place| place + 1), own);
            }
        }
    }
    columns
}

fn field(case: &Case, row: &Row) -> Field {
    let (log2, mark, words) = match &row.state {
        State::Measured(numbers) => match numbers.ratio {
            Some(ratio) => {
                let words = format!(
                    "{} {}",
                    sheet::ratio(row, Some(&ratio)),
                    sheet::verdict(numbers.verdict)
                );
                let told = tells(numbers, &ratio);
                let mark = match row.role {
                    Role::Baseline => "1".into(),
                    _ if told => units::digits(ratio.ratio),
                    _ => "~".into(),
                };
                // Without a verdict there is no colour either.
                (if told { ratio.ratio.log2() } else { 0.0 }, mark, words)
            }
            None => (f64::NAN, "×".into(), "no baseline to compare with".into()),
        },
        State::Failed(failed) => (f64::NAN, "×".into(), in_chart(&failed.summary())),
        State::Missing { .. } => (f64::NAN, "×".into(), "missing".into()),
    };
    Field {
        case: in_chart(&heading(case)),
        log2,
        mark,
        words,
    }
}

/// Whether the run's verdict is that the two differ.
fn tells(numbers: &Numbers, ratio: &Ratio) -> bool {
    match numbers.verdict {
        Some(call) => matches!(call, Verdict::Faster | Verdict::Slower | Verdict::Small),
        None => ratio
            .interval
            .is_some_and(|(low, high)| low > 1.0 || high < 1.0),
    }
}
