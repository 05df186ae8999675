//! The statistics of a trace on the terminal, as JSON, and as one CSV.

use crate::report::text::{self, count, plain};
use crate::report::units;
use comfy_table::{CellAlignment, Table, presets};
use heapmark_trace::stats::{Histogram, Stats};
use heapmark_trace::{Head, ended};

/// Threads that the terminal shows; the page and the files show all.
const MOST_THREADS: usize = 16;

/// The summary for a terminal.
pub fn stats(stats: &Stats) -> String {
    let mut out = format!("{}\n\n", plain(&program(stats)));
    for (what, says) in summary(stats) {
        out.push_str(&format!("{what:<22}{says}\n"));
    }
    out.push_str(&format!("\n{}", calls(stats)));
    out.push_str(&format!("\n{}", sizes(&stats.sizes)));
    out.push_str(&format!("\n{}", threads(stats)));
    out
}

/// Everything, for programs.
pub fn stats_json(stats: &Stats) -> String {
    text::json(stats)
}

fn head(stats: &Stats) -> Head {
    let mut head = Head::default();
    stats
        .head
        .iter()
        .for_each(|(key, value)| head.set_escaped(key, value));
    head
}

/// The command line that was recorded.
pub(in crate::report) fn program(stats: &Stats) -> String {
    let head = head(stats);
    let words: Vec<String> = (0..)
        .map_while(|place| head.text(&format!("argv.{place}")))
        .collect();
    match (words.is_empty(), head.text("imported")) {
        (false, _) => words.join(" "),
        (true, Some(from)) => format!("imported from {from}"),
        (true, None) => "a trace without the name of its program".into(),
    }
}

/// Lines of the summary, each with its name.
pub(in crate::report) fn summary(stats: &Stats) -> Vec<(&'static str, String)> {
    let bytes = |bytes: u64| units::bytes(bytes as f64);
    let share = |part: u64, whole: u64| units::percent(part as f64 / whole.max(1) as f64);
    let calls: u64 = stats.calls.values().sum();
    let others = match stats.events.saturating_sub(calls) {
        0 => String::new(),
        others => format!(
            ", and {} of threads, time and pages",
            count(others as usize, "event")
        ),
    };
    let mut lines = vec![
        ("calls", format!("{calls}{others}")),
        (
            "duration",
            if stats.duration_ns > 0 {
                units::duration(stats.duration_ns as f64)
            } else {
                "not known".into()
            },
        ),
        (
            "allocated",
            format!(
                "{} objects, {}",
                stats.allocations,
                bytes(stats.allocated_bytes)
            ),
        ),
        (
            "alive at most",
            format!(
                "{} at event {}; {} objects",
                bytes(stats.peak_live_bytes),
                stats.peak_event,
                stats.peak_live_objects
            ),
        ),
        (
            "alive at the end",
            format!(
                "{}, {} objects",
                bytes(stats.end_live_bytes),
                stats.end_live_objects
            ),
        ),
        ("threads", stats.threads.len().to_string()),
    ];
    let (frees, remote) = stats.threads.iter().fold((0, 0), |sum, it| {
        (sum.0 + it.frees, sum.1 + it.frees_of_others)
    });
    if stats.threads.len() > 1 {
        lines.push((
            "freed by others",
            format!(
                "{} of {}",
                share(remote, frees),
                count(frees as usize, "free")
            ),
        ));
    }
    let median = |histogram: &Histogram, word: fn(f64) -> String| {
        let quantile = |share| {
            histogram
                .quantile(share)
                .map_or("-".into(), |number| word(number as f64))
        };
        format!("median {}, 99 % at most {}", quantile(0.5), quantile(0.99))
    };
    lines.push(("sizes", median(&stats.sizes, units::bytes)));
    lines.push((
        "lifetimes",
        format!(
            "{} of further allocations",
            median(&stats.lifetimes_bytes, units::bytes)
        ),
    ));
    if stats.realloc_chains.count() > 0 {
        let times = |number: f64| format!("{number:.0}");
        let says = format!(
            "{} given another size by realloc; times: {}",
            count(stats.realloc_chains.count() as usize, "object"),
            median(&stats.realloc_chains, times)
        );
        lines.push(("growth", says));
    }
    if stats.touched_pages.1 > 0 {
        lines.push((
            "touched",
            format!(
                "{} of the pages of large objects",
                share(stats.touched_pages.0, stats.touched_pages.1)
            ),
        ));
    }
    if stats.peak_rss_bytes > 0 {
        lines.push((
            "malloc's part",
            format!(
                "{} of the process's peak of {}",
                share(stats.peak_live_bytes, stats.peak_rss_bytes),
                bytes(stats.peak_rss_bytes)
            ),
        ));
    }
    if stats.inherited > 0 {
        lines.push(("from before", count(stats.inherited as usize, "object")));
    }
    if stats.dropped > 0 {
        lines.push((
            "lost by the recorder",
            count(stats.dropped as usize, "event"),
        ));
    }
    lines.extend(ended(&head(stats)).map(|words| ("end", words)));
    lines
}

fn calls(stats: &Stats) -> String {
    let mut calls: Vec<_> = stats.calls.iter().collect();
    calls.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    table(
        &["call", "times"],
        calls
            .iter()
            .map(|(name, count)| vec![name.to_string(), count.to_string()]),
    )
}

/// The lower and the upper end of a power of two of a histogram.
fn ends(power: usize) -> [String; 2] {
    let word = |bytes: f64| units::bytes(bytes).replace(".00 ", " ").replace(".0 ", " ");
    let from = if power == 0 {
        0.0
    } else {
        (power as f64 - 1.0).exp2()
    };
    [word(from), word((power as f64).exp2())]
}

fn sizes(sizes: &Histogram) -> String {
    let powers = sizes.powers();
    let (count, all) = (
        sizes.count().max(1) as f64,
        powers.iter().map(|(_, bytes)| bytes).sum::<f64>().max(1.0),
    );
    let rows = powers
        .iter()
        .enumerate()
        .filter(|(_, (objects, _))| *objects > 0)
        .map(|(power, (objects, bytes))| {
            let [from, below] = ends(power);
            let shares = [*objects as f64 / count, bytes / all].map(units::percent);
            [from, below, objects.to_string()]
                .into_iter()
                .chain(shares)
                .collect()
        });
    table(
        &["size from", "below", "objects", "of objects", "of bytes"],
        rows,
    )
}

fn threads(stats: &Stats) -> String {
    let mut threads = stats.threads.clone();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.allocations + thread.frees));
    let rows = threads.iter().take(MOST_THREADS).map(|it| {
        let numbers = [
            it.allocations,
            it.frees,
            it.frees_of_others,
            it.freed_by_others,
        ]
        .map(|number| number.to_string());
        let mut row = vec![format!("t{}", it.thread)];
        row.extend(numbers);
        row.insert(2, units::bytes(it.allocated_bytes as f64));
        row
    });
    let columns = [
        "thread",
        "allocations",
        "bytes",
        "frees",
        "of others' objects",
        "own freed by others",
    ];
    let rest = threads.len().saturating_sub(MOST_THREADS);
    let more = if rest > 0 {
        format!("and {}\n", count(rest, "more thread"))
    } else {
        String::new()
    };
    format!("{}{more}", table(&columns, rows))
}

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).force_no_tty();
    table.set_header(columns.to_vec());
    table.add_rows(rows);
    table
        .column_iter_mut()
        .skip(1)
        .for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// Sizes as a table that a workload can draw from, or lifetimes: columns of whole numbers.
pub fn histogram_csv(histogram: &Histogram, column: &str) -> String {
    let mut out = format!("{column},count\n");
    let mut last: Option<(u64, u64)> = None;
    // Buckets whose rounded means are equal become one row.
    for bucket in histogram.buckets() {
        let number = bucket.mean.round() as u64;
        match &mut last {
            Some((same, count)) if *same == number => *count += bucket.count,
            _ => {
                last.iter()
                    .for_each(|(number, count)| out.push_str(&format!("{number},{count}\n")));
                last = Some((number, bucket.count));
            }
        }
    }
    last.iter()
        .for_each(|(number, count)| out.push_str(&format!("{number},{count}\n")));
    out
}

/// Live bytes and blocks over time.
pub fn timeline_csv(stats: &Stats) -> String {
    let rows = stats.timeline.iter().map(|point| {
        format!(
            "{},{},{},{}\n",
            point.event, point.ns, point.least_bytes, point.most_bytes
        )
    });
    format!(
        "event,ns,least_live_bytes,most_live_bytes\n{}",
        rows.collect::<String>()
    )
}
