//! What goes from traces to people and other programs, and what comes from these.

use super::{capture, check, dump, finish, free, malloc};
use crate::support::{self, End, Place};
use heapmark_wire::capture::Event;
use serde_json::Value;
use std::fs;

/// A trace of three threads that allocate, grow, and free each other's objects.
fn busy(place: &Place) {
    let mut events = Vec::new();
    for n in 0..3000u64 {
        let (stream, stamp, address) = ((n % 3) as u32, n * 1000, 0x10000 + n * 4096);
        events.push((stream, malloc(address, 16 << (n % 4)), stamp));
        if n % 10 == 0 {
            let grown = Event::Realloc {
                old: address,
                new: address + 64,
                size: 5000,
                entered: Some(stamp + 10),
            };
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
    capture(
        place,
        "a.cap",
        &[("argv.0", "busy"), ("argv.1", "<b>")],
        &events,
    );
    assert_eq!(finish(place).code, Some(0));
}

#[test]
fn texts_of_malloclab_and_of_androids_memory_replay_are_imported_whole() {
    let place = Place::new();
    let rep = "20000\n3\n6\n1\na 0 512\na 1 128\nr 0 640\na 2 0\nf 1\nf 0\n";
    let android = "186: malloc 0xb6fee000 100 1000 1010\n\
                   187: calloc 0xb6fef000 3 40 1500 1600\n\
                   187: memalign 0xb6ff0000 64 512 1700 1800\n\
                   186: free 0xb6fef000 2000 2100\n\
                   186: realloc 0xb6ff1000 0xb6fee000 300 2200 2300\n\
                   186: realloc 0xb6ff2000 0x0 8 2400 2500\n\
                   186: realloc 0x0 0xb6ff2000 0 2600 2700\n\
                   187: malloc 0x0 99 2800 2900\n\
                   187: free 0x0 3000 3100\n\
                   187: thread_done 0x0 4000\n\
                   187: malloc 0xb6ff3000 7 3000 3100\n";
    let without_times: String = android
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let times = if line.contains("done") { 1 } else { 2 };
            format!("{}\n", words[..words.len() - times].join(" "))
        })
        .collect();
    let imported = |text: &str| {
        fs::write(place.at("m.txt"), text).unwrap();
        let end = place.run(&["trace", "import", "m.txt", "-o", "a.trace", "--force"]);
        assert_eq!(
            (end.code, end.stderr.as_str()),
            (Some(0), ""),
            "{}",
            end.stdout
        );
        check(&place, "a.trace");
        dump(&place, "a.trace")
    };
    assert_eq!(
        imported(rep),
        [
            "t0 malloc size=512 -> t0#0",
            "t0 malloc size=128 -> t0#1",
            "t0 realloc object=t0#0 size=640 -> t0#2",
            "t0 malloc size=0 -> t0#3",
            "t0 free object=t0#1",
            "t0 free object=t0#2",
        ]
    );
    let calls = [
        "t0 malloc size=100 -> t0#0",
        "t0 thread_start child=1",
        "t1 calloc count=3 size=40 -> t1#0",
        "t1 memalign align=64 size=512 -> t1#1",
        "t0 free object=t1#0",
        "t0 realloc object=t0#0 size=300 -> t0#1",
        "t0 malloc size=8 -> t0#2",
        "t0 realloc object=t0#2 size=0 freed=true",
        "t1 failed call=malloc size=99",
        "t1 free object=null",
        "t1 thread_exit",
        // Another thread of the same number.
        "t0 thread_start child=2",
        "t2 malloc size=7 -> t2#0",
    ];
    assert_eq!(imported(&without_times), calls);
    assert_eq!(imported(android), calls);
    let stats = place.run(&["trace", "stats", "a.trace"]).stdout;
    let duration = ["duration", "3.00", "us"];
    let is_told = |line: &str| line.split_whitespace().eq(duration);
    assert!(stats.lines().any(is_told), "{stats}");
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
    assert_eq!(
        (end.code, end.stdout.as_str()),
        (Some(0), "a.trace: 7 events, 4 allocations\n"),
        "{}",
        end.stderr
    );
    assert_eq!(
        end.stderr,
        "m.txt: 1 objects ended that had begun before; they are left out\n\
         m.txt: mtrace does not say which thread makes a call, which alignment it asks for, nor that it is calloc: \
         one thread makes all calls, by malloc and realloc\n"
    );
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

    let cases: [(&[u8], &str, i32); 15] = [
        (b"", "the file is empty", 2),
        (
            b"v 10400 3\nX ./a\n",
            "does not say which thread made a call",
            2,
        ),
        (b"\x28\xb5\x2f\xfd\0\0", "unpack it first", 2),
        (b"\x1f\x8b\0\0", "unpack it first", 2),
        (b"PK\x03\x04", "unpack it first", 2),
        (&[7; 64], "no text that can be imported", 2),
        (b"12 seconds\n", "no text that can be imported", 2),
        (b"20\na 0 x\n", "line 2: `x` is no number", 6),
        (b"20\na 0 1\nb 0\n", "line 3: neither `a ID BYTES`", 6),
        (b"7: mmap 0x1 1\n", "line 1: `mmap`: it has malloc", 6),
        (b"7: free 0x1 1\n", "line 1: `free` with other words", 6),
        (b"= Start\nhello\n", "line 2: neither a call", 6),
        (
            b"= Start\n@ x + 0xzz 0x1\n",
            "line 2: `0xzz` is no hexadecimal number",
            6,
        ),
        (b"= Start\n@ x + 0x1\n", "line 2: `+` with other words", 6),
        (
            b"= Start\n@ x > 0x1 0x2\n",
            "without its old one (`<`) before it; in a program that forks, the child writes",
            6,
        ),
    ];
    for (bytes, words, code) in cases {
        fs::write(place.at("m.txt"), bytes).unwrap();
        let end = place.run(&["trace", "import", "m.txt", "-o", "b.trace"]);
        end.is_one_line(code);
        assert!(
            end.stderr.contains(words) && !place.at("b.trace").exists(),
            "{}",
            end.stderr
        );
    }
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
    assert_eq!(
        (number("allocations"), number("end_live_objects")),
        (3300, 3000 - 1485)
    );
    assert_eq!(
        number("allocated_bytes"),
        750 * (16 + 32 + 64 + 128) + 300 * 5000
    );
    assert_eq!(
        (
            told["calls"]["malloc"].as_u64(),
            told["calls"]["free"].as_u64()
        ),
        (Some(3000), Some(1485))
    );
    let sum = |key: &str, field: &str| -> u64 {
        told[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry[field].as_u64().unwrap())
            .sum()
    };
    assert_eq!(
        (sum("sizes", "count"), sum("lifetimes_bytes", "count")),
        (3300, 1485 + 300)
    );
    assert_eq!(
        (sum("threads", "allocations"), sum("threads", "frees")),
        (3300, 1485 + 300)
    );
    assert_eq!(sum("pairs", "frees"), sum("threads", "frees_of_others"));
    assert!(sum("threads", "frees_of_others") > 500);
    let last = told["timeline"].as_array().unwrap().last().unwrap();
    let ends = [
        &last["least_bytes"],
        &told["end_live_bytes"],
        &last["most_bytes"],
    ]
    .map(|bytes| bytes.as_u64().unwrap());
    assert!(ends.is_sorted() && ends[0] > 0, "{ends:?}");

    let table = place.run(&["trace", "stats", "a.trace"]);
    assert!(table.stdout.starts_with("busy <b>\n"), "{}", table.stdout);
    let tells_of_others = |text: &str| text.lines().any(|line| line.starts_with("freed by others"));
    assert!(
        table.says("3,300 objects") && tells_of_others(&table.stdout),
        "{}",
        table.stdout
    );
    let small = table
        .stdout
        .lines()
        .find(|line| line.trim_start().starts_with("16 B"))
        .unwrap();
    assert!(
        small
            .split_whitespace()
            .take(5)
            .eq(["16", "B", "32", "B", "750"]),
        "{small}"
    );
    capture(
        &place,
        "alone.cap",
        &[],
        &[(0, malloc(0x1000, 24), 0), (0, free(0x1000), 0)],
    );
    assert_eq!(place.run(&["trace", "finish", "alone.cap"]).code, Some(0));
    let alone = place.run(&["trace", "stats", "alone.trace"]);
    assert!(
        !tells_of_others(&alone.stdout),
        "there is no other process: {}",
        alone.stdout
    );
    let page = place.run(&["trace", "stats", "a.trace", "--to", "page"]);
    assert!(page.says("busy &lt;b&gt;") && !page.says("busy <b>"));
    for id in [
        "summary",
        "alive",
        "sizes",
        "lifetimes",
        "growth",
        "threads",
        "recorded",
    ] {
        assert!(
            page.says(&format!("<section id=\"{id}\"")) || ["growth"].contains(&id),
            "{id}"
        );
    }
}

#[test]
fn marks_and_touched_pages_are_not_counted_as_calls() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 24), 0),
        (0, Event::Mark { text: b"here" }, 0),
        (
            0,
            Event::Touch {
                address: 0x1000,
                resident: 1,
                extent: 1,
                pages: 1,
            },
            0,
        ),
        (0, free(0x1000), 0),
        (
            0,
            Event::Failed {
                call: heapmark_wire::capture::Call::Malloc,
                size: 1 << 50,
            },
            0,
        ),
    ];
    capture(&place, "a.cap", &[], &events);
    assert_eq!(finish(&place).code, Some(0));
    let table = place.run(&["trace", "stats", "a.trace"]).stdout;
    let line = table
        .lines()
        .find(|line| line.starts_with("calls "))
        .unwrap_or_else(|| panic!("{table}"));
    assert!(
        line.ends_with(" 3, and 2 events of threads, time and pages"),
        "{line}"
    );
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
    assert!(
        lifetimes.stdout.starts_with("allocated_bytes,count\n"),
        "{}",
        lifetimes.stdout
    );
    let set = format!("churn.distribution={}", place.text("sizes.csv"));
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "1", "--set", &set]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let parameters = &support::plan(&place.at("run")).cases[0].parameters;
    assert!(
        parameters["classes"].starts_with("16:227272727,32:227272727,"),
        "{}",
        parameters["classes"]
    );
    for wrong in ["relative.csv", "/nowhere/x.csv", "/etc/hostname"] {
        let end = place.run_small(
            "bad",
            &[
                "-a",
                "glibc",
                "--set",
                &format!("churn.distribution={wrong}"),
            ],
        );
        assert_eq!(
            (end.code, end.stderr.lines().count()),
            (Some(2), 1),
            "{wrong}: {}",
            end.stderr
        );
    }
}

#[test]
fn a_steady_heap_has_the_sizes_and_lifetimes_that_a_trace_has() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 100), 100),
        (0, malloc(0x2000, 50), 200),
        // It has seen its own 50 bytes.
        (0, free(0x2000), 300),
        // 150 bytes, and another thread frees it.
        (1, free(0x1000), 400),
        (0, malloc(0x1000, 100), 500),
        // 100 bytes, and is alive at the end: 1000 more.
        (0, malloc(0x3000, 1000), 600),
    ];
    capture(&place, "a.cap", &[], &events);
    assert_eq!(finish(&place).code, Some(0));
    let end = place.run(&["trace", "export", "a.trace", "--joint", "-o", "m.csv"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(
        fs::read_to_string(place.at("m.csv")).unwrap(),
        "size,lifetime_bytes,weight,remote\n50,50,1,0\n100,150,1,100\n100,1100,1,0\n1000,1000,1,0\n"
    );
    let model = format!("steady.model={}", place.text("m.csv"));
    let flags = [
        "run",
        "-w",
        "steady",
        "-t",
        "1",
        "-a",
        "glibc",
        "--blocks",
        "1",
        "--no-repeat",
        "--set",
        &model,
        "--set",
        "steady.operations=1000",
        "-o",
        "run",
    ];
    let end = place.run(&flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let parameters = &support::plan(&place.at("run")).cases[0].parameters;
    assert_eq!(
        parameters["lifetimes"],
        "bytes 50:50:1:0,100:150:1:100,100:1100:1:0,1000:1000:1:0"
    );
    // After their own bytes they live for 1050 / 4 on average, and each birth has 1250 / 4: 0.84 live.
    let records = support::samples(&place.at("run"));
    let samples = support::of_purpose(&records, "sample");
    assert!(!samples.is_empty());
    for record in samples {
        let calls = &record["measurement"]["calls"];
        assert_eq!(
            (&calls["malloc"], &calls["free"]),
            (&2001.into(), &2001.into()),
            "{calls}"
        );
    }
    // The table is a part of the run.
    fs::write(place.at("m.csv"), "size,lifetime_bytes,weight\n50,50,1\n").unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    assert_ne!(end.code, Some(0));
    assert!(
        end.stderr
            .contains("m.csv is not the file that this run began with"),
        "{}",
        end.stderr
    );
    fs::remove_file(place.at("m.csv")).unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // One line says what is wrong, and where.
    for (text, says) in [
        (
            "size,lifetime_bytes,weight\n50,50,1\n50,x,1\n",
            "m.csv, line 3: lifetime_bytes = `x`",
        ),
        ("size,count\n50,50\n", "m.csv, line 1: expected the columns"),
    ] {
        fs::write(place.at("m.csv"), text).unwrap();
        let end = place.run(&[&flags[..15], &["bad"]].concat());
        assert_eq!(
            (end.code, end.stderr.lines().count()),
            (Some(2), 1),
            "{}",
            end.stderr
        );
        assert!(end.stderr.contains(says), "{}", end.stderr);
    }
}

#[test]
fn a_cut_of_an_empty_stretch_says_that_it_is_empty() {
    let place = Place::new();
    busy(&place);
    for stretch in [["--time", "100..200"], ["--events", "100000000.."]] {
        let end = place.run(
            &[
                &["trace", "cut", "a.trace", "-o", "b.trace", "--force"],
                &stretch[..],
            ]
            .concat(),
        );
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(
            end.stderr.contains("no event lies in that stretch: "),
            "{}",
            end.stderr
        );
    }
    let end = place.run(&[
        "trace", "cut", "a.trace", "-o", "b.trace", "--force", "--events", "..5",
    ]);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    // A full disk is no mistake of the user's.
    let mut cut = place.heapmark(&["trace", "cut", "a.trace", "--events", "..5", "-o", "-"]);
    let full = fs::File::create("/dev/full").unwrap();
    let end = End::of(cut.stdout(full).output().unwrap());
    end.is_one_line(1);
}

#[test]
fn an_old_address_of_mtrace_without_its_new_one_is_damage() {
    let place = Place::new();
    let begun = "= Start\n@ a:[0x1] + 0x10 0x20\n@ a:[0x1] < 0x10\n";
    for (rest, code) in [
        ("@ a:[0x2] + 0x30 0x30\n= End\n", Some(6)),
        ("= End\n", Some(0)),
    ] {
        fs::write(place.at("m.txt"), [begun, rest].concat()).unwrap();
        let end = place.run(&["trace", "import", "m.txt", "-o", "b.trace", "--force"]);
        assert_eq!(end.code, code, "{}", end.stderr);
        let says = ["no new address of a realloc", "m.txt: "][usize::from(code == Some(0))];
        assert!(end.stderr.contains(says), "{}", end.stderr);
    }
}

#[test]
fn a_shortened_text_of_mtrace_says_so() {
    let place = Place::new();
    let text = "= Start\n@ ./a:[0x1] + 0x10 0x20\n@ ./a:[0x1] + 0x30 0x1234\n= End\n";
    let import = |text: &str| {
        fs::write(place.at("m.txt"), text).unwrap();
        place.run(&["trace", "import", "m.txt", "-o", "b.trace", "--force"])
    };
    let end = import(text);
    let lost = "m.txt: mtrace does not say which thread";
    assert!(
        end.code == Some(0) && end.stderr.starts_with(lost),
        "{}",
        end.stderr
    );
    assert_eq!(end.stderr.lines().count(), 1, "{}", end.stderr);
    let end = import(text.strip_suffix("= End\n").unwrap());
    assert!(
        end.code == Some(0)
            && end
                .stderr
                .contains("did not call muntrace(), or the text was shortened")
    );
    // Within the last size: 0x12 is another number.
    let end = import(text.strip_suffix("34\n= End\n").unwrap());
    assert!(
        end.code == Some(6) && end.stderr.contains("its last line is cut off"),
        "{}",
        end.stderr
    );
    assert_eq!(dump(&place, "b.trace").len(), 1);
}
