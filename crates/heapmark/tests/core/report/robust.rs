//! Run directories that something has happened to: torn, doubled, emptied, moved, of tomorrow, hostile. Each is read as what is left of
//! it, and that is said, or it is refused in one line.

use crate::support::stored::{change_head, change_lines, changed, lines, original, stored};
use crate::support::{End, Place};
use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use heapmark::analyse::reads_figure;
use heapmark::store::{self, Paths, Run};
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// What reads a run.
const READERS: [&[&str]; 7] = [
    &["show", "run"],
    &["report", "run", "-o", "-"],
    &["export", "run", "--to", "csv-samples"],
    &["export", "run", "--to", "csv-rows"],
    &["export", "run", "--to", "json"],
    &["export", "run", "--to", "md"],
    &["claims", "run"],
];
/// How these, and `run --resume`, take it from its folder.
const READS: [fn(&Path) -> Result<Run>; 4] = [
    store::read,
    store::read_published,
    |dir| store::read_for_tables(dir, Paths::Published, reads_figure),
    |dir| store::read_for_tables(dir, Paths::Published, |_| true),
];

/// Every reader reads it and says these words.
fn all_say(place: &Place, words: &str) {
    all_of_them_say(&READERS, place, words);
}

/// The same of a run of which no sample is left, and which so has nothing for a file of samples.
fn all_but_samples_say(place: &Place, words: &str) {
    let is_of_samples = |reader: &&[&str]| reader.ends_with(&["csv-samples"]);
    let (of_samples, others): (Vec<&[&str]>, Vec<&[&str]>) =
        READERS.into_iter().partition(is_of_samples);
    all_of_them_say(&others, place, words);
    for reader in of_samples {
        let end = place.run(reader);
        assert_eq!(
            (end.code, end.stdout.as_str()),
            (Some(2), ""),
            "{}",
            end.stderr
        );
        assert!(
            end.stderr.starts_with(words) && end.stderr.contains("nothing for csv"),
            "{}",
            end.stderr
        );
    }
}

fn all_of_them_say(readers: &[&[&str]], place: &Place, words: &str) {
    for reader in readers {
        let end = place.run(reader);
        assert_eq!(end.code, Some(0), "{reader:?}: {}", end.stderr);
        assert_eq!(end.stderr.trim(), words, "{reader:?}");
    }
}

/// Ended so, with one line that has these words.
fn is_refused(end: &End, code: i32, words: &str) {
    assert_eq!(end.code, Some(code), "{}", end.stderr);
    assert!(
        end.stderr.contains(words) && end.stderr.lines().count() == 1,
        "{}",
        end.stderr
    );
    assert_eq!(end.stdout, "");
}

/// Of a state like one that all readers were asked about: one reader says these words, and for all of them so many lines and
/// tables are left out.
fn one_says(place: &Place, words: &str, counts: [usize; 2]) {
    all_of_them_say(&READERS[..1], place, words);
    for read in READS {
        let run = read(&place.at("run")).unwrap();
        assert_eq!([run.unreadable_lines, run.damaged_tables.len()], counts);
    }
}

/// Of such a state: one reader refuses it with these words, and none can read it.
fn one_refuses(place: &Place, words: &str) {
    is_refused(&place.run(READERS[0]), 1, words);
    for read in READS {
        let why = format!("{:#}", read(&place.at("run")).err().unwrap());
        assert!(why.contains(words), "{why}");
    }
}

fn left_out(lines: usize) -> String {
    format!("run/samples.jsonl: torn or damaged lines, left out: {lines}")
}

/// Of the three files in `series/` the first, and so many more.
fn damaged(more: usize) -> String {
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!(
        "run/series/churn@1_b00_glibc.csv{more}: gone or damaged, left out; bring back what was written"
    )
}

/// What is stored and not derived: each iteration of each sample.
fn samples(place: &Place) -> String {
    place.run(&["export", "run", "--to", "csv-samples"]).stdout
}

#[test]
fn a_torn_last_line_costs_its_own_process_and_is_said() {
    let place = stored();
    let text = lines(&place.at("run"));
    fs::write(place.at("run/samples.jsonl"), &text[..text.len() - 40]).unwrap();
    all_say(&place, &left_out(1));
    assert_eq!(place.rows("run")[0]["samples"], "2");
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stderr.contains(&left_out(1)), "{}", end.stderr);
    assert_eq!(place.rows("run")[0]["samples"], "3");
}

#[test]
fn a_changed_digit_costs_its_process_and_never_becomes_a_number() {
    let place = stored();
    let text = lines(&place.at("run"));
    let at = text.rfind("\"wall_ns\":").unwrap() + "\"wall_ns\":".len();
    let digit = if text.as_bytes()[at] == b'9' {
        "8"
    } else {
        "9"
    };
    fs::write(
        place.at("run/samples.jsonl"),
        format!("{}{digit}{}", &text[..at], &text[at + 1..]),
    )
    .unwrap();
    one_says(&place, &left_out(1), [1, 0]);
    assert!(
        samples(&stored()).starts_with(&samples(&place)),
        "the others are as they were"
    );
}

#[test]
fn lines_that_stand_there_twice_count_once_and_the_last_of_a_cell_counts() {
    let place = stored();
    let (text, before) = (lines(&place.at("run")), samples(&place));
    fs::write(place.at("run/samples.jsonl"), text.repeat(2)).unwrap();
    all_say(&place, "");
    assert_eq!(samples(&place), before);
    assert_eq!(place.rows("run")[0]["samples"], "3");

    let crash = json!({"kind": "crash", "signal": "SIGSEGV", "phase": "run"});
    let later = changed(text.lines().last().unwrap(), |record| {
        record["outcome"] = crash.clone()
    });
    fs::write(place.at("run/samples.jsonl"), text + &later).unwrap();
    assert_eq!(place.rows("run")[0]["outcome"], "crash");
}

#[test]
fn keys_of_a_later_heapmark_are_ignored() {
    let place = stored();
    let before = samples(&place);
    let more = |value: &mut Value| value["sparkle"] = json!({"a": [1, null, "x"], "b\n": {}});
    change_head(&place.at("run"), |head| {
        more(head);
        more(&mut head["plan"]);
        more(&mut head["plan"]["cases"][0]);
    });
    change_lines(&place.at("run"), |record| {
        more(record);
        if record["measurement"].is_object() {
            more(&mut record["measurement"]);
        }
    });
    all_say(&place, "");
    assert_eq!(samples(&place), before);
    assert_eq!(place.run(&["run", "--resume", "run"]).code, Some(0));
}

#[test]
fn another_schema_is_refused_by_all() {
    let place = stored();
    let before = lines(&place.at("run"));
    let more: [&[&str]; 2] = [
        &["run", "--resume", "run"],
        &["run", "--resume", "run", "--cell", "churn@1/b00/glibc"],
    ];
    let with_schema = |schema: u32| {
        change_head(&place.at("run"), |head| head["schema"] = json!(schema));
        format!("run/run.json has schema {schema}, this heapmark reads 5 to 6")
    };
    let words = with_schema(4);
    for reader in READERS.iter().chain(&more) {
        is_refused(&place.run(reader), 1, &words);
    }
    one_refuses(&place, &with_schema(99));
    assert_eq!(lines(&place.at("run")), before);
}

#[test]
fn a_head_that_is_gone_or_changed_is_refused_by_all() {
    let place = stored();
    let file = place.at("run/run.json");
    let text = fs::read_to_string(&file).unwrap();
    let damages = [
        text.replacen("\"blocks\": 3", "\"blocks\": 4", 1),
        text[..text.len() / 2].to_string(),
        "{}".into(),
    ];
    for damaged in &damages {
        assert_ne!(*damaged, text);
        fs::write(&file, damaged).unwrap();
        one_refuses(&place, "run/run.json is damaged");
    }
    let resume: &[&str] = &["run", "--resume", "run"];
    for reader in READERS.iter().chain([&resume]) {
        is_refused(&place.run(reader), 1, "run/run.json is damaged");
    }
    fs::remove_file(&file).unwrap();
    READERS
        .iter()
        .for_each(|reader| is_refused(&place.run(reader), 2, "no run in run"));
}

#[test]
fn a_run_without_samples_has_tables_without_numbers_and_can_go_on() {
    for gone in [false, true] {
        let place = stored();
        match gone {
            true => fs::remove_file(place.at("run/samples.jsonl")).unwrap(),
            false => fs::write(place.at("run/samples.jsonl"), "").unwrap(),
        }
        all_but_samples_say(&place, "");
        let row = &place.rows("run")[0];
        assert_eq!((&*row["samples"], &*row["ns_per_op"]), ("0", ""), "{row:?}");
        let end = place.run(&["run", "--resume", "run"]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert_eq!(place.rows("run")[0]["samples"], "3");
    }
}

#[test]
fn a_run_in_which_everything_failed_says_so_and_has_no_number() {
    let place = stored();
    change_lines(&place.at("run"), |record| {
        record["outcome"] =
            json!({"kind": "hang", "after_s": 2.0, "phase": "run", "threads": ["1 S futex"]});
        record.as_object_mut().unwrap().shift_remove("measurement");
    });
    all_say(&place, "");
    let row = &place.rows("run")[0];
    assert_eq!(
        (&*row["outcome"], &*row["ns_per_op"]),
        ("hang", ""),
        "{row:?}"
    );
    assert!(
        place
            .run(&["export", "run", "--to", "md"])
            .stdout
            .contains("hang")
    );
}

#[test]
fn files_beside_the_samples_that_are_torn_or_gone_are_left_out_and_named() {
    let place = stored();
    let before = samples(&place);
    let mut series: Vec<_> = fs::read_dir(place.at("run/series"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    series.sort();
    assert_eq!(series.len(), 3);
    fs::remove_file(&series[0]).unwrap();
    fs::write(&series[1], "time_ns,phase,rss_bytes\n5,run,7\n6,ru").unwrap();
    fs::write(&series[2], [0xff, 0, 0x1b]).unwrap();
    fs::remove_dir_all(place.at("run/machine")).unwrap();
    all_say(&place, &damaged(2));
    fs::remove_dir_all(place.at("run/series")).unwrap();
    one_says(&place, &damaged(2), [0, 3]);
    assert_eq!(samples(&place), before);
    fs::create_dir(place.at("run/machine")).unwrap();
    fs::write(place.at("run/machine/before.json"), "[{\"looked\"").unwrap();
    READERS
        .iter()
        .for_each(|reader| is_refused(&place.run(reader), 1, "run/machine/before.json is damaged"));
}

#[test]
fn a_changed_digit_in_a_file_beside_the_samples_is_shown_nowhere() {
    let place = stored();
    // With what its charts show, which is packed.
    let report = || {
        let page = place.run(&["report", "run", "-o", "-"]).stdout;
        let (_, data) = page.split_once("id=\"data\">").unwrap();
        let packed = BASE64_STANDARD.decode(data.split('<').next().unwrap());
        let charts = decompress_to_vec_zlib(&packed.unwrap()).unwrap();
        page.clone() + &String::from_utf8(charts).unwrap()
    };
    let file = place.at("run/series/churn@1_b00_glibc.csv");
    let text = fs::read_to_string(&file).unwrap();
    let planted = "7654321098765432";
    let cell = text.lines().nth(1).unwrap().rsplit(',').next().unwrap();
    let changed = text.replacen(&format!(",{cell}\n"), &format!(",{planted}\n"), 1);
    assert_ne!(changed, text);
    fs::write(&file, &changed).unwrap();
    all_say(&place, &damaged(0));
    assert!(
        !report().contains(planted) && report().contains("churn@1/b01/glibc"),
        "another process is shown instead"
    );

    // It would be shown: as soon as the record has its checksum.
    let checksum = format!("{:08x}", crc32fast::hash(changed.as_bytes()));
    change_lines(&place.at("run"), |record| {
        if record["cell"] == "churn@1/b00/glibc" {
            record["tables"]["series"] = json!(checksum);
        }
    });
    one_says(&place, "", [0, 0]);
    assert!(report().contains(planted));

    let look = place.at("run/machine/before.json");
    let text = fs::read_to_string(&look).unwrap();
    let digit = text.find(|c: char| c.is_ascii_digit()).unwrap();
    let other = if text.as_bytes()[digit] == b'9' {
        "8"
    } else {
        "9"
    };
    fs::write(
        &look,
        format!("{}{other}{}", &text[..digit], &text[digit + 1..]),
    )
    .unwrap();
    let words = "run/machine/before.json is damaged: without it the run can be read";
    one_refuses(&place, words);
}

#[test]
fn a_run_of_another_machine_is_read_as_such_and_not_gone_on_with() {
    let place = stored();
    change_head(&place.at("run"), |head| {
        head["machine"]["cpu_model"] = json!("Abacus 2")
    });
    all_say(&place, "");
    assert!(place.run(&["export", "run", "--to", "md"]).says("Abacus 2"));
    is_refused(
        &place.run(&["run", "--resume", "run"]),
        1,
        "this run began on a machine with cpu_model Abacus 2",
    );
    assert_eq!(lines(&place.at("run")), lines(&original()));
}

#[test]
fn a_run_does_not_go_on_with_another_heapmark_or_another_c_library() {
    let goes_on = |change: fn(&mut Value), told: &str| {
        let place = stored();
        change_head(&place.at("run"), change);
        is_refused(&place.run(&["run", "--resume", "run"]), 1, told);
        assert_eq!(lines(&place.at("run")), lines(&original()));
    };
    goes_on(
        |head| head["heapmark"] = json!("0.0.9"),
        "heapmark 0.0.9 began this run, and this is",
    );
    goes_on(
        |head| head["machine"]["c_library"] = json!("2.0-1"),
        "this run began on a machine with c_library 2.0-1, here it is",
    );
}

#[test]
fn what_a_run_printed_is_shown_again() {
    let place = Place::new();
    let end = place.run_small("run", &["-a", "glibc", "--blocks", "3"]);
    let again = place.run(&["show", "run"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    // Of nanoseconds or, beside load, microseconds.
    assert!(again.stdout.contains("s/op"), "{}", again.stdout);
    assert!(
        end.stdout.contains(&again.stdout),
        "{}\n{}",
        end.stdout,
        again.stdout
    );
    let none = place.run(&["show", "none"]);
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (Some(2), ""),
        "{}",
        none.stderr
    );
}
