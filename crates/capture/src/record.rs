//! `heapmark record`: runs the user's program and writes a trace of its allocations.

use crate::recording::{Cost, Recorded, Recorder, Recording};
use crate::report::{self, RecordedProcess};
use crate::trace::finish::{finishing, say_earlier, warnings};
use anyhow::{Context, Result, bail};
use heapmark_core::build::command::{as_a_shell_starts, name_of, recognise_command};
use heapmark_core::catalog::folder::listing;
use heapmark_core::cmd::output::{may_be_written, refused};
use heapmark_core::cmd::run::resolve;
use heapmark_core::cmd::signals::{self, Answer};
use heapmark_core::cmd::{catalog, in_file, say, usage, width_of};
use heapmark_core::execute::{Guest, Subject, ground, signal_name};
use heapmark_core::file::{self, Draft, Existing, WithPath};
use heapmark_core::report::render::terminal;
use heapmark_core::report::{Screen, units};
use heapmark_trace::Reader;
use heapmark_trace::ended_early;
use heapmark_trace::finish::{self, Finished, Unfinished};
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Run your program and record what it allocates: every call of every thread and child process, to
/// be replayed anywhere. The exit code is the program's, or 128 plus the signal's number
#[derive(clap::Args)]
pub struct RecordArgs {
    /// The program and its arguments: everything after it belongs to it. It keeps its environment,
    /// its streams and its exit code
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
    /// The trace [default: PROGRAM.trace, or PROGRAM-2.trace if there is an earlier one]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also make traces of the program's other processes, in the folder PROGRAM.children
    #[arg(long)]
    children: bool,
    /// Replace an earlier recording of this name, including its traces of other processes
    #[arg(long)]
    force: bool,
    /// Allocator to preload [default: the program's own]
    #[arg(short, long, value_name = "ALLOCATOR")]
    allocator: Option<String>,
    /// Stop recording a process when it has written this much (300M, 2G); the process goes on
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Stop recording after this time (90s, 5min; a bare number: seconds); the program goes on
    #[arg(long, value_name = "TIME", value_parser = heapmark_core::cmd::run::comparison::budget)]
    duration: Option<Duration>,
    /// Keep the captures as they are, for `heapmark trace finish`
    #[arg(long, conflicts_with_all = ["without_argv", "children"])]
    raw: bool,
    /// Leave the words of command lines out of the traces: they may hold secrets
    #[arg(long)]
    without_argv: bool,
}

/// A process gets a remark if malloc served less than 1/`SMALL_SHARE` of its peak memory, or of its anonymous memory at the
/// end: then most of what matters about it is not recorded. The peak includes mapped files, so only a large one counts; a
/// smaller amount of anonymous memory is enough.
const LARGE_BYTES: u64 = 64 << 20;
const LARGE_ANONYMOUS_BYTES: u64 = 2 << 20;
const SMALL_SHARE: u64 = 4;
/// A process that makes less than 1/`ONLY_STARTS` of the calls of another process in the tree is not what the user means by the program.
const ONLY_STARTS: u64 = 100;
/// Characters of a program's name in the name of its trace: a program may choose any name for
/// itself.
const LONGEST_NAME: usize = 60;

/// Runs the command; returns the program's exit code.
pub fn run(mut args: RecordArgs) -> Result<u8> {
    let folder = env::current_dir().context("cannot tell where this is")?;
    let words = as_a_shell_starts(args.command.clone(), &folder).map_err(usage)?;
    let recognised = recognise_command(&words, &folder);
    let file = PathBuf::from(name_of(&words));
    // The words differ only if a shell has to start a script; everything else is called as it was typed.
    if words.len() > args.command.len() {
        args.command = words;
    }
    let program = recognised.program().display();
    if let Some(why) = &recognised.unreachable {
        let instead = match recognised.is_silent {
            true => {
                ": record a dynamically linked build of it, which makes the same calls; builds of it can be compared (heapmark try --variant)"
            }
            false => "",
        };
        refuse!("{program}: {why}. It cannot be recorded{instead}");
    }
    if let Some(shim) = &recognised.shim {
        say!("{} is {}", file.display(), shim.advice());
    }
    for allocator in &recognised.inside {
        say!("{program} has {allocator} inside: calls of that cannot be recorded");
    }
    let named = args.output.is_some();
    let output = args.output.unwrap_or_else(|| {
        let name = text(file.file_name());
        PathBuf::from(format!("{name}.trace"))
    });
    let place = RecordOutput {
        // Absolute, since the program may change its working directory and must still find its file.
        output: std::path::absolute(&output).with_context(|| output.display().to_string())?,
        named,
        force: args.force,
        children: args.children,
        without_argv: args.without_argv,
    };
    // Checked now: the program may run for hours before the trace is written.
    place.look()?;
    let subject = args.allocator.as_deref().map(allocator).transpose()?;
    let recorder = Recorder::find()?;
    let guest = Guest::find()?;
    let cost = recorder.estimate(&guest, place.folder())?;
    let (folder, note) = ground::for_captures(place.folder());
    note.iter().for_each(say);
    let folder = captures_folder(&folder, &place.output)?;
    signals::answer(Answer::PassOn);
    let over = say_when_over(args.duration);
    let recorded = recorder.run(&Recording {
        command: &args.command,
        subject: subject.as_ref(),
        stem: &folder.join("process"),
        most_bytes: args.max_bytes,
        duration: args.duration,
    })?;
    signals::answer(Answer::End(
        "interrupted: no trace was made; captures are kept, for `heapmark trace finish CAPTURE`",
    ));
    drop(over);
    if recorded.captures.is_empty() {
        let _ = fs::remove_dir(&folder);
        tell_unrecorded(&recorded);
        bail!(
            "nothing was recorded ({}): the program started no process that the recorder got into, or {} cannot be written to",
            recorded.status,
            place.folder().display()
        );
    }
    if args.raw {
        tell_raw(&recorded);
        tell_unrecorded(&recorded);
    } else {
        let kept = "captures are kept, for `heapmark trace finish CAPTURE -o FILE`";
        finish(&recorded, &place, &cost).context(kept)?;
    }
    Ok(recorded.code())
}

/// Makes a folder for the captures of this recording, which other users cannot look into, so that
/// all its content is ours.
fn captures_folder(within: &Path, output: &Path) -> Result<PathBuf> {
    let common = format!("{}.{}", text(output.file_name()), std::process::id());
    let folder = file::numbered(within.join(format!("{common}.captures")), file::is_there);
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    made.with_path("cannot write", &folder)?;
    Ok(folder)
}

/// Prints where the captures are, and what ended them early.
fn tell_raw(recorded: &Recorded) {
    for capture in &recorded.captures {
        let words = finish::head_of(capture)
            .ok()
            .and_then(|head| ended_early(&head))
            .map_or(String::new(), |words| format!(": {words}"));
        say!("{}{words}", from_here(capture).display());
    }
    killed(recorded).iter().for_each(say);
}

/// Reports when the recording is over and the program is not, unless the returned value is dropped
/// first.
fn say_when_over(duration: Option<Duration>) -> Sender<()> {
    let (over, ended) = channel();
    if let Some(duration) = duration {
        std::thread::spawn(move || {
            if ended.recv_timeout(duration) == Err(RecvTimeoutError::Timeout) {
                say(
                    "--duration is over: recording has ended, the program goes on; traces are made when it ends",
                );
            }
        });
    }
    over
}

/// `300M`, `2G`, `1000000`; K, M and G are powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim_end_matches(['i', 'B']);
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => Some(1),
        "K" | "k" => Some(1 << 10),
        "M" => Some(1 << 20),
        "G" => Some(1 << 30),
        _ => None,
    };
    let bytes = digits.parse::<u64>().ok().zip(unit);
    bytes
        .and_then(|(number, unit)| number.checked_mul(unit))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a size: 300M, 2G".into())
}

/// The allocator, given by its name, a path, or both.
fn allocator(word: &str) -> Result<Subject> {
    let catalog = catalog()?;
    // The name appears in no row, so any name will do.
    let (_, chosen) =
        resolve::choose(&[word.to_owned()], &[], word, true, catalog).map_err(usage)?;
    resolve::must_take_programs(&chosen)?;
    let mut resolved = resolve::resolve(chosen, catalog, false)?;
    let subject = resolved
        .pop()
        .with_context(|| format!("-a {word}: it is not ready"))
        .map_err(usage)?;
    match &subject.refused {
        Some(outcome) => refuse!("-a {word}: {}", outcome.reason()),
        None => Ok(subject),
    }
}

/// The destination of the traces.
struct RecordOutput {
    /// The trace of the program itself.
    output: PathBuf,
    /// Whether the user chose the name: then the trace gets this name, or recording fails.
    named: bool,
    force: bool,
    /// Whether traces of all processes are wanted.
    children: bool,
    without_argv: bool,
}

impl RecordOutput {
    /// The folder of the traces.
    fn folder(&self) -> &Path {
        self.output.parent().unwrap_or(Path::new("/"))
    }

    /// Refuses if existing files would be overwritten.
    fn look(&self) -> Result<()> {
        // A trace would replace a device.
        if self
            .output
            .metadata()
            .is_ok_and(|known| !known.is_file() && !known.is_dir())
        {
            let shown = from_here(&self.output);
            refuse!("-o {}: that is no file", shown.display());
        }
        may_be_written(&self.output, Existing::Goes)?;
        match earlier(&self.output).first() {
            Some(first) if self.named && !self.force => Err(refused(&from_here(first))),
            _ => Ok(()),
        }
    }

    fn existing(&self) -> Existing {
        match self.force {
            true => Existing::Goes,
            false => Existing::Stays,
        }
    }

    /// Gives the program's trace its final name; returns that name.
    fn keep(&self, trace: &Path) -> Result<PathBuf> {
        loop {
            let output = match self.named || self.force {
                true => self.output.clone(),
                false => file::numbered(self.output.clone(), |name| !earlier(name).is_empty()),
            };
            match file::keep(trace, &output, self.existing()) {
                // Another recording has taken the name meanwhile.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && !self.named => {}
                kept => return kept.with_path("cannot write", &output).map(|()| output),
            }
        }
    }
}

/// The folder for the traces of the program's other processes: `app.children` beside `app.trace`, and `app.2.children` beside
/// `app.2`, since `app` may be another recording.
pub fn children_folder(output: &Path) -> PathBuf {
    match output.extension() {
        Some(extension) if extension != "trace" => {
            let name = [text(output.file_name()), ".children".into()].concat();
            output.with_file_name(name)
        }
        _ => output.with_extension("children"),
    }
}

/// The traces of an earlier recording of that name: those of the program and of its children.
fn earlier(output: &Path) -> Vec<PathBuf> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_ours = |path: &PathBuf| {
        let name = text(path.file_name());
        let number = name
            .strip_suffix(".trace")
            .and_then(|stem| Some(stem.split_once('-')?.0));
        // Only a regular file is opened: opening a FIFO could block for ever.
        number.is_some_and(|number| number.split('.').all(is_number))
            && path.is_file()
            && Reader::open(path).is_ok()
    };
    let mut found: Vec<PathBuf> = listing(children_folder(output)).filter(is_ours).collect();
    found.sort();
    if file::is_there(output) {
        found.insert(0, output.to_path_buf());
    }
    found
}

/// A part of a path as text.
fn text(name: Option<&OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Turns captures into traces and prints a table of their content.
fn finish(recorded: &Recorded, place: &RecordOutput, cost: &Cost) -> Result<()> {
    let started = recorded.main();
    let folder = Draft::folder(place.folder()).with_path("cannot write into", place.folder())?;
    let mut parts = Parts {
        folder,
        made: BTreeMap::new(),
    };
    let signal = recorded.status.signal().map(signal_name);
    let killed_by = started.zip(signal.as_deref());
    let long = finishing("making traces of the recording", &recorded.captures);
    let mut each = |capture: Unfinished| into_part(capture, place, killed_by, &mut parts);
    finish::finish_all(&recorded.captures, long.done(), &mut each);
    drop(long);
    let mut failed = None;
    let mut made = Vec::new();
    for (capture, part) in parts.made {
        match part {
            Ok((trace, finished)) => made.push((capture, trace, finished)),
            Err(error) => say_earlier(failed.replace(error)),
        }
    }
    let is_running = recorded.goes_on || made.iter().any(|(.., finished)| is_running(finished));
    let mut left_out = (0, 0);
    if let Some(main) = program(started, &made) {
        let (capture, trace, finished) = made.swap_remove(main);
        let old = match place.force {
            true => earlier(&place.output),
            false => Vec::new(),
        };
        let output = place.keep(&trace)?;
        let mut written = vec![output.clone()];
        let is_started = Some(&capture) == started;
        let mut processes = vec![process(&output, &finished, recorded, cost, is_started)];
        made.retain(|(.., finished)| finished.own_events() > 0);
        if place.children {
            let folder = children_folder(&output);
            file::make_folder(&folder).with_path("cannot write", &folder)?;
            for (capture, trace, finished) in &made {
                let path = folder.join(name(recorded, capture, finished));
                file::keep(trace, &path, place.existing()).with_path("cannot write", &path)?;
                processes.push(process(&path, finished, recorded, cost, false));
                written.push(path);
            }
        } else {
            let events = made.iter().map(|(.., finished)| finished.own_events());
            left_out = (made.len(), events.sum::<u64>());
        }
        let screen = Screen {
            width: width_of(std::io::stderr()),
            colour: false,
        };
        say(terminal(
            &report::recorded(&mut processes, left_out),
            screen,
        ));
        // Removed only now: the replacement exists.
        old.iter()
            .filter(|old| !written.contains(old))
            .try_for_each(fs::remove_file)
            .context("cannot remove a trace of the earlier recording")?;
    }
    tell_unrecorded(recorded);
    if let Some(error) = failed {
        return Err(error);
    }
    if is_running {
        say!(
            "processes of the program go on: captures are kept in {}; heapmark trace finish CAPTURE when they have ended",
            from_here(recorded.folder()).display()
        );
        return Ok(());
    }
    fs::remove_dir_all(recorded.folder()).context("cannot remove the captures")
}

/// The capture of the process that is called the program: the one that was started, unless it only starts others, as a
/// script does; then the one with the most calls.
fn program(started: Option<&PathBuf>, made: &[(PathBuf, PathBuf, Finished)]) -> Option<usize> {
    let events = |place: &usize| made[*place].2.own_events();
    let most = (0..made.len()).max_by_key(events)?;
    let started = started.and_then(|path| made.iter().position(|(capture, ..)| capture == path));
    Some(
        started
            .filter(|place| events(place) >= events(&most) / ONLY_STARTS)
            .unwrap_or(most),
    )
}

/// Prints which programs of the process tree are in no trace.
fn tell_unrecorded(recorded: &Recorded) {
    for program in &recorded.unrecorded {
        say!("ran unrecorded: {program}");
    }
}

/// The traces before they get their final names, which depend on what all of them contain.
struct Parts {
    /// Where they lie: a draft for each would keep a descriptor open for each.
    folder: Draft,
    /// The result of each capture.
    made: BTreeMap<PathBuf, Result<(PathBuf, Finished)>>,
}

/// Makes the traces of a capture and of its children. Only the caller knows which signal killed one
/// of them.
fn into_part(
    mut capture: Unfinished,
    place: &RecordOutput,
    killed_by: Option<(&PathBuf, &str)>,
    parts: &mut Parts,
) {
    let path = capture.path().to_path_buf();
    capture.killed_by = killed_by
        .filter(|(killed, _)| **killed == path)
        .map(|(_, signal)| signal.to_owned());
    capture.without_argv = place.without_argv;
    // Not beside the capture, which may lie on another disk.
    let trace = parts
        .folder
        .path()
        .join(path.file_name().unwrap_or_default());
    let write = || -> Result<Finished> {
        let to = File::options()
            .write(true)
            .create_new(true)
            .mode(file::mode_of([&path]))
            .open(&trace)
            .with_path("cannot write into", place.folder())?;
        let mut to = BufWriter::new(to);
        let finished = capture.finish(&mut to, &mut |child| {
            into_part(child, place, killed_by, parts)
        });
        let finished = in_file(finished, &path)?;
        to.flush()?;
        to.get_ref().sync_all()?;
        Ok(finished)
    };
    let finished = write();
    if finished.is_err() {
        // The disk may be full: the other traces need the space.
        let _ = fs::remove_file(&trace);
    }
    let part = finished.map(|finished| (trace, finished));
    parts.made.insert(path, part);
}

/// The name by which the program was started: `redis-server`, though its file may have another
/// name.
fn called(finished: &Finished) -> String {
    let words = ["argv.0", "exe"]
        .into_iter()
        .filter_map(|key| finished.head.text(key));
    words
        .map(|word| word.rsplit('/').next().unwrap_or_default().to_owned())
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

/// The path as the user would write it.
fn from_here(file: &Path) -> PathBuf {
    let here = env::current_dir().unwrap_or_default();
    file.strip_prefix(here).unwrap_or(file).to_path_buf()
}

/// The file name of a process's trace: `PID-PROGRAM.trace`.
fn name(recorded: &Recorded, capture: &Path, finished: &Finished) -> String {
    let name = text(capture.file_stem());
    let common = format!("{}.", text(recorded.stem.file_name()));
    let number = name.strip_prefix(&common).unwrap_or(&name);
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.+".contains(*c);
    let program = called(finished);
    let program: String = program
        .chars()
        .filter(is_plain)
        .take(LONGEST_NAME)
        .collect();
    format!("{number}-{program}.trace")
}

/// Whether the process still runs: its recording has no end, and a process with its ID exists.
fn is_running(finished: &Finished) -> bool {
    let pid = finished.head.get("pid").unwrap_or_default();
    finished.head.get("end").is_none()
        && !pid.is_empty()
        && Path::new("/proc").join(pid).join("exe").exists()
}

/// Returns a line of the table. How a process ended matters only for the program that was started (`main`). If a process of the
/// tree ran unrecorded, no recording is called complete.
fn process(
    trace: &Path,
    finished: &Finished,
    recorded: &Recorded,
    cost: &Cost,
    main: bool,
) -> RecordedProcess {
    let mut remarks = warnings(finished);
    remarks.extend(elsewhere(finished));
    match finished.head.get("end") {
        Some(_) => remarks.extend(ended_early(&finished.head)),
        None if is_running(finished) => {
            remarks.push("it still runs; the trace holds what there is".into())
        }
        None if main => {
            let all = if recorded.unrecorded.is_empty() {
                "; all its events are there"
            } else {
                ""
            };
            remarks.push(format!(
                "it ended without its destructors (killed, _exit){all}"
            ));
        }
        None => {}
    }
    if main {
        remarks.extend(killed(recorded));
    }
    let events = finished.own_events();
    let threads = finished.totals.threads;
    RecordedProcess {
        program: called(finished),
        pid: finished.head.text("pid").unwrap_or_default(),
        trace: from_here(trace).display().to_string(),
        events,
        threads,
        bytes_per_event: finished.capture_bytes as f64 / events.max(1) as f64,
        ns_per_event: if threads > 1 {
            cost.threaded_ns
        } else {
            cost.alone_ns
        },
        peak_live_bytes: finished.peak_live_bytes,
        main,
        remarks,
    }
}

/// Explains a signal that the user did not send.
fn killed(recorded: &Recorded) -> Option<String> {
    let signal = recorded.status.signal()?;
    let more = match signal {
        libc::SIGKILL if recorded.oom_kill => ": the kernel sent it, for lack of memory",
        libc::SIGSYS => {
            ": it forbids calls of the system (seccomp) that recording needs (openat, pwrite64, mmap); \
             switch its sandbox off to record it"
        }
        _ => "",
    };
    Some(format!("it was killed by {}{more}", signal_name(signal)))
}

/// Returns which memory of the process cannot be in the recording, as far as the recording shows
/// that.
fn elsewhere(finished: &Finished) -> Vec<String> {
    let mut remarks = Vec::new();
    let peak_live_bytes = finished.peak_live_bytes;
    if let Some(path) = finished.head.text("before") {
        remarks.push(format!(
            "{path} serves malloc before the recorder: only what it passes on is on record"
        ));
    }
    let of = |key: &str, least| {
        let bytes = finished.head.number(key).unwrap_or(0);
        (bytes >= least && peak_live_bytes < bytes / SMALL_SHARE).then_some(bytes)
    };
    let large = of("end.peak-rss-bytes", LARGE_BYTES);
    if let Some(resident) = large.or(of("end.anonymous-bytes", LARGE_ANONYMOUS_BYTES)) {
        remarks.push(format!(
            "at most {} of its {} in memory came from malloc: the rest (mmap, files, an allocator inside it) is not on record, and no replay shows it",
            units::bytes(peak_live_bytes as f64),
            units::bytes(resident as f64),
        ));
    }
    remarks
}
