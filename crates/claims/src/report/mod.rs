//! Verdicts on the claims of the reference documents: a table, and JSON.

pub mod hardening;
pub mod page;
mod reproduction;

use crate::document::Measure;
use crate::judge::{JudgedClaim, JudgedPart, Number, Said, Verdict};
use heapmark_core::catalog::joined;
use heapmark_core::report::document::{Block, Cell, Sheet};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{count, cut, enclosed, json, list};
use heapmark_core::report::units::{self, PrintedUnit};

pub use reproduction::reproduction;

/// The most comparisons that a reason lists; the others are in the JSON.
const MOST_PARTS: usize = 3;

/// One line per claim that can be judged, or all claims with their reasons if `whole` documents are
/// shown; and a line that counts the verdicts.
pub fn claims(all: &[JudgedClaim], whole: bool) -> Vec<Block> {
    let mut shown: Vec<&JudgedClaim> = all.iter().collect();
    shown.retain(|judged| whole || judged.verdict != Verdict::NotTestable);
    let left_out = (shown.len() < all.len()).then(|| LEFT_OUT.to_owned());
    let mut lines = vec![summary(all)];
    let sheet = match whole {
        true => table(shown),
        false => {
            lines.push(REASONS.to_owned());
            in_lines(shown)
        }
    };
    lines.extend(left_out);
    vec![Block::Sheet(sheet), Block::notes(lines)]
}

/// Names the formats that have the claims that a table leaves out.
pub const LEFT_OUT: &str = "Claims that are not testable here are left out; --document NAME or --to md lists them with the reason.";

/// Names the formats that have the numbers behind the verdicts.
const REASONS: &str =
    "Reasons and numbers: --document NAME (bt, mm, rp, za, ll, field) or --to md.";

/// The most characters of a claim in a line.
const MOST_LETTERS: usize = 68;

/// A table with a line for each of these claims.
fn in_lines(shown: Vec<&JudgedClaim>) -> Sheet {
    let mut table = with_ids(shown);
    table.add("verdict", |judged| judged.verdict.word());
    table.add("claim", |judged| {
        Cell::text(cut(&judged.says, MOST_LETTERS))
    });
    table.sheet
}

fn with_ids(shown: Vec<&JudgedClaim>) -> SheetOf<'_, JudgedClaim> {
    let mut table = SheetOf::new("", shown);
    table.add("id", |judged| &judged.id);
    table
}

/// A table with a row for each of these claims, with its reason.
pub fn table(shown: Vec<&JudgedClaim>) -> Sheet {
    let mut table = with_ids(shown);
    table.add("verdict", JudgedClaim::verdict_words);
    table.add("claim", |judged| Cell::text(&judged.says));
    table.add("reason", |judged| Cell::text(reason(judged)));
    table.sheet
}

/// All claims as JSON, each with its reason as a sentence.
pub fn claims_json(all: &[JudgedClaim]) -> String {
    json(
        &all.iter()
            .map(|judged| {
                let mut entry = serde_json::json!(judged);
                entry["reason"] = reason(judged).into();
                entry
            })
            .collect::<Vec<_>>(),
    )
}

/// How many claims have each verdict: `Of 48 claims: 20 hold, 9 do not hold, 8 unclear, 11 not
/// testable here.`, then the same for single comparisons.
pub fn summary(all: &[JudgedClaim]) -> String {
    let (comparisons, claims): (Vec<_>, Vec<_>) = all.iter().partition(|claim| claim.is_comparison);
    let of_each = [(claims, "claim"), (comparisons, "published comparison")];
    let of_each = of_each.into_iter().filter(|(them, _)| !them.is_empty());
    joined(of_each.map(|(them, noun)| counted(&them, noun)), " ")
}

fn counted(all: &[&JudgedClaim], noun: &str) -> String {
    let verdicts = || all.iter().map(|judged| judged.verdict);
    let of = |wanted| verdicts().filter(|verdict| *verdict == wanted).count();
    format!(
        "Of {}: {} hold, {} do not hold, {} unclear, {} not testable here.",
        count(all.len(), noun),
        of(Verdict::Holds),
        of(Verdict::DoesNotHold),
        of(Verdict::Unclear),
        of(Verdict::NotTestable)
    )
}

/// The reason for a verdict: the comparisons that decided, with their numbers; the missing rows;
/// the sizes.
pub fn reason(judged: &JudgedClaim) -> String {
    let parts = &judged.parts;
    let mut shown: Vec<&JudgedPart> = parts.iter().collect();
    shown.retain(|part| part.verdict == judged.verdict);
    // A verdict by the larger half, or one on which two distributions disagree, has no part with
    // that verdict.
    if shown.is_empty() {
        shown.extend(parts);
    }
    let more = shown.len().saturating_sub(MOST_PARTS);
    shown.truncate(MOST_PARTS);
    let mut words: Vec<String> = shown.into_iter().map(sentence).collect();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    let compared = parts.iter().filter(|part| !part.place.is_empty()).count();
    let holding = parts
        .iter()
        .filter(|part| part.verdict == Verdict::Holds)
        .count();
    if compared > 1 && (more > 0 || holding < compared) {
        words.push(format!(
            "{holding} of {} hold",
            count(compared, "comparison")
        ));
    }
    if !judged.missing.is_empty() {
        words.push(format!("without {}", list(&judged.missing)));
    }
    words.extend(judged.notes.iter().cloned());
    words.extend(further(judged));
    if !judged.sizes.is_empty() {
        words.push(format!("run with {}", judged.sizes.join(", ")));
    }
    words.join("; ")
}

/// The first comparison that decided, or what is missing; and why a claim may not hold.
pub fn one_reason(judged: &JudgedClaim) -> String {
    let decided = judged
        .parts
        .iter()
        .find(|part| part.verdict == judged.verdict);
    let mut words: Vec<String> = decided
        .or(judged.parts.first())
        .map(sentence)
        .into_iter()
        .collect();
    words.extend(further(judged));
    words.extend(
        judged
            .explained
            .iter()
            .map(|why| format!("measured: {why}")),
    );
    words.extend(judged.explain.iter().map(|why| format!("supposed: {why}")));
    words.join("; ")
}

/// What else was measured, and on which machine.
fn further(judged: &JudgedClaim) -> Vec<String> {
    let numbers = joined(judged.measured.iter().map(text), ", ");
    let machine = judged.machine.as_ref();
    let words = [
        as_then(judged),
        (!numbers.is_empty()).then(|| format!("measured: {numbers}")),
        machine.map(|machine| format!("decided by {machine}")),
    ];
    words.into_iter().flatten().collect()
}

/// The verdict with allocators configured as in the document's time.
fn as_then(judged: &JudgedClaim) -> Option<String> {
    let then = judged.as_then.as_ref()?;
    let words = match then.verdict {
        verdict if verdict == judged.verdict => "the verdict is the same".to_owned(),
        verdict => format!("the verdict is: {}", verdict.word()),
    };
    Some(format!("measured: with {} {words}", list(&then.rows)))
}

fn sentence(part: &JudgedPart) -> String {
    let mut out = enclosed("", &part.place, ": ");
    for (place, piece) in part.said.iter().enumerate() {
        let words = match piece {
            Said::Words(words) => words,
            Said::Number(number) => &text(number),
        };
        if place > 0 && !words.starts_with([',', ';']) {
            out.push(' ');
        }
        out += words;
    }
    out
}

/// A number in words, as in `glibc 5.12 Mops/s (4.98-5.30)`.
fn text(number: &Number) -> String {
    let (size, unit) = unit(number);
    let digits = |value: f64| units::digits(value / size);
    let range = match (digits(number.min), digits(number.max)) {
        (min, max) if min == max => String::new(),
        (min, max) => format!(" ({min}-{max})"),
    };
    let row = enclosed("", &number.row, " ");
    format!("{row}{}{unit}{range}", digits(number.median))
}

/// The size of a number's unit, and the unit's name with a leading space.
fn unit(number: &Number) -> (f64, String) {
    let PrintedUnit { name, size } = units::time(number.median);
    let of_time = name.trim_end_matches("/op");
    let (size, unit) = match &number.measure {
        None => return (1.0, String::new()),
        Some(Measure::Time) => (size, name),
        Some(Measure::Mops) => (1.0, "Mops/s"),
        Some(Measure::Wall) => (size, of_time),
        Some(measure @ (Measure::User | Measure::Sys | Measure::Cpu)) => {
            return (size, format!(" {of_time} {measure}"));
        }
        Some(Measure::CpuPerWall) => (1.0, "CPU / wall"),
        Some(Measure::MinorFaults) => (1.0, "page faults"),
        Some(Measure::Overhead) => return (1.0, "x overhead".into()),
        Some(Measure::HeapGrowth) => (0.01, "% of requested"),
        Some(Measure::TotalGrowth) => (1_048_576.0, "MiB"),
        Some(Measure::TotalFall) => (0.01, "% given back"),
        Some(Measure::Figure(name)) if name.ends_with("_ns") => (size, of_time),
        Some(Measure::Figure(name)) if name.ends_with("_percent") => (1.0, "%"),
        Some(Measure::Figure(name)) if name == "mops_cpu_ref" => (1.0, "Mops/CPU s"),
        Some(Measure::Figure(name)) => (1.0, name.as_str()),
    };
    (size, format!(" {unit}"))
}
