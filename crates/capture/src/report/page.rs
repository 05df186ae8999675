//! The page of a trace: the requests of one program to its allocator.

use crate::report::{self, border, low};
use heapmark_core::report::document::Sheet;
use heapmark_core::report::page::downsample::short;
use heapmark_core::report::page::head::Head;
use heapmark_core::report::page::section::{Data, Plot, Section, Trace, View};
use heapmark_core::report::page::series_legend::LegendEntry;
use heapmark_core::report::page::{axes, figure, lay_out};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::join;
use heapmark_core::report::units;
use heapmark_trace::stats::{Histogram, Stats, Thread};
use serde_json::json;

/// Columns of marks below bars: more would cover each other on a phone.
const MOST_MARKS: usize = 8;
/// The most threads that get a bar of their own.
const MOST_THREADS: usize = 32;

/// The kinds of bars, each with its own colour.
const BYTES: usize = 0;
const OBJECTS: usize = 1;
const OTHERS: usize = 2;

/// The page of a trace as HTML.
pub fn traced(stats: &Stats) -> String {
    let program = report::program(stats);
    let says = report::summary(stats).into_iter().take(4);
    let says = says.map(|(what, says)| format!("{what}: {says}"));
    let head = Head {
        verdict: join(says, "; "),
        ..Head::default()
    };
    let sections = vec![
        alive(stats),
        summary(stats),
        sizes(stats),
        lifetimes(stats),
        growth(stats),
        threads(stats),
        recorded(stats),
    ];
    lay_out(
        &format!("heapmark trace: {program}"),
        &[head],
        &["bytes", "objects", "of other threads"].map(|name| LegendEntry {
            name: name.into(),
            companion: false,
        }),
        vec![program],
        sections,
    )
}

fn summary(stats: &Stats) -> Section {
    let tables = [report::summary_table(stats), report::calls(stats)];
    Section::of_tables("summary", "In short", tables)
}

fn alive(stats: &Stats) -> Section {
    let unit = units::size(stats.peak_live_bytes as f64);
    let timed = stats.duration_ns > 0;
    let mut data = Data::default();
    let mut x = Vec::new();
    let mut y = Vec::new();
    for point in &stats.timeline {
        data.row(json!({
            "event": point.event,
            "ns": point.ns,
            "least_live_bytes": point.least_bytes,
            "most_live_bytes": point.most_bytes,
        }));
        x.push(if timed {
            short(point.ns as f64 / 1e9)
        } else {
            point.event as f64
        });
        y.push(short(point.most_bytes as f64 / unit.size));
    }
    let drawn = figure::with_hover_values(figure::scatter("bytes", "lines", x, y));
    let along = if timed { "s since the start" } else { "events" };
    let plot = Plot::new(
        "Bytes alive",
        vec![Trace::new(Some(BYTES), 0, drawn)],
        axes::from_zero(along),
        axes::from_zero(&format!("alive, {}", unit.name)),
    );
    let text = "Bytes requested and not yet freed. An allocator needs at least this much.";
    section("alive", "Alive over time", text, vec![plot], data)
}

fn sizes(stats: &Stats) -> Section {
    let powers = stats.sizes.powers();
    let mut data = Data::default();
    for (power, (objects, bytes)) in powers.iter().enumerate() {
        data.row(json!({
            "size_from_bytes": low(power),
            "size_below_bytes": low(power + 1),
            "objects": objects,
            "bytes": bytes,
        }));
    }
    let bytes = powers.iter().map(|(_, bytes)| *bytes).collect();
    let text = "How large objects are, by powers of two; then how much of all bytes each size makes up. Many small objects cost time, \
                few large ones memory.";
    let plots = vec![
        bars(
            "Objects by size",
            OBJECTS,
            "size",
            counts(&stats.sizes),
            "of all objects",
            units::bytes,
        ),
        bars(
            "Bytes by size",
            BYTES,
            "size",
            bytes,
            "of all bytes",
            units::bytes,
        ),
    ];
    section("sizes", "Sizes", text, plots, data)
}

fn lifetimes(stats: &Stats) -> Section {
    let mut data = Data::default();
    for (measure, histogram) in [
        ("allocated_bytes", &stats.lifetimes_bytes),
        ("ns", &stats.lifetimes_ns),
    ] {
        for (power, (count, _)) in histogram.powers().iter().enumerate() {
            data.row(json!({
                "measure": measure,
                "from": low(power),
                "below": low(power + 1),
                "objects": count,
            }));
        }
    }
    let mut plots = vec![bars(
        "Objects by what was allocated while they lived",
        OBJECTS,
        "bytes allocated meanwhile",
        counts(&stats.lifetimes_bytes),
        "of all that ended",
        units::bytes,
    )];
    if stats.duration_ns > 0 {
        plots.push(bars(
            "Objects by time",
            OBJECTS,
            "lifetime",
            counts(&stats.lifetimes_ns),
            "of all that ended",
            units::duration,
        ));
    }
    let text = "Objects that ended, by how long they lived: in bytes that were allocated meanwhile, which no clock disturbs, and in time, \
                as finely as the trace looks at the clock: 0 is \
                between two looks. What never ended is not here.";
    section("lifetimes", "Lifetimes", text, plots, data)
}

fn growth(stats: &Stats) -> Section {
    let mut data = Data::default();
    for bucket in stats.realloc_chains.buckets() {
        data.row(json!({ "moves": bucket.mean.round(), "objects": bucket.count }));
    }
    let plot = bars(
        "Objects by times that realloc gave them a new size",
        OBJECTS,
        "times",
        counts(&stats.realloc_chains),
        "of all that grew",
        |times| times.to_string(),
    );
    let text = "An object that realloc enlarges again and again climbs a ladder; an allocator that leaves room above it need not copy.";
    section("growth", "Growth", text, vec![plot], data)
}

fn threads(stats: &Stats) -> Section {
    let mut threads = stats.threads.clone();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.allocations + thread.frees));
    let mut data = Data::default();
    for thread in &threads {
        data.row(json!(thread));
    }
    let all = threads.len();
    threads.truncate(MOST_THREADS);
    // A thread with a single timestamp has no rate.
    let timed = threads
        .iter()
        .all(|thread| thread.last_ns > thread.first_ns);
    let names: Vec<String> = threads
        .iter()
        .map(|thread| format!("t{}", thread.thread))
        .collect();
    let bar = |entry, name: &str, count: fn(&Thread) -> u64| {
        let lengths = threads.iter().map(|thread| {
            let count = count(thread) as f64;
            if timed {
                short(count / ((thread.last_ns - thread.first_ns) as f64 / 1e9) / 1e6)
            } else {
                count
            }
        });
        let bars = figure::bars(name, Vec::from_iter(lengths), &names);
        Trace::new(
            Some(entry),
            0,
            figure::with_hover_values(figure::horizontal(bars)),
        )
    };
    let traces = vec![
        bar(OBJECTS, "allocations and frees", |thread| {
            thread.allocations + thread.frees
        }),
        bar(OTHERS, "frees of other threads' objects", |thread| {
            thread.frees_of_others
        }),
    ];
    let measure = if timed {
        "millions per second of its life"
    } else {
        "times"
    };
    let title = "Allocations and frees by thread";
    let plot = Plot::new(title, traces, axes::from_zero(measure), axes::names());
    let text = "What each thread allocates and frees, the busiest first; in front of it, how much of that are objects of other threads, \
                which most allocators free at a higher cost.";
    let mut section = section("threads", "Threads", text, vec![plot], data);
    if all > MOST_THREADS {
        section.text.push(format!(
            "The chart shows the {MOST_THREADS} busiest of {all} threads, Data below it all of them."
        ));
    }
    if !stats.pairs.is_empty() {
        let mut table = SheetOf::new("Objects that another thread frees", &stats.pairs);
        table.add("allocated by", |pair| format!("t{}", pair.owner));
        table.add("freed by", |pair| format!("t{}", pair.by));
        table.add("times", |pair| pair.frees);
        section.tables.push(table.sheet);
    }
    section
}

fn recorded(stats: &Stats) -> Section {
    let rows = stats
        .head
        .iter()
        .map(|(key, value)| vec![key.clone(), value.clone()]);
    let table = Sheet::of_text("", &["item", "recorded"], rows);
    Section::of_tables("recorded", "Where it was recorded", [table])
}

fn section(id: &'static str, heading: &str, text: &str, plots: Vec<Plot>, data: Data) -> Section {
    let view = (!data.rows.is_empty()).then_some(View {
        workload: None,
        plots,
        data,
    });
    Section::of_views(id, heading, text, Vec::from_iter(view))
}

/// The number of values in each power of two.
fn counts(histogram: &Histogram) -> Vec<f64> {
    histogram
        .powers()
        .iter()
        .map(|(count, _)| *count as f64)
        .collect()
}

/// A bar chart with a bar for each power of two: the share of all values that fall into it.
fn bars(
    title: &str,
    entry: usize,
    axis: &str,
    counts: Vec<f64>,
    of: &str,
    word: fn(f64) -> String,
) -> Plot {
    let all: f64 = counts.iter().sum();
    let first = counts.iter().position(|count| *count > 0.0).unwrap_or(0);
    let word = |power: usize| border(power, word);
    let mut places = Vec::new();
    let mut shares = Vec::new();
    let mut words = Vec::new();
    for (place, count) in counts.iter().enumerate().skip(first) {
        let share = count / all.max(1.0);
        places.push(place);
        shares.push(short(share * 100.0));
        words.push(format!(
            "<b>{} to {}</b><br>{} {of}",
            word(place),
            word(place + 1),
            units::percent(share)
        ));
    }
    let every = places.len().div_ceil(MOST_MARKS).max(1);
    let marks = || places.iter().step_by(every);
    let x_axis = axes::with_marks(
        axes::titled(axis),
        &Vec::from_iter(marks()),
        marks().map(|place| word(*place)).collect(),
    );
    let drawn = figure::with_hover_text(figure::bars(title, &places, shares), words);
    let y_axis = axes::from_zero(&format!("% {of}"));
    Plot::new(
        title,
        vec![Trace::new(Some(entry), 0, drawn)],
        x_axis,
        y_axis,
    )
}
