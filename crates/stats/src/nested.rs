//! Where the spread of nested measurements comes from: blocks in runs, runs on machines.
//!
//! A nested analysis of variance whose components are estimated by the method of moments, for groups
//! of any size: each mean square is set equal to its expectation, and what comes out below zero is
//! zero (Searle, Casella, McCulloch: Variance Components, 1992).

use super::mean::mean;

/// The standard deviations of a value, by their sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spreads {
    /// Between machines.
    pub machines: f64,
    /// Between runs of one machine; `None` if no machine has two runs: then the spread between machines includes it.
    pub runs: Option<f64>,
    /// Between blocks of one run.
    pub blocks: f64,
}

/// Returns the spreads of values by machine, run and block. `None` with a single machine, with one
/// value in each run, for a run without any, and if one is not finite.
pub fn spreads(machines: &[Vec<Vec<f64>>]) -> Option<Spreads> {
    let runs: Vec<&Vec<f64>> = machines.iter().flatten().collect();
    let all: Vec<f64> = machines.concat().concat();
    let values_of = |machine: &Vec<Vec<f64>>| machine.concat();
    let count = |values: &[f64]| values.len() as f64;
    let n = count(&all);
    let free =
        |groups: usize, within: usize| (groups > within).then_some(groups as f64 - within as f64);
    let between_machines = free(machines.len(), 1)?;
    let within_runs = free(all.len(), runs.len())?;
    if runs.iter().any(|run| run.is_empty()) || all.iter().any(|value| !value.is_finite()) {
        return None;
    }

    let grand = mean(&all)?;
    let around = |values: &[f64], centre: f64| count(values) * square(mean_of(values) - centre);
    let of_machines: f64 = machines
        .iter()
        .map(|machine| around(&values_of(machine), grand))
        .sum();
    let of_runs: f64 = machines
        .iter()
        .flat_map(|machine| {
            let centre = mean_of(&values_of(machine));
            machine.iter().map(move |run| around(run, centre))
        })
        .sum();
    let of_blocks: f64 = runs
        .iter()
        .flat_map(|run| run.iter().map(|value| square(value - mean_of(run))))
        .sum();

    // How much of the smaller groups' variances is in each mean square.
    let runs_in_machines: f64 = machines
        .iter()
        .map(|machine| {
            machine.iter().map(|run| square(count(run))).sum::<f64>() / count(&values_of(machine))
        })
        .sum();
    let runs_in_all = runs.iter().map(|run| square(count(run))).sum::<f64>() / n;
    let machines_in_all = machines
        .iter()
        .map(|machine| square(count(&values_of(machine))))
        .sum::<f64>()
        / n;

    let blocks = of_blocks / within_runs;
    let runs_variance = free(runs.len(), machines.len()).map(|degrees| {
        let share = (n - runs_in_machines) / degrees;
        ((of_runs / degrees - blocks) / share).max(0.0)
    });
    let smaller = (runs_in_machines - runs_in_all) / between_machines;
    let share = (n - machines_in_all) / between_machines;
    let square_of_machines = of_machines / between_machines;
    let rest = square_of_machines - blocks - smaller * runs_variance.unwrap_or_default();
    Some(Spreads {
        machines: (rest / share).max(0.0).sqrt(),
        runs: runs_variance.map(f64::sqrt),
        blocks: blocks.sqrt(),
    })
}

fn mean_of(values: &[f64]) -> f64 {
    mean(values).unwrap_or_default()
}

fn square(value: f64) -> f64 {
    value * value
}
