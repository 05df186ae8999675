//! Pages of artificial runs. `tests/further/outside/page.rs` tests how a browser shows them.

use super::{PageRun, data, page, sections};
use crate::analyse::analyse;
use crate::analyse::fake_run::{FakeRun, crash, noise};
use crate::catalog::Iterations;
use crate::catalog::workload::Calibrated;
use crate::plan::{HugePages, Turns};
use crate::report::document::Sheet;
use crate::report::page::section::Section;
use crate::report::page::series_legend::{LegendRun, SeriesLegend};
use crate::report::tests::checked::{failing, hardened};
use crate::store::{Point, Purpose, Record, Series};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::{Value, json};

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
    page(&[run("r/1", lab)], None, Vec::new())
}

/// The data that the script of a page reads.
fn told(page: &str) -> Value {
    let start = "<script type=\"text/plain\" id=\"data\">";
    serde_json::from_str(&unpacked(between(page, start, "</script>"))).expect("they are JSON")
}

fn unpacked(packed: &str) -> String {
    let bytes = BASE64_STANDARD.decode(packed).unwrap();
    String::from_utf8(decompress_to_vec_zlib(&bytes).unwrap()).unwrap()
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
            "times",
            "heaps",
            "ratio",
            "pareto",
            "samples",
            "tables",
            "best-and-worst",
            "trust",
            "method",
            "next"
        ]
    );
    let verdict = "rpmalloc is the fastest here, over 2 cases: 0.";
    assert!(page.find(verdict).unwrap() < page.find("<section").unwrap());

    let calls = FakeRun::new(&["glibc", "hoard"], &["larson"], 6)
        .fill(|_, _, _| 20.0)
        .timing_calls(16, |_| vec![(30, 9000)]);
    let rest = ["tables", "trust", "method", "next"];
    assert_eq!(ids(&of(&calls)), [&["latency"], &rest[..]].concat());
    let whole = FakeRun::new(&["glibc", "hoard"], &["trees"], 6)
        .whole(&["OCaml"])
        .fill(|_, _, _| 20.0);
    assert_eq!(
        ids(&of(&whole)),
        [&["samples", "whole"], &rest[..]].concat()
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
    assert_eq!(
        ids(&page),
        ["failures", "tables", "trust", "method", "next"]
    );
    assert!(
        page.contains("No verdict: no allocator has samples")
            && page.contains("SIGSEGV in phase run")
    );
    assert!(
        !page.contains("id=\"plotting\"") && page.len() < 100_000,
        "no chart, no script"
    );
    let nothing = FakeRun::new(&["glibc"], &[], 6);
    assert!(of(&nothing).contains("No verdict: the run has no cases."));
}

/// The text of the elements whose tags begin with `start`.
fn texts<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
    let starts = page.split(start).skip(1);
    let text = |rest: &'a str| rest.split_once('>')?.1.split('<').next();
    starts.filter_map(text).collect()
}

/// The part of a page from one text to another.
fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = page.split_once(start).expect("it begins");
    rest.split_once(end).expect("it ends").0
}

/// A run with the null allocator, and with a copy of the baseline that takes this share of the baseline's time.
fn with_floor_and_copy(copy: f64) -> FakeRun {
    let names = ["glibc", "rpmalloc", "hoard", "null", "glibc (copy)"];
    let mut lab = FakeRun::new(&names, &["larson", "churn"], 12);
    lab.allocator("null").tier = "floor".into();
    lab.allocator("glibc (copy)").tier = "aa-copy".into();
    lab.run.plan.aa_copy = Some("glibc (copy)".into());
    lab.fill(|workload, name, block| {
        let ns = match name {
            "rpmalloc" => 6.0,
            "null" => 4.0,
            "glibc (copy)" => 20.0 * copy,
            // Nothing is clear about hoard.
            "hoard" if block % 2 == 0 => 15.0,
            "hoard" => 26.0,
            _ => 20.0,
        };
        ns * noise(&format!("{workload}{name}"), block)
    })
}

#[test]
fn the_ranking_has_every_allocator_with_its_version_and_needs_no_script() {
    let mut lab = with_floor_and_copy(1.0);
    lab.allocator("rpmalloc").version = "1.4.5".into();
    let page = of(&lab.fail("churn@2/b03/hoard", crash()));
    let block = between(&page, "<table class=\"ranking\">", "</table>");
    let names = block.split("<th scope=\"row\">").skip(1);
    let names: Vec<&str> = names
        .filter_map(|rest| rest.split("</th>").next()?.rsplit("</span>").next())
        .collect();
    assert_eq!(names, ["rpmalloc", "glibc", "hoard"], "the fastest first");
    assert!(block.contains("1.4.5") && block.contains("no numbers in 1 case"));
    assert_eq!(texts(block, "<strong")[1], "1.000");
    assert_eq!(block.matches("class=\"fill faster\"").count(), 1);
    // The second picture says how sure that is, beside what the copy took.
    let sure = between(&page, "<table class=\"ranking sure\">", "</table>");
    let first = between(sure, "<th scope=\"row\">", "</tr>");
    for part in [
        "<td class=\"number wide faster\">2</td>",
        "class=\"reach\"",
        "class=\"next\"",
        "class=\"band\"",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[test]
fn a_run_of_one_case_is_ranked_by_its_rows() {
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 12)
        .fill(|_, name, block| noise(name, block) * if name == "hoard" { 40.0 } else { 20.0 });
    let page = of(&lab);
    let block = between(&page, "<table class=\"ranking\">", "</table>");
    assert_eq!(block.matches("class=\"fill slower\"").count(), 1);
    assert!(block.contains("larson, 2 threads: time") && block.contains("verdict slower"));
    assert!(
        !ids(&page).contains(&"times".into()),
        "no matrix of one case"
    );
    let alone = FakeRun::new(&["glibc"], &["larson"], 12).fill(|_, _, _| 20.0);
    assert!(!of(&alone).contains("<table class=\"ranking\">"));
}

#[test]
fn the_head_names_machine_suite_and_workloads_and_badges_say_how_far_to_trust_it() {
    let mut lab = with_floor_and_copy(1.0);
    for (key, value) in [
        ("cpu_model", "Abacus <2>"),
        ("usable_cpus", "2"),
        ("memory_total", "8388608 kB"),
        ("kernel", "7.1"),
    ] {
        lab.run.machine.insert(key.into(), value.into());
    }
    let page = of(&lab);
    let head = between(&page, "<header>", "</header>");
    for part in [
        "<h1>heapmark: larson, churn on Abacus &lt;2&gt;, 2026-01-01</h1>",
        "Abacus &lt;2&gt;, 2 CPUs, 8.00 GiB of memory, Linux 7.1",
        "heapmark 0.1.0, suite quick, preset quick",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert!(
        !head.contains("r&#x2f;1"),
        "the name of a folder is no title"
    );
    let badges = |page: &str, kind: &str| {
        let start = format!("<a class=\"{kind}\" href=\"#trust\"");
        texts(page, &start).join(", ")
    };
    let good = badges(&page, "good");
    assert!(good.starts_with("A&#x2f;A 1.000 to 1.0"), "{good}");
    assert!(
        good.ends_with("0 of 24 parts disturbed, 0 failures"),
        "{good}"
    );
    assert_eq!(badges(&page, "doubt"), "");

    let mut lab = with_floor_and_copy(1.2).fail("churn@2/b03/hoard", crash());
    lab.cell("larson@2/b00/glibc").interference =
        serde_json::from_str(r#"{"wall_ns": 10000000000, "foreign_cpu_share": 0.9}"#).unwrap();
    lab.run.preflights.before = Vec::new();
    assert_eq!(
        badges(&of(&lab), "doubt"),
        "A&#x2f;A differs in 2 of 2 cases, 1 of 24 parts disturbed, 1 failure"
    );
}

#[test]
fn the_matrix_shows_numbers_doubts_and_gaps_in_the_order_of_ranks() {
    let lab = with_floor_and_copy(1.0).fail("churn@2/b03/hoard", crash());
    let page = of(&lab);
    let matrix = between(&page, "<table class=\"matrix\"", "</table>");
    let head = between(matrix, "<thead>", "</thead>");
    assert_eq!(
        texts(head, "<th scope=\"col\""),
        ["case", "rpmalloc", "glibc", "hoard"]
    );
    let cells = texts(between(matrix, "<tbody>", "</tbody>"), "<td");
    assert_eq!([cells[1], cells[4], cells[5]], ["1", "1", "fail"]);
    assert!(cells[0].starts_with("0.30"), "{cells:?}");
    assert!(cells[2].starts_with('~'), "{cells:?}");
    assert!(matrix.contains("SIGSEGV in phase run"));
    assert!(matrix.contains("<td class=\"faster\" style=\"--heat:86%\""));
    // Equal heaps everywhere: the other matrix has numbers, too.
    let heaps = between(&page, "<section id=\"heaps\"", "</section>");
    assert!(heaps.contains(">1.00</td>"), "{heaps}");
    let withheld = of(&with_floor_and_copy(1.2));
    assert!(withheld.contains("<td class=\"withheld\""));
}

#[test]
fn bars_split_the_time_of_an_operation() {
    let page = of(&with_floor_and_copy(1.0));
    let parts = between(&page, "<section id=\"parts\"", "</section>");
    assert_eq!(parts.matches("<figure data-workload").count(), 2);
    let first = between(parts, "<tbody>", "</tr>");
    assert!(first.contains("</span>rpmalloc</th>"), "{first}");
    let widths: Vec<f64> = first
        .split("style=\"width:")
        .skip(1)
        .filter_map(|rest| rest.split('%').next()?.parse().ok())
        .collect();
    let sum: f64 = widths.iter().sum();
    assert!(
        widths.len() == 3 && (28.0..32.0).contains(&sum),
        "{widths:?}"
    );
    assert!(!of(&lab()).contains("id=\"parts\""), "no floor, no parts");
}

#[test]
fn the_script_is_packed_whole() {
    let packed = super::PLOTTING;
    let script = unpacked(packed);
    assert!(script.contains("plotly.js v") && script.trim_end().ends_with("));"));
    assert!(packed.len() < script.len() / 2, "{}", packed.len());
}

#[test]
fn what_cannot_say_anything_is_left_out() {
    let threads = |most: u32| {
        let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 0);
        let case = lab.run.plan.cases[0].clone();
        let of = |threads| crate::plan::Case {
            threads,
            ..case.clone()
        };
        lab.run.plan.cases = (1..=most).map(of).collect();
        lab.run.plan.blocks = 6;
        ids(&super::tests::of(&lab.fill(|_, _, _| 20.0)))
    };
    assert!(!threads(2).contains(&"scaling".into()));
    assert!(threads(3).contains(&"scaling".into()));
}

#[test]
fn the_next_steps_are_commands_that_a_shell_takes() {
    let lab =
        FakeRun::new(&["glibc", "my malloc"], &["larson", "churn"], 12).fill(|_, name, block| {
            match name {
                "my malloc" if block % 2 == 0 => 15.0,
                "my malloc" => 26.0,
                _ => 20.0,
            }
        });
    let mut lab = lab;
    lab.run.set = vec!["larson.chunks=100".into()];
    let page = of(&lab);
    let next = between(&page, "<section id=\"next\"", "</section>");
    for part in [
        "heapmark run quick --set &#x27;larson.chunks=100&#x27; --preset quick -a &#x27;glibc,my malloc&#x27; ",
        "--blocks 24 --seed 1",
        "heapmark try COMMAND",
        "heapmark export r&#x2f;1 --to csv",
    ] {
        assert!(next.contains(part), "{part}: {next}");
    }
    // Who takes turns, and for how long each process measures, is as it was.
    lab.run.plan.turn_lengths_ms.clear();
    assert!(of(&lab).contains("--preset quick --alone -a"));
    lab.run.plan.turn_lengths_ms = vec![20, 80];
    lab.run.plan.cases[0].turns = Some(Turns::Stop);
    lab.run.plan.cases[0].iterations = Iterations::Calibrated(Calibrated::Calibrated);
    assert!(of(&lab).contains("--target-ms 250 --turns &#x27;stop=20,80&#x27; -a"));
    lab.run.suite = "custom".into();
    assert!(of(&lab).contains("heapmark run -w &#x27;larson,churn&#x27; -t 2 --set"));
    lab.run.plan.cases[0].threads = 1;
    assert!(!of(&lab).contains("heapmark run -w"));
    lab.run.suite = "quick".into();
    lab.run.plan.huge_pages = HugePages::Never;
    assert!(!of(&lab).contains("heapmark run quick"));
    lab.run.plan.huge_pages = HugePages::Machine;
    lab.allocator("my malloc").tier = "user".into();
    assert!(!of(&lab).contains("heapmark run quick"));
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
        None,
        Vec::new(),
    );
    for markup in ["<script>alert", "<img", "<b>", "<i>", "\u{202e}"] {
        assert!(!page.contains(markup), "{markup}");
    }
    let page_data = told(&page);
    assert_eq!(
        page_data["entries"][1]["name"], "</script><script>alert(1)</script><b>&lt;",
        "a button shows it as it is"
    );
    let drawn = &page_data["charts"]["samples"][0]["plots"][0]["traces"][0]["drawn"]["name"];
    assert_eq!(
        drawn, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;b&gt;&amp;lt;",
        "a chart reads entities"
    );
}

#[test]
fn charts_have_every_row_with_numbers_and_tables_what_the_charts_show() {
    let page_data = told(&of(&lab().fail("churn@2/b03/hoard", crash())));
    let names: Vec<&str> = page_data["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["glibc", "rpmalloc", "hoard"]);
    let view = |id: &str, workload: &str| {
        let views = page_data["charts"][id].as_array().unwrap();
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
    let page = page(&[run("r/1", &one), run("r/2", &two)], None, Vec::new());
    let page_data = told(&page);
    assert_eq!(page_data["runs"], serde_json::json!(["1: r/1", "2: r/2"]));
    assert!(
        ids(&page).contains(&"compare".into()),
        "two runs are compared row by row"
    );
    assert!(page.contains("their blocks were not interleaved"));
    assert_eq!(page_data["entries"].as_array().unwrap().len(), 3);
    let traces = page_data["charts"]["ratio"]
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

    let case = &mut two.run.plan.cases[0];
    case.parameters.insert("chunks".into(), "100".into());
    let page = super::page(&[run("r/1", &one), run("r/2", &two)], None, Vec::new());
    let compared = between(&page, "<section id=\"compare\"", "</section>");
    assert!(compared.contains("chunks was not set and is 100: other work"));
    let page_data = super::tests::told(&page);
    let ratios = &page_data["charts"]["ratio"][0];
    assert_eq!(ratios["plots"].as_array().unwrap().len(), 2);
}

#[test]
fn checks_that_fail_and_what_hardening_costs_have_sections_of_their_own() {
    let mut lab = lab();
    assert!(!of(&lab).contains("class=\"fails"), "nothing is known");
    let mut checked = failing(&[("free-errno", "fail", "<b>22</b>"), ("oom", "crash", "")]);
    checked.hardening = hardened(&[("double-free", 3)]).hardening;
    lab.allocator("hoard").checked = Some(checked);
    lab.allocator("glibc").checked = Some(hardened(&[("double-free", 0)]));
    assert!(!of(&lab).contains("id=\"hardening\""), "none is hardened");
    lab.allocator("hoard").tier = "hardened".into();
    let page = of(&lab);
    let ranking = between(&page, "<table class=\"ranking\">", "</table>");
    let badges = texts(ranking, "<a class=\"fails doubt\" href=\"#checked\"");
    assert_eq!(badges, ["fails 2 checks"]);
    let section = between(&page, "<section id=\"checked\"", "</section>");
    let rows = section.matches("<th scope=\"row\">hoard</th>").count();
    assert_eq!(rows, 2, "{section}");
    for part in [
        "fail: &lt;b&gt;22&lt;&#x2f;b&gt;",
        "heapmark check -a hoard --only free-errno",
        "heapmark 0.1.0, 2026-01-02",
        "ISO C or POSIX",
    ] {
        assert!(section.contains(part), "{part}: {section}");
    }
    let view = &told(&page)["charts"]["hardening"][0];
    let plots = view["plots"].as_array().unwrap();
    let titles: Vec<&str> = plots
        .iter()
        .map(|plot| plot["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["time / glibc", "memory / glibc"]);
    let hoard = &plots[0]["traces"][1]["drawn"];
    assert_eq!(hoard["x"], json!([0.75]));
    assert!(hoard["error_y"]["array"][0].as_f64() > Some(0.0), "{hoard}");
    assert_eq!(view["data"]["rows"].as_array().unwrap().len(), 2);
    assert!(between(&page, "<section id=\"hardening\"", "</section>").contains("and no score"));
}

#[test]
fn sections_of_others_stand_above_all_and_before_the_tables() {
    let lab = lab();
    let other = |id: &str| {
        let table = Sheet::of_text("", &["a"], [vec!["<b>".into()]]);
        Section::of_tables(id, "Other", [table])
    };
    let page = page(&[run("r", &lab)], Some(other("link")), vec![other("more")]);
    let ids = ids(&page);
    let place = |id: &str| ids.iter().position(|section| section == id).unwrap();
    assert_eq!(place("link"), 0);
    assert!(place("samples") < place("more") && place("more") < place("tables"));
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
    let page_data = told(&page(
        &[PageRun {
            series: vec![series],
            ..run("r", &lab())
        }],
        None,
        Vec::new(),
    ));
    page_data["charts"]["memory"][0].clone()
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
fn memory_of_a_kernel_is_drawn_along_what_was_allocated_between_the_lines_of_its_table() {
    let mut lab = lab().following_memory(|_| Some((8, 16)));
    for record in &mut lab.records {
        // As in `pin`, where the blocks that are live follow from the allocator.
        let no_reuse = if record.allocator == "glibc" {
            2.0
        } else {
            8.0
        };
        if let Some(measured) = &mut record.measurement {
            measured.figures.insert("no_reuse_ratio".into(), no_reuse);
            measured.figures.insert("bound_ratio".into(), 4.5);
        }
    }
    // 10 MiB are live at most; 5 MiB were there before the first operation.
    let point = |(allocated, live, rss): (u64, u64, u64)| Point {
        allocated_bytes: Some(allocated << 20),
        requested_live_bytes: Some(live << 20),
        rss_bytes: rss << 20,
        ..point(0)
    };
    // Before and after frees, twice.
    let points = [(10, 10, 15), (10, 1, 10), (20, 10, 35), (20, 1, 25)];
    let series = |allocator: &str| {
        let of_allocator =
            |record: &&Record| record.allocator == allocator && record.purpose == Purpose::Memory;
        let record = lab.records.iter().find(of_allocator).unwrap();
        Series {
            cell: record.cell.clone(),
            workload: record.workload.to_string(),
            threads: record.threads,
            allocator: allocator.into(),
            points: points.map(point).into(),
        }
    };
    let page_run = PageRun {
        series: ["glibc", "hoard"].map(series).into(),
        ..run("r", &lab)
    };
    let page_data = told(&page(&[page_run], None, Vec::new()));
    assert!(page_data["charts"]["memory"].is_null(), "it is drawn once");
    let plot = &page_data["charts"]["shapes"][0]["plots"][0];
    let drawn = |name: &str| {
        let mut traces = plot["traces"].as_array().unwrap().iter();
        let trace = traces.find(|trace| trace["drawn"]["name"] == name);
        let curve = &trace.unwrap_or_else(|| panic!("{name}: {plot:#}"))["drawn"];
        (curve["x"].clone(), curve["y"].clone())
    };
    let across = |ratio: f64| (json!([0.0, 20.0]), json!([ratio, ratio]));
    assert_eq!(drawn("1"), across(1.0));
    assert_eq!(drawn("bound: 4.50x"), across(4.5));
    assert_eq!(drawn("no reuse, glibc: 2.00x"), across(2.0));
    assert_eq!(drawn("no reuse, hoard: 8.00x"), across(8.0));
    let along = json!([10.0, 20.0, 20.0]);
    assert_eq!(drawn("live"), (along.clone(), json!([1.0, 1.0, 0.1])));
    assert_eq!(drawn("hoard"), (along, json!([1.0, 3.0, 2.0])));
    let title = &plot["layout"]["xaxis"]["title"]["text"];
    assert_eq!(*title, "MiB allocated so far");
}

#[test]
fn batches_are_drawn_in_a_chart_of_each_allocator_with_a_line_of_each_order() {
    let names = ["glibc", "hoard"];
    let orders = ["batch-order", "batch-order-lifo", "churn"];
    let mut lab = FakeRun::new(&names, &orders, 3).fill(|_, _, _| 10.0);
    let batched = |record: &&mut Record| record.workload != "churn";
    for record in lab.records.iter_mut().filter(batched) {
        let slower = if record.workload == "batch-order" {
            1.0
        } else {
            2.0
        };
        for (batch, pair_ns) in [("4096", 30.0), ("25", 10.0), ("400", 12.0)] {
            let name = format!("pair_ns_of_batch_{batch}");
            if let Some(measured) = record.measurement.as_mut() {
                measured.figures.insert(name, slower * pair_ns);
            }
        }
    }
    let page_data = told(&of(&lab));
    let views = page_data["charts"]["batches"].as_array().unwrap();
    let workloads: Vec<&Value> = views.iter().map(|view| &view["workload"]).collect();
    // All orders are there, whichever is selected.
    assert_eq!(workloads, ["batch-order", "batch-order-lifo"]);
    assert_eq!(views[0]["plots"], views[1]["plots"]);
    let plots = views[0]["plots"].as_array().unwrap();
    let titles: Vec<&Value> = plots.iter().map(|plot| &plot["title"]).collect();
    assert_eq!(titles, ["glibc, 2 threads", "hoard, 2 threads"]);
    for (entry, plot) in plots.iter().enumerate() {
        for (line, order) in orders[..2].iter().enumerate() {
            let trace = &plot["traces"][line];
            assert_eq!(trace["entry"], entry);
            assert_eq!(trace["line"], line);
            assert_eq!(trace["drawn"]["name"], *order);
            assert_eq!(trace["drawn"]["x"], json!([25, 400, 4096]));
            let slower = (line + 1) as f64;
            let times = [10.0, 12.0, 30.0].map(|pair_ns| slower * pair_ns);
            assert_eq!(trace["drawn"]["y"], json!(times));
        }
    }
}

#[test]
fn samples_are_hollow_where_they_were_disturbed() {
    let mut lab = lab();
    lab.cell("larson@2/b00/glibc").interference =
        serde_json::from_str(r#"{"wall_ns": 10000000000, "foreign_cpu_share": 0.9}"#).unwrap();
    let run = run("r", &lab);
    let legend = SeriesLegend::new(vec![LegendRun {
        run: &run,
        analysis: analyse(&lab.run, &lab.records),
    }]);
    let page_data: Value = serde_json::from_str(&data(
        &legend.entries,
        Vec::new(),
        &sections(&legend, None, Vec::new()),
    ))
    .unwrap();
    let traces = page_data["charts"]["samples"][0]["plots"][0]["traces"]
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

#[test]
fn latency_over_load_has_a_point_for_each_load_and_one_for_the_closed_loop() {
    let loads = [("open-loop-80", 0.8), ("open-loop-30", 0.3)];
    let names = loads.map(|(name, _)| name);
    let mut lab = FakeRun::new(&["glibc", "hoard"], &names, 3).fill(|_, _, _| 20.0);
    for record in &mut lab.records {
        let (_, load) = loads
            .iter()
            .find(|(name, _)| record.workload == *name)
            .unwrap();
        if let Some(measurement) = &mut record.measurement {
            let figures = [
                ("open_load_share", *load),
                ("open_p99_ns", 1e6 * load),
                ("closed_p99_ns", 700.0),
            ];
            let figures = figures.map(|(name, value)| (name.to_owned(), value));
            measurement.figures.extend(figures);
        }
    }
    let page = of(&lab);
    assert!(ids(&page).contains(&"load".to_owned()), "{:?}", ids(&page));
    let page_data = told(&page);
    let plots = page_data["charts"]["load"][0]["plots"].as_array().unwrap();
    let titles: Vec<&str> = plots
        .iter()
        .map(|plot| plot["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles,
        [
            "median of requests, 2 threads",
            "99 % of requests, 2 threads",
            "99.9 % of requests, 2 threads"
        ]
    );
    let traces = plots[1]["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 4, "a point and a line of each allocator");
    let drawn = |trace: &Value, axis: &str| trace["drawn"][axis].clone();
    assert_eq!(drawn(&traces[0], "x"), json!(["closed loop"]));
    assert_eq!(drawn(&traces[0], "y"), json!([700.0]));
    assert_eq!(drawn(&traces[1], "x"), json!(["30 %", "80 %"]));
    assert_eq!(drawn(&traces[1], "y"), json!([300_000.0, 800_000.0]));
    // What was not measured has no point.
    assert_eq!(plots[2]["traces"][1]["drawn"]["y"], json!([]));
}
