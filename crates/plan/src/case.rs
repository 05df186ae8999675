//! A workload at a thread count, with every parameter written out.

use super::{Factor, Target, Turns, UserCommand, distribution, lifetimes};
use anyhow::{Result, anyhow, bail};
use fast_glob::glob_match;
use heapmark_catalog::workload::ProgramRow;
use heapmark_catalog::{Iterations, Workload, did_you_mean, joined, time};
use heapmark_guest::kernels::{self, Kernel, MemoryPoints};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// The parameter that sets how many threads replay a trace, if not the recorded number, and its
/// value.
const PLAYERS: &str = "players";
const ONE: &str = "one";

/// The parameter that sets the rate of requests as a share of what could be served.
const LOAD: &str = "load";

/// Makes the value of a parameter from the file that another parameter names.
type ReadsFile = fn(&BTreeMap<String, String>) -> Result<Option<String>>;

/// A workload at a thread count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Workload name.
    pub workload: String,
    /// What every allocator runs.
    pub target: Target,
    /// Further rows: programs with their own memory management.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<ProgramRow>,
    /// What one operation is.
    pub operation: String,
    /// Worker threads.
    pub threads: u32,
    /// Whether there are more threads than usable CPUs.
    pub oversubscribed: bool,
    /// Every parameter, written out.
    pub parameters: BTreeMap<String, String>,
    /// Warm-up iterations of each process.
    pub cold: u32,
    /// Measured iterations of each process.
    pub iterations: Iterations,
    /// Whether the workload's clock includes the purge (MM).
    pub counts_purge: bool,
    /// Whether the case's rows are whole processes, timed from outside.
    #[serde(default)]
    pub whole_process: bool,
    /// A caution that must be shown with the case's table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Nanoseconds between two points of the memory over time; `None` if that is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_ns: Option<u64>,
    /// What differs from the previous case, if everything else is equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Factor>,
    /// How many of the case's threads work at a time, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Whether the case's memory is measured beside other cases' times: in one process of each allocator,
    /// before the blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// How the two processes of a comparison take turns on one CPU; `None` if each runs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
}

/// Returns a case's name: `larson@2`.
pub fn case_name(workload: &str, threads: u32) -> String {
    format!("{workload}@{threads}")
}

/// Returns a row's name: `larson@2/hoard`.
pub fn row_name(workload: &str, threads: u32, allocator: &str) -> String {
    format!("{workload}@{threads}/{allocator}")
}

impl Case {
    /// Returns the case's name: `larson@2`.
    pub fn label(&self) -> String {
        case_name(&self.workload, self.threads)
    }

    /// Returns whether allocators run the case; otherwise it has only rows of programs.
    pub fn is_for_allocators(&self) -> bool {
        !matches!(self.target, Target::Rows)
    }

    /// Returns the kernel that every allocator runs.
    pub fn kernel(&self) -> Option<&str> {
        match &self.target {
            Target::Kernel(name) => Some(name),
            _ => None,
        }
    }

    /// Returns this case under a factor.
    pub fn under(&self, factor: Factor) -> Case {
        Case {
            workload: self.workload.clone() + &factor.suffix(),
            factor: Some(factor),
            ..self.clone()
        }
    }

    /// Returns what decides how many requests the case can serve: its kernel, and all parameters except the load.
    pub fn at_full_load(&self) -> (Option<&str>, BTreeMap<String, String>) {
        let mut parameters = self.parameters.clone();
        parameters.remove(LOAD);
        (self.kernel(), parameters)
    }

    /// Returns how many of 100 blocks of the litter stay, if the case's heap is aged.
    pub fn age(&self) -> Option<u8> {
        match self.factor? {
            Factor::Age(age) => Some(age),
            Factor::HugePages(_) | Factor::CpusSeen(_) => None,
        }
    }

    /// Returns why the case's heap cannot be aged; `None` if it can be.
    pub fn not_aged(&self) -> Option<&'static str> {
        let has_own_heap = |kernel: &Kernel| kernel.memory != MemoryPoints::Sampled;
        match &self.target {
            Target::Program(_) | Target::Rows => Some("a program of the catalogue, not a kernel"),
            Target::Kernel(name) if kernels::find(name).is_some_and(has_own_heap) => {
                Some("defined by the state of its own heap")
            }
            _ if self.is_paced() => Some("played at recorded times, which no heap changes"),
            _ => None,
        }
    }

    /// Returns whether the null allocator can run the case's kernel. The null allocator's blocks overlap, so it has no heap to age.
    pub fn has_floor(&self) -> bool {
        let kernel = self.kernel().filter(|_| self.age().is_none());
        kernel.is_some_and(|name| kernels::find(name).is_none_or(|kernel| kernel.has_floor))
    }

    /// Returns the program of the catalogue that every allocator runs.
    pub fn program(&self) -> Option<&str> {
        match &self.target {
            Target::Program(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the user's own command.
    pub fn command(&self) -> Option<&UserCommand> {
        match &self.target {
            Target::Command(command) => Some(command),
            _ => None,
        }
    }

    /// Returns the user's own command, for changes to it.
    pub fn command_mut(&mut self) -> Option<&mut UserCommand> {
        match &mut self.target {
            Target::Command(command) => Some(command),
            _ => None,
        }
    }

    /// Returns whether every allocator runs a real program of the catalogue.
    pub fn is_real_program(&self) -> bool {
        self.command().is_some_and(|command| command.real.is_some())
    }

    /// Returns the number of CPUs that a process of the case keeps busy while its memory is measured.
    pub fn busy_cpus(&self) -> u32 {
        match self.has("order", "turns") {
            true => 1,
            false => self.at_once.unwrap_or(self.threads).max(1),
        }
    }

    /// Returns whether another process may run on another CPU while the case's memory is measured.
    pub fn may_share_the_machine(&self) -> bool {
        let kernel = self.kernel().and_then(kernels::find);
        kernel.is_some_and(|kernel| kernel.memory.may_share_the_machine()) || self.is_replay()
    }

    /// Returns whether two processes of the case may take turns on one CPU: processes of one thread may, if they do the same work whenever
    /// they run and are judged by its time alone.
    pub fn may_take_turns(&self) -> bool {
        let has_own_clock = |name: &str| kernels::WITH_OWN_CLOCKS.contains(&name);
        match &self.target {
            Target::Kernel(name) => {
                self.threads == 1
                    && self.rows.is_empty()
                    && self.series_ns.is_none()
                    && !self.is_paced()
                    && self.seconds().is_none()
                    && !has_own_clock(name)
            }
            Target::Command(command) => command.may_take_turns(),
            Target::Program(_) | Target::Rows => false,
        }
    }

    /// Returns whether the case plays a trace.
    pub fn is_replay(&self) -> bool {
        self.kernel() == Some("replay")
    }

    /// Returns the names of all programs of the catalogue that the case starts.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.program()
            .into_iter()
            .chain(self.rows.iter().map(|row| row.program.as_str()))
    }

    /// Returns the program's row of this name.
    pub fn row(&self, name: &str) -> Option<&ProgramRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns the row that the others are compared with: the run's baseline, or the first program
    /// if no allocator runs it.
    pub fn baseline<'a>(&'a self, of_the_run: &'a str) -> &'a str {
        if self.is_for_allocators() {
            of_the_run
        } else {
            self.rows.first().map_or(of_the_run, |row| &row.name)
        }
    }

    /// Returns whether the baseline decides how many iterations a process makes.
    pub fn is_calibrated(&self) -> bool {
        matches!(self.iterations, Iterations::Calibrated(_))
    }

    /// Returns how long one iteration lasts, if the workload is defined by time.
    pub fn seconds(&self) -> Option<f64> {
        let seconds: Option<f64> = self.parameters.get("seconds")?.parse().ok();
        seconds.filter(|seconds| *seconds > 0.0)
    }

    fn has(&self, parameter: &str, value: &str) -> bool {
        self.parameters
            .get(parameter)
            .is_some_and(|setting| setting == value)
    }

    /// Returns whether the worker threads themselves record the points of the memory over time, at
    /// operations, instead of a clock.
    pub fn samples_itself(&self) -> bool {
        self.has("sample", "per-op")
    }

    /// Returns whether the case replays a trace at the recorded times, so that no allocator changes its duration.
    pub fn is_paced(&self) -> bool {
        self.is_replay() && self.has("mode", "paced")
    }

    /// Returns whether one thread replays the calls of several threads.
    pub fn is_played_by_one(&self) -> bool {
        self.has(PLAYERS, ONE)
    }

    /// Returns whether the case replays a trace repeatedly without counting the first round.
    pub fn plays_later_rounds(&self) -> bool {
        self.is_replay() && self.cold > 0
    }

    /// Returns whether both cases replay the same trace.
    pub fn plays_trace_of(&self, other: &Case) -> bool {
        let trace = |case: &Case| case.parameters.get("sha256").cloned();
        self.is_replay() && other.is_replay() && trace(self) == trace(other)
    }

    /// Returns this case, replayed by one thread.
    pub fn played_by_one(&self) -> Case {
        let mut case = self.clone();
        case.threads = 1;
        case.oversubscribed = false;
        case.parameters.insert(PLAYERS.into(), ONE.into());
        case
    }

    /// Returns the parameters that the kernel gets, including derived ones.
    pub fn job_parameters(&self) -> Result<BTreeMap<String, String>> {
        let mut parameters = self.parameters.clone();
        let classes = distribution::classes(&self.parameters)?;
        parameters.extend(classes.map(|classes| ("classes".to_owned(), classes)));
        let model = lifetimes::of_mixture(&self.parameters, self.threads)?;
        parameters.extend(model.map(|model| (lifetimes::LIFETIMES.to_owned(), model)));
        Ok(parameters)
    }

    /// Returns the name of a parameter whose file is no longer what it was when the case was made, if there is one.
    pub fn changed_file(&self) -> Option<&str> {
        let is_changed = |name: &str, made: &str, read: ReadsFile| {
            let file = self.parameters.get(name)?;
            // A file that is gone is not needed: its content is a parameter.
            let is_there = file.ends_with(".csv") && Path::new(file).exists();
            let now = || read(&self.parameters).ok().flatten();
            (is_there && now().as_ref() != self.parameters.get(made)).then_some(file.as_str())
        };
        is_changed("distribution", "classes", distribution::of_file)
            .or_else(|| is_changed(lifetimes::MODEL, lifetimes::LIFETIMES, lifetimes::of_file))
    }

    /// Checks whether the parameters fit each other.
    fn check(&self) -> Result<()> {
        let number = |name: &str| self.parameters.get(name)?.parse::<u64>().ok();
        for (low, high) in [("min", "max"), ("min-size", "max-size")] {
            if let (Some(min), Some(max)) = (number(low), number(high))
                && (min > max || max > u64::from(u32::MAX))
            {
                bail!(
                    "{}: {low} = {min} and {high} = {max}: {low} must not be above {high}, {high} below 4 GiB",
                    self.workload
                );
            }
        }
        self.job_parameters().map(drop)
    }
}

impl UserCommand {
    /// Returns the case that every allocator runs once in a block.
    pub fn case(self, name: &str, caution: Option<String>) -> Case {
        Case {
            workload: name.to_owned(),
            target: Target::Command(Box::new(self)),
            rows: Vec::new(),
            operation: "process".into(),
            threads: 1,
            oversubscribed: false,
            parameters: Default::default(),
            cold: 0,
            iterations: Iterations::Fixed(1),
            counts_purge: false,
            whole_process: true,
            caution,
            series_ns: None,
            factor: None,
            at_once: None,
            beside: false,
            turns: None,
        }
    }
}

/// A change of a parameter that the user asks for: `--set W.P=V`.
#[derive(Clone, Debug)]
pub struct Override {
    /// Workload name or pattern.
    pub workload: String,
    /// Parameter name.
    pub parameter: String,
    /// The parameter's value.
    pub value: String,
}

impl std::str::FromStr for Override {
    type Err = String;
    fn from_str(text: &str) -> Result<Override, String> {
        if let Some((name, value)) = text.split_once('=')
            && let Some((workload, parameter)) = name.rsplit_once('.')
            && ![workload, parameter, value].contains(&"")
        {
            return Ok(Override {
                workload: workload.into(),
                parameter: parameter.into(),
                value: value.into(),
            });
        }
        Err(format!(
            "`{text}`: expected WORKLOAD.PARAMETER=VALUE, for instance larson.chunks=100"
        ))
    }
}

impl Display for Override {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}.{}={}", self.workload, self.parameter, self.value)
    }
}

impl Override {
    /// Returns whether the override changes any of these workloads.
    pub fn is_for_any(&self, workloads: &[&Workload]) -> bool {
        workloads.iter().any(|workload| self.is_for(workload))
    }

    fn is_for(&self, workload: &Workload) -> bool {
        glob_match(&self.workload, &workload.name)
    }
}

/// Returns every workload at every thread count.
pub fn cases(
    workloads: &[&Workload],
    preset: &str,
    threads: &[u32],
    cpus: u32,
    overrides: &[Override],
) -> Result<Vec<Case>> {
    for change in overrides {
        if change.is_for_any(workloads) {
            continue;
        }
        let names: Vec<&str> = workloads
            .iter()
            .map(|workload| workload.name.as_str())
            .collect();
        let mut hint = did_you_mean(&change.workload, names.iter().copied());
        if hint.is_empty() && names.len() <= 12 {
            hint = format!(": it has {}", names.join(", "));
        }
        bail!(
            "--set {}.{}: no workload of this run has that name{hint}",
            change.workload,
            change.parameter
        );
    }
    let mut all = Vec::new();
    for workload in workloads {
        let name = &workload.name;
        let Some(settings) = workload.presets.get(preset) else {
            let known = joined(workload.presets.keys(), ", ");
            bail!("workload {name} has no preset `{preset}`: it has {known}");
        };
        let mut parameters = settings.parameters.clone();
        for change in overrides.iter().filter(|change| change.is_for(workload)) {
            workload
                .value(&change.parameter, &change.value)
                .map_err(|why| anyhow!("--set: {why}"))?;
            parameters.insert(change.parameter.clone(), change.value.clone());
        }
        let classes =
            distribution::of_file(&parameters).map_err(|why| anyhow!("{name}: {why:#}"))?;
        parameters.extend(classes.map(|classes| ("classes".to_owned(), classes)));
        let model = lifetimes::of_file(&parameters).map_err(|why| anyhow!("{name}: {why:#}"))?;
        parameters.extend(model.map(|model| (lifetimes::LIFETIMES.to_owned(), model)));
        let implied = workload
            .threads(&parameters)
            .transpose()
            .map_err(|why| anyhow!("{name}: {why}"))?;
        let at_once = workload
            .at_once(&parameters)
            .transpose()
            .map_err(|why| anyhow!("{name}: {why}"))?;
        let interval = workload
            .series
            .as_deref()
            .map(time::interval)
            .transpose()
            .map_err(|why| anyhow!(why))?;
        let first = Case {
            workload: name.clone(),
            target: match (&workload.kernel, &workload.program) {
                (Some(kernel), _) => Target::Kernel(kernel.clone()),
                (None, Some(program)) => Target::Program(program.clone()),
                (None, None) => Target::Rows,
            },
            rows: workload.rows.clone(),
            operation: workload.operation.clone(),
            threads: 1,
            oversubscribed: false,
            counts_purge: parameters.get("purge").is_some_and(|purge| purge == "true"),
            parameters,
            cold: settings.cold,
            iterations: settings.iterations,
            whole_process: false,
            caution: workload.caution.clone(),
            series_ns: interval.map(|interval| interval.as_nanos() as u64),
            factor: None,
            at_once,
            beside: false,
            turns: None,
        };
        for &threads in implied.as_ref().map_or(threads, std::slice::from_ref) {
            if threads > 1 && first.has("thread", "main") {
                bail!(
                    "{name}: thread = main: the main thread works alone, and -t asks for {threads} threads: \
                     use -t 1, or --set {name}.thread=worker"
                );
            }
            let case = Case {
                threads,
                oversubscribed: threads > cpus,
                ..first.clone()
            };
            case.check()?;
            all.push(case);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_catalog::Catalog;

    fn larson(set: &[&str]) -> Result<Vec<Case>> {
        let catalog = Catalog::load().unwrap();
        let overrides: Vec<Override> = set.iter().map(|text| text.parse().unwrap()).collect();
        cases(
            &catalog.workloads("larson").unwrap(),
            "quick",
            &[1, 4],
            2,
            &overrides,
        )
    }

    #[test]
    fn overrides_change_one_parameter_and_oversubscription_is_marked() {
        let cases = larson(&["larson.chunks=100"]).unwrap();
        assert_eq!(cases[0].parameters["chunks"], "100");
        assert_eq!(cases[0].parameters["rounds"], "10");
        assert_eq!(
            cases
                .iter()
                .map(|case| case.oversubscribed)
                .collect::<Vec<_>>(),
            [false, true]
        );
        assert_eq!(cases[1].label(), "larson@4");
    }

    #[test]
    fn a_case_that_lasts_for_a_time_or_has_clocks_of_its_own_takes_no_turns() {
        let one_thread = |set: &[&str]| larson(set).unwrap().remove(0);
        assert!(one_thread(&[]).may_take_turns());
        assert!(!one_thread(&["larson.seconds=0.5"]).may_take_turns());
        let own_clocks = Case {
            target: Target::Kernel("ratchet-timed".into()),
            ..one_thread(&[])
        };
        assert!(!own_clocks.may_take_turns());
    }

    #[test]
    fn threads_that_follow_from_parameters_make_one_case_whatever_was_asked_for() {
        let catalog = Catalog::load().unwrap();
        let counts = |set: &[&str]| -> Vec<String> {
            let overrides: Vec<Override> = set.iter().map(|text| text.parse().unwrap()).collect();
            let workloads = catalog.workloads("memory*").unwrap();
            cases(&workloads, "quick", &[1, 2, 64], 2, &overrides)
                .unwrap()
                .iter()
                .map(Case::label)
                .collect()
        };
        assert_eq!(counts(&[]), ["memory@2", "memory-4x4@20"]);
        assert_eq!(
            counts(&["memory.consumers=5"]),
            ["memory@6", "memory-4x4@20"]
        );
    }

    #[test]
    fn the_main_thread_works_alone_or_not_at_all() {
        let catalog = Catalog::load().unwrap();
        let churn = |threads: &[u32]| {
            let workloads = catalog.workloads("churn").unwrap();
            let main = "churn.thread=main".parse().unwrap();
            cases(&workloads, "quick", threads, 4, &[main])
        };
        assert_eq!(churn(&[1]).unwrap()[0].parameters["thread"], "main");
        let error = churn(&[1, 2]).unwrap_err().to_string();
        assert!(error.contains("churn: thread = main"), "{error}");
        assert!(error.contains("use -t 1"), "{error}");
        let error = larson(&["larson.thread=main"]).unwrap_err().to_string();
        assert!(
            error.contains("workload larson has no parameter `thread`"),
            "{error}"
        );
    }

    #[test]
    fn bad_overrides_say_what_is_wrong() {
        let error = |set: &str| larson(&[set]).unwrap_err().to_string();
        assert!(error("larson.chunk=1").contains("did you mean `chunks`"));
        assert!(error("larsen.chunks=1").contains("did you mean `larson`"));
        assert!(error("larson.chunks=many").contains("expected a whole number"));
        assert!(error("larson.min=600").contains("must not be above"));
        assert!(
            "larson.chunks"
                .parse::<Override>()
                .unwrap_err()
                .contains("WORKLOAD.PARAMETER=VALUE")
        );
    }
}
