//! From the processes of a check of hardening to its cells.

use crate::catalog::misuse::{Ends, Form, Gather, Misuse, MisuseOutcome};
use crate::execute::check::Ended;
use crate::execute::misuse::{Attempted, Fault, Phase};
use crate::execute::signal_name;
use crate::store::misuse::{Impact, MisuseCell, MisuseResult, Share};
use std::collections::BTreeMap;

/// Of resamples: the same samples have the same interval.
const SEED: u64 = 1;

/// How its processes ended, and what is said of them. The twin is the same process without the
/// misuse: if it does not end well, nothing is known of the allocator.
pub fn of_attempts(
    misuse: &Misuse,
    (size_bytes, form): (u64, Form),
    twin: Option<&Attempted>,
    attempts: &[Attempted],
    again: String,
) -> MisuseCell {
    let ended = attempts.iter().map(|it| (outcome(it, misuse.ends), it));
    let ended: Vec<(MisuseOutcome, &Attempted)> = ended.collect();
    let with = |wanted: MisuseOutcome| {
        let ended = ended.iter().filter(move |(outcome, _)| *outcome == wanted);
        ended.map(|(_, attempt)| *attempt)
    };
    let mut tally: BTreeMap<MisuseOutcome, u32> = BTreeMap::new();
    for (outcome, _) in &ended {
        *tally.entry(*outcome).or_default() += 1;
    }
    let failed_twin = twin.and_then(why_not_well);
    let most = tally
        .iter()
        .max_by_key(|(outcome, times)| (**times, **outcome));
    let outcome_word = match (&failed_twin, most) {
        (None, Some((outcome, _))) => *outcome,
        _ => MisuseOutcome::Error,
    };
    let example = with(outcome_word).next();
    let late = with(MisuseOutcome::StoppedLate).map(|it| it.page.operations);
    let mut distances: Vec<u64> = late.collect();
    distances.sort_unstable();
    let by_next_call = distances.iter().filter(|it| **it == 0).count() as u32;
    if outcome_word != MisuseOutcome::StoppedLate {
        distances.clear();
    }
    let mut notes = example.map(|it| it.notes.clone()).unwrap_or_default();
    let rates = example.iter().flat_map(|it| &it.rates);
    notes.extend(rates.filter_map(|it| rate(it)));
    if let Some(gather) = misuse.gather {
        let samples = attempts.iter().flat_map(|it| &it.samples);
        notes.extend(gathered(
            gather,
            &samples.map(String::as_str).collect::<Vec<_>>(),
        ));
    }
    let is_other_error = outcome_word != MisuseOutcome::Error;
    let error = with(MisuseOutcome::Error).find(|_| is_other_error);
    let error = error.and_then(why);
    let error = error.map(|why| format!("error: {why}"));
    let cell = MisuseCell {
        size_bytes,
        form,
        outcome: outcome_word,
        tally,
        by_next_call,
        share: None,
        impact: attempts.iter().map(impact).max().unwrap_or(Impact::None),
        distance: distances.get(distances.len() / 2).copied(),
        notes,
        reasons: match failed_twin {
            Some(why) => vec![format!("without the misuse: {why}")],
            None => example.and_then(why).into_iter().chain(error).collect(),
        },
        again,
    };
    MisuseCell {
        share: share(misuse, &cell),
        ..cell
    }
}

/// A result without cells yet.
pub fn no_cells(misuse: &Misuse) -> MisuseResult {
    MisuseResult {
        check: misuse.name.clone(),
        group: misuse.group.clone(),
        ends: misuse.ends,
        cells: Vec::new(),
    }
}

/// Why the process without the misuse says nothing good of the check.
pub fn why_not_well(twin: &Attempted) -> Option<String> {
    match outcome(twin, Ends::Outcome) {
        MisuseOutcome::Absorbed | MisuseOutcome::Unsupported => None,
        other => Some(why(twin).unwrap_or_else(|| other.word().into())),
    }
}

/// In how many processes a misuse was detected, of those that could detect it: stopped or trapped in
/// the bad call or access, or ended on purpose by the first call after it. `None` if it is no misuse,
/// or applies to no size and form.
pub fn detected(result: &MisuseResult) -> Option<(u32, u32)> {
    use MisuseOutcome::*;
    let mut detected = 0;
    let mut all = 0;
    let cells = result.cells.iter();
    for cell in cells.filter(|_| result.ends == Ends::Outcome) {
        detected += cell.by_next_call;
        for (outcome, times) in &cell.tally {
            match outcome {
                Unsupported | Observed | Error => continue,
                Stopped | Trapped => detected += times,
                _ => {}
            }
            all += times;
        }
    }
    (all > 0).then_some((detected, all))
}

fn outcome(attempt: &Attempted, ends: Ends) -> MisuseOutcome {
    use MisuseOutcome::*;
    match &attempt.ended {
        Ended::NotLoaded(_) => Error,
        Ended::Unsupported(_) => Unsupported,
        Ended::Hung(_) => Hang,
        Ended::TooLarge => Crashed,
        Ended::Done if impact(attempt) > Impact::None || attempt.page.broken > 0 => Corrupted,
        Ended::Done if attempt.page.spilled > 0 => Spilled,
        Ended::Done if ends == Ends::Values => Observed,
        Ended::Done => Absorbed,
        Ended::Broken(_) => broken(attempt),
    }
}

/// Of a process that did not come to its end. What it has written says more than its exit status:
/// allocators have handlers of their own.
fn broken(attempt: &Attempted) -> MisuseOutcome {
    use MisuseOutcome::*;
    let is_trapped =
        |fault: &Fault| fault.is_access() && attempt.page.target.contains(&fault.address);
    let on_purpose = match signal(attempt) {
        None => true,
        Some(_) if attempt.is_own_end => true,
        Some(signal) => [libc::SIGABRT, libc::SIGTRAP, libc::SIGILL].contains(&signal),
    };
    match attempt.page.phase {
        Phase::Setup => Error,
        _ if attempt.page.fault.as_ref().is_some_and(is_trapped) => Trapped,
        Phase::Misuse if on_purpose => Stopped,
        _ if on_purpose => StoppedLate,
        _ => Crashed,
    }
}

fn signal(attempt: &Attempted) -> Option<i32> {
    let caught = attempt.page.fault.as_ref().map(|fault| fault.signal);
    caught.or(attempt.signal)
}

fn impact(attempt: &Attempted) -> Impact {
    let page = &attempt.page;
    if page.chosen_writes > 0 {
        Impact::ChosenWrite
    } else if page.chosen_blocks > 0 {
        Impact::ChosenBlock
    } else if page.overlaps > 0 {
        Impact::Overlap
    } else {
        Impact::None
    }
}

/// How it ended, in words.
fn why(attempt: &Attempted) -> Option<String> {
    let page = &attempt.page;
    let site = |fault: &Fault| {
        let object = attempt.object.as_deref().unwrap_or("unknown code");
        match fault.signal {
            libc::SIGSEGV | libc::SIGBUS => format!(" at {:#x}, in {object}", fault.address),
            _ => format!(", in {object}"),
        }
    };
    match &attempt.ended {
        Ended::NotLoaded(why) | Ended::Unsupported(why) => Some(why.clone()),
        Ended::Hung(limit) => Some(format!(
            "not ended after {} s, {}",
            limit.as_secs_f64(),
            page.phase.word()
        )),
        Ended::TooLarge => Some("ended by heapmark: it took more than 2 GiB".into()),
        Ended::Broken(how) => {
            let how = match &page.fault {
                Some(fault) => {
                    let words = how
                        .split_once(", last words")
                        .map_or("", |(_, words)| words);
                    let words = match words {
                        "" => String::new(),
                        words => format!(", last words{words}"),
                    };
                    format!("{}{}{words}", signal_name(fault.signal), site(fault))
                }
                None => how.clone(),
            };
            Some(format!("{} {how}", page.phase.word()))
        }
        Ended::Done => {
            let mut said = Vec::new();
            let mut say = |times: u64, words: &str| {
                if times > 0 {
                    said.push(words.to_owned());
                }
            };
            say(page.overlaps, "one block was handed to two owners");
            say(
                page.chosen_blocks,
                "a block lies in memory of the attacker's choice",
            );
            say(
                page.chosen_writes,
                "memory of the attacker's choice was written",
            );
            say(page.broken, "bytes of a block were changed in the exercise");
            say(
                page.spilled,
                "bytes of another block were changed by the misuse",
            );
            (!said.is_empty()).then(|| said.join("; "))
        }
    }
}

/// If chance decides: the check says so, or its processes did not all end alike.
fn share(misuse: &Misuse, cell: &MisuseCell) -> Option<Share> {
    let outcome = Some(cell.outcome).filter(|it| it.is_answer())?;
    let times = *cell.tally.get(&outcome)?;
    let all = cell.answers();
    let (low, high) = heapmark_stats::wilson(times, all)?;
    (misuse.rate || times < all).then(|| Share {
        of_processes: f64::from(times) / f64::from(all),
        low,
        high,
    })
}

/// A line `TIMES TRIALS NAME` of a process that made many trials.
fn rate(line: &str) -> Option<String> {
    let mut words = line.splitn(3, ' ');
    let mut number = || words.next()?.parse::<u32>().ok();
    let (times, trials) = (number()?, number()?);
    let name = words.next()?;
    let (low, high) = heapmark_stats::wilson(times, trials)?;
    let share = f64::from(times) / f64::from(trials);
    // Rare ones are told by their first two digits.
    let percent = |share: f64| match share * 100.0 {
        rare if (1e-9..1.0).contains(&rare) => {
            let digits = format!("{rare:.1e}").parse::<f64>();
            digits.unwrap_or(rare).to_string()
        }
        percent => format!("{percent:.1}"),
    };
    let [share, low, high] = [share, low, high].map(percent);
    Some(format!("{name}={share} % [{low} to {high}] of {trials}"))
}

/// What the samples of many processes say together.
fn gathered(gather: Gather, samples: &[&str]) -> Vec<String> {
    if samples.is_empty() {
        return Vec::new();
    }
    match gather {
        Gather::Distinct => vec![different(&times(samples), samples.len())],
        Gather::Bits => {
            let numbers: Vec<u64> = samples.iter().filter_map(|it| it.parse().ok()).collect();
            let first = numbers.first().copied().unwrap_or(0);
            let varying = numbers.iter().fold(0, |bits, it| bits | (it ^ first));
            let lowest = match varying {
                0 => "none".into(),
                bits => bits.trailing_zeros().to_string(),
            };
            vec![
                format!("varying bits={}", varying.count_ones()),
                format!("lowest varying bit={lowest}"),
            ]
        }
        Gather::Entropy => entropy(samples),
    }
}

/// How often each value occurs.
fn times<'a>(samples: &[&'a str]) -> BTreeMap<&'a str, u32> {
    let mut times = BTreeMap::new();
    for sample in samples {
        *times.entry(*sample).or_default() += 1;
    }
    times
}

fn different(times: &BTreeMap<&str, u32>, processes: usize) -> String {
    format!("different={} values of {processes} processes", times.len())
}

/// How well the best guess does, and how many bits the samples hold. A sample in words is of a process in
/// which nothing could be guessed: these are counted, and if they are most, the others are too few for
/// a number.
fn entropy(samples: &[&str]) -> Vec<String> {
    let is_number = |sample: &&&str| sample.parse::<i64>().is_ok();
    let numbers: Vec<&str> = samples.iter().filter(is_number).copied().collect();
    let words: Vec<&str> = samples
        .iter()
        .filter(|it| !is_number(it))
        .copied()
        .collect();
    let all = samples.len();
    let mut said: Vec<String> = times(&words)
        .iter()
        .map(|(words, processes)| format!("{words} in {processes} of {all} processes"))
        .collect();
    if numbers.len() * 2 < all {
        return said;
    }
    let times = times(&numbers);
    let counts: Vec<u32> = times.values().copied().collect();
    let Some(shannon) = heapmark_stats::shannon(&counts, SEED) else {
        return said;
    };
    // So many processes cannot show more.
    let is_bound = shannon.bits > 0.95 * (numbers.len() as f64).log2();
    said.push(different(&times, numbers.len()));
    said.push(match is_bound {
        true => format!("Shannon bits=>= {:.1}", shannon.bits),
        false => format!(
            "Shannon bits={:.1} [{:.1} to {:.1}]",
            shannon.bits, shannon.interval.low, shannon.interval.high
        ),
    });
    said.extend(best_guess(&numbers, is_bound));
    said
}

/// How often a guess is right: the most frequent value of the first half of the samples, in the
/// second half. In the half that it is chosen from, its share would be too large.
fn best_guess(numbers: &[&str], is_bound: bool) -> Vec<String> {
    let (first, second) = numbers.split_at(numbers.len() / 2);
    let times = times(first);
    let Some((guess, _)) = times.iter().max_by_key(|(_, times)| **times) else {
        return Vec::new();
    };
    let hits = second.iter().filter(|it| *it == guess).count() as u32;
    let all = second.len() as u32;
    let (low, high) = heapmark_stats::wilson(hits, all).unwrap_or((0.0, 1.0));
    let share = f64::from(hits) / f64::from(all);
    let bits = match is_bound || hits == 0 {
        true => format!(">= {:.1}", (1.0 / high).log2()),
        false => format!("{:.1}", (1.0 / share).log2()),
    };
    vec![
        format!(
            "best guess={:.1} % [{:.1} to {:.1}]",
            share * 100.0,
            low * 100.0,
            high * 100.0
        ),
        format!("min-entropy bits={bits}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::misuse::Page;
    use serde_json::json;

    #[test]
    fn what_is_detected_is_noticed_at_once_or_by_the_next_call() {
        let detected = |ends: &str, cells: serde_json::Value| {
            let cells = cells.as_array().unwrap().iter().map(|cell| {
                json!({"size_bytes": 24, "form": "naive", "outcome": "absorbed", "tally": cell[0], "impact": "none",
                       "by_next_call": cell[1], "reasons": [], "again": ""})
            });
            let cells: Vec<_> = cells.collect();
            let result = json!({"check": "one", "group": "g", "ends": ends, "cells": cells});
            super::detected(&serde_json::from_value(result).unwrap())
        };
        let at_once = json!([[{"stopped": 2}, 0], [{"trapped": 1, "crashed": 1}, 0]]);
        assert_eq!(detected("outcome", at_once.clone()), Some((3, 4)));
        assert_eq!(detected("values", at_once), None);
        let later = json!([[{"stopped-late": 2}, 2], [{"stopped-late": 2}, 0]]);
        assert_eq!(detected("outcome", later), Some((2, 4)));
        let some = json!([[{"stopped": 5, "stopped-late": 3}, 3], [{"stopped-late": 8}, 3]]);
        assert_eq!(detected("outcome", some), Some((11, 16)));
        let never = json!([[{"absorbed": 1, "hang": 1, "spilled": 1, "corrupted": 1}, 0]]);
        assert_eq!(detected("outcome", never), Some((0, 4)));
        let unknown = json!([[{"unsupported": 2}, 0], [{"error": 1}, 0], [{}, 0]]);
        assert_eq!(detected("outcome", unknown), None);
    }

    fn attempt(phase: Phase, operations: u64, ended: Ended) -> Attempted {
        Attempted {
            ended,
            signal: Some(libc::SIGABRT),
            notes: Vec::new(),
            samples: Vec::new(),
            rates: Vec::new(),
            page: Page {
                phase,
                operations,
                target: 0..0,
                fault: None,
                overlaps: 0,
                broken: 0,
                spilled: 0,
                chosen_blocks: 0,
                chosen_writes: 0,
            },
            object: None,
            is_own_end: false,
        }
    }

    fn cell(check: &str, attempts: &[Attempted]) -> MisuseCell {
        let checks = crate::catalog::misuse::all().unwrap();
        let check = checks.iter().find(|it| it.name == check).unwrap();
        of_attempts(check, (24, Form::Naive), None, attempts, String::new())
    }

    #[test]
    fn each_process_that_the_next_call_ended_is_counted() {
        let late = |operations| {
            let ended = Ended::Broken("SIGABRT".into());
            attempt(Phase::Exercise, operations, ended)
        };
        let cell = cell("double-free", &[0, 0, 0, 500, 500, 500].map(late));
        assert_eq!((cell.by_next_call, cell.distance), (3, Some(500)));
    }

    #[test]
    fn shares_are_of_processes_that_say_something_and_stand_where_chance_decides() {
        let stopped = || attempt(Phase::Misuse, 0, Ended::Broken("SIGABRT".into()));
        let failed = || attempt(Phase::Setup, 0, Ended::NotLoaded("killed".into()));
        let all = [stopped(), stopped(), failed()];
        let certain = cell("double-free", &all);
        assert_eq!((certain.answers(), certain.share), (2, None));
        assert!(certain.has_error());
        assert_eq!(certain.reasons, ["in the misuse SIGABRT", "error: killed"]);
        let by_chance = cell("double-free-race", &all);
        let share = by_chance.share.unwrap();
        assert!(share.of_processes == 1.0 && share.low < 0.5, "{share:?}");
        assert_eq!(cell("double-free-race", &[failed()]).share, None);
    }

    #[test]
    fn rates_of_trials_have_their_interval() {
        let said = |line: &str| rate(line).unwrap();
        assert_eq!(said("0 200 ended"), "ended=0.0 % [0.0 to 1.9] of 200");
        assert_eq!(said("100 200 ended"), "ended=50.0 % [43.1 to 56.9] of 200");
        let rare = said("12 90000 reads that end it");
        assert_eq!(rare, "reads that end it=0.013 % [0.0076 to 0.023] of 90000");
        assert_eq!(rate("0 0 of none"), None);
    }

    #[test]
    fn samples_of_many_processes_are_gathered() {
        let same = ["7"; 8];
        assert_eq!(
            gathered(Gather::Distinct, &same),
            ["different=1 values of 8 processes"]
        );
        assert!(gathered(Gather::Entropy, &same).contains(&"min-entropy bits=0.0".into()));
        let bits = gathered(Gather::Bits, &["16", "48", "16"]);
        assert_eq!(bits, ["varying bits=1", "lowest varying bit=5"]);
        let all: Vec<String> = (0..64).map(|it| it.to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(gathered(Gather::Entropy, &all).contains(&"Shannon bits=>= 6.0".into()));
        let two = gathered(Gather::Entropy, &["1", "1", "1", "2"]);
        assert!(two[1].starts_with("Shannon bits=1.0 ["), "{two:?}");
        assert!(gathered(Gather::Bits, &[]).is_empty());
    }

    #[test]
    fn the_best_guess_of_one_half_is_tried_on_the_other() {
        // What occurs most often among many values does so by chance.
        let values = (0_u32..200).map(|it| it.saturating_sub(2).to_string());
        let values: Vec<String> = values.collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let said = gathered(Gather::Entropy, &values);
        assert_eq!(said[2], "best guess=0.0 % [0.0 to 3.7]");
        assert_eq!(said[3], "min-entropy bits=>= 4.8");
        let said = gathered(Gather::Entropy, &["1", "1", "2", "1", "2", "1", "2", "3"]);
        assert!(said[2].starts_with("best guess=25.0 % ["), "{said:?}");
        assert_eq!(said[3], "min-entropy bits=2.0");
    }

    #[test]
    fn processes_in_which_nothing_could_be_guessed_are_counted_apart() {
        let never = "not reused within 9 allocations";
        let all = [never; 4];
        let said = format!("{never} in 4 of 4 processes");
        assert_eq!(gathered(Gather::Entropy, &all), [said]);
        let most = gathered(Gather::Entropy, &[never, never, never, "0"]);
        assert_eq!(most, [format!("{never} in 3 of 4 processes")]);
        let few = gathered(Gather::Entropy, &[never, "0", "0", "0"]);
        assert_eq!(few[0], format!("{never} in 1 of 4 processes"));
        assert_eq!(few[1], "different=1 values of 3 processes");
        assert_eq!(few[2], "Shannon bits=0.0 [0.0 to 0.0]");
    }
}
