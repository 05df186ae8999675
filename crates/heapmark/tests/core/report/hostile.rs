//! Names and messages that are markup or move the cursor of a terminal: shown as text, wherever they are shown.

use crate::support::Place;
use crate::support::campaign::planned;
use crate::support::stored::{change_head, change_lines, copy, stored};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// HTML, Markdown, a cell of a sheet, and escapes of two kinds.
const EVIL: &str = "<script>alert(1)</script>\u{1b}[2J\u{9b}31m\u{202e}|`*_&\"'";

/// Names of the run become evil ones, in whatever they are a part of.
fn rename(value: &mut Value) {
    match value {
        Value::String(text) => {
            *text = text
                .replace("glibc", &format!("g{EVIL}"))
                .replace("churn", &format!("c{EVIL}"))
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        // The kernel's name is no name that anybody gave.
        Value::Object(entries) => entries
            .iter_mut()
            .filter(|(key, _)| *key != "kernel")
            .for_each(|(_, it)| rename(it)),
        _ => {}
    }
}

/// A run with such names; where `failed`, its last process failed with such words.
fn hostile(failed: bool) -> Place {
    let place = stored();
    change_head(&place.at("run"), |head| {
        rename(head);
        for key in ["suite", "preset", "started", "heapmark"] {
            head[key] = json!(EVIL);
        }
        head["machine"]["kernel"] = json!(EVIL);
    });
    change_lines(&place.at("run"), |record| {
        rename(record);
        if failed && record["block"] == 2 {
            record["outcome"] = json!({"kind": "not-loaded", "why": EVIL});
            record["stderr"] = json!(format!("{EVIL}\n{EVIL}"));
            record.as_object_mut().unwrap().shift_remove("measurement");
        }
    });
    place
}

/// Nothing that a terminal would obey, and no mark that turns the text around.
fn is_plain(what: &str, text: &str) {
    let obeyed = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
    assert_eq!(text.chars().find(obeyed), None, "{what}: {text}");
}

#[test]
fn a_terminal_shows_them_as_text() {
    for failed in [false, true] {
        let place = hostile(failed);
        let refused = place.run(&["run", "--resume", "run"]);
        let told = &refused.stderr;
        assert!(told.contains("began this run"), "{told}");
        is_plain("stderr", told);
        change_head(&place.at("run"), |head| {
            head["heapmark"] = json!(env!("CARGO_PKG_VERSION"))
        });
        let end = place.run(&["run", "--resume", "run"]);
        assert_eq!(end.code, Some(if failed { 4 } else { 0 }), "{}", end.stderr);
        assert!(
            end.stdout.contains("g<script>alert(1)</script>[2J31m|"),
            "{}",
            end.stdout
        );
        assert_eq!(end.stdout.contains("not-loaded"), failed);
        let claims = place.run(&["claims", "run"]);
        for text in [&end.stdout, &end.stderr, &claims.stdout, &claims.stderr] {
            is_plain("terminal", text);
        }
    }
}

#[test]
fn names_of_machines_and_of_folders_are_text_in_lists_and_their_json() {
    let place = stored();
    planned(&place, "1");
    fs::create_dir(place.at("camp/beat")).unwrap();
    let beat = json!({"host": EVIL, "boot_id": ""}).to_string();
    fs::write(place.at("camp/beat/0-1.json"), beat).unwrap();
    fs::create_dir(place.at("heapmark-results")).unwrap();
    let folder = OsStr::from_bytes(b"\x1b[2J\xc2\x9b31m\xe2\x80\xae\xe9");
    copy(&place.at("run"), &place.at("heapmark-results").join(folder));
    for (command, word) in [
        (&["campaign", "status", "camp"][..], "running on <script>"),
        (
            &["campaign", "status", "camp", "--format", "json"],
            "\\u001b[2J\\u009b31m\\u202e",
        ),
        (&["list", "runs"], "heapmark-results/[2J31m"),
        (
            &["list", "runs", "--format", "json"],
            "\\u001b[2J\\u009b31m\\u202e",
        ),
    ] {
        let end = place.run(command);
        assert!(end.says(word), "{command:?}: {}{}", end.stdout, end.stderr);
        is_plain(word, &end.stdout);
    }
}

#[test]
fn an_error_that_quotes_a_file_is_plain_too() {
    let place = stored();
    change_head(&place.at("run"), |head| head["plan"]["mode"] = json!(EVIL));
    let end = place.run(&["report", "run"]);
    assert_eq!(end.code, Some(1));
    assert!(
        end.stderr.contains("<script>alert(1)</script>[2J31m|"),
        "{}",
        end.stderr
    );
    is_plain("stderr", &end.stderr);
}

#[test]
fn markdown_has_no_markup_of_theirs() {
    for failed in [false, true] {
        let place = hostile(failed);
        for command in [
            &["export", "run", "--to", "md"][..],
            &["claims", "run", "--to", "md"],
            &["claims", "run", "--reproduction"],
        ] {
            let end = place.run(command);
            assert_eq!(end.code, Some(0), "{}", end.stderr);
            is_plain("md", &end.stdout);
            assert!(
                !end.stdout.contains("<script"),
                "{command:?}: {}",
                end.stdout
            );
        }
        assert!(
            place
                .run(&["export", "run", "--to", "md"])
                .stdout
                .contains("g&lt;script&gt;alert")
        );
    }
}

#[test]
fn a_page_has_the_elements_it_has_with_good_names() {
    let elements = |place: &Place| {
        let end = place.run(&["report", "run", "-o", "-"]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let count = |what: &str| end.stdout.matches(what).count();
        (
            [
                count("<script"),
                count("</script"),
                count("\u{1b}"),
                count("\u{9b}"),
                count("\u{202e}"),
            ],
            end.stdout,
        )
    };
    let (mut good, _) = elements(&stored());
    for failed in [false, true] {
        let (found, page) = elements(&hostile(failed));
        assert!(page.contains("g&lt;script&gt;alert"));
        assert!(!page.contains("<script>alert"));
        if failed {
            // Nothing is left to draw: neither data nor the library that draws nor its calls. Commands can be copied.
            good = [1, 1, 0, 0, 0];
        }
        assert_eq!(found, good, "failed: {failed}");
    }
}

#[test]
fn tables_for_programs_have_no_escapes() {
    for failed in [false, true] {
        let place = hostile(failed);
        for format in ["csv", "csv-rows", "json", "csv-latency"] {
            if format == "csv-latency" {
                // It is for runs that time single calls only; that this one has none of them is a line, too.
                change_head(&place.at("run"), |head| {
                    head["plan"]["mode"] = json!({"latency": {"every": 16}})
                });
            }
            let end = place.run(&["export", "run", "--to", format]);
            assert_eq!(end.code, Some(0), "{}", end.stderr);
            is_plain(format, &end.stdout);
            assert_eq!(
                end.stdout.contains("\\u001b[2J\\u009b31m\\u202e"),
                format == "json",
                "JSON keeps what came, as escapes"
            );
        }
    }
}
