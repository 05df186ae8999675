//! `heapmark try --cpus-seen`: arenas follow from the CPUs that a command is told of.

use crate::support::tried::run;
use crate::support::{Place, source};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Starts threads that allocate, and counts arenas and CPUs.
fn build(place: &Place, name: &str, flag: &str) {
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-builtin", "-pthread", flag, "-o"])
        .arg(place.at(name));
    assert!(cc.arg(source("arenas_seen")).status().unwrap().success());
}

/// The different lines that the processes of a run wrote, as numbers.
fn seen(place: &Place) -> BTreeSet<Vec<u32>> {
    let text = fs::read_to_string(place.at("seen")).unwrap();
    let numbers = |line: &str| line.split(' ').map(|word| word.parse().unwrap()).collect();
    text.lines().map(numbers).collect()
}

#[test]
fn arenas_are_as_many_as_the_cpus_that_a_command_is_told_of_ask_for() {
    let place = Place::new();
    build(&place, "arenas", "-Wall");
    build(&place, "static", "-static");
    let own: Vec<u32> = {
        let words = ["0", "seen"];
        let count = Command::new(place.at("arenas"))
            .args(words)
            .current_dir(place.at(""))
            .status();
        assert!(count.unwrap().success());
        seen(&place).pop_first().unwrap()
    };
    let cpus = own[2];
    // More threads than glibc makes arenas for by the truth: eight for each CPU.
    let (told, threads) = (64.max(4 * cpus), 8 * cpus + 48);
    let (told_word, threads_word) = (told.to_string(), threads.to_string());
    let of = |flags: &[&str], words: &[&str]| {
        let _ = fs::remove_file(place.at("seen"));
        let told = ["--cpus-seen", &told_word, "--alone"];
        let words = [&["--"], words, &[&threads_word, "seen"]].concat();
        let (end, _) = run(&place, &[&told, flags, &words].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        (end.stdout, seen(&place))
    };

    let (said, seen) = of(&["-a", "glibc,jemalloc"], &["./arenas"]);
    let heading = format!("arenas {threads} seen, {told} CPUs seen");
    assert!(said.contains(&heading), "{said}");
    // By the affinity, the list of those online, glibc's two counts, and two files.
    let truth = &own[2..];
    let all_told = [told; 6];
    assert!(
        seen.iter()
            .all(|it| it[2..] == *truth || it[2..] == all_told),
        "{seen:?}"
    );
    let heaps = |is_told: bool| {
        let of_glibc = seen.iter().filter(|it| it[1] == 0);
        let heaps = of_glibc.filter(|it| (it[2..] == all_told) == is_told);
        heaps.map(|it| it[0]).collect::<Vec<_>>()
    };
    assert_eq!(heaps(false), [8 * cpus - 1], "beside the main arena");
    assert_eq!(heaps(true), [threads]);
    let arenas: BTreeSet<(u32, u32)> = seen.iter().map(|it| (it[1], it[2])).collect();
    let of_jemalloc = [(4 * cpus, cpus), (4 * told, told)];
    assert_eq!(
        arenas,
        [(0, cpus), (0, told)]
            .into_iter()
            .chain(of_jemalloc)
            .collect()
    );

    let variants = ["--variant", "one=./static", "--variant", "two=./arenas"];
    let (_, seen) = of(&variants, &[]);
    let heaps: BTreeSet<(u32, u32)> = seen.iter().map(|it| (it[0], it[2])).collect();
    assert_eq!(heaps, [(8 * cpus - 1, cpus), (threads, told)].into());
}

#[test]
fn fewer_cpus_than_there_are_and_a_second_listener_are_refused_in_a_line() {
    let place = Place::new();
    let own = std::thread::available_parallelism().unwrap().get() as u32;
    if own > 1 {
        let end = place.run(&["try", "--cpus-seen", "1", "-a", "glibc", "true"]);
        let line = format!("--cpus-seen 1: this machine has {own}, and ");
        assert!(
            end.code == Some(2) && end.stderr.contains(&line),
            "{}",
            end.stderr
        );
        assert!(!place.at("heapmark-results").exists());
    }
    let told = 64.max(own).to_string();
    let inner = format!(
        "{} try --cpus-seen {told} -a glibc true",
        env!("CARGO_BIN_EXE_heapmark")
    );
    let within = format!("{inner} 2> inner; echo $? >> inner");
    let cell = format!("outer-cpus-{told}@1/b00/glibc");
    let flags = ["--name", "outer", "--cell", &cell, "--cpus-seen", &told];
    let words = ["-a", "glibc", "--no-aa-copy", "--", "sh", "-c", &within];
    let end = place.run(&[&["try"][..], &flags, &words].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let said = fs::read_to_string(place.at("inner")).unwrap();
    let line = "--cpus-seen: the kernel does not let heapmark answer for a program";
    assert!(said.contains(line) && said.ends_with("\n2\n"), "{said}");
}
