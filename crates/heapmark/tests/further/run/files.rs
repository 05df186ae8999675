//! What heapmark writes is complete or not there, private where it is made of something private, and never overwrites a file
//! unless it is asked to.

use crate::support::live::{finish, send, wait_for};
use crate::support::stored::{change_lines, stored};
use crate::support::{End, Place, SMALL, files, head, samples};
use heapmark_trace::{Event, Head, Token, Writer};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A trace of so many pairs of calls, with words of a command line in it.
fn trace(path: &Path, pairs: u64) {
    let mut head = Head::default();
    head.set("argv.0", "program");
    head.set("argv.1", "--password=hunter2");
    let mut file = fs::File::create(path).unwrap();
    let mut writer = Writer::new(&mut file, &head).unwrap();
    for index in 0..pairs {
        writer
            .write(
                0,
                &Event::Malloc {
                    size: index % 100,
                    operator: false,
                },
            )
            .unwrap();
        writer
            .write(
                0,
                &Event::Free {
                    token: Token { thread: 0, index },
                },
            )
            .unwrap();
    }
    writer.finish().unwrap();
}

/// Replays `a.trace` of this place, with a folder of it as the cache.
fn replayed_with_cache(place: &Place, cache: &str) {
    let mut replay = place.heapmark(&[
        "replay",
        "a.trace",
        "-a",
        "glibc",
        "--blocks",
        "1",
        "--target-ms",
        "1",
    ]);
    let end = End::of(
        replay
            .env("HEAPMARK_CACHE", place.at(cache))
            .output()
            .unwrap(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

/// A program that allocates a little, and starts another of its kind if it is told to.
fn program(place: &Place) {
    let source = "#include <stdlib.h>\n#include <unistd.h>\n#include <sys/wait.h>\nint main(int count, char **words) {\n\
                  for (int i = 0; i < 100; i++) free(malloc(4321));\n\
                  if (count > 1 && !fork()) execl(words[0], words[0], NULL);\n\
                  wait(NULL);\nreturn 0;\n}\n";
    fs::write(place.at("a.c"), source).unwrap();
    let built = Command::new("cc")
        .arg("-fno-builtin")
        .arg("-o")
        .args([place.at("a"), place.at("a.c")])
        .status();
    assert!(built.unwrap().success());
    fs::remove_file(place.at("a.c")).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Files with this ending in the place and its folders.
fn recorded(place: &Place, ending: &str) -> Vec<String> {
    let mut found = files(&place.at("."));
    found.retain(|name| name.ends_with(ending));
    found
}

fn is_refused(end: &End, name: &str) {
    end.is_one_line(2);
    let said =
        format!("{name} is there already: name another file with -o, or replace it with --force");
    assert!(end.stderr.contains(&said), "{}", end.stderr);
}

#[test]
fn no_command_writes_over_a_file_unless_it_is_asked_to() {
    let place = stored();
    trace(&place.at("a.trace"), 10);
    fs::write(
        place.at("m.txt"),
        "= Start\n@ ./a:[0x1] + 0x1000 0x10\n@ ./a:[0x1] - 0x1000\n= End\n",
    )
    .unwrap();
    fs::create_dir(place.at("other")).unwrap();
    for file in ["run.json", "samples.jsonl"] {
        fs::copy(place.at("run").join(file), place.at("other").join(file)).unwrap();
    }
    change_lines(&place.at("other"), |record| {
        record["stderr"] = "another day".into()
    });
    let commands: [&[&str]; 11] = [
        &["trace", "cut", "a.trace", "--events", "0..4"],
        &["trace", "export", "a.trace", "--sizes"],
        &["trace", "stats", "a.trace"],
        &["trace", "import", "m.txt"],
        &["export", "run", "--to", "csv-samples"],
        &["export", "run", "--to", "md"],
        &["export", "run", "--to", "json"],
        &["report", "run"],
        &["compare", "run", "other"],
        &["claims", "run"],
        &["claims", "run", "--reproduction"],
    ];
    for command in commands {
        fs::write(place.at("theirs"), "theirs").unwrap();
        is_refused(&place.run(&[command, &["-o", "theirs"]].concat()), "theirs");
        assert_eq!(
            fs::read_to_string(place.at("theirs")).unwrap(),
            "theirs",
            "{command:?}"
        );
        let end = place.run(&[command, &["-o", "theirs", "--force"]].concat());
        assert_eq!(end.code, Some(0), "{command:?}: {}", end.stderr);
        assert_ne!(
            fs::read_to_string(place.at("theirs")).unwrap_or_default(),
            "theirs",
            "{command:?}"
        );
        let end = place.run(&[command, &["-o", "new"]].concat());
        assert_eq!(end.code, Some(0), "{command:?}: {}", end.stderr);
        assert_eq!(
            fs::read(place.at("new")).unwrap(),
            fs::read(place.at("theirs")).unwrap(),
            "{command:?}"
        );
        fs::remove_file(place.at("new")).unwrap();
    }
    let end = place.run(&["report", "run"]);
    assert_eq!(
        end.code,
        Some(0),
        "a run's own page is made anew: {}",
        end.stderr
    );
    assert!(
        !names(Path::new(&place.text(".")))
            .iter()
            .any(|name| name.contains(".heapmark-"))
    );
}

#[test]
fn what_an_output_is_made_from_is_never_replaced() {
    let place = stored();
    trace(&place.at("a.trace"), 10);
    fs::write(
        place.at("benchres.csv"),
        "larson sys 0:04.00 3412 3.99 0 0 1\n",
    )
    .unwrap();
    let only = ["--only", "free-null", "-o", "checked"];
    let end = place.run(&[&["check", "-a", "glibc"][..], &only].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for (command, source) in [
        (&["claims", "checked"][..], "checked/check.json"),
        (&["report", "checked"], "checked/check.json"),
        (&["claims", "run"], "run/run.json"),
        (&["export", "run", "--to", "json"], "run/samples.jsonl"),
        (&["trace", "stats", "a.trace"], "./a.trace"),
        (&["compare", "run", "benchres.csv"], "benchres.csv"),
    ] {
        let before = fs::read(place.at(source)).unwrap();
        let end = place.run(&[command, &["-o", source, "--force"]].concat());
        end.is_one_line(2);
        let said = format!("-o {source}: that is what the output is made from");
        assert!(end.stderr.contains(&said), "{}", end.stderr);
        assert_eq!(fs::read(place.at(source)).unwrap(), before, "{command:?}");
    }
    std::os::unix::fs::symlink("run/run.json", place.at("link")).unwrap();
    let end = place.run(&["claims", "run", "-o", "link", "--force"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn a_capture_is_finished_into_a_new_file_only() {
    let place = Place::new();
    program(&place);
    assert_eq!(place.run(&["record", "--raw", "--", "./a"]).code, Some(0));
    let capture = recorded(&place, ".cap").remove(0);
    let made = format!("{}.trace", capture.strip_suffix(".cap").unwrap());
    assert_eq!(place.run(&["trace", "finish", &capture]).code, Some(0));
    is_refused(&place.run(&["trace", "finish", &capture]), &made);
    assert_eq!(
        place.run(&["trace", "finish", &capture, "--force"]).code,
        Some(0)
    );
}

#[test]
fn a_trace_cut_onto_itself_is_refused_and_if_forced_is_the_cut() {
    let place = Place::new();
    trace(&place.at("a.trace"), 100_000);
    let before = fs::read(place.at("a.trace")).unwrap();
    is_refused(
        &place.run(&[
            "trace",
            "cut",
            "a.trace",
            "--events",
            "0..10",
            "-o",
            "./a.trace",
        ]),
        "./a.trace",
    );
    assert_eq!(fs::read(place.at("a.trace")).unwrap(), before);
    let end = place.run(&[
        "trace", "cut", "a.trace", "--events", "0..10", "-o", "a.trace", "--force",
    ]);
    assert_eq!(
        (end.code, end.stdout.as_str()),
        (Some(0), "a.trace: 10 events, 5 allocations\n"),
        "{}",
        end.stderr
    );
    assert_eq!(place.run(&["trace", "check", "a.trace"]).code, Some(0));
}

#[test]
fn a_link_is_not_written_through_and_a_pipe_is_written_as_it_is() {
    let place = Place::new();
    trace(&place.at("a.trace"), 10);
    let export = |to: &str, more: &[&str]| {
        place.run(&[&["trace", "export", "a.trace", "--sizes", "-o", to], more].concat())
    };
    std::os::unix::fs::symlink(place.at("gone"), place.at("link")).unwrap();
    is_refused(&export("link", &[]), "link");
    assert!(!place.at("gone").exists());
    assert_eq!(export("/dev/null", &[]).code, Some(0));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    // What was known beforehand, and could be a planted link.
    fs::write(place.at("precious"), "theirs").unwrap();
    std::os::unix::fs::symlink(place.at("precious"), place.at("x.csv.part")).unwrap();
    assert_eq!(export("x.csv", &[]).code, Some(0));
    assert_eq!(fs::read_to_string(place.at("precious")).unwrap(), "theirs");
}

#[test]
fn an_earlier_recording_stays_with_the_traces_of_its_children() {
    let place = Place::new();
    program(&place);
    fs::write(place.at("precious.c"), "theirs").unwrap();
    is_refused(
        &place.run(&["record", "-o", "precious.c", "--", "./a"]),
        "precious.c",
    );
    assert_eq!(
        fs::read_to_string(place.at("precious.c")).unwrap(),
        "theirs"
    );

    let traces = || recorded(&place, ".trace");
    let record = || place.run(&["record", "--children", "--", "./a", "twice"]);
    assert_eq!(record().code, Some(0));
    let first = traces();
    assert_eq!(first.len(), 2, "its own and its child's: {first:?}");
    assert!(first.contains(&"a.trace".into()));
    let bytes = |names: &[String]| {
        names
            .iter()
            .map(|name| fs::read(place.at(name)).unwrap())
            .collect::<Vec<_>>()
    };
    let before = bytes(&first);
    assert_eq!(record().code, Some(0));
    let both = traces();
    assert!(
        both.len() == 4 && both.contains(&"a-2.trace".into()),
        "{both:?}"
    );
    assert_eq!(
        both.iter().filter(|name| name.starts_with("a-2.")).count(),
        2,
        "{both:?}"
    );
    assert_eq!(bytes(&first), before);

    // A child's trace alone is an earlier recording, too.
    fs::remove_file(place.at("a.trace")).unwrap();
    let child = first.iter().find(|name| *name != "a.trace").unwrap();
    is_refused(&place.run(&["record", "-o", "a.trace", "--", "./a"]), child);
    let notes = "a.children/12-notes.trace";
    fs::write(place.at(notes), "no trace at all").unwrap();
    fs::copy(place.at(child), place.at("a.children/mine.trace")).unwrap();
    assert_eq!(
        place
            .run(&["record", "-o", "a.trace", "--force", "--", "./a"])
            .code,
        Some(0)
    );
    assert!(
        place.at("a.trace").exists() && !place.at(child).exists(),
        "what was replaced does not mix with what is new"
    );
    assert_eq!(
        fs::read_to_string(place.at(notes)).unwrap(),
        "no trace at all"
    );
    assert!(place.at("a.children/mine.trace").exists(), "another name");
    assert!(place.at("a-2.trace").exists());
}

#[test]
fn captures_that_others_have_kept_or_are_writing_are_not_taken_for_ones_own() {
    let place = Place::new();
    program(&place);
    // As an earlier recording of a program `cost`, and one of `a` that still goes on.
    for name in ["cost.1.cap", "a.trace.77.cap", "a.trace.77.78.cap"] {
        fs::write(place.at(name), "theirs").unwrap();
    }
    let mut children: Vec<_> = (0..3)
        .map(|_| place.heapmark(&["record", "--", "./a"]).spawn().unwrap())
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    for name in ["cost.1.cap", "a.trace.77.cap", "a.trace.77.78.cap"] {
        assert_eq!(
            fs::read_to_string(place.at(name)).unwrap(),
            "theirs",
            "{name}"
        );
    }
    let traced = |name: &String| name.ends_with(".trace") || name.ends_with(".cap");
    assert_eq!(
        names(&place.at("."))
            .iter()
            .filter(|name| traced(name))
            .count(),
        6,
        "{:?}",
        names(&place.at("."))
    );
}

#[test]
fn what_is_made_of_a_recording_is_as_private_as_its_capture() {
    let place = Place::new();
    program(&place);
    assert_eq!(place.run(&["record", "--", "./a"]).code, Some(0));
    assert_eq!(mode(&place.at("a.trace")), 0o600);
    let made: [&[&str]; 4] = [
        &[
            "trace",
            "cut",
            "a.trace",
            "--events",
            "0..4",
            "-o",
            "cut.trace",
        ],
        &[
            "trace",
            "stats",
            "a.trace",
            "--to",
            "page",
            "-o",
            "page.html",
        ],
        &[
            "trace",
            "stats",
            "a.trace",
            "--to",
            "json",
            "-o",
            "stats.json",
        ],
        &["trace", "export", "a.trace", "--sizes", "-o", "sizes.csv"],
    ];
    for command in made {
        assert_eq!(place.run(command).code, Some(0));
        assert_eq!(
            mode(&place.at(command[command.len() - 1])),
            0o600,
            "{command:?}"
        );
    }
    replayed_with_cache(&place, "cache");
    let compiled_traces = names(&place.at("cache/compiled-traces"))
        .into_iter()
        .filter(|name| name.ends_with(".compiled"));
    assert!(
        compiled_traces
            .map(|name| mode(&place.at("cache/compiled-traces").join(name)))
            .eq([0o600])
    );
    // A trace that is given away is given with all that is made of it.
    set_mode(&place.at("a.trace"), 0o644);
    assert_eq!(
        place
            .run(&[
                "trace",
                "cut",
                "a.trace",
                "--events",
                "0..4",
                "-o",
                "public.trace"
            ])
            .code,
        Some(0)
    );
    assert_eq!(mode(&place.at("public.trace")), 0o644);
}

#[test]
fn the_words_of_a_command_line_can_be_left_out_of_a_trace() {
    let place = Place::new();
    program(&place);
    let dumped = |name: &str| place.run(&["trace", "stats", name, "--to", "json"]).stdout;
    assert_eq!(
        place
            .run(&["record", "-o", "b.trace", "--", "./a", "--password=hunter2"])
            .code,
        Some(0)
    );
    assert!(dumped("b.trace").contains("hunter2"));
    let flags = [
        "record",
        "-o",
        "c.trace",
        "--without-argv",
        "--",
        "./a",
        "--password=hunter2",
    ];
    assert_eq!(place.run(&flags).code, Some(0));
    assert!(!dumped("c.trace").contains("hunter2") && dumped("c.trace").contains("/a"));
    assert_eq!(
        place
            .run(&[
                "record",
                "--raw",
                "-o",
                "d.trace",
                "--",
                "./a",
                "--password=hunter2"
            ])
            .code,
        Some(0)
    );
    let captures = recorded(&place, ".cap").into_iter();
    let capture = captures
        .max_by_key(|name| dumped_argv(&place.at(name)))
        .unwrap();
    assert_eq!(
        place
            .run(&[
                "trace",
                "finish",
                &capture,
                "-o",
                "d.trace",
                "--without-argv"
            ])
            .code,
        Some(0)
    );
    assert!(dumped_argv(&place.at(&capture)) && !dumped_argv(&place.at("d.trace")));
}

/// Whether the secret stands in a file as it is.
fn dumped_argv(path: &Path) -> bool {
    fs::read(path)
        .unwrap()
        .windows(7)
        .any(|bytes| bytes == b"hunter2")
}

#[test]
fn a_trial_keeps_its_command_to_itself_and_a_run_of_kernels_is_public() {
    let place = Place::new();
    let small = [
        "-a",
        "glibc",
        "--blocks",
        "1",
        "--no-aa-copy",
        "--no-repeat",
    ];
    let end = place.run(
        &[
            &["try", "-o", "tried"],
            &small[..],
            &["--", "true", "--password=hunter2"],
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(
        place
            .run(&["export", "tried", "--to", "json", "-o", "tried.json"])
            .code,
        Some(0)
    );
    let files = [
        "run.json",
        "samples.jsonl",
        "report.md",
        "report.html",
        "machine/before.json",
        "machine/after.json",
        "machine/prices.json",
    ];
    let modes = |run: &str| files.map(|file| mode(&place.at(run).join(file)));
    assert_eq!(
        (modes("tried"), mode(&place.at("tried.json"))),
        ([0o600; 7], 0o600)
    );
    assert_eq!(
        place
            .run_small("run", &["-a", "glibc", "--blocks", "1"])
            .code,
        Some(0)
    );
    assert_eq!(modes("run"), [0o644; 7]);
}

#[test]
fn a_signal_leaves_neither_half_a_file_nor_a_draft() {
    let place = Place::new();
    fs::create_dir(place.at("in")).unwrap();
    for (signal, name) in [
        (Signal::INT, "int"),
        (Signal::TERM, "term"),
        (Signal::HUP, "hup"),
    ] {
        // A pipe of its own: what another test starts may hold the last one's end for a moment, and `import` would read its end.
        let made = Command::new("mkfifo").arg(place.at(name)).status();
        assert!(made.unwrap().success());
        let mut command = place.heapmark(&["trace", "import", name, "-o", "in/a.trace"]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = fs::File::options()
            .write(true)
            .open(place.at(name))
            .unwrap();
        text.write_all(b"= Start\n@ ./a:[0x1] + 0x1000 0x10\n")
            .unwrap();
        wait_for("a draft", || {
            names(&place.at("in"))
                .iter()
                .any(|name| name.starts_with(".heapmark-"))
        });
        send(&child, signal);
        let end = finish(child);
        assert_eq!(
            (end.code, end.stderr.lines().count()),
            (Some(130), 1),
            "{signal:?}: {}",
            end.stderr
        );
        assert!(end.stderr.starts_with("interrupted"), "{}", end.stderr);
        assert_eq!(names(&place.at("in")), [""; 0], "{signal:?}");
    }
}

#[test]
fn the_draft_of_a_killed_heapmark_is_swept_by_the_next_and_that_of_a_living_one_is_not() {
    let place = Place::new();
    fs::create_dir(place.at("in")).unwrap();
    let drafts = || {
        let mut all = names(&place.at("in"));
        all.retain(|name| name.starts_with(".heapmark-"));
        all
    };
    let import = |name: &str| {
        let fifo = place.text(name) + ".text";
        assert!(
            Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let trace = format!("in/{name}.trace");
        let mut command = place.heapmark(&["trace", "import", &fifo, "-o", &trace]);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut text = fs::File::options().write(true).open(&fifo).unwrap();
        text.write_all(b"= Start\n@ ./a:[0x1] + 0x1000 0x10\n")
            .unwrap();
        (child.unwrap(), text)
    };
    let before = |count: usize| wait_for("a draft", || drafts().len() == count);
    let (living, text) = import("living");
    before(1);
    let of_living = drafts();
    let (killed, _text) = import("killed");
    before(2);
    send(&killed, Signal::KILL);
    finish(killed);
    assert_eq!(drafts().len(), 2);
    let mine = place.at("in/.heapmark-draft-notes");
    fs::write(&mine, "mine").unwrap();
    assert_eq!(place.run(&["man", "in"]).code, Some(0));
    assert!(mine.exists());
    fs::remove_file(&mine).unwrap();
    assert_eq!(drafts(), of_living);
    drop(text);
    assert_eq!(finish(living).code, Some(0));
    assert!(place.at("in/living.trace").exists());
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_draft() {
    let place = stored();
    fs::create_dir(place.at("in")).unwrap();
    fs::write(place.at("in/a.json"), "theirs").unwrap();
    // In units of 512 bytes: less than the export.
    let heapmark = env!("CARGO_BIN_EXE_heapmark");
    let line = format!("ulimit -f 2; exec {heapmark} export run --to json -o in/a.json --force");
    let end = Command::new("sh")
        .arg("-c")
        .arg(line)
        .current_dir(place.at("."))
        .output()
        .unwrap();
    let said = String::from_utf8(end.stderr).unwrap();
    assert_eq!(
        (end.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    assert!(
        said.contains("cannot write in/a.json: File too large"),
        "{said}"
    );
    assert_eq!(names(&place.at("in")), ["a.json"]);
    assert_eq!(fs::read_to_string(place.at("in/a.json")).unwrap(), "theirs");
}

#[test]
fn what_was_measured_is_printed_even_if_its_page_cannot_be_written() {
    let place = stored();
    fs::remove_file(place.at("run/report.html")).unwrap();
    let resume = place.heapmark(&["run", "--resume", "run"]);
    // In units of 512 bytes: more than a run's other files, less than its page.
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -f 1000; exec \"$@\"", "sh"])
        .arg(resume.get_program())
        .args(resume.get_args())
        .env("HOME", place.at("."))
        .current_dir(place.at("."));
    let end = End::of(limited.output().unwrap());
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    assert!(end.stdout.contains("glibc"), "{}", end.stdout);
    let told = ["report.html", "File too large", "ulimit -f"];
    assert!(
        told.iter().all(|it| end.stderr.contains(it)),
        "{}",
        end.stderr
    );
    assert!(!place.at("run/report.html").exists());
    let half = files(&place.at("run"));
    assert!(
        !half.iter().any(|name| name.contains(".heapmark-")),
        "{half:?}"
    );
}

#[test]
fn what_heapmark_starts_has_the_usual_answer_to_a_file_that_grows_too_large() {
    let place = Place::new();
    let grep = ["grep", "SigIgn", "/proc/self/status"];
    let end = place.run(&[&["record", "-q", "-o", "a.trace", "--"], &grep[..]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let ignored = end.stdout.trim().strip_prefix("SigIgn:").unwrap().trim();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    assert_eq!(ignored & (1 << (libc::SIGXFSZ - 1)), 0, "{}", end.stdout);
}

#[test]
fn files_of_others_in_a_folder_of_compiled_traces_stay() {
    let place = Place::new();
    trace(&place.at("a.trace"), 500);
    // As with HEAPMARK_CACHE=$HOME.
    fs::create_dir(place.at("compiled-traces")).unwrap();
    fs::write(place.at("compiled-traces/final-results.txt"), "theirs").unwrap();
    replayed_with_cache(&place, ".");
    assert_eq!(
        fs::read_to_string(place.at("compiled-traces/final-results.txt")).unwrap(),
        "theirs"
    );
    assert!(
        !place.at("compiled-traces/CACHEDIR.TAG").exists(),
        "a folder of others is not marked as one that needs no backup"
    );
}

#[test]
fn a_folder_with_somebodys_report_in_it_does_not_become_a_run() {
    let place = Place::new();
    for name in ["report.html", "report.md", "series", "machine"] {
        let folder = place.at(&format!("with-{name}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(name), "theirs").unwrap();
        let end = place.run_small(folder.to_str().unwrap(), &["-a", "glibc", "--blocks", "1"]);
        end.is_one_line(2);
        assert!(
            end.stderr.contains("is there already, and of no run"),
            "{}",
            end.stderr
        );
        assert_eq!(names(&folder), [name]);
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "theirs");
    }
}

#[test]
fn runs_that_are_started_at_once_take_a_folder_each() {
    let place = Place::new();
    let args = [&["run", "-a", "glibc", "--blocks", "1"], &SMALL[..]].concat();
    let start = |_| {
        place
            .heapmark(&args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for child in children {
        let end = finish(child);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
    }
    let runs = place.at("heapmark-results");
    assert_eq!(names(&runs).len(), 4);
    for name in names(&runs) {
        assert_eq!(head(&runs.join(&name))["plan"]["baseline"], "glibc");
        assert_eq!(
            samples(&runs.join(&name))
                .iter()
                .filter(|record| record["purpose"] == "sample")
                .count(),
            1
        );
    }
}

#[test]
fn names_are_on_the_disk_before_what_relies_on_them() {
    let place = Place::new();
    let library = place.compile("syncs", &[]);
    let mut run = place.heapmark(
        &[
            &["run", "-o", "new/run", "-a", "glibc", "--blocks", "1"],
            &SMALL[..],
        ]
        .concat(),
    );
    let end = End::of(
        run.env("LD_PRELOAD", library)
            .env("SYNCS", place.at("syncs"))
            .output()
            .unwrap(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let said = fs::read_to_string(place.at("syncs")).unwrap();
    let here = place.at(".").canonicalize().unwrap();
    let at = |line: &str| {
        let place = said.lines().position(|said| said == line);
        place.unwrap_or_else(|| panic!("no `{line}` in\n{said}"))
    };
    let (run, above) = (here.join("new/run"), here.join("new"));
    // The folder's own name, and the head's in it.
    assert!(at(&format!("fsync {}", here.display())) < at(&format!("fsync {}", above.display())));
    let (named, synced) = (
        at("rename new/run/run.json"),
        at(&format!("fsync {}", run.display())),
    );
    assert!(
        at(&format!("fsync {}", above.display())) < named && named < synced,
        "{said}"
    );
    let rest: Vec<&str> = said.lines().skip(named).collect();
    for (place, line) in rest
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("rename new/run/"))
    {
        let folder = here
            .join(line.strip_prefix("rename ").unwrap())
            .parent()
            .unwrap()
            .display()
            .to_string();
        assert_eq!(rest[place + 1], format!("fsync {folder}"), "{line}");
    }
}
