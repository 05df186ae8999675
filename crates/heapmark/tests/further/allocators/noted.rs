//! What `heapmark check` has found stands beside the numbers of later runs of the same library, through the built binary: on the
//! terminal, in Markdown, JSON, comparisons and pages; what hardening costs, too.

use crate::support::{End, Place, SMALL, head, words};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A place in which a library that serves well, and another one, were checked: the former's free sets errno.
fn checked() -> Place {
    let place = Place::new();
    let all = format!(
        "wrong={},right={}",
        place.fake("sets_errno").display(),
        place.fake("honest").display()
    );
    let only = ["--only", "free-errno,errno-success,calloc-zero"];
    let end =
        place.run_with_own_cache(&[&["check", "-a", &all, "-o", "checked"], &only[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    place
}

/// A small run of these allocators.
fn run(place: &Place, name: &str, allocators: &str) -> End {
    let own = ["run", "-o", name, "-a", allocators, "--blocks", "2"];
    let end = place.run_with_own_cache(&[&own[..], &SMALL].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    end
}

fn export(place: &Place, run: &str, format: &str) -> String {
    place.run(&["export", run, "--to", format]).stdout
}

/// What `run.json` has of an allocator.
fn kept(place: &Place, run: &str, allocator: &str) -> Value {
    let head = head(&place.at(run));
    let all = head["allocators"].as_array().unwrap();
    let own = all.iter().find(|it| it["name"] == allocator);
    own.unwrap()["checked"].clone()
}

fn libraries(place: &Place) -> String {
    let library = |name: &str| place.at(&format!("lib{name}.so")).display().to_string();
    let (wrong, right) = (library("sets_errno"), library("honest"));
    format!("glibc,wrong={wrong},right={right}")
}

/// The files of the cache.
fn known(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.at("cache/findings")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|it| it == "json"))
        .collect()
}

#[test]
fn a_run_says_what_was_found_of_its_libraries_in_each_of_its_reports() {
    let place = checked();
    run(&place, "run", &libraries(&place));
    let told = words(&place.full("run"));
    let sentence = "wrong fails 1 check: free-errno (free of 1 bytes set errno to 22); heapmark check -a wrong (20";
    assert!(told.contains(sentence), "{told}");
    // The row has a mark, too. (So has the answer, if that library happens to be ahead.)
    assert!(told.contains("wrong partial, fails 1 check"), "{told}");
    let finding = &kept(&place, "run", "wrong")["findings"];
    assert_eq!(finding.as_array().unwrap().len(), 1, "{finding}");
    assert_eq!(finding[0]["check"], "free-errno");
    assert_eq!(finding[0]["heapmark"], env!("CARGO_PKG_VERSION"));
    // What passes, or is left open, is no finding.
    for name in ["right", "glibc"] {
        assert!(!told.contains(&format!("{name} fails")), "{told}");
        assert_eq!(kept(&place, "run", name), Value::Null, "{name}");
    }
    let tried = [
        "try",
        "-o",
        "tried",
        "-a",
        &libraries(&place),
        "--blocks",
        "2",
    ];
    let tried = place.run_with_own_cache(&[&tried[..], &["--", "true"]].concat());
    assert_eq!(tried.code, Some(0), "{}{}", tried.stdout, tried.stderr);
    let tried = words(&place.full("tried"));
    assert!(tried.contains(sentence), "{tried}");
    // The run says it on any machine.
    fs::remove_dir_all(place.at("cache")).unwrap();
    for text in [
        place.full("run"),
        export(&place, "run", "md"),
        place.run(&["compare", "run"]).stdout,
        place.run(&["compare", "run", "--to", "md"]).stdout,
    ] {
        let text = words(&text);
        assert!(text.contains(sentence), "{text}");
        assert!(!text.contains("right fails"), "{text}");
    }
    let json: Value = serde_json::from_str(&export(&place, "run", "json")).unwrap();
    assert_eq!(
        json["run"]["allocators"][1]["checked"]["findings"],
        *finding
    );
    let compared = place.run(&["compare", "run", "--to", "json"]).stdout;
    let compared: Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(compared["failed_checks"]["wrong"], *finding);
    let page = fs::read_to_string(place.at("run/report.html")).unwrap();
    assert!(page.contains("<section id=\"checked\""));
    assert_eq!(page.matches(">fails 1 check</a>").count(), 1);
}

#[test]
fn the_same_library_is_known_by_any_name_and_another_build_or_other_settings_are_not() {
    let place = checked();
    let library = place.at("libsets_errno.so");
    let other = place.at("libother.so");
    let bytes = fs::read(&library).unwrap();
    fs::write(&other, [&bytes[..], b"\0"].concat()).unwrap();
    fs::create_dir_all(place.at("config/heapmark/allocators")).unwrap();
    let tuned = format!(
        "name = \"tuned\"\nfamily = \"mine\"\nabout = \"it\"\ntier = \"user\"\n\
         source = {{ kind = \"path\", files = [\"{}\"] }}\nenvironment = {{ MINE = \"1\" }}\n",
        library.display()
    );
    fs::write(place.at("config/heapmark/allocators/tuned.toml"), tuned).unwrap();
    let own = |library: &Path| library.display().to_string();
    let all = format!("glibc,wrong={},same={},tuned", own(&other), own(&library));
    run(&place, "run", &all);
    let told = words(&place.full("run"));
    assert!(told.contains("same fails 1 check:"), "{told}");
    assert!(told.contains("heapmark check -a same ("), "{told}");
    for unknown in ["wrong", "tuned"] {
        assert!(!told.contains(&format!("{unknown} fails")), "{told}");
        assert_eq!(kept(&place, "run", unknown), Value::Null, "{unknown}");
    }
}

#[test]
fn of_each_check_the_newest_result_counts_and_the_others_stay() {
    let place = checked();
    // As if it had been another build once.
    for file in known(&place) {
        let text = fs::read_to_string(&file).unwrap();
        let old = text.replace("\"verdict\":\"pass\"", "\"verdict\":\"crash\"");
        fs::write(&file, old).unwrap();
    }
    let own = format!("wrong={}", place.at("libsets_errno.so").display());
    let again = ["check", "-a", &own, "--only", "calloc-zero", "-o", "again"];
    assert_eq!(place.run_with_own_cache(&again).code, Some(0));
    run(&place, "run", &libraries(&place));
    let checks = |name: &str| {
        let kept = kept(&place, "run", name);
        let findings = kept["findings"].as_array().unwrap().iter();
        let checks = findings.map(|it| it["check"].as_str().unwrap().to_owned());
        checks.collect::<Vec<String>>()
    };
    assert_eq!(checks("wrong"), ["free-errno"]);
    assert_eq!(checks("right"), ["calloc-zero", "free-errno"]);
}

/// What is kept of two checks of a library that had less time than usual, and what was printed.
fn hastily(place: &Place, library: &Path, checks: &str, timeout: &str) -> (String, String) {
    let own = format!("own={}", library.display());
    let words = ["check", "-a", &own, "-o", "out", "--only", checks];
    let end = place.run_with_own_cache(&[&words[..], &["--timeout", timeout]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let text = fs::read_to_string(&known(place)[0]).unwrap();
    (text, end.stdout)
}

#[test]
fn what_hangs_within_less_time_than_usual_is_not_kept() {
    let place = Place::new();
    let library = place.fake("waits_in_calloc");
    let (text, printed) = hastily(&place, &library, "calloc-overflow,free-null", "1s");
    assert!(printed.contains("own: hang 3 of 3 times: "), "{printed}");
    assert!(
        text.contains("free-null") && !text.contains("calloc-overflow"),
        "{text}"
    );
}

#[test]
fn misuses_that_had_less_time_than_usual_are_not_kept() {
    let place = Place::new();
    let library = place.answering("hangs");
    let (text, _) = hastily(&place, &library, "double-free,free-null", "2s");
    assert!(
        text.contains("free-null") && !text.contains("double-free"),
        "{text}"
    );
}

#[test]
fn a_damaged_file_is_one_line_and_the_next_check_mends_it() {
    let place = checked();
    for file in known(&place) {
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, &text[..text.len() / 2]).unwrap();
    }
    let all = format!("glibc,wrong={}", place.at("libsets_errno.so").display());
    let end = run(&place, "run", &all);
    let lines: Vec<&str> = end.stderr.lines().collect();
    let said = lines.iter().filter(|it| it.contains("damaged")).count();
    assert_eq!(said, 1, "{}", end.stderr);
    let line = "wrong: what heapmark check found is left out (damaged: ";
    assert!(
        lines.iter().any(|it| it.starts_with(line)),
        "{}",
        end.stderr
    );
    assert_eq!(kept(&place, "run", "wrong"), Value::Null);

    let own = format!("wrong={}", place.at("libsets_errno.so").display());
    let again = ["check", "-a", &own, "--only", "free-errno", "-o", "again"];
    assert_eq!(place.run_with_own_cache(&again).code, Some(0));
    let end = run(&place, "mended", &all);
    assert!(!end.stderr.contains("damaged"), "{}", end.stderr);
    assert_eq!(
        kept(&place, "mended", "wrong")["findings"][0]["check"],
        "free-errno"
    );

    let end = place.run_with_own_cache(&["clean", "cache", "--yes"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(!place.at("cache/findings").exists());
    run(&place, "forgotten", &all);
    assert_eq!(kept(&place, "forgotten", "wrong"), Value::Null);
}

#[test]
fn hardening_stands_over_its_price_if_two_were_checked() {
    let place = Place::new();
    let named = |answer: &str| format!("{answer}={}", place.answering(answer).display());
    let [stops, absorbs] = ["stops", "absorbs"].map(named);
    let check = |own: &str, output: &str| {
        let only = [
            "--only",
            "double-free,bad-free-stack,over-8-usable",
            "-o",
            output,
        ];
        let end = place.run_with_own_cache(&[&["check", "-a", own], &only[..]].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
    };
    let few = ["--set", "churn.objects=200", "--blocks", "6"];
    let measure = |name: &str| {
        let all = format!("glibc,{stops},{absorbs}");
        let own = ["run", "-o", name, "-a", &all];
        let end = place.run_with_own_cache(&[&own[..], &SMALL, &few].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        let page = fs::read_to_string(place.at(name).join("report.html")).unwrap();
        (export(&place, name, "md"), page)
    };
    check(&stops, "first");
    let (text, page) = measure("alone");
    assert!(!text.contains("What hardening costs"), "{text}");
    assert!(!page.contains("<section id=\"hardening\""));
    check(&absorbs, "second");
    let (text, page) = measure("both");
    assert!(page.contains("<section id=\"hardening\""));
    assert!(
        text.contains("## What hardening costs, 3 misuses\n"),
        "{text}"
    );
    // Naive writes past the end are noticed, informed ones are not.
    for line in ["| stops | 83 % | ", "| absorbs | 0.0 % | "] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
