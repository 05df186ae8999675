//! `-w trace:FILE`: a workload made from a recorded program. Its threads are the program's; its
//! parameters choose how it is replayed.

use crate::build::{self, CompiledTrace};
use crate::catalog::workload::{Calibrated, REPLAY};
use crate::catalog::{Iterations, Workload, joined};
use crate::catalog::{did_you_mean, trace_pack};
use crate::cmd::in_file;
use crate::cmd::long::Long;
use crate::plan::{Case, Mode};
use crate::report::units;
use anyhow::{Context, Result, bail};
use heapmark_trace::Reader;
use heapmark_trace::compile::Order;
use heapmark_trace::packing::packed_bytes;
use heapmark_wire::compiled::{CompiledHead, POSITION_EVERY};
use std::path::{Path, PathBuf};

/// A compiled trace of this size or more is announced before it is written.
const LARGE_BYTES: u64 = 1 << 30;

/// The parameter that chooses rounds.
pub const ROUNDS: &str = "rounds";

/// The parameter that asks for a packing of the trace's blocks.
const PACKING: &str = "packing";
/// The size of that packing.
const PACKED_BYTES: &str = "packed_bytes";

/// The suffix of a case that measures later rounds.
const REUSE: &str = "-reuse";
/// The suffix of a case whose memory is measured in a run that times the same trace.
const MEMORY: &str = "-memory";

/// The values of a parameter of replays.
pub fn choices(parameter: &str) -> impl Iterator<Item = &'static str> {
    let parameter = REPLAY.parameters.get(parameter).into_iter();
    parameter.flat_map(|parameter| parameter.choices.iter().map(String::as_str))
}

/// The trace file that a word of `-w` names, if any.
pub fn file(word: &str) -> Option<&Path> {
    word.strip_prefix("trace:").map(Path::new)
}

/// A workload for each trace. Two files with one name are distinguished by their content.
pub fn workloads(words: &[&String]) -> Result<Vec<Workload>> {
    let mut traces: Vec<(PathBuf, String)> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    for word in words.iter().filter_map(|word| file(word)) {
        files.extend(unpacked(word)?);
    }
    for file in &files {
        // Faults are reported in the same way as by the commands of `heapmark trace`.
        in_file(Reader::open(file), file)?;
        let path = file
            .canonicalize()
            .with_context(|| file.display().to_string())?;
        if path.to_str().is_none_or(|text| text.contains('\n')) {
            bail!(
                "{}: its name is not text of one line: rename it",
                path.display()
            );
        }
        let sha256 = build::hash_of_file(&path)?;
        if !traces.iter().any(|(_, known)| *known == sha256) {
            traces.push((path, sha256));
        }
    }
    // A name with the suffix of later rounds could equal the later rounds of another trace.
    let base = |path: &Path| {
        let name = stem(path);
        name.strip_suffix(MEMORY)
            .unwrap_or(&name)
            .trim_end_matches(REUSE)
            .to_owned()
    };
    let all = traces.iter().map(|(path, sha256)| {
        let alike = traces.iter().filter(|(other, _)| base(other) == base(path));
        let mut name = format!("trace:{}", stem(path));
        if alike.count() > 1 {
            name += &format!("-{}", &sha256[..6]);
        }
        workload(name, path, sha256)
    });
    Ok(all.collect())
}

/// The trace files that a word names: the file with that name, or else the traces of the pack that match the word as a name or a pattern.
fn unpacked(word: &Path) -> Result<Vec<PathBuf>> {
    let file = || Ok(vec![word.to_path_buf()]);
    let Some(pattern) = word.to_str() else {
        return file();
    };
    if word.symlink_metadata().is_ok() {
        return file();
    }
    let mut files = Vec::new();
    for name in &trace_pack::matching(pattern) {
        files.extend(build::trace_of_pack(name)?);
    }
    if !files.is_empty() {
        return Ok(files);
    }
    // A missing file is reported as a fault of the trace, as by the commands of `heapmark trace`.
    if pattern.contains('/') || pattern.ends_with(".trace") {
        return file();
    }
    let names = trace_pack::names();
    let meant = did_you_mean(pattern, names.iter().map(String::as_str));
    refuse!(
        "{pattern}: no such file, and no trace that heapmark carries{meant}: see heapmark list traces"
    );
}

/// The file's name, restricted to the characters of cell and file names.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".trace").unwrap_or(&name);
    let known = |c: char| {
        if c.is_ascii_alphanumeric() || "-_+".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().take(60).map(known).collect()
}

fn workload(name: String, path: &Path, sha256: &str) -> Workload {
    let mut workload = REPLAY.clone();
    workload.name = name;
    workload.about = format!("what {} recorded", path.display());
    if let Some(parameter) = workload.parameters.get_mut("sha256") {
        parameter.choices.push(sha256.into());
    }
    let known = [
        ("trace".into(), path.display().to_string()),
        ("sha256".into(), sha256.into()),
    ];
    for preset in workload.presets.values_mut() {
        preset.parameters.extend(known.clone());
    }
    workload
}

/// Refuses parameters that a trace cannot be replayed with; chooses those that the mode of the run decides.
pub fn check(cases: &mut [Case], mode: Mode) -> Result<()> {
    let retained = mode.spec().follows_memory;
    let mut replays = cases.iter_mut().filter(|case| case.is_replay());
    replays.try_for_each(|case| check_one(case, retained))
}

/// Whether a case that is not ready yet will have later rounds.
pub fn has_later(case: &Case) -> bool {
    case.is_replay() && order(case) == Order::Dependent && word(case, ROUNDS) != "first"
}

/// Compiles the traces of cases that replay and are checked, and writes what follows from them into the cases. A case in speed mode gets a
/// second case of later rounds, which reuse a heap, unless its parameter chooses one of the two. A case that several threads replay in
/// strict order gets a second case in which a single thread makes all calls, as the reference for its blow-up. The compiled traces must be
/// kept as long as the cases. `patience_s` is the timeout of a process, in seconds.
pub fn make_ready(
    cases: Vec<Case>,
    cpus: u32,
    patience_s: f64,
) -> Result<(Vec<Case>, Vec<CompiledTrace>)> {
    let mut ready = Vec::new();
    let mut compiled_traces = Vec::new();
    for mut case in cases {
        if !case.is_replay() {
            ready.push(case);
            continue;
        }
        let compiled = compile(&mut case, cpus)?;
        lasts(&case, &compiled.head, patience_s)?;
        compiled_traces.push(compiled);
        let rounds = case.parameters.remove(ROUNDS).unwrap_or_default();
        if case.parameters.remove(PACKING).as_deref() == Some("yes") {
            let packed_bytes = pack(&case)?;
            case.parameters
                .insert(PACKED_BYTES.into(), packed_bytes.to_string());
        }
        match order(&case) {
            Order::Dependent => {
                let later = later(&case);
                ready.extend((rounds != "later").then_some(case));
                ready.extend((rounds != "first").then_some(later));
            }
            Order::Strict if case.threads > 1 => {
                let (alone, compiled) = alone(&case, cpus)?;
                compiled_traces.push(compiled);
                ready.extend([case, alone]);
            }
            _ => ready.push(case),
        }
    }
    Ok((ready, compiled_traces))
}

/// Like [`make_ready`], for cases whose memory is measured beside the times of others. A case that the run also times gets another name,
/// since processes are identified by their names; a replay always gets one.
pub fn beside(
    mut cases: Vec<Case>,
    timed: &[Case],
    cpus: u32,
    patience_s: f64,
) -> Result<(Vec<Case>, Vec<CompiledTrace>)> {
    check(&mut cases, Mode::Memory)?;
    let (mut cases, compiled_traces) = make_ready(cases, cpus, patience_s)?;
    cases.retain(|case| !case.is_played_by_one());
    for case in &mut cases {
        case.beside = true;
        let is_timed = timed.iter().any(|timed| timed.workload == case.workload);
        if is_timed || case.is_replay() {
            case.workload += MEMORY;
        }
    }
    Ok((cases, compiled_traces))
}

/// The case of the same calls, in later rounds of a process.
fn later(first: &Case) -> Case {
    Case {
        workload: format!("{}{REUSE}", first.workload),
        cold: 1,
        iterations: Iterations::Calibrated(Calibrated::Calibrated),
        caution: cautioned(first, "Later rounds, in a used heap, as a server's."),
        ..first.clone()
    }
}

/// A caution, followed by the case's own.
fn cautioned(case: &Case, text: &str) -> Option<String> {
    let caution = case.caution.as_ref();
    Some(caution.map_or(text.into(), |caution| format!("{text} {caution}")))
}

/// The case in which one thread makes all calls of `several`.
fn alone(several: &Case, cpus: u32) -> Result<(Case, CompiledTrace)> {
    let mut case = several.played_by_one();
    let compiled = compile(&mut case, cpus)?;
    let all = format!(
        "One thread makes the calls of all {}: what their blow-up is measured against.",
        several.threads
    );
    case.caution = cautioned(&case, &all);
    Ok((case, compiled))
}

fn check_one(case: &mut Case, retained: bool) -> Result<()> {
    if retained && word(case, "mode") == "speed" {
        case.parameters.insert("mode".into(), "memory".into());
    }
    let mode = word(case, "mode");
    if mode == "memory" && !retained {
        bail!(
            "{}: mode = memory times nothing: add --retained",
            case.workload
        );
    }
    if mode != "speed" && word(case, ROUNDS) != "both" {
        bail!(
            "{}: rounds: only mode = speed has later ones: leave it out",
            case.workload
        );
    }
    if word(case, PACKING) == "yes" && word(case, "mode") != "memory" {
        bail!(
            "{}: packing = yes: only mode = memory, with --retained, holds blocks in recorded order",
            case.workload
        );
    }
    let skew: u64 = word(case, "skew").parse().unwrap_or(0);
    if skew < POSITION_EVERY {
        bail!(
            "{}: skew = {skew}: {POSITION_EVERY} at least, since threads say no oftener where they are",
            case.workload
        );
    }
    let pace = word(case, "pace").parse::<f64>();
    if mode != "paced" && pace != Ok(1.0) {
        bail!(
            "{}: pace: only mode = paced plays recorded times",
            case.workload
        );
    }
    if mode == "paced" && pace.is_ok_and(|pace| pace < 0.001) {
        bail!("{}: pace: 0.001 at least", case.workload);
    }
    Ok(())
}

/// Compiles the trace of a case.
fn compile(case: &mut Case, cpus: u32) -> Result<CompiledTrace> {
    let mode = word(case, "mode").to_owned();
    let compiled = compiled(case)?;
    let head = &compiled.head;
    let reads = word(case, "reads").to_owned();
    if reads != "0" && head.threads > 1 {
        bail!(
            "{}: reads: a block that one of its {} threads frees cannot be read by another: only for programs of one thread",
            case.workload,
            head.threads
        );
    }
    if mode == "paced" && head.recorded_ns == 0 {
        bail!(
            "{}: the trace tells no times, so nothing can be paced: use another mode",
            case.workload
        );
    }
    case.parameters.insert("calls".into(), calls(head));
    case.threads = head.threads_at_a_time as u32;
    // In strict order, only one thread runs at a time.
    case.oversubscribed = case.threads > cpus && mode != "memory";
    case.caution = caution(&mode, head);
    if reads != "0" {
        let sentence =
            format!("After each call {reads} of the live blocks are read: where they lie counts.");
        case.caution = cautioned(case, &sentence);
    }
    Ok(compiled)
}

/// Refuses a paced replay that does not end before the timeout of a process: it lasts as long as the recording, at the case's pace.
fn lasts(case: &Case, head: &CompiledHead, patience_s: f64) -> Result<()> {
    if !case.is_paced() {
        return Ok(());
    }
    let pace = word(case, "pace").parse().unwrap_or(1.0);
    let seconds = head.recorded_ns as f64 / 1e9 / pace;
    let name = &case.workload;
    if seconds >= patience_s {
        bail!(
            "{name}: at pace {pace} a process lasts {}, and it may take {}: choose a greater pace, cut the trace \
             (heapmark trace cut), or give more --timeout",
            words(seconds),
            words(patience_s)
        );
    }
    say!("{name}: at pace {pace} a process lasts {}", words(seconds));
    Ok(())
}

/// A duration in words: `3.5 minutes`.
fn words(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "minutes"),
        s if s < 172_800.0 => (s / 3600.0, "hours"),
        s if s < 63_115_200.0 => (s / 86_400.0, "days"),
        s => (s / 31_557_600.0, "years"),
    };
    format!("{} {unit}", units::digits(value))
}

/// Like [`make_ready`], for a case of a resumed run: the trace must be unchanged.
pub fn take_up(case: &mut Case) -> Result<Option<CompiledTrace>> {
    if !case.is_replay() {
        return Ok(None);
    }
    let trace = Path::new(word(case, "trace"));
    if build::hash_of_file(trace).context("this run replays a trace")? != word(case, "sha256") {
        bail!(
            "{} is not the trace that this run began with: start a new run",
            trace.display()
        );
    }
    compiled(case).map(Some)
}

/// Compiles the trace of a case, and adds the result's path to the case.
fn compiled(case: &mut Case) -> Result<CompiledTrace> {
    let reporter = |bytes, folder: &Path| {
        if bytes >= LARGE_BYTES {
            say!(
                "{}: compiling it, some {} in {}",
                case.workload,
                units::bytes(bytes as f64),
                folder.display()
            );
        }
    };
    let trace = Path::new(word(case, "trace"));
    let what = format!("compiling {} for its replay", trace.display());
    let long = Long::on(trace, what);
    let sha256 = word(case, "sha256");
    let compiled = build::compiled_trace(trace, sha256, order(case), long.done(), reporter)?;
    let path = compiled.path.display().to_string();
    case.parameters.insert("compiled".into(), path);
    Ok(compiled)
}

/// The size of a packing of the trace's blocks.
fn pack(case: &Case) -> Result<u64> {
    let trace = Path::new(word(case, "trace"));
    let long = Long::on(trace, format!("packing the blocks of {}", trace.display()));
    let reader = in_file(Reader::watched(trace, long.done()), trace)?;
    in_file(packed_bytes(reader), trace)
}

/// The value of a case's parameter; empty if it has none of this name.
fn word<'c>(case: &'c Case, name: &str) -> &'c str {
    case.parameters.get(name).map_or("", String::as_str)
}

/// The functions that the trace calls besides malloc and free: an allocator that leaves one of them
/// to libc cannot run it.
fn calls(head: &CompiledHead) -> String {
    let made = [
        ("malloc", 1),
        ("calloc", head.calloc),
        ("realloc", head.realloc),
        ("posix_memalign", head.aligned),
    ];
    let made = made.into_iter().filter(|(_, count)| *count > 0);
    joined(made.map(|(name, _)| name), " ")
}

fn order(case: &Case) -> Order {
    match word(case, "mode") {
        "memory" if case.is_played_by_one() => Order::Alone,
        "memory" => Order::Strict,
        "paced" => Order::Timed,
        _ => Order::Dependent,
    }
}

/// What readers of the table must know about a replay.
fn caution(mode: &str, head: &CompiledHead) -> Option<String> {
    let count = |number: u64, what: &str| (number > 0).then(|| format!("{what}: {number}"));
    let sentences = [
        (mode == "paced")
            .then(|| "Threads sleep until the recorded times, so no time is told".to_owned()),
        count(
            head.failed,
            "Calls that failed when recorded, and are not made",
        ),
        count(
            head.tunings,
            "Calls of mallopt, which only rows of glibc make",
        ),
        count(
            head.trims,
            "Calls of malloc_trim, which only rows of glibc make",
        ),
        count(head.dropped, "Events that the recorder could not write"),
        count(
            head.strays,
            "Calls of threads that had ended, made by another thread",
        ),
    ];
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    (!sentences.is_empty()).then(|| sentences.join(". ") + ".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::fake_run::case;

    #[test]
    fn the_workload_of_replays_has_a_value_for_each_parameter() {
        for preset in REPLAY.presets.values() {
            assert!(preset.parameters.keys().eq(REPLAY.parameters.keys()));
        }
        assert_eq!(choices("mode").next(), Some("speed"));
        assert_eq!(choices("no parameter").count(), 0);
    }

    #[test]
    fn any_name_of_a_file_makes_a_name_of_a_workload() {
        let stems = ["a.trace", "a b/../c\u{1b}[1m*.x.trace", ".trace", "größe"];
        let stems = stems.map(|name| stem(Path::new(name)));
        assert_eq!(stems, ["a", "c__1m__x", "", "gr__e"]);
        assert!(stem(Path::new(&"x".repeat(300))).len() <= 60);
    }

    #[test]
    fn what_is_timed_and_measured_beside_has_two_names() {
        let cases = ["ratchet", "fan-in"].map(case).to_vec();
        let (beside, _) = beside(cases, &[case("ratchet")], 2, 60.0).unwrap();
        let labels: Vec<String> = beside.iter().map(Case::label).collect();
        assert_eq!(labels, ["ratchet-memory@2", "fan-in@2"]);
    }
}
