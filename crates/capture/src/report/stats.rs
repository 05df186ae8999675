//! The statistics of a trace on the terminal, as JSON, and as one CSV.

use heapmark_core::report::screen::numbers_table;
use heapmark_core::report::text::{self, count, plain};
use heapmark_core::report::units;
use heapmark_trace::stats::{Histogram, Stats, Thread};
use heapmark_trace::{Head, JointRow, ended};
use std::cmp::Reverse;

/// Threads that the terminal shows; the page and the files show all.
const MOST_THREADS: usize = 16;

/// The summary for a terminal.
pub fn stats(stats: &Stats) -> String {
    let mut out = format!("{}\n\n", plain(&program(stats)));
    for (what, says) in summary(stats) {
        out += &format!("{what:<22}{says}\n");
    }
    let calls = calls(stats);
    let sizes = sizes(&stats.sizes);
    format!("{out}\n{calls}\n{sizes}\n{}", threads(&stats.threads))
}

/// Everything, for programs.
pub fn stats_json(stats: &Stats) -> String {
    text::json(stats)
}

fn head(stats: &Stats) -> Head {
    let mut head = Head::default();
    for (key, value) in &stats.head {
        head.set_escaped(key, value);
    }
    head
}

/// The command line that was recorded.
pub fn program(stats: &Stats) -> String {
    let head = head(stats);
    let words: Vec<String> = (0..)
        .map_while(|place| head.text(&format!("argv.{place}")))
        .collect();
    match head.text("imported") {
        _ if !words.is_empty() => words.join(" "),
        Some(from) => format!("imported from {from}"),
        None => "a trace without the name of its program".into(),
    }
}

/// Lines of the summary, each with its name.
pub fn summary(stats: &Stats) -> Vec<(&'static str, String)> {
    let bytes = |bytes: u64| units::bytes(bytes as f64);
    let share = |part: u64, whole: u64| units::percent(part as f64 / whole.max(1) as f64);
    let middle = |histogram: &Histogram, word: fn(f64) -> String| {
        let quantile = |share| {
            let number = histogram.quantile(share);
            number.map_or("-".into(), |number| word(number as f64))
        };
        format!("median {}, 99 % at most {}", quantile(0.5), quantile(0.99))
    };
    let calls: u64 = stats.calls.values().sum();
    let others = match stats.events.saturating_sub(calls) {
        0 => String::new(),
        others => format!(
            ", and {} of threads, time and pages",
            count(others, "event")
        ),
    };
    let duration = match stats.duration_ns {
        0 => "not known".into(),
        ns => units::duration(ns as f64),
    };
    let mut lines = Vec::new();
    let mut line = |what, says: String| lines.push((what, says));
    line("calls", format!("{calls}{others}"));
    line("duration", duration);
    let allocated = bytes(stats.allocated_bytes);
    line(
        "allocated",
        format!("{} objects, {allocated}", stats.allocations),
    );
    let peak = bytes(stats.peak_live_bytes);
    let event = stats.peak_event;
    line(
        "alive at most",
        format!(
            "{peak} at event {event}; {} objects",
            stats.peak_live_objects
        ),
    );
    let end = bytes(stats.end_live_bytes);
    line(
        "alive at the end",
        format!("{end}, {} objects", stats.end_live_objects),
    );
    line("threads", stats.threads.len().to_string());
    if stats.threads.len() > 1 {
        let frees: u64 = stats.threads.iter().map(|it| it.frees).sum();
        let remote = stats.threads.iter().map(|it| it.frees_of_others).sum();
        let share = share(remote, frees);
        line(
            "freed by others",
            format!("{share} of {}", count(frees, "free")),
        );
    }
    line("sizes", middle(&stats.sizes, units::bytes));
    let lifetimes = middle(&stats.lifetimes_bytes, units::bytes);
    line("lifetimes", format!("{lifetimes} of further allocations"));
    let grown = stats.realloc_chains.count();
    if grown > 0 {
        let objects = count(grown, "object");
        let times = middle(&stats.realloc_chains, |number| format!("{number:.0}"));
        line(
            "growth",
            format!("{objects} given another size by realloc; times: {times}"),
        );
    }
    let by_calls = stats.settings.iter().map(|(setting, times)| match times {
        1 => format!("mallopt {setting}"),
        _ => format!("mallopt {setting} ({times} times)"),
    });
    let by_variables = stats.head.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix("env.")?;
        Some(format!("{name}={value}"))
    });
    let settings: Vec<String> = by_calls.chain(by_variables).collect();
    if !settings.is_empty() {
        line("settings of malloc", settings.join(", "));
    }
    let (touched, pages) = stats.touched_pages;
    if pages > 0 {
        let share = share(touched, pages);
        line("touched", format!("{share} of the pages of large objects"));
    }
    if stats.peak_rss_bytes > 0 {
        let share = share(stats.peak_live_bytes, stats.peak_rss_bytes);
        let peak = bytes(stats.peak_rss_bytes);
        line(
            "malloc's part",
            format!("{share} of the process's peak of {peak}"),
        );
    }
    if stats.inherited > 0 {
        line("from before", count(stats.inherited, "object"));
    }
    if stats.dropped > 0 {
        line("lost by the recorder", count(stats.dropped, "event"));
    }
    if let Some(words) = ended(&head(stats)) {
        line("end", words);
    }
    lines
}

fn calls(stats: &Stats) -> String {
    let mut calls: Vec<_> = stats.calls.iter().collect();
    calls.sort_by_key(|(_, times)| Reverse(**times));
    let rows = calls
        .iter()
        .map(|(name, times)| [name.to_string(), times.to_string()]);
    numbers_table(["call", "times"], 1, rows)
}

/// The lower end of a power of two of a histogram: 0, 1, 2, 4, …
pub fn low(power: usize) -> u64 {
    match power {
        0 => 0,
        power => 1u64.checked_shl(power as u32 - 1).unwrap_or(u64::MAX),
    }
}

/// The same in words, `8 KiB` from `8.00 KiB`: a border needs no trailing zeros.
pub fn border(power: usize, word: fn(f64) -> String) -> String {
    word(low(power) as f64)
        .replace(".00 ", " ")
        .replace(".0 ", " ")
}

fn sizes(sizes: &Histogram) -> String {
    let powers = sizes.powers();
    let count = sizes.count().max(1) as f64;
    let all = powers.iter().map(|(_, bytes)| bytes).sum::<f64>().max(1.0);
    let rows = powers
        .iter()
        .enumerate()
        .filter(|(_, (objects, _))| *objects > 0)
        .map(|(power, (objects, bytes))| {
            let [from, below] = [power, power + 1].map(|power| border(power, units::bytes));
            let [of_objects, of_bytes] = [*objects as f64 / count, bytes / all].map(units::percent);
            [from, below, objects.to_string(), of_objects, of_bytes]
        });
    let header = ["size from", "below", "objects", "of objects", "of bytes"];
    numbers_table(header, 4, rows)
}

fn threads(threads: &[Thread]) -> String {
    let mut threads = threads.to_vec();
    threads.sort_by_key(|thread| Reverse(thread.allocations + thread.frees));
    let rest = threads.len().saturating_sub(MOST_THREADS);
    let rows = threads.iter().take(MOST_THREADS).map(|it| {
        [
            format!("t{}", it.thread),
            it.allocations.to_string(),
            units::bytes(it.allocated_bytes as f64),
            it.frees.to_string(),
            it.frees_of_others.to_string(),
            it.freed_by_others.to_string(),
        ]
    });
    let header = [
        "thread",
        "allocations",
        "bytes",
        "frees",
        "of others' objects",
        "own freed by others",
    ];
    let mut out = numbers_table(header, 5, rows);
    if rest > 0 {
        out += &format!("and {}\n", count(rest, "more thread"));
    }
    out
}

/// Sizes as a table that a workload can draw from, or lifetimes: columns of whole numbers.
pub fn histogram_csv(histogram: &Histogram, column: &str) -> String {
    // Buckets whose rounded means are equal become one row.
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for bucket in histogram.buckets() {
        let number = bucket.mean.round() as u64;
        match rows.last_mut() {
            Some((same, count)) if *same == number => *count += bucket.count,
            _ => rows.push((number, bucket.count)),
        }
    }
    let rows = rows
        .iter()
        .map(|(number, count)| format!("{number},{count}\n"));
    format!("{column},count\n{}", rows.collect::<String>())
}

/// Sizes with lifetimes: means of each row; `remote` is in per cent.
pub fn joint_csv(rows: &[JointRow]) -> String {
    let rows = rows.iter().map(|row| {
        let mean = |sum: u128| (sum as f64 / row.count as f64).round();
        let remote = (row.freed_remotely as f64 / row.count as f64 * 1e4).round() / 100.0;
        let (size, lifetime) = (mean(row.size_sum), mean(row.lifetime_sum));
        format!("{size},{lifetime},{},{remote}\n", row.count)
    });
    format!(
        "size,lifetime_bytes,weight,remote\n{}",
        rows.collect::<String>()
    )
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
