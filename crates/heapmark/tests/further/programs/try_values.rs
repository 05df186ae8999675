//! `heapmark try --value`: rows are judged by a number that the command reports; one that is not there is a typed outcome.

use crate::support::home::record;
use crate::support::tried::run;
use crate::support::{End, Place, of_purpose, word, words};
use serde_json::Value;
use std::fs;

/// Reports more under the other library, in the time that glibc takes, and writes it in three places.
const REPORTS: &str = "case $LD_PRELOAD in *honest*) n=300;; *) n=100;; esac\n\
    echo \"ops = $n, p99 = 7\"; echo \"at $n\" >&2; echo \"{\\\"runs\\\":[{\\\"ns\\\":[1$n,2$n,3$n]}]}\" > out.json\n";

fn reported(place: &Place, flags: &[&str]) -> (End, Vec<Value>) {
    fs::write(place.at("report.sh"), REPORTS).unwrap();
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let blocks = ["-a", &honest, "--max-blocks", "6", "--precision", "1%"];
    let _ = fs::remove_dir_all(place.at("run"));
    let all = [
        &["try", "-o", "run", "--no-repeat"],
        &blocks[..],
        flags,
        &["--", "sh", "report.sh"],
    ]
    .concat();
    let end = place.run(&all);
    let records = place
        .at("run/samples.jsonl")
        .exists()
        .then(|| crate::support::samples(&place.at("run")));
    (end, records.unwrap_or_default())
}

#[test]
fn a_number_of_its_own_is_judged_in_place_of_time_in_its_direction() {
    let place = Place::new();
    let values = [
        "--value",
        "ops:higher:1/s=ops = ([0-9]+)",
        "--value",
        "p99:lower:ms=p99 = ([0-9]+)",
    ];
    let (end, records) = reported(&place, &values);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let said = words(&end.stdout);
    for words in [
        "Use honest: 3.000 times glibc's ops [3.000, 3.000]",
        "allocator ops, 1/s ops / glibc [95 %] verdict p99, ms",
        "honest 300 3.000 [3.000, 3.000] better 7",
        "A/A: a copy of glibc has 1.000",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
    for sample in of_purpose(&records, "sample") {
        let figures = &sample["measurement"]["figures"];
        let is_honest = sample["allocator"] == "honest";
        assert_eq!(figures["value.ops"], if is_honest { 300.0 } else { 100.0 });
        assert!(sample["measurement"]["turns"].is_null(), "alone");
    }
    let end = place.run(&["compare", "run", "--by", "value"]);
    let said = words(&end.stdout);
    assert!(
        said.contains("honest 0.333 [0.333, 0.333] better"),
        "{said}{}",
        end.stderr
    );
    let end = place.run(&["export", "run", "--to", "csv", "-o", "-"]);
    assert!(end.stdout.contains("value_cost"), "{}", end.stdout);
}

#[test]
fn the_same_number_of_less_is_worse_and_repetitions_are_one_number() {
    let place = Place::new();
    let flags = [
        "--value-json",
        "ns:lower=runs[*].ns",
        "--value-from",
        "out.json",
    ];
    let (end, records) = reported(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let said = words(&end.stdout);
    assert!(
        said.contains("honest 2300 1.095 [1.095, 1.095] worse"),
        "{said}"
    );
    let figures = &of_purpose(&records, "sample")[0]["measurement"]["figures"];
    assert_eq!(figures["value.ns.repetitions"], 3.0);
    let (end, _) = reported(
        &place,
        &["--value", "at:higher=at ([0-9]+)", "--value-from", "stderr"],
    );
    assert!(end.says("honest 300 3.000"), "{}{}", end.stdout, end.stderr);
}

#[test]
fn a_number_that_is_not_there_is_a_typed_outcome() {
    let place = Place::new();
    let why = |flags: &[&str]| {
        let (end, records) = reported(&place, flags);
        assert_eq!(end.code, Some(1), "{}", end.stderr);
        let outcome = &record(&records, "check", "glibc")["outcome"];
        assert_eq!(word(outcome, "kind"), "wrong-result");
        assert!(
            end.stderr
                .contains("cannot be tried under glibc: no value "),
            "{}",
            end.stderr
        );
        word(outcome, "what").to_owned()
    };
    let of = |flag: &str| why(&["--value", flag]);
    assert_eq!(
        of("x:lower=y = ([0-9]+)"),
        "no value x: nothing like it in stdout"
    );
    assert_eq!(of("x:lower=(o)ps"), "no value x: \"o\" is no number");
    assert_eq!(of("x:lower=p9(0*)9"), "no value x: \"\" is no number");
    fs::write(
        place.at("old.json"),
        "{\"a\": 1, \"b\": \"zero\", \"c\": 0}",
    )
    .unwrap();
    let json = |path: &str, from: &str| why(&["--value-json", path, "--value-from", from]);
    assert!(json("x:lower=a", "old.json").ends_with("old.json was not written by this process"));
    assert!(json("x:lower=a", "none.json").contains("none.json: No such file"));
    assert!(json("x:lower=runs[7]", "out.json").ends_with("nothing at 7 of runs[7]"));
    assert!(json("x:lower=runs", "out.json").contains(" at runs is no number"));
    // Nothing is missing under glibc alone.
    let flags = ["--value", "x:higher=ops = ([0-2][0-9]*)"];
    let (end, records) = reported(&place, &flags);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let outcome = &record(&records, "check", "honest")["outcome"];
    assert_eq!(
        word(outcome, "what"),
        "no value x: nothing like it in stdout"
    );
}

#[test]
fn what_could_never_be_read_is_refused_in_one_line() {
    let place = Place::new();
    for (flags, why) in [
        (
            &["--value", "ops=(x)"][..],
            "expected NAME:higher=... or NAME:lower=...",
        ),
        (
            &["--value", "ops:more=(x)"],
            "expected NAME:higher=... or NAME:lower=...",
        ),
        (&["--value", "ops:higher=x"], "has 0 groups"),
        (&["--value", "ops:higher=(x"], "is no regular expression"),
        (&["--value-json", "ops:higher="], "an empty path"),
        (&["--value-of", "wkr"], "did you mean `wrk`?"),
        (
            &["--value-of", "ab", "--value-of", "wrk"],
            "two have this name",
        ),
        (&["--value-from", "file"], "--value-from: name the number"),
        (
            &["--value", "ops:higher=(x)", "--check-output"],
            "cannot be used with",
        ),
    ] {
        let end = run(&place, &[flags, &["--", "/bin/true"]].concat()).0;
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(end.stderr.contains(why), "no {why} in {}", end.stderr);
    }
}
