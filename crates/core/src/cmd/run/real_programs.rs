//! `-w program:NAME`: real programs of the catalogue as workloads, each with its generated input. Programs that are not installed are
//! named, with the command that installs them.

use super::RunArgs;
use crate::build::command::{Recognised, find, linked, recognise};
use crate::build::input::{Input, environment, missing};
use crate::catalog::real_program::{self, matching, named};
use crate::catalog::{Catalog, RealProgram, Settings, did_you_mean};
use crate::cmd::long::Long;
use crate::cmd::usage;
use crate::file::{Draft, WithPath};
use crate::plan::{Case, Client, Mode, Override, Ready, RealCommand, Target, UserCommand};
use anyhow::{Context, Result, anyhow, bail};
use fast_glob::glob_match;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// The parameter of a real program.
const SIZE: &str = "size";

/// The ports that servers listen on, outside the range from which the kernel assigns ports to clients.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// The programs that words of `-w` name, each once; empty if they name workloads. A bare name or
/// pattern means programs if no workload has it.
pub fn chosen<'p>(
    words: &[String],
    programs: &'p [RealProgram],
    catalog: &Catalog,
) -> Result<Vec<&'p RealProgram>> {
    let mut chosen: Vec<&RealProgram> = Vec::new();
    let mut others = Vec::new();
    for word in words {
        let named_so = word.strip_prefix("program:");
        let mut found = matching(programs, named_so.unwrap_or(word));
        // A workload's own name means the workload.
        if named_so.is_none() && !found.is_empty() && catalog.workloads(word).is_ok() {
            found.clear();
        }
        match (found.as_slice(), named_so) {
            ([], None) => others.push(word),
            ([], Some(bare)) => _ = named(programs, bare)?,
            ([one], _) if word.ends_with(&one.name) && !missing(one).is_empty() => {
                let (name, line) = (&one.name, apt_line([*one]));
                bail!("{name} is not installed: {line}");
            }
            _ => {}
        }
        for program in found {
            if !chosen.iter().any(|known| known.name == program.name) {
                chosen.push(program);
            }
        }
    }
    if let (Some(other), false) = (others.first(), chosen.is_empty()) {
        bail!("{other} is no real program: whole programs and other workloads are measured apart");
    }
    Ok(chosen)
}

/// Returns the chosen programs that can run here. Prints the others, and the packages that they need, in a line.
pub fn installed<'p>(chosen: &[&'p RealProgram]) -> Vec<&'p RealProgram> {
    let (installed, absent): (Vec<&RealProgram>, Vec<&RealProgram>) = chosen
        .iter()
        .partition(|program| missing(program).is_empty());
    if !absent.is_empty() {
        let names: Vec<&str> = absent.iter().map(|program| program.name.as_str()).collect();
        say!("not installed: {}; {}", names.join(", "), apt_line(absent));
    }
    installed
}

/// The command that installs programs.
pub fn apt_line<'p>(programs: impl IntoIterator<Item = &'p RealProgram>) -> String {
    let packages = programs.into_iter().flat_map(|program| &program.packages);
    let packages: BTreeSet<&str> = packages.map(String::as_str).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    format!("apt-get install {}", packages.join(" "))
}

/// The mode in which real programs are measured; refuses flags that mean nothing for them.
pub fn mode(command: &RunArgs) -> Result<Mode> {
    let args = &command.args;
    let mode = args.instead.mode().unwrap_or_default();
    let refusals = [
        (
            mode.spec().watches_calls,
            "--latency, --counter and --retained are for built-in workloads: a program's calls cannot be watched one by one",
        ),
        (
            !command.threads.is_empty(),
            "--threads: real programs have the threads that they have",
        ),
        (
            args.series.is_some(),
            "--series: memory over time is followed in built-in workloads only, and these are programs",
        ),
        (
            args.target_ms.is_some(),
            "--target-ms: the work of real programs is fixed; --set NAME.size=N changes it",
        ),
        (
            args.no_floor,
            "--no-floor: real programs have no floor that could be left out",
        ),
        (
            args.allow_forwarding,
            "--allow-forwarding: of a program it is proven only which library it calls",
        ),
    ];
    match refusals.into_iter().find(|(is_idle, _)| *is_idle) {
        Some((_, why)) => refuse!("{why}"),
        None => Ok(mode),
    }
}

/// The cases of a run, and the folder in which its programs work; the folder is removed when this value is dropped.
pub struct RealCases {
    pub cases: Vec<Case>,
    pub scratch: Draft,
    /// For each program, the library of the allocator that it is linked to.
    pub linked: Vec<Option<String>>,
}

/// A case for each program. Generates the inputs that are not in the cache, unless this is only a
/// plan.
pub fn cases(
    programs: &[&RealProgram],
    preset: &str,
    set: &[Override],
    catalog: &Catalog,
    cpus: u32,
    dry_run: bool,
) -> Result<RealCases> {
    let set = sizes(programs, set).map_err(usage)?;
    let mut all = RealCases {
        cases: Vec::new(),
        scratch: scratch()?,
        linked: Vec::new(),
    };
    let mut ports = Ports::default();
    let settings = Settings::of(&catalog.allocators);
    for program in programs {
        let asked = set.iter().rfind(|(name, _)| *name == program.name);
        let asked = asked.map(|(_, size)| *size);
        let size = asked.or_else(|| program.size(preset));
        let size = size.with_context(|| {
            format!("real programs have no preset `{preset}`: they have quick and paper")
        });
        let size = size.map_err(usage)?;
        let input = Input::new(program, size)?;
        if !dry_run && !input.folder().is_dir() {
            let _long = Long::new(format!("generating the input of {}", program.name), 0);
            input.make()?;
        }
        let folder = all.scratch.path().join(&program.name);
        let mut command = command(program, &input, &folder, &mut ports)?;
        command.settings = settings.clone();
        let recognised = recognise(Path::new(&command.command[0]));
        let library = linked(recognised.program()).serves;
        let caution = caution(&recognised, library.as_deref());
        all.linked.push(library);
        let mut case = command.case(&program.name, caution);
        case.threads = program.threads;
        case.oversubscribed = program.threads > cpus;
        case.parameters.insert(SIZE.into(), size.to_string());
        all.cases.push(case);
    }
    Ok(all)
}

/// Like [`cases`], for the cases of a resumed run: programs and inputs must be unchanged. The programs get a new folder to work in, and new
/// ports; `None` if there are no real programs.
pub fn take_up(cases: &mut [Case]) -> Result<Option<Draft>> {
    if !cases.iter().any(Case::is_real_program) {
        return Ok(None);
    }
    let programs = real_program::load()?;
    let (scratch, mut ports) = (scratch()?, Ports::default());
    let mut last: Option<UserCommand> = None;
    for case in cases {
        // A case with a factor follows the case without the factor, and runs the same command.
        if let (Some(_), Some(plain)) = (case.factor, &last) {
            case.target = Target::Command(Box::new(plain.clone()));
            continue;
        }
        let Some(stored) = case.command() else {
            continue;
        };
        let program = programs
            .iter()
            .find(|program| program.name == case.workload);
        let size = case.parameters.get(SIZE).and_then(|size| size.parse().ok());
        let (program, size) = program.zip(size).with_context(|| {
            let name = &case.workload;
            format!("this run has the program {name}, which is not known any more: start a new run")
        })?;
        let input = Input::new(program, size)?;
        if stored
            .real
            .as_ref()
            .is_none_or(|real| real.key != input.key)
        {
            bail!(
                "{} is not the program that this run began with: start a new run",
                program.name
            );
        }
        input.make()?;
        let folder = scratch.path().join(&program.name);
        let command = UserCommand {
            settings: stored.settings.clone(),
            ..command(program, &input, &folder, &mut ports)?
        };
        last = Some(command.clone());
        case.target = Target::Command(Box::new(command));
    }
    Ok(Some(scratch))
}

fn scratch() -> Result<Draft> {
    let temporary = std::env::temp_dir();
    Draft::folder(&temporary).with_path("cannot write in", &temporary)
}

/// A real program as a command that can be started in a folder.
fn command(
    program: &RealProgram,
    input: &Input,
    folder: &Path,
    ports: &mut Ports,
) -> Result<UserCommand> {
    let port = match program.client.is_empty() {
        true => None,
        false => Some(ports.free()?),
    };
    let words = |words: &[String]| -> Result<Vec<String>> {
        let port = port.map_or(String::new(), |port| port.to_string());
        let words = words.iter().map(|word| word.replace("{port}", &port));
        let mut words: Vec<String> = words.collect();
        if let Some(first) = words.first_mut() {
            let path: PathBuf = find(first, Path::new("/"))?;
            *first = path.to_str().context("a path is not UTF-8")?.to_owned();
        }
        Ok(words)
    };
    Ok(UserCommand {
        command: words(&program.run)?,
        folder: folder.to_path_buf(),
        check_output: program.check_output,
        client: match port {
            Some(port) => Some(Client {
                command: words(&program.client)?,
                ready: Ready::Port(port),
                ..Client::default()
            }),
            None => None,
        },
        real: Some(RealCommand {
            input: input.folder(),
            key: input.key.clone(),
            changes_input: program.changes_input,
            environment: environment(program, folder),
            digest: words(&program.digest)?,
        }),
        ..UserCommand::default()
    })
}

/// What readers of a program's row should know about it.
fn caution(recognised: &Recognised, library: Option<&str>) -> Option<String> {
    let program = recognised.program().display();
    let linked = library.map(|library| {
        format!(
            "{program} is linked to {library}; here each row's allocator serves it, for glibc the C library \
             (heapmark run -w of this program alone with -a own,... has the program as it is)."
        )
    });
    let inside = recognised.inside.iter().map(|allocator| {
        format!("{program} has {allocator} inside, which no preloaded allocator reaches.")
    });
    let words: Vec<String> = linked.into_iter().chain(inside).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The sizes of inputs that `--set` gives: `perl-hash.size=1000`, also for a pattern of names.
fn sizes(programs: &[&RealProgram], set: &[Override]) -> Result<Vec<(String, u64)>> {
    let mut sizes = Vec::new();
    for change in set {
        let (name, parameter, value) = (&change.workload, &change.parameter, &change.value);
        let names = programs.iter().map(|program| program.name.as_str());
        let found: Vec<&str> = names
            .clone()
            .filter(|program| glob_match(name, program))
            .collect();
        if found.is_empty() {
            let hint = did_you_mean(name, names);
            bail!("--set {name}.{parameter}: no program of this run has that name{hint}");
        }
        if parameter != SIZE {
            bail!("--set {name}.{parameter}: real programs have one parameter, {SIZE}");
        }
        let size = match value.parse() {
            Ok(size @ 1..) => size,
            _ => bail!("--set {name}.{SIZE}={value}: expected a whole number, 1 or more"),
        };
        sizes.extend(found.into_iter().map(|name| (name.to_owned(), size)));
    }
    Ok(sizes)
}

/// The ports that have been given to servers.
#[derive(Default)]
struct Ports(BTreeSet<u16>);

impl Ports {
    /// A port that is free now, and that no other server of this run gets.
    fn free(&mut self) -> Result<u16> {
        // Two runs at the same time begin at different ports.
        let count = usize::from(PORTS.end - PORTS.start);
        let begin = std::process::id() as usize * 31 % count;
        let mut all = PORTS.clone().cycle().skip(begin).take(count);
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let port = all.find(|port| !self.0.contains(port) && is_free(port));
        let port = port.ok_or_else(|| anyhow!("no port from {PORTS:?} is free for a server"))?;
        self.0.insert(port);
        Ok(port)
    }
}
