//! Pages of artificial runs. `tests/page.rs` tests how a browser shows them.

use super::{PageRun, data, page, sections};
use crate::analyse::analyse;
use crate::analyse::claims::{JudgedClaim, Verdict};
use crate::analyse::fake_run::{FakeRun, crash, noise};
use crate::report::page::series_legend::{LegendRun, SeriesLegend};
use crate::store::{Point, Series};
use serde_json::Value;

fn lab() -> FakeRun {
    let names = ["glibc", "rpmalloc", "hoard"];
    FakeRun::new(&names, &["larson", "churn"], 12).fill(|workload, name, block| {
        let ns = if name == "rpmalloc" { 10.0 } else { 20.0 };
        ns * noise(&format!("{workload}{name}"), block)
    })
}

fn run<'a>(name: &str, lab: &'a FakeRun) -> PageRun<'a> {
    PageRun {
        name: name.into(),
        head: &lab.run,
        records: &lab.records,
        series: Vec::new(),
    }
}

fn of(lab: &FakeRun) -> String {
    page(&[run("r/1", lab)], &[])
}

/// The data that the script of a page reads.
fn told(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = page.split_once(start).expect("the data are there");
    serde_json::from_str(rest.split_once("</script>").expect("the element ends").0)
        .expect("they are JSON")
}

fn ids(page: &str) -> Vec<String> {
    let starts = page.split("<section id=\"").skip(1);
    starts
        .map(|rest| rest.split('"').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn sections_stand_in_their_order_and_only_where_there_is_something_to_see() {
    let page = of(&lab());
    assert_eq!(
        ids(&page),
        [
            "trust", "ratio", "pareto", "heat", "samples", "tables", "method"
        ]
    );
    let verdict = "rpmalloc is the fastest here, over 2 cases and 12 blocks";
    assert!(page.find(verdict).unwrap() < page.find("<section").unwrap());

    let calls = FakeRun::new(&["glibc", "hoard"], &["larson"], 6)
        .fill(|_, _, _| 20.0)
        .timing_calls(16, |_| vec![(30, 9000)]);
    assert_eq!(ids(&of(&calls)), ["trust", "latency", "tables", "method"]);
    let whole = FakeRun::new(&["glibc", "hoard"], &["trees"], 6)
        .whole(&["OCaml"])
        .fill(|_, _, _| 20.0);
    assert_eq!(
        ids(&of(&whole)),
        ["trust", "samples", "whole", "tables", "method"]
    );
}

#[test]
fn a_run_in_which_all_failed_has_no_empty_chart_and_says_why() {
    let mut lab = lab();
    lab.records.iter_mut().for_each(|record| {
        record.outcome = crash();
        record.measurement = None;
    });
    let page = of(&lab);
    assert_eq!(ids(&page), ["trust", "failures", "tables", "method"]);
    assert!(
        page.contains("No verdict: no allocator has samples")
            && page.contains("SIGSEGV in phase run")
    );
    assert!(
        !page.contains("Plotly") && page.len() < 100_000,
        "no chart, no script"
    );
    let nothing = FakeRun::new(&["glibc"], &[], 6);
    assert!(of(&nothing).contains("No verdict: the run has no cases."));
}

#[test]
fn names_from_outside_are_text_wherever_they_stand() {
    let evil = "</script><script>alert(1)</script><b>&lt;\u{202e}";
    let workload = "<img src=x onerror=alert(2)>";
    let lab = FakeRun::new(&["glibc", evil], &[workload, "churn"], 12)
        .fill(|_, name, _| if name == evil { 10.0 } else { 20.0 });
    let page = page(
        &[run(
            "<i>run</i>",
            &lab.fail(&format!("churn@2/b03/{evil}"), crash()),
        )],
        &[],
    );
    for markup in ["<script>alert", "<img", "<b>", "<i>", "\u{202e}"] {
        let ours = page.matches(markup).count() - super::plotly_script().matches(markup).count();
        assert_eq!(ours, 0, "{markup}");
    }
    let told = told(&page);
    assert_eq!(
        told["entries"][1]["name"], "</script><script>alert(1)</script><b>&lt;",
        "a button shows it as it is"
    );
    let drawn = &told["charts"]["samples"][0]["plots"][0]["traces"][0]["drawn"]["name"];
    assert_eq!(
        drawn, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;b&gt;&amp;lt;",
        "a chart reads entities"
    );
}

#[test]
fn charts_have_every_row_with_numbers_and_tables_what_the_charts_show() {
    let told = told(&of(&lab().fail("churn@2/b03/hoard", crash())));
    let names: Vec<&str> = told["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["glibc", "rpmalloc", "hoard"]);
    let view = |id: &str, workload: &str| {
        let views = told["charts"][id].as_array().unwrap();
        views
            .iter()
            .find(|view| view["workload"] == workload)
            .unwrap_or_else(|| panic!("{id} {workload}"))
            .clone()
    };
    let rows = |view: &Value| view["data"]["rows"].as_array().unwrap().len();
    for id in ["ratio", "pareto", "samples"] {
        let (all, without) = (view(id, "larson"), view(id, "churn"));
        assert_eq!((rows(&all), rows(&without)), (3, 2), "{id}");
        assert_eq!(
            without["plots"][0]["traces"].as_array().unwrap().len(),
            2,
            "{id}"
        );
    }
    let first = &view("ratio", "larson")["data"]["rows"][1];
    assert_eq!(
        (&first[3], &first[8]),
        (&"rpmalloc".into(), &"faster".into())
    );
    assert!((first[4].as_f64().unwrap() - 0.5).abs() < 0.01, "{first}");
}

#[test]
fn runs_stand_side_by_side_in_one_chart_and_an_allocator_is_one() {
    let (one, mut two) = (lab(), lab());
    two.run.plan.cases.truncate(1);
    let page = page(&[run("r/1", &one), run("r/2", &two)], &[]);
    let told = told(&page);
    assert_eq!(told["runs"], serde_json::json!(["1: r/1", "2: r/2"]));
    assert_eq!(ids(&page)[1], "compare", "two runs are compared row by row");
    assert!(page.contains("their blocks were not interleaved"));
    assert_eq!(told["entries"].as_array().unwrap().len(), 3);
    let traces = told["charts"]["ratio"]
        .as_array()
        .unwrap()
        .iter()
        .find(|view| view["workload"] == "larson")
        .unwrap()["plots"][0]["traces"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = traces
        .iter()
        .map(|trace| trace["drawn"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 6);
    assert_eq!(names[..2], ["rpmalloc · 1", "rpmalloc · 2"]);
}

#[test]
fn claims_stand_on_the_page_where_the_runs_speak_of_any() {
    let judged = |verdict| JudgedClaim {
        id: "MM-3".into(),
        document: "mm".into(),
        says: "the <b>fastest</b>".into(),
        evidence: String::new(),
        verdict,
        parts: Vec::new(),
        missing: Vec::new(),
        notes: Vec::new(),
        sizes: Vec::new(),
        explain: None,
    };
    let lab = lab();
    let page = |verdict| page(&[run("r", &lab)], &[judged(verdict)]);
    assert!(!ids(&page(Verdict::NotTestable)).contains(&"claims".into()));
    let page = page(Verdict::DoesNotHold);
    assert!(ids(&page).contains(&"claims".into()) && page.contains("does not hold"));
    assert!(
        page.contains("the &lt;b&gt;fastest"),
        "text from outside is text"
    );
}

/// The view of memory over time of a run where only hoard has a series.
fn memory(points: impl Iterator<Item = Point>) -> Value {
    let series = Series {
        cell: "larson@2/b00/hoard".into(),
        workload: "larson".into(),
        threads: 2,
        allocator: "hoard".into(),
        points: points.collect(),
    };
    let told = told(&page(
        &[PageRun {
            series: vec![series],
            ..run("r", &lab())
        }],
        &[],
    ));
    told["charts"]["memory"][0].clone()
}

fn point(n: u64) -> Point {
    Point {
        time_ns: n * 1_000_000,
        allocated_bytes: None,
        requested_live_bytes: Some(1 << 20),
        total_dynamic_bytes: Some(3 << 20),
        rss_bytes: if n == 7777 { 9 << 20 } else { 2 << 20 },
    }
}

#[test]
fn a_curve_keeps_its_peak_however_long_it_is() {
    let view = memory((0..100_000).map(point));
    let traces = view["plots"][0]["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 2, "what was asked for, and hoard");
    let y = traces[1]["drawn"]["y"].as_array().unwrap();
    assert!(y.len() <= 400 && y.contains(&9.0.into()), "{}", y.len());
    assert_eq!(view["data"]["rows"][0][5], 100_000);
}

#[test]
fn a_replay_in_strict_order_is_drawn_along_what_was_allocated_and_not_along_time() {
    let axis = |view: &Value| {
        let plot = &view["plots"][0];
        (
            plot["layout"]["xaxis"]["title"]["text"]
                .as_str()
                .unwrap()
                .to_owned(),
            plot["traces"][1]["drawn"]["x"].clone(),
        )
    };
    let timed = memory((0..3).map(point));
    assert_eq!(
        axis(&timed),
        (
            "ms since the start of the process".into(),
            serde_json::json!([0.0, 1.0, 2.0])
        )
    );
    let strict = memory((0..3).map(|n| Point {
        allocated_bytes: Some((n * 5) << 20),
        ..point(n * n)
    }));
    assert_eq!(
        axis(&strict),
        (
            "MiB allocated so far".into(),
            serde_json::json!([0.0, 5.0, 10.0])
        )
    );
}

#[test]
fn samples_are_hollow_where_they_were_disturbed() {
    let mut lab = lab();
    lab.cell("larson@2/b00/glibc").interference =
        serde_json::from_str(r#"{"wall_ns": 1, "foreign_cpu_share": 0.9}"#).unwrap();
    let run = run("r", &lab);
    let legend = SeriesLegend::new(vec![LegendRun {
        run: &run,
        analysis: analyse(&lab.run, &lab.records),
    }]);
    let told: Value =
        serde_json::from_str(&data(&legend.entries, Vec::new(), &sections(&legend, &[]))).unwrap();
    let traces = told["charts"]["samples"][0]["plots"][0]["traces"]
        .as_array()
        .unwrap();
    let hollow: Vec<&Value> = traces
        .iter()
        .filter(|one| one["drawn"]["marker"]["symbol"] == "circle-open")
        .collect();
    assert_eq!(hollow.len(), 1);
    assert_eq!(
        (
            &hollow[0]["drawn"]["name"],
            hollow[0]["drawn"]["x"].as_array().unwrap().len()
        ),
        (&"glibc".into(), 1)
    );
}
