//! A flag that is typed is used or refused, in every command: all pairs of a command's flags, as its own `--help` has them.
//!
//! A pair is used if both stand in a line here in which something else comes out once either is left out. All other pairs must be
//! refused. A new flag stands in no line, and so is missed until it is put into one, or refused.

use crate::support::captured::Captured;
use crate::support::machine::Machine;
use crate::support::stored::original;
use crate::support::{End, Place, commands};
use heapmark_trace::{Event, Head, Token, Writer};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// A flag and its value, if it has one.
type Flag = (&'static str, &'static str);

/// A command line with flags that may all stand together.
struct Line {
    command: &'static str,
    flags: Vec<Flag>,
    /// Files, or a program.
    words: &'static [&'static str],
    /// Flags that leave something out which this line has not anyhow; these words of its output say so.
    granted: &'static [Flag],
}

/// In every dry run that compares.
const COMPARES: &[Flag] = &[
    ("--dry-run", ""),
    ("--cells", ""),
    ("--allocators", "jemalloc=./libhonest.so,glibc"),
    ("--replace", ""),
    ("--baseline", "jemalloc"),
    ("--no-aa-copy", ""),
    ("--no-repeat", ""),
    ("--seed", "7"),
    ("--timeout", "90s"),
    ("--thp", "never"),
    ("--output", "there"),
    ("--strict", ""),
    ("--check-again", ""),
];
const PRECISE: &[Flag] = &[
    ("--precision", "2%"),
    ("--max-blocks", "12"),
    ("--budget", "2h"),
];
const EXACT: &[Flag] = &[("--blocks", "7")];
const WITHIN: &[Flag] = &[("--blocks", "7"), ("--budget", "2h")];
const STORED: &[Flag] = &[
    ("--resume", "run"),
    ("--dry-run", ""),
    ("--cells", ""),
    ("--strict", ""),
    ("--check-again", ""),
];

/// In those of kernels, too.
const KERNELS: &[Flag] = &[
    ("--workloads", "churn"),
    ("--threads", "2"),
    ("--preset", "quick"),
    ("--set", "churn.objects=77"),
    ("--allow-forwarding", ""),
    ("--no-floor", ""),
    ("--target-ms", "77"),
];
/// The same of one thread, which can take turns.
const OF_ONE_THREAD: &[Flag] = &[
    ("--workloads", "churn"),
    ("--threads", "1"),
    ("--preset", "quick"),
    ("--set", "churn.objects=77"),
    ("--allow-forwarding", ""),
    ("--no-floor", ""),
    ("--target-ms", "77"),
];
const SERIES: &[Flag] = &[("--series", "7ms")];
/// Where times are compared.
const AGE: &[Flag] = &[("--age", "75")];
const TURNS: &[Flag] = &[("--turns", "stop")];
/// Everywhere else.
const ALONE: Flag = ("--alone", "");
const LATENCY: &[Flag] = &[("--latency", "7")];
const COUNTER: &[Flag] = &[("--counter", "kernel")];
const RETAINED: &[Flag] = &[("--retained", "")];
const PACKING: &[Flag] = &[("--packing", "")];
const LIMIT: &[Flag] = &[("--limit", "data")];

/// In those of traces.
const TRACES: &[Flag] = &[
    ("--set", "trace:a.touch=none"),
    ("--touch", "all"),
    ("--allow-forwarding", ""),
    ("--no-floor", ""),
    ("--skew", "5000"),
];
const SPEED: &[Flag] = &[("--target-ms", "77")];
const PACED: &[Flag] = &[("--mode", "paced"), ("--pace", "2")];

/// In those of a command that is tried.
const PREPARED: &[Flag] = &[("--prepare", "true")];
const TRIES: &[Flag] = &[
    ("--warmup", "2"),
    ("--stdin", "input"),
    ("--tree-may-differ", ""),
    ("--keep-env", ""),
    ("--name", "mine"),
];
const ENDS: &[Flag] = &[("--check-output", ""), ("--expect-exit", "3")];
const SERVES: &[Flag] = &[("--server", "cat"), ("--client", "true"), ("--ready", "7")];

/// What these leave out is not there where events are counted, or memory is followed.
const COUNTED: &[Flag] = &[
    ("--no-aa-copy", "beside      nothing"),
    ("--no-repeat", "nothing is run again"),
];
const FOLLOWED: &[Flag] = &[
    ("--no-aa-copy", "beside      nothing"),
    ("--no-floor", "beside      nothing"),
    ("--no-repeat", "nothing is run again"),
];
const NEW: &[Flag] = &[("--output", "out"), ("--force", "")];

fn line(command: &'static str, flags: &[&[Flag]], words: &'static [&'static str]) -> Line {
    Line {
        command,
        flags: flags.concat(),
        words,
        granted: &[],
    }
}

fn lines() -> Vec<Line> {
    let mut lines = vec![line("run", &[STORED], &[]), line("try", &[STORED], &[])];
    for (mode, granted) in [
        (SERIES, &[] as &[Flag]),
        (LATENCY, &[]),
        (COUNTER, COUNTED),
        (RETAINED, FOLLOWED),
        (LIMIT, FOLLOWED),
    ] {
        lines.push(Line {
            granted,
            ..line("run", &[COMPARES, KERNELS, EXACT, mode], &["zalloc"])
        });
        for way in [SPEED, PACED] {
            let line = match (way == SPEED, mode == RETAINED) {
                (true, true) => continue,
                _ => line(
                    "replay",
                    &[COMPARES, TRACES, EXACT, way, mode],
                    &["a.trace", "b.trace"],
                ),
            };
            lines.push(Line { granted, ..line });
        }
    }
    lines.push(Line {
        granted: FOLLOWED,
        ..line(
            "replay",
            &[COMPARES, TRACES, EXACT, RETAINED, PACKING],
            &["a.trace", "b.trace"],
        )
    });
    lines.push(line(
        "run",
        &[COMPARES, KERNELS, PRECISE, SERIES],
        &["zalloc"],
    ));
    for way in [SPEED, PACED] {
        lines.push(line(
            "replay",
            &[COMPARES, TRACES, PRECISE, way, SERIES],
            &["a.trace", "b.trace"],
        ));
    }
    for blocks in [WITHIN, PRECISE] {
        lines.push(line(
            "run",
            &[COMPARES, KERNELS, blocks, SERIES, AGE],
            &["zalloc"],
        ));
        lines.push(line(
            "replay",
            &[COMPARES, TRACES, blocks, SPEED, SERIES, AGE],
            &["a.trace", "b.trace"],
        ));
        lines.push(line(
            "try",
            &[COMPARES, PREPARED, TRIES, blocks, ENDS, AGE],
            &["cat", "--flag-of-cat"],
        ));
        lines.push(line(
            "try",
            &[COMPARES, PREPARED, TRIES, blocks, SERVES, AGE],
            &[],
        ));
        let traces: &[_] = &["a.trace", "b.trace"];
        let in_turns = [
            line(
                "run",
                &[COMPARES, OF_ONE_THREAD, blocks, TURNS],
                &["zalloc"],
            ),
            line("replay", &[COMPARES, TRACES, blocks, SPEED, TURNS], traces),
            line(
                "try",
                &[COMPARES, TRIES, blocks, ENDS, TURNS],
                &["cat", "--flag-of-cat"],
            ),
        ];
        lines.extend(in_turns.map(|line| Line {
            granted: &[("--no-repeat", "nothing is run again")],
            ..line
        }));
    }
    for (way, words) in [(ENDS, &["cat", "--flag-of-cat"] as &[_]), (SERVES, &[])] {
        lines.push(Line {
            granted: COUNTED,
            ..line(
                "try",
                &[COMPARES, PREPARED, TRIES, EXACT, way, LIMIT],
                words,
            )
        });
    }
    let measures = |line: &&mut Line| ["run", "try", "replay"].contains(&line.command);
    for line in lines.iter_mut().filter(measures) {
        if !line
            .flags
            .iter()
            .any(|(name, _)| ["--turns", "--resume"].contains(name))
        {
            line.flags.push(ALONE);
        }
    }
    lines.extend([
        line("doctor", &[&[("--json", ""), ("--strict", "")]], &[]),
        line("list", &[&[("--json", "")]], &["suites"]),
        line("list", &[&[("--flags", "")]], &["allocators"]),
        line("list", &[&[("--markdown", "")]], &["workloads"]),
        line("show", &[&[("--matrix", "")]], &["two"]),
        line("report", &[NEW], &["run"]),
        line(
            "compare",
            &[
                NEW,
                &[
                    ("--to", "json"),
                    ("--by", "cpu"),
                    ("--threshold", "7%"),
                    ("--fail-on", "unclear"),
                ],
            ],
            &["two"],
        ),
        line("export", &[NEW, &[("--to", "csv")]], &["run"]),
        line(
            "claims",
            &[NEW, &[("--to", "json"), ("--document", "ll")]],
            &["run"],
        ),
        line(
            "claims",
            &[NEW, &[("--reproduction", ""), ("--document", "ll")]],
            &["run"],
        ),
        line(
            "trace finish",
            &[NEW, &[("--without-argv", "")]],
            &["c.cap"],
        ),
        line("trace stats", &[NEW, &[("--to", "json")]], &["a.trace"]),
        line(
            "trace dump",
            &[&[("--json", ""), ("--events", "1..2")]],
            &["a.trace"],
        ),
        line("trace cut", &[NEW, &[("--events", "1..2")]], &["a.trace"]),
        line("trace cut", &[NEW, &[("--time", "0..1s")]], &["a.trace"]),
        line("trace import", &[NEW], &["mtrace"]),
        line("trace export", &[NEW, &[("--sizes", "")]], &["a.trace"]),
        line("trace export", &[NEW, &[("--lifetimes", "")]], &["a.trace"]),
        line("trace export", &[NEW, &[("--joint", "")]], &["a.trace"]),
    ]);
    lines
}

/// Flags of commands that measure or record each time: what each of them does is held by other tests, and together they must be taken.
fn taken() -> Vec<Line> {
    const NOISE: &[Flag] = &[
        ("--allocator", "glibc"),
        ("--workload", "churn-private"),
        ("--threads", "1"),
        ("--seed", "7"),
        ("--target-ms", "1ms"),
        ("--as", "mean"),
        ("--output", "noise"),
    ];
    const CHECK: &[Flag] = &[
        ("--allocators", "glibc"),
        ("--preset", "full"),
        ("--only", "free-null"),
        ("--fail-on", "robust"),
        ("--timeout", "1min"),
        ("--json", ""),
        ("--output", "checked"),
    ];
    const RECORD: &[Flag] = &[
        ("--output", "out"),
        ("--force", ""),
        ("--allocator", "./libhonest.so"),
        ("--max-bytes", "9M"),
        ("--duration", "1min"),
    ];
    vec![
        line("noise", &[NOISE, &[("--minutes", "1s")]], &[]),
        line("noise", &[NOISE, &[("--blocks", "6")]], &[]),
        line(
            "record",
            &[RECORD, &[("--without-argv", ""), ("--children", "")]],
            &["true", "--flag-of-true"],
        ),
        line(
            "record",
            &[RECORD, &[("--raw", "")]],
            &["true", "--flag-of-true"],
        ),
        line("clean", &[&[("--yes", "")]], &["cache"]),
        line("check", &[CHECK], &[]),
        line("check", &[&[("--program", "free-null")]], &[]),
    ]
}

/// As [`taken`], of commands that take many seconds.
fn taken_slowly() -> Vec<Line> {
    vec![
        line(
            "trace make-pack",
            &[&[("--output", "pack"), ("--force", "")]],
            &["perl-hash"],
        ),
        line(
            "selftest",
            &[&[("--blocks", "1"), ("--seed", "7"), ("--output", "selftest")]],
            &[],
        ),
    ]
}

/// Flags of every command, which stand beside all others.
const OF_ALL: [&str; 4] = ["--help", "--version", "--quiet", "--color"];

/// Flags that go with what the others plan, except with these: a process of the plan, and what is
/// printed of the run.
const OF_A_PLAN: [(&str, &[&str]); 2] = [
    (
        "--cell",
        &[
            "--output",
            "--check-again",
            "--dry-run",
            "--cells",
            "--format",
        ],
    ),
    ("--format", &["--dry-run", "--cells", "--cell"]),
];

/// Values for flags that stand in no line.
const VALUES: [Flag; 7] = [
    ("--resume", "run"),
    ("--cell", "churn@1/b00/glibc"),
    ("--format", "json"),
    ("--jobs", "2"),
    ("--languages", ""),
    ("--threads", "2"),
    ("--preset", "paper"),
];

/// A place with all that the lines name.
fn place() -> Place {
    let place = Place::of_turns();
    place.fake("honest");
    Machine::clean(place.at("machine"));
    Machine::clean(place.at("warned")).plant("sys/kernel/mm/ksm/run", "1\n");
    fs::write(place.at("input"), "").unwrap();
    fs::write(
        place.at("mtrace"),
        "= Start\n@ ./mt:[0x11c0] + 0x1000 0xa\n= End\n",
    )
    .unwrap();
    std::os::unix::fs::symlink(original(), place.at("run")).unwrap();
    std::os::unix::fs::symlink(two(), place.at("two")).unwrap();
    let clock = |ns| Event::Clock { ns };
    let malloc = |size| Event::Malloc {
        size,
        operator: false,
    };
    let free = || Event::Free {
        token: Token {
            thread: 0,
            index: 0,
        },
    };
    for (name, size) in [("a.trace", 10), ("b.trace", 11)] {
        let mut writer =
            Writer::new(fs::File::create(place.at(name)).unwrap(), &Head::default()).unwrap();
        for event in [
            clock(1000),
            malloc(size),
            clock(9_000_000_000),
            free(),
            malloc(20),
        ] {
            writer.write(0, &event).unwrap();
        }
        writer.finish().unwrap();
    }
    let mut captured = Captured::new(
        &place.at("c.cap"),
        1,
        &[("argv.0", "a"), ("argv.1", "secret")],
    );
    captured.put(
        0,
        &heapmark_wire::capture::Event::Malloc {
            address: 0x1000,
            size: 24,
            operator: false,
        },
        0,
    );
    captured.end();
    place
}

/// A run of two allocators on two workloads.
fn two() -> std::path::PathBuf {
    static RUN: OnceLock<Place> = OnceLock::new();
    let made = || {
        let place = Place::of_turns();
        let honest = format!("glibc,honest={}", place.fake("honest").display());
        assert_eq!(
            place
                .run_small(
                    "run",
                    &["-a", &honest, "--blocks", "2", "-w", "churn-private"]
                )
                .code,
            Some(0)
        );
        place
    };
    RUN.get_or_init(made).at("run")
}

fn run(place: &Place, command: &str, flags: &[Flag], words: &[&str]) -> End {
    let typed = flags
        .iter()
        .flat_map(|(flag, value)| [*flag, *value])
        .filter(|word| !word.is_empty());
    let args: Vec<&str> = command
        .split(' ')
        .chain(typed)
        .chain(words.iter().copied())
        .collect();
    let mut heapmark = place.heapmark(&args);
    // Something that configures an allocator, for --keep-env.
    let machine = place.at(if command == "doctor" {
        "warned"
    } else {
        "machine"
    });
    heapmark
        .env("HEAPMARK_MACHINE_ROOT", machine)
        .env("MALLOC_ARENA_MAX", "1");
    End::of(heapmark.output().unwrap())
}

/// All that comes out of a line.
fn outcome(place: &Place, line: &Line, left_out: &str) -> (Option<i32>, String, String, Vec<u8>) {
    fs::write(place.at("out"), "old").unwrap();
    let flags: Vec<Flag> = line
        .flags
        .iter()
        .copied()
        .filter(|(flag, _)| *flag != left_out)
        .collect();
    let end = run(place, line.command, &flags, line.words);
    (
        end.code,
        end.stdout,
        end.stderr,
        fs::read(place.at("out")).unwrap(),
    )
}

/// Flags by command, as `--help` has them.
fn flags_of(place: &Place, command: &str) -> BTreeSet<String> {
    let help = place.run(&command.split(' ').chain(["--help"]).collect::<Vec<_>>());
    assert_eq!(help.code, Some(0), "{}", help.stderr);
    // Deeper lines are about the flag above them.
    let long = |line: &str| {
        let flag = line.trim_start();
        let is_flag = flag.starts_with('-') && line.len() - flag.len() <= 6;
        is_flag.then(|| {
            flag.split([' ', ',', '[', '<'])
                .find(|word| word.starts_with("--"))
                .map(String::from)
        })?
    };
    let flags = help
        .stdout
        .lines()
        .filter_map(long)
        .filter(|flag| !OF_ALL.contains(&flag.as_str()));
    flags.collect()
}

#[test]
fn a_flag_that_is_left_out_makes_something_else_come_out() {
    let (lines, next, wrong) = (lines(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let place = place();
        while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
            let all = outcome(&place, line, "");
            let told = format!(
                "heapmark {} {:?} {:?}: {}{}",
                line.command, line.flags, line.words, all.1, all.2
            );
            // What `--fail-on` names, and what `--strict` does not let through.
            let ends = matches!(all.0, Some(0 | 3 | 5));
            let is_used =
                |flag: &str| match line.granted.iter().find(|(granted, _)| *granted == flag) {
                    // Without it, something would be measured.
                    _ if flag == "--dry-run" => true,
                    Some((_, words)) => all.1.contains(words),
                    None => all != outcome(&place, line, flag),
                };
            let idle: Vec<&str> = line
                .flags
                .iter()
                .map(|(flag, _)| *flag)
                .filter(|flag| !is_used(flag))
                .collect();
            if !ends || !idle.is_empty() {
                wrong
                    .lock()
                    .unwrap()
                    .push(format!("{idle:?} do nothing in {told}"));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn what_measures_and_what_records_takes_its_flags_together() {
    are_taken(taken());
}

#[test]
#[ignore = "make test-all"]
fn what_takes_long_takes_its_flags_together() {
    are_taken(taken_slowly());
}

fn are_taken(lines: Vec<Line>) {
    let place = place();
    for line in lines {
        for name in ["out", "noise", "selftest", "checked"] {
            let _ = fs::remove_dir_all(place.at(name));
        }
        let (code, stdout, stderr, _) = outcome(&place, &line, "");
        // With one block a self-test finds nothing.
        let meant = if line.command == "selftest" {
            Some(1)
        } else {
            Some(0)
        };
        assert_eq!(
            code, meant,
            "{} {:?}: {stdout}{stderr}",
            line.command, line.flags
        );
    }
}

#[test]
fn every_pair_of_flags_is_used_or_refused() {
    let (place, lines): (Place, Vec<Line>) = (
        place(),
        lines()
            .into_iter()
            .chain(taken())
            .chain(taken_slowly())
            .collect(),
    );
    let (mut refused, mut wrong) = (0, Vec::new());
    for command in commands(&place) {
        let flags = flags_of(&place, &command);
        let own: Vec<&Line> = lines
            .iter()
            .filter(|line| line.command == command)
            .collect();
        let has = |line: &&&Line, flag: &str| line.flags.iter().any(|(name, _)| *name == flag);
        for (one, two) in flags.iter().flat_map(|one| {
            flags
                .range(one.clone()..)
                .skip(1)
                .map(move |two| (one, two))
        }) {
            let in_a_line = own.iter().any(|line| has(&line, one) && has(&line, two));
            let of_a_plan = [(one, two), (two, one)].iter().any(|(flag, other)| {
                let mut known = OF_A_PLAN.iter().filter(|(of_a_plan, _)| flag == of_a_plan);
                known.any(|(_, not_with)| !not_with.contains(&other.as_str()))
                    && own.iter().any(|line| has(&line, other))
            });
            if in_a_line || of_a_plan {
                continue;
            }
            let known = || own.iter().flat_map(|line| &line.flags).chain(&VALUES);
            let value = |flag: &str| known().find(|(name, _)| *name == flag).copied();
            let (Some(first), Some(second)) = (value(one), value(two)) else {
                wrong.push(format!(
                    "heapmark {command} {one} {two}: no line says what they do"
                ));
                continue;
            };
            let words = own.first().map_or(&[][..], |line| line.words);
            let end = run(&place, &command, &[first, second], words);
            if end.code != Some(2)
                || !(end.stderr.contains(one.as_str()) || end.stderr.contains(two.as_str()))
            {
                let told = format!("{}{}", end.stdout, end.stderr);
                wrong.push(format!(
                    "neither used nor refused: heapmark {command} {one} {two}: {told}"
                ));
            }
            refused += 1;
        }
        // A flag that has no pair.
        for flag in flags.iter().filter(|_| flags.len() == 1) {
            assert!(
                own.iter().any(|line| has(&line, flag)),
                "heapmark {command} {flag}: no test says what it does"
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_stored_run_takes_no_selection_of_another_one() {
    let place = place();
    for args in [
        &["run", "full", "--resume", "run"][..],
        &["try", "--resume", "run", "true"],
        &["run", "--resume", "run", "-a", "glibc"],
    ] {
        let end = place.run(args);
        assert_eq!(
            (end.code, end.stderr.lines().count()),
            (Some(2), 1),
            "{args:?}: {}",
            end.stderr
        );
        assert!(
            end.stderr.contains("does nothing beside --resume"),
            "{}",
            end.stderr
        );
    }
}

#[test]
fn a_flag_that_nothing_in_the_selection_uses_is_refused() {
    let place = place();
    for (args, says) in [
        (
            &["run", "-w", "memory", "-t", "3"][..],
            "--threads: how many threads these workloads have follows from their parameters",
        ),
        (
            &["replay", "a.trace", "-t", "2"],
            "--threads: a trace has the threads that were recorded",
        ),
        (
            &["replay", "a.trace", "--preset", "paper"],
            "--preset: a trace has none",
        ),
        (
            &["replay", "a.trace", "--pace", "2"],
            "--pace: only --mode paced",
        ),
        (
            &["run", "-w", "trace:a.trace", "--set", "trace:a.pace=2"],
            "pace: only mode = paced",
        ),
        (
            &["replay", "a.trace", "--retained", "--mode", "speed"],
            "--mode speed: --retained plays in recorded order",
        ),
        (
            &["replay", "a.trace", "--packing", "--mode", "speed"],
            "--packing: only a replay in recorded order",
        ),
        (
            &["run", "-w", "trace:a.trace", "--set", "trace:a.packing=yes"],
            "packing = yes: only mode = memory",
        ),
        (
            &["replay", "a.trace", "--retained", "--target-ms", "5"],
            "--target-ms: the work of these workloads is fixed",
        ),
        (
            &[
                "run",
                "-w",
                "churn",
                "--counter",
                "callgrind",
                "--target-ms",
                "5",
            ],
            "--target-ms: --counter callgrind",
        ),
        (
            &["run", "-w", "zalloc-pmdk", "--series", "1ms"],
            "--series: memory over time is followed in kernels only",
        ),
        (&["noise", "-w", "churn*"], "--workload churn*: "),
        (
            &["noise", "-w", "memory", "-t", "2"],
            "--threads: memory has as many threads as its parameters say",
        ),
        (
            &["build", "count-mallocs", "-j", "2"],
            "--jobs: only allocators",
        ),
    ] {
        let end = place.run(args);
        assert_eq!(
            (end.code, end.stderr.lines().count()),
            (Some(2), 1),
            "{args:?}: {}",
            end.stderr
        );
        assert!(end.stderr.contains(says), "{args:?}: {}", end.stderr);
    }
    assert!(!place.at("heapmark-results").exists());
}
