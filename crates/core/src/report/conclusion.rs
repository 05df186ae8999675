//! The verdict as sentences that a reader can act on.

use super::text::{count, enclosed, join, list, short};
use super::units::{self, times};
use super::user_command;
use crate::analyse::{
    Analysis, Clock, Conclusion, Doubt, LeftOut, MemoryMeasure, MemoryShape, PairwiseTest, Purge,
    Ranking, Ratio, Table, TableRow, Withheld, distinct, held,
};
use crate::metric::{self, FigureRole};
use crate::report::known_faults;
use crate::store::RunFile;
use heapmark_stats::LEAST_BLOCKS;
use std::collections::BTreeMap;

/// Allocators whose memory differs by less are called as small as each other.
const AS_SMALL: f64 = 1.03;
/// Allocators that are named as being as small as another one.
const MOST_NAMED: usize = 3;

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
    noise(analysis)
        + &sentence
        + &user_command::share(analysis)
        + &of_memory
        + &huge_pages(analysis)
}

/// `Noisy run: 40 of 40 parts were disturbed (other programs), ...`: before anything is said by times
/// of which most were disturbed.
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
        (Clock::Wall, _) => ".",
        (Clock::Cpu, Conclusion::Fastest(_)) => {
            ", so no winner is named by wall time. By CPU time:"
        }
        (Clock::Cpu, _) => ", so nothing is claimed by wall time.",
    };
    format!(
        "Noisy run: {} of {} were disturbed each time ({}){consequence} ",
        seen.timed_disturbed,
        count(seen.timed, "part"),
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
    format!(
        " {these} had huge pages here{setting}: with another setting, time and memory may differ."
    )
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
        Conclusion::NotAsked if !analysis.footprints.is_empty() => return at_peak(analysis),
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
            let (low, high) = ratio.interval.unwrap_or((ratio.ratio, ratio.ratio));
            &format!(
                "a copy of {0} took {1:.3}x the {2} of {0} itself (95 % interval {low:.3}-{high:.3}), so this \
                 run calls equal things different. Run again on a quieter machine, or longer.",
                analysis.baseline,
                ratio.ratio,
                by.noun()
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

/// `This run sampled memory, and timed nothing. At the peak glibc holds least: ...`
fn at_peak(analysis: &Analysis) -> String {
    const TOLD: &str = "This run sampled memory, and timed nothing.";
    let (peaks, cases) = held::peaks(&analysis.footprints);
    let [(_, least), _, ..] = peaks[..] else {
        return format!("{TOLD} Its tables are the answer.");
    };
    let (small, others): (Vec<_>, Vec<_>) = peaks
        .iter()
        .partition(|(_, held)| *held <= least * AS_SMALL);
    let own = list(small.iter().map(|(name, _)| name));
    let verb = match small.len() {
        1 => "holds least",
        _ => "hold least, within 3 % of each other",
    };
    let others = join(
        others
            .iter()
            .map(|(name, held)| format!("{name} {}", times(*held))),
        ", ",
    );
    let mean = match cases {
        1 => String::new(),
        cases => format!(", the mean of {}", count(cases, "case")),
    };
    format!(
        "{TOLD} At the peak {own} {verb}: {} what is live{mean}{}.",
        times(least),
        enclosed(" (", &others, ")")
    )
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
            ranking.by,
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
                " ({} takes {:.3}x the {} of {}{interval})",
                ranking.leader,
                ratio.ratio,
                ranking.by.noun(),
                contest.against
            ))
        })
        .unwrap_or_default()
}

/// The leader's time over the baseline's, the number of the table of all cases if there is one; that
/// has wall times.
fn against_baseline(analysis: &Analysis, ranking: &Ranking) -> Option<String> {
    let contest = ranking.against_baseline()?;
    let Some(overall) = analysis.overall.iter().find(|one| {
        one.allocator == ranking.leader
            && one.cases == ranking.cases
            && ranking.by == Clock::Wall
            && analysis.later_rounds.is_none()
    }) else {
        return takes(contest, ranking.by, "");
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
        ranking.by,
        "",
    )
}

/// `0.704x the time of glibc (95 % interval 0.690-0.719)`.
fn takes(contest: &PairwiseTest, by: Clock, introduction: &str) -> Option<String> {
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
        "{}x the {} of {introduction}{}{interval}",
        units::ratio(ratio.ratio),
        by.noun(),
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

/// ` The smallest is glibc: ...`: the allocator with the least memory over all cases and its price; of
/// several that are as small, the fastest. Nothing if the leader is among them, whose memory is said
/// already. And what the leader is bad at.
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
    smallest_of(analysis, ranking, known) + &weakness(analysis, leader)
}

/// The sentence on the smallest of these, each with its memory.
fn smallest_of(analysis: &Analysis, ranking: &Ranking, known: Vec<(f64, String)>) -> String {
    let least = known
        .iter()
        .map(|(memory, _)| *memory)
        .min_by(f64::total_cmp);
    let as_small = |memory: f64| least.is_some_and(|least| memory <= least * AS_SMALL);
    let mut small = known;
    small.retain(|(memory, _)| as_small(*memory));
    let overall = |name: &str| analysis.overall.iter().find(|one| one.allocator == name);
    // Another one takes the baseline's place only if it is certainly faster, by more than 1 %.
    let time = |name: &str| match overall(name) {
        Some(one) if one.interval.is_some_and(|(_, high)| high >= 0.99) => one.ratio.max(1.0),
        Some(one) => one.ratio,
        None => f64::INFINITY,
    };
    small.sort_by(|(_, a), (_, b)| {
        let is_other = |name: &str| name != analysis.baseline;
        let order = time(a).total_cmp(&time(b));
        order.then(is_other(a).cmp(&is_other(b)))
    });
    if small.iter().any(|(_, name)| *name == ranking.leader) {
        return String::new();
    }
    let Some(((memory, name), others)) = small.split_first() else {
        return String::new();
    };
    let base = &analysis.baseline;
    // The table of all cases has wall times.
    let price = overall(name)
        .filter(|_| name != base && ranking.by == Clock::Wall)
        .map(|one| format!("at {}x {base}'s time", units::ratio(one.ratio)));
    let memory = match analysis.held.is_empty() {
        true if name == base => "the baseline".to_owned(),
        true => format!("{} {base}'s memory", times(*memory)),
        false => format!("{} what is live at the peak", times(*memory)),
    };
    let rest = join([Some(memory), price].iter().flatten(), ", ");
    if others.is_empty() {
        format!(" The smallest is {}: {rest}.", analysis.named(name))
    } else {
        let more = others.len().saturating_sub(MOST_NAMED);
        let named = others
            .iter()
            .take(MOST_NAMED)
            .map(|(_, name)| name.clone())
            .chain((more > 0).then(|| count(more, "other")));
        format!(
            " {} is as small as any (within 3 %: {}): {rest}.",
            analysis.named(name),
            list(named)
        )
    }
}

/// ` mimalloc2 is bad at ratchet: ...`: where the leader holds most beside the best allocator.
fn weakness(analysis: &Analysis, leader: &str) -> String {
    let Some((shape, best)) = held::weakness(&analysis.held, leader, &analysis.baseline) else {
        return String::new();
    };
    let number = |name: &str| Some(shape_number(shape, analysis.held_by(name)?.of(shape)?));
    let own = number(leader).unwrap_or_default();
    let kernel = kernel_of(shape);
    let what = match shape {
        MemoryShape::Peak => format!("memory at the peak: it holds {own} what is live"),
        MemoryShape::Pool => {
            format!("{kernel}, a pool of threads: it holds {own} one request's memory")
        }
        MemoryShape::FanIn => {
            format!("{kernel}, a thread that only frees: it holds {own} what can be live")
        }
        MemoryShape::Returned => {
            format!("{kernel}: a sleeping process returns {own} of a burst")
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

/// What shows a shape: replays, or the kernel with that figure.
pub fn kernel_of(shape: MemoryShape) -> &'static str {
    metric::with_role(FigureRole::Held(shape))
        .and_then(|metric| metric.figure)
        .map_or("replays", |figure| &figure.workload)
}

/// The number of a shape in words.
pub fn shape_number(shape: MemoryShape, number: f64) -> String {
    match shape {
        MemoryShape::Returned => units::percent(number),
        _ => times(number),
    }
}
