//! `docs/REPRODUCTION.md`: every published figure beside ours, and every claim with its verdict.

use crate::document::{Document, Measure};
use crate::judge::{Evidence, JudgedClaim, Measured, PublishedRow, Reproduced, reproduced};
use crate::report::{one_reason, reason, summary};
use heapmark_core::analyse::{InterferenceSummary, distinct};
use heapmark_core::catalog::malloc_api::matches;
use heapmark_core::report::conclusion::{moment, with_times};
use heapmark_core::report::render::{escaped as escape, row};
use heapmark_core::report::text::{count, enclosed, list};
use heapmark_core::report::units::digits;
use heapmark_core::store::AllocatorInfo;

/// Makes the whole page.
pub fn reproduction(documents: &[Document], evidence: &Evidence, judged: &[JudgedClaim]) -> String {
    let mut out = head(evidence, judged);
    for document in documents {
        out += &format!(
            "\n## {}: {}\n\nNumbers of {}, made on {}.",
            document.short,
            escape(&document.title),
            escape(&document.date),
            escape(&document.machine)
        );
        let remark = document.remark.as_deref().unwrap_or_default();
        out += &enclosed(" ", &escape(remark), "");
        if let Some(why) = &document.no_figures {
            out += &format!(" {} So only its claims are here.", escape(why));
        }
        let machines = evidence.of_machines(document.workloads());
        let ours = distinct(
            machines
                .iter()
                .filter_map(|seen| Some(machine(seen.runs().next()?))),
        );
        if !ours.is_empty() {
            out += &format!(" Ours: {}.", list(ours));
        }
        out += &format!("\n{}", versions(document, &machines));
        for table in &document.figures {
            let machines = evidence.of_machines([&table.workload].into_iter());
            for seen in &machines {
                let on = match machines.len() {
                    1 => String::new(),
                    _ => format!(", on {}", escape(&seen.machine_words())),
                };
                out += &figure(&reproduced(document, table, seen), &on);
            }
        }
        out += "\n### Claims\n\n| id | claim | the document's evidence | verdict | what was found |\n|:--|:--|:--|:--|:--|\n";
        for judged in judged
            .iter()
            .filter(|judged| judged.document == document.short)
        {
            let id = &judged.id;
            let verdict = judged.verdict_words();
            let [says, theirs, found] =
                [&judged.says, &judged.evidence, &reason(judged)].map(|text| escape(text));
            out += &format!("| {id} | {says} | {theirs} | **{verdict}** | {found} |\n");
        }
    }
    out
}

fn head(evidence: &Evidence, judged: &[JudgedClaim]) -> String {
    let mut out = String::from(
        "# Reproduction\n\n\
         Written by `make reproduction`; do not edit. It runs the suites of the reference documents and then\n\
         `heapmark claims RUN... --reproduction -o docs/REPRODUCTION.md`.\n\n\
         How to read it: machines, versions and sizes are other ones than the documents', so compare shapes, not speeds. Behind\n\
         each number stands its ratio to the row named in the heading, in the same column. Ours are medians over processes.\n\
         `4! thr.`: ours had more threads than usable CPUs (oversubscribed), so the scheduler is measured too; such columns decide no\n\
         claim. [The rule](../claims/README.md) says what the verdicts mean.\n",
    );
    let runs = || evidence.runs_of_all_machines();
    let machines = distinct(runs().map(|(run, _)| machine(run)));
    out += "\n";
    if machines.len() > 1 {
        out += "Several machines: of those on which a claim can be judged, the one with most threads decides, of equals the one with the document's sizes, and its verdict names it.\n\n";
    }
    for name in machines {
        out += &format!("- Machine: {name}\n");
        let here = runs().filter(|(run, _)| machine(run) == name);
        out.extend(here.map(|(run, seen)| what_ran(run, seen)));
    }
    format!("{out}\n{}\n{}", summary(judged), all_claims(judged))
}

fn machine(run: &Measured) -> String {
    format!(
        "{}, {} usable CPUs, {}",
        fact(run, "cpu_model"),
        fact(run, "usable_cpus"),
        fact(run, "architecture")
    )
}

fn fact(run: &Measured, key: &str) -> String {
    let fact = run.head.machine.get(key);
    escape(fact.map_or("unknown", String::as_str))
}

fn what_ran(run: &Measured, seen: &InterferenceSummary) -> String {
    let head = &run.head;
    let mut names: Vec<&String> = head.plan.cases.iter().map(|case| &case.workload).collect();
    names.dedup();
    let disturbed = match seen.disturbed {
        0 => "none disturbed".into(),
        some => format!("{some} disturbed, by {}", with_times(&seen.causes)),
    };
    format!(
        "  - Run of {}, Linux {}: suite {}, preset {}, {} ({}, {disturbed}), seed {}, heapmark {}: {}\n",
        escape(&moment(head)),
        fact(run, "kernel"),
        escape(&head.suite),
        escape(&head.preset),
        count(run.blocks(), "block"),
        count(seen.parts, "part"),
        head.plan.seed,
        escape(&head.heapmark),
        escape(&list(names))
    )
}

/// A table of all claims, each with its verdict and one reason.
fn all_claims(judged: &[JudgedClaim]) -> String {
    let rows = judged.iter().map(|judged| {
        let (id, verdict) = (&judged.id, judged.verdict_words());
        let [says, why] = [&judged.says, &one_reason(judged)].map(|text| escape(text));
        format!("| {id} | {says} | **{verdict}** | {why} |\n")
    });
    format!(
        "\n## All claims\n\n\
         *Measured* after a verdict: the same claim with allocators set as the document's versions were. *Supposed*: an\n\
         explanation that was not measured. *At 2 threads (document: 10)*: the thread counts that decided, and the most that the\n\
         document has. The medians and ranges behind a verdict stand with its\n\
         document below.\n\n\
         | id | claim | verdict | why |\n|:--|:--|:--|:--|\n{}",
        rows.collect::<String>()
    )
}

/// A table that maps our rows to the document's rows, with both versions.
fn versions(document: &Document, machines: &[Evidence]) -> String {
    let infos: Vec<&AllocatorInfo> = (machines.iter())
        .flat_map(|seen| seen.runs())
        .flat_map(|run| run.head.allocators.iter().chain(&run.head.rows))
        .collect();
    let mut out = String::from("\n| row | its version | ours | our version |\n|:--|:--|:--|:--|\n");
    for (name, theirs) in &document.rows {
        let found = theirs
            .ours
            .iter()
            .find_map(|pattern| infos.iter().find(|info| matches(pattern, &info.name)));
        let (ours, version) = match found {
            Some(info) => (&*info.name, version(info)),
            None if theirs.brought => ("not here: no registry has it", String::new()),
            None => ("not here", String::new()),
        };
        out += &row([name.as_str(), &theirs.version, ours, &version]);
    }
    out
}

/// Returns the release, or what runs by earlier versions of heapmark have instead.
fn version(info: &AllocatorInfo) -> String {
    match (info.release.as_str(), info.sources.as_str()) {
        ("", "") => info.version.clone(),
        ("", date) => format!("{}, {date}", info.version),
        (release, _) => release.to_owned(),
    }
}

/// A table with two lines per row: the published values and ours; `on` names our machine if there
/// are several.
fn figure(table: &Reproduced, on: &str) -> String {
    let figure = table.figure;
    let columns = &table.columns;
    let rows = &table.rows;
    let mut out = format!(
        "\n### {} (ratios to {}){on}\n\n",
        escape(&figure.title),
        escape(&figure.reference)
    );
    let sizes = escape(&table.sizes.join(", "));
    out += &enclosed("Ours was run with ", &sizes, ".\n\n");
    out += "| row |";
    for (threads, measure) in columns {
        let over = if table.oversubscribed.contains(threads) {
            "!"
        } else {
            ""
        };
        let one = if figure.threads == [1] {
            String::new()
        } else {
            format!("{threads}{over} thr. ")
        };
        out += &format!(" {one}{} |", heading(measure));
    }
    out += &format!("\n|:--|{}\n", "--:|".repeat(columns.len()));
    let scaled = |row: &PublishedRow| -> Vec<Option<f64>> {
        row.ours
            .iter()
            .zip(columns)
            .map(|(number, (_, measure))| Some(number.as_ref()?.median / scale(measure)))
            .collect()
    };
    let Some(reference) = rows.iter().find(|row| row.name == figure.reference) else {
        return out;
    };
    let our_reference = scaled(reference);
    for row in rows {
        // The value as printed in the document.
        let theirs = |_, value: f64| value.to_string();
        let name = format!("{}, published", row.name);
        out += &line(name, &row.published, &reference.published, theirs);
        let ours = row
            .ours
            .iter()
            .flatten()
            .next()
            .map_or("not measured", |number| &number.row);
        let name = format!("{}, ours ({ours})", row.name);
        out += &line(
            name,
            &scaled(row),
            &our_reference,
            |place, value| match columns[place].1 {
                Measure::Overhead => format!("{value:.3}"),
                _ => digits(value),
            },
        );
    }
    out
}

/// A line of a table: each number with its ratio to the reference in the same column.
fn line(
    name: String,
    values: &[Option<f64>],
    reference: &[Option<f64>],
    shown: impl Fn(usize, f64) -> String,
) -> String {
    let mut cells = vec![name];
    for (place, (value, reference)) in values.iter().zip(reference).enumerate() {
        let ratio = value
            .zip(*reference)
            .map(|(value, reference)| value / reference);
        let ratio = ratio.filter(|ratio| ratio.is_finite()).map(digits);
        cells.push(value.map_or("-".into(), |value| {
            shown(place, value) + &enclosed(" (", &ratio.unwrap_or_default(), ")")
        }));
    }
    row(cells)
}

/// The size of one of the document's units, in our unit.
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
