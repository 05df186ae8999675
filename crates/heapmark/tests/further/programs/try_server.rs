//! `heapmark try --server` on real servers and on planted ones: what counts is what they do while the client runs.

use crate::support::home::record;
use crate::support::live::processes_of;
use crate::support::tried::{note, run};
use crate::support::{End, Place, Port, copy_program, of_purpose, source, word, words};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// Makes so many connections, one after another, and waits for each answer.
fn client(connections: u32) -> String {
    format!(
        "import socket, sys\nfor i in range({connections}):\n    \
        c = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n    c.sendall(b'abc')\n    \
        assert c.recv(100) == b'xxx'\n    c.close()\n"
    )
}

/// The program of `fakes/server.c`: many tests take it.
static SERVER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let mut cc = Command::new("cc");
    cc.arg("-o").arg(&program).arg(source("server"));
    assert!(cc.status().unwrap().success());
    fs::read(program).unwrap()
});

fn serve(place: &Place, other: &str, server: &str, client: &str) -> (End, Vec<Value>) {
    serve_with(place, other, server, client, &[])
}

fn serve_with(
    place: &Place,
    other: &str,
    server: &str,
    client: &str,
    flags: &[&str],
) -> (End, Vec<Value>) {
    let both = format!("glibc,{other}");
    let port = Port::free();
    let number = port.0.to_string();
    let own = [
        "-a", &both, "--server", server, "--client", client, "--ready", &number,
    ];
    run(place, &[&own[..], flags].concat())
}

/// The server of `fakes/server.c` in one of its ways, under glibc and a library that hands on to it, for twenty connections.
fn served(place: &Place, way: &str) -> (End, Vec<Value>) {
    served_with(place, way, 20, &[])
}

fn served_with(place: &Place, way: &str, connections: u32, flags: &[&str]) -> (End, Vec<Value>) {
    let server = place.at("server");
    // As a linker does: a process may have the old file mapped.
    let _ = fs::remove_file(&server);
    fs::write(&server, &*SERVER).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.at("client.py"), client(connections)).unwrap();
    let honest = format!("honest={}", place.fake("honest").display());
    serve_with(
        place,
        &honest,
        &format!("./server {{port}} {way}"),
        "python3 client.py {port}",
        flags,
    )
}

/// What the timed process of the baseline's check found.
fn figure(records: &[Value], name: &str) -> Option<f64> {
    record(records, "check", "glibc")["measurement"]["figures"][name].as_f64()
}

#[test]
fn a_server_is_measured_while_its_client_runs() {
    let place = Place::new();
    let (end, records) = served(&place, "allocates-when-asked");
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for sample in of_purpose(&records, "sample") {
        let iteration = &sample["measurement"]["iterations"][0];
        let (wall, cpu) = (
            iteration["wall_ns"].as_u64().unwrap(),
            iteration["user_ns"].as_u64().unwrap(),
        );
        let whole = sample["usage"]["wall_ns"].as_u64().unwrap();
        assert!(
            wall > 0 && wall < whole && cpu > 0,
            "the client's time, and the server's CPU time meanwhile: {sample}"
        );
    }
    let share = figure(&records, "malloc_share").unwrap();
    assert!(share > 0.0 && share <= 1.0, "{share}");
    let live = figure(&records, "malloc_live_at_end_bytes").unwrap();
    let at_rest = figure(&records, "rest_rss_bytes").unwrap();
    assert!(live < at_rest && at_rest > 500_000.0, "{live}, {at_rest}");
    assert_eq!(
        record(&records, "check", "glibc")["measurement"]["notes"],
        serde_json::json!({})
    );
    let said = words(&end.stdout);
    for words in [
        "driven by",
        "at rest",
        "in blocks of malloc, when its client has ended",
        "of the server's CPU time while its client runs under glibc",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
}

#[test]
fn what_a_server_does_before_its_client_comes_does_not_count() {
    let place = Place::new();
    let (end, records) = served(&place, "allocates-at-start");
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // A million calls at the start, hardly one in the 100 ms of CPU time that twenty connections take.
    let rate = figure(&records, "malloc_calls_per_cpu_s").unwrap();
    assert!(rate < 10_000.0, "{rate}");
    let share = figure(&records, "malloc_share").unwrap();
    assert!(share < 0.01, "{share}");
}

#[test]
fn processes_that_a_server_starts_for_its_connections_count_when_they_have_ended() {
    let place = Place::new();
    let (end, records) = served_with(&place, "forks", 8, &[]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for sample in of_purpose(&records, "sample") {
        let round = &sample["measurement"]["iterations"][0];
        // By ticks the kernel may take a part of their work for its own.
        let cpu_ns: u64 = ["user_ns", "sys_ns"]
            .map(|of| round[of].as_u64().unwrap())
            .iter()
            .sum();
        assert!(
            cpu_ns >= 140_000_000,
            "eight children of 20 ms each: {cpu_ns}"
        );
    }
    let share = figure(&records, "malloc_share").unwrap();
    assert!(
        share < 1.0,
        "the children's calls are held against the children's time, too: {share}"
    );
}

#[test]
fn a_limit_does_if_the_servers_client_gets_its_answers() {
    let place = Place::new();
    let (end, records) = served_with(&place, "needs-room", 3, &["--limit", "data"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // It answers each request of three bytes, with less if it has no 24 MiB.
    let room = 24 << 20;
    let searched = of_purpose(&records, "search");
    let ended = |large: bool| {
        let limits = searched.iter().filter_map(|record| {
            let bytes = record["limit"]["bytes"].as_u64()?;
            ((bytes > room) == large).then(|| word(&record["outcome"], "kind").to_owned())
        });
        limits.collect::<BTreeSet<String>>()
    };
    assert!(!ended(false).contains("ok"), "{:?}", ended(false));
    assert!(ended(false).contains("wrong-result"), "{:?}", ended(false));
    assert!(ended(true).contains("ok"), "{:?}", ended(true));
}

#[test]
fn programs_that_no_allocator_reaches_are_found_in_a_servers_tree() {
    let place = Place::new();
    fs::write(place.at("still.c"), "int main(void) { return 0; }\n").unwrap();
    let built = Command::new("cc")
        .args(["-static", "-o"])
        .args([place.at("still"), place.at("still.c")])
        .status();
    assert!(built.unwrap().success());
    let (end, records) = served(&place, "starts-programs");
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let unproven = note(&records, "glibc", "unproven");
    assert!(
        unproven.contains("still (static"),
        "at its start: {unproven}"
    );
    assert!(
        unproven.contains("true (20 times; it was started without LD_PRELOAD)"),
        "when asked: {unproven}"
    );
    assert_eq!(note(&records, "glibc", "unsearched"), "");
    assert!(end.says("out of reach of any allocator"), "{}", end.stdout);
}

#[test]
fn servers_and_clients_that_fail_are_said() {
    let place = Place::new();
    let (end, _) = served(&place, "goes-to-the-background");
    assert_eq!(end.code, Some(1));
    assert!(
        end.stderr
            .contains("if it went to the background, tell it to stay in front"),
        "{}",
        end.stderr
    );
    assert_eq!(processes_of(&place.at("server")), 0);
    let (end, _) = served(&place, "crashes-at-its-end");
    assert!(
        end.stderr.contains("under glibc it ended crash: SIGABRT"),
        "{}",
        end.stderr
    );

    let honest = format!("honest={}", place.text("libhonest.so"));
    let server = "./server {port} allocates-when-asked";
    let (end, _) = serve(&place, &honest, server, "sh -c 'echo because >&2; exit 3'");
    assert!(
        end.code == Some(1) && end.stderr.contains("the client failed"),
        "{}",
        end.stderr
    );
    assert!(
        end.stderr.contains("(exit status: 3): because"),
        "{}",
        end.stderr
    );
    let (end, _) = serve(
        &place,
        &honest,
        "sh -c 'echo no such way >&2; exit 7'",
        "true",
    );
    assert!(
        end.stderr.contains("before it answered on port"),
        "{}",
        end.stderr
    );
    assert!(
        end.stderr.contains("(exit code 7): no such way"),
        "what the server said: {}",
        end.stderr
    );
    let (end, _) = serve(
        &place,
        &honest,
        "./server {port} ends-with-its-client",
        "sh -c 'python3 client.py {port}; sleep 0.5'",
    );
    assert!(
        end.stderr.contains("the server ended before its client"),
        "{}",
        end.stderr
    );
    let (end, _) = serve(&place, &honest, "sleep 0", "true");
    assert!(
        end.stderr.contains("the server ended before it answered"),
        "{}",
        end.stderr
    );
    assert_eq!(processes_of(&place.at("server")), 0);
}

#[test]
fn what_answers_in_place_of_the_server_is_not_driven() {
    let place = Place::new();
    copy_program("/bin/sleep", place.at("nap"));
    let honest = format!("honest={}", place.fake("honest").display());
    let port = Port::free();
    let (number, started) = (port.0, place.at("started"));
    // After heapmark has seen that nothing answers, another process takes the port: this one.
    let other = std::thread::spawn(move || {
        crate::support::live::wait_for("the server", || started.exists());
        let listener = std::net::TcpListener::bind(("127.0.0.1", number)).unwrap();
        std::thread::spawn(move || listener.incoming().for_each(drop));
    });
    let server = "sh -c 'touch started; exec ./nap 86400' {port}";
    let flags = [
        "-a",
        &honest,
        "--server",
        server,
        "--client",
        "touch driven",
        "--ready",
        &number.to_string(),
    ];
    let (end, _) = run(&place, &flags);
    other.join().unwrap();
    assert_eq!(end.code, Some(1), "{}{}", end.stdout, end.stderr);
    let said = format!("what answers on port {number} is not the server, nor a process of it");
    assert!(
        end.stderr.contains(&said) && !place.at("driven").exists(),
        "{}",
        end.stderr
    );
    assert_eq!(processes_of(&place.at("nap")), 0);
}

#[test]
fn what_a_client_has_started_ends_with_it_when_the_server_ends_early() {
    let place = Place::new();
    copy_program("/bin/sleep", place.at("nap"));
    let honest = format!("honest={}", place.fake("honest").display());
    // The server takes one connection, which only asks whether it is there, and ends when the client has started what it starts.
    let server = "python3 -c 'import os, socket, sys, time; s = socket.create_server((\"127.0.0.1\", int(sys.argv[1]))); s.accept()\n\
        while not os.path.exists(\"started\"): time.sleep(0.01)' {port}";
    let client = "sh -c './nap 86400 & setsid ./nap 86400 & touch started; wait'";
    let (end, _) = serve(&place, &honest, server, client);
    assert!(
        place.at("started").exists() && end.code == Some(1),
        "{}{}",
        end.stdout,
        end.stderr
    );
    assert!(
        end.stderr.contains("the server ended before its client"),
        "{}",
        end.stderr
    );
    assert_eq!(processes_of(&place.at("nap")), 0);
}

#[test]
fn redis_is_tried_with_the_allocator_that_it_is_linked_to() {
    if !Path::new("/usr/bin/redis-server").exists() {
        return;
    }
    let place = Place::new();
    let server = "redis-server --port {port} --save '' --appendonly no";
    // Few connections: their buffers are too small a part of the memory for a peak to be missed in a short run.
    let client = "redis-benchmark -p {port} -t set,get -c 5 -n 1500 -q";
    let (end, records) = serve(&place, "own", server, client);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stderr.contains("is linked to libjemalloc") && end.stderr.contains("-a own"),
        "{}",
        end.stderr
    );
    for (allocator, file) in [("glibc", "libc.so.6"), ("own", "libjemalloc.so.2")] {
        let proof = &record(&records, "sample", allocator)["proof"];
        let owner = &proof["objects"][proof["owners"]["malloc"].as_u64().unwrap() as usize];
        assert!(word(owner, "path").ends_with(file), "{owner}");
    }
    assert_eq!(
        record(&records, "check", "glibc")["measurement"]["notes"],
        serde_json::json!({})
    );
    assert!(end.says("In malloc and free: "), "{}", end.stdout);
}

/// A library of the server sleeps before the server's malloc can be looked at, and its client ends at once.
#[test]
fn a_client_of_what_answers_nowhere_begins_when_the_server_has_said_who_serves_it() {
    let place = Place::new();
    let late = "#include <unistd.h>\n__attribute__((constructor)) static void late(void) { usleep(300000); }\n";
    let waits = "#include <unistd.h>\nint main(void) { return pause(); }\n";
    fs::write(place.at("late.c"), late).unwrap();
    fs::write(place.at("waits.c"), waits).unwrap();
    for words in [
        &["-shared", "-fPIC", "late.c", "-o", "liblate.so"][..],
        &[
            "waits.c",
            "-Wl,--no-as-needed",
            "-L.",
            "-llate",
            "-Wl,-rpath,$ORIGIN",
            "-o",
            "waits",
        ],
    ] {
        let mut cc = Command::new("cc");
        let end = cc.args(words).current_dir(place.at(".")).output().unwrap();
        assert!(
            end.status.success(),
            "{}",
            String::from_utf8_lossy(&end.stderr)
        );
    }
    let flags = [
        "--server",
        "./waits",
        "--client",
        "true",
        "--ready",
        "started",
        "-a",
        "glibc",
        "--no-aa-copy",
    ];
    let (end, _) = run(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
}
