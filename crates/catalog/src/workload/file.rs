//! Reads the file of a workload and its variants.

use super::{Calibrated, Iterations, Rounds, Variant, Workload, plain};
use crate::faults::{self, Fault};

/// Reads a file and returns its workload and variants.
pub fn parse(file: &str, text: &str, faults: &mut Vec<Fault>) -> Vec<Workload> {
    let Some(mut main) = faults::read::<Workload>(file, text, faults) else {
        return Vec::new();
    };
    for figure in &mut main.figures {
        file.clone_into(&mut figure.file);
        figure.workload.clone_from(&main.name);
    }
    let variants = std::mem::take(&mut main.variants);
    let mut all: Vec<Workload> = variants
        .into_iter()
        .map(|variant| vary(&main, variant, file, faults))
        .collect();
    all.insert(0, main);
    for workload in &all {
        workload.check(file, faults);
    }
    all
}

fn vary(main: &Workload, variant: Variant, file: &str, faults: &mut Vec<Fault>) -> Workload {
    let mut workload = Workload {
        name: variant.name,
        about: variant.about,
        variant_of: Some(main.name.clone()),
        figures: Vec::new(),
        ..main.clone()
    };
    workload.kernel = variant.kernel.or(workload.kernel);
    workload.operation = variant.operation.unwrap_or(workload.operation);
    workload.rows = variant.rows.unwrap_or(workload.rows);
    workload.rounds = variant.rounds.unwrap_or(workload.rounds);
    if variant.rounds == Some(Rounds::Reuse) {
        for preset in workload.presets.values_mut() {
            preset.cold = 1;
            preset.iterations = Iterations::Calibrated(Calibrated::Calibrated);
        }
    }
    for (preset, values) in variant.presets {
        match workload.presets.get_mut(&preset) {
            Some(preset) => preset.parameters.extend(plain(values)),
            None => faults.push(Fault::new(
                file,
                format!("variants.{}.presets.{preset}", workload.name),
                "the workload itself has no such preset",
                "add it to `presets`, or remove it here",
            )),
        }
    }
    workload
}
