//! Interference in every form of the report.

use super::*;

/// Five of twelve processes of `greedy` waited for memory.
fn stalled() -> FakeRun {
    let mut lab = FakeRun::new(&["glibc", "greedy"], &["larson"], 12).fill(|_, _, _| 20.0);
    for block in 0..5 {
        lab.cell(&format!("larson@2/b{block:02}/greedy"))
            .interference = serde_json::from_str(
            r#"{"wall_ns": 10000000000, "foreign_cpu_share": 0.0, "memory_stall_share": 0.3}"#,
        )
        .unwrap();
    }
    lab
}

#[test]
fn a_row_says_in_how_many_of_its_processes_it_was_held_up() {
    let lab = stalled();
    let analysis = analyse(&lab.run, &lab.records);
    let page = page(
        &[PageRun {
            name: "r".into(),
            head: &lab.run,
            records: &lab.records,
            series: Vec::new(),
        }],
        &[],
    );
    let terminal = on(WIDE, &lab);
    for (form, text) in [
        ("terminal", &terminal),
        ("markdown", &exported(Format::Markdown, &lab)),
        ("page", &page),
    ] {
        assert_eq!(
            text.matches("stalled in 5 of 12").count(),
            1,
            "{form}: {text}"
        );
        assert!(
            text.contains("stalled: processes with stalls (waiting for memory)"),
            "{form}: {text}"
        );
    }
    assert!(
        terminal.contains(
            "Interference: 5 processes stalled by waiting for memory (5) and kept: that may be"
        ),
        "{terminal}"
    );
    let rows = exported(Format::Rows, &lab);
    let lines: Vec<Vec<&str>> = rows.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|title| *title == name).unwrap();
    let told = |line: &[&str]| {
        [
            line[column("stalled_samples")].to_owned(),
            line[column("stalled_by")].to_owned(),
        ]
    };
    assert_eq!(
        [told(&lines[1]), told(&lines[2])],
        [
            ["0".into(), String::new()],
            ["5".into(), "waiting for memory".into()]
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&exported(Format::Json, &lab)).unwrap();
    let rows = &json["analysis"]["cases"][0]["rows"];
    assert_eq!(
        rows[1]["state"]["stalled"]["samples"], 5,
        "{}",
        rows[1]["state"]
    );
    assert_eq!(analysis.interference.stalled, 5);
}
