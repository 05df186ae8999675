//! `heapmark trace` from captures to dumps: what a recorder wrote is what a trace tells, in an order that can have been, and every
//! file that is none ends in one line.

mod support;

use heapmark::trace::{Reader, finish};
use heapmark_wire::capture::{CHUNK_BYTES, Event};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::fs;
use support::captured::Captured;
use support::{End, Place};

fn malloc(address: u64, size: u64) -> Event<'static> {
    Event::Malloc { address, size, operator: false }
}

fn free(address: u64) -> Event<'static> {
    Event::Free { address, operator: false }
}

/// Writes a capture of `(stream, event, stamp)`.
fn capture(place: &Place, name: &str, pairs: &[(&str, &str)], events: &[(u32, Event, u64)]) {
    let streams = events.iter().map(|(stream, ..)| stream + 1).max().unwrap_or(0);
    let mut captured = Captured::new(&place.at(name), streams, pairs);
    events.iter().for_each(|(stream, event, stamp)| captured.put(*stream, event, *stamp));
    captured.end();
}

/// Finishes `a.cap`.
fn finish(place: &Place) -> End {
    place.run(&["trace", "finish", "a.cap"])
}

/// The lines of a trace without the times.
fn dump(place: &Place, name: &str) -> Vec<String> {
    let end = place.run(&["trace", "dump", name]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    let lines = end.stdout.lines().map(|line| line.split_once(' ').unwrap().1.to_owned());
    lines.filter(|line| !line.contains("clock")).collect()
}

fn check(place: &Place, name: &str) {
    let end = place.run(&["trace", "check", name]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{}", end.stdout);
}

#[test]
fn a_capture_of_one_thread_becomes_a_trace_without_addresses() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 24), 0),
        (0, Event::Calloc { address: 0x2000, count: 3, size: 8 }, 0),
        (0, Event::Realloc { old: 0x1000, new: 0x3000, size: 48, entered: None }, 0),
        (0, malloc(0x1000, 0), 0),
        (0, Event::UsableSize { address: 0x1000 }, 0),
        (0, Event::FreeSized { address: 0x3000, size: 48, operator: true }, 0),
        (0, Event::Realloc { old: 0x2000, new: 0, size: 0, entered: None }, 0),
        (0, Event::FreeNull, 0),
        (0, free(0x1000), 0),
    ];
    capture(&place, "a.cap", &[("argv", "x y")], &events);
    let end = finish(&place);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert!(end.stdout.starts_with("a.trace: 9 events, 4 allocations, threads: 1; "), "{}", end.stdout);
    let expected = [
        "t0 malloc size=24 -> t0#0",
        "t0 calloc count=3 size=8 -> t0#1",
        "t0 realloc object=t0#0 size=48 -> t0#2",
        "t0 malloc size=0 -> t0#3",
        "t0 malloc_usable_size object=t0#3",
        "t0 free_sized object=t0#2 size=48",
        "t0 realloc object=t0#1 size=0 freed=true",
        "t0 free object=null",
        "t0 free object=t0#3",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
    check(&place, "a.trace");
}

#[test]
fn threads_are_merged_by_their_stamps_and_a_realloc_has_two_of_them() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1), 100),
        // Another thread gets the old address before this call returns.
        (0, Event::Realloc { old: 0x1000, new: 0x2000, size: 2, entered: Some(200) }, 400),
        (0, free(0x1000), 600),
        (1, malloc(0x1000, 3), 300),
        (1, free(0x2000), 500),
        // At the same stamp, what ends comes first.
        (1, malloc(0x1000, 4), 600),
    ];
    capture(&place, "a.cap", &[], &events);
    assert_eq!(finish(&place).stderr, "");
    let expected = [
        "t0 malloc size=1 -> t0#0",
        "t1 malloc size=3 -> t1#0",
        "t0 realloc object=t0#0 size=2 -> t0#1",
        "t1 free object=t0#1",
        "t0 free object=t1#0",
        "t1 malloc size=4 -> t1#1",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
}

#[test]
fn an_order_that_cannot_have_been_is_put_right_and_counted_and_warned_of() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1), 100),
        (0, free(0x1000), 250),
        (1, malloc(0x1000, 2), 200),
        (1, free(0x1000), 9000),
        // Ends before it begins, a little.
        (0, free(0x2000), 300),
        (1, malloc(0x2000, 5), 9100),
        (0, free(0x3000), 9200),
        (1, malloc(0x3000, 6), 9300),
    ];
    capture(&place, "a.cap", &[], &events);
    let end = finish(&place);
    assert_eq!(end.code, Some(0));
    let lines: Vec<&str> = end.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", end.stderr);
    assert_eq!(lines[0], "a.cap: 1 objects ended that had begun before the recording; they are left out");
    assert_eq!(lines[1], "a.cap: 2 events stood in an order that cannot have been, and were put right");
    assert!(lines[2].contains("WARNING") && lines[2].contains("not to be trusted"), "{}", lines[2]);
    let expected = [
        "t0 malloc size=1 -> t0#0",
        "t1 free object=t0#0",
        "t1 malloc size=2 -> t1#0",
        "t1 free object=t1#0",
        "t1 malloc size=5 -> t1#1",
        "t1 malloc size=6 -> t1#2",
        "t0 free object=t1#2",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
    check(&place, "a.trace");
}

#[test]
fn a_forked_process_begins_with_what_its_parent_had() {
    let place = Place::new();
    let parent = [
        (0, malloc(0x1000, 11), 0),
        (0, malloc(0x2000, 22), 0),
        (0, malloc(0x3000, 33), 0),
        (0, free(0x1000), 0),
        (0, Event::Fork { pid: 77 }, 0),
        (0, free(0x2000), 0),
    ];
    capture(&place, "x.5.cap", &[("pid", "5")], &parent);
    let child = [(0, free(0x3000), 0), (0, malloc(0x3000, 44), 0), (0, free(0x2000), 0), (0, free(0x9000), 0)];
    capture(&place, "x.77.cap", &[("pid", "77"), ("parent", "5"), ("begin", "fork")], &child);
    let end = place.run(&["trace", "finish", "x.77.cap", "-o", "a.trace"]);
    assert_eq!(end.code, Some(0));
    let expected = "x.77.cap: 2 objects come from the parent process; the trace begins with them\n\
                    x.77.cap: 1 objects ended that had begun before the recording; they are left out\n";
    assert_eq!(end.stderr, expected);
    let expected = [
        "t0 inherit objects=2",
        "t0 malloc size=22 -> t0#0",
        "t0 malloc size=33 -> t0#1",
        "t0 free object=t0#1",
        "t0 malloc size=44 -> t0#2",
        "t0 free object=t0#0",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
    check(&place, "a.trace");
}

#[test]
fn of_a_damaged_capture_all_but_the_damaged_chunk_is_read() {
    let place = Place::new();
    let events: Vec<_> = (0..200_000u64).flat_map(|n| [(0, malloc(n * 64, n), 0), (0, free(n * 64), 0)]).collect();
    capture(&place, "a.cap", &[], &events);
    let mut bytes = fs::read(place.at("a.cap")).unwrap();
    assert!(bytes.len() > 4 * CHUNK_BYTES);
    bytes[2 * CHUNK_BYTES + 5000] ^= 1;
    fs::write(place.at("a.cap"), &bytes).unwrap();
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    assert!(end.stderr.contains("damaged: chunk 2: the chunk's checksum is wrong\n"), "{}", end.stderr);
    assert!(end.stderr.contains(" are missing\n") && end.stderr.contains(" events are lost\n"), "{}", end.stderr);
    check(&place, "a.trace");
    // Cut off within a chunk, as after a full disk.
    fs::write(place.at("a.cap"), &bytes[..3 * CHUNK_BYTES + 100]).unwrap();
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    assert!(end.stderr.contains("chunk 3: the chunk is cut off"), "{}", end.stderr);
    check(&place, "a.trace");
}

#[test]
fn a_capture_of_another_version_or_with_too_many_threads_ends_in_one_line() {
    let place = Place::new();
    let events = [(0, Event::Begin { thread: 65_535 }, 0), (0, malloc(0x1000, 1), 0)];
    capture(&place, "a.cap", &[], &events);
    let end = finish(&place);
    assert_eq!((end.code, end.stderr.lines().count()), (Some(7), 1), "{}", end.stderr);
    assert!(
        end.stderr.contains("a trace has 65535 threads at most") && !place.at("a.trace").exists(),
        "{}",
        end.stderr
    );
    let mut bytes = fs::read(place.at("a.cap")).unwrap();
    bytes[8] = 9;
    fs::write(place.at("a.cap"), &bytes).unwrap();
    let end = finish(&place);
    assert_eq!((end.code, end.stderr.lines().count()), (Some(1), 1), "{}", end.stderr);
    assert!(end.stderr.contains("version 9"), "{}", end.stderr);
}

#[test]
fn a_file_that_is_none_ends_in_one_line() {
    let place = Place::new();
    let files: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("byte", b"h"),
        ("text", b"hello\nworld\n"),
        ("zeros", &[0; 4096]),
        ("elf", b"\x7fELF\x02\x01\x01"),
    ];
    for (name, bytes) in files {
        fs::write(place.at(name), bytes).unwrap();
    }
    fs::create_dir(place.at("directory")).unwrap();
    let names = ["empty", "byte", "text", "zeros", "elf", "directory", "missing"];
    let commands: [&[&str]; 4] =
        [&["finish", "-o", "out.trace"], &["check"], &["dump"], &["cut", "--events", "..9", "-o", "out.trace"]];
    for name in names {
        for command in commands {
            let end = place.run(&[&["trace"], &command[..1], &[name], &command[1..]].concat());
            let seen = format!("{command:?} {name}: {}", end.stderr);
            assert_eq!((end.code, end.stderr.lines().count(), end.stdout.as_str()), (Some(1), 1, ""), "{seen}");
            assert!(end.stderr.contains(name), "{seen}");
            assert!(!place.at("out.trace").exists() && !place.at("out.trace.part").exists(), "{seen}");
        }
    }
}

#[test]
fn a_cut_begins_with_what_was_alive_and_tells_the_rest_as_it_was() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1), 1_000_000_000),
        (0, malloc(0x2000, 2), 1_100_000_000),
        (1, malloc(0x3000, 3), 1_200_000_000),
        (1, free(0x1000), 1_300_000_000),
        (0, malloc(0x4000, 4), 1_400_000_000),
        (0, free(0x3000), 1_500_000_000),
        (1, free(0x2000), 1_600_000_000),
    ];
    capture(&place, "a.cap", &[], &events);
    assert_eq!(finish(&place).code, Some(0));
    let all = dump(&place, "a.trace");
    let end = place.run(&["trace", "cut", "a.trace", "--events", "5..8", "-o", "b.trace"]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert_eq!(all.len(), 7, "{all:?}");
    let cut = dump(&place, "b.trace");
    check(&place, "b.trace");
    assert!(cut[0].starts_with("t0 inherit objects="), "{cut:?}");
    // Whatever it is cut into, each part is a trace that holds together, and nothing of it is lost.
    for from in 0..9 {
        let range = format!("{from}..");
        assert_eq!(place.run(&["trace", "cut", "a.trace", "--events", &range, "-o", "c.trace"]).code, Some(0));
        check(&place, "c.trace");
        let again = place.run(&["trace", "cut", "c.trace", "--events", "0..", "-o", "d.trace"]);
        assert_eq!(again.code, Some(0));
        assert_eq!(dump(&place, "c.trace"), dump(&place, "d.trace"));
    }
    for wrong in ["5", "7..3", "x.."] {
        let end = place.run(&["trace", "cut", "a.trace", "--events", wrong, "-o", "c.trace"]);
        assert_eq!((end.code, end.stderr.lines().count()), (Some(2), 1), "{}", end.stderr);
    }
}

#[test]
fn any_damage_to_a_capture_gives_a_trace_that_holds_together_or_one_line() {
    const SEED: u64 = 7;
    let place = Place::new();
    let mut events = Vec::new();
    for n in 0..3000u64 {
        let (stream, stamp) = ((n % 3) as u32, n * 20);
        events.push((stream, malloc(0x1000 + n * 64, n), stamp));
        events.push(match n % 5 {
            0 => (
                stream,
                Event::Realloc { old: 0x1000 + n * 64, new: 0x1000 + n * 64 + 8, size: n, entered: Some(stamp + 1) },
                stamp + 2,
            ),
            1 => (stream, Event::ThreadStart { child: 9 }, stamp + 2),
            _ => (stream, free(0x1000 + n * 64), stamp + 2),
        });
    }
    capture(&place, "a.cap", &[("argv.0", "x")], &events);
    let whole = fs::read(place.at("a.cap")).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut refused, mut damaged, mut mended) = (0, 0, 0);
    for round in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..random.random_range(1..4) {
            // Where the bytes are that say something: headers, the first events of a chunk, and sometimes a whole header gone.
            let chunk = random.random_range(0..bytes.len().div_ceil(CHUNK_BYTES)) * CHUNK_BYTES;
            let at = (chunk + random.random_range(0..200)).min(bytes.len() - 1);
            match random.random_range(0..6) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[chunk..].iter_mut().take(64).for_each(|byte| *byte = 0),
                // Not sealed: nothing but the events themselves shows the damage.
                2 | 3 => {
                    bytes[chunk + 11] &= !1;
                    bytes[at] = random.random();
                }
                _ => bytes[at] = random.random(),
            }
            if bytes.len() <= chunk + 11 {
                break;
            }
        }
        fs::write(place.at("b.cap"), &bytes).unwrap();
        let mut trace = Vec::new();
        match finish::finish(&place.at("b.cap"), &mut trace) {
            Err(fault) => {
                assert!(!fault.to_string().contains('\n'), "seed {SEED}, round {round}: {fault}");
                refused += 1;
            }
            Ok(finished) => {
                let checked = heapmark::trace::check(Reader::new(&trace[..]).unwrap());
                // Sizes that were damaged may be impossible; lives and deaths may not.
                let dead = checked.faults.iter().find(|fault| fault.to_string().contains("alive"));
                assert!(
                    dead.is_none() && checked.events == finished.totals.events,
                    "seed {SEED}, round {round}: {dead:?}"
                );
                damaged += usize::from(!finished.damage.is_empty());
                mended += usize::from(finished.mended.repairs() + finished.mended.unknown > 0);
            }
        }
    }
    println!("{refused} refused, {damaged} damaged, {mended} mended");
    assert!(refused > 10 && damaged > 50 && mended > 20, "the damage is too tame");
}

#[test]
fn what_mtrace_wrote_is_imported_and_what_cannot_be_replayed_is_refused_with_the_reason() {
    let place = Place::new();
    let text = "= Start\n\
                @ ./mt:[0x11c0] + 0x1000 0xa\n\
                @ /lib/x.so:(a function(int, char)+0x3)[0x11d3] + 0x2000 0x18\n\
                @ ./mt:[0x11e8] < 0x1000\n\
                @ ./mt:[0x11e8] > 0x3000 0x186a0\n\
                + 0x1000 0x0\n\
                @ ./mt:[0x1212] - 0x2000\n\
                @ ./mt:[0x1247] + (nil) 0x4000000000000000\n\
                @ ./mt:[0x1264] ! 0x3000 0x4000\n\
                - 0x9000\n\
                = End\n";
    fs::write(place.at("m.txt"), text).unwrap();
    let end = place.run(&["trace", "import", "m.txt", "-o", "a.trace"]);
    assert_eq!((end.code, end.stdout.as_str()), (Some(0), "a.trace: 7 events, 4 allocations\n"), "{}", end.stderr);
    assert_eq!(end.stderr, "m.txt: 1 objects ended that had begun before; they are left out\n");
    let expected = [
        "t0 malloc size=10 -> t0#0",
        "t0 malloc size=24 -> t0#1",
        "t0 realloc object=t0#0 size=100000 -> t0#2",
        "t0 malloc size=0 -> t0#3",
        "t0 free object=t0#1",
        "t0 failed call=malloc size=4611686018427387904",
        "t0 failed call=realloc size=16384",
    ];
    assert_eq!(dump(&place, "a.trace"), expected);
    check(&place, "a.trace");

    let cases: [(&[u8], &str, i32); 9] = [
        (b"", "the file is empty", 1),
        (b"v 10400 3\nX ./a\n", "does not say which thread made a call", 1),
        (b"\x28\xb5\x2f\xfd\0\0", "unpack it first", 1),
        (b"\x1f\x8b\0\0", "unpack it first", 1),
        (&[7; 64], "no text of glibc's mtrace", 1),
        (b"= Start\nhello\n", "line 2: neither a call", 6),
        (b"= Start\n@ x + 0xzz 0x1\n", "line 2: `0xzz` is no hexadecimal number", 6),
        (b"= Start\n@ x + 0x1\n", "line 2: `+` with other words", 6),
        (b"= Start\n@ x > 0x1 0x2\n", "line 2: a new address of a realloc", 6),
    ];
    for (bytes, words, code) in cases {
        fs::write(place.at("m.txt"), bytes).unwrap();
        let end = place.run(&["trace", "import", "m.txt", "-o", "b.trace"]);
        assert_eq!((end.code, end.stderr.lines().count()), (Some(code), 1), "{}", end.stderr);
        assert!(end.stderr.contains(words) && !place.at("b.trace").exists(), "{}", end.stderr);
    }
}

/// A trace of three threads that allocate, grow, and free each other's objects.
fn busy(place: &Place) {
    let mut events = Vec::new();
    for n in 0..3000u64 {
        let (stream, stamp, address) = ((n % 3) as u32, n * 1000, 0x10000 + n * 4096);
        events.push((stream, malloc(address, 16 << (n % 4)), stamp));
        if n % 10 == 0 {
            let grown = Event::Realloc { old: address, new: address + 64, size: 5000, entered: Some(stamp + 10) };
            events.push((stream, grown, stamp + 20));
        }
        if n >= 30 && n % 2 == 1 {
            events.push((
                (n % 2) as u32,
                free(0x10000 + (n - 30) * 4096 + if (n - 30) % 10 == 0 { 64 } else { 0 }),
                stamp + 500,
            ));
        }
    }
    capture(place, "a.cap", &[("argv.0", "busy"), ("argv.1", "<b>")], &events);
    assert_eq!(finish(place).code, Some(0));
}

#[test]
fn statistics_count_what_the_events_say() {
    let place = Place::new();
    busy(&place);
    let end = place.run(&["trace", "stats", "a.trace", "--to", "json"]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    let number = |key: &str| told[key].as_u64().unwrap_or_else(|| panic!("{key}"));
    // 3000 by malloc, of which 300 are moved once by realloc; 1485 are freed.
    assert_eq!((number("allocations"), number("end_live_objects")), (3300, 3000 - 1485));
    assert_eq!(number("allocated_bytes"), 750 * (16 + 32 + 64 + 128) + 300 * 5000);
    assert_eq!((told["calls"]["malloc"].as_u64(), told["calls"]["free"].as_u64()), (Some(3000), Some(1485)));
    let sum = |key: &str, field: &str| -> u64 {
        told[key].as_array().unwrap().iter().map(|entry| entry[field].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("sizes", "count"), sum("lifetimes_bytes", "count")), (3300, 1485 + 300));
    assert_eq!((sum("threads", "allocations"), sum("threads", "frees")), (3300, 1485 + 300));
    assert_eq!(sum("pairs", "frees"), sum("threads", "frees_of_others"));
    assert!(sum("threads", "frees_of_others") > 500);
    let last = told["timeline"].as_array().unwrap().last().unwrap();
    let ends =
        [&last["least_bytes"], &told["end_live_bytes"], &last["most_bytes"]].map(|bytes| bytes.as_u64().unwrap());
    assert!(ends.is_sorted() && ends[0] > 0, "{ends:?}");

    let table = place.run(&["trace", "stats", "a.trace"]);
    assert!(table.stdout.starts_with("busy <b>\n"), "{}", table.stdout);
    assert!(table.stdout.contains("3300 objects"), "{}", table.stdout);
    let page = place.run(&["trace", "stats", "a.trace", "--to", "page"]);
    assert!(page.stdout.contains("busy &lt;b&gt;") && !page.stdout.contains("busy <b>"));
    for id in ["summary", "alive", "sizes", "lifetimes", "growth", "threads", "recorded"] {
        assert!(page.stdout.contains(&format!("<section id=\"{id}\"")) || ["growth"].contains(&id), "{id}");
    }
}

#[test]
fn a_workload_draws_the_sizes_that_a_trace_has() {
    let place = Place::new();
    busy(&place);
    let end = place.run(&["trace", "export", "a.trace", "--sizes", "-o", "sizes.csv"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(
        fs::read_to_string(place.at("sizes.csv")).unwrap(),
        "size,count\n16,750\n32,750\n64,750\n128,750\n5000,300\n"
    );
    let lifetimes = place.run(&["trace", "export", "a.trace", "--lifetimes"]);
    assert!(lifetimes.stdout.starts_with("allocated_bytes,count\n"), "{}", lifetimes.stdout);
    let set = format!("churn.distribution={}", place.text("sizes.csv"));
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "1", "--set", &set]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let parameters = &support::plan(&place.at("run")).cases[0].parameters;
    assert!(parameters["classes"].starts_with("16:227272727,32:227272727,"), "{}", parameters["classes"]);
    for wrong in ["relative.csv", "/nowhere/x.csv", "/etc/hostname"] {
        let end = place.run_small("bad", &["-a", "glibc", "--set", &format!("churn.distribution={wrong}")]);
        assert_eq!((end.code, end.stderr.lines().count()), (Some(2), 1), "{wrong}: {}", end.stderr);
    }
}
