//! `scripts/make-pack.py`: traces of installed programs, without a word about the machine.

use crate::support::{End, Place, of_purpose, repository, samples, word};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::Command;

/// The script, with nothing in `PATH` but these programs.
fn with_only(place: &Place, programs: &[&str], arguments: &[&str]) -> End {
    let folder = place.at("bin");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    for program in programs {
        let file = ["/usr/bin", "/bin"].map(|it| std::path::Path::new(it).join(program));
        let file = file.iter().find(|it| it.is_file()).unwrap();
        symlink(file, folder.join(program)).unwrap();
    }
    let mut command = make_pack(place, arguments);
    End::of(command.env("PATH", folder).output().unwrap())
}

fn make_pack(place: &Place, arguments: &[&str]) -> Command {
    let heapmark = place.heapmark(&[]);
    let mut script = Command::new("/usr/bin/python3");
    script
        .arg(repository().join("scripts/make-pack.py"))
        .args(["-o", "pack"])
        .args(arguments)
        .env_clear()
        .envs(
            heapmark
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("HEAPMARK", heapmark.get_program())
        .current_dir(place.at("."));
    script
}

#[test]
fn a_trace_of_the_pack_is_sound_and_names_no_folder() {
    let place = Place::new();
    let end = with_only(&place, &["python3", "sh"], &["python-json"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let trace = "pack/python-json.trace";
    let checked = place.run(&["trace", "check", trace]);
    assert_eq!(
        checked.code,
        Some(0),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
    let stats = place.run(&["trace", "stats", "--to", "json", trace]);
    let stats: serde_json::Value = serde_json::from_str(&stats.stdout).unwrap();
    assert!(
        stats["events"]
            .as_u64()
            .is_some_and(|events| events >= 300_000)
    );
    let head = stats["head"].as_object().unwrap();
    assert_eq!(head["real-program"], "python-json");
    assert_eq!(head["argv.1"], "work.py");
    for (key, value) in head {
        let value = value.as_str().unwrap();
        assert!(
            !value.contains("/tmp") && !value.contains("heapmark"),
            "{key}={value}"
        );
    }
    for unwanted in [
        "exe",
        "pid",
        "kernel",
        "cpu",
        "started-unix-ns",
        "allocator",
    ] {
        assert!(!head.contains_key(unwanted), "{unwanted}");
    }
    let table = std::fs::read_to_string(place.at("pack/README.md")).unwrap();
    assert!(table.contains("| python-json | python3 "), "{table}");
    let row = table
        .lines()
        .find(|line| line.starts_with("| python-json |"));
    let columns: Vec<&str> = row.unwrap().split(" | ").collect();
    // Beside the peak is a packing, which cannot be smaller and need not be much larger.
    let (_, packed) = columns[7].split_once('(').unwrap();
    let packed: f64 = packed.trim_end_matches("x)").parse().unwrap();
    assert!((1.0..1.5).contains(&packed), "{table}");
}

#[test]
fn programs_that_are_not_there_are_named_with_their_packages() {
    let place = Place::new();
    let end = with_only(&place, &["sh"], &["perl-hash", "z3-solve"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("not installed: perl-hash, z3-solve; apt-get install perl python3 z3\n"),
        "{}",
        end.stderr
    );
    assert!(end.stderr.contains("no program is installed"));
    assert!(!place.at("pack").exists());
}

#[test]
fn a_program_that_fails_leaves_no_trace() {
    let place = Place::new();
    let (bin, fake) = (place.at("bin"), place.at("bin/perl"));
    std::fs::create_dir(&bin).unwrap();
    // It generates nothing, and fails.
    symlink("/bin/false", fake).unwrap();
    let end = End::of(
        make_pack(&place, &["perl-hash"])
            .env("PATH", bin)
            .output()
            .unwrap(),
    );
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    assert!(end.stderr.contains("perl-hash: not made: "));
    assert!(!place.at("pack/perl-hash.trace").exists());
    assert!(!place.at("pack/README.md").exists());
}

#[test]
fn unknown_names_and_programs_outside_the_pack_are_refused() {
    let place = Place::new();
    for name in ["perl-hahs", "dot-layout"] {
        let end = End::of(make_pack(&place, &[name]).output().unwrap());
        assert_eq!(end.code, Some(2));
        let says = format!("{name} is no program of the pack: cc1plus-templates, ");
        assert!(end.stderr.contains(&says), "{}", end.stderr);
    }
}

#[test]
fn the_examples_in_the_script_hold() {
    let script = repository().join("scripts/make-pack.py");
    let mut python = Command::new("/usr/bin/python3");
    let end = python.args(["-B", "-m", "doctest"]).arg(script).output();
    let end = End::of(end.unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stdout);
}

/// One of a single thread, and one of several: their order is the recorded one, whatever the machine does meanwhile.
#[test]
fn a_trace_of_the_pack_replays_twice_with_the_same_calls_and_the_same_demand() {
    replays_twice(&["trace:jq-group", "trace:clustalo-align"]);
}

#[test]
#[ignore = "make test-all"]
fn so_does_that_of_a_server_with_many_threads() {
    replays_twice(&["trace:mariadb-orders"]);
}

fn replays_twice(names: &[&str]) {
    let place = Place::new();
    let chosen = names.join(",");
    let flags = [
        "run",
        "-w",
        &chosen,
        "-a",
        "glibc",
        "--retained",
        "--blocks",
        "2",
    ];
    let end = place.run(&[&flags[..], &["-o", "run"]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let followed = of_purpose(&records, "memory");
    for name in names {
        let mut told = BTreeMap::<u64, Vec<_>>::new();
        for one in followed.iter().filter(|one| word(one, "workload") == *name) {
            let calls = one["measurement"]["calls"].clone();
            assert!(calls["malloc"].as_u64() > Some(10_000), "{name}: {calls}");
            let demand = one["memory"]["peak_demand"]["live_bytes"].clone();
            let threads = one["threads"].as_u64().unwrap();
            told.entry(threads).or_default().push((calls, demand));
        }
        assert!(!told.is_empty(), "{name}");
        for (threads, told) in told {
            assert_eq!(told.len(), 2, "{name} with {threads} threads");
            assert_eq!(told[0], told[1], "{name} with {threads} threads");
        }
    }
}
