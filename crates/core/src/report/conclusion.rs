//! The verdict as sentences that a reader can act on.

use super::text::{count, enclosed, join, list, short, together};
use super::units::{self, times};
use super::{memory_answer, names, user_command};
use crate::analyse::{
    Analysis, Clock, Conclusion, Doubt, LeftOut, MemoryMeasure, PairwiseTest, Purge, Ranking,
    Ratio, Table, TableRow, Withheld,
};
use crate::report::known_faults;
use crate::store::RunFile;
use heapmark_stats::LEAST_BLOCKS;
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
    noise(analysis)
        + &sentence
        + &user_command::least_memory(analysis)
        + &user_command::share(analysis)
        + &names::others(analysis)
        + &huge_pages(analysis)
}

/// `Noisy run: 40 of 40 parts were disturbed (other programs), ...`: comes before any claim about times if most of them were disturbed.
fn noise(analysis: &Analysis) -> String {
    let by = match &analysis.conclusion {
        Conclusion::Fastest(ranking) | Conclusion::Unclear(ranking) => ranking.by,
        Conclusion::Withheld(Withheld::AaCopy { by, .. }) => *by,
        _ => return String::new(),
    };
    let seen = &analysis.interference;
    if !seen.is_noisy() {
        return String::new();
    }
    let consequence = match (by, &analysis.conclusion) {
        (Clock::Wall | Clock::Own, _) => ".",
        (Clock::Cpu, Conclusion::Fastest(_)) => {
            ", so no winner is named by wall time. By CPU time:"
        }
        (Clock::Cpu, _) => ", so nothing is claimed by wall time.",
    };
    format!(
        "Noisy run: {} of {} {} disturbed each time ({}){consequence} ",
        seen.timed_disturbed,
        count(seen.timed, "part"),
        if seen.timed_disturbed == 1 {
            "was"
        } else {
            "were"
        },
        list(seen.causes.keys())
    )
}

/// ` Only mimalloc2 had huge pages here (THP madvise): ...`, if only some of the allocators had any.
fn huge_pages(analysis: &Analysis) -> String {
    let shares = &analysis.huge_shares;
    let (with, without): (Vec<_>, Vec<_>) = shares.iter().partition(|(_, share)| *share > 0.0);
    if with.is_empty() || without.is_empty() {
        return String::new();
    }
    let names = |of: &[&(String, f64)]| list(of.iter().map(|(name, _)| name));
    let these = if with.len() <= without.len() {
        format!("Only {}", names(&with))
    } else {
        format!("All but {}", names(&without))
    };
    let setting = enclosed(" (THP ", &analysis.transparent_huge_pages, ")");
    format!(" {these} had huge pages here{setting}.")
}

fn without(left_out: &[LeftOut]) -> String {
    let reason = |left: &LeftOut| {
        let cases = count(left.of, "case");
        let reasons = [(left.failed, "not ok"), (left.missing, "samples missing")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{what} in {number} of {cases}"));
        join(reasons, ", ")
    };
    let reasons = left_out
        .iter()
        .map(|left| (left.allocator.clone(), reason(left)));
    let groups = together(&reasons.collect::<Vec<_>>());
    let groups = groups
        .iter()
        .map(|(reason, names)| format!("{names} ({reason})"));
    enclosed(" Left out: ", &list(groups), ".")
}

fn judged(analysis: &Analysis, verdict: &Conclusion, left_out: &[LeftOut]) -> String {
    let why = match verdict {
        Conclusion::NotAsked if !analysis.counts.is_empty() => {
            "this run counted, and timed nothing."
        }
        Conclusion::NotAsked if !analysis.footprints.is_empty() => {
            return memory_answer::sentence(analysis);
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
        Conclusion::Withheld(Withheld::AaCopy { ratio, by }) => {
            let interval = ratio
                .interval
                .map(|(low, high)| format!(" (95 % interval {low:.3}-{high:.3})"));
            &format!(
                "a copy of {0} took {1:.3}x the {2} of {0} itself{3}, so this \
                 run calls equal things different, and none is certainly further apart. Run again on a quieter machine, or \
                 longer.",
                analysis.baseline,
                ratio.ratio,
                by.noun(),
                interval.unwrap_or_default()
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

/// When the run was started: `2026-01-01 10:00:00 UTC`.
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
    let text = join(seen.map(|(_, text)| text), "; ");
    (!text.is_empty()).then(|| format!("Interference: {text}."))
}

fn fastest(analysis: &Analysis, ranking: &Ranking) -> String {
    let leader = &ranking.leader;
    let role = if *leader == analysis.baseline {
        ", the baseline,"
    } else {
        ""
    };
    let time = against_baseline(analysis, ranking)
        .or_else(|| the_next(analysis, ranking))
        .map_or_else(String::new, |time| format!(": {time}"));
    let leader = analysis.named(leader);
    format!(
        "{leader}{role} is the fastest here, over {}{time}{}.{}",
        count(ranking.cases, "case"),
        memory_claim(analysis, ranking),
        another_program(analysis, &ranking.leader)
    )
}

/// ` In another program: 0.70 to 1.04.`, after real programs: the range in which a further program is expected.
fn another_program(analysis: &Analysis, leader: &str) -> String {
    let several = analysis.real_programs().len() > 1;
    let mut overall = analysis.overall.iter().filter(|_| several);
    let of_leader = overall.find(|one| one.allocator == leader);
    let next = of_leader.and_then(|one| one.next_case);
    next.map_or_else(String::new, |(low, high)| {
        format!(
            " In another program: {} to {}.",
            units::short(low),
            units::short(high)
        )
    })
}

/// The costs that a leader's numbers leave out.
fn caveat(analysis: &Analysis, leader: &str) -> String {
    let cases = |holds: fn(&Table, &TableRow) -> bool| {
        analysis
            .cases
            .iter()
            .filter(|case| case.row(leader).is_some_and(|row| holds(case, row)))
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
    let fails = known_faults::fails(failed);
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
        let remedy = if analysis.planned_blocks < LEAST_BLOCKS {
            format!("run again with --blocks {LEAST_BLOCKS}")
        } else if analysis.is_out_of_time {
            "raise the --budget".to_owned()
        } else {
            "resume the run".to_owned()
        };
        let verb = if ranking.blocks == 1 { "is" } else { "are" };
        format!(
            "Unclear: {blocks} {verb} too few for a verdict ({LEAST_BLOCKS} needed): {remedy}. So far {} is ahead, then {}.",
            analysis.named(leader),
            analysis.named(&rivals[0].against)
        )
    } else {
        let others = rivals.iter().map(|contest| &contest.against);
        let advice = if doubts().all(|doubt| doubt == Some(Doubt::Small)) {
            format!(": {leader} is ahead, but by 1 % or less. Choose by memory.")
        } else {
            // The hardest pairwise test decides; a test without an estimate would take more blocks than are reasonable.
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
            "Unclear: {} are not told apart by {blocks}{advice}",
            list(
                [leader]
                    .into_iter()
                    .chain(others)
                    .map(|name| analysis.named(name))
            )
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

/// The leader's time over the baseline's. If there is a table of all cases, which has wall times, the number is the one in that table.
fn against_baseline(analysis: &Analysis, ranking: &Ranking) -> Option<String> {
    let ratio = ranking.against_baseline()?.ratio?;
    let ratio = shown(analysis, ranking, &ranking.leader, ratio)?;
    Some(of_time(&ratio, analysis, ranking.by))
}

/// Returns the allocator that a leader is ahead of if the leader is the baseline itself: `the next, hoard, takes 1.26 times its time [1.20,
/// 1.30]`.
fn the_next(analysis: &Analysis, ranking: &Ranking) -> Option<String> {
    let next = ranking.tests.first()?;
    let ratio = next.ratio?;
    let inverse = Ratio {
        ratio: 1.0 / ratio.ratio,
        interval: ratio.interval.map(|(low, high)| (1.0 / high, 1.0 / low)),
        ..ratio
    };
    let ratio = shown(analysis, ranking, &next.against, inverse)?;
    let time = of_time(&ratio, analysis, ranking.by);
    Some(format!(
        "the next, {}, takes {time}",
        analysis.named(&next.against)
    ))
}

/// The ratio that a table shows for an allocator: over all cases, from the table that has wall times, or of the only case; `None` if there
/// is no such row.
fn shown(analysis: &Analysis, ranking: &Ranking, allocator: &str, only: Ratio) -> Option<Ratio> {
    if ranking.cases == 1 {
        return Some(only);
    }
    let is_same = ranking.by == Clock::Wall && analysis.later_rounds.is_none();
    let mut overall = analysis.overall.iter().filter(|_| is_same);
    let one = overall.find(|one| one.allocator == allocator && one.cases == ranking.cases)?;
    Some(Ratio {
        ratio: one.ratio,
        interval: one.interval,
        pairs: ranking.blocks,
    })
}

/// A ratio of times in words, with as many digits as in the first table.
fn of_time(ratio: &Ratio, analysis: &Analysis, by: Clock) -> String {
    let digits = match analysis.overall.is_empty() {
        true => units::ratio,
        false => units::short,
    };
    units::over(
        ratio,
        &format!("{}'s {}", analysis.baseline, by.noun()),
        digits,
    )
}

/// The leader's memory, if it can be compared: `; its peak RSS is 1.12x glibc's`.
fn memory_claim(analysis: &Analysis, ranking: &Ranking) -> String {
    let peak = |name: &str| analysis.held_by(name)?.peak.map(times);
    if let Some(held) = peak(&ranking.leader) {
        let base = peak(&analysis.baseline).filter(|_| ranking.leader != analysis.baseline);
        let base = base.map(|base| format!("{} {base}", analysis.baseline));
        let base = enclosed(" (", &base.unwrap_or_default(), ")");
        return format!("; it holds {held} what is live at the peak{base}");
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
