//! `heapmark try`: the user's command under other allocators.

use super::build::is_unbuilt;
use super::cargo_flags::CargoFlags;
use super::own_values::ValueFlags;
use super::run::comparison::Comparison;
use super::run::resolve::OWN;
use super::run::{controls, go, resolve, run_length, select, setting_row};
use super::variants::{self, VARIANT, VariantFlags};
use super::{Exit, catalog, piped_input, say, usage};
use crate::build;
use crate::build::command::{self, Linked, Recognised};
use crate::catalog::allocators::is_name;
use crate::catalog::time::{SECONDS, between};
use crate::catalog::{Allocator, Settings, Source, joined, settings};
use crate::execute::Subject;
use crate::file::WithPath;
use crate::plan::{
    Case, Client, CommandVariant, CpusSeen, Factor, HugePages, LimitKind, Mode, Ready, UserCommand,
};
use crate::report::units;
use crate::session::Selection;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Run your own command under other allocators: which one is better for it, by how much, and whether
/// that matters
#[derive(clap::Args)]
pub struct TryArgs {
    /// The command and its arguments: everything after it belongs to it; `{side}` in it, as in --prepare, stands for 0 or 1
    /// where two of it run at a time
    #[arg(trailing_var_arg = true, required_unless_present_any = ["resume", "server", "variants", "cargo"], conflicts_with = "server")]
    command: Vec<String>,
    /// What is compared, how long, and where it is stored.
    #[command(flatten)]
    pub comparison: Comparison,
    #[command(flatten)]
    builds: VariantFlags,
    #[command(flatten)]
    cargo: CargoFlags,
    #[command(flatten)]
    values: ValueFlags,
    /// A command for sh before each process; it is not timed
    #[arg(long, value_name = "CMD", help_heading = "The command")]
    prepare: Option<String>,
    /// Run each allocator N times before measuring; the results are discarded (the check is one
    /// more such run)
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(..=1000), help_heading = "The command")]
    warmup: u32,
    /// File for the command's stdin [default: what is piped or redirected into heapmark; of a
    /// terminal nothing]
    #[arg(long, value_name = "FILE", help_heading = "The command")]
    stdin: Option<PathBuf>,
    /// Compare what each allocator's check writes to stdout with what the baseline writes
    #[arg(long, conflicts_with = "server", help_heading = "Checks and controls")]
    check_output: bool,
    /// The exit code that the command is expected to end with [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=255), conflicts_with = "server", help_heading = "The command")]
    expect_exit: Option<i32>,
    /// Allow the command to execute other programs, or more of them, under other allocators, and its
    /// processes to end otherwise
    #[arg(long, help_heading = "The command")]
    tree_may_differ: bool,
    /// Add a row, as-called: the command with those variables of your environment that configure
    /// allocators; all other rows run without them
    #[arg(long, conflicts_with_all = ["variants", "variant_settings", "cargo"], help_heading = "The command")]
    keep_env: bool,
    /// Name in the tables [default: the command's own name]
    #[arg(long, help_heading = "The command")]
    name: Option<String>,
    /// Find the smallest limit on memory under which each allocator still does the work, and the
    /// slow-down near it
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["precision", "max_blocks", "budget", "age", "turns"], help_heading = "What is measured")]
    limit: Option<LimitKind>,
    /// Run each row beside itself told of N CPUs without a quota, by which arenas are sized: as on a host of a container
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(CpusSeen::MOST)), conflicts_with_all = ["age", "turns", "limit"], help_heading = "What is measured", hide_short_help = true)]
    cpus_seen: Option<u32>,
    /// Measure a server instead, while a client drives it; `{port}` stands for the port of --ready, `{variant}` for the command
    /// of a --variant
    #[arg(long, value_name = "CMD", requires_all = ["client", "ready"], conflicts_with = "turns", help_heading = "Servers")]
    server: Option<String>,
    /// Command that drives the server and is timed; no allocator is preloaded into it
    #[arg(long, value_name = "CMD", requires = "server", conflicts_with_all = ["command", "turns"], help_heading = "Servers")]
    client: Option<String>,
    /// Port on this machine, or path of a Unix socket, that answers when the server is ready; `started`, of a command that
    /// answers nowhere: the client begins at once
    #[arg(long, value_name = "PORT|PATH", requires = "server", conflicts_with_all = ["command", "turns"], value_parser = ready, help_heading = "Servers")]
    ready: Option<Ready>,
    /// Watch the memory of each row's server for this long after the client: what stays, and why
    #[arg(long, value_name = "TIME", requires = "server", conflicts_with_all = ["command", "turns"], value_parser = drain, help_heading = "Servers", hide_short_help = true)]
    drain: Option<Duration>,
}

impl TryArgs {
    /// Whether rows are builds or settings of the command.
    fn has_variants(&self) -> bool {
        self.builds.are_given() || self.cargo.is_given()
    }
}

/// The allocators that are tried beside the baseline unless others are asked for.
const USUAL: [&str; 5] = ["jemalloc", "mimalloc2", "mimalloc3", "snmalloc", "tcmalloc"];

/// The row of the command as the user runs it.
const AS_CALLED: &str = "as-called";

/// Runs `heapmark try`.
pub fn run(args: TryArgs) -> Result<Exit> {
    go(&args.comparison, || selection(&args))
}

/// Returns the selection that the flags ask for.
pub fn selection(args: &TryArgs) -> Result<Selection> {
    let flags = &args.comparison;
    let catalog = catalog()?;
    let folder = std::env::current_dir().context("cannot tell where this is")?;
    flags_behind(&args.command).iter().for_each(say);
    let mut command = command(args, &folder).map_err(usage)?;
    command.settings = Settings::of(&catalog.allocators);
    command.taken_out = command.settings.split(std::env::vars_os()).1;
    let recognised = command::recognise_command(&command.command, &folder);
    // Without -a a variant runs as it is built.
    let as_built = args.has_variants() && flags.allocators.is_empty();
    if let Some(why) = recognised.unreachable.as_ref().filter(|_| !as_built) {
        let program = recognised.program().display();
        refuse!(
            "{program}: {why}. No allocator can be tried on it; builds of it can be compared: heapmark try --variant NAME={program} \
             --variant OTHER=FILE -- ARGS"
        );
    }
    for file in &recognised.chain {
        command.sha256.push(build::hash_of_file(file)?);
    }
    if let Some(client) = &mut command.client {
        let chain = command::recognise_command(&client.command, &folder).chain;
        let hashes = chain.iter().map(|file| build::hash_of_file(file));
        // A client need not be readable to be started.
        client.sha256 = hashes.collect::<Result<Vec<_>>>().unwrap_or_default();
    }
    let libraries = command::linked(recognised.program());
    let mut cautions = common_cautions(&command.taken_out, args.has_variants());
    if !as_built {
        cautions.splice(..0, self::cautions(&recognised, &libraries));
    }
    cautions.iter().for_each(say);

    if args.stdin.is_none() && !flags.dry_run {
        command.piped = piped_input::read()?;
    }
    // Anything but a regular file may have no end, or be empty once it was read.
    let is_hashed = |file: &&PathBuf| file.is_file() && !flags.dry_run;
    if let Some(file) = command.stdin.as_ref().filter(is_hashed) {
        command.stdin_sha256 = Some(build::hash_of_file(file)?);
    }
    let name = match &args.name {
        Some(name) if !is_name(name) => {
            refuse!("--name {name:?}: use a-z, 0-9, `_` and `-` only");
        }
        Some(name) => name.clone(),
        None => name_of(&command::name_of(&command.command).to_string_lossy()),
    };
    let caution = (!cautions.is_empty()).then(|| cautions.join(" "));
    let as_called = args.keep_env.then(|| as_called(&command));
    let variants = command.variants.clone();
    let cases = vec![command.case(&name, caution)];
    let mode = args.limit.map(Mode::Limit).unwrap_or_default();
    select::refuse_factor(&cases, flags, mode)?;
    refuse_cpus_seen(args)?;

    if as_built {
        if flags.baseline.is_some() {
            refuse!("--baseline: the first variant is the baseline");
        }
        if flags.replace {
            refuse!("--replace: only for names of -a");
        }
        let subjects: Vec<Subject> = variants.iter().map(variants::as_built).collect();
        let baseline = subjects[0].allocator.name.clone();
        return selected(args, mode, cases, subjects, baseline);
    }

    let suite = catalog.suite("quick").map_err(usage)?;
    let baseline = flags.baseline.as_ref().unwrap_or(&suite.baseline);
    let linked = libraries.serves.as_ref();
    let mut words = flags.allocators.clone();
    let (tiers, linked_allocator) = if words.is_empty() {
        let linked_allocator = linked.map(|library| resolve::own(library)).transpose();
        let linked_allocator = linked_allocator.unwrap_or_else(|why| {
            say!("without the row {OWN}: {why:#}");
            None
        });
        (suite.tiers.as_slice(), linked_allocator)
    } else {
        let program = recognised.program().display();
        let none = || format!("{program} is linked to no allocator of its own");
        let linked = linked.map(String::as_str).ok_or_else(none);
        (&[][..], resolve::take_own(&mut words, linked, catalog)?)
    };
    let (baseline, chosen) =
        resolve::choose(&words, tiers, baseline, flags.replace, catalog).map_err(usage)?;
    // Without -a the user wants an answer now, not a build of all allocators.
    let is_usual = |one: &Allocator| one.name == baseline || USUAL.contains(&one.name.as_str());
    let (mut chosen, later): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .filter(|(one, named)| *named || is_usual(one))
        .partition(|(one, named)| *named || one.name == baseline || !is_unbuilt(one, catalog));
    if !later.is_empty() {
        let later: Vec<Allocator> = later.into_iter().map(|(one, _)| one).collect();
        let names = joined(later.iter().map(|one| &one.name), " ");
        say!("not built yet and left out: {names}; heapmark build {names}");
        let there: Vec<&Allocator> = chosen.iter().map(|(one, _)| one).collect();
        let stand_ins = resolve::stand_ins(&later, &there, catalog);
        chosen.extend(stand_ins.into_iter().map(|one| (one, false)));
    }
    chosen.extend(linked_allocator.map(|allocator| (allocator, true)));
    if as_called.is_some() && chosen.iter().any(|(one, _)| one.name == AS_CALLED) {
        refuse!("-a {AS_CALLED}: that is the row of --keep-env: give it another name");
    }
    resolve::must_take_programs(&chosen)?;
    let mut subjects = resolve::resolve(chosen, catalog, flags.dry_run)?;
    if linked.is_some() {
        resolve::put_libc_first(&mut subjects)?;
    }
    subjects.extend(as_called);
    resolve::must_be_ready(&baseline, &subjects)?;
    let subjects = setting_row::in_place(subjects, &flags.settings, &baseline)?;
    let (baseline, subjects) = variants::crossed(&variants, baseline, subjects)?;
    selected(args, mode, cases, subjects, baseline)
}

/// The plan of these rows, with its control.
fn selected(
    args: &TryArgs,
    mode: Mode,
    cases: Vec<Case>,
    mut subjects: Vec<Subject>,
    baseline: String,
) -> Result<Selection> {
    let flags = &args.comparison;
    let aa_copy = controls::aa_copy(flags, mode, &cases, &subjects, &baseline)?;
    let cases = match args.cpus_seen {
        Some(count) => select::beside(cases, Factor::CpusSeen(count), |_| true),
        None => select::with_factor(cases, flags),
    };
    let length = run_length::of_try(flags, mode);
    let plan = select::plan(
        flags,
        mode,
        length,
        baseline,
        cases,
        &subjects,
        aa_copy.as_ref(),
    );
    select::refuse_turns(flags, &plan)?;
    subjects.extend(aa_copy);
    Ok(Selection {
        timeout_s: flags.timeout.map(|time| time.as_secs_f64()),
        ..Selection::of_parts("try", plan, subjects)
    })
}

/// Returns a remark on heapmark's own flags behind the command, unless a `--` before the command shows that they belong to the command.
fn flags_behind(command: &[String]) -> Option<String> {
    if std::env::args_os().any(|word| word == "--") {
        return None;
    }
    let parser = TryArgs::augment_args(clap::Command::new("try"));
    let is_own = |word: &&String| {
        let name = word
            .strip_prefix("--")
            .map(|name| name.split('=').next().unwrap_or(name));
        name.is_some_and(|name| {
            parser
                .get_arguments()
                .any(|arg| arg.get_long() == Some(name))
        })
    };
    let flags: Vec<&String> = command.iter().skip(1).filter(is_own).collect();
    (!flags.is_empty()).then(|| {
        format!(
            "what stands behind the command belongs to it, also {}: flags of heapmark go before it",
            joined(flags, ", ")
        )
    })
}

/// Fails if a file of `--stdin` cannot be read, or only once, though each process reads all of it.
pub fn must_be_read_again(file: &Path) -> Result<()> {
    let kind = file.metadata().with_path("--stdin", file)?.file_type();
    if kind.is_fifo() || kind.is_socket() {
        bail!(
            "--stdin {}: it can be read once, and each process reads it: name a regular file, or pipe it into heapmark",
            file.display()
        );
    }
    std::fs::File::open(file)
        .with_path("--stdin", file)
        .map(drop)
}

/// The words of the command line as a command that can be started.
fn command(args: &TryArgs, folder: &Path) -> Result<UserCommand> {
    let ready = args.ready.clone().unwrap_or_default().below(folder);
    let split = |flag: &str, line: &str| -> Result<Vec<String>> {
        let line = match &ready {
            Ready::Port(port) => line.replace("{port}", &port.to_string()),
            Ready::Socket(_) | Ready::Started if line.contains("{port}") => {
                bail!("{flag} {line:?}: {{port}} needs a port, as in --ready 7391")
            }
            Ready::Socket(_) | Ready::Started => line.to_owned(),
        };
        let words = shlex::split(&line).filter(|words| !words.is_empty());
        words.with_context(|| format!("{flag} {line:?}: no command, or a quote that does not end"))
    };
    let start = |words: Vec<String>| -> Result<Vec<String>> {
        let words = words.into_iter().map(OsString::from).collect();
        let words = command::as_a_shell_starts(words, folder)?;
        let text = |word: OsString| {
            let text = word.into_string();
            text.map_err(|word| anyhow!("{} is no UTF-8", word.display()))
        };
        words.into_iter().map(text).collect()
    };
    // Of a build, its own words stand before the arguments, or in their place in a server's line.
    let of = |build: Option<&str>| {
        start(match (&args.server, build) {
            (Some(line), None) => split("--server", line)?,
            (Some(line), Some(build)) if line.contains(VARIANT) => {
                split("--server", &line.replace(VARIANT, build))?
            }
            (Some(line), Some(_)) => bail!(
                "--server {line:?}: {VARIANT} must stand in it, for the command of each --variant"
            ),
            (None, None) => args.command.clone(),
            (None, Some(build)) => [split("--variant", build)?, args.command.clone()].concat(),
        })
    };
    let built = args.cargo.builds(folder)?;
    let variants = args.builds.variants(&built, &of, folder)?;
    let command = match variants.first() {
        Some(first) => first.command.clone(),
        None => of(None)?,
    };
    let sets_path = |variant: &CommandVariant| variant.environment.contains_key("PATH");
    if let Some(name) = args.command.first().filter(|name| !name.contains('/'))
        && args.builds.are_settings()
        && variants.iter().any(sets_path)
    {
        bail!(
            "--variant-env PATH: heapmark finds {name} by its own PATH: type its path, or --variant for each"
        );
    }
    let client = args
        .client
        .as_ref()
        .map(|line| start(split("--client", line)?))
        .transpose()?;
    let stdin = args.stdin.as_ref().map(|file| folder.join(file));
    if let Some(file) = &stdin {
        must_be_read_again(file)?;
    }
    Ok(UserCommand {
        command,
        variants,
        values: args.values.values(args.server.is_some())?,
        folder: folder.to_path_buf(),
        stdin,
        prepare: args.prepare.clone(),
        warmup: args.warmup,
        check_output: args.check_output,
        expect_exit: args.expect_exit,
        tree_may_differ: args.tree_may_differ,
        client: client.map(|command| Client {
            command,
            ready,
            drain_ns: args.drain.map(|drain| drain.as_nanos() as u64),
            ..Client::default()
        }),
        ..UserCommand::default()
    })
}

/// Refuses a second factor.
fn refuse_cpus_seen(args: &TryArgs) -> Result<()> {
    let rule = args.comparison.thp.unwrap_or(HugePages::Never);
    if args.cpus_seen.is_some() && rule != HugePages::Never {
        refuse!(
            "--cpus-seen and --thp {}: each compares an allocator with itself, so one at a time",
            rule.word()
        );
    }
    Ok(())
}

fn drain(text: &str) -> Result<Duration, String> {
    let (least, most) = (Duration::from_secs(1), Duration::from_secs(3600));
    between(text, SECONDS, least, most)
}

/// Parses `6379`, `started`, or a path, which has a slash.
fn ready(text: &str) -> Result<Ready, String> {
    match text.parse() {
        Ok(port @ 1..) => Ok(Ready::Port(port)),
        _ if text.contains('/') => Ok(Ready::Socket(text.into())),
        _ if text == "started" => Ok(Ready::Started),
        _ => Err(
            "expected a port from 1 to 65535, `started`, or the path of a Unix socket (./socket)"
                .into(),
        ),
    }
}

/// Returns what users should know about the command before they read a number.
fn cautions(recognised: &Recognised, libraries: &Linked) -> Vec<String> {
    let program = recognised.program().display();
    let mut cautions = Vec::new();
    if let Some(shim) = &recognised.shim {
        let named = recognised.chain[0].display();
        cautions.push(format!(
            "{named} is {}. What it starts for that is in every number here.",
            shim.advice()
        ));
    }
    if let Some(library) = &libraries.serves {
        cautions.push(format!(
            "{program} is linked to {library}. An allocator that is preloaded comes before it and serves instead; for the row \
             glibc the C library itself is preloaded. The program as it is: row {OWN}, which `-a {OWN},...` chooses."
        ));
    }
    for library in &libraries.behind {
        cautions.push(format!(
            "{program} loads {library}, which defines malloc but serves nothing: another library that does comes before it."
        ));
    }
    for allocator in &recognised.inside {
        cautions.push(format!(
            "{program} has {allocator} inside: what it allocates there is out of reach of any preloaded allocator, and the \
             same in every row."
        ));
    }
    cautions
}

/// Returns what users should know about the command's surroundings.
fn common_cautions(taken_out: &BTreeMap<String, String>, has_variants: bool) -> Vec<String> {
    let mut cautions = Vec::new();
    if let Some(bytes) = getrlimit(Resource::As).current {
        cautions.push(format!(
            "ulimit -v is in force: {} of address space for each process, which some allocators reserve at once.",
            units::bytes(bytes as f64)
        ));
    }
    if !taken_out.is_empty() {
        let instead = match has_variants {
            true => "--variant-env sets them in a row".to_owned(),
            false => format!("--keep-env adds a row with them, {AS_CALLED}"),
        };
        cautions.push(format!(
            "Left out of your environment, since they configure allocators: {}. {instead}.",
            settings::named(taken_out).join(", ")
        ));
    }
    cautions
}

/// The command with all of the user's environment, whichever allocator that selects.
fn as_called(command: &UserCommand) -> Subject {
    let allocator = Allocator {
        name: AS_CALLED.into(),
        family: AS_CALLED.into(),
        about: "the command as its user calls it".into(),
        source: Source::AsCalled,
        environment: command.taken_out.clone(),
        ..Subject::libc().allocator
    };
    let library = build::Library {
        origin: "as called".into(),
        ..Default::default()
    };
    Subject::new(allocator, library)
}

/// The file's name, restricted to the characters of workload names.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let valid = |c: char| {
        if is_name(c.encode_utf8(&mut [0; 4])) {
            c
        } else {
            '-'
        }
    };
    let name: String = file.chars().map(valid).collect();
    match name.trim_matches('-') {
        "" => "command".into(),
        name => name.into(),
    }
}
