//! Work that takes long says how far it is. What is slow here is a pipe whose other end waits, or a lock that is held, until the
//! word has come.

use crate::support::captured::Captured;
use crate::support::{End, Place};
use heapmark_trace::{Event, Head, Writer};
use heapmark_wire::capture;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

/// Mallocs of sizes that do not pack well.
fn trace() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Head::default()).unwrap();
    for number in 0..5000u64 {
        let size = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
        writer
            .write(
                0,
                &Event::Malloc {
                    size,
                    operator: false,
                },
            )
            .unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn pipe(path: &Path) {
    let end = std::process::Command::new("mkfifo")
        .arg(path)
        .status()
        .unwrap();
    assert!(end.success());
}

/// The first line on stderr with these words.
fn wait_for(child: &mut Child, words: &str) -> (String, BufReader<impl Read + use<>>) {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(
            stderr.read_line(&mut line).unwrap() > 0,
            "it ended without `{words}`"
        );
    }
    (line, stderr)
}

/// A command whose trace comes out of a pipe says that it goes on, and what it says at the end is the same.
fn reads_on(args: &[&str], into: Option<&str>) -> String {
    let (place, bytes) = (Place::new(), trace());
    fs::write(place.at("whole.trace"), &bytes).unwrap();
    pipe(&place.at("slow.trace"));
    let run = |name: &str| {
        let args: Vec<&str> = args
            .iter()
            .map(|word| if *word == "TRACE" { name } else { word })
            .collect();
        let mut command = place.heapmark(&args);
        let stdout = into.map_or(Stdio::piped(), |name| {
            File::create(place.at(name)).unwrap().into()
        });
        command.stdout(stdout).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut child = run("slow.trace");
    let mut slow = File::options()
        .write(true)
        .open(place.at("slow.trace"))
        .unwrap();
    slow.write_all(&bytes[..100]).unwrap();
    let (line, mut stderr) = wait_for(&mut child, " now");
    slow.write_all(&bytes[100..]).unwrap();
    drop(slow);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let told = |child: Child| {
        let end = End::of(child.wait_with_output().unwrap());
        assert_eq!(end.code, Some(0), "{args:?}: {}", end.stderr);
        let file = |name: &str| fs::read(place.at(name)).unwrap_or_default();
        (
            end.stdout.replace("slow.trace", "whole.trace"),
            into.map(file),
            file("made"),
        )
    };
    let slowly = told(child);
    let _ = fs::remove_file(place.at("made"));
    assert!(
        slowly == told(run("whole.trace")),
        "{args:?} made something else"
    );
    line
}

#[test]
fn commands_that_wait_for_the_rest_of_a_trace_say_that_they_go_on() {
    let commands: [(&[&str], Option<&str>); 5] = [
        (&["trace", "stats", "TRACE"], None),
        (&["trace", "check", "TRACE"], None),
        (&["trace", "export", "TRACE", "--sizes", "-o", "made"], None),
        (
            &[
                "trace", "cut", "TRACE", "--events", "10..1000", "-o", "made",
            ],
            None,
        ),
        (&["trace", "dump", "TRACE"], Some("dumped")),
    ];
    let threads = commands.map(|(args, into)| (args, thread::spawn(move || reads_on(args, into))));
    for (args, thread) in threads {
        let line = thread.join().unwrap();
        assert!(
            line.starts_with(&format!("trace {} slow.trace: for ", args[1])),
            "{line}"
        );
    }
}

#[test]
fn a_dump_into_a_pipe_is_silent_as_its_reader_may_have_the_screen() {
    let (place, bytes) = (Place::new(), trace());
    pipe(&place.at("slow.trace"));
    let mut command = place.heapmark(&["trace", "dump", "slow.trace"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut slow = File::options()
        .write(true)
        .open(place.at("slow.trace"))
        .unwrap();
    slow.write_all(&bytes[..100]).unwrap();
    // One that is not silent speaks meanwhile.
    reads_on(&["trace", "stats", "TRACE"], None);
    slow.write_all(&bytes[100..]).unwrap();
    drop(slow);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let end = End::of(output);
    assert_eq!((end.code, end.stdout.lines().count()), (Some(0), 5000));
}

#[test]
fn an_import_that_waits_for_its_text_says_that_it_goes_on() {
    let place = Place::new();
    pipe(&place.at("mtrace"));
    let mut command = place.heapmark(&["trace", "import", "mtrace", "-o", "a.trace"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut slow = File::options()
        .write(true)
        .open(place.at("mtrace"))
        .unwrap();
    slow.write_all(b"= Start\n+ 0x1000 0xa\n").unwrap();
    let (line, _stderr) = wait_for(&mut child, "trace import mtrace: for ");
    assert!(line.ends_with(" now\n"), "{line}");
    drop(slow);
    assert!(child.wait().unwrap().success());
}

#[test]
fn finishing_a_capture_whose_trace_is_not_read_says_how_much_is_done_and_how_long_it_takes() {
    let place = Place::new();
    let mut captured = Captured::new(&place.at("a.cap"), 1, &[]);
    for number in 1..300_000u64 {
        let size = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        captured.put(
            0,
            &capture::Event::Malloc {
                address: number << 4,
                size,
                operator: false,
            },
            0,
        );
    }
    captured.end();
    pipe(&place.at("a.trace"));
    let mut command = place.heapmark(&["trace", "finish", "a.cap", "-o", "a.trace"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut slow = File::open(place.at("a.trace")).unwrap();
    let (line, _stderr) = wait_for(&mut child, "trace finish a.cap: ");
    let share = line["trace finish a.cap: ".len()..]
        .split(' ')
        .next()
        .unwrap()
        .parse::<u32>();
    assert!(
        share.is_ok_and(|share| share <= 100) && line.contains(" %"),
        "{line}"
    );
    let mut bytes = Vec::new();
    slow.read_to_end(&mut bytes).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        heapmark_trace::Reader::new(&bytes[..])
            .unwrap()
            .filter(|event| event.is_ok())
            .count(),
        299_999
    );
}

#[test]
fn compiling_a_replay_that_has_to_wait_says_so() {
    let place = Place::new();
    fs::write(place.at("a.trace"), trace()).unwrap();
    fs::create_dir(place.at("cache")).unwrap();
    let lock = File::create(place.at("cache/compiled-traces.lock")).unwrap();
    lock.lock().unwrap();
    let mut command = place.heapmark(&[
        "replay",
        "a.trace",
        "-a",
        "glibc",
        "--target-ms",
        "2",
        "--no-aa-copy",
        "--no-repeat",
        "-o",
        "run",
    ]);
    command
        .env("HEAPMARK_CACHE", place.at("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (line, mut stderr) = wait_for(&mut child, "compiling ");
    assert!(line.ends_with("a.trace for its replay: 0 %\n"), "{line}");
    lock.unlock().unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
}

/// A terminal of so many columns: our side, and that of a program.
fn terminal(columns: u16) -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: fills two numbers of ours with descriptors that nothing else owns.
    unsafe {
        assert_eq!(
            libc::openpty(
                &mut ours,
                &mut theirs,
                std::ptr::null_mut(),
                std::ptr::null(),
                &size
            ),
            0
        );
        (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    }
}

#[test]
fn on_a_terminal_it_is_one_line_that_is_written_anew_and_goes() {
    let (place, bytes) = (Place::new(), trace());
    pipe(&place.at("slow.trace"));
    let (mut screen, theirs) = terminal(80);
    let mut command = place.heapmark(&["trace", "check", "slow.trace"]);
    command
        .env("TERM", "xterm")
        .stdout(Stdio::piped())
        .stderr(theirs);
    let child = command.spawn().unwrap();
    drop(command);
    let mut slow = File::options()
        .write(true)
        .open(place.at("slow.trace"))
        .unwrap();
    slow.write_all(&bytes[..100]).unwrap();
    let (mut said, mut room) = (Vec::new(), [0; 1000]);
    let times = |said: &[u8]| {
        String::from_utf8_lossy(said)
            .matches("trace check slow.trace: for ")
            .count()
    };
    while times(&said) < 3 {
        let read = screen.read(&mut room).unwrap();
        said.extend_from_slice(&room[..read]);
    }
    slow.write_all(&bytes[100..]).unwrap();
    drop(slow);
    // A terminal without a program reads as an error.
    while let Ok(read @ 1..) = screen.read(&mut room) {
        said.extend_from_slice(&room[..read]);
    }
    let end = End::of(child.wait_with_output().unwrap());
    assert_eq!(
        (end.code, end.says("ok, 5000 events")),
        (Some(0), true),
        "{}",
        end.stdout
    );
    let said = String::from_utf8_lossy(&said);
    assert!(!said.contains('\n'), "it stays one line: {said:?}");
    assert!(
        said.ends_with("\u{1b}[2K"),
        "and nothing is left of it: {said:?}"
    );
}

#[test]
fn the_answer_is_there_provisionally_as_soon_as_there_are_intervals_and_only_on_a_terminal() {
    let place = Place::new();
    let run = |blocks: &str, flags: &[&str], name: &str| {
        let args = ["run", "-w", "churn,larson", "-a", "glibc,glibc-arena1"];
        let small = [
            "-t",
            "1",
            "--set",
            "churn.objects=5000",
            "--set",
            "larson.rounds=5",
            "--target-ms",
            "1",
            "--no-repeat",
            "--no-aa-copy",
            "--no-floor",
        ];
        let rest = ["--blocks", blocks, "-o", name];
        place.heapmark(&[&args[..], &small[..], &rest[..], flags].concat())
    };
    let on_terminal = |blocks: &str, flags: &[&str], name: &str| {
        let (mut screen, theirs) = terminal(120);
        let mut command = run(blocks, flags, name);
        command.stdout(Stdio::piped()).stderr(theirs);
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let child = command.spawn().unwrap();
        drop(command);
        let mut said = Vec::new();
        // A terminal without a program reads as an error.
        _ = screen.read_to_end(&mut said);
        let end = End::of(child.wait_with_output().unwrap());
        assert_eq!(end.code, Some(0), "{}", end.stdout);
        assert!(!end.stdout.contains("Provisional"), "{}", end.stdout);
        String::from_utf8_lossy(&said).into_owned()
    };
    let said = on_terminal("8", &[], "seen");
    let heading = "Provisional, after 6 of 8 blocks";
    let (_, table) = said.split_once(heading).expect(&said);
    assert_eq!(table.matches("\n  glibc-arena1 ").count(), 1, "{said}");
    assert!(!table.contains(heading), "twice: {said}");
    // It is nowhere in the run, which ends as one that nothing was said of.
    assert!(
        !fs::read_to_string(place.at("seen/report.md"))
            .unwrap()
            .contains("Provisional")
    );
    assert_eq!(crate::support::plan(&place.at("seen")).blocks, 8);

    for (blocks, flags, name) in [("8", &["-q"][..], "quiet"), ("6", &[], "short")] {
        let said = on_terminal(blocks, flags, name);
        assert!(!said.contains("Provisional"), "{said}");
    }
    let end = End::of(run("8", &[], "piped").output().unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(
        !end.stderr.contains("Provisional") && end.stderr.contains("block 6 of 8"),
        "{}",
        end.stderr
    );
}
