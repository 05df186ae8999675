//! Each claim held against the figures that its own document published: there it must hold, or what
//! we say and check is not what the document says.

use super::*;
use crate::document::{Claim, Measure, PublishedFigure};
use heapmark_core::plan::Case;
use std::collections::BTreeSet;

const PROCESSES: u32 = 5;

/// The documents with figures, and the cores of their machines.
const MACHINES: [(&str, &str); 3] = [("BT", "6"), ("MM", "48"), ("ZA", "48")];

fn documents(catalog: &Catalog) -> Vec<Document> {
    let mut all = Document::load(catalog).unwrap();
    all.retain(|document| !document.figures.is_empty());
    for claim in all.iter_mut().flat_map(|document| &mut document.claims) {
        // Of its own machine, it is comparable.
        claim.not_comparable.clear();
    }
    all
}

/// A run that measured what the document published, with processes that all agree.
fn as_published(document: &Document, catalog: &Catalog) -> Measured {
    let names = document.rows.values().map(|row| allocator_of(&row.ours[0]));
    let names: BTreeSet<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut run = Stage::new().measured;
    let machine = run.head.machine;
    run.head = FakeRun::new(&names, &[], PROCESSES).run;
    run.head.machine = machine;
    let of_machine = MACHINES.iter().find(|(short, _)| *short == document.short);
    let (_, cores) = of_machine.expect("a machine for each document with figures");
    let facts = &mut run.head.machine;
    facts.insert("usable_cpus".into(), (*cores).into());
    for figure in &document.figures {
        add(&mut run, document, figure, catalog);
    }
    run
}

fn allocator_of(pattern: &str) -> String {
    pattern.trim_end_matches('*').into()
}

fn add(run: &mut Measured, document: &Document, figure: &PublishedFigure, catalog: &Catalog) {
    for row in &figure.rows {
        let entry = &document.rows[&row.row];
        let workload = entry.workload.as_ref().unwrap_or(&figure.workload);
        let allocator = allocator_of(&entry.ours[0]);
        let groups = row.values.chunks(figure.measures.len());
        for (threads, values) in figure.threads.iter().zip(groups) {
            add_case(run, workload, *threads, catalog);
            for block in 0..PROCESSES {
                let record = record_of(run, workload, *threads, &allocator, block);
                let measurement = run.records[record].measurement.as_mut().unwrap();
                for (measure, value) in figure.measures.iter().zip(values) {
                    put(measurement, measure, *value);
                }
            }
        }
    }
}

fn add_case(run: &mut Measured, workload: &str, threads: u32, catalog: &Catalog) {
    let cases = &mut run.head.plan.cases;
    let is_it = |case: &Case| case.workload == workload && case.threads == threads;
    if cases.iter().any(is_it) {
        return;
    }
    let known = catalog.workloads.iter().find(|it| it.name == workload);
    cases.push(Case {
        threads,
        parameters: known.unwrap().values("paper").unwrap_or_default(),
        ..case(workload)
    });
}

/// The place of the record of a process, which is added if it is not there.
fn record_of(run: &mut Measured, workload: &str, threads: u32, row: &str, block: u32) -> usize {
    let mut sample = record(Purpose::Sample, workload, threads, row, block);
    sample.measurement = Some(measurement(10.0));
    let known = run.records.iter().position(|it| it.cell == sample.cell);
    known.unwrap_or_else(|| {
        run.records.push(sample);
        run.records.len() - 1
    })
}

/// Makes the measure of a process this value of the document.
fn put(measurement: &mut Measurement, measure: &Measure, value: f64) {
    let seconds = (value * 1e9) as u64;
    for one in &mut measurement.iterations {
        match measure {
            Measure::Wall => one.wall_ns = seconds,
            Measure::User => one.user_ns = seconds,
            Measure::Sys => one.sys_ns = seconds,
            Measure::Mops => {
                one.wall_ns = 1_000_000_000;
                one.ops = (value * 1e6) as u64;
            }
            Measure::Overhead => {}
            other => panic!("{other} of a document is new here"),
        }
    }
    if *measure == Measure::Overhead {
        let figures = &mut measurement.figures;
        figures.insert("arrays_bytes".into(), 0.0);
        let heap = (measurement.peak_rss_bytes - measurement.baseline_rss_bytes) as f64;
        figures.insert("requested_sum_bytes".into(), heap / value);
    }
}

fn verdict_on_its_figures(document: &Document, claim: &Claim, catalog: &Catalog) -> JudgedClaim {
    let runs = [as_published(document, catalog)];
    let evidence = Evidence::new(&catalog.workloads, &runs);
    let all = judge(std::slice::from_ref(document), &evidence);
    all.into_iter().find(|it| it.id == claim.id).unwrap()
}

#[test]
fn each_claim_holds_on_its_documents_own_figures_or_is_marked() {
    let catalog = Catalog::load().unwrap();
    let mut held = 0;
    for document in documents(&catalog) {
        let runs = [as_published(&document, &catalog)];
        let evidence = Evidence::new(&catalog.workloads, &runs);
        let judged = judge(std::slice::from_ref(&document), &evidence);
        for (claim, judged) in document.claims.iter().zip(judged) {
            let is_marked = !claim.not_on_its_figures.is_empty();
            let found = (judged.verdict == Verdict::Holds, is_marked);
            held += usize::from(found.0);
            assert!(
                matches!(found, (true, false) | (false, true)),
                "{}: {:?} on its own figures: {:#?}",
                claim.id,
                judged.verdict,
                judged.parts
            );
        }
    }
    assert_eq!(held, 27, "of 29 claims of documents with figures");
}

#[test]
fn a_claim_that_its_documents_figures_contradict_is_found() {
    let catalog = Catalog::load().unwrap();
    for mut document in documents(&catalog) {
        let id = match document.short.as_str() {
            "BT" => "BT-2",
            "MM" => "MM-3",
            _ => "ZA-1",
        };
        // Each document's claim is about the first row of its first table, or of two of them.
        for figure in &mut document.figures {
            for row in &mut figure.rows {
                if ["jemalloc", "glibc malloc"].contains(&row.row.as_str()) {
                    row.values.iter_mut().for_each(|value| *value = 0.5);
                }
            }
        }
        let claim = document.claims.iter().find(|it| it.id == id).unwrap();
        let judged = verdict_on_its_figures(&document, claim, &catalog);
        assert_eq!(judged.verdict, Verdict::DoesNotHold, "{id}");
    }
}
