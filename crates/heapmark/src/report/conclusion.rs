//! The verdict as sentences that a reader can act on. Strings from outside are not yet escaped.

use super::check;
use super::text::{count, enclosed, join, list, short};
use super::units::{self, times};
use super::user_command;
use crate::analyse::{
    Analysis, Case, Conclusion, Doubt, LeftOut, MemoryMeasure, MemoryShape, PairwiseTest, Purge,
    Ranking, Ratio, Row, Withheld, distinct, held,
};
use crate::store::RunFile;
use std::collections::BTreeMap;

/// The conclusion of the run, and the allocators that it cannot include.
pub fn conclusion(analysis: &Analysis) -> String {
    let mut sentence = user_command::recommendation(analysis)
        .unwrap_or_else(|| judged(analysis, &analysis.conclusion, &analysis.left_out))
        + &without(&analysis.left_out);
    if let Some(later) = &analysis.later_rounds {
        let later =
            judged(analysis, &later.conclusion, &later.left_out) + &without(&later.left_out);
        sentence = format!("First rounds: {sentence} Later rounds: {later}");
    }
    let of_memory = if analysis.held.is_empty() {
        String::new()
    } else {
        smallest(analysis)
    };
    sentence + &user_command::share(analysis) + &of_memory
}

fn without(left_out: &[LeftOut]) -> String {
    let left_out = left_out.iter().map(|left| {
        let cases = count(left.of, "case");
        let reasons = [(left.failed, "not ok"), (left.missing, "samples missing")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{what} in {number} of {cases}"));
        format!("{} ({})", left.allocator, join(reasons, ", "))
    });
    enclosed(" Left out: ", &list(left_out), ".")
}

fn judged(analysis: &Analysis, verdict: &Conclusion, left_out: &[LeftOut]) -> String {
    let why = match verdict {
        Conclusion::NotAsked if !analysis.counts.is_empty() => {
            "this run counted, and timed nothing."
        }
        Conclusion::NotAsked if !analysis.footprints.is_empty() => {
            "this run sampled memory, and timed nothing."
        }
        Conclusion::NotAsked if analysis.limit.is_some() => {
            "this run looked for the smallest limits on memory."
        }
        Conclusion::NotAsked => {
            "this run timed single calls, and none of its times is one of throughput."
        }
        Conclusion::NothingOk if analysis.cases.is_empty() => "the run has no cases.",
        Conclusion::NothingOk => "no allocator has samples in every case that all ended ok.",
        Conclusion::OnlyOne { allocator } if left_out.is_empty() => {
            let only = analysis.named(allocator);
            return format!("Only {only} was measured: there is nothing to compare it with.");
        }
        Conclusion::OnlyOne { allocator } => {
            let only = analysis.named(allocator);
            &format!("only {only} can be judged, and there is nothing to compare it with.")
        }
        Conclusion::Withheld(Withheld::Paced) => {
            "a paced replay takes the recorded time under every allocator. Compare the memory."
        }
        Conclusion::Withheld(Withheld::AaCopy { ratio }) => {
            let (low, high) = ratio.interval.unwrap_or((ratio.ratio, ratio.ratio));
            &format!(
                "a copy of {0} took {1:.3}x the time of {0} itself (95 % interval {low:.3}-{high:.3}), so this \
                 run calls equal things different. Run again on a quieter machine, or longer.",
                analysis.baseline, ratio.ratio
            )
        }
        Conclusion::Fastest(ranking) => {
            return fastest(analysis, ranking) + &caveat(analysis, &ranking.leader);
        }
        Conclusion::Unclear(ranking) => {
            return unclear(analysis, ranking) + &caveat(analysis, &ranking.leader);
        }
    };
    format!("No verdict: {why}")
}

/// What was run, and when.
pub fn head(run: &RunFile, analysis: &Analysis) -> String {
    let mut commands = run.plan.cases.iter().filter_map(|case| case.command());
    let tried = commands.find(|command| command.real.is_none());
    let what = match tried {
        Some(tried) => format!("try: {}", short(&tried.line())),
        None => format!("suite {}, preset {}", run.suite, run.preset),
    };
    format!(
        "heapmark {}, {what}, {}, baseline {}, seed {}, started {}.",
        run.heapmark,
        count(analysis.planned_blocks, "block"),
        run.plan.baseline,
        run.plan.seed,
        moment(run)
    )
}

/// When it was started: `2026-01-01 10:00:00 UTC`.
pub fn moment(run: &RunFile) -> String {
    let seconds = run.started.split(['.', 'Z']).next().unwrap_or_default();
    format!("{} UTC", seconds.replace('T', " "))
}

/// The line of a run without interference.
pub fn undisturbed(analysis: &Analysis) -> String {
    format!(
        "Interference: nothing was seen to disturb any of {}.",
        count(analysis.interference.parts, "part")
    )
}

/// Causes of interference, each with how often it was seen.
pub fn with_times(causes: &BTreeMap<String, usize>) -> String {
    let each = causes.iter();
    list(each.map(|(cause, times)| format!("{cause} ({times})")))
}

/// The interference that was seen, if any.
pub fn interference(analysis: &Analysis) -> Option<String> {
    let seen = &analysis.interference;
    let advice = match analysis.conclusion {
        Conclusion::NotAsked if !analysis.latency.is_empty() => {
            "take only tails far above the floor's for the allocators'"
        }
        Conclusion::NotAsked | Conclusion::Withheld(Withheld::Paced) => {
            "what was counted or held is not much the worse for it"
        }
        _ => "trust the verdicts by CPU time before those by wall time",
    };
    let again = format!("{} disturbed and run again", count(seen.repeated, "part"));
    let kept = format!(
        "{} of {} disturbed each time, by {}, and kept: {advice}",
        seen.disturbed,
        count(seen.parts, "part"),
        with_times(&seen.causes)
    );
    let held_up = format!(
        "{} stalled by {} and kept: that may be an allocator's own doing",
        count(seen.stalled, "process"),
        with_times(&seen.stalls)
    );
    let seen = [
        (seen.repeated, again),
        (seen.disturbed, kept),
        (seen.stalled, held_up),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0);
    let said = join(seen.map(|(_, said)| said), "; ");
    (!said.is_empty()).then(|| format!("Interference: {said}."))
}

/// That records were left out of all tables, if some were.
pub fn unplanned(analysis: &Analysis) -> Option<String> {
    let records = count(analysis.unplanned, "record");
    (analysis.unplanned > 0).then(|| format!("{records} of no planned row: ignored."))
}

fn fastest(analysis: &Analysis, ranking: &Ranking) -> String {
    let leader = &ranking.leader;
    let role = if *leader == analysis.baseline {
        ", the baseline,"
    } else {
        ""
    };
    let next = ranking.tests.first().filter(|next| !next.baseline);
    let next = next.and_then(|next| {
        let against = analysis.named(&next.against);
        takes(
            &PairwiseTest {
                against,
                ..next.clone()
            },
            "the next, ",
        )
    });
    let claims = [against_baseline(analysis, ranking), next];
    let leader = analysis.named(leader);
    format!(
        "{leader}{role} is the fastest here, over {} and {}: it takes {}{}.",
        count(ranking.cases, "case"),
        count(ranking.blocks, "block"),
        join(claims.iter().flatten(), ", "),
        memory_claim(analysis, ranking)
    )
}

/// The costs that a leader's numbers leave out.
fn caveat(analysis: &Analysis, leader: &str) -> String {
    let cases = |holds: fn(&Case, &Row) -> bool| {
        analysis
            .cases
            .iter()
            .filter(|case| {
                case.rows
                    .iter()
                    .any(|row| row.allocator == leader && holds(case, row))
            })
            .count()
    };
    let partial = cases(|_, row| !row.left_to_libc.is_empty());
    let served = cases(|_, row| row.served.is_some());
    let unpurged = cases(|case, row| case.counts_purge && row.purge <= Purge::None);
    let gives_none = format!(
        "gives no memory back in {} that time it",
        count(unpurged, "case")
    );
    let failed = analysis.failed_by(leader);
    let fails = check::fails(failed);
    let caveats = [
        (partial, "is partial"),
        (served, "is served by libc"),
        (unpurged, gives_none.as_str()),
        (failed.len(), fails.as_str()),
    ]
    .into_iter()
    .filter(|(cases, _)| *cases > 0);
    let caveats = list(caveats.map(|(_, caveat)| caveat));
    enclosed(&format!(" But {leader} "), &caveats, ".")
}

fn unclear(analysis: &Analysis, ranking: &Ranking) -> String {
    let leader = &ranking.leader;
    let rivals: Vec<&PairwiseTest> = ranking.rivals().collect();
    let blocks = count(ranking.blocks, "block");
    let doubts = || rivals.iter().map(|contest| contest.doubt);
    let mut sentence = if doubts().any(|doubt| doubt == Some(Doubt::FewBlocks)) {
        let needed = ranking.blocks_needed;
        let remedy = if analysis.planned_blocks < needed {
            format!("run again with --blocks {needed}")
        } else {
            "resume the run".to_owned()
        };
        let verb = if ranking.blocks == 1 { "is" } else { "are" };
        format!(
            "Unclear: {blocks} {verb} too few for a verdict ({needed} needed): {remedy}. So far {} is ahead, then {}.",
            analysis.named(leader),
            analysis.named(&rivals[0].against)
        )
    } else {
        let others = rivals.iter().map(|contest| &contest.against);
        let advice = if doubts().all(|doubt| doubt == Some(Doubt::Small)) {
            format!(": {leader} is ahead, but by 1 % or less. Choose by memory.")
        } else {
            // The hardest pairwise test decides; one without an estimate would take more blocks
            // than are reasonable.
            let doubtful = rivals
                .iter()
                .filter(|contest| contest.doubt == Some(Doubt::Chance));
            let more: Option<Vec<u32>> = doubtful.map(|contest| contest.blocks_more).collect();
            let more = match more.and_then(|more| more.into_iter().max()) {
                Some(more) => format!("About {more} more blocks might tell"),
                None => "More blocks will hardly tell".into(),
            };
            format!(". {more}; or choose among them by memory.")
        };
        format!(
            "Unclear: {} cannot be told apart with {blocks}{}{advice}",
            list(
                [leader]
                    .into_iter()
                    .chain(others)
                    .map(|name| analysis.named(name))
            ),
            closest(ranking)
        )
    };
    if let Some(contest) = ranking.against_baseline()
        && contest.doubt.is_none()
        && let Some(claim) = against_baseline(analysis, ranking)
    {
        sentence += &format!(
            " {leader} takes {claim}{}.",
            memory_claim(analysis, ranking)
        );
    }
    sentence
}

/// ` (mimalloc3 takes 0.996x the time of rpmalloc, 95 % interval 0.990-1.002)`.
fn closest(ranking: &Ranking) -> String {
    ranking
        .rivals()
        .find_map(|contest| {
            let ratio = contest.ratio?;
            let interval = ratio
                .interval
                .map(|(low, high)| format!(", 95 % interval {low:.3}-{high:.3}"))
                .unwrap_or_default();
            Some(format!(
                " ({} takes {:.3}x the time of {}{interval})",
                ranking.leader, ratio.ratio, contest.against
            ))
        })
        .unwrap_or_default()
}

/// The leader's time over the baseline's, the number of the table of all cases if there is one.
fn against_baseline(analysis: &Analysis, ranking: &Ranking) -> Option<String> {
    let contest = ranking.against_baseline()?;
    let Some(overall) = analysis.overall.iter().find(|one| {
        one.allocator == ranking.leader
            && one.cases == ranking.cases
            && analysis.later_rounds.is_none()
    }) else {
        return takes(contest, "");
    };
    let ratio = contest.ratio.map(|ratio| Ratio {
        ratio: overall.ratio,
        interval: overall.interval,
        ..ratio
    });
    takes(
        &PairwiseTest {
            ratio,
            ..contest.clone()
        },
        "",
    )
}

/// `0.704x the time of glibc (95 % interval 0.690-0.719)`.
fn takes(contest: &PairwiseTest, introduction: &str) -> Option<String> {
    let ratio = contest.ratio?;
    let interval = ratio
        .interval
        .map(|(low, high)| {
            format!(
                " (95 % interval {}-{})",
                units::ratio(low),
                units::ratio(high)
            )
        })
        .unwrap_or_default();
    Some(format!(
        "{}x the time of {introduction}{}{interval}",
        units::ratio(ratio.ratio),
        contest.against
    ))
}

/// `; its peak RSS is 1.12x glibc's`, if it can be compared.
fn memory_claim(analysis: &Analysis, ranking: &Ranking) -> String {
    let peak = |name: &str| analysis.held_by(name)?.peak.map(times);
    if let Some(own) = peak(&ranking.leader) {
        let base = peak(&analysis.baseline).filter(|_| ranking.leader != analysis.baseline);
        let base = base.map(|base| format!("{} {base}", analysis.baseline));
        let base = enclosed(" (", &base.unwrap_or_default(), ")");
        return format!("; at the peak it holds {own} what is live{base}");
    }
    let Some(memory) = ranking.memory else {
        return String::new();
    };
    let measure = match memory.measure {
        MemoryMeasure::Overhead => "memory overhead",
        MemoryMeasure::PeakRss => "peak RSS",
    };
    let some = if memory.cases < ranking.cases {
        format!(" ({} of {} cases)", memory.cases, ranking.cases)
    } else {
        String::new()
    };
    format!(
        "; its {measure} is {} {}'s{some}",
        times(memory.ratio),
        analysis.baseline
    )
}

/// ` The smallest is glibc: ...`: the allocator with the least memory over all cases and its price;
/// nothing if that is the leader, of which this is said already. And what the leader is bad at.
pub fn smallest(analysis: &Analysis) -> String {
    let (Conclusion::Fastest(ranking) | Conclusion::Unclear(ranking)) = &analysis.conclusion else {
        return String::new();
    };
    let leader = &ranking.leader;
    let known: Vec<(f64, String)> = if analysis.held.is_empty() {
        analysis
            .overall
            .iter()
            .filter_map(|one| Some((one.memory?.ratio, one.allocator.clone())))
            .collect()
    } else {
        analysis
            .held
            .iter()
            .filter_map(|held| Some((held.peak?, held.allocator.clone())))
            .collect()
    };
    known
        .into_iter()
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(_, name)| name != leader)
        .map(|(memory, name)| {
            let base = &analysis.baseline;
            let price = analysis
                .overall
                .iter()
                .find(|one| one.allocator == name && name != *base)
                .map(|one| format!("at {}x {base}'s time", units::ratio(one.ratio)));
            let memory = match analysis.held.is_empty() {
                true if name == *base => "the baseline".to_owned(),
                true => format!("{} {base}'s memory", times(memory)),
                false => format!("{} what is live at the peak", times(memory)),
            };
            format!(
                " The smallest is {}: {}.",
                analysis.named(&name),
                join([Some(memory), price].iter().flatten(), ", ")
            )
        })
        .unwrap_or_default()
        + &weakness(analysis, leader)
}

/// ` mimalloc2 is bad at ratchet: ...`: where the leader holds most beside the best allocator.
fn weakness(analysis: &Analysis, leader: &str) -> String {
    let Some((shape, best)) = held::weakness(&analysis.held, leader) else {
        return String::new();
    };
    let number = |name: &str| Some(shape_number(shape, analysis.held_by(name)?.of(shape)?));
    let own = number(leader).unwrap_or_default();
    let what = match shape {
        MemoryShape::Peak => format!("memory at the peak: it holds {own} what is live"),
        MemoryShape::Pool => {
            format!("ratchet, a pool of threads: it holds {own} one request's memory")
        }
        MemoryShape::FanIn => {
            format!("fan-in, a thread that only frees: it holds {own} what can be live")
        }
        MemoryShape::Returned => {
            format!("idle-return: a sleeping process returns {own} of a burst")
        }
    };
    let others = distinct([&analysis.baseline, &best.allocator])
        .into_iter()
        .filter(|name| *name != leader)
        .filter_map(|name| Some(format!("{name} {}", number(name)?)));
    format!(
        " {leader} is bad at {what}{}.",
        enclosed(" (", &join(others, ", "), ")")
    )
}

/// The number of a shape in words.
pub fn shape_number(shape: MemoryShape, number: f64) -> String {
    match shape {
        MemoryShape::Returned => units::percent(number),
        _ => times(number),
    }
}
