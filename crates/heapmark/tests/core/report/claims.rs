//! `heapmark claims` on small real runs: every claim has a verdict and a reason, and what cannot be used is refused.

use crate::support::{Place, word};
use serde_json::Value;
use std::fs;

/// Two workloads of two documents, with and without enough processes for a verdict.
fn run(place: &Place, name: &str, flags: &[&str]) {
    let common = [
        "run",
        "-a",
        "glibc",
        "-w",
        "churn,zalloc,memory",
        "-t",
        "1",
        "--set",
        "churn.objects=5000",
        "--set",
        "memory.objects=2000",
        "--set",
        "memory.round=2000",
        "--no-aa-copy",
        "--no-floor",
        "--no-repeat",
        "-o",
        name,
    ];
    // At the documents' own size nothing is calibrated.
    let target: &[&str] = if flags.contains(&"paper") {
        &[]
    } else {
        &["--target-ms", "2"]
    };
    let end = place.run(&[&common[..], target, flags].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn every_claim_has_a_verdict_and_a_reason() {
    let place = Place::new();
    run(&place, "run", &["--blocks", "5"]);
    let table = place.run(&["claims", "run"]);
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    let ids = ["BT-", "FC-", "LL-", "MM-", "RP-", "ZA-"];
    let rows = |text: &str| {
        text.lines()
            .filter(|line| ids.iter().any(|id| line.contains(&format!("| {id}"))))
            .count()
    };
    assert!(
        table.says("Of 48 claims") && !table.says("is in no run"),
        "{}",
        table.stdout
    );
    assert_eq!(
        rows(&place.run(&["claims", "run", "--to", "md"]).stdout),
        48 + 15
    );

    let judged = place.run(&["claims", "run", "--to", "json"]);
    let judged: Vec<Value> = serde_json::from_str(&judged.stdout).unwrap();
    assert_eq!(judged.len(), 48 + 15);
    for one in &judged {
        assert!(
            !word(one, "reason").is_empty()
                && one["parts"]
                    .as_array()
                    .is_some_and(|parts| !parts.is_empty())
        );
        assert!(
            ["holds", "does-not-hold", "unclear", "not-testable"].contains(&word(one, "verdict")),
            "{one}"
        );
    }
    let of = |id: &str| judged.iter().find(|one| word(one, "id") == id).unwrap();
    // glibc gives the thread that allocates an arena of its own, away from the sbrk area: what grows there is the main thread's,
    // heapmark's own checks after the run, of which no series tells.
    let heap = of("LL-11")["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| word(part, "place").starts_with("memory@2"));
    let number = &heap.unwrap()["said"][0]["number"];
    assert_eq!(
        (word(number, "row"), number["samples"].as_u64()),
        ("glibc", Some(5))
    );
    assert!(number["max"].as_f64().unwrap() < 0.05, "{number}");
    let tables: Vec<_> = fs::read_dir(place.at("run/series"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(tables.len(), 5);
    for table in tables {
        let mut points = csv::Reader::from_path(&table).unwrap();
        let phase = points
            .headers()
            .unwrap()
            .iter()
            .position(|head| head == "phase")
            .unwrap();
        let phases: Vec<String> = points
            .records()
            .map(|point| point.unwrap()[phase].to_owned())
            .collect();
        assert!(
            phases
                .iter()
                .all(|word| ["setup", "run", "after"].contains(&word.as_str())),
            "{phases:?}"
        );
        assert_eq!(
            phases.last().unwrap(),
            "after",
            "what the process holds once it is through"
        );
    }
    assert!(word(of("LL-11"), "reason").contains("objects = 2000 (the document: 100000)"));
    assert!(word(of("BT-1"), "reason").contains("binary-trees is in no run"));

    let listed: Vec<Value> =
        serde_json::from_str(&place.run(&["list", "claims", "--format", "json"]).stdout).unwrap();
    // Those about hardening are judged by results of heapmark check.
    let of_runs = listed.iter().filter(|one| !one["workloads"].is_null());
    assert_eq!(
        of_runs.map(|one| word(one, "id")).collect::<Vec<_>>(),
        judged.iter().map(|one| word(one, "id")).collect::<Vec<_>>()
    );

    let one = place.run(&[
        "claims",
        "run",
        "--document",
        "za",
        "--to",
        "md",
        "-o",
        "za.md",
    ]);
    assert_eq!((one.code, one.stdout.as_str()), (Some(0), ""));
    let text = fs::read_to_string(place.at("za.md")).unwrap();
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("| ZA-"))
            .count(),
        7
    );
}

#[test]
fn too_few_processes_say_so() {
    let place = Place::new();
    run(&place, "run", &["--blocks", "2"]);
    let judged = place.run(&["claims", "run", "--document", "ll", "--to", "json"]);
    let judged: Vec<Value> = serde_json::from_str(&judged.stdout).unwrap();
    let unclear = judged
        .iter()
        .find(|one| word(one, "id") == "LL-13")
        .unwrap();
    assert!(word(unclear, "verdict") != "holds" && word(unclear, "verdict") != "does-not-hold");
    assert!(
        unclear["parts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|part| part["verdict"] == "unclear"),
        "{unclear}"
    );
}

#[test]
fn the_page_has_every_published_table_and_every_claim() {
    let place = Place::new();
    run(&place, "run", &["--blocks", "1"]);
    let end = place.run(&["claims", "run", "--reproduction", "-o", "page.md"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let page = fs::read_to_string(place.at("page.md")).unwrap();
    let runs = page.lines().filter(|line| line.starts_with("  - Run of "));
    let runs = Vec::from_iter(runs);
    assert_eq!(runs.len(), 1, "{page}");
    assert!(runs[0].contains(", 1 block ("), "{}", runs[0]);
    assert!(runs[0].contains(" disturbed"), "{}", runs[0]);
    assert_eq!(
        page.lines()
            .filter(|line| line.contains("(ratios to "))
            .count(),
        11
    );
    for (document, claims) in [("BT", 13), ("MM", 9), ("RP", 6), ("ZA", 7), ("LL", 13)] {
        for number in 1..=claims {
            let row = format!("\n| {document}-{number} | ");
            // With one reason in front, and with every number in its document's chapter.
            assert_eq!(page.matches(&row).count(), 2, "{document}-{number}");
        }
    }
    assert!(page.contains("| **not testable here** | "), "{page}");
    assert!(!page.contains("\\*\\*"), "markup is escaped: {page}");
    // Theirs and ours, each with its ratio to the row of the heading.
    assert!(
        page.contains("| jemalloc, published | 0.00929433 (1.24) |"),
        "{page}"
    );
    let ours = page
        .lines()
        .find(|line| line.starts_with("| glibc malloc, ours (glibc) |"))
        .unwrap();
    assert!(ours.contains("(1.00)"), "{ours}");
}

#[test]
fn what_cannot_be_used_is_refused() {
    let place = Place::new();
    run(&place, "quick", &["--blocks", "1"]);
    run(&place, "paper", &["--blocks", "1", "--preset", "paper"]);
    let mixed = place.run(&["claims", "quick", "paper"]);
    assert_eq!(mixed.code, Some(2));
    assert!(
        mixed
            .stderr
            .contains("quick has preset quick and paper has paper"),
        "{}",
        mixed.stderr
    );
    let unknown = place.run(&["claims", "quick", "--document", "xx"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown
            .stderr
            .contains("there are bt, field, ll, mm, rp, za"),
        "{}",
        unknown.stderr
    );
    assert_eq!(place.run(&["claims", "nowhere"]).code, Some(2));

    // A claim about an unknown workload would never be testable.
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../../claims/za.toml");
    let ours = fs::read_to_string(ours).unwrap();
    let folder = place.at("config/heapmark/claims");
    fs::create_dir_all(&folder).unwrap();
    for (old, new, says) in [
        (
            "workloads = [\"zalloc-optane\"]",
            "workloads = [\"zaloc\"]",
            "no workload `zaloc`",
        ),
        ("kind = \"below\"", "kind = \"belwo\"", "belwo: unknown"),
        (
            "{ ours = [\"glibc\"], workload = \"zalloc\" }",
            "{ ours = [\"glibc\"], workload = \"zalloc\", as-then = \"glibc-2.28\" }",
            "no allocator is called `glibc-2.28`",
        ),
        (
            "0.00748696, ",
            "",
            "`glibc malloc` has 5 values for 6 columns",
        ),
    ] {
        let doctored = ours.replacen(old, new, 1);
        let line = doctored.lines().position(|line| !ours.contains(line));
        fs::write(folder.join("za.toml"), &doctored).unwrap();
        let end = place.run(&["claims", "quick"]);
        assert_eq!(end.code, Some(1), "{}", end.stderr);
        let place = format!("(line {})", line.unwrap() + 1);
        assert!(
            end.stderr.contains(says)
                && end.stderr.contains("za.toml: ")
                && end.stderr.contains(&place),
            "{place} {}",
            end.stderr
        );
    }

    // A series of which no point is left is as good as gone.
    fs::remove_file(folder.join("za.toml")).unwrap();
    let series = place.at("quick/series/memory@2_b00_glibc.csv");
    fs::write(&series, "time_ns,phase\n1\n").unwrap();
    let torn = place.run(&["claims", "quick"]);
    assert_eq!(torn.code, Some(0), "{}", torn.stderr);
    fs::remove_file(series).unwrap();
    assert_eq!(torn.stdout, place.run(&["claims", "quick"]).stdout);
}
