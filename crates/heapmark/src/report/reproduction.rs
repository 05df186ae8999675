//! `docs/REPRODUCTION.md`: every published figure beside ours, and every claim with its verdict.

use super::claims::{reason, summary};
use super::text::{list, markdown as escape};
use super::units::digits;
use crate::analyse::claims::{Evidence, JudgedClaim, Measured, PublishedRow, Reproduced, figures};
use crate::catalog::Workload;
use crate::catalog::claim::{Document, Measure};
use crate::catalog::malloc_api::matches;
use crate::store::AllocatorInfo;

/// The page.
pub fn reproduction(
    documents: &[Document],
    workloads: &[Workload],
    evidence: &Evidence,
    runs: &[Measured],
    judged: &[JudgedClaim],
) -> String {
    let mut out = head(runs, evidence, judged);
    for document in documents {
        out.push_str(&format!(
            "\n## {}: {}\n\n",
            document.short,
            escape(&document.title)
        ));
        out.push_str(&format!(
            "Numbers of {}, made on {}.",
            escape(&document.date),
            escape(&document.machine)
        ));
        out.extend(
            document
                .remark
                .iter()
                .map(|remark| format!(" {}", escape(remark))),
        );
        out.extend(
            document
                .no_figures
                .iter()
                .map(|why| format!(" {} So only its claims are here.", escape(why))),
        );
        out.push('\n');
        out.push_str(&versions(document, runs));
        figures(document, evidence, workloads)
            .iter()
            .for_each(|table| out.push_str(&figure(table)));
        out.push_str("\n### Claims\n\n| id | claim | the document's evidence | verdict | what was found |\n|:--|:--|:--|:--|:--|\n");
        let ours: Vec<&JudgedClaim> = judged
            .iter()
            .filter(|judged| judged.document == document.short)
            .collect();
        for judged in &ours {
            let verdict = format!("**{}**", judged.verdict.word());
            let [says, theirs, found] =
                [&judged.says, &judged.evidence, &reason(judged)].map(|text| escape(text));
            out.push_str(&format!(
                "| {} | {says} | {theirs} | {verdict} | {found} |\n",
                judged.id
            ));
        }
        let explained: String = ours
            .iter()
            .filter_map(|judged| {
                Some(format!(
                    "- **{}**: {}\n",
                    judged.id,
                    escape(judged.explain.as_ref()?)
                ))
            })
            .collect();
        if !explained.is_empty() {
            out.push_str(&format!("\nWhy some do not hold here:\n\n{explained}"));
        }
    }
    out
}

fn head(runs: &[Measured], evidence: &Evidence, judged: &[JudgedClaim]) -> String {
    let mut out = String::from(
        "# Reproduction\n\n\
         Written by `make reproduction`; do not edit. It runs the suites of the reference documents and then\n\
         `heapmark claims RUN... --reproduction -o docs/REPRODUCTION.md`.\n\n\
         How to read it: machines, versions and sizes are other ones than the documents', so compare shapes, not speeds. Behind\n\
         each number stands its ratio to the row named in the heading, in the same column. Ours are medians over processes.\n\
         [CLAIMS](CLAIMS.md) says what the verdicts mean.\n",
    );
    let fact = |key: &str| {
        runs.first()
            .and_then(|run| run.head.machine.get(key))
            .map_or("unknown", String::as_str)
    };
    out.push_str(&format!(
        "\n- Machine: {}, {} usable CPUs, {}, Linux {}\n",
        escape(fact("cpu_model")),
        escape(fact("usable_cpus")),
        escape(fact("architecture")),
        escape(fact("kernel"))
    ));
    for run in runs {
        out.push_str(&format!(
            "- Run of {}: suite {}, preset {}, {} blocks, seed {}, heapmark {}: {}\n",
            escape(&run.head.started),
            escape(&run.head.suite),
            escape(&run.head.preset),
            run.head.plan.blocks,
            run.head.plan.seed,
            escape(&run.head.heapmark),
            escape(&list(&names(run)))
        ));
    }
    let (disturbed, parts) = evidence.disturbed();
    out.push_str(&format!(
        "- Other programs disturbed {disturbed} of the {parts} parts of all blocks.\n"
    ));
    format!("{out}\n{}\n", summary(judged))
}

fn names(run: &Measured) -> Vec<String> {
    let mut names: Vec<String> = run
        .head
        .plan
        .cases
        .iter()
        .map(|case| case.workload.clone())
        .collect();
    names.dedup();
    names
}

/// The mapping of our rows to the document's, with both versions.
fn versions(document: &Document, runs: &[Measured]) -> String {
    let infos: Vec<&AllocatorInfo> = runs
        .iter()
        .flat_map(|run| run.head.allocators.iter().chain(&run.head.rows))
        .collect();
    let mut out = String::from("\n| row | its version | ours | our version |\n|:--|:--|:--|:--|\n");
    for (name, row) in &document.rows {
        let found = row
            .ours
            .iter()
            .find_map(|pattern| infos.iter().find(|info| matches(pattern, &info.name)));
        let (ours, version) = match found {
            Some(info) => (info.name.as_str(), info.version.as_str()),
            None if row.brought => ("not here: no registry has it", ""),
            None => ("not here", ""),
        };
        let cells = [name.as_str(), &row.version, ours, version].map(escape);
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

/// Two lines per row: as published, and ours.
fn figure(table: &Reproduced) -> String {
    let Reproduced {
        figure,
        columns,
        rows,
        sizes,
    } = table;
    let mut out = format!(
        "\n### {} (ratios to {})\n\n",
        escape(&figure.title),
        escape(&figure.reference)
    );
    if !sizes.is_empty() {
        out.push_str(&format!(
            "Ours was run with {}.\n\n",
            escape(&sizes.join(", "))
        ));
    }
    out.push_str("| row |");
    for (threads, measure) in columns {
        let one = if figure.threads == [1] {
            String::new()
        } else {
            format!("{threads} thr. ")
        };
        out.push_str(&format!(" {one}{} |", heading(measure)));
    }
    out.push_str(&format!("\n|:--|{}\n", "--:|".repeat(columns.len())));
    let scaled = |row: &PublishedRow| -> Vec<Option<f64>> {
        let numbers = row.ours.iter().zip(columns);
        numbers
            .map(|(number, (_, measure))| Some(number.as_ref()?.median / scale(measure)))
            .collect()
    };
    let Some(reference) = rows.iter().find(|row| row.name == figure.reference) else {
        return out;
    };
    let our_reference = scaled(reference);
    for row in rows {
        // As printed in the document.
        let theirs = |_, value: f64| value.to_string();
        out.push_str(&line(
            &format!("{}, published", row.name),
            &row.published,
            &reference.published,
            theirs,
        ));
        let ours = row
            .ours
            .iter()
            .flatten()
            .next()
            .map_or("not measured", |number| &number.row);
        let shown = |place: usize, value: f64| match columns[place].1 {
            Measure::Overhead => format!("{value:.3}"),
            _ => digits(value),
        };
        out.push_str(&line(
            &format!("{}, ours ({ours})", row.name),
            &scaled(row),
            &our_reference,
            shown,
        ));
    }
    out
}

/// Each number with its ratio to the reference in the same column.
fn line(
    name: &str,
    values: &[Option<f64>],
    reference: &[Option<f64>],
    shown: impl Fn(usize, f64) -> String,
) -> String {
    let cell = |(place, (value, reference)): (usize, (&Option<f64>, &Option<f64>))| {
        let Some(value) = *value else {
            return "-".to_owned();
        };
        let ratio = reference
            .map(|reference| value / reference)
            .filter(|ratio| ratio.is_finite());
        format!(
            "{}{}",
            shown(place, value),
            ratio
                .map(|ratio| format!(" ({})", digits(ratio)))
                .unwrap_or_default()
        )
    };
    let cells: Vec<String> = values.iter().zip(reference).enumerate().map(cell).collect();
    format!("| {} | {} |\n", escape(name), cells.join(" | "))
}

/// One of the document's units, in ours.
fn scale(measure: &Measure) -> f64 {
    match measure {
        Measure::Wall | Measure::User | Measure::Sys | Measure::Cpu => 1e9,
        _ => 1.0,
    }
}

fn heading(measure: &Measure) -> String {
    match measure {
        Measure::Wall => "real s".into(),
        Measure::User => "user s".into(),
        Measure::Sys => "sys s".into(),
        Measure::Mops => "Mops/s".into(),
        other => escape(&other.to_string()),
    }
}
