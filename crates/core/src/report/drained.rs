//! The memory that servers hold after their load (`try --drain`): a row for each server, and in words what has grown.

use super::document::{Cell, Sheet};
use super::factor;
use super::sheet::SheetOf;
use super::text::count;
use super::units;
use crate::analyse::{Analysis, DrainMoment, Drained, GrowthKind, GrowthShape, GrowthWay, Table};
use crate::execute::user_command::PROBES;
use crate::metric::Unit;

/// The tables of a run: none if no server was watched.
pub fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    analysis.cases.iter().filter_map(of_case).collect()
}

fn of_case(case: &Table) -> Option<Sheet> {
    let all = &case.command.as_ref()?.drained;
    let first = all.first()?;
    let heading = format!("after the load{}", factor::words(case));
    let mut table = SheetOf::new(heading, all);
    table.add("row", |server: &Drained| Cell::text(server.row.as_str()));
    table.add("live, end", |server| {
        at_end(server).and_then(|end| end.live_bytes).map(size)
    });
    table.add("RSS before", |server| size(server.before.rss_bytes));
    for (place, moment) in first.after.iter().enumerate() {
        let title = match place {
            0 => "at end".to_owned(),
            _ => format!("+{} s", moment.after_s),
        };
        table.add(title, move |server: &Drained| {
            server.after.get(place).map(|moment| size(moment.rss_bytes))
        });
    }
    table.add("PSS, end", |server| {
        at_end(server).map(|end| size(end.pss_bytes))
    });
    table.add("above live, MiB s", |server| {
        server
            .above_live_byte_s
            .map(|byte_s| Cell::from((byte_s / MIB, Unit::Count)))
    });
    table.add("what stays", |server| server.growth.word());
    let mut sheet = table.sheet;
    sheet.remark(all.iter().map(sentence));
    sheet.remark([
        "before: just before the load. at end, +1 s: after the client has ended, in the check. live: blocks of malloc as glibc counts \
         them, in a process of its own. above live: RSS beyond that, summed over the time after the load."
            .to_owned(),
    ]);
    Some(sheet)
}

const MIB: f64 = (1 << 20) as f64;

fn size(bytes: f64) -> Cell {
    Cell::from((bytes, Unit::Bytes))
}

fn at_end(server: &Drained) -> Option<&DrainMoment> {
    server.after.last()
}

impl GrowthKind {
    /// The kind of growth, in a word or two.
    pub fn word(self) -> &'static str {
        match self {
            GrowthKind::None => "nothing",
            GrowthKind::Leak => "leak",
            GrowthKind::Data => "data",
            GrowthKind::Kept => "kept",
            GrowthKind::HugePages => "huge pages",
            GrowthKind::Threads => "threads keep",
            GrowthKind::Files => "files",
            GrowthKind::Unknown => "not known",
        }
    }
}

/// A sentence about a server: what has grown, by how much, and what to do next.
fn sentence(server: &Drained) -> String {
    let Some(end) = at_end(server) else {
        return format!("{}: not known", server.row);
    };
    let mib = units::bytes;
    let grown = mib((end.rss_bytes - server.before.rss_bytes).max(0.0));
    let after = format!("{} s after the load", end.after_s);
    let live = |moment: &DrainMoment| moment.live_bytes.map_or("an unknown amount".into(), mib);
    let (before, now) = (live(&server.before), live(end));
    let words = match server.growth {
        GrowthKind::None => format!("next to nothing of its load stays {after}"),
        GrowthKind::Leak => format!(
            "leak: live memory grew from {before} to {now} to the end of the load, and is live {after}: blocks that nobody frees, or \
             a cache without a bound; another allocator does not change that"
        ),
        GrowthKind::Data => format!(
            "data: {now} are live {after}, {before} before it, and that did not grow in the second half of the load"
        ),
        GrowthKind::Kept => format!(
            "kept: {grown} more are resident {after} than before it, with {now} of blocks live: the rest is freed memory that the \
             allocator keeps, or what the program maps itself"
        ),
        GrowthKind::HugePages => format!(
            "huge pages: of {grown} that stay {after}, {} are in huge pages, with {now} live: --thp machine shows whether they \
             are why",
            mib(end.huge_bytes - server.before.huge_bytes)
        ),
        GrowthKind::Threads => format!(
            "threads keep: of {grown} that stay {after}, {} are in the arenas that threads have used ({} live now), with {now} of \
             blocks live",
            mib(end.arena_bytes - server.before.arena_bytes),
            count(end.threads, "thread")
        ),
        GrowthKind::Files => format!(
            "files: of {grown} that stay {after}, {} are mapped files and shared memory, which no allocator serves",
            mib(end.file_bytes - server.before.file_bytes)
        ),
        GrowthKind::Unknown => format!(
            "not known: {grown} stay {after}, and what of that is live is not known or explains no half"
        ),
    };
    let why = server
        .shape
        .as_ref()
        .map(|shape| by_probes(shape, end.threads));
    format!("{}: {words}{}", server.row, why.unwrap_or_default())
}

/// Why freed memory stayed resident, and what to measure next.
fn by_probes(shape: &GrowthShape, threads: f64) -> String {
    let [_, grown] = shape.grown_bytes.map(|bytes| units::bytes(bytes.max(0.0)));
    let measure = |setting: &str| {
        format!(
            "; what that costs: --server '{{variant}}' --variant plain=CMD --variant set=CMD --variant-env set={setting}"
        )
    };
    let most = count(shape.most_threads, "thread");
    let [arenas, drift] = PROBES.map(|(_, (variable, value))| format!("{variable}={value}"));
    match shape.way {
        GrowthWay::Arenas => format!(
            ". Arenas: {grown} under {arenas}{}",
            measure("MALLOC_ARENA_MAX=2")
        ),
        GrowthWay::Turnover => format!(
            ". Thread turnover: {most} at a time, {threads} now, and {grown} under {arenas}{}",
            measure("MALLOC_ARENA_MAX=2")
        ),
        GrowthWay::Drift => format!(
            ". Size drift: glibc takes large blocks from the heap once such were freed; {grown} under {drift}{}",
            measure(&drift)
        ),
        GrowthWay::Survivors => format!(
            ". Survivors: neither one arena nor a fixed MALLOC_MMAP_THRESHOLD_ ends it ({grown} at least): blocks live on among freed \
             ones, or the program maps it; -a jemalloc,mimalloc3 shows whether another allocator packs them closer"
        ),
    }
}
