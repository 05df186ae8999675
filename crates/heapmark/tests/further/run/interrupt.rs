//! Signals and kills: what was stored stays stored, `--resume` brings the run to the same end, and no guest outlives its
//! heapmark.

use crate::support::live::{
    complete_lines, count, finish, guests, hanging, hanging_in, is_whole, lines, many,
    processes_of, send, start, wait_for,
};
use crate::support::{End, Place, SMALL, copy_program, of_purpose, plan, samples, source, word};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

fn a_signal_stops_a_run_of_short_processes(signal: Signal, planned_blocks: &'static str) {
    let place = Place::new();
    let child = start(&place, &many(planned_blocks));
    let run = place.at("run");
    // A block is whole by then.
    wait_for("the first records", || {
        lines(&run) >= 12 && lines(&run) >= 12 + plan(&run).corners().len()
    });
    send(&child, signal);
    let end = finish(child);
    assert_eq!(end.code, Some(130), "{}", end.stderr);
    assert!(
        end.stderr.contains("heapmark run --resume run goes on"),
        "{}",
        end.stderr
    );
    assert_eq!(guests(&place), 0);
    let before = complete_lines(&run);
    let stored = samples(&run).len();
    let blocks = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("block "))
            .filter_map(|line| Some(line.split_once(':')?.0.into()))
            .collect()
    };
    let said = blocks(&end.stderr);
    let of_blocks = 2 * plan(&run).blocks as usize;
    assert!(
        stored < of_blocks,
        "it went on to its end: {stored} records"
    );

    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(complete_lines(&run).starts_with(&before));
    is_whole(&place, "run");
    let news = blocks(&end.stderr);
    assert!(
        !said.is_empty() && !news.is_empty() && news.iter().all(|block| !said.contains(block)),
        "{said:?} {news:?}"
    );
}

#[test]
fn sigint_ends_a_run_that_resume_completes() {
    a_signal_stops_a_run_of_short_processes(Signal::INT, "100");
}

#[test]
fn sigterm_ends_a_run_that_resume_completes() {
    a_signal_stops_a_run_of_short_processes(Signal::TERM, "40");
}

#[test]
fn the_end_of_the_terminal_ends_a_run_that_resume_completes() {
    a_signal_stops_a_run_of_short_processes(Signal::HUP, "40");
}

/// As `timeout` sends it: to the process, and then to its group with the process in it.
#[test]
fn a_signal_that_comes_twice_at_once_is_one_also_of_a_trial() {
    let place = Place::new();
    let flags = [
        "-o",
        "run",
        "-a",
        "glibc",
        "--blocks",
        "400",
        "--no-aa-copy",
        "--no-repeat",
        "--",
        "true",
    ];
    let child = start(&place, &[&["try"], &flags[..]].concat());
    let run = place.at("run");
    wait_for("some blocks", || lines(&run) >= 6);
    send(&child, Signal::TERM);
    send(&child, Signal::TERM);
    let end = finish(child);
    assert_eq!(end.code, Some(130), "{}", end.stderr);
    assert!(
        end.stderr.contains("heapmark run --resume run goes on"),
        "{}",
        end.stderr
    );
    assert!(
        end.stdout.contains("glibc"),
        "what was measured is shown: {}",
        end.stdout
    );
    assert_eq!(guests(&place), 0);
}

/// A program of the user's whose build sleeps in a process below the one that heapmark starts.
fn slow_build(place: &Place) -> PathBuf {
    let nap = place.at("nap");
    copy_program("/bin/sleep", &nap);
    let steps = format!(
        "[\"sh\", \"-c\", \"touch half; {} 86400; true\"]",
        nap.display()
    );
    built_by(place, &steps);
    nap
}

fn built_by(place: &Place, steps: &str) {
    let folder = place.at("config/heapmark/programs/slow");
    fs::create_dir_all(&folder).unwrap();
    let words =
        "name = \"slow\"\nabout = \"a test\"\nallocator = \"none\"\nrun = [\"sh\", \"x\"]\n";
    fs::write(
        folder.join("program.toml"),
        format!("{words}build = [{steps}]\n"),
    )
    .unwrap();
}

#[test]
fn a_signal_ends_a_build_with_what_it_has_started_and_says_what_stays() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let nap = slow_build(&place);
        let child = start(&place, &["build", "slow"]);
        wait_for("a step of the build", || processes_of(&nap) == 1);
        send(&child, signal);
        let end = finish(child);
        assert_eq!(end.code, Some(130), "{}", end.stderr);
        assert!(
            end.stderr.contains("interrupted") && end.stderr.contains("what was built stays"),
            "{}",
            end.stderr
        );
        assert_eq!(processes_of(&nap), 0);
    }
}

#[test]
fn a_killed_build_leaves_no_process_and_nothing_that_the_next_one_takes_over() {
    let place = Place::new();
    let shelf = place.at(".cache/heapmark/programs");
    let workshops = || {
        let names = fs::read_dir(&shelf).unwrap().map(|it| it.unwrap().path());
        let is_of_slow = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(".slow.building")
        };
        names.filter(is_of_slow).collect::<Vec<_>>()
    };
    let nap = slow_build(&place);
    let mut child = start(&place, &["build", "slow"]);
    wait_for("a step of the build", || processes_of(&nap) == 1);
    let left = workshops();
    assert!(left.len() == 1 && left[0].join("half").exists());
    send(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for("the end of all", || {
        processes_of(&nap) + guests(&place) == 0
    });
    // Of this test's place, or an earlier one has built it.
    let steps = format!(
        "[\"sh\", \"-c\", \"test ! -e half && touch x # {}\"]",
        nap.display()
    );
    built_by(&place, &steps);
    let end = place.run(&["build", "slow"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(workshops(), [""; 0].map(PathBuf::from));
}

/// The signal may come while heapmark stores, starts or reads rather than waits; processes too short to be waited for must
/// not let it pass.
#[test]
fn a_signal_counts_at_whatever_moment_it_comes() {
    let place = Place::new();
    let (seed, mut number) = (20_u64, 0);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    while number < 8 {
        let name = format!("run{number}");
        let mut args = many("300");
        args[2] = &name;
        let child = start(&place, &args);
        wait_for("a record", || lines(&place.at(&name)) >= 1);
        let pause = random.random_range(0..60_000);
        std::thread::sleep(Duration::from_micros(pause));
        send(&child, Signal::INT);
        let end = finish(child);
        assert_eq!(
            end.code,
            Some(130),
            "seed {seed}, run {number}, after {pause} us: {}",
            end.stderr
        );
        assert!(
            samples(&place.at(&name)).len() < 300,
            "seed {seed}, run {number}, after {pause} us"
        );
        number += 1;
    }
}

#[test]
fn a_signal_ends_a_guest_that_hangs() {
    let place = Place::new();
    let child = hanging(&place);
    send(&child, Signal::INT);
    assert_eq!(finish(child).code, Some(130));
    assert_eq!(guests(&place), 0);
    assert_eq!(
        samples(&place.at("run")).len(),
        3,
        "an interrupted process is no result"
    );
}

#[test]
fn a_killed_heapmark_takes_its_guest_along() {
    let place = Place::new();
    let mut child = hanging(&place);
    send(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for("the guest's end", || guests(&place) == 0);
}

#[test]
fn a_killed_heapmark_takes_along_what_a_library_has_sent_to_the_background() {
    let place = Place::new();
    let mut child = hanging_in(
        &place,
        &place.compile("daemon", &[source("hanger"), source("own")]),
    );
    wait_for("the helper", || guests(&place) == 3);
    send(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for("the end of all", || guests(&place) == 0);
}

#[test]
fn what_a_library_starts_ends_with_its_process_even_in_the_background() {
    for name in ["breeder", "daemon"] {
        let place = Place::new();
        let word = format!("{name}={}", place.fake(name).display());
        let flags = ["run", "-o", "run", "-a", &word, "--blocks", "2"];
        let end = finish(start(&place, &[&flags[..], &SMALL[..]].concat()));
        assert_eq!(end.code, Some(0), "{name}: {}", end.stderr);
        assert_eq!(guests(&place), 0, "{name}");
        let records = samples(&place.at("run"));
        let checks = of_purpose(&records, "check");
        let of_it = checks.iter().find(|it| it["allocator"] == name).unwrap();
        assert_eq!(of_it["measurement"]["notes"]["left_behind"], "1", "{name}");
        assert!(end.says("leaves 1 process behind"), "{}", end.stdout);
    }
}

#[test]
fn a_library_that_starts_a_helper_and_ends_its_parent_costs_its_own_cell_and_leaves_nothing() {
    let place = Place::new();
    let parricide = place.compile("parricide", &[source("daemon"), source("own")]);
    let honest = place.fake("honest");
    let word = format!(
        "parricide={},honest={}",
        parricide.display(),
        honest.display()
    );
    let flags = ["run", "-o", "run", "-a", &word, "--blocks", "2"];
    let end = finish(start(&place, &[&flags[..], &SMALL[..]].concat()));
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    assert_eq!(guests(&place), 0);
    assert_eq!(
        of_purpose(&samples(&place.at("run")), "sample").len(),
        2 * 2,
        "the others go on"
    );
}

#[test]
fn twenty_kills_lose_and_double_nothing() {
    let place = Place::new();
    let seed = 9;
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut runs, mut kills, mut fruitful) = (vec!["run0".to_string()], 0, 0);
    while kills < 20 {
        let name = runs[runs.len() - 1].as_str();
        let run = place.at(name);
        let before = complete_lines(&run);
        let mut fresh = many("80");
        fresh[2] = name;
        // A kill before there was a head leaves nothing to go on with: it starts once more.
        let args = if run.join("run.json").exists() {
            vec!["run", "--resume", name]
        } else {
            fresh
        };
        let mut child = start(&place, &args);
        let pause = Duration::from_millis(random.random_range(1..400));
        std::thread::sleep(pause);
        // However slow the machine is: every other one in the middle of its work.
        while kills % 2 == 1 && lines(&run) == count(&before) && child.try_wait().unwrap().is_none()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let at_its_end = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
        println!(
            "kill {kills} of {name} after {pause:?}: {} lines before, {} after",
            count(&before),
            lines(&run)
        );
        assert!(
            complete_lines(&run).starts_with(&before),
            "a stored line changed"
        );
        wait_for("the guest's end", || guests(&place) == 0);
        fruitful += usize::from(lines(&run) > count(&before));
        match at_its_end {
            true => runs.push(format!("run{}", runs.len())),
            false => kills += 1,
        }
    }
    assert!(fruitful > 1, "no run was taken up in its middle");
    for name in runs
        .iter()
        .filter(|name| place.at(name).join("run.json").exists())
    {
        let before = complete_lines(&place.at(name));
        let end = place.run(&["run", "--resume", name]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(
            complete_lines(&place.at(name)).starts_with(&before),
            "a stored line changed"
        );
        is_whole(&place, name);
    }
}

/// `heapmark check` of an allocator that passes and of one that hangs, ended by a signal while it waits for that one.
fn stopped_checks(place: &Place, name: &str, signal: Signal) -> (End, Value) {
    let hanging = format!("glibc,stuck={}", place.fake("hanger").display());
    let only = "free-null,free-errno,no-overlap";
    let words = ["check", "-a", &hanging, "--only", only, "--timeout", "600s"];
    let child = start(place, &[&words[..], &["-o", name]].concat());
    let file = place.at(name).join("check.json");
    let read = || -> Value {
        let text = fs::read(&file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    };
    wait_for("the second allocator", || {
        read()["allocators"].as_array().map_or(0, Vec::len) == 2
    });
    send(&child, signal);
    (finish(child), read())
}

#[test]
fn what_was_checked_survives_a_signal_and_a_kill() {
    let place = Place::new();
    let verdicts = |kept: &Value| -> Vec<String> {
        let results = kept["allocators"][0]["results"].as_array().unwrap().iter();
        results.map(|it| word(it, "verdict").to_owned()).collect()
    };
    let (end, kept) = stopped_checks(&place, "signalled", Signal::INT);
    assert_eq!(end.code, Some(130), "{}", end.stderr);
    assert_eq!(verdicts(&kept), ["pass"; 3]);
    assert_eq!(kept["unfinished"], true);
    for said in ["stopped before its end", "glibc"] {
        assert!(end.says(said), "{}", end.stdout);
    }
    assert!(place.at("signalled/check.html").is_file());
    let end = place.run(&["claims", "signalled"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(
        end.stderr.contains("stopped before its end"),
        "{}",
        end.stderr
    );

    let (end, kept) = stopped_checks(&place, "killed", Signal::KILL);
    assert_eq!(end.code, None, "{}", end.stderr);
    assert_eq!(verdicts(&kept), ["pass"; 3]);
    let end = place.run(&["report", "killed"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}
