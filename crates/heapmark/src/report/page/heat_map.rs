//! All cases and all allocators at a glance.

use super::axes;
use super::section::{Data, Entry, Plot, Section, View};
use super::series_legend::{SeriesLegend, in_chart};
use super::views::{self, Placed, heading};
use crate::analyse::{Case, Numbers, Ratio, Role, Row, State, Verdict};
use crate::report::{sheet, units};
use plotly::HeatMap;
use plotly::common::{HoverInfo, Mode};
use serde_json::json;

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(Case::times_operations);
    Section::of_views(
        "heat",
        "All cases",
        "Time over the baseline's: blue is faster, orange slower, the stronger the more. ~ is no difference that this run can \
         tell, × a failure or a gap, and the reason stands behind it.",
        view(legend, &cases).into_iter().collect(),
    )
}

/// One field: its place, the strength of its colour, its label and its tooltip.
struct Field {
    case: String,
    log2: f64,
    mark: String,
    words: String,
}

fn view(legend: &SeriesLegend, cases: &[Placed<Case>]) -> Option<View> {
    let mut data = Data::default();
    let (mut traces, mut gaps) = (Vec::new(), Vec::new());
    for subject in columns(cases) {
        let label = legend.label(subject);
        let (mut places, mut depths) = (Vec::new(), Vec::new());
        let (mut marks, mut words) = (Vec::new(), Vec::new());
        let (mut missing, mut missing_marks) = (Vec::new(), Vec::new());
        for (_, case) in cases.iter().filter(|(run, _)| *run == subject.run) {
            let mut rows = case.rows.iter();
            let Some(row) = rows.find(|row| row.allocator == subject.name) else {
                continue;
            };
            let field = field(case, row, &label);
            let ratio = row.numbers().and_then(|numbers| numbers.ratio);
            let shown = json!({ "ratio": ratio.map(|ratio| ratio.ratio), "shown": field.mark });
            views::add_row(&mut data, subject, *case, shown);
            if field.log2.is_finite() {
                places.push(field.case);
                depths.push(vec![field.log2]);
                marks.push(vec![field.mark]);
                words.push(vec![field.words]);
            } else {
                missing.push((label.clone(), field.case, field.words));
                missing_marks.push(field.mark);
            }
        }
        if !places.is_empty() {
            let drawn = HeatMap::new(vec![label.clone()], places, depths)
                .text_matrix(marks)
                .hover_text_matrix(words)
                .hover_info(HoverInfo::Text)
                .name(&label);
            traces.push(legend.trace(subject, drawn));
        }
        if !missing.is_empty() {
            let drawn = views::scatter(&label, Mode::Text, missing).text_array(missing_marks);
            gaps.push(legend.trace(subject, drawn));
        }
    }
    // A single column has nothing to compare, and a single case has a chart of its own.
    let compared = traces.len() > 1 && cases.len() > 1;
    traces.extend(gaps);
    let plot = Plot::new(
        "Time over the baseline's",
        traces,
        axes::names(),
        axes::names(),
    );
    compared.then(|| View {
        workload: None,
        plots: vec![plot],
        data,
    })
}

/// The columns: allocators in the order of the plan, those of the same name side by side.
fn columns<'a>(cases: &[Placed<'a, Case>]) -> Vec<Entry<'a>> {
    let in_case = |&(run, case): &Placed<'a, Case>| {
        let rows = case.rows.iter().filter(|row| !row.role.is_companion());
        rows.map(move |row| Entry {
            run,
            name: &row.allocator,
        })
    };
    let columns = views::distinct(cases.iter().flat_map(in_case));
    views::grouped(&columns, |subject| subject.name).concat()
}

fn field(case: &Case, row: &Row, label: &str) -> Field {
    let gap = |words: String| (f64::NAN, "×".to_owned(), words);
    let (log2, mark, words) = match &row.state {
        State::Measured(numbers) => match numbers.ratio {
            Some(ratio) => {
                let told = tells(numbers, &ratio);
                let mark = match row.role {
                    Role::Baseline => "1".into(),
                    _ if told => units::digits(ratio.ratio),
                    _ => "~".into(),
                };
                let verdict = sheet::verdict(numbers.verdict);
                let words = format!("{} {verdict}", sheet::ratio(row, Some(&ratio)));
                // Without a verdict there is no colour either.
                (if told { ratio.ratio.log2() } else { 0.0 }, mark, words)
            }
            None => gap("no baseline to compare with".into()),
        },
        State::Failed(failed) => gap(in_chart(&failed.summary())),
        State::Missing { .. } => gap("missing".into()),
    };
    let case = in_chart(&heading(case));
    Field {
        words: format!("<b>{label}</b>, {case}<br>{words}"),
        case,
        log2,
        mark,
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
