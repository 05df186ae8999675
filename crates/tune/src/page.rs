//! The page of a tuning: the answer, time and memory of what was confirmed as a picture, and the race as a table.

use crate::judged::{GOALS, Goal};
use crate::report::{TuneReport, conclusion, confirmed, notes, order, words};
use crate::search::{Confirmed, Entry, Fate, Tuned};
use heapmark_core::analyse::Ratio;
use heapmark_core::report::document::{Cell, Mark, Sheet};
use heapmark_core::report::page::head::Head;
use heapmark_core::report::page::section::{Data, Plot, Section, Trace, View};
use heapmark_core::report::page::series_legend::{LegendEntry, in_chart};
use heapmark_core::report::page::{axes, figure, lay_out};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::units;
use serde_json::json;
use std::collections::BTreeMap;

/// Makes the page of a tuning as HTML.
pub fn page(told: &TuneReport) -> String {
    let tuned = told.tuned;
    let points = points(told);
    let entries: Vec<LegendEntry> = points
        .iter()
        .map(|point| LegendEntry {
            name: point.name.clone(),
            companion: point.is_control,
        })
        .collect();
    let head = Head {
        verdict: conclusion(told),
        machine: told.valid_for.join(", "),
        says: format!("heapmark tune, for less {}", told.goal.word()),
        ..Head::default()
    };
    let notes = order(told).into_iter().chain(notes(tuned, told.goal));
    let notes = notes.map(|note| vec![note.text]);
    let copied = told.copy.iter();
    let copied = copied.map(|entry| vec![entry.place.to_owned(), entry.line.clone()]);
    let sections = vec![
        front(told, &points),
        Section::of_tables("confirmed", "Confirmed in new pairs", [confirmed(tuned)]),
        Section::of_tables("race", "What became of each setting", [race(tuned)]),
        Section::of_tables(
            "copy",
            "To copy",
            [Sheet::of_text("", &["where", "line"], copied)],
        ),
        Section::of_tables("notes", "Notes", [Sheet::of_text("", &["note"], notes)]),
    ];
    let title = format!("heapmark tune: {}", told.command);
    lay_out(
        &title,
        &[head],
        &entries,
        vec![told.command.clone()],
        sections,
    )
}

/// A setting in the picture.
struct FrontPoint {
    name: String,
    /// Whether the point is a copy of the default.
    is_control: bool,
    ratios: BTreeMap<Goal, Ratio>,
}

/// Returns the points of the settings that were to be confirmed, and of the copies of the default.
fn points(report: &TuneReport) -> Vec<FrontPoint> {
    let tuned = report.tuned;
    let of = |row: &Confirmed| FrontPoint {
        name: row.setting.name.clone(),
        is_control: false,
        ratios: row.ratios.clone(),
    };
    let copies = tuned
        .decoys
        .iter()
        .enumerate()
        .map(|(place, ratios)| FrontPoint {
            name: format!("copy {} of the default", place + 1),
            is_control: true,
            ratios: ratios.clone(),
        });
    tuned.confirmed.iter().map(of).chain(copies).collect()
}

/// Makes the picture of time against memory.
fn front(report: &TuneReport, points: &[FrontPoint]) -> Section {
    let memory = match report.goal {
        Goal::Idle => Goal::Idle,
        _ => Goal::Memory,
    };
    let mut data = Data::default();
    let (mut traces, mut times, mut memories) = (Vec::new(), Vec::new(), Vec::new());
    for (place, point) in points.iter().enumerate() {
        let both = [Goal::Time, memory].map(|goal| point.ratios.get(&goal));
        let [Some(time), Some(held)] = both else {
            continue;
        };
        let ends = |ratio: &Ratio| ratio.interval.unwrap_or((ratio.ratio, ratio.ratio));
        let mut row = serde_json::Map::from_iter([("setting".to_owned(), json!(point.name))]);
        for (word, ratio) in [("time", time), (memory.key(), held)] {
            row.insert(word.to_owned(), json!(ratio.ratio));
            row.insert(format!("{word}_low"), json!(ends(ratio).0));
            row.insert(format!("{word}_high"), json!(ends(ratio).1));
        }
        data.row(row.into());
        let name = in_chart(&point.name);
        let drawn = figure::scatter(&name, "markers", [time.ratio], [held.ratio]);
        let words = format!(
            "<b>{name}</b><br>time {}<br>{} {}",
            units::interval(time),
            memory.word(),
            units::interval(held)
        );
        let mut drawn = figure::with_hover_text(drawn, [words]);
        drawn["error_x"] = figure::intervals([(time.ratio, ends(time))]);
        drawn["error_y"] = figure::intervals([(held.ratio, ends(held))]);
        traces.push(Trace::new(Some(place), 0, drawn));
        times.extend([ends(time).0, ends(time).1]);
        memories.extend([ends(held).0, ends(held).1]);
    }
    if report.tuned.confirmed.is_empty() || traces.is_empty() {
        return Section::default();
    }
    let over = |what: &str| format!("{what}, over {} as it is", in_chart(report.default));
    let mut plot = Plot::new(
        "",
        traces,
        axes::ratios(&over("time"), &times),
        axes::ratios(&over(memory.word()), &memories),
    );
    plot.layout["shapes"] = json!(["x", "y"].map(figure::line_at_one));
    Section::of_views(
        "front",
        "Time and memory",
        "Left is faster, down is smaller: what has no other to the left of it and below is a choice. With 95 % intervals; the \
         default is where both are 1.",
        vec![View {
            workload: None,
            plots: vec![plot],
            data,
        }],
    )
}

/// Makes the table of all settings, in the order in which they were named.
fn race(tuned: &Tuned) -> Sheet {
    let mut table = SheetOf::new("", &tuned.entries);
    table.add("setting", |entry: &Entry| entry.setting.name.as_str());
    table.add("sets", |entry| Cell::text(words(&entry.setting)));
    table.add("became", |entry| match &entry.fate {
        Fate::NotArrived(why) => Cell {
            mark: Mark::Failed,
            ..Cell::text(format!("did not arrive: {why}"))
        },
        Fate::NoEffect => Cell::text("no effect on any count"),
        Fate::Failed(why) => Cell {
            mark: Mark::Failed,
            ..Cell::text(why.as_str())
        },
        Fate::Left => Cell::text("not among the best in the search"),
        Fate::Finalist => Cell::text("finalist"),
    });
    for (goal, title) in GOALS.into_iter().zip(["time", "peak", "at end"]) {
        table.add(format!("{title} in the search"), |entry| {
            entry.search.get(&goal).copied()
        });
    }
    table.sheet
}
