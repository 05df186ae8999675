//! Releases of allocators by name, and their histories.

use crate::support::home::Home;
use crate::support::stored::change_head;
use crate::support::{End, Place, SMALL, head, source, word};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One release from a wheel, under a version and a checksum.
fn of_wheel(version: &str, sha256: &str) -> String {
    format!(
        "[[group]]\nlike = \"mimalloc3\"\nwheel = \"cmeel-mimalloc\"\nfiles = [\"libmimalloc.so.3\"]\nleft-to-libc = {{}}\n\
         releases = [{{ version = \"{version}\", date = \"2026-02\", at = \"3.2.8\", sha256 = \"{sha256}\" }}]\n"
    )
}

const OF_328: &str = "9ffd5639af13b64669e9933b81fac1d761154967202a666a17f5776a6a2d9252";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_release_is_an_allocator_and_no_other_than_its_row_says() {
    let place = Place::new();
    place.ready(&["mimalloc@3.2.8", "mimalloc@3.4.3"]);
    let run = [
        "run",
        "-o",
        "run",
        "-a",
        "mimalloc@3.2.8..3.2,mimalloc@3.4.3",
        "--baseline",
        "mimalloc@3.4.3",
    ];
    let end = place.run(&[&run[..], &SMALL[..], &["--blocks", "1"]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let head = head(&place.at("run"));
    let rows = head["allocators"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["name"] == "mimalloc@3.2.8")
        .unwrap();
    assert_eq!(word(row, "version"), "3.2.8");
    assert_eq!(word(row, "origin"), "wheel cmeel-mimalloc 3.2.8");
    // A row for another release, and one whose archive is another.
    let home = Home::with_the_shared_cache();
    home.write("releases/mimalloc.toml", &of_wheel("3.2.9", OF_328));
    let end = home.heapmark(&["run", "-a", "mimalloc@3.2.9,glibc", "--dry-run"]);
    let built = home.heapmark(&["build", "mimalloc@3.2.9"]);
    assert_eq!(built.code, Some(0), "{}{}", built.stderr, end.stderr);
    let end = home.heapmark(&["run", "-a", "mimalloc@3.2.9,glibc", "--dry-run"]);
    let told = "mimalloc@3.2.9: absent: it works with 3.2.8 here, and its row is for 3.2.9";
    assert!(end.stderr.contains(told), "{}", end.stderr);
    home.write(
        "releases/mimalloc.toml",
        &of_wheel("3.2.8", &OF_328.replace('9', "8")),
    );
    refused(&home.heapmark(&["build", "mimalloc@3.2.8"]), "HASHES");
    let other = fs::read_to_string("../../releases/rpmalloc.toml").unwrap();
    let (start, rest) = other.split_once("at = \"0.1.0\", sha256 = \"").unwrap();
    let changed = format!(
        "{start}at = \"0.1.0\", sha256 = \"{}{}",
        "0".repeat(4),
        &rest[4..]
    );
    home.write("releases/rpmalloc.toml", &changed);
    let end = home.heapmark(&["fetch", "rpmalloc@1.4.0"]);
    refused(&end, "`sha256` in a table of releases) says 0000");
    assert_eq!(end.stderr.lines().count(), 1, "{}", end.stderr);
}

fn refused(end: &End, told: &str) {
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    assert!(end.stderr.contains(told), "{told}: {}", end.stderr);
}

/// A build that holds so many per cent more than the others.
fn build(place: &Place, name: &str, pad: u32) -> String {
    let library = place.at(&format!("{name}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-shared", "-fPIC", "-fno-builtin"]);
    cc.arg(format!("-DPAD={pad}"))
        .arg(source("planted"))
        .arg(source("own"));
    assert!(
        cc.arg("-o").arg(&library).status().unwrap().success(),
        "{name}"
    );
    format!("{name}={}", library.display())
}

const WORK: [&str; 8] = [
    "-w",
    "shift",
    "--set",
    "shift.live=1048576",
    "--set",
    "shift.octaves=4",
    "--retained",
    "--blocks=3",
];

fn history(place: &Place, builds: &[&String], flags: &[&str]) -> End {
    let builds: Vec<&str> = builds.iter().map(|build| build.as_str()).collect();
    let line = [
        "history",
        "-o",
        "history",
        "-a",
        &builds.join(","),
        "--format",
        "json",
    ];
    place.run(&[&line[..], &WORK[..], flags].concat())
}

/// The pairs between which the memory changes that is resident at its peak: the kernel reads it itself, without a wait.
fn changes(end: &End) -> Vec<(String, String)> {
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    let series = told["series"].as_array().unwrap().iter();
    let mut peaks = series.filter(|it| it["metric"] == "overhead_at_peak_footprint");
    let steps = peaks.next().unwrap()["steps"].as_array().unwrap().iter();
    let changed = steps
        .filter(|step| step["verdict"]["word"] == "slower" || step["verdict"]["word"] == "faster");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    changed
        .map(|step| (text(&step["from"]), text(&step["to"])))
        .collect()
}

fn measured(run: &Path) -> usize {
    fs::read_to_string(run.join("samples.jsonl"))
        .unwrap()
        .lines()
        .count()
}

#[test]
fn a_history_names_the_pair_grows_and_goes_on() {
    let place = Place::new();
    let [v1, v2, v3, v4] =
        [("v1", 0), ("v2", 0), ("v3", 20), ("v4", 20)].map(|(name, pad)| build(&place, name, pad));
    let pair = |from: &str, to: &str| vec![(from.to_owned(), to.to_owned())];
    // What its run refuses is not what the directory is of.
    let end = history(&place, &[&v1, &v4], &["--set", "shift.cycles=none"]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    let end = history(&place, &[&v1, &v4], &[]);
    assert_eq!(changes(&end), pair("v1", "v4"));
    let first = place.at("history/runs/1");
    let (before, second): (usize, PathBuf) = (measured(&first), place.at("history/runs/2"));
    // It grows by what is new, beside the reference and a bridge.
    let end = history(&place, &[&v1, &v2, &v3, &v4], &[]);
    assert_eq!(changes(&end), pair("v2", "v3"));
    assert!(
        end.stderr
            .contains("measures v2, v3; 2 of the earlier ones beside"),
        "{}",
        end.stderr
    );
    assert_eq!(measured(&first), before);
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(
        told["drifts"].as_array().unwrap().len(),
        0,
        "{}",
        end.stdout
    );
    let page = fs::read_to_string(place.at("history/history.html")).unwrap();
    assert!(page.contains(">v3<"));
    // As if it had been interrupted in the second run.
    let all = fs::read_to_string(second.join("samples.jsonl")).unwrap();
    let kept: Vec<&str> = all.lines().collect();
    fs::write(
        second.join("samples.jsonl"),
        kept[..kept.len() - 3].join("\n") + "\n",
    )
    .unwrap();
    let file = place.at("history/history.json");
    let at = fs::read_to_string(&file).unwrap();
    let (done, open) = at.rsplit_once("\"whole\": true").unwrap();
    fs::write(&file, format!("{done}\"whole\": false{open}")).unwrap();
    let end = history(&place, &[&v1, &v4], &[]);
    assert!(
        end.stderr.contains("was interrupted: it goes on"),
        "{}",
        end.stderr
    );
    assert_eq!(changes(&end), pair("v2", "v3"));
    assert_eq!(measured(&second), kept.len());
    // Nothing new: nothing is measured.
    let end = history(&place, &[&v2, &v3], &[]);
    assert_eq!(changes(&end), pair("v2", "v3"));
    assert!(!place.at("history/runs/3").exists());
    let told = "--blocks: without effect, since nothing new is measured";
    assert!(end.stderr.contains(told), "{}", end.stderr);
    for (builds, flags, told) in [
        (
            vec![&v1, &v4],
            vec!["--set", "shift.turnover=1"],
            "is a history of other work (-w shift",
        ),
        (vec![&v1, &v1], vec![], "v1 is there twice"),
    ] {
        let end = history(&place, &builds, &flags);
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(end.stderr.contains(told), "{told}: {}", end.stderr);
    }
    let refuses = |builds: &[&String], told: &str| {
        let end = history(&place, builds, &[]);
        assert_eq!(end.code, Some(2), "{told}: {}", end.stderr);
        assert!(end.stderr.contains(told), "{told}: {}", end.stderr);
        assert!(!place.at("history/runs/3").exists(), "{told}");
    };
    let v2_from = |file: &str| format!("v2={}", place.at(file).display());
    // A library may move. What has its name must be it.
    fs::copy(place.at("v2.so"), place.at("moved.so")).unwrap();
    let end = history(&place, &[&v2_from("moved.so"), &v3], &[]);
    assert_eq!(changes(&end), pair("v2", "v3"));
    let told = "v3.so is not the library that was measured by this name";
    refuses(&[&v1, &v2_from("v3.so")], told);
    let told = "gone.so to compare with the library that was measured by this name";
    refuses(&[&v1, &v2_from("gone.so")], told);
    // So must the bridges, though nobody names them.
    let v5 = build(&place, "v5", 20);
    fs::rename(place.at("v1.so"), place.at("kept.so")).unwrap();
    refuses(&[&v4, &v5], "v1.so to compare with the library");
    fs::rename(place.at("kept.so"), place.at("v1.so")).unwrap();
    // It grows on the same machine, by the same work.
    let whole = fs::read(second.join("run.json")).unwrap();
    change_head(&second, |head| head["machine"]["c_library"] = json!("1.0"));
    refuses(&[&v1, &v5], "of a machine with c_library 1.0, here it is ");
    fs::write(second.join("run.json"), &whole).unwrap();
    change_head(&second, |head| {
        head["plan"]["cases"][0]["parameters"]["octaves"] = json!("5")
    });
    refuses(&[&v1, &v5], "octaves was 5 and is 4: other work");
    fs::write(second.join("run.json"), &whole).unwrap();
    build(&place, "v2", 7);
    let told = "v2.so is not the library that was measured by this name";
    refuses(&[&v1, &v2], told);
}

#[test]
fn a_version_without_numbers_is_measured_again_once_its_library_is_there() {
    let place = Place::new();
    let [v1, v2] = [("v1", 0), ("v2", 20)].map(|(name, pad)| build(&place, name, pad));
    let gone = format!("gone={}", place.at("gone.so").display());
    let end = history(&place, &[&v1, &gone, &v2], &[]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr.contains("gone.so: check the path"),
        "{}",
        end.stderr
    );
    assert!(!place.at("history").exists());
    // What is no library yet, and a newest version that crashes: it is the reference.
    let middle = place.at("middle.so");
    fs::write(&middle, "").unwrap();
    let middle = format!("middle={}", middle.display());
    let crasher = format!("crasher={}", place.fake("crasher").display());
    let end = history(&place, &[&v1, &middle, &v2, &crasher], &[]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    // The next one compares what has numbers with another reference.
    let end = history(&place, &[&v1, &middle, &v2, &crasher], &[]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(told["reference"], json!("v2"), "{}", end.stdout);
    assert!(place.at("history/runs/2").exists());
    // What is as before is not tried again.
    let end = history(&place, &[&v1, &middle, &v2, &crasher], &[]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert!(!place.at("history/runs/3").exists());
    build(&place, "middle", 20);
    let end = history(&place, &[&v1, &middle, &v2, &crasher], &[]);
    assert_eq!(changes(&end), [("v1".to_owned(), "middle".to_owned())]);
    // The order of what is known stands, and other files are left alone.
    let end = history(&place, &[&v2, &v1], &[]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(end.stderr.contains("v1 is older than v2"), "{}", end.stderr);
    fs::remove_file(place.at("history/history.json")).unwrap();
    let end = history(&place, &[&v1, &v2], &[]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    let told = "history has other files, and no history";
    assert!(end.stderr.contains(told), "{}", end.stderr);
}

#[test]
fn a_history_of_a_command_grows_by_runs_of_the_same_program() {
    let place = Place::new();
    let script = place.at("work");
    let write = |text: &str| {
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let library = place.fake("honest");
    let history = |names: &[&str]| {
        let word = |name: &&str| format!("{name}={}", library.display());
        let builds: Vec<String> = names.iter().map(word).collect();
        let line = ["history", "-o", "h", "-a", &builds.join(",")];
        place.run(&[&line[..], &["--blocks", "1", "--", "./work"]].concat())
    };
    write("#!/bin/sh\nexit 0\n");
    let end = history(&["v1", "v2"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    write("#!/bin/sh\nexit 0 # otherwise\n");
    let end = history(&["v1", "v2", "v3"]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    let told = "work is not what its last run executed";
    assert!(end.stderr.contains(told), "{}", end.stderr);
    assert!(!place.at("h/runs/2").exists());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_whole_c_library_is_refused_for_programs_before_it_is_fetched() {
    let home = Home::new();
    for line in [
        ["try", "-a", "glibc@2.36", "true"],
        ["check", "-a", "glibc@2.36", "--only=calloc-zero"],
        ["record", "-a", "glibc@2.36", "true"],
    ] {
        let end = home.heapmark(&line);
        let why = "glibc@2.36 is a whole C library, under which kernels and replays of traces run";
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert_eq!(end.stderr.lines().count(), 1, "{}", end.stderr);
        assert!(end.stderr.contains(why), "{}", end.stderr);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
#[ignore = "make test-all: Debian's archive replaces the pinned packages with each of its updates"]
fn another_glibc_serves_under_its_own_dynamic_linker() {
    let place = Place::new();
    let names = ["glibc@2.36", "glibc@2.41"];
    place.ready(&names);
    let of = names.join(",");
    let line = [
        "history",
        "-o",
        "h",
        "-a",
        &of,
        "-w",
        "aligned-churn",
        "--blocks",
        "3",
    ];
    let end = place.run(
        &[
            &line[..],
            &["--set", "aligned-churn.iterations=30", "--format", "json"],
        ]
        .concat(),
    );
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    let series = told["series"].as_array().unwrap();
    let peak = series
        .iter()
        .find(|it| it["metric"] == "overhead_at_peak_footprint");
    // 2.36 takes a new place for each aligned block.
    let step = &peak.unwrap()["steps"][0];
    assert_eq!(
        step["verdict"]["word"], "faster",
        "{}{}",
        end.stderr, end.stdout
    );
    assert!(step["ratio"]["ratio"].as_f64().unwrap() < 0.3, "{step}");
    let run = ["run", "-o", "run", "-a", &of, "--baseline", names[1]];
    let small: Vec<&str> = SMALL
        .into_iter()
        .filter(|flag| *flag != "--no-floor")
        .collect();
    let end = place.run(&[&run[..], &small, &["--blocks", "1"]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let served = |run: &str| {
        let samples = fs::read_to_string(place.at(run).join("samples.jsonl")).unwrap();
        let records = samples
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let proven = records.filter(|record| record["proof"].is_object());
        let pairs = proven.map(|record| {
            let owner = record["proof"]["owners"]["malloc"].as_u64().unwrap();
            let path = word(&record["proof"]["objects"][owner as usize], "path").to_owned();
            (word(&record, "allocator").to_owned(), path)
        });
        pairs.collect::<BTreeSet<(String, String)>>()
    };
    let [old, new] = names.map(|name| {
        let head = head(&place.at("run"));
        let rows = head["allocators"].as_array().unwrap().iter();
        let file = rows
            .filter(|row| row["name"] == name)
            .map(|row| row["files"][0].as_str().unwrap().to_owned());
        file.collect::<String>()
    });
    let owners = served("run");
    assert!(
        owners.contains(&(names[0].into(), old.clone())),
        "{owners:?}"
    );
    assert!(owners.contains(&(names[1].into(), new)), "{owners:?}");
    // The guest finds it before this machine's.
    let beside = Path::new(&old).with_file_name("libgcc_s.so.1");
    assert!(beside.exists(), "{beside:?}");
    // The null allocator under each, too: what differs without an allocation.
    assert!(
        owners.contains(&(format!("null ({})", names[0]), old)),
        "{owners:?}"
    );
    for told in [
        "floor: null (glibc@2.36)",
        "floor: null (glibc@2.41)",
        "more than malloc differs",
    ] {
        assert!(end.says(told), "{told}: {}", end.stdout);
    }
    // A row that has the package of another release.
    let home = Home::with_the_shared_cache();
    let ours = fs::read_to_string("../../releases/glibc.toml").unwrap();
    home.write("releases/glibc.toml", &ours.replace("\"2.36\"", "\"2.37\""));
    let line = ["run", "-a", "glibc@2.37,glibc", "--dry-run"];
    home.heapmark(&["build", "glibc@2.37"]);
    let told = "glibc@2.37: absent: it works with 2.36 here, and its row is for 2.37";
    let end = home.heapmark(&line);
    assert!(end.stderr.contains(told), "{}", end.stderr);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_history_may_be_of_a_command() {
    let place = Place::new();
    place.ready(&["mimalloc@3.2.8", "mimalloc@3.4.3"]);
    let line = ["history", "-o", "h", "-a", "mimalloc@3.2.8,mimalloc@3.4.3"];
    let history = |command: &str| {
        let flags = ["--blocks", "1", "--format", "json", "--", command];
        place.run(&[&line[..], &flags].concat())
    };
    let end = history("/no/such/program");
    assert_eq!(
        (end.code, end.stderr.lines().count()),
        (Some(2), 1),
        "{}",
        end.stderr
    );
    let end = history("/bin/true");
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(told["command"], json!(["/bin/true"]));
    let series = told["series"].as_array().unwrap();
    let time = series
        .iter()
        .find(|it| it["metric"] == "ns_per_op")
        .unwrap();
    assert_eq!(time["points"].as_array().unwrap().len(), 2, "{time}");
    let first = place.at("h/runs/1");
    let before = measured(&first);
    assert_eq!(history("/bin/true").code, Some(0));
    assert_eq!(measured(&first), before);
    let end = history("/bin/false");
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("is a history of other work (-- /bin/true)"),
        "{}",
        end.stderr
    );
}
