//! `heapmark try --drain` on services that grow in a known way.

use crate::support::home::record;
use crate::support::tried::run;
use crate::support::{Place, Port, source, words};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Twenty requests of three bytes, with pauses.
const CLIENT: &str = "import socket, sys, time\nfor i in range(20):\n    \
    c = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n    c.sendall(b'abc')\n    \
    assert c.recv(100) == b'xxx'\n    c.close()\n    time.sleep(0.02)\n";

/// The output and the records of a server that grows in this way, under glibc and another allocator.
fn drained(place: &Place, way: &str, flags: &[&str]) -> (String, Vec<Value>) {
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-builtin", "-pthread", "-o"])
        .arg(place.at("growing"));
    assert!(cc.arg(source("growing")).status().unwrap().success());
    fs::write(place.at("client.py"), CLIENT).unwrap();
    let port = Port::free();
    let number = port.0.to_string();
    let server = format!("./growing {{port}} {way}");
    let own = [
        "-a",
        "glibc,glibc-notcache",
        "--server",
        &server,
        "--client",
        "python3 client.py {port}",
        "--ready",
        &number,
        "--drain",
        "1s",
    ];
    let (end, records) = run(place, &[&own[..], flags].concat());
    assert_eq!(end.code, Some(0), "{way}: {}{}", end.stdout, end.stderr);
    let said = words(&end.stdout);
    (said, records)
}

#[test]
fn a_leak_is_told_by_what_is_live_to_the_end_of_the_load() {
    let place = Place::new();
    let (said, records) = drained(&place, "leak", &[]);
    for words in [
        "after the load row",
        "glibc: leak: live memory grew from",
        "glibc-notcache: leak: live memory grew from",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
    let figures = &record(&records, "check", "glibc")["measurement"]["figures"];
    let mib = |name: &str| figures[name].as_f64().unwrap() / f64::from(1 << 20);
    // Sixty blocks of a MiB.
    let live = mib("drain_1000_live_bytes") - mib("drain_before_live_bytes");
    assert!((60.0..61.0).contains(&live), "{live}");
    let rss = mib("drain_1000_rss_bytes") - mib("drain_before_rss_bytes");
    assert!((59.0..64.0).contains(&rss), "{rss}");
    assert!(mib("drain_half_live_bytes") < mib("drain_0_live_bytes"));
    assert!(mib("drain_rss_byte_s") > 50.0);
    let facts = place.run(&["export", "run", "--to", "json"]).stdout;
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let text = facts.to_string();
    assert!(text.contains("\"growth\":\"leak\""), "{text}");
}

/// Keeps more and more for one and a half seconds, says so, and waits.
const WORKER: &str = "import time\nkept = []\nfor i in range(30):\n    kept.append(bytearray(b'x') * (1 << 20))\n    \
    time.sleep(0.05)\nopen('grown', 'w')\ntime.sleep(60)\n";

#[test]
fn a_command_that_answers_nowhere_is_watched_from_its_start() {
    let place = Place::new();
    fs::write(place.at("worker.py"), WORKER).unwrap();
    fs::write(
        place.at("client.sh"),
        "until rm grown; do sleep 0.1; done 2> /dev/null\n",
    )
    .unwrap();
    let worker = "--server|python3 worker.py|--client|sh client.sh|--ready|started|--drain|1s";
    let flags: Vec<&str> = ["-a", "glibc,glibc-notcache"]
        .into_iter()
        .chain(worker.split('|'))
        .collect();
    let (end, records) = run(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let words = "glibc: leak: live memory grew from";
    assert!(end.says(words), "{}", end.stdout);
    let figures = &record(&records, "check", "glibc")["measurement"]["figures"];
    let live = |moment: &str| {
        figures[format!("drain_{moment}_live_bytes")]
            .as_f64()
            .unwrap()
    };
    assert!(
        live("1000") - live("before") >= 20.0 * f64::from(1 << 20),
        "{figures}"
    );
    // One that is not there is no server that is late.
    let none = worker.replace("python3 worker.py", "./none");
    let flags = none.split('|').collect::<Vec<_>>();
    place.run(&[&["try"], &flags[..]].concat()).is_one_line(2);
}

#[test]
#[ignore = "make test-all"]
fn each_planted_growth_is_named_three_times_of_three() {
    for (way, words, shape) in [
        ("leak", "leak: live memory grew", ""),
        ("hoard", "kept: ", ". Survivors: "),
        ("drift", "kept: ", ". Size drift: "),
        ("threads", "threads keep: ", ". Arenas: "),
        ("turnover", "threads keep: ", ". Thread turnover: "),
        ("huge", "huge pages: ", ""),
        ("files", "files: ", ""),
        ("nothing", "next to nothing of its load stays", ""),
    ] {
        for _ in 0..3 {
            let (said, _) = drained(&Place::new(), way, &[]);
            let of_glibc = said.split("glibc: ").nth(1).unwrap_or_default();
            let is_named = of_glibc.starts_with(words) && of_glibc.contains(shape);
            assert!(is_named, "{way}: {said}");
            let shapes = [
                ". Survivors",
                ". Size drift",
                ". Arenas",
                ". Thread turnover",
            ];
            let others = shapes.iter().filter(|it| of_glibc.contains(**it));
            assert_eq!(
                others.count(),
                usize::from(!shape.is_empty()),
                "{way}: {said}"
            );
        }
    }
}
