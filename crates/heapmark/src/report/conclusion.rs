//! The verdict as sentences that a reader can act on. Strings from outside are not yet escaped.

use super::text::{count, list};
use super::units::{digits, times};
use super::user_command;
use crate::analyse::{
    Analysis, Conclusion, Doubt, InterferenceSummary, LaterRounds, LeftOut, MemoryMeasure,
    MemoryRatio, PairwiseTest, Purge, Ranking, Ratio, Withheld,
};
use crate::store::RunFile;
use std::collections::BTreeMap;

/// The conclusion of the run, and the allocators that it cannot include.
pub(super) fn conclusion(analysis: &Analysis) -> String {
    let mut sentence = user_command::recommendation(analysis)
        .unwrap_or_else(|| judged(analysis, &analysis.conclusion, &analysis.left_out))
        + &without(&analysis.left_out, analysis);
    if let Some(LaterRounds {
        conclusion,
        left_out,
    }) = &analysis.later_rounds
    {
        let later = judged(analysis, conclusion, left_out) + &without(left_out, analysis);
        sentence = format!("First rounds: {sentence} Later rounds: {later}");
    }
    sentence + &user_command::limit(analysis)
}

fn without(left_out: &[LeftOut], analysis: &Analysis) -> String {
    let left_out: Vec<String> = left_out
        .iter()
        .map(|left| self::left_out(left, analysis.cases.len()))
        .collect();
    if left_out.is_empty() {
        String::new()
    } else {
        format!(" Left out: {}.", list(&left_out))
    }
}

fn judged(analysis: &Analysis, verdict: &Conclusion, left_out: &[LeftOut]) -> String {
    match verdict {
        Conclusion::NotAsked if !analysis.counts.is_empty() => {
            "No verdict: this run counted, and timed nothing.".to_owned()
        }
        Conclusion::NotAsked if !analysis.footprints.is_empty() => {
            "No verdict: this run sampled memory, and timed nothing.".to_owned()
        }
        Conclusion::NotAsked => {
            "No verdict: this run timed single calls, and none of its times is one of throughput.".to_owned()
        }
        Conclusion::NothingOk if analysis.cases.is_empty() => "No verdict: the run has no cases.".to_owned(),
        Conclusion::NothingOk => "No verdict: no allocator has samples in every case that all ended ok.".to_owned(),
        Conclusion::OnlyOne { allocator } if left_out.is_empty() => {
            format!("Only {allocator} was measured: there is nothing to compare it with.")
        }
        Conclusion::OnlyOne { allocator } => {
            format!("No verdict: only {allocator} can be judged, and there is nothing to compare it with.")
        }
        Conclusion::Fastest(ranking) => fastest(analysis, ranking) + &caveat(analysis, &ranking.leader),
        Conclusion::Withheld(Withheld::Floor) => {
            "No verdict: in every case the harness takes more than half of the fastest \
             allocator's time, so the order may be the harness's."
                .to_owned()
        }
        Conclusion::Withheld(Withheld::Paced) => {
            "No verdict: a paced replay takes the recorded time under every allocator. Compare the memory.".to_owned()
        }
        Conclusion::Withheld(Withheld::AaCopy { ratio }) => {
            let (low, high) = ratio.interval.unwrap_or((ratio.ratio, ratio.ratio));
            format!(
                "No verdict: a copy of {0} took {1:.3}x the time of {0} itself (95 % interval {low:.3}-{high:.3}), so this \
                 run calls equal things different. Run again on a quieter machine, or longer.",
                analysis.baseline, ratio.ratio
            )
        }
        Conclusion::Unclear(ranking) => unclear(analysis, ranking) + &caveat(analysis, &ranking.leader),
    }
}

/// What was run, and when.
pub(super) fn head(run: &RunFile) -> String {
    let tried = run.plan.cases.iter().find_map(|case| case.command());
    let what = match tried {
        Some(tried) => format!("try: {}", user_command::line(&tried.line())),
        None => format!("suite {}, preset {}", run.suite, run.preset),
    };
    format!(
        "heapmark {}, {what}, {}, baseline {}, seed {}, started {}.",
        run.heapmark,
        count(run.plan.blocks as usize, "block"),
        run.plan.baseline,
        run.plan.seed,
        run.started
    )
}

/// The line of a run without interference.
pub(super) fn undisturbed(analysis: &Analysis) -> String {
    format!(
        "Interference: nothing was seen to disturb any of {}.",
        count(analysis.interference.parts, "part")
    )
}

/// The interference that was seen, if any.
pub(super) fn interference(analysis: &Analysis) -> Option<String> {
    let InterferenceSummary {
        parts,
        disturbed,
        repeated,
        causes,
        stalled,
        stalls,
    } = &analysis.interference;
    let advice = match analysis.conclusion {
        Conclusion::NotAsked if !analysis.latency.is_empty() => {
            "take only tails far above the floor's for the allocators'"
        }
        Conclusion::NotAsked | Conclusion::Withheld(Withheld::Paced) => {
            "what was counted or held is not much the worse for it"
        }
        _ => "trust the verdicts by CPU time before those by wall time",
    };
    let again =
        (*repeated > 0).then(|| format!("{} disturbed and run again", count(*repeated, "part")));
    let by = |causes: &BTreeMap<String, usize>| {
        list(
            &causes
                .iter()
                .map(|(cause, times)| format!("{cause} ({times})"))
                .collect::<Vec<_>>(),
        )
    };
    let kept = (*disturbed > 0).then(|| {
        format!(
            "{disturbed} of {} disturbed each time, by {}, and kept: {advice}",
            count(*parts, "part"),
            by(causes)
        )
    });
    let held_up = (*stalled > 0).then(|| {
        format!(
            "{} stalled by {} and kept: that may be an allocator's own doing",
            count(*stalled, "process"),
            by(stalls)
        )
    });
    let said: Vec<String> = again.into_iter().chain(kept).chain(held_up).collect();
    (!said.is_empty()).then(|| format!("Interference: {}.", said.join("; ")))
}

fn fastest(analysis: &Analysis, ranking: &Ranking) -> String {
    let leader = &ranking.leader;
    let role = if *leader == analysis.baseline {
        ", the baseline,"
    } else {
        ""
    };
    let next = ranking.tests.first();
    let claims = [
        ranking
            .against_baseline()
            .and_then(|contest| as_fast(contest, "")),
        next.filter(|next| !next.baseline)
            .and_then(|next| as_fast(next, "the next, ")),
    ];
    let claims: Vec<String> = claims.into_iter().flatten().collect();
    format!(
        "{leader}{role} is the fastest here, over {} and {}: {}{}.",
        count(ranking.cases, "case"),
        count(ranking.blocks, "block"),
        claims.join(", "),
        ranking
            .memory
            .map(|memory| memory_claim(&memory, analysis, ranking.cases))
            .unwrap_or_default()
    )
}

/// The costs that a leader's numbers leave out.
fn caveat(analysis: &Analysis, leader: &str) -> String {
    let rows = || {
        analysis
            .cases
            .iter()
            .flat_map(|case| case.rows.iter().map(move |row| (case, row)))
    };
    let rows = || rows().filter(|(_, row)| row.allocator == leader);
    let unpurged = rows()
        .filter(|(case, row)| case.counts_purge && row.purge <= Purge::None)
        .count();
    let mut caveats = Vec::new();
    if rows().any(|(_, row)| !row.left_to_libc.is_empty()) {
        caveats.push("is partial".to_owned());
    }
    if rows().any(|(_, row)| row.served.is_some()) {
        caveats.push("is served by libc".to_owned());
    }
    if unpurged > 0 {
        caveats.push(format!(
            "gives no memory back in {} that time it",
            count(unpurged, "case")
        ));
    }
    if caveats.is_empty() {
        String::new()
    } else {
        format!(" But {leader} {}.", list(&caveats))
    }
}

fn unclear(analysis: &Analysis, ranking: &Ranking) -> String {
    let leader = &ranking.leader;
    let rivals: Vec<&PairwiseTest> = ranking.rivals().collect();
    let names: Vec<String> = [leader]
        .into_iter()
        .chain(rivals.iter().map(|contest| &contest.against))
        .cloned()
        .collect();
    let blocks = count(ranking.blocks, "block");
    let mut sentence = format!(
        "Unclear: {} cannot be told apart with {blocks}",
        list(&names)
    );
    if rivals
        .iter()
        .any(|contest| contest.doubt == Some(Doubt::FewBlocks))
    {
        let needed = ranking.blocks_needed;
        let remedy = if analysis.planned_blocks < needed {
            format!("run again with --blocks {needed}")
        } else {
            "resume the run".to_owned()
        };
        let next = rivals.first().map_or(String::new(), |next| {
            format!(" So far {leader} is ahead, then {}.", next.against)
        });
        let verb = if ranking.blocks == 1 { "is" } else { "are" };
        sentence = format!(
            "Unclear: {blocks} {verb} too few for a verdict ({needed} needed): {remedy}.{next}"
        );
    } else if rivals
        .iter()
        .all(|contest| contest.doubt == Some(Doubt::Small))
    {
        sentence.push_str(&format!(
            "{}: {leader} is ahead, but by 1 % or less. Choose by memory.",
            closest(ranking)
        ));
    } else {
        // The hardest pairwise test decides; one without an estimate would take more blocks than
        // are reasonable.
        let doubts = || {
            rivals
                .iter()
                .filter(|contest| contest.doubt == Some(Doubt::Chance))
        };
        let more = if doubts().all(|contest| contest.blocks_more.is_some()) {
            doubts().filter_map(|contest| contest.blocks_more).max()
        } else {
            None
        };
        let more = more.map_or("More blocks will hardly tell".into(), |more| {
            format!("About {more} more blocks might tell")
        });
        sentence.push_str(&format!(
            "{}. {more}; or choose among them by memory.",
            closest(ranking)
        ));
    }
    let baseline = ranking
        .against_baseline()
        .filter(|contest| contest.doubt.is_none());
    if let Some(claim) = baseline.and_then(|contest| as_fast(contest, "")) {
        let memory = ranking
            .memory
            .map(|memory| memory_claim(&memory, analysis, ranking.cases));
        sentence.push_str(&format!(
            " {leader} is {claim}{}.",
            memory.unwrap_or_default()
        ));
    }
    sentence
}

/// ` (mimalloc3 takes 0.996x the time of rpmalloc, 95 % interval 0.990-1.002)`.
fn closest(ranking: &Ranking) -> String {
    let Some((rival, ratio)) = ranking
        .rivals()
        .find_map(|contest| Some((contest, contest.ratio?)))
    else {
        return String::new();
    };
    let interval = ratio
        .interval
        .map(|(low, high)| format!(", 95 % interval {low:.3}-{high:.3}"));
    format!(
        " ({} takes {:.3}x the time of {}{})",
        ranking.leader,
        ratio.ratio,
        rival.against,
        interval.unwrap_or_default()
    )
}

/// `1.42x as fast as glibc (95 % interval 1.36-1.49)`; one digit more if 1 % decides.
fn as_fast(contest: &PairwiseTest, introduction: &str) -> Option<String> {
    let Ratio {
        ratio, interval, ..
    } = contest.ratio?.inverse();
    let number = |value: f64| {
        if ratio < 1.1 {
            format!("{value:.3}")
        } else {
            digits(value)
        }
    };
    let interval =
        interval.map(|(low, high)| format!(" (95 % interval {}-{})", number(low), number(high)));
    let against = &contest.against;
    Some(format!(
        "{}x as fast as {introduction}{against}{}",
        number(ratio),
        interval.unwrap_or_default()
    ))
}

fn memory_claim(memory: &MemoryRatio, analysis: &Analysis, cases: usize) -> String {
    let measure = match memory.measure {
        MemoryMeasure::Overhead => "memory overhead",
        MemoryMeasure::PeakRss => "peak RSS",
    };
    let some = if memory.cases < cases {
        format!(" ({} of {cases} cases)", memory.cases)
    } else {
        String::new()
    };
    format!(
        "; its {measure} is {} {}'s{some}",
        times(memory.ratio),
        analysis.baseline
    )
}

fn left_out(left: &LeftOut, cases: usize) -> String {
    let mut reasons = Vec::new();
    if left.failed > 0 {
        reasons.push(format!(
            "not ok in {} of {}",
            left.failed,
            count(cases, "case")
        ));
    }
    if left.missing > 0 {
        reasons.push(format!(
            "samples missing in {} of {}",
            left.missing,
            count(cases, "case")
        ));
    }
    format!("{} ({})", left.allocator, reasons.join(", "))
}
