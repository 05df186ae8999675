//! The cost of recording compared with heaptrack's, in CPU time of the recorded process per event,
//! beyond the same program without either: a loop of pairs, python3 with JSON, xmllint. Then the
//! cost of the whole command, `heapmark record` compared with `heaptrack`, for programs of about a
//! million events, and its duration if the program does nothing. Each figure is compared with its
//! bar. Not a test: the load of a machine must not decide whether a change passes. Exits non-zero
//! if a bar is missed.

use anyhow::{Context, Error, Result, bail, ensure};
use heapmark::capture::recording::{Recorder, Recording};
use heapmark::execute::Guest;
use heapmark_trace::Reader;
use heapmark_trace::finish::finish;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// With stamps, the time to read the CPU's counter comes on top: 6 ns on some machines, 12 on
/// others, and none of it is the recorder's.
const MOST_NS: f64 = 10.0;
/// Enough pairs that the cost of the first chunk and of a cold cache does not show.
const PAIRS: u32 = 2_000_000;
const MOST_REAL_NS: f64 = 15.0;
const MOST_BYTES: f64 = 5.0;
/// The largest allowed share of heaptrack's cost.
const MOST_SHARE: f64 = 0.2;

/// The largest allowed share of heaptrack's CPU time for the whole command, including all its processes.
const MOST_WHOLE_SHARE: f64 = 0.5;
const MOST_IDLE_MS: f64 = 50.0;

/// The smallest of this many measurements counts: other load on the machine only adds to it.
const ROUNDS: usize = 5;

const JSON: &str = "import json
rows = [{'name': 'row %d' % i, 'values': [i * 0.5, str(i), None], 'more': {'x': i}} for i in range(60000)]
for _ in range(3):
    rows = json.loads(json.dumps(rows))
print(len(rows))";

/// Programs of about a million events.
const PERL: &str = "my %h; $h{$_} = 'value ' . $_ for 1..180000; delete $h{$_} for 1..90000; print scalar(keys %h)";
const TWO_THREADS: &str = "#include <pthread.h>\n#include <stdlib.h>\n
static void *work(void *seed) {
    static __thread void *places[256];
    unsigned random = (unsigned)(size_t)seed;
    for (int round = 0; round < 250000; round++) {
        random = random * 1664525 + 1013904223;
        void **place = &places[random >> 24];
        free(*place);
        *place = malloc(16 + (random >> 12 & 255));
    }
    return NULL;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, work, (void *)1);
    work((void *)2);
    return pthread_join(other, NULL);
}\n";

struct Bars(bool);

impl Bars {
    fn hold(&mut self, what: &str, ours: f64, most: f64) {
        self.0 |= ours > most;
        println!(
            "{ours:8.2} of {most:5.1} {what}{}",
            if ours > most { ": missed" } else { "" }
        );
    }
}

fn main() -> Result<ExitCode> {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).context("cannot make a folder")?;
    let (recorder, guest) = (Recorder::find()?, Guest::find()?);
    let mut bars = Bars(false);
    let cost = recorder.cost(&guest, home.path(), PAIRS)?;
    bars.hold(
        "ns per event, pairs in a loop, one thread",
        cost.alone_ns,
        MOST_NS,
    );
    println!(
        "{:8.2} ns per reading of the CPU's counter in that loop, without a recorder",
        cost.counter_ns
    );
    bars.hold(
        "ns per event, pairs in a loop, clocked",
        cost.threaded_ns,
        MOST_NS + cost.counter_ns,
    );

    let python = output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
    let xml = home.path().join("items.xml");
    std::fs::write(&xml, items(100_000)).context("cannot write a file")?;
    let programs = [
        (
            "python3, JSON",
            vec![OsString::from(python.trim()), "-c".into(), JSON.into()],
            "malloc",
        ),
        (
            "xmllint",
            vec!["xmllint".into(), "--noout".into(), xml.into_os_string()],
            "",
        ),
    ];
    let heaptrack = heaptrack();
    for (name, words, python_malloc) in &programs {
        if !python_malloc.is_empty() {
            // SAFETY: as above.
            unsafe { std::env::set_var("PYTHONMALLOC", python_malloc) };
        }
        program(
            name,
            words,
            &recorder,
            heaptrack.as_deref(),
            home.path(),
            &mut bars,
        )?;
    }
    whole(home.path(), python.trim(), &mut bars)?;
    if heaptrack.is_none() {
        println!(
            "heaptrack is not installed, so nothing is compared with it: apt-get install heaptrack"
        );
    }
    Ok(if bars.0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn program(
    name: &str,
    words: &[OsString],
    recorder: &Recorder,
    heaptrack: Option<&Path>,
    home: &Path,
    bars: &mut Bars,
) -> Result<()> {
    let stem = home.join("run");
    let plain = || {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::null());
        command
    };
    let (mut native, mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    let (mut events, mut bytes) = (0, 0);
    for _ in 0..ROUNDS {
        native = native.min(cpu_s(|| status(&mut plain()))?);
        let mut captures = Vec::new();
        // The program inherits our streams and prints one line.
        let recording = Recording {
            command: words,
            subject: None,
            stem: &stem,
            most_bytes: None,
            duration: None,
        };
        ours = ours.min(cpu_s(|| {
            let recorded = recorder.run(&recording)?;
            ensure!(
                recorded.status.success(),
                "{name} failed under the recorder"
            );
            captures = recorded.captures;
            Ok(())
        })?);
        let [capture] = &captures[..] else {
            bail!("{name} made {} captures", captures.len())
        };
        if events == 0 {
            let finished = finish(capture, &mut std::io::sink())?;
            (events, bytes) = (finished.own_events(), finished.capture_bytes);
        }
        std::fs::remove_file(capture).context("cannot remove a capture")?;
        if let Some(library) = heaptrack {
            let mut command = plain();
            command
                .env("LD_PRELOAD", library)
                .env("DUMP_HEAPTRACK_OUTPUT", home.join("heaptrack"));
            theirs = theirs.min(cpu_s(|| status(&mut command))?);
        }
    }
    let ns = |with: f64| (with - native) * 1e9 / events as f64;
    println!("{name}: {events} events, {native:.2} s alone");
    println!(
        "{:8.1} % of the program's CPU time",
        (ours / native - 1.0) * 100.0
    );
    bars.hold(&format!("ns per event, {name}"), ns(ours), MOST_REAL_NS);
    bars.hold(
        &format!("bytes per event, {name}"),
        bytes as f64 / events as f64,
        MOST_BYTES,
    );
    if heaptrack.is_some() {
        println!("{:8.2} ns per event, heaptrack", ns(theirs));
        bars.hold(
            &format!("of heaptrack's cost, {name}"),
            (ours - native) / (theirs - native),
            MOST_SHARE,
        );
    }
    Ok(())
}

/// Compares the whole commands, as users type them.
fn whole(home: &Path, python: &str, bars: &mut Bars) -> Result<()> {
    let (source, loops, trace) = (
        home.join("loops.c"),
        home.join("loops"),
        home.join("whole.trace"),
    );
    std::fs::write(&source, TWO_THREADS).context("cannot write a file")?;
    status(
        Command::new("cc")
            .args(["-O1", "-fno-builtin", "-pthread", "-o"])
            .arg(&loops)
            .arg(&source),
    )?;
    // SAFETY: as in `main`.
    unsafe { std::env::set_var("PYTHONMALLOC", "malloc") };
    let quiet = |mut command: Command| {
        status(
            command
                .env("HEAPMARK_CACHE", home.join("cache"))
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )
    };
    let record = |words: &[OsString]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        command
            .args(["record", "--force", "-o"])
            .arg(&trace)
            .arg("--")
            .args(words);
        quiet(command)
    };
    // The cost of an event on this machine is measured only once.
    let nothing = [OsString::from("true")];
    record(&nothing)?;
    let idle_ms = |_| {
        let began = Instant::now();
        record(&nothing).map(|()| began.elapsed().as_secs_f64() * 1e3)
    };
    let least = (0..ROUNDS)
        .map(idle_ms)
        .try_fold(f64::INFINITY, |least, ms| Ok::<_, Error>(least.min(ms?)))?;
    bars.hold("ms of time, `heapmark record -- true`", least, MOST_IDLE_MS);
    let there = Command::new("heaptrack")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    let programs = [
        (
            "perl, a hash",
            vec!["perl".into(), "-e".into(), PERL.into()],
        ),
        (
            "python3, JSON",
            vec![
                OsString::from(python),
                "-c".into(),
                JSON.replace("60000", "12000").into(),
            ],
        ),
        ("C, two threads", vec![loops.into_os_string()]),
    ];
    for (name, words) in &programs {
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            ours = ours.min(cpu_s(|| record(words))?);
            if there {
                let mut command = Command::new("heaptrack");
                command
                    .arg("-o")
                    .arg(home.join("whole.heaptrack"))
                    .args(words);
                theirs = theirs.min(cpu_s(|| quiet(command))?);
            }
        }
        let events = Reader::open(&trace)?.count();
        println!("{name}: {events} events, {ours:.3} s of CPU time in all with `heapmark record`");
        if there {
            println!("{theirs:8.3} s with `heaptrack`");
            bars.hold(
                &format!("of the CPU time of `heaptrack`, {name}"),
                ours / theirs,
                MOST_WHOLE_SHARE,
            );
        }
    }
    Ok(())
}

/// The library that heaptrack preloads: its command would also run a second process.
fn heaptrack() -> Option<PathBuf> {
    let folders = [
        "/usr/lib/heaptrack",
        "/usr/lib/x86_64-linux-gnu/heaptrack",
        "/usr/lib/aarch64-linux-gnu/heaptrack",
    ];
    folders
        .iter()
        .map(|folder| Path::new(folder).join("libheaptrack_preload.so"))
        .find(|file| file.is_file())
}

/// CPU time of the child processes that ended during `run`.
fn cpu_s(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let before = children_s();
    run()?;
    Ok(children_s() - before)
}

fn children_s() -> f64 {
    // SAFETY: `getrusage` fills a structure of plain numbers, for which zeros are valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn status(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

fn output(command: &mut Command) -> Result<String> {
    let end = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(end.status.success(), "{command:?} failed");
    Ok(String::from_utf8(end.stdout)?)
}

fn items(count: usize) -> String {
    let mut text = String::from("<items>\n");
    for number in 0..count {
        let _ = writeln!(
            text,
            "<item id=\"{number}\"><name>item {number}</name><value unit=\"g\">{}</value></item>",
            number * 7
        );
    }
    text.push_str("</items>\n");
    text
}
