//! The commands around runs: what is stored, shown, removed and explained, completions, manual pages, sources.

use crate::support;
use crate::support::home::Home;
use crate::support::live::wait_for;
use crate::support::rust_project::find_cargo;
use crate::support::stored::stored;
use crate::support::tried::TRUE;
use crate::support::{End, Place, repository};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

#[test]
fn completions_and_manual_pages_know_every_command() {
    let place = Place::new();
    let all = support::commands();
    let word = |(command, _): &(String, _)| command.split(' ').next().unwrap().to_owned();
    let commands: BTreeSet<String> = all.iter().map(word).collect();
    assert!(commands.len() > 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let end = place.run(&["completions", shell]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        for word in commands.iter().map(String::as_str).chain(["check-output"]) {
            assert!(end.says(word), "{shell}: {word}");
        }
    }
    let script = place.run(&["completions", "bash"]).stdout;
    fs::write(place.at("script"), script).unwrap();
    let ask = "source ./script; COMP_WORDS=(heapmark comp) COMP_CWORD=1; _heapmark heapmark comp heapmark; echo ${COMPREPLY[@]}";
    let bash = std::process::Command::new("bash")
        .args(["-c", ask])
        .current_dir(place.at("."))
        .output();
    let said = String::from_utf8(bash.unwrap().stdout).unwrap();
    assert_eq!(said.trim(), "compare completions");

    let end = place.run(&["man", "pages"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for name in &commands {
        let page = fs::read_to_string(place.at(&format!("pages/heapmark-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    let page = fs::read_to_string(place.at("pages/heapmark-run.1")).unwrap();
    assert!(page.contains("no\\-aa\\-copy"));
    fs::write(place.at("file"), "").unwrap();
    let end = place.run(&["man", "file"]);
    end.is_one_line(1);
    assert!(end.stderr.contains("cannot create file"), "{}", end.stderr);
}

/// The headings of all tables in the Markdown of six stored runs.
fn headings() -> BTreeSet<String> {
    let mut headings = BTreeSet::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outputs/expected");
    for file in fs::read_dir(golden).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let tables = lines.windows(2).filter(|pair| pair[1].starts_with("| :--"));
        let cells = tables.flat_map(|pair| pair[0].split('|'));
        headings.extend(cells.map(|cell| cell.replace('\\', "").trim().to_lowercase()));
    }
    headings.remove("");
    headings
}

#[test]
fn each_heading_of_a_table_and_each_mark_of_a_screen_is_explained() {
    const OF_SCREENS: [&str; 39] = [
        "all",
        "next run",
        "kern",
        "peak/live",
        "pool",
        "~",
        "<=",
        ">=",
        "…",
        "×",
        "flawed",
        "asleep",
        "user time",
        "verdict",
        "faster",
        "slower",
        "same",
        "small",
        "unclear",
        "too few blocks",
        "withheld",
        "warnings",
        "bounds",
        "case",
        "holds",
        "a/a",
        "harness",
        "floor",
        "mem",
        "rss at end",
        "depends on slices",
        "interference",
        "unclear (+n)",
        "beside glibc",
        "duet",
        "noisy run",
        "partial",
        "not purged",
        "libc serves n %",
    ];
    const OUTCOMES: [&str; 10] = [
        "ok",
        "wrong-result",
        "not-loaded",
        "exit",
        "crash",
        "hang",
        "oom",
        "unsupported",
        "absent",
        "error",
    ];
    let place = Place::new();
    let all = place.run(&["explain"]).stdout.to_lowercase();
    let names = all.lines().filter_map(|line| line.split_once(": "));
    let known: BTreeSet<&str> = names.flat_map(|(names, _)| names.split(", ")).collect();
    let headings = headings();
    assert!(headings.len() > 40, "{headings:?}");
    let words = headings
        .iter()
        .map(|heading| heading.trim_end_matches(" [95 %]"));
    let missing: Vec<&str> = words
        .chain(OF_SCREENS)
        .chain(OUTCOMES)
        .filter(|word| !known.contains(word))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (word, says) in [
        (&["larson"][..], "larson: "),
        (&["jq", "group"], "jq-group, jq group: "),
        (&["unclear", "(+14)"], "unclear (+N), "),
        (&["kern"], "kern: the share of the time"),
        (&["[n", "=", "2]"], "ratio, "),
        (&["libc", "serves", "20", "%"], "libc serves N %: "),
        (
            &["partial"],
            "partial: the library leaves functions of the heap to libc, and runs only workloads that never call them",
        ),
    ] {
        let end = place.run(&[&["explain"], word].concat());
        assert!(end.stdout.starts_with(says), "{}", end.stdout);
    }
}

#[test]
fn words_are_explained_and_a_wrong_one_has_a_near_one() {
    let place = Place::new();
    let end = place.run(&["explain", "Baseline"]);
    assert_eq!(
        end.stdout,
        "baseline: the allocator that all ratios refer to, glibc by default\n"
    );
    let end = place.run(&["explain", "aged", "heap"]);
    assert!(end.stdout.starts_with("aged heap: a heap in which"));
    // Every judged metric, and every metric's other name.
    let metrics = place.run(&["list", "metrics", "--format", "json"]).stdout;
    let metrics: Vec<Value> = serde_json::from_str(&metrics).unwrap();
    let all = place.run(&["explain"]).stdout;
    for metric in &metrics {
        let key = metric["key"].as_str().unwrap();
        assert!(all.contains(key), "{key}");
    }
    let end = place.run(&["explain", "cpu_ns_per_op"]);
    assert!(
        end.says("(unit ns; better lower; judged by test)"),
        "{}",
        end.stdout
    );
    let end = place.run(&["explain", "baselien"]);
    assert_eq!(end.code, Some(2));
    assert_eq!(
        end.stderr,
        "heapmark: no explanation of `baselien` (did you mean `baseline`?): see `heapmark explain`\n"
    );
    let end = place.run(&["explain", "xyzzyxyzzy"]);
    assert!(!end.stderr.contains("mean"), "{}", end.stderr);
}

/// A place with runs in `heapmark-results`.
fn with_runs(names: &[&str]) -> Place {
    let place = stored();
    fs::create_dir(place.at("heapmark-results")).unwrap();
    for name in names {
        let to = place.text(&format!("heapmark-results/{name}"));
        let copied = std::process::Command::new("cp")
            .args(["-r", &place.text("run"), &to])
            .status();
        assert!(copied.unwrap().success());
    }
    place
}

#[test]
fn runs_are_listed_newest_first_and_a_damaged_one_with_the_reason() {
    let place = with_runs(&["2026-01-02-10", "2026-01-02-9"]);
    fs::write(place.at("heapmark-results/2026-01-02-9/run.json"), "{").unwrap();
    let runs = place.run(&["list", "runs", "--format", "json"]).stdout;
    let runs: Vec<Value> = serde_json::from_str(&runs).unwrap();
    let names: Vec<&str> = runs
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "heapmark-results/2026-01-02-10",
            "heapmark-results/2026-01-02-9"
        ]
    );
    assert_eq!(runs[0]["cases"], 1);
    assert_eq!(runs[0]["allocators"][0], "glibc");
    assert!(runs[0]["space_bytes"].as_u64().unwrap() > 10_000);
    let table = place.run(&["list", "runs"]).stdout;
    let line = table
        .lines()
        .find(|line| line.contains("2026-01-02-9"))
        .unwrap();
    assert!(line.contains("run.json is damaged"), "{line}");
    let end = Place::new().run(&["list", "runs"]);
    assert_eq!((end.code, end.stdout.lines().count()), (Some(0), 1));
}

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_page_is_opened_or_one_line_says_why_not() {
    let place = with_runs(&["2026-01-02-1"]);
    let open = |args: &[&str]| {
        let mut command = place.heapmark(&[&["open"], args].concat());
        End::of(command.env("PATH", place.at("bin")).output().unwrap())
    };
    let page = "heapmark-results/2026-01-02-1/report.html";
    let _ = fs::remove_file(place.at(page));
    let end = open(&[]);
    end.is_one_line(1);
    assert!(end.stderr.contains("no xdg-open here"), "{}", end.stderr);
    assert!(end.stderr.contains(page) && place.at(page).is_file());

    executable(
        &place.at("bin/xdg-open"),
        "#!/bin/sh\necho \"$@\" > opened\n",
    );
    // A page that lies there may be anybody's, and so may the name of a folder.
    let theirs = place.at("theirs.html");
    fs::write(&theirs, "<script>theirs()</script>").unwrap();
    let _ = fs::remove_file(place.at(page));
    symlink(&theirs, place.at(page)).unwrap();
    assert_eq!(open(&[]).code, Some(0));
    let opened = || fs::read_to_string(place.at("opened")).unwrap();
    assert_eq!(opened(), format!("{}\n", place.text(page)));
    assert!(!place.at(page).is_symlink());
    let shown = fs::read_to_string(place.at(page)).unwrap();
    assert!(shown.contains("churn") && !shown.contains("theirs()"));
    assert_eq!(fs::read(&theirs).unwrap(), b"<script>theirs()</script>");
    fs::rename(place.at("run"), place.at("-run")).unwrap();
    assert_eq!(open(&["--", "-run"]).code, Some(0));
    assert_eq!(opened(), format!("{}\n", place.text("-run/report.html")));

    executable(&place.at("bin/xdg-open"), "#!/bin/sh\nexit 3\n");
    let end = open(&[]);
    end.is_one_line(1);
    assert!(
        end.stderr.contains("xdg-open ended with exit status: 3"),
        "{}",
        end.stderr
    );
    let end = Place::new().run(&["open"]);
    end.is_one_line(2);
}

#[test]
fn to_print_where_nobody_reads_is_a_failure() {
    let place = Place::new();
    for args in [
        "--version",
        "run --help",
        "explain blow-up",
        "list suites --format json",
    ] {
        let closed = |to: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &format!("exec \"$0\" {args} {to}")]);
            shell.env("HOME", place.at("."));
            End::of(shell.arg(env!("CARGO_BIN_EXE_heapmark")).output().unwrap())
        };
        let end = closed(">&-");
        end.is_one_line(1);
        assert!(end.stderr.contains("stdout is closed"), "{}", end.stderr);
        let end = closed(">/dev/null");
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{args}");
    }
}

#[test]
fn nothing_is_removed_without_an_answer() {
    let place = with_runs(&["2026-01-02-1"]);
    let end = End::of(
        place
            .heapmark(&["clean", "runs"])
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    );
    end.is_one_line(2);
    assert!(end.stderr.contains("give --yes"), "{}", end.stderr);
    let help = place.run(&["clean", "--help"]).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("need the network again"), "{help}");
    // `script` is a terminal; it types what it reads.
    let answered = |answer: &str| {
        let line = format!("{} clean runs", env!("CARGO_BIN_EXE_heapmark"));
        let script = format!("echo {answer} | script -qec '{line}' /dev/null");
        let mut shell = std::process::Command::new("sh");
        let output = shell
            .args(["-c", &script])
            .current_dir(place.at("."))
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    for answer in ["n", "\"\"", "yeah"] {
        let said = answered(answer);
        assert!(
            said.contains("1 run, ") && said.contains("nothing is removed"),
            "{said}"
        );
        assert!(place.at("heapmark-results/2026-01-02-1/run.json").is_file());
    }
    let said = answered("y");
    let folders = "removed: 1 run, ";
    assert!(
        said.contains(folders) && said.contains(" in heapmark-results (2026-01-02-1): remove?"),
        "{said}"
    );
    assert!(!place.at("heapmark-results").exists());
}

#[test]
fn only_what_heapmark_keeps_is_removed() {
    let place = with_runs(&["2026-01-02-1", "2026-01-02-2"]);
    fs::write(place.at("heapmark-results/notes"), "mine").unwrap();
    fs::create_dir(place.at("heapmark-results/other")).unwrap();
    symlink(place.at("run"), place.at("heapmark-results/2026-01-02-3")).unwrap();
    let samples = place.at("heapmark-results/2026-01-02-2/samples.jsonl");
    let held = fs::File::open(samples).unwrap();
    held.lock().unwrap();
    // Notes in a run, and another program's run.json.
    let mine = [
        "heapmark-results/2026-01-02-4/notes",
        "heapmark-results/2026-01-02-4/machine/notes",
        "heapmark-results/2026-01-02-4/series/notes/old.csv",
        "heapmark-results/simulation/run.json",
    ];
    for file in mine {
        fs::create_dir_all(place.at(file).parent().unwrap()).unwrap();
        fs::write(place.at(file), "mine").unwrap();
    }
    for file in ["run.json", "samples.jsonl", "machine/before.json"] {
        let (from, to) = ("run/", "heapmark-results/2026-01-02-4/");
        fs::copy(place.at(from).join(file), place.at(to).join(file)).unwrap();
    }
    let end = place.run(&["clean", "runs", "--yes"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for said in [
        "2026-01-02-2 is being written to: it stays",
        "2026-01-02-3 is a link: it stays",
        "2026-01-02-4 holds more than a run: that stays",
        "simulation is no run of heapmark: it stays",
    ] {
        assert!(end.stderr.contains(said), "{said}: {}", end.stderr);
    }
    for file in mine {
        assert_eq!(fs::read_to_string(place.at(file)).unwrap(), "mine");
    }
    assert!(!place.at("heapmark-results/2026-01-02-4/run.json").exists());
    let before = "heapmark-results/2026-01-02-4/machine/before.json";
    assert!(!place.at(before).exists());
    let left = fs::read_dir(place.at("heapmark-results")).unwrap();
    let left: BTreeSet<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(
        left,
        [
            "2026-01-02-2",
            "2026-01-02-3",
            "2026-01-02-4",
            "notes",
            "other",
            "simulation"
        ]
        .map(Into::into)
        .into()
    );
    assert!(place.at("run/run.json").is_file(), "what a link leads to");
}

#[test]
fn the_cache_is_removed_whole() {
    let place = Place::new();
    let heapmark = |args: &[&str]| {
        let mut command = place.heapmark(args);
        End::of(
            command
                .env("HEAPMARK_CACHE", place.at("cache"))
                .output()
                .unwrap(),
        )
    };
    for args in [
        &["build", "count-mallocs"][..],
        &["record", "-o", "a.trace", "/bin/ls", "/"],
        &[
            "replay",
            "a.trace",
            "-o",
            "replayed",
            "-a",
            "glibc",
            "--blocks",
            "1",
            "--target-ms",
            "1",
        ],
        &TRUE,
        &["replay", "perl-hash", "--dry-run"],
    ] {
        let end = heapmark(args);
        assert_eq!(end.code, Some(0), "{args:?}: {}", end.stderr);
    }
    fs::write(place.at("cache/mine"), "").unwrap();
    let end = heapmark(&["clean", "cache", "-y"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let left = fs::read_dir(place.at("cache")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mine"]);
    let end = heapmark(&["clean", "cache", "-y"]);
    assert!(end.stderr.contains("nothing to remove"), "{}", end.stderr);
    assert!(place.at("replayed/run.json").is_file());
}

#[test]
fn of_a_cache_only_what_heapmark_has_made_is_removed() {
    let place = Place::new();
    let others = ["findings", "libraries", "programs", "sources", "traces"];
    for folder in others {
        fs::create_dir_all(place.at("cache").join(folder)).unwrap();
        fs::write(place.at("cache").join(folder).join("thesis.txt"), "mine").unwrap();
    }
    // Marked by another program.
    let text = "Signature: 8a477f597d28d172789f06886806bc55\n";
    fs::write(place.at("cache/traces/CACHEDIR.TAG"), text).unwrap();
    symlink(place.at("cache/sources"), place.at("cache/copies")).unwrap();
    fs::write(place.at("cache/compiled-traces.lock"), "mine").unwrap();
    let before = support::files(&place.at("cache"));
    let clean = || place.run_with_own_cache(&["clean", "cache", "--yes"]);
    let end = clean();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stderr.contains("nothing to remove"), "{}", end.stderr);
    for folder in others.iter().chain(&["copies", "compiled-traces.lock"]) {
        let path = place.text("cache/") + folder;
        let said = format!("{path} has no CACHEDIR.TAG of heapmark, so it may be yours: it stays");
        assert!(end.stderr.contains(&said), "{said}: {}", end.stderr);
    }

    let list = place.run_with_own_cache(&["list", "allocators"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    assert!(place.at("cache/carried").is_dir());
    let end = clean();
    let named = format!(" in {} (carried)\n", place.text("cache"));
    assert!(end.stderr.ends_with(&named), "{}", end.stderr);
    assert_eq!(support::files(&place.at("cache")), before);
}

#[test]
fn a_cache_that_is_used_is_not_removed_and_one_that_is_removed_is_not_used() {
    let place = Place::new();
    let script = ["-c", ": > started; read line"];
    let mut record = place.heapmark(&["record", "-o", "a.trace", "--", "/bin/sh"]);
    record
        .args(script)
        .env("HEAPMARK_CACHE", place.at("cache"))
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    let mut record = record.spawn().unwrap();
    wait_for("the program", || place.at("started").exists());
    let clean = || place.run_with_own_cache(&["clean", "cache", "--yes"]);
    let end = clean();
    end.is_one_line(1);
    let holder = format!("is used by process {} (heapmark): nothing", record.id());
    assert!(end.stderr.contains(&holder), "{}", end.stderr);
    assert!(place.at("cache/carried").is_dir());
    drop(record.stdin.take());
    assert!(record.wait().unwrap().code().is_some());

    let removing = fs::File::open(place.at("cache")).unwrap();
    removing.lock().unwrap();
    let end = place.run_with_own_cache(&["list", "allocators"]);
    end.is_one_line(1);
    let holder = format!("is being removed by process {} (", std::process::id());
    assert!(end.stderr.contains(&holder), "{}", end.stderr);
    drop(removing);
    assert_eq!(clean().code, Some(0));
    assert!(!place.at("cache").exists());
}

#[test]
fn sources_are_fetched_and_checked() {
    let home = Home::new();
    let end = home.heapmark(&["fetch"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let archives: Vec<&str> = end
        .stderr
        .lines()
        .map(|line| line.split(" in ").nth(1).unwrap())
        .collect();
    assert!(
        archives.iter().all(|archive| Path::new(archive).is_file()),
        "{}",
        end.stderr
    );
    let (archives, of_wheels): (Vec<&str>, Vec<&str>) = archives
        .into_iter()
        .partition(|archive| archive.contains("/registry/"));
    assert!(archives.len() >= 10, "{}", end.stderr);
    if cfg!(target_arch = "x86_64") {
        assert_eq!(of_wheels.len(), 2, "{}", end.stderr);
    }

    // A Python with or without pip, which brings nothing: only who names a wheel must have it.
    let place = Place::new();
    let path = std::env::var("PATH").unwrap();
    let fetch = |python: &str, names: &[&str]| {
        executable(&place.at("bin/python3"), &format!("#!/bin/sh\n{python}\n"));
        let mut command = place.heapmark(&[&["fetch"], names].concat());
        find_cargo(&mut command);
        command
            .env("HEAPMARK_CACHE", place.at("cache"))
            .env("PATH", format!("{}:{path}", place.text("bin")));
        End::of(command.output().unwrap())
    };
    let end = fetch("exit 1", &["tbbmalloc"]);
    end.is_one_line(1);
    assert!(end.stderr.contains("tbb: left out"), "{}", end.stderr);
    let end = fetch("[ \"$1\" = -c ]", &[]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let left_out = |line: &&str| line.starts_with("tbb: left out, ");
    let said = end.stderr.lines().filter(left_out).count();
    assert_eq!(said, 1, "{}", end.stderr);
    let there = |archive: &&str| end.stderr.contains(*archive);
    assert!(archives.iter().all(there), "{}", end.stderr);

    // A cargo whose registry has other archives of these names.
    let place = Place::new();
    let cargo = format!(
        "#!/bin/sh\n[ \"$1\" = metadata ] && exec sed 's#[^\"]*/registry/#{}/registry/#g' {}/said\n",
        place.text("."),
        place.text(".")
    );
    executable(&place.at("cargo"), &cargo);
    let metadata = std::process::Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(repository().join("crates/sources/Cargo.toml"))
        .output();
    fs::write(place.at("said"), metadata.unwrap().stdout).unwrap();
    for archive in archives {
        let inside = archive.split("/registry/").nth(1).unwrap();
        let copy = place.at("registry").join(inside);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, "another").unwrap();
    }
    let mut command = place.heapmark(&["fetch"]);
    let end = End::of(command.env("CARGO", place.at("cargo")).output().unwrap());
    end.is_one_line(1);
    assert!(
        end.stderr.contains("is not the archive that"),
        "{}",
        end.stderr
    );

    let mut command = place.heapmark(&["fetch"]);
    let end = End::of(command.env("CARGO", "/nonexistent/cargo").output().unwrap());
    end.is_one_line(1);
    assert!(
        end.stderr.contains("starting /nonexistent/cargo"),
        "{}",
        end.stderr
    );
}
