//! `heapmark tune` on planted knobs, and on settings that do not arrive.

use crate::support::live::{finish, send, start, wait_for};
use crate::support::{Place, repository};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::SystemTime;

/// The knobs of `fakes/knobs.c`, with their bundles.
const KNOBS: [(&str, &str); 3] = [
    ("KNOBS_FASTER", "faster"),
    ("KNOBS_SLOWER", "slower"),
    ("KNOBS_INERT", "inert"),
];

const LOAD: &str = "#include <stdlib.h>\nint main(void) {\n    for (int i = 0; i < 20000; i++) { void *volatile p = malloc(16 + i % 100); \
                    free(p); }\n    return 0;\n}\n";

/// An allocator of the user's with these knobs, and a program that only allocates.
fn plant(place: &Place) {
    let library = place.fake("knobs");
    let mut entry = format!(
        "name = \"knobs\"\nfamily = \"knobs\"\nabout = \"planted knobs\"\ntier = \"user\"\nreads = [\"KNOBS_*\"]\n\
         source = {{ kind = \"path\", files = [{library:?}] }}\n"
    );
    for (name, bundle) in KNOBS {
        entry += &format!(
            "\n[[knobs]]\nname = \"{name}\"\ndefault = \"0\"\nvalues = [\"1\"]\nbundle = \"{bundle}\"\nkind = \"count\"\nmoves = [\"time\"]\n\
             read-back = false\n"
        );
    }
    let folder = place.at("config/heapmark/allocators");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("knobs.toml"), entry).unwrap();
    // What an entry reads, others may read, too.
    let first = "name = \"first\"\nfamily = \"first\"\nabout = \"not raced\"\ntier = \"user\"\nreads = [\"KNOBS_*\"]\n";
    let source = format!("source = {{ kind = \"path\", files = [{library:?}] }}\n");
    fs::write(folder.join("first.toml"), first.to_owned() + &source).unwrap();
    fs::write(place.at("load.c"), LOAD).unwrap();
    let made = Command::new("cc")
        .args(["-O1", "-fno-builtin", "load.c", "-o", "load"])
        .current_dir(place.at("."))
        .status();
    assert!(made.unwrap().success());
}

/// The knobs of an entry, each with whether it says that it can be read back.
fn knobs_of(allocator: &str) -> Vec<(String, bool)> {
    let text = fs::read_to_string(repository().join(format!("allocators/{allocator}.toml")));
    let entry: toml::Table = text.unwrap().parse().unwrap();
    let knobs = entry["knobs"].as_array().unwrap().iter();
    knobs
        .map(|it| {
            let name = it["name"].as_str().unwrap().to_owned();
            (name, it["read-back"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn what_does_not_arrive_is_said_before_anything_is_timed() {
    let place = Place::new();
    plant(&place);
    let line = [
        "tune",
        "-a",
        "glibc,jemalloc-debian,gperftools,knobs",
        "--budget",
        "1s",
        "-o",
        "tuned",
        "--also",
        "MALLOC_CONF=background_thread:true,lg_tcache_max=12,narenas:2",
        "--also",
        "GLIBC_TUNABLES=glibc.malloc.top_pad=4096:glibc.malloc.arenamax=2",
        "--also",
        "_RJEM_MALLOC_CONF=narenas:1",
        "--also",
        "TCMALLOC_RELEASE=1",
        "--also",
        "MIMALLOC_PURGE_DELAI=0",
        "--",
        "./load",
    ];
    let end = place.run(&line);
    // What is left takes longer than a second.
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    for told in [
        "jemalloc-debian+also-1 did not arrive: MALLOC_CONF: \"lg_tcache_max=12,narenas:2\": Malformed conf string",
        "glibc+also-2 did not arrive: GLIBC_TUNABLES, glibc.malloc.arenamax: \"2\": glibc has no tunable of this name",
        "jemalloc-debian+also-3 did not arrive: _RJEM_MALLOC_CONF: \"narenas:1\": this jemalloc reads MALLOC_CONF",
        "gperftools+also-4 did not arrive: TCMALLOC_RELEASE: \"1\"",
        "glibc+also-5 did not arrive: MIMALLOC_PURGE_DELAI: \"0\": mimalloc reads it, and glibc serves here",
        "settings takes",
    ] {
        assert!(
            end.stderr.contains(told),
            "missing {told:?} in\n{}",
            end.stderr
        );
    }
    assert!(!place.at("tuned/runs/1").exists());
    // None of our own is lost.
    let ours = ["+thresholds", "+arenas", "+decay", "+release", "knobs+"];
    let lost =
        |line: &str| line.contains("did not arrive") && ours.iter().any(|own| line.contains(own));
    assert!(!end.stderr.lines().any(lost), "{}", end.stderr);
    let kept = fs::read(place.at("tuned/tune.json")).unwrap();
    let told: Value = serde_json::from_slice(&kept).unwrap();
    let sights = told["sights"].as_array().unwrap();
    let knobs = knobs_of("glibc");
    let read_back = |name: &str| knobs.iter().find(|(known, _)| known == name).map(|it| it.1);
    let mut compared = 0;
    for sight in sights
        .iter()
        .filter(|it| it[0].as_str().unwrap().starts_with("glibc+"))
    {
        // Of a list glibc leaves the first.
        let first = &sight[1]["given"][0];
        if let Some(read_back) = read_back(first["setting"].as_str().unwrap_or_default())
            && !sight[0].as_str().unwrap().contains("also")
        {
            assert_eq!(first["state"] == "taken", read_back, "{sight}");
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
    // The same command goes on there; another one does not.
    assert_eq!(place.run(&line).code, Some(2));
    assert_eq!(fs::read(place.at("tuned/tune.json")).unwrap(), kept);
    let longer = line.map(|word| if word == "1s" { "2s" } else { word });
    assert!(place.run(&longer).stderr.contains("settings takes"));
    let rebuilt = fs::File::options().write(true).open(place.at("load"));
    rebuilt
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH)
        .unwrap();
    let of_another = place.run(&line);
    assert_eq!(of_another.code, Some(2));
    assert!(
        of_another.stderr.contains("was measured otherwise (now: ")
            && of_another.stderr.contains("load of 0 ms"),
        "{}",
        of_another.stderr
    );
    let other = place.run(&["tune", "-o", "tuned", "--budget", "1s", "--", "./load"]);
    assert_eq!(other.code, Some(2));
    assert!(
        other.stderr.contains("holds a tuning of other work"),
        "{}",
        other.stderr
    );
}

#[test]
fn what_does_not_run_yet_is_tried_again_and_what_confirms_is_tried_first() {
    let place = Place::new();
    let line = ["tune", "--budget", "1s", "--", "cat", "later"];
    let fails = place.run(&line);
    assert_eq!(fails.code, Some(2));
    let why = "does not run under glibc: exit code 1";
    assert!(fails.stderr.contains(why), "{}", fails.stderr);
    fs::write(place.at("later"), "there").unwrap();
    let runs = place.run(&line);
    assert!(runs.stderr.contains("settings takes"), "{}", runs.stderr);
    let held_out = ["tune", "-o", "typo", "--held-out", "cat typo"];
    let end = place.run(&[&held_out[..], &line[1..]].concat());
    assert_eq!(end.code, Some(2));
    let why = "--held-out does not run under glibc: exit code 1";
    assert!(end.stderr.contains(why), "{}", end.stderr);
    // Each process reads all of it.
    let made = Command::new("mkfifo").arg(place.at("fifo")).status();
    assert!(made.unwrap().success());
    let end = place.run(&["tune", "-o", "piped", "--stdin", "fifo", "--", "cat"]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(end.stderr.contains("it can be read once"), "{}", end.stderr);
    // Without a setting there is no race.
    let honest = format!("honest={}", place.fake("honest").display());
    let end = place.run(&["tune", "-a", &honest, "-o", "one", "--", "cat", "later"]);
    assert_eq!(end.code, Some(2));
    let why = "no setting of honest is known, so there is nothing to try";
    assert!(end.stderr.contains(why), "{}", end.stderr);
}

/// The library that it is linked to would end it: in looks, as in rounds, the allocator of `-a` comes first.
#[test]
fn a_program_that_is_linked_to_an_allocator_is_looked_at_as_it_is_measured() {
    let place = Place::new();
    let library = "void *malloc(unsigned long size) { (void)size; __builtin_trap(); }\n";
    fs::write(place.at("trap.c"), library).unwrap();
    fs::write(place.at("load.c"), LOAD).unwrap();
    let make = "cc -shared -fPIC trap.c -o libtrap.so && cc -O1 -fno-builtin load.c ./libtrap.so -Wl,--no-as-needed -o load";
    let made = Command::new("sh")
        .args(["-c", make])
        .current_dir(place.at("."))
        .status();
    assert!(made.unwrap().success());
    let end = place.run(&["tune", "--budget", "1s", "--", "./load"]);
    assert!(end.stderr.contains("load is linked to "), "{}", end.stderr);
    assert!(end.stderr.contains("settings takes"), "{}", end.stderr);
    // What a client of a server cannot be is said before the search.
    let flags = [
        "--server", "./load", "--client", "true", "--ready", "started",
    ];
    let end = place.run(&[&["tune", "--held-out", "no-such-client"], &flags[..]].concat());
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(end.stderr.contains("no-such-client"), "{}", end.stderr);
}

/// The second one hangs: by then a signal does not end heapmark at once any more.
#[test]
fn a_signal_ends_a_prepare_that_hangs() {
    let place = Place::new();
    let prepare = "test -e seen && touch hangs && sleep 600 && touch over; touch seen";
    let child = start(&place, &["tune", "--prepare", prepare, "--", "true"]);
    wait_for("a --prepare that hangs", || place.at("hangs").exists());
    send(&child, Signal::TERM);
    let end = finish(child);
    assert_eq!(end.code, Some(130), "{}", end.stderr);
    let said = "what was measured is stored in heapmark-tune/";
    assert!(end.stderr.contains(said), "{}", end.stderr);
    assert!(!place.at("over").exists());
}

/// The first pairs tell how long a round takes; then the budget is too little for any.
#[test]
fn a_workload_and_a_server_are_measured_before_their_race_is_planned() {
    let place = Place::of_turns();
    plant(&place);
    let end = place.run(&["record", "-o", "load.trace", "./load"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for (name, load) in [
        ("workload", &["-w", "churn-private", "-t", "1"][..]),
        // Its first round alone.
        ("trace", &["-w", "trace:load.trace"]),
        (
            "server",
            &[
                "--server", "sleep 60", "--client", "./load", "--ready", "started",
            ],
        ),
    ] {
        let flags = ["tune", "-a", "knobs", "--budget", "1s", "-o", name];
        let end = place.run(&[&flags, load].concat());
        assert_eq!(end.code, Some(2), "{name}: {}", end.stderr);
        assert!(
            end.stderr.contains("--budget: racing 3 settings takes"),
            "{name}: {}",
            end.stderr
        );
        let run = place.at(&format!("{name}/runs/1"));
        let samples = place.run(&["export", run.to_str().unwrap(), "--to", "csv-samples"]);
        let of_default = samples
            .stdout
            .lines()
            .filter(|line| line.contains(",knobs,"));
        assert!(of_default.count() >= 2, "{name}: {}", samples.stdout);
        let more = flags.map(|word| if word == "1s" { "2s" } else { word });
        let end = place.run(&[&more, load].concat());
        let why = "--budget: racing 3 settings takes";
        assert!(end.stderr.contains(why), "{name}: {}", end.stderr);
    }
    for (flags, why) in [
        (&["-w", "churn", "--prepare", "true"][..], "--prepare"),
        (&["-w", "churn", "--for", "idle"], "-w: idle"),
        (&["-w", "churn*"], "one number of threads"),
        (&["-t", "2", "--", "true"], "--threads"),
    ] {
        let end = place.run(&[&["tune", "-o", "none"], flags].concat());
        assert_eq!(end.code, Some(2), "{flags:?}: {}", end.stderr);
        assert!(end.stderr.contains(why), "{flags:?}: {}", end.stderr);
        assert!(!place.at("none").exists());
    }
}

/// The search runs on the recording of a program, and the program confirms.
#[test]
#[ignore = "make test-all"]
fn a_trace_is_searched_on_and_its_program_confirms() {
    let place = Place::of_turns();
    plant(&place);
    let end = place.run(&["record", "-o", "load.trace", "./load"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let line = [
        "tune",
        "-a",
        "knobs",
        "-w",
        "trace:load.trace",
        "-o",
        "tuned",
        "--format",
        "json",
        "--",
        "./load",
    ];
    let end = place.run(&line);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(told["searched_on"], "trace:load.trace");
    let best = &told["confirmed"][0];
    assert_eq!(best["setting"]["environment"]["KNOBS_FASTER"], "1");
    assert_eq!(best["confirmation"]["word"], "confirmed", "{told:#}");
    let page = fs::read_to_string(place.at("tuned/tune.html")).unwrap();
    assert!(page.contains("Time and memory"));
}

#[test]
#[ignore = "make test-all"]
fn a_planted_setting_is_confirmed_and_a_harmful_one_is_not() {
    let place = Place::of_turns();
    plant(&place);
    let line = [
        "tune",
        "-a",
        "knobs",
        "--budget",
        "15min",
        "-o",
        "tuned",
        "--format",
        "json",
        "--held-out",
        "./load more",
        "--",
        "./load",
    ];
    let end = place.run(&line);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    let confirmed = told["confirmed"].as_array().unwrap();
    let best = &confirmed[0];
    assert_eq!(
        best["setting"]["environment"]["KNOBS_FASTER"], "1",
        "{told:#}"
    );
    assert_eq!(best["confirmation"]["word"], "confirmed", "{told:#}");
    let helps = |it: &&Value| it["confirmation"]["word"] == "confirmed";
    let harms = |it: &Value| it["setting"]["environment"].get("KNOBS_SLOWER").is_some();
    assert!(!confirmed.iter().filter(helps).any(harms), "{told:#}");
    let ends: Vec<f64> = best["ratios"]["time"]["interval"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    assert!(ends[0] < 0.93 && ends[1] > 0.87, "{ends:?}");
    let stored = fs::read_to_string(place.at("tuned/tune.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert!(stored["held_out"]["cpu_ns"].as_u64().unwrap() > 0);
    // Its last round is a run like any other.
    let run = told["run"].as_str().unwrap();
    for command in [
        &["show", run][..],
        &["compare", run],
        &["export", run, "--to", "csv"],
    ] {
        assert_eq!(place.run(command).code, Some(0), "{command:?}");
    }
    // Everything is stored: asking again starts nothing.
    let again = place.run(&line);
    assert_eq!(again.stdout, end.stdout);
    let shown = place.run(&[&line[..7], &line[9..]].concat());
    let lines = shown.stdout.lines().filter(|line| !line.is_empty());
    assert!(lines.count() <= 20, "{}", shown.stdout);
    let page = fs::read_to_string(place.at("tuned/tune.html")).unwrap();
    for part in [
        "Time and memory",
        "knobs+slower",
        "not among the best in the search",
    ] {
        assert!(page.contains(part), "{part}");
    }
}
