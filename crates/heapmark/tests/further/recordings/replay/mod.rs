//! `heapmark replay` and `run -w trace:FILE` through the built binary: a trace is chosen, measured and taken up again as any other
//! workload is.

mod heap;
mod input;
mod modes;
mod operators;
mod shared;
mod wrong;

use crate::support::{End, Place, glibc_again, head, of_purpose, samples, word, words};
use heapmark_trace::{Event, Head, Token, Writer};
use serde_json::Value;
use std::fs;
use std::path::Path;

type Told = (u32, Event);

fn malloc(size: u64) -> Event {
    Event::Malloc {
        size,
        operator: false,
    }
}

fn free(thread: u32, index: u64) -> Event {
    Event::Free {
        token: Token { thread, index },
    }
}

fn write(path: &Path, events: &[Told]) {
    let mut file = fs::File::create(path).unwrap();
    let mut writer = Writer::new(&mut file, &Head::default()).unwrap();
    events
        .iter()
        .for_each(|(thread, event)| writer.write(*thread, event).unwrap());
    writer.finish().unwrap();
}

/// One thread allocates, another frees: some 4 MiB are live at a time.
fn pipeline() -> Vec<Told> {
    let mut events = vec![(0, Event::ThreadStart { child: 1 })];
    for index in 0..12_000 {
        events.push((0, malloc(16 + index * 37 % 3000)));
        if let Some(old) = index.checked_sub(3000) {
            events.push((1, free(0, old)));
        }
    }
    events.push((1, Event::ThreadExit));
    events
}

const SHORT: [&str; 4] = ["--no-aa-copy", "--no-repeat", "-o", "run"];

fn replay(place: &Place, flags: &[&str]) -> End {
    // What is played once, in recorded order or at recorded times, is made neither longer nor shorter.
    let once = flags
        .iter()
        .any(|flag| ["--retained", "memory", "paced"].contains(flag));
    let target: &[&str] = if once { &[] } else { &["--target-ms", "2"] };
    place.run(&[&["replay"], flags, target, &SHORT].concat())
}

fn numbers(record: &Value) -> (u64, u64) {
    let number = |value: &Value| value.as_u64().unwrap();
    let calls = &record["measurement"]["calls"];
    (number(&calls["malloc"]), number(&calls["free"]))
}

#[test]
fn a_trace_is_a_workload_like_any_other_and_the_floor_stands_beside_it() {
    let place = Place::new();
    place.ready(&["jemalloc"]);
    is_like_any_other(&place, &["glibc", "jemalloc"]);
}

#[test]
#[should_panic(expected = "libc served 100 %")]
fn a_trace_that_one_library_replays_under_two_names_is_noticed() {
    is_like_any_other(&Place::new(), &["glibc", &glibc_again()]);
}

fn is_like_any_other(place: &Place, allocators: &[&str]) {
    write(&place.at("pipe line.trace"), &pipeline());
    let end = replay(
        place,
        &[
            "pipe line.trace",
            "-a",
            &allocators.join(","),
            "--blocks",
            "2",
        ],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stdout.contains("trace:pipe_line") && end.stdout.contains("floor"),
        "{}",
        end.stdout
    );
    let records = samples(&place.at("run"));
    let timed = of_purpose(&records, "sample");
    assert_eq!(
        timed.len(),
        2 * 2 * (allocators.len() + 1),
        "two blocks of both cases, the null allocator among them"
    );
    for record in timed {
        let rounds = record["measurement"]["iterations"]
            .as_array()
            .unwrap()
            .len() as u64;
        assert_eq!(
            rounds > 1,
            word(record, "workload") == "trace:pipe_line-reuse",
            "{record}"
        );
        assert_eq!(
            numbers(record),
            (12_000 * rounds, 12_000 * rounds),
            "{}",
            word(record, "allocator")
        );
    }
    assert_eq!(
        of_purpose(&records, "check").len(),
        2 * allocators.len(),
        "every block was held against all others"
    );
    let rows = place.rows("run");
    assert!(
        rows.iter()
            .any(|row| row["workload"] == "trace:pipe_line" && row["threads"] == "2"),
        "{rows:?}"
    );
}

#[test]
fn what_the_program_did_once_and_what_comes_after_it_in_a_used_heap_are_rows_of_their_own() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let end = replay(&place, &["a.trace", "-a", &honest, "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for record in of_purpose(&samples(&place.at("run")), "sample") {
        let iterations = record["measurement"]["iterations"].as_array().unwrap();
        let cold = iterations
            .iter()
            .filter(|iteration| iteration["cold"] == true)
            .count();
        let first = word(record, "workload") == "trace:a";
        assert_eq!(
            (cold, iterations.len() == 1),
            (usize::from(!first), first),
            "{record}"
        );
    }
    let one_line = words(&end.stdout);
    assert!(
        one_line.contains("First rounds: ") && one_line.contains(" Later rounds: "),
        "{}",
        end.stdout
    );
    let page = |name: &str| fs::read_to_string(place.at("run").join(name)).unwrap();
    for text in [end.stdout.clone(), page("report.md"), page("report.html")] {
        assert!(
            text.contains("trace:a, 2 threads") && text.contains("trace:a-reuse, 2 threads"),
            "{text}"
        );
    }
    let rows = place.rows("run");
    let of = |name: &str| rows.iter().filter(|row| row["workload"] == name).count();
    assert_eq!(
        (of("trace:a"), of("trace:a-reuse")),
        (3, 3),
        "glibc, the fake and the floor: {rows:?}"
    );
}

#[test]
fn the_floor_has_no_page_fault_of_its_own_in_any_round_however_large_blocks_are() {
    let place = Place::new();
    // Larger than a window of the null allocator, each larger than the one before; and in a thread that comes later.
    let sizes = [1, 64, 200].map(|mib| mib << 20);
    let mut events: Vec<Told> = vec![(0, Event::ThreadStart { child: 1 })];
    for thread in 0..2 {
        events.extend(sizes.iter().map(|size| (thread, malloc(*size))));
        let token = |index| Token { thread, index };
        events.extend((0..3).map(|index| {
            (
                thread,
                Event::Touch {
                    token: token(index),
                    resident_pages: 200,
                    extent_pages: 200,
                    pages: 256,
                },
            )
        }));
        events.extend((0..3).map(|index| (thread, free(thread, index))));
    }
    events.push((1, Event::ThreadExit));
    write(&place.at("large.trace"), &events);
    let end = replay(&place, &["large.trace", "-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let floors: Vec<&Value> = of_purpose(&records, "sample")
        .into_iter()
        .filter(|record| word(record, "allocator") == "null")
        .collect();
    assert_eq!(floors.len(), 2, "of first rounds and of later ones");
    for iteration in floors
        .iter()
        .flat_map(|record| record["measurement"]["iterations"].as_array().unwrap())
    {
        let faults = iteration["minor_faults"].as_u64().unwrap();
        // Stacks and thread-local variables have some; a block of 1 MiB that is mapped anew has 256.
        assert!(faults < 100, "{iteration}");
    }
}

#[test]
fn what_a_replay_asks_of_the_kernel_is_counted() {
    let place = Place::new();
    // Above what glibc keeps in its heap: each block is a mapping of its own.
    let events: Vec<Told> = (0..50)
        .flat_map(|index| [(0, malloc(64 << 20)), (0, free(0, index))])
        .collect();
    write(&place.at("a.trace"), &events);
    let flags = [
        "a.trace",
        "-a",
        "glibc",
        "--counter",
        "kernel",
        "--blocks",
        "1",
        "--no-floor",
        "--touch",
        "none",
    ];
    let end = replay(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stdout.contains("munmap") && end.stdout.contains("madvise"),
        "{}",
        end.stdout
    );
    let records = samples(&place.at("run"));
    let figures = &of_purpose(&records, "count")[0]["measurement"]["figures"];
    for call in ["mmap_per_operation", "munmap_per_operation"] {
        let each = figures[call].as_f64().unwrap();
        assert!(
            (0.5..0.6).contains(&each),
            "one for each block, and some for a stack: {call} {each}"
        );
    }
}

#[test]
fn more_threads_than_cpus_are_said_and_one_alone_is_not() {
    let place = Place::new();
    let threads = std::thread::available_parallelism().unwrap().get() as u32;
    let mut events: Vec<Told> = (1..=threads)
        .map(|child| (0, Event::ThreadStart { child }))
        .collect();
    for thread in 0..=threads {
        events.extend([(thread, malloc(100)), (thread, free(thread, 0))]);
    }
    events.extend((1..=threads).map(|thread| (thread, Event::ThreadExit)));
    write(&place.at("crowd.trace"), &events);
    write(
        &place.at("alone.trace"),
        &[(0, malloc(100)), (0, free(0, 0))],
    );
    let end = replay(
        &place,
        &["crowd.trace", "alone.trace", "-a", "glibc", "--blocks", "1"],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let heading = |name: &str| {
        end.stdout
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        heading("trace:crowd").ends_with(&format!("{} threads (oversubscribed)", threads + 1)),
        "{}",
        end.stdout
    );
    assert!(
        heading("trace:alone").ends_with("1 thread"),
        "{}",
        end.stdout
    );
    assert!(
        place.full("run").contains("the scheduler is measured too"),
        "{}",
        end.stdout
    );
}

#[test]
fn a_thread_of_the_last_number_is_one_thread_and_not_65535() {
    let place = Place::new();
    let last = heapmark_trace::MOST_THREADS - 1;
    write(
        &place.at("gap.trace"),
        &[
            (0, malloc(100)),
            (last, malloc(100)),
            (last, free(0, 0)),
            (0, free(last, 0)),
        ],
    );
    let end = replay(&place, &["gap.trace", "-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for record in of_purpose(&records, "sample")
        .into_iter()
        .chain(of_purpose(&records, "check"))
    {
        assert_eq!(record["threads"], 2, "{record}");
        let (allocated, freed) = numbers(record);
        assert!(
            allocated == freed && allocated.is_multiple_of(2),
            "{record}"
        );
    }
}

#[test]
fn a_compiled_trace_that_the_disk_has_no_room_for_is_refused_before_it_fills_it() {
    let place = Place::new();
    let events: Vec<Told> = (0..300_000)
        .flat_map(|index| [(0, malloc(8)), (0, free(0, index))])
        .collect();
    write(&place.at("long.trace"), &events);
    fs::create_dir(place.at("small")).unwrap();
    let small =
        "mount -t tmpfs -o size=2m none small && exec \"$0\" replay long.trace -a glibc -o run";
    let mut command = std::process::Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", small, env!("CARGO_BIN_EXE_heapmark")])
        .current_dir(place.at("."));
    let end = End::of(
        command
            .env("HEAPMARK_CACHE", place.at("small/cache"))
            .output()
            .unwrap(),
    );
    // Not every system lets users mount.
    if ["unshare:", "mount:"]
        .iter()
        .any(|tool| end.stderr.starts_with(tool))
    {
        return;
    }
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("its compiled trace takes some 4 MiB, and 1 MiB are free where"),
        "{}",
        end.stderr
    );
    assert!(
        end.stderr.lines().count() == 1 && !place.at("run").exists(),
        "{}",
        end.stderr
    );
}

#[test]
fn how_large_a_large_score_gets_is_said_before_it_is_compiled() {
    let place = Place::new();
    write(
        &place.at("one.trace"),
        &vec![(0, Event::FreeNull); 1_000_000],
    );
    let one = fs::read(place.at("one.trace")).unwrap();
    // A chunk has a header of 48 bytes, in which the length of what follows stands at byte 32.
    let length =
        |at: usize| 48 + u32::from_le_bytes(one[at + 32..at + 36].try_into().unwrap()) as usize;
    let events = 40 + length(40);
    let chunk = &one[events..events + length(events)];
    fs::write(
        place.at("many.trace"),
        [&one[..events], &chunk.repeat(140)].concat(),
    )
    .unwrap();
    let end = replay(&place, &["many.trace", "-a", "glibc"]);
    let said: Vec<&str> = end.stderr.lines().collect();
    assert!(
        said[0].starts_with("trace:many: compiling it, some 1.0"),
        "{}",
        end.stderr
    );
    // And then what is wrong with it.
    assert!(
        end.code == Some(6) && said[1].contains("chunk 1 stands where chunk 2 must"),
        "{}",
        end.stderr
    );
}

#[test]
fn a_paced_replay_that_would_last_for_years_is_refused_before_it_begins() {
    let place = Place::new();
    let years = |years: u64| Event::Clock {
        ns: years * 31_557_600 * 1_000_000_000,
    };
    write(
        &place.at("long.trace"),
        &[(0, malloc(8)), (0, years(73)), (0, free(0, 0))],
    );
    let end = replay(&place, &["long.trace", "-a", "glibc", "--mode", "paced"]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    let said = "trace:long: at pace 1 a process lasts 73.0 years, and it may take 10.0 minutes: choose a greater pace";
    assert!(
        end.stderr.contains(said) && end.stderr.lines().count() == 1,
        "{}",
        end.stderr
    );
    assert!(!place.at("run").exists());
    write(
        &place.at("short.trace"),
        &[
            (0, malloc(8)),
            (0, Event::Clock { ns: 1_000_000_000 }),
            (0, free(0, 0)),
        ],
    );
    let end = replay(
        &place,
        &[
            "short.trace",
            "-a",
            "glibc",
            "--mode",
            "paced",
            "--pace",
            "10",
            "--blocks",
            "1",
        ],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stderr
            .contains("trace:short: at pace 10 a process lasts 0.100 s"),
        "{}",
        end.stderr
    );
}

#[test]
fn two_traces_of_one_name_are_told_apart_and_one_given_twice_is_one() {
    let place = Place::new();
    fs::create_dir(place.at("old")).unwrap();
    write(&place.at("a.trace"), &pipeline());
    write(&place.at("old/a.trace"), &[(0, malloc(1))]);
    let plan = |traces: &[&str]| {
        let end = place.run(
            &[
                &["replay"],
                traces,
                &["-a", "glibc", "--dry-run", "--cells", "--blocks", "1"],
            ]
            .concat(),
        );
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let cells = end
            .stdout
            .lines()
            .filter(|line| line.ends_with(|c: char| c.is_ascii_digit()) && line.contains("/b00/"));
        let names: std::collections::BTreeSet<String> = cells
            .map(|line| line.split('@').next().unwrap().to_owned())
            .collect();
        names
    };
    assert_eq!(
        plan(&["a.trace", "./a.trace"])
            .into_iter()
            .collect::<Vec<_>>(),
        ["trace:a", "trace:a-reuse"]
    );
    write(&place.at("a-reuse.trace"), &[(0, malloc(2))]);
    assert_eq!(
        plan(&["a.trace", "a-reuse.trace"]).len(),
        4,
        "a name that another one's later rounds would have"
    );
    let both = plan(&["a.trace", "old/a.trace"]);
    assert!(
        both.len() == 4 && both.iter().all(|name| name.starts_with("trace:a-")),
        "{both:?}"
    );
}

#[test]
fn a_run_of_a_trace_is_taken_up_again_with_that_trace_only() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let end = place.run_with_own_cache(
        &[
            &["replay", "a.trace", "-a", "glibc", "--blocks", "2"],
            &SHORT[..],
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // As if it had been interrupted: the last line is gone, and so is the compiled trace.
    let file = place.at("run/samples.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let whole = text.lines().count();
    let cut: Vec<&str> = text.lines().take(whole - 1).collect();
    fs::write(&file, cut.join("\n") + "\n").unwrap();
    let compiled = head(&place.at("run"))["plan"]["cases"][0]["parameters"]["compiled"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::write(&compiled, "damaged").unwrap();
    let again = place.run_with_own_cache(&["run", "--resume", "run"]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    // The part of that process was run again as a whole.
    let cell = |line: &str| -> String {
        let record: Value = serde_json::from_str(line).unwrap();
        word(&record, "cell").to_owned()
    };
    let part = |line: &str| cell(line).rsplit_once('/').map(|(part, _)| part.to_owned());
    let last = part(text.lines().last().unwrap());
    let part = text.lines().filter(|line| part(line) == last).count();
    let lines = fs::read_to_string(&file).unwrap().lines().count();
    assert!(
        part > 1 && lines == whole - 1 + part,
        "{part}, {lines} of {whole}"
    );
    write(&place.at("a.trace"), &[(0, malloc(1))]);
    let other = place.run_with_own_cache(&["run", "--resume", "run"]);
    assert_eq!(other.code, Some(1));
    assert!(
        other
            .stderr
            .contains("is not the trace that this run began with"),
        "{}",
        other.stderr
    );
    fs::remove_file(place.at("a.trace")).unwrap();
    let gone = place.run_with_own_cache(&["run", "--resume", "run"]);
    assert!(
        gone.stderr.contains("this run replays a trace") && gone.stderr.lines().count() == 1,
        "{}",
        gone.stderr
    );
}

#[test]
fn a_replay_in_an_aged_heap_makes_the_calls_of_the_fresh_one() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let end = replay(
        &place,
        &["a.trace", "--age", "25", "-a", "glibc", "--blocks", "1"],
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let of = |name: &str| {
        let mut timed = of_purpose(&records, "sample").into_iter();
        let found = timed.find(|record| word(record, "workload") == name);
        found.unwrap_or_else(|| panic!("{name}: {}", end.stdout))
    };
    let [fresh, aged] = ["trace:a", "trace:a-aged"].map(of);
    assert_eq!(numbers(fresh), numbers(aged));
    let figures = |record: &Value| record["measurement"]["figures"].clone();
    assert_eq!(figures(fresh)["litter_live_bytes"].as_f64(), None);
    // A quarter of the least that ages a heap, less a block or two of each thread.
    let live = figures(aged)["litter_live_bytes"].as_f64().unwrap();
    assert!((8.0e6..8.8e6).contains(&live), "{live}");
}
