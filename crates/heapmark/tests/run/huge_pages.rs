//! `--thp`: the rule reaches every process, is stored with the run, and runs under two rules are not compared.

use crate::support::Place;

/// What a tried command sees of the rule.
fn seen_under(place: &Place, rule: &str) -> String {
    let seen = place.at(&format!("seen-{rule}"));
    let command = format!("grep THP_enabled /proc/self/status > {}", seen.display());
    let run = format!("under-{rule}");
    let flags = [
        "try", "--thp", rule, "-a", "glibc", "--blocks", "1", "-o", &run, "--", "sh", "-c",
        &command,
    ];
    let end = place.run(&flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let says_so = end
        .stdout
        .contains("transparent huge pages: never, by --thp");
    assert_eq!(says_so, rule == "never", "{}", end.stdout);
    std::fs::read_to_string(seen).unwrap()
}

#[test]
fn a_rule_for_huge_pages_reaches_the_processes_of_a_tried_command() {
    let place = Place::new();
    let here = std::fs::read_to_string("/proc/self/status").unwrap();
    let here = here.lines().find(|line| line.starts_with("THP_enabled"));
    assert_eq!(seen_under(&place, "never").trim(), "THP_enabled:\t0");
    assert_eq!(seen_under(&place, "machine").trim(), here.unwrap());

    let end = place.run(&["compare", "under-never", "under-machine"]);
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
        Some(0) => assert!(
            end.stdout.contains("where a program asks for them"),
            "{}",
            end.stdout
        ),
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
