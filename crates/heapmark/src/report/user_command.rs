//! The texts of a run of a user's command: its columns, its limits, and a recommendation. Strings
//! from outside are not yet escaped.

use super::factor;
use super::sheet::{Spare, TableColumns, cpu_ratio, peak_rss};
use super::text::{count, enclosed, list, short};
use super::units;
use super::whole::seconds;
use crate::analyse::{
    Analysis, Case, CommandFacts, Conclusion, Numbers, Ranking, Role, Row, Verdict,
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
        .filter_map(|row| {
            let numbers = row.numbers()?;
            Some((row, numbers, numbers.time.verdict?))
        })
        .collect();
    if candidates.is_empty() {
        return None;
    }
    // As in the table.
    candidates.sort_by(|(_, a, _), (_, b, _)| ratio(a).total_cmp(&ratio(b)));
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
    for (row, numbers, call) in &candidates {
        match call {
            Verdict::Faster => faster.push((*row, *numbers)),
            Verdict::Slower => slower.push(&row.allocator),
            Verdict::Unclear { .. } | Verdict::Small => {
                let (low, high) = interval(numbers).unwrap_or((0.0, f64::INFINITY));
                near &= high <= 1.0 + 2.0 * HARDLY;
                // An allocator whose interval excludes a relevant gain may be slower or as fast,
                // but needs no further blocks.
                if low < 1.0 - HARDLY {
                    promising.push(&row.allocator);
                }
            }
            _ => {}
        }
    }
    let baseline = &case.baseline;
    let own = analysis.named(baseline);
    let all = spread(&candidates);
    Some(if !faster.is_empty() {
        gain(analysis, ranking, &faster, baseline)
    } else if let Some(no_gain) = no_gain {
        let slower = match slower.as_slice() {
            [] => String::new(),
            [one] => format!(" But {one} is slower than {baseline}."),
            several => format!(" But {} are slower than {baseline}.", list(several)),
        };
        format!("{no_gain} ({all}).{slower}")
    } else if !promising.is_empty() {
        format!(
            "Stay with {own} until more is known: no allocator was shown to be faster; {} may be ({all}).",
            list(promising.iter().map(|name| analysis.named(name)))
        )
    } else if slower.is_empty() && near {
        format!(
            "It does not matter here: every allocator takes the time of {own}, within about 1 % ({all})."
        )
    } else {
        let of = candidates.len();
        let slower = match slower.len() {
            0 => "none was shown to be slower by more than 1 %".to_owned(),
            1 => format!("1 of {of} is slower"),
            slower => format!("{slower} of {of} are slower"),
        };
        format!("Stay with {own}: no allocator is faster here, and {slower} ({all}).")
    })
}

/// The ceiling as a separate sentence.
pub fn limit(analysis: &Analysis) -> String {
    of(analysis)
        .and_then(|(_, tried)| ceiling(tried))
        .map(|line| format!(" {}{}.", line[..1].to_uppercase(), &line[1..]))
        .unwrap_or_default()
}

/// A candidate and its verdict.
type JudgedRow<'a> = (&'a Row, &'a Numbers, Verdict);

/// `Use mimalloc3 (mimalloc 3.6.0, 2026-10): it takes 0.842x the time of glibc (95 % ...) and 1.12x its peak RSS.`
fn gain(
    analysis: &Analysis,
    ranking: &Ranking,
    faster: &[(&Row, &Numbers)],
    baseline: &str,
) -> String {
    let (row, numbers) = faster[0];
    let interval = interval(numbers)
        .map(|(low, high)| format!(" (95 % interval {low:.3}-{high:.3})"))
        .unwrap_or_default();
    let leads = row.allocator == ranking.leader;
    let memory = ranking.memory.filter(|_| leads);
    let memory = memory
        .map(|memory| format!(" and {} its peak memory", units::times(memory.ratio)))
        .unwrap_or_default();
    let rivals = ranking.rivals().map(|contest| &contest.against);
    let rivals = list(
        rivals
            .filter(|name| faster.iter().any(|(other, ..)| other.allocator == **name))
            .filter(|_| leads)
            .map(|name| analysis.named(name)),
    );
    let like = enclosed(" ", &rivals, " cannot be told from it.");
    format!(
        "Use {}: it takes {:.3}x the time of {baseline}{interval}{memory}.{like}",
        analysis.named(&row.allocator),
        ratio(numbers)
    )
}

/// The ends of the 95 % interval of the ratio of times.
fn interval(numbers: &Numbers) -> Option<(f64, f64)> {
    numbers.time.ratio?.interval
}

/// The union of the candidates' intervals: `0.981 to 1.023 of its time`.
fn spread(candidates: &[JudgedRow]) -> String {
    let intervals = || candidates.iter().filter_map(|(_, n, _)| interval(n));
    let low = intervals().map(|(low, _)| low).min_by(f64::total_cmp);
    let high = intervals().map(|(_, high)| high).max_by(f64::total_cmp);
    match low.zip(high) {
        Some((low, high)) => format!("95 % intervals from {low:.3} to {high:.3} of its time"),
        None => "too few blocks for an interval".into(),
    }
}
