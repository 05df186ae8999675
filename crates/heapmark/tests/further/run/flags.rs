//! A flag that is typed is used or refused, in every command: a walk over all pairs of flags of the command line's own definition.
//!
//! A pair is used if both stand in a line here, which shows what each of them does. All other pairs must be refused. A new flag stands
//! in no line, and so is missed until it is put into one, or refused.

use crate::support::captured::Captured;
use crate::support::machine::Machine;
use crate::support::rust_project::{find_cargo, write_project};
use crate::support::stored::original;
use crate::support::{End, Place, commands};
use clap::error::ErrorKind;
use heapmark_trace::{Event, Head, Token, Writer};
use std::fs;
use std::sync::OnceLock;

/// A flag with its value, and what a plan says because of it.
type Flag = (&'static str, &'static str);

/// A command line with flags that may all stand together.
struct Line {
    command: String,
    flags: Vec<Flag>,
    /// Files, or a program.
    words: &'static [&'static str],
}

/// In every dry run that compares.
const COMPARES: &[Flag] = &[
    ("--dry-run", "checked processes first"),
    ("--cells", "  padding "),
    (
        "--allocators jemalloc=./libhonest.so,glibc",
        "libhonest.so)",
    ),
    // Without it, the name would be refused.
    ("--replace", "jemalloc (baseline, "),
    ("--baseline jemalloc", "jemalloc (baseline, "),
    ("--no-aa-copy", "beside      nothing"),
    ("--no-repeat", "nothing is run again"),
    ("--seed 7", "seed 7:"),
    ("--timeout 90s", "after 90 s"),
    ("--thp never", "huge pages"),
    ("--output there", "results     there"),
    ("--strict", "without warnings, which --strict asks for"),
    (
        "--check-again",
        "run again, whatever earlier runs have passed",
    ),
];
const MANY_BLOCKS: &[Flag] = &[
    ("--precision 2%", "within 2.00 %"),
    ("--max-blocks 12", "6 to 12"),
    ("--budget 2h", "after 7200 s"),
];
const EXACT: &[Flag] = &[("--blocks 7", "blocks      7,")];
const WITHIN: &[Flag] = &[
    ("--blocks 7", "blocks      7,"),
    ("--budget 2h", "after 7200 s"),
];
const STORED: &[Flag] = &[
    ("--resume run", "results     run\n"),
    ("--dry-run", "checked processes first"),
    ("--cells", "  padding "),
    ("--strict", "without warnings, which --strict asks for"),
    (
        "--check-again",
        "run again, whatever earlier runs have passed",
    ),
];

/// In those of kernels, too.
const KERNELS: &[Flag] = &[
    ("--workloads churn", "workloads   churn@"),
    ("--preset quick", "preset quick"),
    ("--set churn.objects=77", "objects=77"),
    ("--allow-forwarding", "libraries that hand calls on to libc"),
    ("--no-floor", "beside      nothing"),
    ("--target-ms 77", "for 77 ms"),
];
const TWO_THREADS: &[Flag] = &[("--threads 2", "churn@2")];
/// Which can take turns.
const ONE_THREAD: &[Flag] = &[("--threads 1", "churn@1")];
const SERIES: &[Flag] = &[("--series 7ms", "memory over time every 7")];
/// Where times are compared.
const AGE: &[Flag] = &[("--age 75", "aged")];
const TURNS: &[Flag] = &[("--turns stop", "stopped and continued")];
const ALONE: &[Flag] = &[("--alone", "each process runs alone")];
const LATENCY: &[Flag] = &[("--latency 7", "single calls, 1 of 7")];
const COUNTER: &[Flag] = &[("--counter kernel", "events, counted by")];
const RETAINED: &[Flag] = &[("--retained", "memory for what is live")];
const PACKING: &[Flag] = &[("--packing", "packed_bytes=32")];
const CPUS_SEEN: &[Flag] = &[("--cpus-seen 64", "-cpus-64@1")];
const LIMIT: &[Flag] = &[("--limit data", "the smallest limit that does")];

/// In those of traces.
const TRACES: &[Flag] = &[
    ("--set trace:a.touch=none", "touch=none"),
    ("--touch all", "touch=all"),
    ("--allow-forwarding", "libraries that hand calls on to libc"),
    ("--no-floor", "beside      nothing"),
    ("--skew 5000", "skew=5000"),
    ("--reads 7", "reads=7"),
];
const SPEED: &[Flag] = &[("--target-ms 77", "for 77 ms")];
const PACED: &[Flag] = &[("--mode paced", "mode=paced"), ("--pace 2", "pace=2")];

/// In those of a command that is tried.
const PREPARED: &[Flag] = &[("--prepare true", "before each process: true")];
const TRIES: &[Flag] = &[
    ("--warmup 2", "2 for warming up"),
    ("--stdin input", "it reads "),
    ("--tree-may-differ", "it may execute other programs"),
    ("--name mine", "mine@1"),
];
const AS_CALLED: &[Flag] = &[("--keep-env", "as-called")];
const VARIANTS: &[Flag] = &[
    ("--variant one=cat --variant two=tac", "one: cat"),
    ("--variant-env two=COLOUR=red", "COLOUR=red tac"),
];
const CARGO: &[Flag] = &[
    ("--cargo", "system: app-system"),
    ("--package app", "app-system"),
    ("--bin app", "app-system"),
    ("--features more", "app-system"),
    ("--target x86_64-unknown-linux-gnu", "app-system"),
    (
        "--global-allocators system,mimalloc",
        "mimalloc: COLOUR=red app-mimalloc",
    ),
    (
        "--variant-env mimalloc=COLOUR=red",
        "mimalloc: COLOUR=red app-mimalloc",
    ),
];
const VALUES: &[Flag] = &[
    (
        "--value ops:higher=([0-9]+)",
        "judged by ops, the higher the better",
    ),
    (
        "--value-json p99:lower:ms=p99",
        "shown: p99, ms, the lower the better",
    ),
    ("--value-of wrk", "shown: requests, 1/s"),
    ("--value-from values", "from values"),
];
const CHECKED: &[Flag] = &[("--check-output", "what it prints is compared")];
const EXITS: &[Flag] = &[("--expect-exit 3", "exit code 3")];
const SERVES: &[Flag] = &[
    ("--server cat", "command     cat;"),
    ("--client true", "driven by true"),
    ("--ready 7", "at port 7"),
    ("--drain 60s", "watched for 60s after its load"),
];
const SERVE_VARIANTS: &[Flag] = &[
    ("--server {variant}", "one: cat; two: COLOUR=red tac;"),
    ("--client true", "driven by true"),
    ("--ready started", "at its start"),
    ("--drain 60s", "watched for 60s after its load"),
];

/// Flags that go with all that the others plan, unless they are refused beside one of them: a process of the plan, and what is printed
/// of the run.
const OF_A_PLAN: [&str; 2] = ["--cell", "--format"];

/// Flags that stand in no line.
const IN_NO_LINE: [&str; 6] = [
    "--resume run",
    "--cell churn@1/b00/glibc",
    "--format json",
    "--jobs 2",
    "--languages",
    "--watch 1s",
];

/// Flags that take the place of a program or of files.
const WITHOUT_WORDS: [&str; 4] = ["--resume", "--server", "--client", "--ready"];

/// What flags require that stand for themselves nowhere.
const REQUIRED: [(&str, &str); 10] = [
    ("--cells", "--dry-run"),
    ("--server", "--client true --ready 7"),
    ("--client", "--server cat --ready 7"),
    ("--ready", "--server cat --client true"),
    ("--drain", "--server cat --client true --ready 7"),
    ("--package", "--cargo"),
    ("--bin", "--cargo"),
    ("--features", "--cargo"),
    ("--target", "--cargo"),
    ("--global-allocators", "--cargo"),
];

/// Plans: what each flag does is read in a dry run.
fn plans() -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |command: &str, flags: &[&[Flag]], words| {
        lines.push(Line {
            command: command.into(),
            flags: flags.concat(),
            words,
        });
    };
    let traces: &[_] = &["a.trace", "b.trace"];
    let cat: &[_] = &["cat", "--flag-of-cat"];
    let replays: &[Flag] = &[COMPARES, TRACES].concat();
    let kernels: &[Flag] = &[COMPARES, KERNELS].concat();
    let tries: &[Flag] = &[COMPARES, TRIES].concat();
    let none: &[_] = &[];
    let ends = [([CHECKED, EXITS].concat(), cat), (SERVES.to_vec(), none)];
    for command in ["run", "try", "replay"] {
        add(command, &[STORED], &[]);
    }
    for mode in [SERIES, LATENCY, COUNTER, RETAINED, LIMIT] {
        add(
            "run",
            &[kernels, TWO_THREADS, EXACT, mode, ALONE],
            &["zalloc"],
        );
        add("replay", &[replays, EXACT, PACED, mode, ALONE], traces);
        // Memory is measured in a fixed order.
        if mode != RETAINED {
            add("replay", &[replays, EXACT, SPEED, mode, ALONE], traces);
        }
    }
    add(
        "replay",
        &[replays, EXACT, RETAINED, PACKING, ALONE],
        traces,
    );
    add(
        "run",
        &[kernels, TWO_THREADS, MANY_BLOCKS, SERIES, ALONE],
        &["zalloc"],
    );
    for way in [SPEED, PACED] {
        add(
            "replay",
            &[replays, MANY_BLOCKS, way, SERIES, ALONE],
            traces,
        );
    }
    for blocks in [WITHIN, MANY_BLOCKS] {
        add(
            "run",
            &[kernels, TWO_THREADS, blocks, SERIES, AGE, ALONE],
            &["zalloc"],
        );
        add(
            "replay",
            &[replays, blocks, SPEED, SERIES, AGE, ALONE],
            traces,
        );
        for (of_rows, serves) in [(AS_CALLED, SERVES), (VARIANTS, SERVE_VARIANTS)] {
            let all: &[Flag] = &[tries, of_rows, blocks].concat();
            add("try", &[all, CHECKED, EXITS, TURNS], cat);
            add("try", &[all, CHECKED, EXITS, PREPARED, ALONE], cat);
            add("try", &[all, VALUES, EXITS, PREPARED, ALONE], cat);
            add("try", &[all, VALUES, serves, PREPARED, ALONE], &[]);
            let told: &[Flag] = &[all, CPUS_SEEN, PREPARED, ALONE].concat();
            add("try", &[told, CHECKED, EXITS], cat);
            add("try", &[told, serves], &[]);
        }
        for (way, words) in &ends {
            add(
                "try",
                &[tries, AS_CALLED, PREPARED, blocks, way, AGE, ALONE],
                words,
            );
        }
        add("run", &[kernels, ONE_THREAD, blocks, TURNS], &["zalloc"]);
        add("replay", &[replays, blocks, SPEED, TURNS], traces);
    }
    for (way, words) in &ends {
        add(
            "try",
            &[tries, AS_CALLED, PREPARED, EXACT, way, LIMIT, ALONE],
            words,
        );
    }
    lines
}

/// Plans for which a Rust project is built.
fn plans_of_builds() -> Vec<Line> {
    let all = |blocks: &[Flag]| [COMPARES, TRIES, CARGO, EXITS, blocks].concat();
    let of = |blocks| {
        [
            [&all(blocks), CHECKED, TURNS].concat(),
            [&all(blocks), CHECKED, PREPARED, ALONE].concat(),
            [&all(blocks), VALUES, PREPARED, ALONE].concat(),
            [&all(blocks), CPUS_SEEN, PREPARED, ALONE].concat(),
        ]
    };
    let line = |flags| Line {
        command: "try".into(),
        flags,
        words: &["--"],
    };
    [WITHIN, MANY_BLOCKS, EXACT]
        .into_iter()
        .flat_map(of)
        .map(line)
        .collect()
}

/// The flags of `text`, each with its value.
fn flags_of(text: &'static str) -> Vec<Flag> {
    let starts = text.match_indices("--").map(|(start, _)| start);
    let ends = starts.clone().skip(1).chain([text.len()]);
    starts
        .zip(ends)
        .map(|(start, end)| (text[start..end].trim(), ""))
        .collect()
}

fn line(command: &str, flags: &'static str, words: &'static [&'static str]) -> Line {
    Line {
        command: command.into(),
        flags: flags_of(flags),
        words,
    }
}

/// Other commands, which end at once: something else comes out once a flag is left out.
fn answers() -> Vec<Line> {
    vec![
        line("doctor", "--format json --strict", &[]),
        line("list", "--format json", &["suites"]),
        line("list", "--flags", &["allocators"]),
        line("list", "--markdown", &["workloads"]),
        line("show", "--full", &["two"]),
        line("show", "--format json", &["two"]),
        line("report", "--output out --force", &["run"]),
        line(
            "compare",
            "--output out --force --to json --by cpu --threshold 7% --fail-on unclear",
            &["two"],
        ),
        line("export", "--output out --force --to csv", &["run"]),
        line(
            "claims",
            "--output out --force --to json --document ll",
            &["run"],
        ),
        line(
            "claims",
            "--output out --force --reproduction --document ll",
            &["run"],
        ),
        line(
            "trace finish",
            "--output out --force --without-argv",
            &["c.cap"],
        ),
        line(
            "trace stats",
            "--output out --force --to json",
            &["a.trace"],
        ),
        line("trace dump", "--format json --events 1..2", &["a.trace"]),
        line(
            "trace cut",
            "--output out --force --events 1..2",
            &["a.trace"],
        ),
        line(
            "trace cut",
            "--output out --force --time 0..1s",
            &["a.trace"],
        ),
        line("trace import", "--output out --force", &["mtrace"]),
        line("trace export", "--output out --force --sizes", &["a.trace"]),
        line(
            "trace export",
            "--output out --force --lifetimes",
            &["a.trace"],
        ),
        line("trace export", "--output out --force --joint", &["a.trace"]),
    ]
}

/// Histories of something, `words` in place of it: timed, of memory, and counted.
macro_rules! histories {
    ($of:literal, $words:expr) => {
        histories!(@ $of, $words, "--budget 1min", "--retained", "--counter callgrind")
    };
    (@ $of:literal, $words:expr, $($how:literal),*) => {
        [$(line(
            "history",
            concat!(
                $of,
                " --workloads churn-private --threads 1 --set churn-private.objects=200 --allow-forwarding ",
                $how,
                " --blocks 1 --threshold 2% --output series --format json"
            ),
            $words,
        )),*]
    };
}

/// Commands that measure or record each time: what each flag does is held by other tests, and together they must be taken.
fn taken() -> Vec<Line> {
    let lines = vec![
        line(
            "noise",
            "--allocator glibc --workload churn-private --threads 1 --seed 7 --target-ms 1ms --as mean --output noise --minutes 1s",
            &[],
        ),
        line(
            "noise",
            "--allocator glibc --workload churn-private --threads 1 --seed 7 --target-ms 1ms --as mean --output noise --blocks 6",
            &[],
        ),
        line(
            "record",
            "--output out --force --allocator ./libhonest.so --max-bytes 9M --duration 1min --without-argv --children",
            &["true", "--flag-of-true"],
        ),
        line(
            "record",
            "--output out --force --allocator ./libhonest.so --max-bytes 9M --duration 1min --raw",
            &["true", "--flag-of-true"],
        ),
        line("clean", "--yes", &["cache"]),
        line(
            "check",
            "--allocators glibc --preset full --only free-null --fail-on robust --timeout 1min --format json --output checked",
            &[],
        ),
        line("check", "--program free-null", &[]),
        line(
            "which",
            "--expect glibc --after 100ms --format json",
            &["--", "sleep", "1"],
        ),
        line("museum", "--output museum --format json", &[]),
        line(
            "tune",
            "--allocators ./libhonest.so --for memory --at-most time=2 --budget 1min --held-out false --also GLIBC_TUNABLES=nonsense \
             --value x:lower=([0-9]+) --expect-exit 1 --prepare true --stdin input --output tuned --format json --workload churn \
             --threads 1",
            &["--", "false"],
        ),
        line(
            "tune",
            "--allocators ./libhonest.so --for memory --at-most time=2 --budget 1min --held-out false --also GLIBC_TUNABLES=nonsense \
             --value x:lower=([0-9]+) --prepare true --stdin input --output served --format json --server cat --client true --ready 7",
            &[],
        ),
    ];
    let builds = histories!("--allocators v1=./libhonest.so,v2=./libhonest.so", &[]);
    lines.into_iter().chain(builds).collect()
}

/// As [`taken`], of commands that take many seconds.
fn taken_slowly() -> Vec<Line> {
    let selftest = line("selftest", "--blocks 6 --seed 7 --output selftest", &[]);
    let releases = histories!("--versions 1.4.0..1.4.3", &["rpmalloc"]);
    [selftest].into_iter().chain(releases).collect()
}

/// A place with all that the lines name.
fn place() -> Place {
    let place = Place::of_turns();
    place.fake("honest");
    Machine::clean(place.at("machine"));
    Machine::clean(place.at("warned")).plant("sys/kernel/mm/ksm/run", "1\n");
    fs::write(place.at("input"), "").unwrap();
    write_project(&place.at(""));
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
        let mut file = fs::File::create(place.at(name)).unwrap();
        let mut writer = Writer::new(&mut file, &Head::default()).unwrap();
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

/// The name of a flag without its value.
fn name<'t>(flag: &&'t str) -> &'t str {
    flag.split(' ').next().unwrap()
}

impl Line {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(typed, _)| name(typed) == flag)
    }

    /// What is typed without one of the flags.
    fn typed(&self, left_out: &str) -> Vec<&str> {
        let flags = self.flags.iter().map(|(flag, _)| *flag);
        let flags = flags.filter(|flag| name(flag) != left_out);
        self.command
            .split(' ')
            .chain(flags.flat_map(|flag| flag.split(' ')))
            .chain(self.words.iter().copied())
            .collect()
    }

    /// All that comes out of the line without one of the flags.
    fn outcome(&self, place: &Place, left_out: &str) -> (Option<i32>, String, Vec<u8>) {
        fs::write(place.at("out"), "old").unwrap();
        let end = run(place, &self.typed(left_out));
        let said = end.stdout + &end.stderr;
        (end.code, said, fs::read(place.at("out")).unwrap())
    }
}

fn run(place: &Place, args: &[&str]) -> End {
    let mut heapmark = place.heapmark(args);
    // Something that configures an allocator, for --keep-env.
    let machine = if args[0] == "doctor" {
        "warned"
    } else {
        "machine"
    };
    heapmark
        .env("HEAPMARK_MACHINE_ROOT", place.at(machine))
        .env("MALLOC_ARENA_MAX", "1");
    find_cargo(&mut heapmark);
    End::of(heapmark.output().unwrap())
}

#[test]
fn a_plan_says_what_each_flag_does() {
    say_what_each_flag_does(plans());
}

#[test]
#[ignore = "make test-all"]
fn a_plan_of_builds_says_what_each_flag_does() {
    say_what_each_flag_does(plans_of_builds());
}

fn say_what_each_flag_does(lines: Vec<Line>) {
    let place = place();
    let said = |args: &[&str]| {
        let end = run(&place, args);
        assert_eq!(end.code, Some(0), "{args:?}: {}", end.stderr);
        end.stdout
    };
    let bare = |command: &'static str, words: &[&str]| {
        let typed = [&[command, "--dry-run", "--cells", "--alone"], words].concat();
        (command, said(&typed))
    };
    let without = [
        bare("run", &["zalloc"]),
        bare("try", &["cat"]),
        bare("replay", &["a.trace", "b.trace"]),
    ];
    let least = said(&["run", "--dry-run", "zalloc"]);
    let mut wrong = Vec::new();
    for line in lines {
        let (code, said, _) = line.outcome(&place, "");
        let of_command = without.iter().find(|(command, _)| *command == line.command);
        let more = &of_command.unwrap().1;
        for (flag, words) in &line.flags {
            let without = if ["--cells", "--alone"].contains(flag) {
                &least
            } else {
                more
            };
            let is_new = *flag == "--dry-run" || !without.contains(words);
            if !said.contains(words) || !is_new {
                wrong.push(format!("{flag}: {words:?} in {:?}", line.typed("")));
            }
        }
        assert_eq!(code, Some(0), "{:?}: {said}", line.typed(""));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_flag_that_is_left_out_makes_something_else_come_out() {
    let place = place();
    for line in answers() {
        let all = line.outcome(&place, "");
        // What `--fail-on` names, and what `--strict` does not let through.
        assert!(
            matches!(all.0, Some(0 | 3 | 5)),
            "{:?}: {}",
            line.typed(""),
            all.1
        );
        for (flag, _) in &line.flags {
            let other = line.outcome(&place, name(flag));
            assert_ne!(all, other, "{flag} does nothing in {:?}", line.typed(""));
        }
    }
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
        for name in ["out", "noise", "selftest", "checked", "series"] {
            let _ = fs::remove_dir_all(place.at(name));
        }
        let (code, said, _) = line.outcome(&place, "");
        // What is as short as here need not find what it has to, or anything.
        let may_fail = code == Some(1) && ["noise", "selftest"].contains(&&*line.command);
        assert!(code == Some(0) || may_fail, "{:?}: {said}", line.typed(""));
    }
}

/// A command with two of its flags and what they require, if the lines have values for them.
fn pair(lines: &[&Line], command: &str, flags: [&str; 2]) -> Option<Vec<String>> {
    let of_lines = || lines.iter().flat_map(|line| &line.flags);
    let known = || of_lines().map(|(flag, _)| flag).chain(&IN_NO_LINE);
    let with_value = |flag: &str| known().find(|known| name(known) == flag);
    let required = REQUIRED
        .iter()
        .filter(|(flag, _)| flags.contains(flag))
        .flat_map(|(_, required)| flags_of(required))
        .filter(|(flag, _)| !flags.contains(&name(flag)));
    let words = lines.iter().map(|line| line.words);
    let words = words.max_by_key(|words| words.len());
    let takes_words = !flags.iter().any(|flag| WITHOUT_WORDS.contains(flag));
    let typed = [*with_value(flags[0])?, *with_value(flags[1])?];
    let all = [command]
        .into_iter()
        .chain(typed)
        .chain(required.map(|(flag, _)| flag))
        .flat_map(|text| text.split(' '))
        .chain(words.filter(|_| takes_words).into_iter().flatten().copied());
    Some(all.map(String::from).collect())
}

#[test]
fn every_pair_of_flags_is_used_or_refused() {
    let place = place();
    let lines = [
        plans(),
        plans_of_builds(),
        answers(),
        taken(),
        taken_slowly(),
    ];
    let lines: Vec<Line> = lines.into_iter().flatten().collect();
    let (mut refused, mut wrong) = (0, Vec::new());
    for (command, mut definition) in commands() {
        let flags = definition.get_arguments().filter_map(|arg| arg.get_long());
        let flags: Vec<String> = flags.map(|flag| format!("--{flag}")).collect();
        let own = lines.iter().filter(|line| line.command == command);
        let own: Vec<&Line> = own.collect();
        let is_used = |flag: &str| own.iter().any(|line| line.has(flag));
        if let [flag] = &flags[..]
            && !is_used(flag)
        {
            wrong.push(format!("{command} {flag}: no line says what it does"));
        }
        let pairs = flags.iter().enumerate().flat_map(|(place, one)| {
            let others = flags[place + 1..].iter();
            others.map(move |two| [one.as_str(), two.as_str()])
        });
        for flags in pairs {
            let of_one_line = |line: &&Line| flags.iter().all(|flag| line.has(flag));
            if own.iter().any(of_one_line) {
                continue;
            }
            let Some(typed) = pair(&own, &command, flags) else {
                wrong.push(format!("{command} {flags:?}: no line says what they do"));
                continue;
            };
            let names_one = |text: &str| flags.iter().any(|flag| text.contains(flag));
            let words = typed.iter().skip(command.matches(' ').count());
            if let Err(why) = definition.try_get_matches_from_mut(words) {
                refused += 1;
                if why.kind() != ErrorKind::ArgumentConflict || !names_one(&why.to_string()) {
                    wrong.push(format!("{typed:?}: {why}"));
                }
                continue;
            }
            let [one, two] = flags;
            let goes_with = |flag, other| OF_A_PLAN.contains(&flag) && is_used(other);
            if goes_with(one, two) || goes_with(two, one) {
                continue;
            }
            let end = run(
                &place,
                &typed.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            if end.code != Some(2) || !names_one(&end.stderr) {
                let said = end.stdout + &end.stderr;
                wrong.push(format!("neither used nor refused: {typed:?}: {said}"));
            }
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
        &["replay", "--resume", "run", "a.trace"],
    ] {
        let end = place.run(args);
        assert_eq!(end.code, Some(2), "{args:?}: {}", end.stderr);
        assert!(end.stderr.contains("cannot be used with"), "{}", end.stderr);
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
            &["run", "-w", "trace:a.trace", "-t", "2"],
            "--threads: a trace has the threads that were recorded",
        ),
        (
            &["run", "-w", "trace:a.trace", "--preset", "paper"],
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
            "--series: memory over time is followed in built-in workloads only",
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
