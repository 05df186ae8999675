//! The file of a workload and of its variants.

use super::{Calibrated, Iterations, Preset, ProgramRow, Rounds, Workload};
use crate::catalog::faults::{self, Fault};
use crate::catalog::parameter::Parameter;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A workload file: what runs it, its parameters, its presets, and variants under other values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: String,
    kernel: Option<String>,
    program: Option<String>,
    #[serde(default)]
    rows: Vec<ProgramRow>,
    document: String,
    about: String,
    shows: String,
    hides: String,
    operation: String,
    threads: Option<String>,
    series: Option<String>,
    caution: Option<String>,
    #[serde(default)]
    rounds: Rounds,
    parameters: BTreeMap<String, Parameter>,
    presets: BTreeMap<String, Preset>,
    #[serde(default)]
    variants: Vec<Variant>,
}

/// Other values for some parameters, under a name of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Variant {
    name: String,
    about: String,
    operation: Option<String>,
    rounds: Option<Rounds>,
    rows: Option<Vec<ProgramRow>>,
    #[serde(default)]
    presets: BTreeMap<String, BTreeMap<String, toml::Value>>,
}

/// Reads one file into its workload and variants.
pub fn parse(file_name: &str, text: &str, faults: &mut Vec<Fault>) -> Vec<Workload> {
    let file: File = match faults::parse(file_name, text) {
        Ok(file) => file,
        Err(fault) => {
            faults.push(fault);
            return Vec::new();
        }
    };
    let main = Workload {
        name: file.name,
        variant_of: None,
        kernel: file.kernel,
        program: file.program,
        rows: file.rows,
        document: file.document,
        about: file.about,
        shows: file.shows,
        hides: file.hides,
        operation: file.operation,
        threads: file.threads,
        series: file.series,
        caution: file.caution,
        rounds: file.rounds,
        parameters: file.parameters,
        presets: file.presets,
    };
    let mut all = vec![main.clone()];
    for variant in file.variants {
        let mut workload = Workload {
            name: variant.name,
            about: variant.about,
            variant_of: Some(main.name.clone()),
            ..main.clone()
        };
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
                Some(preset) => preset.parameters.extend(values),
                None => faults.push(Fault {
                    file: file_name.into(),
                    key: format!("variants.{}.presets.{preset}", workload.name),
                    what: "the workload itself has no such preset".into(),
                    mend: "add it to `presets`, or remove it here".into(),
                }),
            }
        }
        all.push(workload);
    }
    for workload in &all {
        workload.check(file_name, faults);
    }
    all
}
