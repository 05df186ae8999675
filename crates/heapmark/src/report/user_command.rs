//! The texts of a run of a user's command: its columns, its limits, and a recommendation. Strings
//! from outside are not yet escaped.

use super::factor;
use super::sheet::{Spare, TableColumns, cpu_ratio, peak_rss};
use super::text::{count, enclosed, list, short};
use super::units;
use super::whole::seconds;
use crate::analyse::{
    Analysis, Case, Clock, CommandFacts, Conclusion, Numbers, Ranking, Role, Row, Verdict,
};

/// No verdict covers a difference smaller than this.
const HARDLY: f64 = 0.01;

/// The command of a run, if it has a single one.
pub fn of(analysis: &Analysis) -> Option<(&Case, &CommandFacts)> {
    let several = analysis.real_programs().len() > 1;
    let mut cases = analysis.cases.iter().filter(|_| !several);
    cases.find_map(|case| Some((case, case.command.as_ref()?)))
}

/// `python3 build.py`, or the server and its client.
pub fn heading(tried: &CommandFacts) -> String {
    let server = short(&tried.line);
    match &tried.client {
        Some(client) => format!("{server}, driven by {}", short(client)),
        None => server,
    }
}

/// The time over the baseline's, which ranks the rows.
pub fn ratio(numbers: &Numbers) -> f64 {
    numbers.time.ratio.map_or(1.0, |ratio| ratio.ratio)
}

/// Sorted by the ratios of wall time.
pub fn columns(table: &mut TableColumns<'_>, case: &Case) {
    table.metric("wall s", "wall_ns", seconds);
    table.judged(&case.baseline);
    factor::columns(table, case);
    table.metric("CPU s", "cpu_ns", seconds);
    table
        .column(&format!("CPU / {}", case.baseline), cpu_ratio)
        .spare = Spare::Early;
    table.column("peak RSS", |_, n| peak_rss(n));
    let ends_itself = |n: &Numbers| n.median("end_rss_bytes").is_some();
    if table.rows.iter().any(|(_, n)| ends_itself(n)) {
        table
            .metric("RSS at end", "end_rss_bytes", units::bytes)
            .spare = Spare::Late;
    }
    table
        .metric("peak PSS", "peak_pss_bytes", units::bytes)
        .spare = Spare::Early;
    let has_several = |n: &Numbers| n.median("processes") > Some(1.0);
    if table.rows.iter().any(|(_, n)| has_several(n)) {
        table
            .metric("largest process", "largest_process_rss_bytes", units::bytes)
            .spare = Spare::Early;
        table
            .metric("processes", "processes", |number| number.to_string())
            .spare = Spare::Early;
    }
}

/// The meaning of the columns.
pub fn legend(tried: &CommandFacts, baseline: &str) -> Vec<String> {
    let wall = match tried.client {
        None => {
            "wall: of the command, from its start to its end. CPU: user and system time of it and of all that it waited for"
        }
        Some(_) => {
            "wall: of the client, from its start to its end. CPU: of the server's processes meanwhile"
        }
    };
    vec![
        format!("{wall}. Medians over processes."),
        format!(
            "time / {baseline}: wall time over {baseline}'s in the same block, below 1 is faster; Hodges-Lehmann estimate and 95 % \
             interval ([n = 5]: too few pairs for one). CPU / {baseline}: the same of CPU time."
        ),
        "peak RSS: the most that all processes together were seen to hold, pages that they share counted for each; for one process \
         the kernel's own count. Peak PSS: the same, shared pages divided among those that share them, seen in a process that was \
         not timed."
            .to_owned(),
    ]
}

/// What limits the command, and what could not be reached.
pub fn lines(tried: &CommandFacts) -> Vec<String> {
    let ceiling =
        ceiling(tried).or_else(|| Some(format!("not known; {}", tried.no_ceiling.as_ref()?)));
    let mut lines = Vec::from_iter(ceiling.map(|line| format!("ceiling: {line}")));
    if let Some((code, said)) = &tried.exit {
        let said = enclosed(": ", &short(said), "");
        lines.push(format!(
            "the command ends with exit code {code} each time, as it is meant to{said}"
        ));
    }
    lines.extend(tried.served_by.iter().map(|(row, owners)| {
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

/// How much any allocator could change, computed from glibc's calls.
fn ceiling(tried: &CommandFacts) -> Option<String> {
    let share = tried.malloc_share?;
    let faster = tried.faster_at_most()?;
    let calls = tried.calls_per_cpu_s.map(|calls| match calls {
        1e6.. => units::digits(calls / 1e6) + " million",
        _ => units::digits(calls),
    });
    let calls = enclosed(", ", &calls.unwrap_or_default(), " of them a second");
    let (whose, what) = match tried.client {
        None => ("its CPU time", "it"),
        Some(_) => ("the server's CPU time while its client runs", "the server"),
    };
    let percent = units::percent(faster);
    let most = if !tried.above_ceiling.is_empty() {
        let rows = tried
            .above_ceiling
            .iter()
            .map(|(row, gain)| format!("{row} (at least {})", units::percent(*gain)));
        format!(
            "a faster allocator alone can make {what} at most {percent} faster, but the gain is larger under {}: so this is no ceiling here, and the saved time lies outside the calls (page faults and cache misses where the program touches its memory, waiting for locks)",
            list(rows)
        )
    } else if faster.is_finite() {
        format!(
            "no allocator can make {what} more than {percent} faster by being faster itself (where memory lies can still matter)"
        )
    } else {
        "all of it may depend on the allocator".into()
    };
    Some(format!(
        "calls of malloc and free take {} of {whose} under glibc{calls}: {most}",
        units::percent(share)
    ))
}

/// A recommendation in a sentence; `None` if the blocks support none.
pub fn recommendation(analysis: &Analysis) -> Option<String> {
    let (case, tried) = of(analysis)?;
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
    // As in the table, unless that is by another clock.
    candidates.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    // The gain is too small to detect for every allocator, and none exceeded the ceiling.
    let out_of_sight = |most: &f64| *most < tried.least_told && tried.above_ceiling.is_empty();
    let no_gain = tried.faster_at_most().filter(out_of_sight).map(|most| {
        let most = units::percent(most);
        let told = units::percent(tried.least_told);
        format!(
            "It does not matter here which allocator is the fastest: none can win more than {most}, and less than {told} shows in no verdict of this run"
        )
    });
    if ranking.blocks < ranking.blocks_needed as usize {
        let blocks = count(ranking.blocks, "block");
        let needed = ranking.blocks_needed;
        return no_gain.map(|no_gain| {
            format!("{no_gain}. {blocks} cannot show whether one is slower ({needed} needed).")
        });
    }
    let mut faster = vec![];
    let mut slower = vec![];
    let mut promising = vec![];
    let mut near = true;
    for candidate in &candidates {
        match candidate.verdict {
            Verdict::Faster => faster.push(candidate),
            Verdict::Slower => slower.push(candidate.allocator),
            Verdict::Unclear { .. } | Verdict::TooFew { .. } | Verdict::Small => {
                let (low, high) = candidate.interval.unwrap_or((0.0, f64::INFINITY));
                near &= high <= 1.0 + 2.0 * HARDLY;
                // An allocator whose interval excludes a relevant gain may be slower or as fast,
                // but needs no further blocks.
                if low < 1.0 - HARDLY {
                    promising.push(candidate);
                }
            }
            _ => {}
        }
    }
    let baseline = &case.baseline;
    let time = ranking.by.noun();
    let all = spread(&candidates, baseline, time);
    Some(if !faster.is_empty() {
        gain(ranking, &faster, baseline)
    } else if let Some(no_gain) = no_gain {
        let slower = match slower.as_slice() {
            [] => String::new(),
            [one] => format!(" But {one} is slower than {baseline}."),
            several => format!(" But {} are slower than {baseline}.", list(several)),
        };
        format!("{no_gain} ({all}).{slower}")
    } else if !promising.is_empty() {
        let slower = match slower.len() {
            0 => String::new(),
            1 => " 1 other is slower.".to_owned(),
            slower => format!(" {slower} others are slower."),
        };
        format!(
            "Stay with {baseline} until more is known: no allocator was shown to be faster; {} may be.{slower}",
            may_be(&promising, baseline, time)
        )
    } else if slower.is_empty() && near {
        format!(
            "It does not matter here: every allocator takes the {time} of {baseline}, within about 1 % ({all})."
        )
    } else {
        let of = candidates.len();
        let slower = match slower.len() {
            0 => "none was shown to be slower by more than 1 %".to_owned(),
            1 => format!("1 of {of} is slower"),
            slower => format!("{slower} of {of} are slower"),
        };
        format!("Stay with {baseline}: no allocator is faster here, and {slower} ({all}).")
    })
}

/// The ceiling as a separate sentence.
pub fn limit(analysis: &Analysis) -> String {
    of(analysis)
        .and_then(|(_, tried)| ceiling(tried))
        .map(|line| format!(" {}{}.", line[..1].to_uppercase(), &line[1..]))
        .unwrap_or_default()
}

/// A candidate: its time over the baseline's by the clock of the ranking, and the verdict on that.
struct JudgedRow<'a> {
    allocator: &'a str,
    ratio: f64,
    /// The ends of the 95 % interval of the ratio.
    interval: Option<(f64, f64)>,
    verdict: Verdict,
}

impl<'a> JudgedRow<'a> {
    fn new(row: &'a Row, by: Clock) -> Option<JudgedRow<'a>> {
        let cell = row.numbers()?.cell(by.metric())?;
        Some(JudgedRow {
            allocator: &row.allocator,
            ratio: cell.ratio.map_or(1.0, |ratio| ratio.ratio),
            interval: cell.ratio.and_then(|ratio| ratio.interval),
            verdict: cell.verdict?,
        })
    }
}

/// `Use mimalloc3: it takes 0.842x the time of glibc (95 % ...) and 1.12x its peak RSS.`
fn gain(ranking: &Ranking, faster: &[&JudgedRow], baseline: &str) -> String {
    let best = faster[0];
    let interval = best
        .interval
        .map(|(low, high)| format!(" (95 % interval {low:.3}-{high:.3})"))
        .unwrap_or_default();
    let leads = best.allocator == ranking.leader;
    let memory = ranking.memory.filter(|_| leads);
    let memory = memory
        .map(|memory| format!(" and {} its peak memory", units::times(memory.ratio)))
        .unwrap_or_default();
    let rivals = ranking.rivals().map(|contest| &contest.against);
    let rivals = list(
        rivals
            .filter(|name| faster.iter().any(|other| other.allocator == **name))
            .filter(|_| leads),
    );
    let like = enclosed(" ", &rivals, " cannot be told from it.");
    format!(
        "Use {}: it takes {:.3}x the {} of {baseline}{interval}{memory}.{like}",
        best.allocator,
        best.ratio,
        ranking.by.noun()
    )
}

/// Rows that a sentence names with their intervals.
const MOST_NAMED: usize = 3;

/// `dlmalloc (95 % interval 0.928-1.077 of glibc's time)`: each with its own interval, the lowest ratio
/// first.
fn may_be(promising: &[&JudgedRow], baseline: &str, time: &str) -> String {
    let named = promising.iter().take(MOST_NAMED).map(|row| {
        let interval = row
            .interval
            .map(|(low, high)| format!("95 % interval {low:.3}-{high:.3} of {baseline}'s {time}"));
        let interval = interval.unwrap_or("too few blocks for an interval".into());
        format!("{} ({interval})", row.allocator)
    });
    let rest = promising.len().saturating_sub(MOST_NAMED);
    let rest = (rest > 0).then(|| count(rest, "other"));
    list(named.chain(rest))
}

/// The union of all candidates' intervals: `95 % intervals of all 12 from 0.981 to 1.023 of glibc's
/// time`.
fn spread(candidates: &[JudgedRow], baseline: &str, time: &str) -> String {
    let intervals = || candidates.iter().filter_map(|row| row.interval);
    let low = intervals().map(|(low, _)| low).min_by(f64::total_cmp);
    let high = intervals().map(|(_, high)| high).max_by(f64::total_cmp);
    match (low.zip(high), candidates.len()) {
        (Some((low, high)), 1) => {
            format!("95 % interval {low:.3}-{high:.3} of {baseline}'s {time}")
        }
        (Some((low, high)), all) => {
            format!("95 % intervals of all {all} from {low:.3} to {high:.3} of {baseline}'s {time}")
        }
        (None, _) => "too few blocks for an interval".into(),
    }
}
