//! The texts of a run of a user's command: its columns, its limits, and a recommendation. Strings
//! from outside are not yet escaped.

use super::sheet::{TableColumns, cpu_ratio, ratio, verdict};
use super::text::{count, list};
use super::units;
use crate::analyse::{
    Analysis, Case, CommandFacts, Conclusion, Numbers, Ranking, Role, Row, Verdict, Whole,
};

/// Longer commands are cut in headings.
const MOST_LETTERS: usize = 100;
/// No verdict covers a difference smaller than this.
const HARDLY: f64 = 0.01;

/// The user's command of a run.
pub(super) fn of(analysis: &Analysis) -> Option<(&Case, &CommandFacts)> {
    analysis
        .cases
        .iter()
        .find_map(|case| Some((case, case.command.as_ref()?)))
}

/// The command as it was typed, in one short line.
pub(super) fn line(line: &str) -> String {
    let mut short: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = short.char_indices().nth(MOST_LETTERS) {
        short.truncate(end);
        short.push_str(" ...");
    }
    short
}

/// `python3 build.py`, or the server and its client.
pub(super) fn heading(tried: &CommandFacts) -> String {
    let by = tried.client.as_ref().map_or(String::new(), |client| {
        format!(", driven by {}", line(client))
    });
    format!("{}{by}", line(&tried.line))
}

/// Sorted by the ratios of wall time.
pub(super) fn columns(table: &mut TableColumns<'_>, case: &Case) {
    let seconds = |value: f64| units::digits(value / 1e9);
    table.column("wall s", |_, n| {
        of_whole(n, |whole| Some(seconds(whole.wall_ns.median)))
    });
    table.words(&format!("time / {} [95 %]", case.baseline), |row, n| {
        ratio(row, n.ratio.as_ref())
    });
    table.words("verdict", |_, n| verdict(n.verdict));
    table.column("CPU s", |_, n| {
        of_whole(n, |whole| Some(seconds(whole.cpu_ns?.median)))
    });
    table.spare(&format!("CPU / {}", case.baseline), |row, n| {
        cpu_ratio(row, n.cpu_ratio.as_ref())
    });
    table.column("peak RSS", |_, n| {
        n.memory
            .map_or("-".into(), |memory| units::bytes(memory.peak_rss_bytes))
    });
    table.spare("peak PSS", |_, n| {
        of_whole(n, |whole| whole.peak_pss_bytes.map(units::bytes))
    });
    let trees = |whole: &Whole| whole.processes.is_some_and(|processes| processes > 1.0);
    if table
        .rows
        .iter()
        .any(|(_, n)| n.whole.as_ref().is_some_and(trees))
    {
        table.spare("largest process", |_, n| {
            of_whole(n, |whole| whole.largest_process_bytes.map(units::bytes))
        });
        table.spare("processes", |_, n| {
            of_whole(n, |whole| whole.processes.map(|number| number.to_string()))
        });
    }
}

fn of_whole(numbers: &Numbers, text: impl Fn(&Whole) -> Option<String>) -> String {
    numbers
        .whole
        .as_ref()
        .and_then(text)
        .unwrap_or_else(|| "-".into())
}

/// The meaning of the columns.
pub(super) fn legend(tried: &CommandFacts, baseline: &str) -> Vec<String> {
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
pub(super) fn lines(tried: &CommandFacts) -> Vec<String> {
    let unknown = || {
        tried
            .no_ceiling
            .as_ref()
            .map(|why| format!("not known; {why}"))
    };
    let ceiling = ceiling(tried)
        .or_else(unknown)
        .map(|line| format!("ceiling: {line}"));
    let mut lines: Vec<String> = ceiling.into_iter().collect();
    if let Some((code, said)) = &tried.exit {
        let said = if said.is_empty() {
            String::new()
        } else {
            format!(": {}", line(said))
        };
        lines.push(format!(
            "the command ends with exit code {code} each time, as it is meant to{said}"
        ));
    }
    for (row, owners) in &tried.served_by {
        lines.push(format!(
            "{row} is the command with all of its user's environment: {owners} serves its memory"
        ));
    }
    if let Some(unproven) = &tried.unproven {
        lines.push(format!(
            "out of reach of any allocator, and the same in every row: {unproven}"
        ));
    }
    if let Some(silent) = &tried.silent {
        lines.push(format!(
            "not proven, and perhaps served by each row's allocator: {silent}"
        ));
    }
    if let Some(why) = &tried.unsearched {
        lines
            .push(format!("there may be more programs that no allocator reaches; the search was not completed: {why}"));
    }
    if !tried.left_behind.is_empty() {
        let rows: Vec<String> = tried
            .left_behind
            .iter()
            .map(|(row, left)| format!("{row} ({})", count(*left as usize, "process")))
            .collect();
        lines.push(format!(
            "processes that outlived the command were ended: {}",
            list(&rows)
        ));
    }
    if !tried.pss_missed.is_empty() {
        let rows: Vec<String> = tried
            .pss_missed
            .iter()
            .map(|(row, why)| format!("{row} ({why})"))
            .collect();
        lines.push(format!(
            "peak PSS is left out if it was read too rarely to show the peak: {}",
            list(&rows)
        ));
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
    let (share, faster) = (tried.malloc_share?, tried.faster_at_most()?);
    let calls = tried.calls_per_cpu_s.map_or(String::new(), |calls| {
        format!(", {} of them a second", thousands(calls))
    });
    let (whose, what) = match tried.client {
        None => ("its CPU time", "it"),
        Some(_) => ("the server's CPU time while its client runs", "the server"),
    };
    let most = if !tried.above_ceiling.is_empty() {
        let rows = tried
            .above_ceiling
            .iter()
            .map(|(row, gain)| format!("{row} (at least {})", units::percent(*gain)));
        format!(
            "a faster allocator alone can make {what} at most {} faster, but the gain is larger under {}: so this is no ceiling here, and the saved time lies outside the calls (page faults and cache misses where the program touches its memory, waiting for locks)",
            units::percent(faster),
            list(&rows.collect::<Vec<_>>())
        )
    } else if faster.is_finite() {
        format!(
            "no allocator can make {what} more than {} faster by being faster itself (where memory lies can still matter)",
            units::percent(faster)
        )
    } else {
        "all of it may depend on the allocator".into()
    };
    Some(format!(
        "calls of malloc and free take {} of {whose} under glibc{calls}: {most}",
        units::percent(share)
    ))
}

/// `1.84 million`.
fn thousands(number: f64) -> String {
    match number {
        1e6.. => format!("{} million", units::digits(number / 1e6)),
        _ => units::digits(number),
    }
}

/// A recommendation in a sentence; `None` if the blocks support none.
pub(super) fn recommendation(analysis: &Analysis) -> Option<String> {
    let (case, tried) = of(analysis)?;
    let ranking = match &analysis.conclusion {
        Conclusion::Fastest(ranking) | Conclusion::Unclear(ranking) => ranking,
        _ => return None,
    };
    let mut candidates: Vec<JudgedRow> = case
        .rows
        .iter()
        .filter(|row| row.role == Role::Candidate)
        .filter_map(|row| {
            row.numbers()
                .and_then(|numbers| Some((row, numbers, numbers.verdict?)))
        })
        .collect();
    if candidates.is_empty() {
        return None;
    }
    // As in the table.
    candidates.sort_by(|(_, a, _), (_, b, _)| {
        let ratio = |numbers: &Numbers| numbers.ratio.map_or(1.0, |ratio| ratio.ratio);
        ratio(a).total_cmp(&ratio(b))
    });
    // The gain is too small to detect for every allocator, and none exceeded the ceiling.
    let out_of_sight = tried
        .faster_at_most()
        .filter(|most| *most < tried.least_told && tried.above_ceiling.is_empty());
    let no_gain = |most: f64| {
        let (most, told) = (units::percent(most), units::percent(tried.least_told));
        format!(
            "It does not matter here which allocator is the fastest: none can win more than {most}, and less than {told} shows in no verdict of this run"
        )
    };
    if ranking.blocks < ranking.blocks_needed as usize {
        let (blocks, needed) = (count(ranking.blocks, "block"), ranking.blocks_needed);
        return out_of_sight.map(|most| {
            format!(
                "{}. {blocks} cannot show whether one is slower ({needed} needed).",
                no_gain(most)
            )
        });
    }
    let called = |wanted: fn(Verdict) -> bool| -> Vec<&JudgedRow> {
        candidates
            .iter()
            .filter(|(_, _, call)| wanted(*call))
            .collect()
    };
    let faster = called(|call| call == Verdict::Faster);
    let open = called(|call| matches!(call, Verdict::Unclear { .. } | Verdict::Small));
    let within = |numbers: &Numbers, holds: fn(f64, f64) -> bool| {
        numbers
            .ratio
            .and_then(|ratio| ratio.interval)
            .is_some_and(|(low, high)| holds(low, high))
    };
    // An allocator whose interval excludes a relevant gain may be slower or as fast, but needs no
    // further blocks.
    let promising: Vec<&&JudgedRow> = open
        .iter()
        .filter(|(_, numbers, _)| !within(numbers, |low, _| low >= 1.0 - HARDLY))
        .collect();
    let near = open
        .iter()
        .all(|(_, numbers, _)| within(numbers, |_, high| high <= 1.0 + 2.0 * HARDLY));
    let slower_names: Vec<String> = called(|call| call == Verdict::Slower)
        .iter()
        .map(|(row, _, _)| row.allocator.clone())
        .collect();
    let slower = slower_names.len();
    let (baseline, all) = (&case.baseline, spread(&candidates));
    Some(if !faster.is_empty() {
        gain(ranking, &faster, baseline)
    } else if let Some(most) = out_of_sight {
        let slower = match slower {
            0 => String::new(),
            1 => format!(" But {} is slower than {baseline}.", slower_names[0]),
            _ => format!(" But {} are slower than {baseline}.", list(&slower_names)),
        };
        format!("{} ({all}).{slower}", no_gain(most))
    } else if !promising.is_empty() {
        let names: Vec<String> = promising
            .iter()
            .map(|(row, _, _)| row.allocator.clone())
            .collect();
        format!(
            "Stay with {baseline} until more is known: no allocator was shown to be faster; {} may be ({all}).",
            list(&names)
        )
    } else if slower == 0 && near {
        format!(
            "It does not matter here: every allocator takes the time of {baseline}, within about 1 % ({all})."
        )
    } else {
        let slower = match slower {
            0 => "none was shown to be slower by more than 1 %".to_owned(),
            1 => format!("1 of {} is slower", candidates.len()),
            _ => format!("{slower} of {} are slower", candidates.len()),
        };
        format!("Stay with {baseline}: no allocator is faster here, and {slower} ({all}).")
    })
}

/// The ceiling as a separate sentence.
pub(super) fn limit(analysis: &Analysis) -> String {
    let ceiling = of(analysis).and_then(|(_, tried)| ceiling(tried));
    ceiling.map_or(String::new(), |line| {
        format!(" {}{}.", line[..1].to_uppercase(), &line[1..])
    })
}

/// A candidate and its verdict.
type JudgedRow<'a> = (&'a Row, &'a Numbers, Verdict);

/// `Use mimalloc3: it takes 0.842x the time of glibc (95 % ...) and 1.12x its peak RSS.`
fn gain(ranking: &Ranking, faster: &[&JudgedRow], baseline: &str) -> String {
    let Some((row, numbers, _)) = faster.first() else {
        return String::new();
    };
    let time = numbers.ratio.map_or(String::new(), |ratio| {
        let interval = ratio
            .interval
            .map(|(low, high)| format!(" (95 % interval {low:.3}-{high:.3})"));
        format!(
            "{:.3}x the time of {baseline}{}",
            ratio.ratio,
            interval.unwrap_or_default()
        )
    });
    let memory = ranking.memory.filter(|_| row.allocator == ranking.leader);
    let memory = memory.map_or(String::new(), |memory| {
        format!(" and {} its peak memory", units::times(memory.ratio))
    });
    let rivals: Vec<String> = ranking
        .rivals()
        .filter(|contest| {
            row.allocator == ranking.leader
                && faster
                    .iter()
                    .any(|(other, _, _)| other.allocator == contest.against)
        })
        .map(|contest| contest.against.clone())
        .collect();
    let like = if rivals.is_empty() {
        String::new()
    } else {
        format!(" {} cannot be told from it.", list(&rivals))
    };
    format!("Use {}: it takes {time}{memory}.{like}", row.allocator)
}

/// The union of the candidates' intervals: `0.981 to 1.023 of its time`.
fn spread(candidates: &[JudgedRow]) -> String {
    let intervals = || {
        candidates
            .iter()
            .filter_map(|(_, numbers, _)| numbers.ratio?.interval)
    };
    let low = intervals().map(|(low, _)| low).min_by(f64::total_cmp);
    let high = intervals().map(|(_, high)| high).max_by(f64::total_cmp);
    match low.zip(high) {
        Some((low, high)) => format!("95 % intervals from {low:.3} to {high:.3} of its time"),
        None => "too few blocks for an interval".into(),
    }
}
