//! Judges the finalists by the pairs of the confirmation. Pure.

use heapmark_core::analyse::Ratio;
use heapmark_stats::{ALPHA, Finding, Rule, judge_tested, paired, shift};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The quantity that a setting is to reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Goal {
    /// CPU time of the command (wall time if it cannot take turns, or of a client), or the number that it reports (--value)
    Time,
    /// The peak of the resident set
    Memory,
    /// What is resident when the command ends
    Idle,
}

/// All goals.
pub const GOALS: [Goal; 3] = [Goal::Time, Goal::Memory, Goal::Idle];

impl Goal {
    /// The goal's name in sentences.
    pub fn word(self) -> &'static str {
        match self {
            Goal::Time => "time",
            Goal::Memory => "peak memory",
            Goal::Idle => "memory at its end",
        }
    }

    /// The goal's name on the command line and in files.
    pub fn key(self) -> &'static str {
        match self {
            Goal::Time => "time",
            Goal::Memory => "memory",
            Goal::Idle => "idle",
        }
    }
}

impl Serialize for Goal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

/// Log ratios of a row by goal: for each pair, ln of the row's value over that of the default
/// beside it.
pub type Logs = BTreeMap<Goal, Vec<f64>>;

/// Returns the ratio for each goal that has one.
pub fn ratios(logs: &Logs) -> BTreeMap<Goal, Ratio> {
    let of = |(goal, logs): (&Goal, &Vec<f64>)| Some((*goal, Ratio::from_logs(logs)?));
    logs.iter().filter_map(of).collect()
}

/// Returns ln of the ratio for a goal; `None` if there is none.
pub fn estimate(logs: &Logs, goal: Goal) -> Option<f64> {
    Some(shift(logs.get(&goal)?)?.estimate)
}

/// A limit on another goal: `memory=0.8`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtMost {
    /// The goal that is limited.
    pub goal: Goal,
    /// The largest allowed ratio to the default.
    pub ratio: f64,
}

/// The judgement of a finalist.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "word", content = "why")]
pub enum Confirmation {
    /// The setting helps.
    Confirmed,
    /// Whether the setting helps is not known, for this reason.
    NotConfirmed(String),
}

/// Judges finalists by pairs that the search has not seen. All their ratios are one family (Holm). A difference beyond chance
/// is not enough: the interval must also lie below the better of two copies of the default.
pub fn judged(
    finalists: &[Logs],
    decoys: &[Logs],
    goal: Goal,
    at_most: Option<AtMost>,
) -> Vec<Confirmation> {
    let rule = Rule::new(finalists.len() * GOALS.len(), ALPHA);
    let logs = |one: &Logs, goal| one.get(&goal).cloned().unwrap_or_default();
    let tested: Vec<_> = finalists
        .iter()
        .flat_map(|one| GOALS.map(|goal| paired(&logs(one, goal), &rule)))
        .collect();
    let judgements = judge_tested(&tested, &rule);
    let better_decoy = decoys.iter().filter_map(|decoy| estimate(decoy, goal));
    let better_decoy = better_decoy.fold(0.0, f64::min);
    let place = |goal: Goal| GOALS.iter().position(|known| *known == goal).unwrap_or(0);
    let judge = |of_finalist: &[Option<heapmark_stats::Judgement>]| {
        let no = |why: &str| Confirmation::NotConfirmed(why.to_owned());
        let Some(judgement) = &of_finalist[place(goal)] else {
            return no("no values");
        };
        let most = judgement.shift.interval.map(|interval| interval.high);
        match judgement.finding {
            Finding::Lower => {}
            Finding::Same => return no("the same"),
            Finding::Small => return no("a difference of less than 1 %"),
            Finding::Higher => return no("more"),
            Finding::TooFew => return no("too few pairs"),
            Finding::Unclear => return no("no more than chance"),
        }
        if most.is_none_or(|most| most >= better_decoy) {
            return no("no better than a copy of the default");
        }
        if let Some(limit) = at_most {
            let other = of_finalist[place(limit.goal)].as_ref();
            let most = other
                .and_then(|judgement| judgement.shift.interval)
                .map(|interval| interval.high);
            if most.is_none_or(|most| most > limit.ratio.ln()) {
                return no("not certainly within --at-most");
            }
        }
        Confirmation::Confirmed
    };
    judgements.chunks(GOALS.len()).map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs around this ratio with 1 % of noise that repeats.
    fn logs(time: f64, memory: f64) -> Logs {
        let around = |ratio: f64| {
            let noise = |n: u32| 0.01 * (f64::from(n * 7 % 12) / 11.0 - 0.5);
            (0..12).map(|n| ratio.ln() + noise(n)).collect()
        };
        Logs::from([(Goal::Time, around(time)), (Goal::Memory, around(memory))])
    }

    fn confirmed(finalist: Logs, decoys: &[Logs], at_most: Option<f64>) -> Confirmation {
        let at_most = at_most.map(|ratio| AtMost {
            goal: Goal::Memory,
            ratio,
        });
        judged(&[finalist], decoys, Goal::Time, at_most).remove(0)
    }

    fn no(why: &str) -> Confirmation {
        Confirmation::NotConfirmed(why.into())
    }

    #[test]
    fn a_finalist_must_be_beyond_chance_beyond_the_decoys_and_within_the_limit() {
        let even = [logs(1.0, 1.0), logs(1.001, 1.0)];
        let odd = [logs(1.0, 1.0), logs(0.93, 1.0)];
        let of = |time, memory, decoys, at_most| confirmed(logs(time, memory), decoys, at_most);
        assert_eq!(of(0.95, 1.0, &even, None), Confirmation::Confirmed);
        assert_eq!(
            of(0.95, 1.0, &odd, None),
            no("no better than a copy of the default")
        );
        assert_eq!(
            of(0.95, 1.0, &even, Some(0.9)),
            no("not certainly within --at-most")
        );
        assert_eq!(of(0.95, 0.8, &even, Some(0.9)), Confirmation::Confirmed);
        assert_eq!(of(1.0, 1.0, &even, None), no("the same"));
        assert_eq!(of(1.1, 1.0, &even, None), no("more"));
        assert_eq!(confirmed(Logs::new(), &even, None), no("no values"));
        let few = Logs::from([(Goal::Time, vec![-0.1, -0.1])]);
        assert_eq!(confirmed(few, &even, None), no("too few pairs"));
    }
}
