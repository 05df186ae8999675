//! `--thp`: the rule reaches every process and is stored with the run, each allocator is compared with itself without huge pages, and runs
//! under two rules are not compared.

use crate::support::{Place, SMALL, of_purpose, samples, word, words};
use std::collections::BTreeSet;

/// What the processes of a tried command see of the rule.
fn seen_under(place: &Place, rule: &str) -> BTreeSet<String> {
    let seen = place.at(&format!("seen-{rule}"));
    let command = format!("grep THP_enabled /proc/self/status >> {}", seen.display());
    let run = format!("under-{rule}");
    let flags = [
        "try", "--thp", rule, "-a", "glibc", "--blocks", "1", "-o", &run, "--", "sh", "-c",
        &command,
    ];
    let end = place.run(&flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let rule = "transparent huge pages: never, by --thp";
    assert!(end.says(rule), "{}", end.stdout);
    let seen = std::fs::read_to_string(seen).unwrap();
    seen.lines().map(str::to_owned).collect()
}

#[test]
fn a_rule_for_huge_pages_reaches_the_processes_of_a_tried_command() {
    let place = Place::new();
    let here = std::fs::read_to_string("/proc/self/status").unwrap();
    let here = here.lines().find(|line| line.starts_with("THP_enabled"));
    let (none, here) = ("THP_enabled:\t0".to_owned(), here.unwrap().to_owned());
    assert_eq!(seen_under(&place, "never"), [none.clone()].into());
    assert_eq!(seen_under(&place, "machine"), [none, here].into());

    let plain = [
        "try", "-a", "glibc", "--blocks", "1", "-o", "plain", "--", "true",
    ];
    assert_eq!(place.run(&plain).code, Some(0));
    let end = place.run(&["compare", "under-never", "plain"]);
    assert_eq!(end.code, Some(2), "{}", end.stdout);
    assert!(
        end.stderr
            .contains("different rules for transparent huge pages"),
        "{}",
        end.stderr
    );
    let stored = std::fs::read_to_string(place.at("under-never/run.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["plan"]["huge_pages"], "never");
}

#[test]
fn kernels_take_the_rule_too_and_one_that_this_kernel_lacks_is_refused() {
    let place = Place::new();
    let run = |rule: &str| {
        let flags = [
            "run",
            "-w",
            "speed-malloc-free",
            "-a",
            "glibc",
            "--blocks",
            "1",
            "--thp",
            rule,
            "-o",
            rule,
        ];
        place.run(&flags)
    };
    let end = run("never");
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // Kernels before 6.18 know no exception for what a program asks for.
    let end = run("advised");
    match end.code {
        Some(0) => {
            let all = place.run(&["show", "--full", "advised"]).stdout;
            assert!(
                words(&all).contains(", if a program asks for them,"),
                "{all}"
            );
        }
        code => {
            assert_eq!(code, Some(2), "{}", end.stderr);
            assert!(
                end.stderr.contains("take never, or machine"),
                "{}",
                end.stderr
            );
        }
    }
}

#[test]
fn what_asks_for_huge_pages_has_them_beside_itself_without() {
    let place = Place::new();
    let allocators = format!("glibc,huge={}", place.compile("huge", &[]).display());
    let small = ["--set", "ladder.volume=4194304"];
    let more = [&small[..], &["--thp", "machine"]].concat();
    let end = place.run_block("run", "ladder", &allocators, &more);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let huge = |workload: &str| {
        let mut sampled = of_purpose(&records, "memory").into_iter();
        let own = sampled.find(|record| {
            [word(record, "workload"), word(record, "allocator")] == [workload, "huge"]
        });
        own.unwrap()["memory"]["most_anon_huge_bytes"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(huge("ladder"), 0);
    let rule = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let has_any = rule.is_ok_and(|rule| !rule.contains("[never]"));
    assert_eq!(huge("ladder-thp-machine") >= 4 << 20, has_any);
    assert_eq!(end.says("huge pages:"), has_any, "{}", end.stdout);
}

#[test]
fn each_allocator_is_timed_beside_itself_without_huge_pages() {
    let place = Place::new();
    let flags = [
        "run", "--thp", "machine", "-a", "glibc", "--blocks", "2", "-o", "run",
    ];
    let end = place.run(&[&flags, &SMALL[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for words in [
        "churn-thp-machine, 1 thread, huge pages: machine",
        "machine / never",
    ] {
        assert!(end.says(words), "{words}: {}", end.stdout);
    }
    let csv = place.run(&["export", "run", "--to", "csv"]).stdout;
    let ratios = csv
        .lines()
        .filter(|line| line.contains(",huge_pages_ratio,"));
    let ratios: Vec<&str> = ratios.collect();
    assert!(
        ratios.len() == 1 && ratios[0].starts_with("churn-thp-machine,1,glibc,"),
        "{csv}"
    );
    for (flags, words) in [
        (&["--age", "50"][..], "one at a time"),
        (&["--counter", "callgrind"], "which no page changes"),
    ] {
        let end = place.run(
            &[
                &["run", "-a", "glibc", "-w", "churn", "--thp", "machine"],
                flags,
            ]
            .concat(),
        );
        assert_eq!(end.code, Some(2), "{flags:?}: {}", end.stderr);
        assert!(end.stderr.contains(words), "{flags:?}: {}", end.stderr);
    }
}
