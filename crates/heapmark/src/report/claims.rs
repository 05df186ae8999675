//! Verdicts on the claims of the reference documents, as a table on the terminal, as Markdown and
//! as JSON.

use super::Screen;
use super::text::{count, json, list, markdown as escape, plain};
use super::units;
use crate::analyse::claims::{JudgedClaim, JudgedPart, Number, Said, Verdict};
use crate::catalog::claim::Measure;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde::Serialize;

/// Comparisons that a reason lists; the others are in the JSON.
const MOST_PARTS: usize = 3;

/// One row per claim that can be judged, or per claim if `whole` documents are shown; and a line
/// that counts the verdicts.
pub fn claims(all: &[JudgedClaim], whole: bool, screen: Screen) -> String {
    let is_shown = |judged: &&JudgedClaim| whole || judged.verdict != Verdict::NotTestable;
    let shown: Vec<&JudgedClaim> = all.iter().filter(is_shown).collect();
    if shown.is_empty() {
        return format!("{}\n{LEFT_OUT}\n", summary(all));
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).force_no_tty();
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(screen.width.min(u16::MAX.into()) as u16);
    table.set_header(["id", "verdict", "claim", "reason"]);
    for judged in &shown {
        table.add_row([
            &judged.id,
            judged.verdict.word(),
            &plain(&judged.says),
            &plain(&reason(judged)),
        ]);
    }
    // The reason is the longest: it gets the remaining width.
    let claim = ColumnConstraint::UpperBoundary(Width::Percentage(27));
    for (place, width) in [
        ColumnConstraint::ContentWidth,
        ColumnConstraint::ContentWidth,
        claim,
    ]
    .into_iter()
    .enumerate()
    {
        if let Some(column) = table.column_mut(place) {
            column.set_constraint(width);
        }
    }
    let lines: String = table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    let rest = if shown.len() < all.len() {
        format!("{LEFT_OUT}\n")
    } else {
        String::new()
    };
    format!("{lines}\n{}\n{rest}", summary(all))
}

/// The formats with the claims that a table does not show.
const LEFT_OUT: &str = "Claims that are not testable here are left out; --document NAME or --to md lists them with the reason.";

/// The same as a Markdown table.
pub fn claims_markdown(all: &[JudgedClaim]) -> String {
    let mut out = String::from("| id | verdict | claim | reason |\n|:--|:--|:--|:--|\n");
    for judged in all {
        let cells = [
            &judged.id,
            judged.verdict.word(),
            &judged.says,
            &reason(judged),
        ]
        .map(escape);
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    format!("{out}\n{}\n", summary(all))
}

/// All claims, each with its reason as a sentence.
pub fn claims_json(all: &[JudgedClaim]) -> String {
    #[derive(Serialize)]
    struct ClaimEntry<'a> {
        #[serde(flatten)]
        judged: &'a JudgedClaim,
        reason: String,
    }
    let entries: Vec<ClaimEntry> = all
        .iter()
        .map(|judged| ClaimEntry {
            judged,
            reason: reason(judged),
        })
        .collect();
    json(&entries)
}

/// `20 claims hold, 9 do not, 8 are unclear, 11 are not testable here`.
pub fn summary(all: &[JudgedClaim]) -> String {
    let of = |verdict| {
        all.iter()
            .filter(|judged| judged.verdict == verdict)
            .count()
    };
    format!(
        "Of {}: {} hold, {} do not hold, {} unclear, {} not testable here.",
        count(all.len(), "claim"),
        of(Verdict::Holds),
        of(Verdict::DoesNotHold),
        of(Verdict::Unclear),
        of(Verdict::NotTestable)
    )
}

/// The comparisons that decided, with their numbers; the missing rows; the size.
pub fn reason(judged: &JudgedClaim) -> String {
    let decided: Vec<&JudgedPart> = judged
        .parts
        .iter()
        .filter(|part| part.verdict == judged.verdict)
        .collect();
    // A verdict by the larger half, or one that two distributions disagree on, has no part of its
    // own.
    let shown: Vec<&JudgedPart> = if decided.is_empty() {
        judged.parts.iter().collect()
    } else {
        decided
    };
    let mut words: Vec<String> = shown
        .iter()
        .take(MOST_PARTS)
        .map(|part| sentence(part))
        .collect();
    let compared = judged
        .parts
        .iter()
        .filter(|part| !part.place.is_empty())
        .count();
    let holding = judged
        .parts
        .iter()
        .filter(|part| part.verdict == Verdict::Holds)
        .count();
    if shown.len() > MOST_PARTS {
        words.push(format!("and {} more", shown.len() - MOST_PARTS));
    }
    if compared > 1 && (shown.len() > MOST_PARTS || holding < compared) {
        words.push(format!(
            "{holding} of {} hold",
            count(compared, "comparison")
        ));
    }
    if !judged.missing.is_empty() {
        words.push(format!("without {}", list(&judged.missing)));
    }
    words.extend(judged.notes.iter().cloned());
    if !judged.sizes.is_empty() {
        words.push(format!("run with {}", judged.sizes.join(", ")));
    }
    words.join("; ")
}

fn sentence(part: &JudgedPart) -> String {
    let mut out = if part.place.is_empty() {
        String::new()
    } else {
        format!("{}: ", part.place)
    };
    for (place, said) in part.said.iter().enumerate() {
        let words = match said {
            Said::Words(words) => words.clone(),
            Said::Number(number) => text(number),
        };
        if place > 0 && !words.starts_with([',', ';']) {
            out.push(' ');
        }
        out.push_str(&words);
    }
    out
}

/// `glibc 5.12 Mops/s (4.98-5.30)`.
fn text(number: &Number) -> String {
    let (size, unit) = unit(number);
    let digits = |value: f64| units::digits(value / size);
    let range = match (digits(number.min), digits(number.max)) {
        (min, max) if min == max => String::new(),
        (min, max) => format!(" ({min}-{max})"),
    };
    let row = if number.row.is_empty() {
        String::new()
    } else {
        format!("{} ", number.row)
    };
    format!("{row}{}{unit}{range}", digits(number.median))
}

/// The size of one unit, and its name with a leading space.
fn unit(number: &Number) -> (f64, String) {
    let fitting = |unit: units::PrintedUnit, suffix: &str| {
        (
            unit.size,
            format!(" {}", unit.name.trim_end_matches(suffix)),
        )
    };
    match &number.measure {
        None => (1.0, String::new()),
        Some(Measure::Time) => fitting(units::time(number.median), ""),
        Some(Measure::Mops) => (1.0, " Mops/s".into()),
        Some(Measure::Wall) => fitting(units::time(number.median), "/op"),
        Some(measure @ (Measure::User | Measure::Sys | Measure::Cpu)) => {
            let (size, unit) = fitting(units::time(number.median), "/op");
            (size, format!("{unit} {measure}"))
        }
        Some(Measure::CpuPerWall) => (1.0, " CPU / wall".into()),
        Some(Measure::Overhead) => (1.0, "x overhead".into()),
        Some(Measure::HeapGrowth) => (0.01, " % of requested".into()),
        Some(Measure::TotalGrowth) => (1_048_576.0, " MiB".into()),
        Some(Measure::TotalFall) => (0.01, " % given back".into()),
        Some(Measure::Figure(name)) if name.ends_with("_ns") => {
            fitting(units::time(number.median), "/op")
        }
        Some(Measure::Figure(name)) if name.ends_with("_percent") => (1.0, " %".into()),
        Some(Measure::Figure(name)) if name == "mops_cpu_ref" => (1.0, " Mops/CPU s".into()),
        Some(Measure::Figure(name)) => (1.0, format!(" {name}")),
    }
}
