//! What `heapmark doctor` says of a machine, and what a run keeps of it, through the built binary on planted machines.

use crate::support::machine::Machine;
use crate::support::{End, Place, SMALL};
use heapmark::observe::preflight::Preflight;

/// heapmark on a planted machine.
fn on(place: &Place, machine: &Machine, args: &[&str]) -> End {
    End::of(
        place
            .heapmark(args)
            .env("HEAPMARK_MACHINE_ROOT", machine.root())
            .output()
            .unwrap(),
    )
}

fn with_two_warnings(place: &Place) -> Machine {
    let machine = Machine::clean(place.at("machine"));
    machine.plant("sys/kernel/mm/ksm/run", "1\n");
    machine.plant("proc/loadavg", "3.00 0.10 0.10 1/88 1\n");
    machine
}

const TWO: &str = "machine: 2 warnings (ksm, load): heapmark doctor says what they mean";

#[test]
fn doctor_shows_warnings_and_strict_makes_them_a_failure() {
    let place = Place::new();
    let machine = with_two_warnings(&place);
    let (plain, strict) = (
        on(&place, &machine, &["doctor"]),
        on(&place, &machine, &["doctor", "--strict"]),
    );
    assert_eq!(
        (plain.code, strict.code),
        (Some(0), Some(5)),
        "{}{}",
        plain.stderr,
        strict.stderr
    );
    assert_eq!(plain.stdout, strict.stdout);
    for told in [
        "as reported by ",
        "Warnings\n",
        "  ksm: ",
        "    change: echo 0 | sudo tee",
        "2 warnings, 0 notes, ",
        "compiled traces: ",
    ] {
        assert!(
            plain.stdout.contains(told),
            "no `{told}` in\n{}",
            plain.stdout
        );
    }
    let clean = Machine::clean(place.at("clean"));
    assert_eq!(on(&place, &clean, &["doctor", "--strict"]).code, Some(0));
}

#[test]
fn doctor_as_json_has_every_item() {
    let place = Place::new();
    let machine = with_two_warnings(&place);
    machine.remove("proc/swaps");
    let end = on(
        &place,
        &machine,
        &["doctor", "--format", "json", "--strict"],
    );
    assert_eq!(end.code, Some(5), "{}", end.stderr);
    let look: Preflight = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(look.warnings(), ["ksm", "load"]);
    assert_eq!(look.root.as_deref(), Some(machine.root()));
    let value: serde_json::Value = serde_json::from_str(&end.stdout).unwrap();
    let swap = value["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["name"] == "swap")
        .unwrap();
    assert_eq!(
        (&swap["found"], &swap["state"]),
        (&serde_json::Value::Null, &"note".into())
    );
}

#[test]
fn doctor_looks_at_this_machine_unless_told_otherwise() {
    let place = Place::new();
    let end = place.run(&["doctor", "--format", "json"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let look: Preflight = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(look.root, None);
    let told = |name: &str| {
        look.items
            .iter()
            .any(|item| item.name == name && item.found.is_some())
    };
    for name in [
        "usable-cpus",
        "aslr",
        "overcommit",
        "free-memory",
        "steal",
        "load",
        "hardware-counters",
    ] {
        assert!(told(name), "{name} is not told");
    }
}

#[test]
fn prices_are_of_this_machine_only() {
    let place = Place::new();
    let json = |end: End| -> serde_json::Value {
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        serde_json::from_str(&end.stdout).unwrap()
    };
    let here = json(place.run(&["doctor", "--format", "json"]));
    let prices = here["prices"].as_array().unwrap();
    for name in [
        "page-fault-first",
        "page-fault-again",
        "mmap-munmap",
        "madvise-dontneed",
        "locked-instruction",
        "thread",
    ] {
        let price = prices.iter().find(|price| price["name"] == name);
        let price = price.unwrap_or_else(|| panic!("no {name} in {here}"));
        let [least, median, most] = ["least_ns", "median_ns", "most_ns"]
            .map(|key| price[key].as_f64().unwrap_or_else(|| panic!("{price}")));
        assert!(0.0 < least && least <= median && median <= most, "{price}");
        assert!(
            price["repetitions"].is_u64() && price["means"].is_string(),
            "{price}"
        );
        let has_typical = price["typical_ns"].is_number();
        assert_eq!(has_typical, name.starts_with("page-fault"), "{price}");
    }
    let table = place.run(&["doctor"]).stdout;
    assert!(table.contains("page-fault-again"), "{table}");
    let machine = Machine::clean(place.at("machine"));
    let there = json(on(&place, &machine, &["doctor", "--format", "json"]));
    assert_eq!(there["prices"], serde_json::Value::Null);

    let end = place.run(&run(&["-o", "run"]));
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let all = place.run(&["show", "--full", "run"]).stdout;
    assert!(all.contains("prices here: page-fault-first "), "{all}");
    let stored = json(place.run(&["export", "run", "--to", "json"]));
    let measured = stored["machine"]["prices"].as_array().unwrap();
    assert_eq!(measured.len(), 1);
    assert_eq!(measured[0]["prices"][0]["name"], "page-fault-first");
    let end = on(&place, &machine, &run(&["-o", "copied"]));
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(!place.at("copied/machine/prices.json").exists());
}

#[test]
fn a_folder_that_is_no_machine_is_refused() {
    let place = Place::new();
    for args in [&["doctor"][..], &["run", "-a", "glibc", "-o", "run"]] {
        let end = End::of(
            place
                .heapmark(args)
                .env("HEAPMARK_MACHINE_ROOT", "nowhere")
                .output()
                .unwrap(),
        );
        assert_eq!(
            (end.code, end.stdout.as_str()),
            (Some(2), ""),
            "{}",
            end.stderr
        );
        assert!(
            end.stderr
                .starts_with("heapmark: HEAPMARK_MACHINE_ROOT names nowhere"),
            "{}",
            end.stderr
        );
    }
    assert!(!place.at("run").exists());
}

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "-a", "glibc", "--blocks", "2"], &SMALL[..], more].concat()
}

#[test]
fn a_strict_run_on_a_machine_with_warnings_measures_nothing() {
    let place = Place::new();
    let machine = with_two_warnings(&place);
    let end = on(&place, &machine, &run(&["-o", "run", "--strict"]));
    assert_eq!(
        (end.code, end.stdout.as_str()),
        (Some(5), ""),
        "{}",
        end.stderr
    );
    for told in [
        "ksm: on: ",
        "load: 3.00 over a minute: ",
        "change: ",
        TWO,
        "nothing was measured",
    ] {
        assert!(end.stderr.contains(told), "no `{told}` in {}", end.stderr);
    }
    assert!(!place.at("run").exists());
    let clean = Machine::clean(place.at("clean"));
    let end = on(&place, &clean, &run(&["-o", "run", "--strict"]));
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(
        end.stderr.contains("machine: no warnings\n"),
        "{}",
        end.stderr
    );
    assert!(!end.says("doctor warns"), "{}", end.stdout);
}

#[test]
fn a_run_records_the_machine_before_and_after_and_each_part_adds_its_own() {
    let place = Place::new();
    let machine = with_two_warnings(&place);
    let end = on(&place, &machine, &run(&["-o", "run"]));
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stderr.lines().any(|line| line == TWO), "{}", end.stderr);
    let page = std::fs::read_to_string(place.at("run/report.md")).unwrap();
    assert!(page.contains(TWO), "{page}");
    let brief = "doctor warns: ksm, load.";
    assert!(end.says(brief), "{}", end.stdout);
    let looks = |file: &str| -> Vec<Preflight> {
        let text = std::fs::read(place.at("run/machine").join(file)).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
        serde_json::from_value(document["preflights"].clone()).unwrap()
    };
    assert_eq!(
        (looks("before.json").len(), looks("after.json").len()),
        (1, 1)
    );
    assert_eq!(looks("after.json")[0].warnings(), ["ksm"]);

    machine.plant("sys/kernel/mm/ksm/run", "0\n");
    machine.plant("proc/sys/kernel/randomize_va_space", "0\n");
    assert_eq!(
        on(&place, &machine, &["run", "--resume", "run"]).code,
        Some(0)
    );
    let (before, after) = (looks("before.json"), looks("after.json"));
    assert_eq!((before.len(), after.len()), (2, 2));
    assert_eq!(
        (before[0].warnings(), before[1].warnings()),
        (
            vec!["ksm".into(), "load".into()],
            vec!["aslr".into(), "load".into()]
        )
    );
    // What disturbed any part of the run disturbed the run.
    let page = std::fs::read_to_string(place.at("run/report.md")).unwrap();
    assert!(
        page.contains("machine: 3 warnings (ksm, load, aslr)"),
        "{page}"
    );
    let json = place.run(&["export", "run", "--to", "json"]).stdout;
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["machine"]["after"].as_array().unwrap().len(), 2);
}
