//! What `heapmark check` found before a run stands beside its numbers.

use super::*;
use crate::store::{Checked, Detection};
use serde_json::json;

/// Findings as a run has them: check, verdict, what was found.
pub fn failing(findings: &[(&str, &str, &str)]) -> Checked {
    let findings = findings.iter().map(|(check, verdict, found)| {
        let finding = json!({"check": check, "standing": "std", "verdict": verdict, "found": found,
                             "heapmark": "0.1.0", "at": "2026-01-02T03:04:05Z"});
        serde_json::from_value(finding).unwrap()
    });
    Checked {
        findings: findings.collect(),
        hardening: Vec::new(),
    }
}

/// Misuses of which so many were detected in 4 processes each.
pub fn hardened(misuses: &[(&str, u32)]) -> Checked {
    let hardening = misuses.iter().map(|(check, detected)| Detection {
        check: check.to_string(),
        detected: *detected,
        of: 4,
        heapmark: "0.1.0".into(),
        at: "2026-01-02T03:04:05Z".into(),
    });
    Checked {
        findings: Vec::new(),
        hardening: hardening.collect(),
    }
}

/// Without the breaks of lines.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn checks_that_fail_stand_in_the_row_below_the_tables_and_in_the_verdict() {
    let mut lab = rich();
    let whole = rich();
    assert!(
        !texts(&whole).concat().contains("check -a"),
        "none is known"
    );
    let long = format!("\x1b[2J{}", "a block of 16 bytes lies at 8; ".repeat(5));
    lab.allocator("rpmalloc").checked = Some(failing(&[
        ("align-natural", "fail", &long),
        ("fork-signal", "hang", "not ended after 10 s"),
        ("too-big", "crash", ""),
        ("calloc-zero", "fail", ""),
    ]));
    // Neither the floor nor a copy is said to fail.
    lab.allocator("null").checked = Some(failing(&[("free-null", "fail", "")]));
    let said = in_one_line(&on(WIDE, &lab));
    assert!(said.contains("partial, fails 4 checks"), "{said}");
    let cut = "rpmalloc fails 4 checks: align-natural ([2Ja block of 16 bytes lies at 8; a block of 16 bytes lies at 8;";
    assert!(said.contains(cut), "{said}");
    let rest = " ...), fork-signal (hang) and 2 more; heapmark check -a rpmalloc (2026-01-02).";
    assert!(said.contains(rest), "{said}");
    assert!(
        said.contains("But rpmalloc is partial and fails 4 checks."),
        "{said}"
    );
    assert!(!said.contains("null fails"), "{said}");
    let markdown = exported(Format::Markdown, &lab);
    assert!(
        markdown.contains("\n- rpmalloc fails 4 checks: align-natural ("),
        "{markdown}"
    );
    let document: serde_json::Value = serde_json::from_str(&exported(Format::Json, &lab)).unwrap();
    let checked = &document["run"]["allocators"][1]["checked"];
    assert_eq!(checked["findings"][1]["verdict"], "hang");
}

#[test]
fn the_first_screen_names_those_that_fail() {
    let mut lab = FakeRun::new(&["glibc", "hoard", "jemalloc"], &["larson", "xmalloc"], 10)
        .fill(|_, name, _| if name == "hoard" { 10.0 } else { 20.0 });
    for name in ["hoard", "jemalloc"] {
        lab.allocator(name).checked = Some(failing(&[("free-errno", "fail", "errno is 22")]));
    }
    let text = first(WIDE, &lab.run, &analyse(&lab.run, &lab.records));
    assert!(text.contains("But hoard fails 1 check."), "{text}");
    assert!(
        text.contains("; checks that failed: hoard and jemalloc."),
        "{text}"
    );
}

#[test]
fn what_hardening_costs_is_a_table_of_what_was_tried_on_all_alike() {
    let mut lab = FakeRun::new(&["glibc", "hoard", "other"], &["larson"], 10)
        .fill(|_, name, _| if name == "hoard" { 30.0 } else { 20.0 });
    let heading = "What hardening costs";
    let of = |lab: &FakeRun| exported(Format::Markdown, lab);
    assert!(!of(&lab).contains(heading));
    lab.allocator("hoard").tier = "hardened".into();
    lab.allocator("hoard").checked = Some(hardened(&[("double-free", 4), ("uaf-write", 2)]));
    assert!(!of(&lab).contains(heading), "one alone is no comparison");
    lab.allocator("glibc").checked = Some(hardened(&[("double-free", 0), ("uaf-write", 1)]));
    let text = of(&lab);
    for line in [
        "## What hardening costs, 2 misuses\n",
        "| glibc | 12 % | 1.000 | 1.00x |\n",
        "| hoard | 75 % | 1.500 \\[1.500, 1.500\\] | 1.00x |\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("| other | 0"), "it was not checked: {text}");
    // Of a misuse that was tried more often on one of them, another share would be known.
    let mut more = hardened(&[("double-free", 0), ("uaf-write", 1)]);
    more.hardening[1].of = 400;
    lab.allocator("glibc").checked = Some(more);
    let text = of(&lab);
    assert!(
        text.contains("## What hardening costs, 1 misuse\n"),
        "{text}"
    );
    assert!(text.contains("| hoard | 100 % |"), "{text}");
    lab.allocator("glibc").checked = Some(hardened(&[("safe-link", 4)]));
    assert!(!of(&lab).contains(heading), "nothing was tried on both");
}
