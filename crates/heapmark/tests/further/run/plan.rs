//! From flags to a plan, and words for flags that make no sense.

use crate::support::{End, Place, SMALL, of_purpose, plan, samples, word};
use std::process::Stdio;

fn dry_run(place: &Place, flags: &[&str]) -> String {
    let end = place.run(
        &[
            &["run", "--dry-run", "--cells", "-a", "glibc,null"],
            &SMALL[..],
            flags,
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    end.stdout
}

#[test]
fn a_seed_decides_the_whole_plan() {
    let place = Place::new();
    let first = dry_run(&place, &["--seed", "7", "--blocks", "6"]);
    assert_eq!(first, dry_run(&place, &["--seed", "7", "--blocks", "6"]));
    let second = dry_run(&place, &["--seed", "8", "--blocks", "6"]);
    let cells = |text: &str| {
        let ids = text
            .lines()
            .filter_map(|line| line.split_once("  seed "))
            .map(|(id, _)| id.to_string());
        ids.collect::<Vec<String>>()
    };
    assert_eq!(cells(&first).len(), 12, "{first}");
    assert_ne!(cells(&first), cells(&second), "the same order");
    let sorted = |text: &str| {
        let mut ids = cells(text);
        ids.sort();
        ids
    };
    assert_eq!(sorted(&first), sorted(&second), "another set of cells");
}

#[test]
fn a_dry_run_measures_and_writes_nothing() {
    let place = Place::new();
    dry_run(&place, &["-o", "run"]);
    assert!(!place.at("run").exists() && !place.at("heapmark-results").exists());
}

#[test]
fn a_run_is_the_plan_that_was_printed() {
    let place = Place::new();
    let flags = ["--seed", "7", "--blocks", "3"];
    let printed = dry_run(&place, &flags);
    let end = place.run_small("run", &[&["-a", "glibc,null"], &flags[..]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let records = samples(&place.at("run"));
    let ran: Vec<String> = of_purpose(&records, "sample")
        .iter()
        .map(|record| {
            format!(
                "{}  seed {:016x}",
                word(record, "cell"),
                record["seed"].as_u64().unwrap()
            )
        })
        .collect();
    let planned: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("  seed "))
        .collect();
    assert_eq!(planned.len(), ran.len());
    for (planned, ran) in planned.iter().zip(&ran) {
        assert!(planned.starts_with(ran.as_str()), "{planned} is not {ran}");
    }
    assert_eq!(plan(&place.at("run")).seed, 7);
}

#[test]
fn one_cell_runs_alone_and_shows_what_the_guest_said() {
    let place = Place::new();
    let flags = [
        "run",
        "-a",
        "glibc,null",
        "--blocks",
        "2",
        "--no-repeat",
        "--cell",
        "churn@1/b01/glibc",
    ];
    let end = place.run(&[&flags[..], &SMALL[..11]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let lines: Vec<&str> = end.stdout.lines().collect();
    for key in [
        "object=",
        "owner=malloc ",
        "cold=",
        "iteration=",
        "done=",
        "expected=",
        "peak_rss_bytes=",
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(key)),
            "no {key} in\n{}",
            end.stdout
        );
    }
    assert_eq!(lines.last(), Some(&"outcome: ok"));
    assert!(!place.at("heapmark-results").exists(), "stored something");
}

#[test]
fn a_failing_cell_that_runs_alone_says_how_it_ended() {
    let place = Place::new();
    let word = format!("crasher={}", place.fake("crasher").display());
    let flags = [
        "run",
        "-a",
        &word,
        "--blocks",
        "1",
        "--cell",
        "churn@1/check/crasher",
    ];
    let end = place.run(&[&flags[..], &SMALL[..11]].concat());
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert_eq!(
        end.stdout.lines().last(),
        Some("outcome: crash: SIGSEGV in phase run")
    );
}

#[test]
fn a_cell_of_a_stored_run_runs_again_and_leaves_it_as_it_is() {
    let place = Place::new();
    assert_eq!(
        place
            .run_small("run", &["-a", "glibc", "--blocks", "2"])
            .code,
        Some(0)
    );
    let before = std::fs::read(place.at("run/samples.jsonl")).unwrap();
    let end = place.run(&["run", "--resume", "run", "--cell", "churn@1/b00/glibc"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stdout.ends_with("outcome: ok\n"), "{}", end.stdout);
    assert_eq!(
        std::fs::read(place.at("run/samples.jsonl")).unwrap(),
        before
    );
}

/// Refused as usage, in one message that says these words.
fn is_refused(end: &End, says: &[&str]) {
    end.is_one_line(2);
    assert_eq!(end.stdout, "");
    assert!(end.stderr.starts_with("heapmark: "), "{}", end.stderr);
    for words in says {
        assert!(end.stderr.contains(words), "no `{words}` in {}", end.stderr);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_mend() {
    let place = Place::new();
    let refused = |flags: &[&str], says: &[&str]| {
        is_refused(
            &place.run(&[&["run", "-a", "glibc", "--blocks", "1", "-o", "run"], flags].concat()),
            says,
        );
        assert!(!place.at("run").exists(), "{flags:?} left a run directory");
    };
    refused(
        &["quik"],
        &[
            "no suite `quik`",
            "did you mean `quick`?",
            "heapmark list suites",
        ],
    );
    refused(
        &["-a", "jemaloc"],
        &[
            "no allocator `jemaloc`",
            "did you mean `jemalloc`?",
            "heapmark list allocators",
        ],
    );
    refused(
        &["-a", "zz*"],
        &[
            "-a zz*: no allocator has such a name",
            "heapmark list allocators",
        ],
    );
    refused(
        &["--baseline", "glib"],
        &["no allocator `glib`", "did you mean `glibc`?"],
    );
    refused(
        &["-w", "chrun"],
        &[
            "no workload `chrun`",
            "did you mean `churn`?",
            "heapmark list workloads",
        ],
    );
    refused(&["-w", "["], &["no workload `[`"]);
    refused(
        &["-w", "churn", "--preset", "quik"],
        &["no preset `quik`", "it has paper, quick"],
    );
    for bad in ["0", "many", "-1", "5000"] {
        refused(
            &["-w", "churn", &format!("-t={bad}")],
            &["-t: ", &format!("`{bad}`"), "1 to 4096, or `all`"],
        );
    }
    refused(
        &["-w", "churn", "--set", "chrun.spots=4"],
        &["--set chrun.spots", "did you mean `churn`?"],
    );
    refused(
        &["-w", "churn", "--set", "churn.spot=4"],
        &["--set", "did you mean `spots`?"],
    );
    refused(
        &["-w", "churn", "--set", "churn.spots=four"],
        &["--set", "expected a whole number"],
    );
    refused(
        &["-w", "churn", "--set", "churn.sharing=all"],
        &["--set", "shared", "private"],
    );
    refused(
        &["-w", "churn", "--set", "churn.min-size=900"],
        &["min-size", "must not be above"],
    );
    refused(
        &["-w", "larson@2"],
        &["no workload `larson@2`", "-w larson -t 2"],
    );
    refused(
        &["-a", "jemaloc"],
        &["no allocator `jemaloc`", "did you mean `jemalloc`?"],
    );
    refused(
        &["-w", "own.trace"],
        &["no workload `own.trace`", "heapmark replay own.trace"],
    );
    refused(
        &["./ok.so"],
        &["no suite `./ok.so`", "heapmark run -a ./ok.so"],
    );
    refused(
        &["x.trace"],
        &["no suite `x.trace`", "heapmark replay x.trace"],
    );
    refused(&["churn"], &["no suite `churn`", "heapmark run -w churn"]);
    refused(
        &["-w", "same-thread", "--set", "larsen.chunks=3"],
        &["no workload of this run", "it has same-thread"],
    );
    let cell = [
        "run",
        "-a",
        "glibc",
        "--blocks",
        "1",
        "-w",
        "churn",
        "--cell",
        "churn@1/b9/glibc",
    ];
    is_refused(
        &place.run(&cell),
        &["no cell `churn@1/b9/glibc`", "--dry-run --cells"],
    );
}

#[test]
fn a_set_that_is_no_assignment_is_refused_with_an_example() {
    let place = Place::new();
    for bad in ["churn.spots", "spots=4", "=4", "churn.=4"] {
        let end = place.run(&["run", "-a", "glibc", "--set", bad]);
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(
            end.stderr.contains("expected WORKLOAD.PARAMETER=VALUE"),
            "{}",
            end.stderr
        );
    }
}

#[test]
fn what_is_missing_or_misspelt_is_refused_with_a_line_to_type() {
    let place = Place::new();
    for (words, says) in [
        (&["list"][..], "<WHAT> is missing, one of allocators, "),
        (&["export"], "--to <FORMAT> is missing, one of csv, "),
        (
            &["campaign", "plan"],
            "for example: heapmark campaign plan -o camp ",
        ),
        (&["try"], "for example: heapmark try python3 build.py"),
        (&["record"], "for example: heapmark record -o build.trace "),
        (&["try", "sh -c true"], "leave the quotes away"),
        (&["replay", "perl-hsh"], "did you mean `perl-hash`?"),
        (&["replay", "nowhere"], "heapmark list traces"),
    ] {
        let end = place.run(words);
        end.is_one_line(2);
        assert!(end.stderr.contains(says), "{}", end.stderr);
    }
    let noted = place.run(&[
        "try",
        "-a",
        "glibc",
        "--dry-run",
        "true",
        "--blocks",
        "2",
        "-a",
        "glibc",
    ]);
    assert_eq!(noted.code, Some(0), "{}", noted.stderr);
    assert!(
        noted.stderr.contains("belongs to it, also --blocks: "),
        "{}",
        noted.stderr
    );
    let meant = place.run(&[
        "try",
        "-a",
        "glibc",
        "--dry-run",
        "--",
        "true",
        "--blocks",
        "2",
    ]);
    assert!(!meant.stderr.contains("belongs to it"), "{}", meant.stderr);
}

#[test]
fn what_is_no_run_is_said_and_what_shows_it() {
    let place = Place::new();
    for (folder, file, told) in [
        ("checked", "check.json", "heapmark report checked"),
        ("many", "plan.json", "heapmark campaign status many"),
        ("tuned", "runs/1/run.json", "in tuned/runs/1"),
        ("other", "package.json", "a run directory holds run.json"),
    ] {
        let file = place.at(folder).join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}").unwrap();
        is_refused(&place.run(&["show", folder]), &["no run in", told]);
    }
    is_refused(&place.run(&["report", "tuned"]), &["in tuned/runs/1"]);
}

#[test]
fn the_first_page_of_help_has_few_flags_and_the_second_one_all() {
    let place = Place::new();
    let flags = |words: &[&str]| {
        let text = place.run(words).stdout;
        let is_flag = |line: &&str| line.trim_start().starts_with('-');
        text.lines().filter(is_flag).count()
    };
    for command in ["run", "try", "replay"] {
        let [first, all] = ["-h", "--help"].map(|page| flags(&[command, page]));
        assert!(first <= 25 && all > 35, "{command}: {first} of {all}");
    }
}

#[test]
fn a_run_that_is_not_there_cannot_go_on() {
    let place = Place::new();
    is_refused(
        &place.run(&["run", "--resume", "nowhere"]),
        &["no run in nowhere", "run.json"],
    );
    is_refused(
        &place.run(&["run", "--resume", "latest"]),
        &["name a run directory"],
    );
    is_refused(
        &place.run(&["export", "nowhere", "--to", "md"]),
        &["no run in nowhere"],
    );
}

#[test]
fn the_latest_run_is_the_one_that_began_last_whatever_its_name() {
    let place = Place::new();
    for (name, started) in [("aa", "2026-01-02"), ("zz", "2026-01-01")] {
        let folder = place.at("heapmark-results").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let head = format!(r#"{{"started": "{started}T00:00:00Z"}}"#);
        std::fs::write(folder.join("run.json"), head).unwrap();
    }
    let end = place.run(&["export", "latest", "--to", "md"]);
    let first = "heapmark-results/aa/run.json is damaged";
    assert!(end.stderr.contains(first), "{}", end.stderr);
}

/// A machine without a compiler on which nothing is built. The libraries of its packages are `files`;
/// the others of that kind are not there.
fn without_a_compiler(place: &Place, files: &[(&str, &str)]) -> End {
    let names = [
        "gperftools",
        "scudo",
        "jemalloc-debian",
        "mimalloc-debian",
        "tbbmalloc-debian",
    ];
    for name in names {
        let there = files.iter().find(|(known, _)| *known == name);
        let file = there.map_or("/nowhere/none.so", |(_, file)| *file);
        let family = name.trim_end_matches("-debian");
        let tier = if family == name { "main" } else { "variant" };
        let entry = format!(
            "name = \"{name}\"\nreplace = true\nfamily = \"{family}\"\nabout = \"x\"\ntier = \"{tier}\"\n\
             source = {{ kind = \"system\", files = [\"{file}\"], package = \"lib{name}\" }}\n"
        );
        let folder = place.at("config/heapmark/allocators");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.toml")), entry).unwrap();
    }
    let args = [&["run", "-o", "run", "--blocks", "2"], &SMALL[..]].concat();
    let mut command = place.heapmark(&args);
    command
        .env("PATH", place.at("bin"))
        .env("HEAPMARK_CACHE", place.at("cache"));
    let end = End::of(command.output().unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    end
}

#[test]
fn glibc_alone_is_measured_where_nothing_else_is_ready() {
    let place = Place::new();
    let end = without_a_compiler(&place, &[]);
    // A line for each reason, which names the package once.
    let lines: Vec<&str> = end
        .stderr
        .lines()
        .filter(|line| line.contains("absent"))
        .collect();
    assert_eq!(lines.len(), 4, "{}", end.stderr);
    assert!(
        lines[0].starts_with("dlmalloc, hoard, jemalloc, mimalloc2, "),
        "{}",
        lines[0]
    );
    for line in &lines {
        assert_eq!(line.matches("apt-get install ").count(), 1, "{line}");
    }
    assert!(
        lines[0].ends_with("; apt-get install build-essential"),
        "{}",
        lines[0]
    );
    let wheel = "tbbmalloc: absent: pip for python3 is not there; apt-get install python3-pip";
    assert!(lines.contains(&wheel), "{}", end.stderr);
    assert!(!end.stderr.contains("instead"), "{}", end.stderr);
    assert_eq!(plan(&place.at("run")).allocators, ["glibc"]);
    assert_eq!(place.rows("run")[0]["samples"], "2");
}

#[test]
fn what_cannot_be_built_is_taken_from_the_distribution() {
    let place = Place::new();
    let library = place.fake("honest");
    let library = library.to_str().unwrap();
    let there = [("mimalloc-debian", library), ("tbbmalloc-debian", library)];
    let end = without_a_compiler(&place, &there);
    // Two that are absent have one build.
    let told = "mimalloc: mimalloc-debian is taken instead";
    assert_eq!(end.stderr.matches(told).count(), 1, "{}", end.stderr);
    let told = "tbbmalloc: tbbmalloc-debian is taken instead";
    assert_eq!(end.stderr.matches(told).count(), 1, "{}", end.stderr);
    assert_eq!(
        plan(&place.at("run")).allocators,
        ["glibc", "mimalloc-debian", "tbbmalloc-debian"]
    );
}

#[test]
fn a_run_goes_on_if_its_output_is_closed() {
    let place = Place::new();
    let args = [
        &["run", "-o", "run", "-a", "glibc", "--blocks", "2"],
        &SMALL[..],
    ]
    .concat();
    let mut command = place.heapmark(&args);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(of_purpose(&samples(&place.at("run")), "sample").len(), 2);
    assert!(place.at("run/report.md").is_file());
}

/// The workloads of a plan, as `--dry-run` prints them.
fn workloads_of(place: &Place, flags: &[&str]) -> String {
    let flags = [&["run", "--dry-run", "-a", "glibc"], flags].concat();
    let end = place.run(&flags);
    assert_eq!(end.code, Some(0), "{flags:?}: {}", end.stderr);
    let line = end
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("workloads "));
    line.unwrap_or_else(|| panic!("{}", end.stdout))
        .trim()
        .to_owned()
}

#[test]
fn a_suite_sets_parameters_of_its_own_workloads_and_of_no_others() {
    let place = Place::new();
    let quick = workloads_of(&place, &[]);
    assert_eq!(quick.split(", ").count(), 7, "{quick}");
    assert!(
        quick.contains("trace:jq-group@1") && !quick.contains("trace:jq-group-reuse"),
        "its first round only: {quick}"
    );
    assert!(
        quick.contains("trace:lua-tables-reuse@1") && !quick.contains("trace:lua-tables@1"),
        "its later rounds only: {quick}"
    );
    // What the user chooses is as it is documented.
    let chosen = workloads_of(&place, &["-w", "trace:jq-group"]);
    assert_eq!(chosen, "trace:jq-group@1, trace:jq-group-reuse@1");
    let set = [
        "-w",
        "trace:jq-group",
        "--set",
        "trace:jq-group.rounds=later",
    ];
    assert_eq!(workloads_of(&place, &set), "trace:jq-group-reuse@1");
    let one_round = workloads_of(&place, &["--retained"]);
    assert!(!one_round.contains("-reuse"), "{one_round}");
    let all = workloads_of(
        &place,
        &[
            "-w",
            "trace:*-hash,trace:z3-*",
            "--set",
            "trace:*.rounds=first",
        ],
    );
    assert_eq!(all, "trace:perl-hash@1, trace:z3-solve@1");
    let paced = place.run(&[
        "run",
        "--dry-run",
        "-w",
        "trace:jq-group",
        "--set",
        "trace:jq-group.rounds=later",
        "--set",
        "trace:jq-group.mode=paced",
    ]);
    assert_eq!(paced.code, Some(2), "{}", paced.stdout);
    assert!(
        paced
            .stderr
            .contains("trace:jq-group: rounds: only mode = speed has later ones"),
        "{}",
        paced.stderr
    );
}
