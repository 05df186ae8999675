//! What two runs have in common, and how they differ.

use super::Difference;
use crate::catalog::joined;
use crate::plan::{Case, Plan};
use crate::store::{AllocatorInfo, RunFile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Facts of a machine that change from minute to minute.
const PASSING: [&str; 2] = ["load_average", "memory_available"];

/// Parameters of a replay that contain the paths of its trace. The content of the trace is
/// identified by `sha256`.
const PLACES: [&str; 2] = ["trace", "compiled"];

/// The index of the same case in another plan, or the reason why there is none.
pub fn counterpart(case: &Case, others: &[Case]) -> Result<usize, String> {
    let place = others
        .iter()
        .position(|other| has_its_name(other, case))
        .ok_or("the old run does not have its case")?;
    let [ours, theirs] =
        [case, &others[place]].map(|case| parameters(case).collect::<BTreeMap<_, _>>());
    for name in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let old = theirs.get(name);
        let new = ours.get(name);
        if old != new {
            let [old, new] = [old, new].map(|value| value.copied().unwrap_or("not set"));
            return Err(format!("{name} was {old} and is {new}: other work"));
        }
    }
    let programs = [&others[place], case]
        .map(|case| case.command().map_or(&[][..], |command| &command.sha256));
    if programs.iter().all(|hashes| !hashes.is_empty()) && programs[0] != programs[1] {
        return Err("the programs differ (another file): other work".into());
    }
    match (others[place].turns, case.turns) {
        (old, new) if old == new => {}
        (Some(_), Some(_)) => {
            return Err("one run measured it in turns of another kind (--turns)".into());
        }
        _ => return Err("one run measured it in turns and by CPU time, the other alone".into()),
    }
    if work(&others[place]) != work(case) {
        return Err(
            "its command has other arguments, another input or another --prepare: other work"
                .into(),
        );
    }
    Ok(place)
}

/// Whether a case of another run has the same workload and threads.
pub fn has_its_name(one: &Case, other: &Case) -> bool {
    (&one.workload, one.threads) == (&other.workload, other.threads)
}

/// Whether sides took turns in both runs, but of other lengths: ratios can depend on how long turns are.
pub fn have_other_turns(one: &Plan, other: &Plan) -> bool {
    let takes_turns = |plan: &Plan| plan.cases.iter().any(|case| case.turns.is_some());
    takes_turns(one) && takes_turns(other) && one.turn_lengths_ms != other.turn_lengths_ms
}

/// The parameters that determine a case's work, by name.
pub fn parameters(case: &Case) -> impl Iterator<Item = (&str, &str)> {
    let is_replay = case.is_replay();
    let all = case.parameters.iter();
    all.map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(move |(name, _)| !is_replay || !PLACES.contains(name))
}

/// Describes what a command does: its arguments and those of its client, without the paths of the programs, its input,
/// and its preparation; for a real program, everything that determines its input.
pub fn work(case: &Case) -> Vec<&str> {
    let Some(command) = case.command() else {
        return Vec::new();
    };
    if let Some(real) = &command.real {
        return vec![&real.key];
    }
    let client = command.client.iter().map(|client| &client.command);
    let all = [&command.command].into_iter().chain(client);
    let arguments = all.flat_map(|words| words.iter().skip(1));
    let piped = command.piped.iter().map(|input| &input.sha256);
    let words = arguments.chain(piped).map(String::as_str);
    // For an input without a hash, the path is the best description.
    let path = command.stdin.as_deref().and_then(Path::to_str);
    let named = command.stdin_sha256.as_deref().or(path);
    let prepare = command.prepare.iter();
    let prepare = prepare.flat_map(|line| ["--prepare", line.as_str()]);
    words.chain(named).chain(prepare).collect()
}

/// The versions and facts of the machine that differ.
pub fn differences<'a>(old: &'a RunFile, new: &'a RunFile) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut note = |what: &str, old: &str, new: &str| {
        if old != new {
            all.push(Difference {
                what: what.to_owned(),
                old: old.to_owned(),
                new: new.to_owned(),
            });
        }
    };
    note("heapmark", &old.heapmark, &new.heapmark);
    let keys: BTreeSet<&String> = old.machine.keys().chain(new.machine.keys()).collect();
    for key in keys {
        let fact = |run: &'a RunFile| run.machine.get(key).map_or("not told", String::as_str);
        if !PASSING.contains(&key.as_str()) {
            note(key, fact(old), fact(new));
        }
    }
    for info in &new.allocators {
        if let Some(before) = old.allocators.iter().find(|other| other.name == info.name) {
            note(&info.name, &library(before), &library(info));
        }
    }
    all
}

/// Describes a library by its version, its content and the variables of its entry.
pub fn library(info: &AllocatorInfo) -> String {
    let mut words = info.version.clone();
    let hashes = info.hashes().into_iter();
    let short = joined(hashes.map(|sha256| sha256.get(..12).unwrap_or(sha256)), "+");
    if !short.is_empty() {
        words += &format!(" ({short})");
    }
    words + &variables(info)
}

/// Formats the environment variables of an entry as ` with NAME=VALUE NAME=VALUE`; empty if there are none.
pub fn variables(info: &AllocatorInfo) -> String {
    let variables = info.environment.iter();
    let all = joined(
        variables.map(|(name, value)| format!("{name}={value}")),
        " ",
    );
    match all.is_empty() {
        true => all,
        false => format!(" with {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::fake_run::case;
    use crate::plan::{Client, PipedInput, RealCommand, Target, Turns, UserCommand};

    #[test]
    fn turns_of_another_kind_are_another_clock() {
        let of = |turns| Case {
            turns,
            ..case("larson")
        };
        let why = |old, new| counterpart(&of(new), &[of(old)]).err();
        let said = |old, new| why(old, new).unwrap_or_default();
        let [slices, stop] = [Turns::Slices, Turns::Stop].map(Some);
        assert_eq!(why(stop, stop), None);
        assert_eq!(why(None, None), None);
        assert!(said(slices, stop).contains("--turns"));
        assert!(said(None, stop).contains("the other alone"));
    }

    #[test]
    fn a_trace_is_known_by_its_content_wherever_it_lies() {
        let of = |home: &str, sha256: &str, kernel: &str| {
            let parameters = [
                ("trace", format!("{home}/app.trace")),
                ("compiled", format!("{home}/app.compiled")),
                ("sha256", sha256.to_owned()),
            ];
            Case {
                target: Target::Kernel(kernel.into()),
                parameters: parameters
                    .map(|(name, value)| (name.to_owned(), value))
                    .into(),
                ..case("trace:app")
            }
        };
        let is_same = |one: Case, other: Case| counterpart(&one, &[other]).is_ok();
        let first = || of("/home/a", "ab", "replay");
        assert!(is_same(first(), of("/home/b", "ab", "replay")));
        assert!(!is_same(first(), of("/home/a", "cd", "replay")));
        let other_kernel = |home: &str| of(home, "ab", "churn");
        assert!(!is_same(other_kernel("/home/a"), other_kernel("/home/b")));
    }

    #[test]
    fn a_command_with_other_arguments_or_another_input_is_other_work() {
        let of = |program: &str, argument: &str, client: &str, key: &str| {
            let words = |all: [&str; 2]| all.map(String::from).to_vec();
            let command = UserCommand {
                command: words([program, argument]),
                client: Some(Client {
                    command: words(["/usr/bin/client", client]),
                    ..Client::default()
                }),
                real: (!key.is_empty()).then(|| RealCommand {
                    key: key.into(),
                    ..RealCommand::default()
                }),
                ..UserCommand::default()
            };
            let target = Target::Command(Box::new(command));
            Case {
                target,
                ..case("python3")
            }
        };
        let is_same = |one: Case, other: Case| counterpart(&one, &[other]).is_ok();
        let first = || of("/usr/bin/python3", "a.py", "load", "");
        assert!(is_same(first(), of("/opt/python3", "a.py", "load", "")));
        assert!(!is_same(
            first(),
            of("/usr/bin/python3", "b.py", "load", "")
        ));
        assert!(!is_same(
            first(),
            of("/usr/bin/python3", "a.py", "more", "")
        ));
        // Command lines of real programs contain ports and folders.
        let real = |argument: &str, key: &str| of("/usr/bin/redis", argument, "", key);
        assert!(is_same(real("7000", "abc"), real("7001", "abc")));
        assert!(!is_same(real("7000", "abc"), real("7000", "def")));
    }

    #[test]
    fn an_input_is_known_by_its_content_and_what_is_done_before_a_command_belongs_to_its_work() {
        let is_same = |commands: [UserCommand; 2]| {
            let [one, other] = commands.map(|command| Case {
                target: Target::Command(Box::new(command)),
                ..case("jq")
            });
            counterpart(&one, &[other]).is_ok()
        };
        let reads = |file: &str, sha256: &str| UserCommand {
            command: vec!["/usr/bin/jq".into()],
            stdin: Some(file.into()),
            stdin_sha256: (!sha256.is_empty()).then(|| sha256.into()),
            ..UserCommand::default()
        };
        assert!(is_same([reads("/a.json", "ab"), reads("/b.json", "ab")]));
        assert!(!is_same([reads("/a.json", "ab"), reads("/a.json", "cd")]));
        assert!(is_same([reads("/dev/null", ""), reads("/dev/null", "")]));
        assert!(!is_same([reads("/a.json", ""), reads("/b.json", "")]));
        let piped = UserCommand {
            stdin: None,
            stdin_sha256: None,
            piped: Some(PipedInput {
                sha256: "ab".into(),
                ..PipedInput::default()
            }),
            ..reads("", "")
        };
        assert!(is_same([reads("/a.json", "ab"), piped]));
        let prepared = |line: &str| UserCommand {
            prepare: Some(line.into()),
            ..reads("/a.json", "ab")
        };
        assert!(is_same([prepared("make clean"), prepared("make clean")]));
        assert!(!is_same([prepared("make clean"), prepared("make small")]));
        assert!(!is_same([prepared("make clean"), reads("/a.json", "ab")]));
    }
}
