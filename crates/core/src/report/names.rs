//! Which other allocators may be the right choice: the best compromise, the best for pools of threads, the smallest. An allocator is named
//! only if no other beats it in both time and memory.

use super::text::{count, enclosed, join, list};
use super::units::{self, times};
use crate::analyse::{Analysis, Clock, Conclusion, MemoryShape, Ranking, distinct, held};
use crate::metric::{self, FigureRole};

/// Allocators whose memory differs by less than this factor are called equally small.
pub const AS_SMALL: f64 = 1.03;
/// The most allocators that are named as being equally small.
const MOST_NAMED: usize = 2;
/// A good compromise saves at least this share of the fastest allocator's memory, and of the smallest allocator's time.
pub const WORTH_NAMING: f64 = 0.1;

/// An allocator that has a place in the choice between time and memory.
struct Choice<'a> {
    name: &'a str,
    /// The time over the baseline's, over all cases, by which it is chosen: infinite for an allocator that is not in all cases, and 1
    /// for one that is not certainly faster.
    time: f64,
    /// The time ratio that the table shows.
    shown: f64,
    /// The memory that is compared: over what is live, or over the baseline's.
    memory: f64,
}

/// ` Good compromise: snmalloc (0.47, 1.32x).` and similar sentences; empty for an answer that names no leader.
pub fn others(analysis: &Analysis) -> String {
    let (Conclusion::Fastest(ranking) | Conclusion::Unclear(ranking)) = &analysis.conclusion else {
        return String::new();
    };
    let leader = &ranking.leader;
    let peak = |name: &str| match analysis.held.is_empty() {
        true => Some(analysis.overall_of(name)?.memory?.ratio),
        false => analysis.held_by(name)?.peak,
    };
    let at_peak = choices(analysis, ranking, peak);
    let in_pools = choices(analysis, ranking, |name| analysis.held_by(name)?.worst());
    // These names come from the table of all cases, which has wall times.
    let (between, for_pools) = match ranking.by {
        Clock::Wall => (
            compromise(analysis, leader, &at_peak),
            for_pools(leader, &in_pools),
        ),
        Clock::Cpu | Clock::Own => Default::default(),
    };
    let weakness = weakness(analysis, leader, !for_pools.is_empty());
    between + &for_pools + &smallest(analysis, ranking, at_peak) + &weakness
}

/// All allocators whose memory is known.
fn choices<'a>(
    analysis: &'a Analysis,
    ranking: &Ranking,
    memory: impl Fn(&str) -> Option<f64>,
) -> Vec<Choice<'a>> {
    let ranked = analysis.overall.iter().map(|one| one.allocator.as_str());
    let held = analysis.held.iter().map(|held| held.allocator.as_str());
    let names = distinct(ranked.chain(held)).into_iter();
    let choice = |name| {
        let memory = memory(name)?;
        let one = analysis.overall_of(name);
        // Another allocator takes the baseline's place only if it is certainly faster, by more than 1 %.
        let time = match one {
            Some(one) if one.allocator == ranking.leader => one.ratio,
            Some(one) if one.interval.is_none_or(|(_, high)| high >= 0.99) => one.ratio.max(1.0),
            Some(one) => one.ratio,
            None => f64::INFINITY,
        };
        let shown = one.map_or(time, |one| one.ratio);
        Some(Choice {
            name,
            time,
            shown,
            memory,
        })
    };
    names.filter_map(choice).collect()
}

/// The allocator that costs least, time times memory, among those that qualify and that no other beats in both.
fn best_trade<'a, 'b>(
    choices: &'b [Choice<'a>],
    leader: &str,
    qualifies: impl Fn(&Choice) -> bool,
) -> Option<&'b Choice<'a>> {
    let is_beaten = |one: &Choice| {
        let beats = |other: &Choice| other.time < one.time && other.memory < one.memory * AS_SMALL;
        choices.iter().any(beats)
    };
    let cost = |one: &Choice| one.time * one.memory;
    let others = choices
        .iter()
        .filter(|one| one.name != leader && qualifies(one));
    let known = others.filter(|one| one.time.is_finite() && !is_beaten(one));
    known.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

/// ` Good compromise: snmalloc (0.47, 1.32x).`: an allocator that holds less memory than the fastest, and takes less time than the
/// smallest.
fn compromise(analysis: &Analysis, leader: &str, choices: &[Choice]) -> String {
    let sentence = || {
        let fastest = choices.iter().find(|one| one.name == leader)?;
        let small = choices
            .iter()
            .min_by(|a, b| a.memory.total_cmp(&b.memory))?;
        let saves = |cost: f64, other: f64| cost <= other * (1.0 - WORTH_NAMING);
        let is_between = |one: &Choice| {
            saves(one.memory, fastest.memory)
                && saves(one.time, small.time)
                && one.memory > small.memory * AS_SMALL
        };
        let one = best_trade(choices, leader, is_between)?;
        (one.name != analysis.baseline).then(|| {
            let (time, memory) = (units::short(one.shown), times(one.memory));
            format!(" Good compromise: {} ({time}, {memory}).", one.name)
        })
    };
    sentence().unwrap_or_default()
}

/// ` For pools of threads: tcmalloc-percpu (0.50, pool 1.37x).`: an allocator that is named if the fastest holds much more.
fn for_pools(leader: &str, choices: &[Choice]) -> String {
    let sentence = || {
        let fastest = choices.iter().find(|one| one.name == leader)?;
        let holds_less = |one: &Choice| one.memory * held::BAD <= fastest.memory;
        let one = best_trade(choices, leader, holds_less)?;
        let (time, memory) = (units::short(one.shown), times(one.memory));
        Some(format!(
            " For pools of threads: {} ({time}, pool {memory}; {leader} {}).",
            one.name,
            times(fastest.memory)
        ))
    };
    sentence().unwrap_or_default()
}

/// ` Smallest: glibc (1.11x; dlmalloc as well).`: the allocator with the least memory over all cases, and its price; of several that are
/// equally small, the fastest. Empty if the leader is among them, since its memory is stated already.
fn smallest(analysis: &Analysis, ranking: &Ranking, mut small: Vec<Choice>) -> String {
    let memories = small.iter().map(|one| one.memory);
    let least = memories.min_by(f64::total_cmp).unwrap_or_default();
    small.retain(|one| one.memory <= least * AS_SMALL);
    let base = analysis.baseline.as_str();
    small.sort_by(|a, b| {
        let order = a.time.total_cmp(&b.time);
        order.then((a.name != base).cmp(&(b.name != base)))
    });
    if small.iter().any(|one| one.name == ranking.leader) {
        return String::new();
    }
    let Some((one, others)) = small.split_first() else {
        return String::new();
    };
    // The table of all cases has wall times.
    let price = analysis
        .overall_of(one.name)
        .filter(|_| one.name != base && ranking.by == Clock::Wall)
        .map(|all| units::short(all.ratio));
    let memory = match analysis.held.is_empty() {
        true if one.name == base => "the baseline".to_owned(),
        true => format!("{} {base}'s memory", times(one.memory)),
        false => times(one.memory),
    };
    let more = others.len().saturating_sub(MOST_NAMED);
    let named = others
        .iter()
        .take(MOST_NAMED)
        .map(|choice| choice.name.to_owned());
    let named = list(named.chain((more > 0).then(|| count(more, "other"))));
    let numbers = join(price.into_iter().chain([memory]), ", ");
    let as_small = enclosed("; ", &named, " as well");
    format!(" Smallest: {} ({numbers}{as_small}).", one.name)
}

/// ` mimalloc2 is bad at ratchet: ...`: the case in which the leader holds most compared with the best allocator.
fn weakness(analysis: &Analysis, leader: &str, told_of_pools: bool) -> String {
    let Some((shape, best)) = held::weakness(&analysis.held, leader, &analysis.baseline) else {
        return String::new();
    };
    if told_of_pools && matches!(shape, MemoryShape::Pool | MemoryShape::FanIn) {
        return String::new();
    }
    let number = |name: &str| Some(shape_number(shape, analysis.held_by(name)?.of(shape)?));
    let value = number(leader).unwrap_or_default();
    let kernel = kernel_of(shape);
    let what = match shape {
        MemoryShape::Peak => format!("memory at the peak: it holds {value} what is live"),
        MemoryShape::Pool => {
            format!("{kernel}, a pool of threads: it holds {value} one request's memory")
        }
        MemoryShape::FanIn => {
            format!("{kernel}, a thread that only frees: it holds {value} what can be live")
        }
        MemoryShape::Returned => {
            format!("{kernel}: a sleeping process returns {value} of a burst")
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

/// Returns what shows a shape of memory: the kernel with that figure, or replays.
pub fn kernel_of(shape: MemoryShape) -> &'static str {
    metric::with_role(FigureRole::Held(shape))
        .and_then(|metric| metric.figure)
        .map_or("replays", |figure| &figure.workload)
}

/// The number for a shape of memory, as text.
pub fn shape_number(shape: MemoryShape, number: f64) -> String {
    match shape {
        MemoryShape::Returned => units::percent(number),
        _ => times(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_trade_is_the_best_of_those_that_qualify() {
        let choices = [
            ("leader", 0.36, 2.0),
            ("cheapest", 0.365, 1.84),
            ("modest", 0.45, 1.5),
            ("smallest", 1.0, 1.1),
        ];
        let choices = choices.map(|(name, time, memory)| Choice {
            name,
            time,
            shown: time,
            memory,
        });
        let saves_memory = |one: &Choice| one.memory <= 2.0 * (1.0 - WORTH_NAMING);
        let best = |qualifies: &dyn Fn(&Choice) -> bool| {
            best_trade(&choices, "leader", qualifies).map(|one| one.name)
        };
        assert_eq!(best(&|_| true), Some("cheapest"));
        assert_eq!(best(&saves_memory), Some("modest"));
        assert_eq!(best(&|_| false), None);
    }
}
