//! `heapmark replay` and `run -w trace:FILE` through the built binary: real allocators, allocators that go wrong, traces that are
//! not there or not what they were.

mod support;

use heapmark::trace::{Event, Head, Token, Writer};
use serde_json::Value;
use std::fs;
use std::path::Path;
use support::{End, Place, head, of_purpose, samples, word};

type Told = (u32, Event);

fn malloc(size: u64) -> Event {
    Event::Malloc { size, operator: false }
}

fn free(thread: u32, index: u64) -> Event {
    Event::Free { token: Token { thread, index } }
}

fn write(path: &Path, events: &[Told]) {
    let mut writer = Writer::new(fs::File::create(path).unwrap(), &Head::default()).unwrap();
    events.iter().for_each(|(thread, event)| writer.write(*thread, event).unwrap());
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

const SHORT: [&str; 6] = ["--target-ms", "2", "--no-shadow", "--no-repeat", "-o", "run"];

fn replay(place: &Place, flags: &[&str]) -> End {
    place.run(&[&["replay"], flags, &SHORT].concat())
}

/// Scores of equal traces are one file: whoever damages it must be alone.
fn with_own_cache(place: &Place, args: &[&str]) -> End {
    End::of(place.heapmark(args).env("HEAPMARK_CACHE", place.at("cache")).output().unwrap())
}

fn numbers(record: &Value) -> (u64, u64) {
    let number = |value: &Value| value.as_u64().unwrap();
    let calls = &record["measurement"]["calls"];
    (number(&calls["malloc"]), number(&calls["free"]))
}

#[test]
fn a_trace_is_a_workload_like_any_other_and_the_floor_stands_beside_it() {
    let place = Place::new();
    write(&place.at("pipe line.trace"), &pipeline());
    let allocators = place.ready(&["glibc", "jemalloc"]);
    let end = replay(&place, &["pipe line.trace", "-a", &allocators.join(","), "--blocks", "2"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("trace:pipe_line") && end.stdout.contains("floor"), "{}", end.stdout);
    let records = samples(&place.at("run"));
    let timed = of_purpose(&records, "sample");
    assert_eq!(timed.len(), 2 * (allocators.len() + 1), "two blocks, the null allocator among them");
    for record in timed {
        let rounds = record["measurement"]["iterations"].as_array().unwrap().len() as u64;
        assert_eq!(numbers(record), (12_000 * rounds, 12_000 * rounds), "{}", word(record, "allocator"));
    }
    assert_eq!(of_purpose(&records, "check").len(), allocators.len(), "every block was held against all others");
    let rows = place.rows("run");
    assert!(rows.iter().any(|row| row["workload"] == "trace:pipe_line" && row["threads"] == "2"), "{rows:?}");
}

#[test]
fn in_strict_order_memory_repeats_within_a_page_for_each_thread() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let end = replay(&place, &["a.trace", "-a", "glibc", "--mode", "memory", "--blocks", "5"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("internal") && end.stdout.contains("external"), "{}", end.stdout);
    let records = samples(&place.at("run"));
    let (followed, alone): (Vec<&Value>, Vec<&Value>) =
        of_purpose(&records, "memory").into_iter().partition(|record| record["threads"] == 2);
    assert_eq!((followed.len(), alone.len()), (5, 5));
    let course = |record: &Value, moment: &str, what: &str| record["course"][moment][what].as_u64().unwrap();
    for moment in ["peak_demand", "peak_footprint"] {
        let held: Vec<u64> = followed.iter().map(|record| course(record, moment, "heap_bytes")).collect();
        let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
        assert!(*least > 3 << 20 && most - least <= 2 * 4096, "{moment}: {held:?}");
    }
    let live: Vec<u64> = followed.iter().map(|record| course(record, "peak_demand", "live_bytes")).collect();
    let by_one: Vec<u64> = alone.iter().map(|record| course(record, "peak_demand", "live_bytes")).collect();
    assert_eq!(by_one, live, "one thread makes the same calls in the same order");
    // The largest sum of sizes over any 3000 or 3001 blocks in a row, as threads took turns.
    assert!(live.iter().all(|bytes| *bytes == live[0] && (4_000_000..5_000_000).contains(bytes)), "{live:?}");
    for record in followed {
        let usable = course(record, "at_peak", "usable_bytes");
        assert!(live[0] < usable && usable < live[0] + live[0] / 20, "{usable}");
        let series = fs::read_to_string(place.at("run/series/trace:a@2_b00_glibc.csv")).unwrap();
        assert!(series.lines().next().unwrap().ends_with(",allocated_bytes"), "{series}");
        assert!(series.lines().count() > 15, "one point for each MiB: {series}");
    }
    assert!(place.rows("run").is_empty(), "no time of such a run is a result");
}

/// Each of four threads takes 4 MiB, frees all but the last block, and looks on while the next one does.
fn in_turn() -> Vec<Told> {
    let mut events: Vec<Told> = (1..4).map(|child| (0, Event::ThreadStart { child })).collect();
    for thread in 0..4 {
        events.extend((0..4096).map(|_| (thread, malloc(1016))));
        events.extend((0..4095).map(|index| (thread, free(thread, index))));
    }
    events
}

#[test]
fn what_heaps_of_several_threads_keep_from_each_other_is_blow_up() {
    let place = Place::new();
    write(&place.at("a.trace"), &in_turn());
    let end = replay(&place, &["a.trace", "-a", "glibc", "--retained", "--blocks", "2"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("trace:a, 4 threads") && end.stdout.contains("trace:a, 1 thread"), "{}", end.stdout);
    assert!(end.stdout.contains("One thread makes the calls of all 4"), "{}", end.stdout);
    let exported = place.run(&["export", "run", "--to", "json", "-o", "-"]);
    let json: Value = serde_json::from_str(&exported.stdout).unwrap();
    let rows = |case: usize| &json["analysis"]["footprints"][case]["rows"][0]["footprints"];
    // Each of glibc's threads has an arena, and gives nothing back before its last block.
    let blow_up = rows(0)["blow_up"]["median"].as_f64().unwrap();
    assert!((2.5..4.5).contains(&blow_up), "{blow_up}");
    assert_eq!(rows(1)["blow_up"], Value::Null, "one thread has none");
    let records = samples(&place.at("run"));
    assert_eq!(of_purpose(&records, "check").len(), 2, "both are checked, and proven: {records:?}");
    // A run that is taken up again knows which case is which.
    let again = place.run(&["run", "--resume", "run"]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    assert_eq!(samples(&place.at("run")).len(), records.len());
}

#[test]
fn paced_replays_take_as_long_as_they_were_recorded() {
    let place = Place::new();
    let mut events: Vec<Told> = vec![(0, Event::Clock { ns: 1_000 }), (0, malloc(10))];
    events.extend([(0, Event::Clock { ns: 4_000_000_000 }), (0, free(0, 0))]);
    write(&place.at("a.trace"), &events);
    let paced = |name: &str, pace: &str| -> u64 {
        let flags =
            ["replay", "a.trace", "-a", "glibc", "--mode", "paced", "--pace", pace, "--blocks", "1", "-o", name];
        let end = place.run(&[&flags[..], &["--no-floor"]].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        assert!(end.stdout.contains("Threads sleep until the recorded times"), "{}", end.stdout);
        let records = samples(&place.at(name));
        of_purpose(&records, "sample")[0]["measurement"]["iterations"][0]["wall_ns"].as_u64().unwrap()
    };
    // A replay never comes too early.
    assert!(paced("one", "1") >= 4_000_000_000);
    // And seconds too late on no machine.
    assert!((100_000_000..4_000_000_000).contains(&paced("fast", "40")));
}

#[test]
fn what_is_held_for_half_of_the_time_is_half_of_the_mean_footprint() {
    let place = Place::new();
    let at = |ms: u64| (0, Event::Clock { ns: ms * 1_000_000 });
    let events = [at(1), (0, malloc(64 << 20)), at(1000), (0, free(0, 0)), (0, malloc(8)), at(2000), (0, free(0, 1))];
    write(&place.at("a.trace"), &events);
    let flags = ["a.trace", "-a", "glibc", "--mode", "paced", "--series", "1ms", "--blocks", "1", "--no-floor"];
    let end = replay(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("mean footprint") && end.stdout.contains("GiB*s"), "{}", end.stdout);
    let row = &place.rows("run")[0];
    let number = |name: &str| row[name].parse::<f64>().unwrap();
    let mib = number("mean_footprint_bytes") / f64::from(1 << 20);
    // Off by as much as a busy machine comes late with the free, of what is held or of the rest.
    assert!((20.0..44.0).contains(&mib), "{mib}");
    let records = samples(&place.at("run"));
    let sample = of_purpose(&records, "sample")[0];
    let wall_ns = sample["measurement"]["iterations"][0]["wall_ns"].as_u64().unwrap();
    assert!(wall_ns >= 2_000_000_000);
    let gib_seconds = mib / 1024.0 * wall_ns as f64 / 1e9;
    assert!((number("gib_seconds") / gib_seconds - 1.0).abs() < 1e-9, "{row:?}");
    assert!(sample["mean_heap"]["looks"].as_u64().unwrap() > 100, "{sample}");
}

#[test]
fn what_a_replay_asks_of_the_kernel_is_counted() {
    let place = Place::new();
    // Above what glibc keeps in its heap: each block is a mapping of its own.
    let events: Vec<Told> = (0..50).flat_map(|index| [(0, malloc(64 << 20)), (0, free(0, index))]).collect();
    write(&place.at("a.trace"), &events);
    let flags = ["a.trace", "-a", "glibc", "--counter", "kernel", "--blocks", "1", "--no-floor", "--touch", "none"];
    let end = replay(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("munmap") && end.stdout.contains("madvise"), "{}", end.stdout);
    let records = samples(&place.at("run"));
    let figures = &of_purpose(&records, "count")[0]["measurement"]["figures"];
    for call in ["mmap_per_operation", "munmap_per_operation"] {
        let each = figures[call].as_f64().unwrap();
        assert!((0.5..0.6).contains(&each), "one for each block, and some for a stack: {call} {each}");
    }
}

#[test]
fn allocators_that_go_wrong_are_caught_with_the_place_in_the_trace() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let outcome = |fake: &str, flags: &[&str]| {
        let allocators = format!("{fake}={}", place.fake(fake).display());
        let name = format!("run-{fake}");
        let fixed = ["-a", &allocators, "--blocks", "1", "--target-ms", "2", "--no-floor", "-o", &name];
        let end = place.run(&[&["replay", "a.trace"], &fixed[..], flags].concat());
        assert_eq!(end.code, Some(4), "{fake}: {}{}", end.stdout, end.stderr);
        let records = samples(&place.at(&name));
        let own = records.iter().find(|record| word(record, "allocator") == fake && record["outcome"]["kind"] != "ok");
        own.unwrap_or_else(|| panic!("{fake}: {}", end.stderr))["outcome"].clone()
    };
    let told = |outcome: &Value| outcome.to_string();
    let starver = told(&outcome("starver", &[]));
    assert!(starver.contains("oom") && starver.contains("of thread 0, its allocation"), "{starver}");
    assert!(told(&outcome("overlapper", &[])).contains("overlaps a live block"));
    assert!(told(&outcome("misaligner", &[])).contains("not aligned"));
    let crasher = told(&outcome("crasher", &[]));
    assert!(crasher.contains("crash") && crasher.contains("at its operation"), "{crasher}");
    let hanger = told(&outcome("hanger", &["--timeout", "2"]));
    assert!(hanger.contains("hang") && hanger.contains("thread 0 at its operation"), "{hanger}");
    assert!(hanger.contains("thread 1 at its operation") && hanger.contains(", waits for thread 0"), "{hanger}");
    let killed = told(&outcome("killed", &[]));
    assert!(killed.contains("oom") && killed.contains("for lack of memory (thread 0 at its operation"), "{killed}");
}

#[test]
fn traces_that_are_missing_damaged_or_empty_are_one_line() {
    let place = Place::new();
    write(&place.at("empty.trace"), &[]);
    write(&place.at("good.trace"), &pipeline());
    let mut bytes = fs::read(place.at("good.trace")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(place.at("flipped.trace"), &bytes).unwrap();
    fs::write(place.at("short.trace"), &bytes[..middle]).unwrap();
    fs::write(place.at("other.trace"), "no trace").unwrap();
    fs::create_dir(place.at("folder.trace")).unwrap();
    let dead = [(0, malloc(1)), (0, free(0, 0)), (0, free(0, 0))];
    write(&place.at("dead.trace"), &dead);
    let cases = [
        ("gone.trace", "no such trace"),
        ("empty.trace", "no call that could be replayed"),
        ("flipped.trace", "checksum"),
        ("short.trace", "ends"),
        ("other.trace", "cannot be replayed"),
        ("folder.trace", "cannot read"),
        ("dead.trace", "event 2"),
    ];
    for (name, what) in cases {
        for args in [vec!["replay", name], vec!["run", "-w", &format!("trace:{name}")]] {
            let end = with_own_cache(&place, &[&args[..], &["-a", "glibc", "-o", "no-run"]].concat());
            assert!(matches!(end.code, Some(1 | 2)), "{name}: {:?} {}", end.code, end.stderr);
            assert!(end.stderr.contains(what) && end.stderr.contains(name), "{name}: {}", end.stderr);
            assert_eq!(end.stderr.lines().count(), 1, "{name}: {}", end.stderr);
        }
    }
    let left_over = fs::read_dir(place.at("cache/scores")).unwrap().count();
    assert_eq!(left_over, 0, "nothing half compiled stays");
}

#[test]
fn a_library_that_is_missing_or_made_for_another_machine_is_said_and_the_others_are_measured() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let mut bytes = fs::read(place.fake("honest")).unwrap();
    // The low byte of e_machine: PowerPC.
    bytes[18] = 20;
    fs::write(place.at("libforeign.so"), bytes).unwrap();
    let end = replay(&place, &["a.trace", "-a", "glibc,gone=./gone.so,foreign=./libforeign.so", "--blocks", "1"]);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    for why in ["gone.so: there is no such file", "made for PowerPc (64 bit)"] {
        assert!(end.stdout.contains(why), "{}", end.stdout);
    }
    let records = samples(&place.at("run"));
    let is_numbered = |name: &str| records.iter().any(|it| it["allocator"] == name && !it["measurement"].is_null());
    assert_eq!(["glibc", "gone", "foreign"].map(is_numbered), [true, false, false]);
}

#[test]
fn more_threads_than_cpus_are_said_and_one_alone_is_not() {
    let place = Place::new();
    let threads = std::thread::available_parallelism().unwrap().get() as u32;
    let mut events: Vec<Told> = (1..=threads).map(|child| (0, Event::ThreadStart { child })).collect();
    for thread in 0..=threads {
        events.extend([(thread, malloc(100)), (thread, free(thread, 0))]);
    }
    events.extend((1..=threads).map(|thread| (thread, Event::ThreadExit)));
    write(&place.at("crowd.trace"), &events);
    write(&place.at("alone.trace"), &[(0, malloc(100)), (0, free(0, 0))]);
    let end = replay(&place, &["crowd.trace", "alone.trace", "-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let heading = |name: &str| end.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(heading("trace:crowd").ends_with(&format!("{} threads (oversubscribed)", threads + 1)), "{}", end.stdout);
    assert!(heading("trace:alone").ends_with("1 thread"), "{}", end.stdout);
    assert!(end.stdout.contains("the scheduler is measured too"), "{}", end.stdout);
}

#[test]
fn a_trace_that_needs_more_memory_than_there_is_is_not_begun() {
    let place = Place::new();
    write(&place.at("a.trace"), &[(0, malloc(8)), (0, malloc(1 << 46)), (0, free(0, 1))]);
    let end = replay(&place, &["a.trace", "-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    assert!(end.stderr.contains("glibc: unsupported: needs about 67108864 MiB, "), "{}", end.stderr);
}

#[test]
fn flags_that_make_no_sense_are_usage() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let error = |flags: &[&str]| {
        let end = place.run(&[&["run", "-w", "trace:a.trace", "-a", "glibc"], flags].concat());
        assert_eq!(end.code, Some(2), "{flags:?}: {}", end.stderr);
        end.stderr
    };
    assert!(error(&["--set", "trace:a.mode=memory"]).contains("add --retained"));
    assert!(error(&["--set", "trace:a.mode=fast"]).contains("speed or memory or paced"));
    assert!(error(&["--set", "trace:a.skew=1"]).contains("4096 at least"));
    assert!(error(&["--set", "trace:a.mode=paced"]).contains("tells no times"));
    assert!(error(&["--set", "trace:a.sha256=x"]).contains("expected"));
    assert_eq!(place.run(&["replay"]).code, Some(2));
    assert_eq!(place.run(&["replay", "a.trace", "--mode", "quick"]).code, Some(2));
}

#[test]
fn two_traces_of_one_name_are_told_apart_and_one_given_twice_is_one() {
    let place = Place::new();
    fs::create_dir(place.at("old")).unwrap();
    write(&place.at("a.trace"), &pipeline());
    write(&place.at("old/a.trace"), &[(0, malloc(1))]);
    let plan = |traces: &[&str]| {
        let end = place.run(&[&["replay"], traces, &["-a", "glibc", "--dry-run", "--blocks", "1"]].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let cells =
            end.stdout.lines().filter(|line| line.ends_with(|c: char| c.is_ascii_digit()) && line.contains("/b00/"));
        let names: std::collections::BTreeSet<String> =
            cells.map(|line| line.split('@').next().unwrap().to_owned()).collect();
        names
    };
    assert_eq!(plan(&["a.trace", "./a.trace"]).into_iter().collect::<Vec<_>>(), ["trace:a"]);
    let both = plan(&["a.trace", "old/a.trace"]);
    assert!(both.len() == 2 && both.iter().all(|name| name.starts_with("trace:a-")), "{both:?}");
}

#[test]
fn a_run_of_a_trace_is_taken_up_again_with_that_trace_only() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let end = with_own_cache(&place, &[&["replay", "a.trace", "-a", "glibc", "--blocks", "2"], &SHORT[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // As if it had been interrupted: the last line is gone, and so is the compiled score.
    let file = place.at("run/samples.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let whole = text.lines().count();
    let cut: Vec<&str> = text.lines().take(whole - 1).collect();
    fs::write(&file, cut.join("\n") + "\n").unwrap();
    let score = head(&place.at("run"))["plan"]["cases"][0]["parameters"]["score"].as_str().unwrap().to_owned();
    fs::write(&score, "damaged").unwrap();
    let again = with_own_cache(&place, &["run", "--resume", "run"]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), whole);
    write(&place.at("a.trace"), &[(0, malloc(1))]);
    let other = with_own_cache(&place, &["run", "--resume", "run"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("is not the trace that this run began with"), "{}", other.stderr);
    fs::remove_file(place.at("a.trace")).unwrap();
    let gone = with_own_cache(&place, &["run", "--resume", "run"]);
    assert!(gone.stderr.contains("this run replays a trace") && gone.stderr.lines().count() == 1, "{}", gone.stderr);
}
