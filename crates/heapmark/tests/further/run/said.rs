//! What is said instead of being swallowed: what is absent, what would be empty, what is wrong with a command line, and where.

use crate::support::home::{Home, outcomes};
use crate::support::machine::Machine;
use crate::support::stored::stored;
use crate::support::{End, Place, SMALL, samples, word, words};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// One message on stderr, and how it ends.
fn refused(place: &Place, args: &[&str], code: i32, says: &[&str]) {
    let end = place.run(args);
    assert_eq!(
        (end.code, end.stdout.as_str()),
        (Some(code), ""),
        "{args:?}: {}",
        end.stderr
    );
    assert!(
        end.stderr.starts_with("heapmark: "),
        "{args:?}: {}",
        end.stderr
    );
    says.iter().for_each(|words| {
        assert!(
            end.stderr.contains(words),
            "{args:?}: no `{words}` in {}",
            end.stderr
        )
    });
}

/// A home with a workload of two programs, of which one needs what no machine has, and a suite of that workload.
fn lacking() -> Home {
    let home = Home::new();
    let program = "about = \"x\"\nallocator = \"none\"\nrun = [\"sh\", \"program.sh\"]\n";
    let need =
        "[[needs]]\nwhat = \"libnowhere\"\nprobe = [\"false\"]\npackage = \"libnowhere-dev\"\n";
    home.program(
        "lacking",
        &format!("{program}{need}"),
        "program.sh",
        "exit 1\n",
    );
    // With churn's parameters, and no kernel.
    let churn = include_str!("../../../../../workloads/llheap/churn.toml");
    let alone = &churn[..churn.find("[[variants]]").unwrap()];
    let row = "[[rows]]\nname = \"Test:lacking\"\nprogram = \"lacking\"\n\n[parameters.spots]";
    let nowhere = alone
        .replace("name = \"churn\"\n", "name = \"nowhere\"\n")
        .replace("kernel = \"churn\"\n", "");
    let nowhere = nowhere
        .replace("[parameters.spots]", row)
        .replace("iterations = \"calibrated\"", "iterations = 2");
    home.write("workloads/nowhere.toml", &nowhere);
    let suite = "about = \"x\"\npreset = \"quick\"\nworkloads = [\"nowhere\", \"speed-malloc-free\"]\nthreads = [\"1\"]\n\
                 tiers = []\nbaseline = \"glibc\"\nblocks = 1\ntarget-ms = 2\n";
    home.write("suites/both.toml", suite);
    home
}

#[test]
fn what_a_machine_does_not_have_is_absent_and_no_failure() {
    let home = lacking();
    let end = home.heapmark(&[
        "run",
        "both",
        "-o",
        "run",
        "-a",
        "glibc",
        "--no-floor",
        "--no-repeat",
    ]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let line = "Test:lacking: absent: libnowhere is not there; apt-get install libnowhere-dev";
    let unwrapped = words(&end.stdout);
    assert!(unwrapped.contains(line), "{}", end.stdout);
    assert!(!end.says("Not ok"), "{}", end.stdout);
    let records = samples(&home.at("run"));
    assert!(
        outcomes(&records, "check")["Test:lacking"].starts_with("absent "),
        "{records:?}"
    );
    // Taken up again it is the same run.
    assert_eq!(home.heapmark(&["run", "--resume", "run"]).code, Some(0));
    let rows = home.heapmark(&["export", "run", "--to", "csv-rows"]).stdout;
    assert!(
        rows.lines()
            .any(|line| line.contains("Test:lacking") && line.contains(",absent,")),
        "{rows}"
    );
}

#[test]
fn what_was_named_and_is_absent_is_a_failure() {
    let home = lacking();
    let end = home.heapmark(&[
        "run",
        "-w",
        "nowhere,speed-malloc-free",
        "-t",
        "1",
        "-o",
        "run",
        "-a",
        "glibc",
        "--blocks",
        "1",
    ]);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    assert!(
        end.says("Test:lacking: absent: libnowhere"),
        "{}",
        end.stdout
    );
    assert_eq!(
        home.heapmark(&["run", "--resume", "run"]).code,
        Some(4),
        "a run that is taken up again knows it, too"
    );
}

#[test]
fn a_list_has_state_reason_and_remedy_for_programs_and_one_line_for_each_in_a_pipe() {
    let home = lacking();
    let listed = home
        .heapmark(&["list", "languages", "--format", "json"])
        .stdout;
    let all: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    let lacking = all.iter().find(|one| one["name"] == "lacking").unwrap();
    let of = |key: &str| word(lacking, key);
    assert_eq!(
        (of("state"), of("why"), of("remedy")),
        (
            "absent",
            "libnowhere is not there",
            "apt-get install libnowhere-dev"
        )
    );
    let table = home.heapmark(&["list", "languages"]).stdout;
    assert_eq!(table.lines().count(), all.len() + 1, "{table}");
    assert!(
        table.contains("absent, libnowhere is not there: apt-get install libnowhere-dev"),
        "{table}"
    );
    let listed = home
        .heapmark(&["list", "allocators", "--format", "json"])
        .stdout;
    let all: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    for one in all.iter().filter(|one| one["state"] == "not built") {
        assert!(
            one["version"].is_null() && word(one, "remedy").starts_with("heapmark build "),
            "{one}"
        );
    }
}

#[test]
fn strict_looks_at_the_machine_before_anything_is_built() {
    let place = Place::new();
    Machine::clean(place.at("machine")).plant("sys/kernel/mm/ksm/run", "1\n");
    for args in [
        &["run", "--strict", "-a", "rpmalloc"][..],
        &["try", "--strict", "-a", "rpmalloc", "true"],
    ] {
        let mut command = place.heapmark(args);
        command
            .env("HEAPMARK_MACHINE_ROOT", place.at("machine"))
            .env("HEAPMARK_CACHE", place.at("cache"));
        let end = End::of(command.output().unwrap());
        assert_eq!(end.code, Some(5), "{args:?}: {}", end.stderr);
        assert!(
            end.stderr.contains("because of --strict") && !end.stderr.contains("building"),
            "{}",
            end.stderr
        );
        assert!(!place.at("cache").exists(), "{args:?} built something");
    }
}

#[test]
fn an_export_that_would_be_empty_is_refused() {
    let place = stored();
    refused(
        &place,
        &["export", "run", "--to", "csv-latency", "-o", "out"],
        2,
        &["csv-latency", "heapmark run --latency"],
    );
    let end = place.run_small("calls", &["--latency", "-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    refused(
        &place,
        &["export", "calls", "--to", "csv-samples", "-o", "out"],
        2,
        &["nothing for csv-samples"],
    );
    refused(
        &place,
        &["export", "calls", "--to", "csv-rows", "-o", "out"],
        2,
        &["nothing for csv-rows"],
    );
    assert!(!place.at("out").exists());
    let help = place.run(&["export", "--help"]).stdout;
    let help = words(&help);
    assert!(
        help.contains("possible values: csv, csv-samples, csv-rows, csv-latency, json, md, "),
        "{help}"
    );
    refused(&place, &["export", "run", "--to", "xlsx"], 2, &["csv-rows"]);
}

#[test]
fn every_time_is_written_in_one_notation() {
    let place = Place::new();
    let plan = |flags: &[&str]| {
        let end = place.run(&[&["run", "-w", "churn", "-a", "glibc", "--dry-run"], flags].concat());
        assert_eq!(end.code, Some(0), "{flags:?}: {}", end.stderr);
        end.stdout
    };
    for (flag, value, says) in [
        ("--timeout", "90", "hung        after 90 s"),
        ("--timeout", "1.5min", "hung        after 90 s"),
        ("--budget", "10", "none that would end after 10 s"),
        ("--budget", "2h", "none that would end after 7200 s"),
        ("--series", "0.002", "every 2.00 ms"),
        ("--series", "500us", "every 500 us"),
        ("--target-ms", "20", "for 20 ms"),
        ("--target-ms", "1s", "for 1000 ms"),
    ] {
        let text = plan(&[flag, value]);
        assert!(text.contains(says), "{flag} {value}: {text}");
    }
    // Where it holds for some workloads only, the others are named.
    let both = ["-w", "churn,same-thread", "-a", "glibc", "--dry-run"];
    let end = place.run(&[&["run", "--target-ms", "20"], &both[..]].concat());
    let says = "--target-ms changes nothing for same-thread: that work is fixed";
    assert!(end.stderr.contains(says), "{}", end.stderr);
    let both = [
        "-w",
        "churn,fan-in-race",
        "-t",
        "1",
        "-a",
        "glibc",
        "--dry-run",
    ];
    let end = place.run(&[&["run"], &both[..]].concat());
    let says = "--threads changes nothing for fan-in-race: how many";
    assert!(end.stderr.contains(says), "{}", end.stderr);
    for args in [
        &["run", "--timeout", "soon"][..],
        &["run", "--budget", "0"],
        &["run", "--series", "0us"],
        &["run", "--target-ms", "-5"],
        &["noise", "--minutes", "soon"],
        &["noise", "--target-ms", "0"],
        &["record", "--duration", "soon", "true"],
    ] {
        refused(
            &place,
            args,
            2,
            &[
                "expected a time from ",
                "as 500ms, 90s, 5min, 2h; a bare number means ",
            ],
        );
    }
    let minutes = place.run(&[
        "noise",
        "--minutes",
        "1.5s",
        "-w",
        "churn-private",
        "--target-ms",
        "1",
        "-o",
        "noise",
    ]);
    let budget_s = &crate::support::head(&place.at("noise"))["plan"]["budget_s"];
    assert_eq!(*budget_s, 1.5, "{}", minutes.stderr);
}

#[test]
fn a_command_needs_no_dashes_before_it_and_keeps_its_own_flags() {
    let place = Place::new();
    let end = place.run(&["record", "-o", "a.trace", "sh", "-c", "exit 3", "--raw"]);
    assert_eq!(end.code, Some(3), "{}", end.stderr);
    assert!(place.at("a.trace").exists());
    let tried = place.run(&[
        "try",
        "--dry-run",
        "-a",
        "glibc",
        "ls",
        "--blocks",
        "5",
        "--",
        "x",
    ]);
    assert_eq!(tried.code, Some(0), "{}", tried.stderr);
    assert!(
        tried.stdout.contains("ls --blocks 5 -- x\n"),
        "{}",
        tried.stdout
    );
    refused(
        &place,
        &["try", "--bloks", "5", "ls"],
        2,
        &["unexpected argument '--bloks'", "--blocks"],
    );
}

#[test]
fn a_dry_run_is_a_screen_and_says_at_last_what_cannot_be_measured() {
    let place = Place::new();
    let plan = place.run(&[
        "run",
        "--dry-run",
        "-a",
        "glibc",
        "-t",
        "4096",
        "--blocks",
        "40",
    ]);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    assert!(plan.stdout.lines().count() <= 16, "{}", plan.stdout);
    assert!(plan.stdout.contains("oversubscribed"), "{}", plan.stdout);

    let wrong = place.run(&["run", "--dry-run", "-a", "mine=/nowhere/lib.so,glibc"]);
    assert_eq!(wrong.code, Some(4), "{}", wrong.stdout);
    let last = wrong.stderr.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "mine cannot be measured: /nowhere/lib.so: there is no such file; check the path"
    );

    let place = stored();
    refused(
        &place,
        &["run", "--dry-run", "-a", "glibc", "-o", "run"],
        2,
        &["run already holds a run"],
    );
    fs::write(place.at("file"), "").unwrap();
    refused(
        &place,
        &["run", "--dry-run", "-a", "glibc", "-o", "file"],
        2,
        &["file is there already, and no folder"],
    );
}

#[test]
fn names_may_have_blanks_behind_commas() {
    let place = Place::new();
    let end = place.run(&[
        "run",
        "--dry-run",
        "-a",
        "glibc, null",
        "-w",
        "churn, larson",
        "-t",
        "1, 2",
    ]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.says("churn@1,2, larson@1,2"), "{}", end.stdout);
}

#[test]
fn all_mistakes_are_told_in_one_way() {
    let place = Place::new();
    refused(
        &place,
        &["run", "--alocators", "x"],
        2,
        &["unexpected argument '--alocators'", "'--allocators'"],
    );
    refused(
        &place,
        &["run", "--series", "-1ms"],
        2,
        &["unexpected argument '-1' found\nUsage:"],
    );
    refused(
        &place,
        &["runn"],
        2,
        &["unrecognized subcommand 'runn'", "'run'"],
    );
    refused(
        &place,
        &["run", "-t", "-1"],
        2,
        &["-t: `-1` is no thread count"],
    );
    refused(
        &place,
        &["run", "-a", ""],
        2,
        &["a name of the list is empty"],
    );
    refused(
        &place,
        &["run", "--seed", "-5"],
        2,
        &["invalid value '-5' for '--seed <N>'"],
    );
    refused(
        &place,
        &["compare", "--fail-on", "faster"],
        2,
        &["possible values: slower, unclear"],
    );
    let mut command = place.heapmark(&["report"]);
    let end = End::of(
        command
            .arg("fine")
            .arg(OsStr::from_bytes(b"no\xfft"))
            .output()
            .unwrap(),
    );
    assert_eq!(end.code, Some(2));
    assert!(
        end.stderr
            .starts_with("heapmark: argument 3, \"no\\xFFt\", is not UTF-8"),
        "{}",
        end.stderr
    );
    // Names of files need not be.
    let mut command = place.heapmark(&["export", "-o"]);
    let unnamed = command.arg(OsStr::from_bytes(b"\xff.csv")).output();
    End::of(unnamed.unwrap()).is_one_line(2);
    let mut command = place.heapmark(&["--help"]);
    let full = End::of(
        command
            .stdout(fs::File::create("/dev/full").unwrap())
            .output()
            .unwrap(),
    );
    assert_eq!(full.code, Some(1));
    assert!(
        full.stderr.starts_with("heapmark: cannot write"),
        "{}",
        full.stderr
    );
}

#[test]
fn a_trace_may_come_from_stdin() {
    let place = Place::new();
    assert_eq!(
        place.run(&["record", "-o", "a.trace", "true"]).code,
        Some(0)
    );
    let named = place.run(&["trace", "stats", "a.trace", "--to", "json"]);
    let mut command = place.heapmark(&["trace", "stats", "-", "--to", "json"]);
    let piped = End::of(
        command
            .stdin(Stdio::from(fs::File::open(place.at("a.trace")).unwrap()))
            .output()
            .unwrap(),
    );
    assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""));
    assert_eq!(piped.stdout, named.stdout);
}

#[test]
fn a_run_beside_its_own_copy_is_refused() {
    let place = stored();
    fs::create_dir(place.at("copy")).unwrap();
    for file in ["run.json", "samples.jsonl"] {
        fs::copy(place.at("run").join(file), place.at("copy").join(file)).unwrap();
    }
    refused(
        &place,
        &["compare", "run", "copy"],
        2,
        &["run and copy hold the same samples"],
    );
}

#[test]
fn claims_that_a_run_cannot_tell_are_counted() {
    let place = stored();
    let told = place.run(&["claims", "run"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(
        !told
            .stdout
            .lines()
            .any(|line| line.contains("is in no run")),
        "{}",
        told.stdout
    );
    assert!(told.says("not testable here."), "{}", told.stdout);
    let whole = place.run(&["claims", "run", "--document", "za"]).stdout;
    assert!(
        whole
            .lines()
            .any(|line| line.trim_start().starts_with("ZA-7")),
        "{whole}"
    );
}

#[test]
fn a_folder_that_takes_no_results_is_said_with_the_flag_that_names_another() {
    let place = Place::new();
    // Also what root may write to takes no folder under a file's name.
    fs::write(place.at("heapmark-results"), "").unwrap();
    let end = place.run(&[&["run", "-a", "glibc", "--blocks", "1"], &SMALL[..]].concat());
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr.contains("heapmark-results") && end.stderr.contains("-o names another place"),
        "{}",
        end.stderr
    );
}

#[test]
fn quiet_prints_results_and_errors_only() {
    let place = Place::new();
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "1", "--quiet"]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert!(end.stdout.contains("Report: "), "{}", end.stdout);
    refused(&place, &["-q", "show", "gone"], 2, &["gone"]);
}

#[test]
fn json_of_a_run_is_its_export_and_a_pull_request_has_its_parameters() {
    let place = Place::new();
    let flags = ["-a", "glibc", "--blocks", "1", "-q", "--format", "json"];
    let end = place.run_small("run", &flags);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    let exported = place.run(&["export", "run", "--to", "json"]);
    assert_eq!(end.stdout, exported.stdout);
    assert!(serde_json::from_str::<serde_json::Value>(&end.stdout).is_ok());
    let text = place
        .run(&["export", "run", "--to", "pr", "-o", "-"])
        .stdout;
    let again = "Again: `heapmark run -w churn -t 1 --set 'churn.objects=5000' --preset quick --target-ms 2 --alone -a glibc`";
    assert!(text.contains(again), "{text}");
    for idle in [&["--dry-run"][..], &["--cell", "churn@1/b00/glibc"]] {
        let end = place.run(&[&["run", "--format", "json"], idle].concat());
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(end.stderr.contains("--format"), "{}", end.stderr);
    }
}

#[test]
fn colours_are_printed_if_the_user_says_so() {
    let place = stored();
    let show = |words: &[&str]| {
        let end = place.run(&[&["show", "run"], words].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        end.stdout
    };
    let plain = show(&[]);
    assert_eq!(show(&["--color", "never"]), plain);
    let coloured = show(&["--color", "always"]);
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    assert!(!plain.contains("\u{1b}["), "{plain}");
}
