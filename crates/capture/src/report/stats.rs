//! The statistics of a trace on the terminal, as JSON, and as one CSV.

use heapmark_core::metric::Unit;
use heapmark_core::report::document::{Block, Cell, Mark, Note, Sheet};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{self, count};
use heapmark_core::report::units::{self, grouped};
use heapmark_trace::stats::{Histogram, Stats, Thread};
use heapmark_trace::{Head, JointRow, ended};
use std::cmp::Reverse;

/// The most threads that the terminal shows; the page and the files show all.
const MOST_THREADS: usize = 16;

/// The statistics as tables for the terminal.
pub fn stats(stats: &Stats) -> Vec<Block> {
    let program = Note::marked(program(stats), Mark::Strong);
    let sheets = [
        summary_table(stats),
        calls(stats),
        sizes(&stats.sizes),
        threads(&stats.threads),
    ];
    let sheets = sheets.into_iter().map(Block::Sheet);
    [Block::Text(program)].into_iter().chain(sheets).collect()
}

/// All statistics as JSON, for other programs.
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
            ", and {} events of threads, time and pages",
            grouped(others)
        ),
    };
    let duration = match stats.duration_ns {
        0 => "not known".into(),
        ns => units::duration(ns as f64),
    };
    let mut lines = Vec::new();
    let mut line = |what, says: String| lines.push((what, says));
    line("calls", format!("{}{others}", grouped(calls)));
    line("duration", duration);
    let allocated = bytes(stats.allocated_bytes);
    line(
        "allocated",
        format!("{} objects, {allocated}", grouped(stats.allocations)),
    );
    let peak = bytes(stats.peak_live_bytes);
    let event = stats.peak_event;
    line(
        "alive at most",
        format!(
            "{peak} at event {}; {} objects",
            grouped(event),
            grouped(stats.peak_live_objects)
        ),
    );
    let end = bytes(stats.end_live_bytes);
    line(
        "alive at the end",
        format!("{end}, {} objects", grouped(stats.end_live_objects)),
    );
    line("threads", stats.threads.len().to_string());
    if stats.threads.len() > 1 {
        let frees: u64 = stats.threads.iter().map(|thread| thread.frees).sum();
        let remote = stats
            .threads
            .iter()
            .map(|thread| thread.frees_of_others)
            .sum();
        let share = share(remote, frees);
        line(
            "freed by others",
            format!("{share} of {} frees", grouped(frees)),
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
        let peak = bytes(stats.peak_rss_bytes);
        let part = match stats.peak_live_bytes <= stats.peak_rss_bytes {
            true => {
                let share = share(stats.peak_live_bytes, stats.peak_rss_bytes);
                format!("{share} of the process's peak of {peak}")
            }
            false => {
                format!("the process's peak was {peak}: not all of what was alive was touched")
            }
        };
        line("malloc's part", part);
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

/// The statistics as a table.
pub fn summary_table(stats: &Stats) -> Sheet {
    let columns = ["about", "what the trace says"];
    let row = |(what, says): (&str, String)| [Cell::from(what), Cell::text(says)];
    Sheet::new("", &columns, summary(stats).into_iter().map(row))
}

/// How often each function was called.
pub fn calls(stats: &Stats) -> Sheet {
    let mut calls: Vec<_> = stats.calls.iter().collect();
    calls.sort_by_key(|(_, times)| Reverse(**times));
    let row = |(name, times): (_, &u64)| [Cell::from(ToString::to_string(name)), (*times).into()];
    Sheet::new("Calls", &["call", "times"], calls.into_iter().map(row))
}

/// The lower end of a power of two of a histogram: 0, 1, 2, 4, …
pub fn low(power: usize) -> u64 {
    match power {
        0 => 0,
        power => 1u64.checked_shl(power as u32 - 1).unwrap_or(u64::MAX),
    }
}

/// A bucket's border in words, without trailing zeros: `8 KiB` for `8.00 KiB`.
pub fn border(power: usize, word: fn(f64) -> String) -> String {
    word(low(power) as f64)
        .replace(".00 ", " ")
        .replace(".0 ", " ")
}

fn sizes(sizes: &Histogram) -> Sheet {
    let powers = sizes.powers();
    let count = sizes.count().max(1) as f64;
    let all = powers.iter().map(|(_, bytes)| bytes).sum::<f64>().max(1.0);
    let rows = powers
        .iter()
        .enumerate()
        .filter(|(_, (objects, _))| *objects > 0)
        .map(|(power, (objects, bytes))| -> [Cell; 5] {
            [
                border(power, units::bytes).into(),
                border(power + 1, units::bytes).into(),
                (*objects).into(),
                (*objects as f64 / count, Unit::Share).into(),
                (bytes / all, Unit::Share).into(),
            ]
        });
    let columns = ["size from", "below", "objects", "of objects", "of bytes"];
    Sheet::new("Sizes", &columns, rows)
}

fn threads(threads: &[Thread]) -> Sheet {
    let mut threads: Vec<&Thread> = threads.iter().collect();
    threads.sort_by_key(|thread| Reverse(thread.allocations + thread.frees));
    let rest = threads.len().saturating_sub(MOST_THREADS);
    threads.truncate(MOST_THREADS);
    let mut table = SheetOf::new("Threads", threads);
    table.add("thread", |thread| format!("t{}", thread.thread));
    table.add("allocations", |thread| thread.allocations);
    table.add("bytes", |thread| {
        (thread.allocated_bytes as f64, Unit::Bytes)
    });
    table.add("frees", |thread| thread.frees);
    table.add("of others' objects", |thread| thread.frees_of_others);
    table.add("own freed by others", |thread| thread.freed_by_others);
    let more = (rest > 0).then(|| format!("and {}", count(rest, "more thread")));
    table.sheet.remark(more);
    table.sheet
}

/// Returns sizes as a table that a workload can draw from, or lifetimes: columns of whole numbers.
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
