//! The page of a trace: the requests of one program to its allocator.

use super::downsample::short;
use super::section::{Column, Data, PageTable, Plot, Section, Trace, View};
use super::series_legend::LegendEntry;
use super::{Head, axes, lay_out, number};
use crate::report::text::plain;
use crate::report::{trace, units};
use heapmark_trace::stats::{Histogram, Stats};
use plotly::common::{HoverInfo, Mode};
use plotly::layout::{Axis, RangeMode};
use plotly::{Bar, Layout, Scatter};

/// Columns of marks below bars: more would cover each other on a phone.
const MOST_MARKS: usize = 8;
/// Threads with a bar of their own.
const MOST_THREADS: usize = 32;

/// The kinds of bars, each with its own colour.
const BYTES: usize = 0;
const OBJECTS: usize = 1;
const OTHERS: usize = 2;

/// The page.
pub(in crate::report) fn traced(stats: &Stats) -> String {
    let entry = |name: &str| LegendEntry {
        name: name.into(),
        companion: false,
    };
    let entries = ["bytes", "objects", "of other threads"].map(entry);
    let program = plain(&trace::program(stats));
    let says = trace::summary(stats)
        .into_iter()
        .take(4)
        .map(|(what, says)| format!("{what}: {says}"));
    let heads = [Head {
        label: None,
        verdict: program.clone(),
        says: says.collect::<Vec<_>>().join("; "),
    }];
    let mut sections = vec![
        summary(stats),
        alive(stats),
        sizes(stats),
        lifetimes(stats),
        growth(stats),
        threads(stats),
        recorded(stats),
    ];
    sections.retain(|section| !section.views.is_empty() || !section.tables.is_empty());
    lay_out(
        &format!("heapmark trace: {program}"),
        &heads,
        &entries,
        vec![program],
        &sections,
    )
}

fn summary(stats: &Stats) -> Section {
    let rows = trace::summary(stats)
        .into_iter()
        .map(|(what, says)| vec![what.to_owned(), says])
        .collect();
    let calls = stats
        .calls
        .iter()
        .map(|(call, times)| vec![call.to_string(), times.to_string()])
        .collect();
    let mut calls = PageTable::of_words("Calls", &["function", "times"], calls);
    calls.columns[1].number = true;
    Section {
        id: "summary",
        heading: "In short".into(),
        tables: vec![
            PageTable::of_words("", &["of", "what the trace says"], rows),
            calls,
        ],
        ..Section::default()
    }
}

fn alive(stats: &Stats) -> Section {
    let unit = units::size(stats.peak_live_bytes as f64);
    let timed = stats.duration_ns > 0;
    let x: Vec<f64> = stats
        .timeline
        .iter()
        .map(|it| {
            if timed {
                short(it.ns as f64 / 1e9)
            } else {
                it.event as f64
            }
        })
        .collect();
    let y = stats
        .timeline
        .iter()
        .map(|point| short(point.most_bytes as f64 / unit.size))
        .collect();
    let drawn = Scatter::new(x, y)
        .mode(Mode::Lines)
        .name("bytes")
        .hover_info(HoverInfo::All);
    let layout = Layout::new()
        .x_axis(
            axes::titled(if timed { "s since the start" } else { "events" })
                .range_mode(RangeMode::ToZero),
        )
        .y_axis(axes::titled(&format!("alive, {}", unit.name)).range_mode(RangeMode::ToZero));
    let mut data = Data::new(&["event", "ns", "least_live_bytes", "most_live_bytes"]);
    for point in &stats.timeline {
        data.row([
            point.event.into(),
            point.ns.into(),
            point.least_bytes.into(),
            point.most_bytes.into(),
        ]);
    }
    let trace = Trace {
        entry: Some(BYTES),
        run: 0,
        drawn,
    };
    section(
        "alive",
        "Alive over time",
        "Bytes requested and not yet freed. An allocator needs at least this much.",
        vec![Plot {
            title: "Bytes alive".into(),
            traces: vec![trace],
            layout,
        }],
        data,
    )
}

fn sizes(stats: &Stats) -> Section {
    let powers = stats.sizes.powers();
    let mut data = Data::new(&["size_from_bytes", "size_below_bytes", "objects", "bytes"]);
    for (power, (objects, bytes)) in powers.iter().enumerate() {
        data.row([
            low(power).into(),
            low(power + 1).into(),
            (*objects).into(),
            number(*bytes),
        ]);
    }
    let objects = powers.iter().map(|(objects, _)| *objects as f64).collect();
    let bytes = powers.iter().map(|(_, bytes)| *bytes).collect();
    let text = "How large objects are, by powers of two; then how much of all bytes each size makes up. Many small objects cost time, \
                few large ones memory.";
    let plots = vec![
        powers_plot(
            "Objects by size",
            OBJECTS,
            "size",
            objects,
            "of all objects",
        ),
        powers_plot("Bytes by size", BYTES, "size", bytes, "of all bytes"),
    ];
    section("sizes", "Sizes", text, plots, data)
}

fn lifetimes(stats: &Stats) -> Section {
    let of = |histogram: &Histogram| {
        histogram
            .powers()
            .iter()
            .map(|(count, _)| *count as f64)
            .collect::<Vec<_>>()
    };
    let mut data = Data::new(&["measure", "from", "below", "objects"]);
    let mut plots = vec![powers_plot(
        "Objects by what was allocated while they lived",
        OBJECTS,
        "bytes allocated meanwhile",
        of(&stats.lifetimes_bytes),
        "of all that ended",
    )];
    for (measure, histogram) in [
        ("allocated_bytes", &stats.lifetimes_bytes),
        ("ns", &stats.lifetimes_ns),
    ] {
        for (power, (count, _)) in histogram.powers().iter().enumerate() {
            data.row([
                measure.into(),
                low(power).into(),
                low(power + 1).into(),
                (*count).into(),
            ]);
        }
    }
    if stats.duration_ns > 0 {
        let counts = of(&stats.lifetimes_ns);
        plots.push(bars(
            "Objects by time",
            OBJECTS,
            "lifetime",
            counts,
            "of all that ended",
            |power| round(&units::duration(low(power) as f64)),
        ));
    }
    let text = "Objects that ended, by how long they lived: in bytes that were allocated meanwhile, which no clock disturbs, and in time, \
                as finely as the trace looks at the clock: 0 is \
                between two looks. What never ended is not here.";
    section("lifetimes", "Lifetimes", text, plots, data)
}

fn growth(stats: &Stats) -> Section {
    let mut data = Data::new(&["moves", "objects"]);
    stats
        .realloc_chains
        .buckets()
        .for_each(|bucket| data.row([number(bucket.mean.round()), bucket.count.into()]));
    if data.rows.is_empty() {
        return Section::default();
    }
    let counts = stats
        .realloc_chains
        .powers()
        .iter()
        .map(|(count, _)| *count as f64)
        .collect();
    let plot = bars(
        "Objects by times that realloc gave them a new size",
        OBJECTS,
        "times",
        counts,
        "of all that grew",
        |power| low(power).to_string(),
    );
    let text = "An object that realloc enlarges again and again climbs a ladder; an allocator that leaves room above it need not copy.";
    section("growth", "Growth", text, vec![plot], data)
}

fn threads(stats: &Stats) -> Section {
    let mut threads = stats.threads.clone();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.allocations + thread.frees));
    let mut data = Data::new(&[
        "thread",
        "allocations",
        "allocated_bytes",
        "frees",
        "frees_of_others",
        "freed_by_others",
        "first_ns",
        "last_ns",
    ]);
    for it in &threads {
        let numbers = [
            it.allocations,
            it.allocated_bytes,
            it.frees,
            it.frees_of_others,
            it.freed_by_others,
            it.first_ns,
        ];
        data.row(
            std::iter::once(it.thread.into())
                .chain(numbers.map(Into::into))
                .chain([it.last_ns.into()]),
        );
    }
    threads.truncate(MOST_THREADS);
    let timed = threads.iter().all(|it| it.last_ns > it.first_ns);
    // A thread with a single timestamp has no rate.
    let rate = |count: u64, seconds: f64| {
        if timed {
            short(count as f64 / seconds / 1e6)
        } else {
            count as f64
        }
    };
    let of = |count: fn(&heapmark_trace::stats::Thread) -> u64| -> Vec<f64> {
        threads
            .iter()
            .map(|it| rate(count(it), (it.last_ns - it.first_ns) as f64 / 1e9))
            .collect()
    };
    let names: Vec<String> = threads.iter().map(|it| format!("t{}", it.thread)).collect();
    let bar = |entry, name: &str, values: Vec<f64>| Trace {
        entry: Some(entry),
        run: 0,
        drawn: Bar::new(values, names.clone())
            .name(name)
            .orientation(plotly::common::Orientation::Horizontal)
            .hover_info(HoverInfo::All),
    };
    let traces = vec![
        bar(
            OBJECTS,
            "allocations and frees",
            of(|it| it.allocations + it.frees),
        ),
        bar(
            OTHERS,
            "frees of other threads' objects",
            of(|it| it.frees_of_others),
        ),
    ];
    let title = if timed {
        "millions per second of its life"
    } else {
        "times"
    };
    let layout = Layout::new()
        .x_axis(axes::titled(title).range_mode(RangeMode::ToZero))
        .y_axis(axes::names());
    let text = "What each thread allocates and frees, the busiest first; in front of it, how much of that are objects of other threads, \
                which most allocators free at a higher cost.";
    let plot = Plot {
        title: "Allocations and frees by thread".into(),
        traces,
        layout,
    };
    let mut section = section("threads", "Threads", text, vec![plot], data);
    if !stats.pairs.is_empty() {
        let rows = stats.pairs.iter().map(|pair| {
            vec![
                format!("t{}", pair.owner),
                format!("t{}", pair.by),
                pair.frees.to_string(),
            ]
        });
        let mut table = PageTable::of_words(
            "Objects that another thread frees",
            &["allocated by", "freed by", "times"],
            rows.collect(),
        );
        table.columns[2] = Column {
            number: true,
            ..table.columns[2].clone()
        };
        section.tables.push(table);
    }
    section
}

fn recorded(stats: &Stats) -> Section {
    let rows: Vec<Vec<String>> = stats
        .head
        .iter()
        .map(|(key, value)| vec![key.clone(), value.clone()])
        .collect();
    let tables = if rows.is_empty() {
        Vec::new()
    } else {
        vec![PageTable::of_words("", &["item", "recorded"], rows)]
    };
    Section {
        id: "recorded",
        heading: "Where it was recorded".into(),
        tables,
        ..Section::default()
    }
}

fn section(id: &'static str, heading: &str, text: &str, plots: Vec<Plot>, data: Data) -> Section {
    let views = if data.rows.is_empty() {
        Vec::new()
    } else {
        vec![View {
            workload: None,
            plots,
            data,
        }]
    };
    Section {
        id,
        heading: heading.into(),
        text: vec![text.into()],
        views,
        ..Section::default()
    }
}

/// The lower end of a power of two: 0, 1, 2, 4, …
fn low(power: usize) -> u64 {
    match power {
        0 => 0,
        power => 1u64.checked_shl(power as u32 - 1).unwrap_or(u64::MAX),
    }
}

fn powers_plot(title: &str, entry: usize, axis: &str, counts: Vec<f64>, of: &str) -> Plot {
    bars(title, entry, axis, counts, of, |power| {
        round(&units::bytes(low(power) as f64))
    })
}

/// `8 KiB` from `8.00 KiB`: a border needs no trailing zeros.
fn round(word: &str) -> String {
    word.replace(".00 ", " ").replace(".0 ", " ")
}

/// A bar for each power of two, as its share.
fn bars(
    title: &str,
    entry: usize,
    axis: &str,
    counts: Vec<f64>,
    of: &str,
    word: impl Fn(usize) -> String,
) -> Plot {
    let all: f64 = counts.iter().sum();
    let first = counts.iter().position(|count| *count > 0.0).unwrap_or(0);
    let places: Vec<usize> = (first..counts.len()).collect();
    let share = |place: &usize| counts[*place] / all.max(1.0);
    let hover = |place: &usize| {
        format!(
            "<b>{} to {}</b><br>{} {of}",
            word(*place),
            word(place + 1),
            units::percent(share(place))
        )
    };
    let drawn = Bar::new(
        places.clone(),
        places
            .iter()
            .map(|place| short(share(place) * 100.0))
            .collect(),
    )
    .name(title)
    .hover_info(HoverInfo::Text)
    .hover_text_array(places.iter().map(hover).collect());
    let marks: Vec<usize> = places
        .iter()
        .copied()
        .step_by(places.len().div_ceil(MOST_MARKS).max(1))
        .collect();
    let named: Axis = axes::titled(axis)
        .tick_values(marks.iter().map(|place| *place as f64).collect())
        .tick_text(marks.iter().map(|place| word(*place)).collect());
    let layout = Layout::new()
        .x_axis(named)
        .y_axis(axes::titled(&format!("% {of}")).range_mode(RangeMode::ToZero));
    Plot {
        title: title.into(),
        traces: vec![Trace {
            entry: Some(entry),
            run: 0,
            drawn,
        }],
        layout,
    }
}
