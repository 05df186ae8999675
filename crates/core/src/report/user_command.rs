//! The texts of a run of a user's command: its columns, how much of it an allocator reaches, and a
//! recommendation.

use super::document::{Cell, Sheet};
use super::factor;
use super::names::{AS_SMALL, WORTH_NAMING};
use super::sheet::{Extent, SheetOf, over_baseline, time_ratio, verdict};
use super::text::{count, enclosed, list, short};
use super::units;
use super::whole::seconds;
use crate::analyse::{
    Analysis, Clock, CommandFacts, Conclusion, Interaction, Ranking, Ratio, Role, Table, TableRow,
    Verdict, distinct,
};
use crate::execute::user_command::VALUE_COST;
use crate::metric::Unit;
use crate::plan::OwnValue;
use heapmark_stats::LEAST_BLOCKS;

/// No verdict covers a difference smaller than this.
const HARDLY: f64 = 0.01;
/// A smaller share of CPU time is reported only as less than this.
const LEAST_SHARE: f64 = 0.001;
/// Fewer calls than this are reported as a number, not as a rate.
const FEW_CALLS: f64 = 10_000.0;

/// The command of a run, if it has a single one.
pub fn of(analysis: &Analysis) -> Option<(&Table, &CommandFacts)> {
    let several = analysis.real_programs().len() > 1;
    let mut cases = analysis.cases.iter().filter(|_| !several);
    cases.find_map(|case| Some((case, case.command.as_ref()?)))
}

/// The command as a heading: `python3 build.py`, or the server and its client.
pub fn heading(tried: &CommandFacts) -> String {
    let mut heading = short(&tried.line);
    if let Some(client) = &tried.client {
        heading += &format!(", driven by {}", short(client));
    }
    if tried.processes > 1 {
        heading += &format!(", {}", count(tried.processes, "process"));
    }
    heading
}

/// The time or the cost over the baseline's, which ranks the rows.
pub fn ratio(row: &TableRow) -> f64 {
    row.ranked().ratio.map_or(1.0, |ratio| ratio.ratio)
}

/// Turns a ratio of costs into one of the numbers that the command reports.
fn of_values(cost: Ratio, value: &OwnValue) -> Ratio {
    match value.higher {
        true => Ratio {
            ratio: cost.ratio.recip(),
            interval: cost.interval.map(|(low, high)| (high.recip(), low.recip())),
            ..cost
        },
        false => cost,
    }
}

/// Adds the number that rows are judged by, the ratio of this number to the baseline's and the verdict on it; then the numbers that are
/// only shown.
fn values(table: &mut SheetOf<TableRow>, case: &Table, tried: &CommandFacts) {
    for (place, value) in tried.values.iter().enumerate() {
        let figure = value.figure();
        table.add(value.title(), |row: &TableRow| {
            row.figures
                .get(&figure)
                .map(|number| (*number, Unit::Count))
        });
        if place == 0 {
            let title = format!("{} / {} [95 %]", value.name, case.baseline);
            table.add(title, |row| match row.role {
                Role::Baseline => "1 (baseline)".into(),
                _ => Cell::from(row.ranked().ratio.map(|cost| of_values(cost, value))),
            });
            table.add("verdict", |row| verdict(row, VALUE_COST));
        }
    }
}

/// The meaning of the columns of reported numbers.
fn legend_of_values(tried: &CommandFacts) -> Vec<String> {
    let sentences = tried.values.iter().map(|value| {
        let good = if value.higher { "above 1" } else { "below 1" };
        format!(
            "{}: the number that each process reports in {}; medians over processes; over the baseline's of the same block {good} is \
             better",
            value.name, value.from
        )
    });
    sentences.collect()
}

/// Adds the columns of a command's table.
pub fn columns(table: &mut SheetOf<TableRow>, case: &Table, extent: Extent) {
    let command = case
        .command
        .as_ref()
        .filter(|tried| !tried.values.is_empty());
    if let Some(tried) = command {
        values(table, case, tried);
        if extent == Extent::Full {
            table.add("wall s", |row| seconds(row, "wall_ns"));
            table.add("CPU s", |row| seconds(row, "cpu_ns"));
        }
    } else if extent == Extent::Brief {
        table.judged(&case.baseline);
        factor::columns(table, case);
        if !case.took_turns {
            cpu(table, case);
        }
    } else if case.took_turns {
        table.add("CPU s", |row| seconds(row, "cpu_ns"));
        table.judged(&case.baseline);
    } else {
        table.add("wall s", |row| seconds(row, "wall_ns"));
        table.judged(&case.baseline);
        factor::columns(table, case);
        table.add("CPU s", |row| seconds(row, "cpu_ns"));
        cpu(table, case);
    }
    resident(table);
    if extent == Extent::Brief {
        return;
    }
    table.metric("peak PSS", "peak_pss_bytes");
    let number = |row: &TableRow| row.median("processes");
    if table.rows.iter().any(|row| number(row) > Some(1.0)) {
        table.metric("largest process", "largest_process_rss_bytes");
    }
    // If all rows have the same number of processes, the heading states it.
    let mut pairs = table.rows.windows(2);
    if pairs.any(|pair| number(pair[0]) != number(pair[1])) {
        table.metric("processes", "processes");
    }
}

fn resident(table: &mut SheetOf<TableRow>) {
    table.metric("peak RSS", "peak_rss_bytes");
    table.metric_of_some("RSS at end", "end_rss_bytes");
    table.metric_of_some("at rest", "rest_rss_bytes");
}

fn cpu(table: &mut SheetOf<TableRow>, case: &Table) {
    table.add(format!("CPU / {}", case.baseline), |row| {
        over_baseline(row, "cpu_ns_per_op")
    });
}

/// The meaning of time in a run whose processes took turns.
pub fn of_turns(noun: &str, baseline: &str) -> String {
    format!(
        "in turns: each {noun} and {baseline} took turns on one CPU, in fresh processes until both had worked as long, so that \
         both met the same machine; time there is CPU time. time / {baseline}: over {baseline}'s in the same duet, below 1 is faster; \
         Hodges-Lehmann estimate and 95 % interval ([n = 5]: too few for one)."
    )
}

/// The meaning of the columns.
pub fn legend(tried: &CommandFacts, baseline: &str, took_turns: bool) -> Vec<String> {
    let wall = match tried.client {
        None if took_turns => {
            "CPU: user and system time of the command and of all that it waited for"
        }
        None => {
            "wall: of the command, from its start to its end. CPU: user and system time of it and of all that it waited for"
        }
        Some(_) => {
            "wall: of the client, from its start to its end. CPU: of the server's processes meanwhile"
        }
    };
    let values = legend_of_values(tried);
    let ratio = || match took_turns {
        true => of_turns(tried.noun(), baseline),
        false => format!(
            "time / {baseline}: wall time over {baseline}'s in the same block, below 1 is faster; Hodges-Lehmann estimate and 95 % \
             interval ([n = 5]: too few pairs for one). CPU / {baseline}: the same of CPU time."
        ),
    };
    let ratio = values.is_empty().then(ratio);
    let peak = "peak RSS: the most that all processes together were seen to hold, pages that they share counted for each; for one process \
         the kernel's own count. Peak PSS: the same, shared pages divided among those that share them, seen in a process that was \
         not timed.";
    let wall = format!("{wall}. Medians over processes.");
    let lines = [Some(wall), ratio, Some(peak.to_owned())];
    values
        .into_iter()
        .chain(lines.into_iter().flatten())
        .collect()
}

/// Builds of a command in rows, allocators in columns, and what they do to each other's gain.
pub fn crossed(case: &Table) -> Option<Sheet> {
    let tried = case.command.as_ref()?;
    if tried.interactions.is_empty() {
        return None;
    }
    let allocators = case.rows.iter().filter_map(|row| {
        let (_, allocator) = row.allocator.split_once('+')?;
        row.role.ranks().then_some(allocator)
    });
    let value = tried.values.first();
    let what = value.map_or("time", |value| &value.name);
    let heading = format!("{what} / {}, builds by allocators", case.baseline);
    let mut table = SheetOf::new(heading, &tried.variants);
    table.add("variant", |(name, _)| name);
    for allocator in distinct(allocators) {
        table.add(allocator, |(name, _): &(String, String)| {
            let row = case.row(&format!("{name}+{allocator}"));
            row.map_or_else(
                || "".into(),
                |row| match value {
                    Some(value) => {
                        Cell::from(row.ranked().ratio.map(|cost| of_values(cost, value)))
                    }
                    None => time_ratio(row),
                },
            )
        });
    }
    let mut sheet = table.sheet;
    sheet.remark(tried.interactions.iter().map(interaction));
    Some(sheet)
}

/// What a build and an allocator take together, over what each takes by itself.
fn interaction(interaction: &Interaction) -> String {
    let Interaction {
        variant, allocator, ..
    } = interaction;
    let seen = match interaction.verdict {
        Verdict::Faster => format!("together they gain more than {variant} and {allocator} each"),
        Verdict::Slower => format!("together they gain less than {variant} and {allocator} each"),
        Verdict::Same => "the gains of the two add up".into(),
        verdict => verdict.word().into(),
    };
    format!(
        "interaction of {variant} and {allocator}: {} of what both take by themselves: {seen}",
        units::interval(&interaction.ratio)
    )
}

/// The note that must be read with the table: allocators reach the command only in part.
pub fn reached_in_part(tried: &CommandFacts) -> Option<String> {
    if !tried.is_reached_in_part() {
        return None;
    }
    let little = tried
        .memory
        .filter(|memory| memory.reached_bytes < memory.bytes / 2.0)
        .map(|memory| {
            format!(
                "at most {} of its {} of memory come from malloc",
                units::bytes(memory.reached_bytes),
                units::bytes(memory.bytes)
            )
        });
    let beyond = tried.beyond.as_ref();
    let beyond = beyond.map(|beyond| format!("it does not serve {beyond}"));
    let words: Vec<String> = little.into_iter().chain(beyond).collect();
    Some(format!(
        "No row's allocator reaches all of it: {}. The rest is the same in every row.",
        words.join("; ")
    ))
}

/// Why a program that runs to its end under glibc may crash under another allocator, if a fault of the program is known; to be put behind
/// an outcome.
pub fn why_it_may_crash(tried: &CommandFacts) -> String {
    let mut words = String::new();
    if let Some(objects) = &tried.mixed {
        let between = enclosed(
            ": they cross between ",
            objects,
            " and the rest of the program, which are two heaps under another allocator",
        );
        words += &format!(". The program frees blocks that its malloc did not give{between}");
    }
    if let Some(times) = tried.other_sizes {
        words += &format!(
            ". The program deletes blocks with another size than they have, {times} times (undefined in C++; glibc ignores sizes)"
        );
    }
    words
}

const LEAVES_MORE_WORK: &str = "each run seems to leave more work for the next one, so --prepare CMD must restore what it changes";

/// The time in malloc and free, unless the run's answer states it, and what could not be reached.
pub fn lines(tried: &CommandFacts, extent: Extent) -> Vec<String> {
    let untimed = || Some(format!("not known; {}", tried.untimed.as_ref()?));
    let time = match extent {
        Extent::Brief => None,
        Extent::Full => in_malloc(tried).or_else(untimed),
    };
    let mut lines = Vec::from_iter(time.map(|line| format!("time in malloc and free: {line}")));
    lines.extend(
        tried
            .memory
            .filter(|_| !tried.is_reached_in_part())
            .map(|memory| {
                format!(
                    "memory from malloc: at most {} of {}",
                    units::bytes(memory.reached_bytes),
                    units::bytes(memory.bytes)
                )
            }),
    );
    lines.extend(live_at_end(tried));
    if let Some(program) = &tried.becomes {
        lines.push(format!(
            "most of its {} only find and start {program}, and what they take is in every number: name that instead to measure it alone",
            count(tried.processes, "process")
        ));
    }
    if let Some((first, last)) = tried.grows_ns {
        lines.push(format!(
            "its CPU time grows from run to run, with the baseline from {} to {}: {LEAVES_MORE_WORK}",
            units::duration(first),
            units::duration(last)
        ));
    }
    if tried.hangs_later {
        lines.push(format!(
            "its first runs ended in time under every allocator, and later ones under none: {LEAVES_MORE_WORK}"
        ));
    }
    if let Some((code, line)) = &tried.exit {
        let line = enclosed(": ", &short(line), "");
        lines.push(format!(
            "the command ends with exit code {code} each time, as it is meant to{line}"
        ));
    }
    let server = |name: &str| tried.served_by.iter().find(|(row, _)| row == name);
    lines.extend(tried.variants.iter().map(|(name, line)| {
        let served = server(name).map(|(_, owners)| format!("; served by {owners}"));
        let share = tried.shares.iter().find(|(row, _)| row == name);
        let share =
            share.map(|(_, share)| format!("; {} in malloc and free", units::percent(*share)));
        let facts: String = served.into_iter().chain(share).collect();
        format!("{name}: {}{facts}", short(line))
    }));
    let of_user = tried.served_by.iter().filter(|_| tried.variants.is_empty());
    lines.extend(of_user.map(|(row, owners)| {
        format!(
            "{row} is the command with all of its user's environment: {owners} serves its memory"
        )
    }));
    let left_behind = tried
        .left_behind
        .iter()
        .map(|(row, left)| format!("{row} ({})", count(left, "process")));
    let pss_missed = tried
        .pss_missed
        .iter()
        .map(|(row, why)| format!("{row} ({why})"));
    let rows = |rows: String| Some(rows).filter(|rows| !rows.is_empty());
    for (what, found) in [
        (
            "out of reach of any allocator, and the same in every row",
            tried.unproven.clone(),
        ),
        (
            "not proven, and perhaps served by each row's allocator",
            tried.silent.clone(),
        ),
        (
            "there may be more programs that no allocator reaches; the search was not completed",
            tried.unsearched.clone(),
        ),
        (
            "processes that outlived the command were ended",
            rows(list(left_behind)),
        ),
        (
            "peak PSS is left out if it was read too rarely to show the peak",
            rows(list(pss_missed)),
        ),
        (
            "peak RSS was read too rarely to show the peak of several processes, which peak PSS is closer to",
            rows(list(&tried.rss_missed)),
        ),
    ] {
        lines.extend(found.map(|found| format!("{what}: {found}")));
    }
    if tried.short {
        lines.push(
            "the command takes less than 5 ms: most of that is the start of a process, which is what is compared here"
                .to_owned(),
        );
    }
    lines
}

/// What RSS at end has to be compared with, and what is not known about that.
fn live_at_end(tried: &CommandFacts) -> Option<String> {
    let whose = match (&tried.client, &tried.end_of) {
        (Some(_), _) => ", when its client has ended".to_owned(),
        (None, Some(program)) => format!(", in {program}, which has the most RSS at end"),
        (None, None) => String::new(),
    };
    let live = |bytes| format!("{} in blocks of malloc{whose}", units::bytes(bytes));
    let parts = [tried.end_live_bytes.map(live), tried.end_unknown.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("live at the end: {}", parts.join("; ")))
}

/// Returns the share of CPU time that malloc and free take, computed from glibc's calls.
fn in_malloc(tried: &CommandFacts) -> Option<String> {
    let share = tried.malloc_share?;
    let whose = match tried.client {
        None => "its CPU time",
        Some(_) => "the server's CPU time while its client runs",
    };
    // The calls of a server are counted over its whole life.
    let all = tried.calls.filter(|_| tried.client.is_none());
    let calls = match (all, tried.calls_per_cpu_s) {
        (Some(0.0), _) => ", which makes no call".into(),
        (Some(calls), _) if calls < FEW_CALLS => {
            format!(", in {} in all", count(calls as u64, "call"))
        }
        (_, Some(calls)) => match calls {
            1e6.. => format!(", {} million calls a second", units::digits(calls / 1e6)),
            1e3.. => format!(", {} calls a second", units::grouped(calls as u64)),
            _ => format!(", {} calls a second", units::digits(calls)),
        },
        _ => String::new(),
    };
    let share = match share {
        LEAST_SHARE.. => units::percent(share),
        _ => format!("less than {}", units::percent(LEAST_SHARE)),
    };
    let of = match tried.variants.first() {
        None => "under glibc".to_owned(),
        Some((name, _)) => format!("as {name}"),
    };
    Some(format!("{share} of {whose} {of}{calls}"))
}

/// A recommendation in a sentence; `None` if the blocks support none.
pub fn recommendation(analysis: &Analysis) -> Option<String> {
    let (case, tried) = of(analysis)?;
    if tried.fixed_time {
        return Some(fixed_time(tried));
    }
    let (Conclusion::Fastest(ranking) | Conclusion::Unclear(ranking)) = &analysis.conclusion else {
        return None;
    };
    let mut candidates: Vec<JudgedRow> = case
        .rows
        .iter()
        .filter(|row| row.role == Role::Candidate)
        .filter_map(|row| JudgedRow::new(row, ranking.by))
        .collect();
    if candidates.is_empty() {
        return None;
    }
    // Sorted as in the table, unless that is by another clock.
    candidates.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    if ranking.blocks < LEAST_BLOCKS as usize {
        return None;
    }
    let mut faster = vec![];
    let mut slower = vec![];
    let mut promising = vec![];
    let mut near = true;
    for candidate in &candidates {
        match candidate.verdict {
            Verdict::Faster => faster.push(candidate),
            Verdict::Slower => slower.push(candidate.allocator),
            Verdict::Unclear { .. }
            | Verdict::TooFew { .. }
            | Verdict::Small
            | Verdict::AaCopyDiffers => {
                let (low, high) = candidate.interval.unwrap_or((0.0, f64::INFINITY));
                near &= high <= 1.0 + 2.0 * HARDLY && candidate.verdict != Verdict::AaCopyDiffers;
                // An allocator whose interval excludes a relevant gain may be slower or as fast,
                // but needs no further blocks.
                if low < 1.0 - HARDLY {
                    promising.push(candidate);
                }
            }
            Verdict::Same => {}
        }
    }
    let baseline = &case.baseline;
    let base_name = analysis.named(baseline);
    let noun = tried.noun();
    let all = spread(&candidates, baseline, noun_of(tried, ranking), tried);
    Some(if !faster.is_empty() {
        gain(analysis, ranking, &faster, case, tried)
    } else if !promising.is_empty() {
        let slower = match slower.len() {
            0 => String::new(),
            1 => " 1 other is slower.".to_owned(),
            slower => format!(" {slower} others are slower."),
        };
        format!(
            "Stay with {base_name} until more is known: no {noun} was shown to be faster; {} may be.{slower}",
            may_be(&promising, tried)
        )
    } else if slower.is_empty() && near {
        format!(
            "Stay with {base_name}: no {noun} differs from it by more than {} ({all}).",
            units::percent(farthest(&candidates))
        )
    } else {
        let of = candidates.len();
        let slower = match slower.len() {
            0 => "none was shown to be slower by more than 1 %".to_owned(),
            1 => format!("1 of {of} is slower"),
            slower => format!("{slower} of {of} are slower"),
        };
        format!("Stay with {base_name}: no {noun} is faster here, and {slower} ({all}).")
    })
}

/// ` Least memory: dlmalloc, 41.0 MiB at the peak (glibc 45.0 MiB).`, if an allocator other than the baseline certainly holds less, and
/// by more than 3 %; of several that are equally small, the fastest.
pub fn least_memory(analysis: &Analysis) -> String {
    let sentence = || {
        let (case, _) = of(analysis)?;
        let peak = |row: &TableRow| row.median("peak_rss_bytes").filter(|_| row.role.ranks());
        let holds_less = |row: &&TableRow| row.verdict("grown_bytes") == Some(Verdict::Faster);
        let rows = case.rows.iter().filter(holds_less);
        let mut small = Vec::from_iter(rows.filter_map(|row| Some((peak(row)?, row))));
        let held = small.iter().map(|(held, _)| *held);
        let least = held.min_by(f64::total_cmp)?;
        small.retain(|(held, _)| *held <= least * AS_SMALL);
        small.sort_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)));
        let ((held, one), others) = small.split_first()?;
        let base = case.baseline_row().and_then(peak)?;
        let named = list(others.iter().map(|(_, row)| row.allocator.clone()));
        let as_small = enclosed("; ", &named, " as well");
        (base > held * AS_SMALL).then(|| {
            format!(
                " Least memory: {}, {} at the peak ({} {}{as_small}).",
                one.allocator,
                units::bytes(*held),
                case.baseline,
                units::bytes(base)
            )
        })
    };
    sentence().unwrap_or_default()
}

/// The time in malloc and free as a separate sentence.
pub fn share(analysis: &Analysis) -> String {
    of(analysis)
        .filter(|(_, tried)| !tried.fixed_time)
        .and_then(|(_, tried)| in_malloc(tried))
        .map(|line| format!(" In malloc and free: {line}."))
        .unwrap_or_default()
}

/// Why no time is judged, and what can be measured instead.
fn fixed_time(tried: &CommandFacts) -> String {
    let which = match tried.client {
        None => "this command",
        Some(_) => "the client",
    };
    format!(
        "No verdict by time: {which} runs for a fixed time and does as much as it can in it (with slower calls of malloc and free it \
         made fewer of them in the same time). Give it a fixed amount of work instead (so many requests or iterations), or name the number \
         that it reports (--value); memory can be compared."
    )
}

/// What is compared, in a sentence.
fn noun_of<'a>(tried: &'a CommandFacts, ranking: &Ranking) -> &'a str {
    match tried.values.first() {
        Some(value) => &value.name,
        None => ranking.by.noun(),
    }
}

/// Describes how the copy of the baseline compares, by the number that the command reports; `None` if rows are ranked by time.
pub fn copy(case: &Table, aa_copy: &Ratio) -> Option<String> {
    let value = case.command.as_ref()?.values.first()?;
    let has = units::interval(&of_values(*aa_copy, value));
    Some(format!("has {has} of its {}", value.name))
}

/// A candidate: its time over the baseline's by the clock of the ranking, and the verdict on that.
struct JudgedRow<'a> {
    allocator: &'a str,
    /// The ratio of the costs; below 1 is better.
    ratio: f64,
    /// The ends of the 95 % interval of the ratio.
    interval: Option<(f64, f64)>,
    verdict: Verdict,
}

impl JudgedRow<'_> {
    /// The row's ratio and its interval, in the direction in which they are shown.
    fn shown(&self, tried: &CommandFacts) -> Ratio {
        let cost = Ratio {
            ratio: self.ratio,
            interval: self.interval,
            pairs: 0,
        };
        let value = tried.values.first();
        value.map_or(cost, |value| of_values(cost, value))
    }
}

impl<'a> JudgedRow<'a> {
    fn new(row: &'a TableRow, by: Clock) -> Option<JudgedRow<'a>> {
        let cell = row.cell(by.metric())?;
        Some(JudgedRow {
            allocator: &row.allocator,
            ratio: cell.ratio.map_or(1.0, |ratio| ratio.ratio),
            interval: cell.ratio.and_then(|ratio| ratio.interval),
            verdict: cell.verdict?,
        })
    }
}

/// `Use mimalloc3 (mimalloc 3.6.0, 2026-10): 0.842 of glibc's time [0.830, 0.855]; 24.1 MiB at the peak
/// (glibc 22.0 MiB).`
fn gain(
    analysis: &Analysis,
    ranking: &Ranking,
    faster: &[&JudgedRow],
    case: &Table,
    tried: &CommandFacts,
) -> String {
    let best = faster[0];
    let base = &case.baseline;
    let time = units::over(
        &best.shown(tried),
        &format!("{base}'s {}", noun_of(tried, ranking)),
        units::ratio,
    );
    let peak = |name: &str| case.row(name)?.median("peak_rss_bytes").map(units::bytes);
    let memory = peak(best.allocator).zip(peak(base));
    let memory =
        memory.map(|(of_best, of_base)| format!("; {of_best} at the peak ({base} {of_base})"));
    let between = compromise(case, faster, tried);
    let rivals = ranking.rivals().map(|contest| &contest.against);
    let rivals = rivals
        .filter(|_| best.allocator == ranking.leader)
        .filter(|name| faster.iter().any(|other| other.allocator == **name));
    let rivals: Vec<String> = rivals.map(|name| analysis.named(name)).collect();
    let verb = if rivals.len() == 1 { "is" } else { "are" };
    let like = enclosed(
        " ",
        &list(&rivals),
        &format!(" {verb} not told apart from it."),
    );
    format!(
        "Use {}: {time}{}.{like}{between}",
        analysis.named(best.allocator),
        memory.unwrap_or_default()
    )
}

/// ` Good compromise: mimalloc2 (0.712, 40.4 MiB).`: of the allocators that are faster, the one that costs least, time times memory, if it
/// holds much less than the fastest.
fn compromise(case: &Table, faster: &[&JudgedRow], tried: &CommandFacts) -> String {
    let peak = |name: &str| case.row(name)?.median("peak_rss_bytes");
    let sentence = || {
        let most = peak(faster[0].allocator)? * (1.0 - WORTH_NAMING);
        let smaller = faster[1..]
            .iter()
            .filter_map(|row| Some((peak(row.allocator)?, row)));
        let smaller = smaller.filter(|(held, _)| *held <= most);
        let cost = |(held, row): &(f64, &&JudgedRow)| held * row.ratio;
        let (held, row) = smaller.min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        let ratio = units::ratio(row.shown(tried).ratio);
        let held = units::bytes(held);
        Some(format!(
            " Good compromise: {} ({ratio}, {held}).",
            row.allocator
        ))
    };
    sentence().unwrap_or_default()
}

/// The most rows that a sentence names, with their intervals.
const MOST_NAMED: usize = 3;

/// The promising rows, the lowest ratio first, each with its own interval: `dlmalloc (1.008 [0.928, 1.077])`.
fn may_be(promising: &[&JudgedRow], tried: &CommandFacts) -> String {
    let named = promising.iter().take(MOST_NAMED).map(|row| {
        let shown = row.shown(tried);
        let ratio = units::ratio(shown.ratio);
        let interval = shown.interval.map(units::bounds);
        let interval = interval.unwrap_or("too few blocks for an interval".into());
        format!("{} ({ratio} {interval})", row.allocator)
    });
    let rest = promising.len().saturating_sub(MOST_NAMED);
    let rest = (rest > 0).then(|| count(rest, "other"));
    list(named.chain(rest))
}

/// The ends of the candidates' intervals.
fn ends(candidates: &[JudgedRow]) -> Option<(f64, f64)> {
    let intervals = || candidates.iter().filter_map(|row| row.interval);
    let low = intervals().map(|(low, _)| low).min_by(f64::total_cmp);
    let high = intervals().map(|(_, high)| high).max_by(f64::total_cmp);
    low.zip(high)
}

/// Returns the largest distance of an interval's end from the baseline, as a share of the baseline's time, rounded up to the digits that
/// are shown.
fn farthest(candidates: &[JudgedRow]) -> f64 {
    let (low, high) = ends(candidates).unwrap_or((1.0, 1.0));
    ((1.0 - low).max(high - 1.0) * 1000.0).ceil() / 1000.0
}

/// The union of all candidates' intervals: `95 % intervals of all 12 from 0.981 to 1.023 of glibc's
/// time`.
fn spread(candidates: &[JudgedRow], baseline: &str, time: &str, tried: &CommandFacts) -> String {
    let ends = ends(candidates).map(|ends| match tried.values.first() {
        Some(value) if value.higher => (ends.1.recip(), ends.0.recip()),
        _ => ends,
    });
    match (ends, candidates.len()) {
        (Some((low, high)), 1) => {
            format!("95 % interval {low:.3}-{high:.3} of {baseline}'s {time}")
        }
        (Some((low, high)), all) => {
            format!("95 % intervals of all {all} from {low:.3} to {high:.3} of {baseline}'s {time}")
        }
        (None, _) => "too few blocks for an interval".into(),
    }
}
