//! Compares what documents claim about hardening with a result of `heapmark check`.

use crate::document::{Claimed, Feature, HardeningDocument, Sign, Signs};
use heapmark_check::definition::{Check, Form, MisuseOutcome, TRIALS_OF_A_RATE};
use heapmark_check::file::{CheckFile, CheckedAllocator, MisuseCell};
use heapmark_core::analyse::distinct;
use heapmark_core::catalog::joined;
use heapmark_core::catalog::malloc_api::matches;
use serde::Serialize;

/// The words that a check reports in place of a value if the call that should yield the value ended
/// its process, or did not return.
const NO_ANSWER: [&str; 3] = ["hang", "fault", "stopped"];

/// The verdict on a claim about hardening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HardeningVerdict {
    /// The result shows what is claimed.
    Confirmed,
    /// The check shows the opposite.
    Contradicted,
    /// The result shows neither.
    NotTestable,
}

impl HardeningVerdict {
    /// The verdict's words for tables.
    pub fn words(self) -> &'static str {
        match self {
            HardeningVerdict::Confirmed => "confirmed",
            HardeningVerdict::Contradicted => "contradicted",
            HardeningVerdict::NotTestable => "not testable here",
        }
    }
}

/// A claim about one allocator, held against one entry of the result.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedHardening {
    /// The claim's number: `IA-7`.
    pub id: String,
    /// The file name of the claim's document.
    pub document: String,
    /// The feature that the claim is about.
    pub feature: String,
    /// What an allocator with the feature does.
    pub says: String,
    /// The allocator as the document names it.
    pub allocator: String,
    /// The entry of the result.
    pub entry: Option<String>,
    /// What the document claims about the allocator.
    pub claimed: Claimed,
    /// The verdict on the claim.
    pub verdict: HardeningVerdict,
    /// The cells that the verdict rests on.
    pub cells: Vec<SeenCell>,
    /// Why the claim is not testable, if no cell gives the reason.
    pub why_not: Option<String>,
    /// The command that shows the contradiction, if the claim is contradicted.
    pub again: Option<String>,
}

/// A cell of a check, and whether it shows the feature.
#[derive(Clone, Debug, Serialize)]
pub struct SeenCell {
    /// The check's name.
    pub check: String,
    /// The size of the blocks.
    pub size_bytes: u64,
    /// What the attacker knows.
    pub form: Form,
    /// What was seen, or why nothing was seen.
    pub said: String,
    /// Whether the cell shows the feature; `None` if it shows neither that nor the opposite.
    pub shows: Option<bool>,
    /// The command that repeats the check.
    #[serde(skip)]
    again: String,
}

/// Judges all claims of these documents: one verdict for each entry of the result that a claim is
/// about, or one that says that there is no such entry.
pub fn judge(
    documents: &[HardeningDocument],
    checks: &[Check],
    file: &CheckFile,
) -> Vec<JudgedHardening> {
    let mut all = Vec::new();
    for document in documents {
        for (place, feature) in document.features.iter().enumerate() {
            for (allocator, claimed) in &feature.claimed {
                let blank = JudgedHardening {
                    id: document.id(place),
                    document: document.name.clone(),
                    feature: feature.name.clone(),
                    says: feature.says.clone(),
                    allocator: allocator.clone(),
                    entry: None,
                    claimed: *claimed,
                    verdict: HardeningVerdict::NotTestable,
                    cells: Vec::new(),
                    why_not: None,
                    again: None,
                };
                all.extend(of_claim(document, feature, checks, file, &blank));
            }
        }
    }
    all
}

/// Judges a claim about one allocator.
fn of_claim(
    document: &HardeningDocument,
    feature: &Feature,
    checks: &[Check],
    file: &CheckFile,
    blank: &JudgedHardening,
) -> Vec<JudgedHardening> {
    let without = |why: String| {
        vec![JudgedHardening {
            why_not: Some(why),
            ..blank.clone()
        }]
    };
    let entries = document.entries(feature, &blank.allocator);
    if entries.is_empty() && blank.claimed == Claimed::Option {
        return without("no entry of ours has this option switched on".into());
    } else if entries.is_empty() {
        return without("no entry of ours is this allocator".into());
    } else if blank.claimed == Claimed::Interface {
        return without("the checks call the functions of the standards".into());
    } else if let Some(why) = &feature.no_check {
        return without(why.clone());
    }
    let is_meant = |one: &&CheckedAllocator| {
        let name = &one.info.name;
        entries.iter().any(|pattern| matches(pattern, name))
    };
    let found: Vec<_> = file.allocators.iter().filter(is_meant).collect();
    if found.is_empty() {
        return without(format!("not in this result: {}", entries.join(", ")));
    }
    let judged = found.into_iter().map(|one| {
        let entry = Some(one.info.name.clone());
        let blank = JudgedHardening {
            entry,
            ..blank.clone()
        };
        let also_with = document.also_with(feature, &blank.allocator);
        of_entry(feature, also_with, checks, one, blank)
    });
    judged.collect()
}

/// Holds a claim against one entry of the result.
fn of_entry(
    feature: &Feature,
    also_with: Option<&str>,
    checks: &[Check],
    one: &CheckedAllocator,
    blank: JudgedHardening,
) -> JudgedHardening {
    let mut cells = Vec::new();
    let mut missing = None;
    for sign in &feature.shown_by {
        let seen = seen(sign, one);
        missing = missing.or(why_missing(sign, checks, &seen));
        cells.extend(seen);
    }
    let has = |shows: Option<bool>| cells.iter().any(|cell| cell.shows == shows);
    let is_open = missing.is_some() || has(None);
    let shown = match feature.needs {
        Signs::All if has(Some(false)) => Some(false),
        Signs::Any if has(Some(true)) => Some(true),
        _ if is_open => None,
        Signs::All => Some(true),
        Signs::Any => Some(false),
    };
    let claims_it = blank.claimed != Claimed::No;
    let also = match claims_it {
        true => also_with.map(str::to_owned),
        false => feature.also_without.clone(),
    };
    let (verdict, why_not) = match shown {
        None => (HardeningVerdict::NotTestable, missing),
        Some(shown) if shown == claims_it => (HardeningVerdict::Confirmed, None),
        Some(_) if also.is_some() => (HardeningVerdict::NotTestable, also),
        Some(_) => (HardeningVerdict::Contradicted, None),
    };
    cells.retain(|cell| cell.shows == shown);
    JudgedHardening {
        verdict,
        why_not,
        again: match (verdict, cells.first()) {
            (HardeningVerdict::Contradicted, Some(cell)) => Some(cell.again.clone()),
            _ => None,
        },
        cells,
        ..blank
    }
}

/// Names the cells of a sign that the result does not have; `None` if it has all.
fn why_missing(sign: &Sign, checks: &[Check], seen: &[SeenCell]) -> Option<String> {
    let check = checks.iter().find(|check| check.name == sign.check)?;
    let is_seen = |size_bytes: u64, form: Form| {
        let mut seen = seen.iter();
        seen.any(|cell| cell.size_bytes == size_bytes && cell.form == form)
    };
    let mut missing = check.cells(true);
    missing.retain(|(size, form)| sign.covers(*size, *form) && !is_seen(*size, *form));
    if missing.is_empty() {
        return None;
    }
    let quick = check.cells(false);
    let is_quick = !check.full && missing.iter().all(|cell| quick.contains(cell));
    let sizes = distinct(missing.iter().map(|(size, _)| *size));
    let with = match seen.is_empty() && sign.sizes.is_empty() {
        true => String::new(),
        false => format!(" with {} bytes", joined(sizes, ", ")),
    };
    let hint = match is_quick {
        true => "",
        false => ": --preset full has it",
    };
    Some(format!("{} was not checked{with}{hint}", sign.check))
}

/// The cells that a sign is about.
fn seen(sign: &Sign, one: &CheckedAllocator) -> Vec<SeenCell> {
    let Some(result) = one
        .hardening
        .iter()
        .find(|result| result.check == sign.check)
    else {
        return Vec::new();
    };
    let cells = result.cells.iter();
    cells
        .filter(|cell| sign.covers(cell.size_bytes, cell.form))
        .map(|cell| {
            let (shows, text) = shows(sign, cell);
            SeenCell {
                check: sign.check.clone(),
                size_bytes: cell.size_bytes,
                form: cell.form,
                said: text,
                shows,
                again: cell.again.clone(),
            }
        })
        .collect()
}

/// Returns whether a cell shows a feature, and the cell in words. If processes ended differently,
/// chance has decided, and only a claim about chances can be judged by the cell.
fn shows(sign: &Sign, cell: &MisuseCell) -> (Option<bool>, String) {
    let word = cell.outcome;
    let reasons = || format!("{word}: {}", cell.reasons.join("; "));
    match (cell.outcome, &sign.value) {
        (MisuseOutcome::Error | MisuseOutcome::Unsupported, _) => return (None, reasons()),
        (MisuseOutcome::Observed, Some(name)) => return value(sign, name, cell),
        _ => (),
    }
    let all = cell.answers();
    let with = |(outcome, times): (&MisuseOutcome, &u32)| match sign.outcomes.contains(outcome) {
        true => *times,
        false => 0,
    };
    let times: u32 = cell.tally.iter().map(with).sum();
    let text = match cell.tally.get(&cell.outcome) {
        Some(most) if *most < all => format!("{word} in {most} of {all} processes"),
        _ => word.to_string(),
    };
    let shows = match times {
        // The check ended before it could report the value.
        0 if sign.value.is_some() => None,
        0 if sign.by_chance && all < TRIALS_OF_A_RATE => None,
        0 => Some(false),
        _ if times == all || sign.by_chance => Some(true),
        _ => None,
    };
    let hint = match shows {
        None if sign.value.is_none() => ", which is chance",
        _ => "",
    };
    (shows, text + hint)
}

fn value(sign: &Sign, name: &str, cell: &MisuseCell) -> (Option<bool>, String) {
    let notes = cell.notes.iter();
    let of_name = |note: &String| {
        let (its, value) = note.split_once('=')?;
        (its == name).then(|| value.to_owned())
    };
    let Some(value) = notes.filter_map(of_name).next() else {
        return (None, format!("it does not say {name}"));
    };
    let largest = largest(&value);
    let is_within = largest.is_some_and(|number| {
        sign.at_least.is_none_or(|least| number >= least)
            && sign.at_most.is_none_or(|most| number <= most)
    });
    let has_bounds = sign.at_least.is_some() || sign.at_most.is_some();
    let is_it = sign.is.contains(&value) || (has_bounds && is_within);
    let text = format!("{name}={value}");
    let is_no_answer = NO_ANSWER.contains(&value.as_str()) || (has_bounds && largest.is_none());
    match is_no_answer && !is_it {
        true => (None, text),
        false => (Some(is_it), text),
    }
}

/// The largest of the numbers at the start of a value: `0 0 8 8`, `64 values of 64 processes`, `>=
/// 65536`.
fn largest(value: &str) -> Option<f64> {
    let words = value.trim_start_matches(">=").split_whitespace();
    let numbers = words.map_while(|word| word.parse::<f64>().ok());
    numbers.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sign(keys: &str) -> Sign {
        toml::from_str(&format!("check = \"c\"\n{keys}")).unwrap()
    }

    fn cell(outcome: &str, tally: serde_json::Value, note: &str) -> MisuseCell {
        let cell = json!({"size_bytes": 24, "form": "naive", "outcome": outcome, "tally": tally, "impact": "none",
                          "notes": [note], "reasons": ["why"], "again": "again"});
        serde_json::from_value(cell).unwrap()
    }

    #[test]
    fn outcomes_of_all_processes_show_it_those_of_some_are_chance() {
        let stopped = "outcomes = [\"stopped\", \"stopped-late\"]";
        let by_chance = format!("{stopped}\nby-chance = true");
        for (keys, outcome, tally, shown) in [
            (stopped, "stopped", json!({"stopped": 2}), Some(true)),
            (
                stopped,
                "stopped-late",
                json!({"stopped": 1, "stopped-late": 1}),
                Some(true),
            ),
            (stopped, "absorbed", json!({"absorbed": 2}), Some(false)),
            (stopped, "hang", json!({"hang": 2}), Some(false)),
            (
                stopped,
                "absorbed",
                json!({"absorbed": 1, "stopped": 1}),
                None,
            ),
            (
                &by_chance,
                "absorbed",
                json!({"absorbed": 1, "stopped": 1}),
                Some(true),
            ),
            (&by_chance, "absorbed", json!({"absorbed": 2}), None),
            (
                &by_chance,
                "absorbed",
                json!({"absorbed": 200}),
                Some(false),
            ),
            (
                stopped,
                "stopped",
                json!({"stopped": 5, "error": 3}),
                Some(true),
            ),
            (stopped, "error", json!({}), None),
            (stopped, "unsupported", json!({"unsupported": 2}), None),
        ] {
            let (found, text) = shows(&sign(keys), &cell(outcome, tally.clone(), ""));
            assert_eq!(found, shown, "{keys} {outcome} {tally}: {text}");
        }
    }

    #[test]
    fn cells_that_were_not_made_are_named() {
        let checks = heapmark_check::definition::all().unwrap();
        let missing = |keys: &str, sizes: &[u64]| {
            let sign: Sign = toml::from_str(&format!("check = \"double-free\"\n{keys}")).unwrap();
            let seen = sizes.iter().map(|size_bytes| SeenCell {
                check: sign.check.clone(),
                size_bytes: *size_bytes,
                form: Form::Naive,
                said: String::new(),
                shows: Some(true),
                again: String::new(),
            });
            why_missing(&sign, &checks, &seen.collect::<Vec<_>>())
        };
        let of = |words: &str| Some(format!("double-free was not checked{words}"));
        assert_eq!(missing("", &[]), of(": --preset full has it"));
        let rest = " with 4000, 1048576 bytes: --preset full has it";
        assert_eq!(missing("", &[24, 256 << 10]), of(rest));
        assert_eq!(missing("", &[24, 4000, 256 << 10, 1 << 20]), None);
        assert_eq!(missing("sizes = [24]", &[]), of(" with 24 bytes"));
        assert_eq!(missing("sizes = [24]", &[24]), None);
    }

    #[test]
    fn values_are_words_or_numbers_within_bounds() {
        for (keys, note, shown) in [
            ("value = \"old\"\nat-most = 10", "old=9 %", Some(true)),
            ("value = \"old\"\nat-most = 10", "old=11 %", Some(false)),
            ("value = \"old\"\nat-most = 10", "older=9 %", None),
            ("value = \"old\"\nat-most = 10", "old=no slack", None),
            ("value = \"it\"\nat-least = 1", "it=0 0 8 0", Some(true)),
            ("value = \"it\"\nat-least = 1", "it=>= 65536", Some(true)),
            (
                "value = \"it\"\nat-least = 2",
                "it=1 values of 64 processes",
                Some(false),
            ),
            ("value = \"it\"\nis = [\"no\"]", "it=no", Some(true)),
            ("value = \"it\"\nis = [\"no\"]", "it=yes", Some(false)),
            ("value = \"it\"\nis = [\"no\"]", "it=fault", None),
            (
                "value = \"it\"\nis = [\"stopped\"]",
                "it=stopped",
                Some(true),
            ),
            ("value = \"it\"\nis = [\"stopped\"]", "it=hang", None),
            ("value = \"it\"\nis = [\"stopped\"]", "it=fine", Some(false)),
        ] {
            let cell = cell("observed", json!({"observed": 1}), note);
            assert_eq!(shows(&sign(keys), &cell).0, shown, "{keys} {note}");
        }
        // A check of values that a guard page stops tells no value, but the stop may be enough.
        let trapped = cell("trapped", json!({"trapped": 1}), "");
        let keys = "value = \"old\"\nat-most = 10";
        assert_eq!(shows(&sign(keys), &trapped).0, None);
        let keys = format!("{keys}\noutcomes = [\"trapped\"]");
        assert_eq!(shows(&sign(&keys), &trapped).0, Some(true));
    }
}
