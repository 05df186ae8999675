//! How the wrong programs ended, cell by cell.

use super::Tried;
use super::gathered::{gathered, rate};
use crate::definition::{Check, Ends, MisuseOutcome};
use crate::file::{Impact, MisuseCell, MisuseResult, Share};
use crate::process_page::{CaughtSignal, Phase};
use crate::processes::{ProcessEnd, Trial};
use heapmark_core::execute::signal_name;
use std::collections::BTreeMap;

/// Returns how a cell's processes ended, and what they reported. The twin is the same process
/// without the misuse: if it does not end well, nothing is known about the allocator.
pub fn cell(check: &Check, tried: &Tried, again: &str) -> MisuseCell {
    let trials = &tried.trials;
    let with = |wanted| {
        let mut trials = trials.iter();
        trials.find(move |trial| outcome(trial, check.ends) == wanted)
    };
    let mut tally: BTreeMap<MisuseOutcome, u32> = BTreeMap::new();
    let mut distances = Vec::new();
    for trial in trials {
        let outcome = outcome(trial, check.ends);
        *tally.entry(outcome).or_default() += 1;
        if outcome == MisuseOutcome::StoppedLate {
            distances.push(trial.page.operations);
        }
    }
    distances.sort_unstable();
    let failed_twin = tried.twin.as_ref().and_then(why_not_well);
    let most = tally
        .iter()
        .max_by_key(|(outcome, times)| (**times, **outcome));
    let outcome = match (&failed_twin, most) {
        (None, Some((outcome, _))) => *outcome,
        _ => MisuseOutcome::Error,
    };
    let example = with(outcome);
    let mut notes = example.map_or(Vec::new(), |trial| trial.said("note"));
    let rates = example.map_or(Vec::new(), |trial| trial.said("rate"));
    notes.extend(rates.iter().filter_map(|line| rate(line)));
    if let Some(gather) = check.gather {
        let samples: Vec<String> = trials
            .iter()
            .flat_map(|trial| trial.said("sample"))
            .collect();
        let samples: Vec<&str> = samples.iter().map(String::as_str).collect();
        notes.extend(gathered(gather, &samples));
    }
    let error = with(MisuseOutcome::Error).filter(|_| outcome != MisuseOutcome::Error);
    let error = error.and_then(why).map(|why| format!("error: {why}"));
    let mut cell = MisuseCell {
        size_bytes: tried.cell.0,
        form: tried.cell.1,
        outcome,
        tally,
        by_next_call: distances.iter().filter(|distance| **distance == 0).count() as u32,
        share: None,
        impact: trials.iter().map(impact).max().unwrap_or(Impact::None),
        distance: match outcome {
            MisuseOutcome::StoppedLate => distances.get(distances.len() / 2).copied(),
            _ => None,
        },
        notes,
        reasons: match failed_twin {
            Some(why) => vec![format!("without the misuse: {why}")],
            None => example.and_then(why).into_iter().chain(error).collect(),
        },
        again: again.into(),
    };
    cell.share = share(check, &cell);
    cell
}

/// Why the twin, the process without the misuse, did not end well; `None` if it did.
pub fn why_not_well(twin: &Trial) -> Option<String> {
    match outcome(twin, Ends::Outcome) {
        MisuseOutcome::Absorbed | MisuseOutcome::Unsupported => None,
        other => Some(why(twin).unwrap_or_else(|| other.to_string())),
    }
}

/// In how many processes a misuse was detected, of those that could detect it: stopped or trapped
/// in the bad call or access, or ended on purpose by the first call after it. `None` if the check
/// is no misuse, or applies to no size and form.
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

fn outcome(trial: &Trial, ends: Ends) -> MisuseOutcome {
    use MisuseOutcome::*;
    match &trial.ended {
        ProcessEnd::NotLoaded(_) => Error,
        ProcessEnd::Unsupported(_) => Unsupported,
        ProcessEnd::Hung(_) => Hang,
        ProcessEnd::TooLarge => Crashed,
        ProcessEnd::Done if impact(trial) > Impact::None || trial.page.broken > 0 => Corrupted,
        ProcessEnd::Done if trial.page.spilled > 0 => Spilled,
        ProcessEnd::Done if ends == Ends::Values => Observed,
        ProcessEnd::Done => Absorbed,
        ProcessEnd::Broken(_) => broken(trial),
    }
}

/// The outcome of a process that did not come to its regular end. What the process has written says
/// more than its exit status: allocators have signal handlers of their own.
fn broken(trial: &Trial) -> MisuseOutcome {
    use MisuseOutcome::*;
    let fault = trial.page.fault.as_ref();
    let is_trapped =
        |fault: &CaughtSignal| fault.is_access() && trial.page.target.contains(&fault.address);
    let signal = fault.map(|fault| fault.signal).or(trial.signal);
    let is_of_purpose = |signal| [libc::SIGABRT, libc::SIGTRAP, libc::SIGILL].contains(&signal);
    let on_purpose =
        fault.is_some_and(|fault| fault.is_own_end) || signal.is_none_or(is_of_purpose);
    match trial.page.phase {
        Phase::Setup => Error,
        _ if fault.is_some_and(is_trapped) => Trapped,
        Phase::Misuse if on_purpose => Stopped,
        _ if on_purpose => StoppedLate,
        _ => Crashed,
    }
}

fn impact(trial: &Trial) -> Impact {
    let page = &trial.page;
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

/// How the trial ended, in words.
fn why(trial: &Trial) -> Option<String> {
    let page = &trial.page;
    let words = trial.ended.words();
    match &trial.ended {
        ProcessEnd::Hung(_) => words.map(|words| format!("{words}, {}", page.phase.word())),
        ProcessEnd::Broken(how) => {
            let how = match &page.fault {
                Some(fault) => {
                    let (_, last_words) =
                        how.split_at(how.find(", last words").unwrap_or(how.len()));
                    let place = match fault.is_access() {
                        true => format!(" at {:#x}", fault.address),
                        false => String::new(),
                    };
                    let name = signal_name(fault.signal);
                    format!("{name}{place}, in {}{last_words}", fault.object)
                }
                None => how.clone(),
            };
            Some(format!("{} {how}", page.phase.word()))
        }
        ProcessEnd::Done => {
            let all = [
                (page.overlaps, "one block was handed to two owners"),
                (
                    page.chosen_blocks,
                    "a block lies in memory of the attacker's choice",
                ),
                (
                    page.chosen_writes,
                    "memory of the attacker's choice was written",
                ),
                (page.broken, "bytes of a block were changed in the exercise"),
                (
                    page.spilled,
                    "bytes of another block were changed by the misuse",
                ),
            ];
            let texts: Vec<&str> = all
                .iter()
                .filter(|entry| entry.0 > 0)
                .map(|entry| entry.1)
                .collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        _ => words,
    }
}

/// Returns the share of the cell's outcome if chance decides: because the check declares so, or
/// because the processes ended in different ways.
fn share(check: &Check, cell: &MisuseCell) -> Option<Share> {
    let outcome = Some(cell.outcome).filter(|outcome| outcome.is_answer())?;
    let times = *cell.tally.get(&outcome)?;
    let all = cell.answers();
    let (low, high) = heapmark_stats::wilson(times, all)?;
    (check.rate || times < all).then(|| Share {
        of_processes: f64::from(times) / f64::from(all),
        low,
        high,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Form;
    use crate::process_page::CheckPage;
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

    fn trial(phase: Phase, operations: u64, ended: ProcessEnd) -> Trial {
        Trial {
            ended,
            signal: Some(libc::SIGABRT),
            page: CheckPage {
                phase,
                operations,
                ..CheckPage::default()
            },
            ..Trial::default()
        }
    }

    fn cell(check: &str, trials: Vec<Trial>) -> MisuseCell {
        let checks = crate::definition::all().unwrap();
        let check = checks.iter().find(|entry| entry.name == check).unwrap();
        let tried = Tried {
            cell: (24, Form::Naive),
            twin: None,
            trials,
        };
        super::cell(check, &tried, "")
    }

    #[test]
    fn each_process_that_the_next_call_ended_is_counted() {
        let late = |operations| {
            let ended = ProcessEnd::Broken("SIGABRT".into());
            trial(Phase::Exercise, operations, ended)
        };
        let cell = cell("double-free", [0, 0, 0, 500, 500, 500].map(late).into());
        assert_eq!((cell.by_next_call, cell.distance), (3, Some(500)));
    }

    #[test]
    fn shares_are_of_processes_that_say_something_and_stand_where_chance_decides() {
        let stopped = || trial(Phase::Misuse, 0, ProcessEnd::Broken("SIGABRT".into()));
        let failed = || trial(Phase::Setup, 0, ProcessEnd::NotLoaded("killed".into()));
        let all = || vec![stopped(), stopped(), failed()];
        let certain = cell("double-free", all());
        assert_eq!((certain.answers(), certain.share), (2, None));
        assert!(certain.has_error());
        assert_eq!(certain.reasons, ["in the misuse SIGABRT", "error: killed"]);
        let by_chance = cell("double-free-race", all());
        let share = by_chance.share.unwrap();
        assert!(share.of_processes == 1.0 && share.low < 0.5, "{share:?}");
        assert_eq!(cell("double-free-race", vec![failed()]).share, None);
    }
}
