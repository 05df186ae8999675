//! The verdict as sentences that a person can act on. Strings from outside are still as they came.

use super::text::{count, list};
use super::units::{digits, times};
use crate::analyse::{Analysis, Contest, Doubt, LeftOut, Ratio, Standing, Verdict};

/// What the run says, and whom it cannot speak about.
pub(super) fn verdict(analysis: &Analysis) -> String {
    let mut sentence = match &analysis.verdict {
        Verdict::NothingOk if analysis.cases.is_empty() => {
            "No verdict: the run has no cases.".to_owned()
        }
        Verdict::NothingOk => {
            "No verdict: no allocator has samples in every case that all ended ok.".to_owned()
        }
        Verdict::OnlyOne { allocator } if analysis.left_out.is_empty() => {
            format!("Only {allocator} was measured: there is nothing to compare it with.")
        }
        Verdict::OnlyOne { allocator } => {
            format!(
                "No verdict: only {allocator} can be judged, and there is nothing to compare it with."
            )
        }
        Verdict::Fastest(standing) => fastest(analysis, standing),
        Verdict::Unclear(standing) => unclear(standing),
    };
    if !analysis.left_out.is_empty() {
        let left_out: Vec<String> = analysis
            .left_out
            .iter()
            .map(|left| left_out(left, analysis.cases.len()))
            .collect();
        sentence.push_str(&format!(" Left out: {}.", list(&left_out)));
    }
    sentence
}

fn fastest(analysis: &Analysis, standing: &Standing) -> String {
    let leader = &standing.leader;
    let mut sentence = format!("{leader}{} is the fastest here: ", role(analysis, leader));
    let mut claims = Vec::new();
    if let Some(contest) = standing.against_baseline() {
        claims.extend(as_fast(contest, "", standing.cases));
    }
    if let Some(next) = standing.contests.first().filter(|next| !next.baseline) {
        claims.extend(as_fast(next, "the next, ", standing.cases));
    }
    sentence.push_str(&claims.join(", "));
    if let Some(ratio) = standing.memory_ratio {
        sentence.push_str(&format!(
            "; it takes {} {}'s peak memory",
            times(ratio),
            analysis.baseline
        ));
    }
    sentence.push('.');
    sentence
}

fn unclear(standing: &Standing) -> String {
    let leader = &standing.leader;
    let rivals: Vec<&Contest> = standing.rivals().collect();
    let mut names = vec![leader.clone()];
    names.extend(rivals.iter().map(|contest| contest.against.clone()));
    let mut sentence = format!("Unclear: {} cannot be told apart", list(&names));
    if rivals
        .iter()
        .any(|contest| contest.doubt == Some(Doubt::FewBlocks))
    {
        let needed = standing.blocks_needed;
        sentence.push_str(&format!(
            " with {} ({needed} needed): run again with --blocks {needed}.",
            count(standing.blocks, "block")
        ));
    } else {
        sentence.push_str(&format!(" with {}", count(standing.blocks, "block")));
        if let Some((closest, ratio)) = rivals
            .first()
            .and_then(|contest| Some((contest, contest.ratio?)))
        {
            sentence.push_str(&format!(
                "; {leader} takes {} {}'s time{}",
                ratio_3(ratio.ratio),
                closest.against,
                taking(&ratio)
            ));
        }
        sentence.push_str(
            match rivals
                .iter()
                .all(|contest| contest.doubt == Some(Doubt::Small))
            {
                true => ". The difference is real but at most 1 %: choose by memory.",
                false => ". More blocks may tell; otherwise choose among them by memory.",
            },
        );
    }
    let baseline = standing
        .against_baseline()
        .filter(|contest| contest.doubt.is_none());
    if let Some(claim) = baseline.and_then(|contest| as_fast(contest, "", standing.cases)) {
        sentence.push_str(&format!(" {leader} is {claim}."));
    }
    sentence
}

fn role(analysis: &Analysis, allocator: &str) -> &'static str {
    if allocator == analysis.baseline {
        ", the baseline,"
    } else {
        ""
    }
}

/// `1.42x as fast as glibc (95 % interval 1.36-1.49 over 6 cases, 10 blocks)`.
fn as_fast(contest: &Contest, introduction: &str, cases: usize) -> Option<String> {
    let Ratio {
        ratio,
        interval,
        pairs,
    } = contest.ratio?.inverse();
    let interval =
        interval.map(|(low, high)| format!("95 % interval {}-{} ", digits(low), digits(high)));
    Some(format!(
        "{} as fast as {introduction}{} ({}over {}, {})",
        times(ratio),
        contest.against,
        interval.unwrap_or_default(),
        count(cases, "case"),
        count(pairs, "block")
    ))
}

fn ratio_3(ratio: f64) -> String {
    format!("{}x", super::units::ratio(ratio))
}

fn taking(ratio: &Ratio) -> String {
    match ratio.interval {
        Some((low, high)) => {
            format!(
                " (95 % interval {}-{})",
                super::units::ratio(low),
                super::units::ratio(high)
            )
        }
        None => String::new(),
    }
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
