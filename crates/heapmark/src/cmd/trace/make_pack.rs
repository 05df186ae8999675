//! `heapmark trace make-pack`: records the real programs of the pack that are installed here.

use super::pack_table::{PackRow, pack_table};
use super::{Exit, in_file};
use crate::build::command::find;
use crate::build::input::{environment, generate, succeeded};
use crate::build::package_version;
use crate::catalog::folder::listing;
use crate::catalog::joined;
use crate::catalog::real_program::{self, RealProgram};
use crate::cmd::output::{Force, Output};
use crate::cmd::record::children_folder;
use crate::cmd::run::real_programs::installed;
use crate::cmd::{print, usage};
use crate::file::{self, Draft, WithPath};
use anyhow::{Context, Result, anyhow, bail};
use heapmark_trace::packing::packed_bytes;
use heapmark_trace::{Fault, Head, Reader, Stretch, Totals, cut, events_of};
use rustix::process::{
    Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};
use std::env;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The most events of a trace of the pack.
const MOST_EVENTS: u64 = 3_000_000;
/// The most bytes of all its traces together.
const MOST_BYTES: u64 = 8_000_000;
/// How long a server may take before it takes connections.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a trace of the pack tells about its recording. Everything else could name the user's
/// machine.
const KEPT: [&str; 7] = [
    "begin",
    "clock",
    "end",
    "end.peak-rss-bytes",
    "end.thp-disabled",
    "page-bytes",
    "thp",
];
const TABLE: &str = "README.md";
/// The name of a recording, while the pack is made.
const MAIN: &str = "main.trace";

/// Record the real programs of the pack that are installed here, and write their table
#[derive(clap::Args)]
pub struct MakePackArgs {
    /// Programs [default: all of the pack]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Folder for the traces
    #[arg(short, long, value_name = "DIR", default_value = "traces")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// A recording, and what is kept of it.
struct Packed<'p> {
    program: &'p RealProgram,
    /// As recorded.
    recorded: PathBuf,
    head: Head,
    /// What is kept.
    trace: PathBuf,
    totals: Totals,
}

/// Runs the command.
pub fn run(args: MakePackArgs) -> Result<Exit> {
    let programs = real_program::load()?;
    let chosen = chosen(&programs, &args.names).map_err(usage)?;
    let installed = installed(&chosen);
    if installed.is_empty() {
        bail!("no program is installed, so no trace was made");
    }
    let folder = args.output.as_path();
    if file::is_there(folder) && !folder.is_dir() {
        refuse!("-o {}: that is no folder", folder.display());
    }
    // All are checked first, so that one that cannot be written is found before anything runs.
    let output = |name: &str| Output::new(&folder.join(name), args.force, [] as [&Path; 0]);
    let table = output(TABLE)?;
    let traces: Vec<Output> = installed
        .iter()
        .map(|program| output(&file_of(program)))
        .collect::<Result<_>>()?;
    file::make_folder(folder).with_path("cannot make", folder)?;
    let temporary = env::temp_dir();
    let scratch = Draft::folder(&temporary).with_path("cannot write in", &temporary)?;
    let mut packed = Vec::new();
    for program in &installed {
        say!("{}: recording", program.name);
        match record(program, scratch.path()) {
            Ok(recording) => packed.push(recording),
            Err(error) => say!("{}: not made: {error:#}", program.name),
        }
    }
    let others_bytes: u64 = programs
        .iter()
        .map(file_of)
        .filter(|file| packed.iter().all(|it| file_of(it.program) != *file))
        .map(|name| file::length(folder.join(name)))
        .sum();
    shorten(&mut packed, MOST_BYTES.saturating_sub(others_bytes))?;
    for (program, output) in installed.iter().zip(&traces) {
        let Some(made) = packed.iter().find(|made| made.program.name == program.name) else {
            continue;
        };
        output.write(|to| {
            let mut from = File::open(&made.trace).with_path("cannot read", &made.trace)?;
            Ok(std::io::copy(&mut from, to)?)
        })?;
        print(format!(
            "{}: {} events, {} bytes\n",
            output.path().display(),
            made.totals.events,
            made.totals.file_bytes
        ))?;
    }
    if packed.is_empty() {
        bail!("no program could be recorded, so no trace was made");
    }
    table.put(table_of(&programs, folder)?)?;
    Ok(Exit::Failed.when(packed.len() < installed.len()))
}

/// The name of a program's trace in the pack.
fn file_of(program: &RealProgram) -> String {
    format!("{}.trace", program.name)
}

/// The programs that were named, or all of the pack.
fn chosen<'p>(programs: &'p [RealProgram], names: &[String]) -> Result<Vec<&'p RealProgram>> {
    if names.is_empty() {
        let of_pack = programs.iter().filter(|it| it.pack_size.is_some());
        return Ok(of_pack.collect());
    }
    let mut chosen: Vec<&RealProgram> = Vec::new();
    for name in names {
        let program = real_program::named(programs, name)?;
        if program.pack_size.is_none() {
            bail!("{name} is not in the pack: what the pack shows is checked with it");
        }
        if !chosen.iter().any(|known| known.name == *name) {
            chosen.push(program);
        }
    }
    Ok(chosen)
}

/// Generates the input of a program, and records it.
fn record<'p>(program: &'p RealProgram, scratch: &Path) -> Result<Packed<'p>> {
    let folder = scratch.join(&program.name);
    let input = folder.join("input");
    let traces = folder.join("traces");
    for new in [&folder, &input, &traces] {
        fs::create_dir(new).with_path("cannot make", new)?;
    }
    generate(program, program.pack_size.unwrap_or(program.quick), &input)?;
    let said = folder.join("recorder.txt");
    let status = recorded(program, &input, &traces.join(MAIN), &said)?;
    succeeded("recording it", status, &fs::read(said).unwrap_or_default())?;
    let recorded = largest(&traces)?;
    let reader = in_file(Reader::open(&recorded), &recorded)?;
    let head = head(reader.head(), program, scratch);
    let trace = folder.join("kept.trace");
    let totals = copy(&recorded, &trace, &head, MOST_EVENTS)?;
    // Inputs of all programs need not be there at a time.
    fs::remove_dir_all(&input).with_path("cannot remove", &input)?;
    Ok(Packed {
        program,
        recorded,
        head,
        trace,
        totals,
    })
}

/// A command of a program in the folder with its input. Its environment does not depend on the
/// user's.
fn command(
    program: &RealProgram,
    words: &[String],
    input: &Path,
    port: Option<u16>,
) -> Result<Command> {
    let port = port.map_or(String::new(), |port| port.to_string());
    let mut words = words.iter().map(|word| word.replace("{port}", &port));
    let mut command = Command::new(words.next().context("no command")?);
    command
        .args(words)
        .env_clear()
        .envs(environment(program, input))
        .current_dir(input)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // It ends with heapmark; a recording passes the signal on to its program.
    // SAFETY: one system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
    }
    Ok(command)
}

/// Runs `heapmark record` with the program; a server ends when its client has.
fn recorded(program: &RealProgram, input: &Path, trace: &Path, said: &Path) -> Result<ExitStatus> {
    let own = env::current_exe().context("cannot tell where heapmark itself is")?;
    let own = own.to_str();
    let trace = trace.to_str();
    let (own, trace) = own.zip(trace).context("a path is not UTF-8")?;
    let record = [own, "record", "--children", "-o", trace];
    let mut words: Vec<String> = record.map(String::from).into();
    words.extend(program.run.iter().cloned());
    if program.client.is_empty() {
        let mut recording = command(program, &words, input, None)?;
        return Ok(recording.stderr(File::create(said)?).status()?);
    }
    // Free now, and hardly taken until the server listens.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let mut server = command(program, &words, input, Some(port))?
        .stderr(File::create(said)?)
        .spawn()?;
    let handle = pidfd_open(Pid::from_child(&server), PidfdFlags::empty())
        .context("cannot watch the server")?;
    let driven = drive(&mut server, program, input, port);
    if server.try_wait()?.is_none() {
        // heapmark passes this on to the server.
        pidfd_send_signal(&handle, Signal::TERM).context("cannot end the server")?;
    }
    let status = server.wait()?;
    driven.map(|()| status)
}

/// Waits until the server takes connections, and runs its client.
fn drive(server: &mut Child, program: &RealProgram, input: &Path, port: u16) -> Result<()> {
    let began = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if server.try_wait()?.is_some() || began.elapsed() > PATIENCE {
            bail!("the server takes no connections");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = command(program, &program.client, input, Some(port))?.status()?;
    if !status.success() {
        bail!("its client failed ({status})");
    }
    Ok(())
}

/// The trace of the process with the most events.
fn largest(folder: &Path) -> Result<PathBuf> {
    let mut most: Option<(u64, PathBuf)> = None;
    let children = children_folder(&folder.join(MAIN));
    for path in listing(folder).chain(listing(children)) {
        if path.extension().is_some_and(|it| it == "trace") {
            let events = in_file(events_of(&path), &path)?;
            most = most.max(Some((events, path)));
        }
    }
    let (_, path) = most.ok_or_else(|| anyhow!("nothing was recorded"))?;
    Ok(path)
}

/// The metadata of a trace of the pack.
fn head(recorded: &Head, program: &RealProgram, scratch: &Path) -> Head {
    let mut head = Head::default();
    head.set("real-program", &program.name);
    let package = program.packages.first().map_or("", String::as_str);
    head.set(
        "package",
        format!("{package} {}", version(program, package)),
    );
    for place in 0.. {
        let key = format!("argv.{place}");
        let Some(word) = recorded.text(&key) else {
            break;
        };
        head.set(&key, nameless(&word, scratch));
    }
    for key in KEPT {
        if let Some(value) = recorded.get(key) {
            head.set_escaped(key, value);
        }
    }
    head
}

/// The version of the package, if the program is the package's: another one may come first in
/// `PATH`.
fn version(program: &RealProgram, package: &str) -> String {
    let file = program.run.first().map(|word| find(word, Path::new("/")));
    let is_of_system = |path: &PathBuf| {
        let folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
        folders
            .iter()
            .any(|folder| path.parent() == Some(Path::new(folder)))
    };
    let version = match file {
        Some(Ok(path)) if is_of_system(&path) => package_version(package),
        _ => String::new(),
    };
    if version.is_empty() {
        "of unknown version".into()
    } else {
        version
    }
}

/// A word of the command line without paths of this machine.
fn nameless(word: &str, scratch: &Path) -> String {
    let scratch = scratch.display().to_string();
    let is_of_user = word.starts_with('/') && !word.starts_with("/usr/");
    if is_of_user || word.contains(&scratch) {
        word.rsplit('/').next().unwrap_or_default().to_owned()
    } else {
        word.to_owned()
    }
}

/// Writes the first events of a trace, with other metadata.
fn copy(from: &Path, to: &Path, head: &Head, most_events: u64) -> Result<Totals> {
    let stretch = Stretch::Events(0..most_events);
    let copied = || -> Result<Totals, Fault> {
        let head = if events_of(from)? > most_events {
            stretch.noted(head)
        } else {
            head.clone()
        };
        let mut to = BufWriter::new(File::create(to)?);
        let copied = cut(Reader::open(from)?, &mut to, &stretch, &head)?;
        to.flush()?;
        copied.damage.map_or(Ok(copied.totals), Err)
    };
    in_file(copied(), from)
}

/// Cuts the largest traces until all together have at most so many bytes.
fn shorten(packed: &mut [Packed], most_bytes: u64) -> Result<()> {
    let sizes = packed.iter().map(|it| it.totals.file_bytes).collect();
    let share = share(sizes, most_bytes);
    for it in packed {
        while it.totals.file_bytes > share {
            let events = it.totals.events;
            let bytes = it.totals.file_bytes;
            // A little less than in proportion: the first events may take more bytes than the rest.
            let fewer = (events as f64 * share as f64 / bytes as f64 * 0.99) as u64;
            if fewer == 0 {
                bail!(
                    "{}: its first event has no room in the pack",
                    it.program.name
                );
            }
            it.totals = copy(&it.recorded, &it.trace, &it.head, fewer)?;
        }
    }
    Ok(())
}

/// The most bytes of one trace: what the small ones leave is shared by the others.
fn share(mut sizes: Vec<u64>, most_bytes: u64) -> u64 {
    sizes.sort_unstable();
    let mut left = most_bytes;
    for (at, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - at) as u64;
        if *size > share {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

/// The table of all traces of the catalogue in the folder.
fn table_of(programs: &[RealProgram], folder: &Path) -> Result<String> {
    let mut rows = Vec::new();
    for program in programs {
        let path = folder.join(file_of(program));
        if !path.is_file() {
            continue;
        }
        let reader = in_file(Reader::open(&path), &path)?;
        let package = reader.head().text("package").unwrap_or_default();
        let (stats, fault) = heapmark_trace::stats::stats(reader);
        in_file(fault.map_or(Ok(()), Err), &path)?;
        let packed_bytes = in_file(Reader::open(&path).and_then(packed_bytes), &path)?;
        rows.push(PackRow {
            name: &program.name,
            about: &program.about,
            package,
            command: shown(&program.run),
            stats,
            packed_bytes,
            file_bytes: file::length(&path),
        });
    }
    Ok(pack_table(&rows))
}

/// A command line as a shell reads it.
fn shown(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,{}".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    joined(words.iter().map(quoted), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_traces_leave_their_bytes_to_large_ones() {
        assert_eq!(share(vec![1, 2, 3], 6), u64::MAX);
        assert_eq!(share(vec![10, 2, 10], 12), 5);
        assert_eq!(share(vec![10, 10], 12), 6);
        assert_eq!(share(vec![], 12), u64::MAX);
    }

    #[test]
    fn words_name_no_folder_of_the_machine() {
        let scratch = Path::new("/tmp/.heapmark-1");
        let words = [
            ("/tmp/.heapmark-1/x/input/a.c", "a.c"),
            ("-o/tmp/.heapmark-1/x/b", "b"),
            ("/home/me/bin/perl", "perl"),
            ("/usr/lib/gcc/cc1plus", "/usr/lib/gcc/cc1plus"),
            ("work.pl", "work.pl"),
        ];
        for (word, kept) in words {
            assert_eq!(nameless(word, scratch), kept);
        }
    }
}
