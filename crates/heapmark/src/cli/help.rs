//! What `--help` has besides flags: the commands in groups, and examples.

use crate::cmd::EXIT_CODES;
use clap::Command;

/// The groups of commands, in the order in which a newcomer needs them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["run", "try", "tune", "check"]),
    ("A running service", &["which"]),
    ("Your program's allocations", &["record", "replay", "trace"]),
    (
        "Results",
        &[
            "show", "open", "report", "compare", "campaign", "export", "claims",
        ],
    ),
    ("This machine", &["doctor", "noise", "selftest"]),
    (
        "Setting up",
        &[
            "list",
            "explain",
            "build",
            "fetch",
            "clean",
            "completions",
            "man",
        ],
    ),
];

/// Example command lines for each command; a test runs them.
const EXAMPLES: [(&str, &[&str]); 36] = [
    (
        "run",
        &[
            "heapmark run                                  # the answer of this machine, in minutes",
            "heapmark run -a glibc,mimalloc,je -w larson -t 1,all",
            "heapmark run memory-shapes                    # memory that stays",
            "heapmark run -a old=git:libfoo@main,new=git:libfoo --baseline old",
        ],
    ),
    (
        "try",
        &[
            "heapmark try python3 build.py",
            "heapmark try -a glibc,jemalloc --blocks 20 jq . big.json",
            "heapmark try --server './server --port {port}' --client 'curl localhost:{port}' --ready 7391",
        ],
    ),
    (
        "tune",
        &[
            "heapmark tune -- python3 build.py             # which settings of glibc help it",
            "heapmark tune -a glibc,jemalloc --for memory --at-most time=1.02 --held-out 'jq . other.json' -- jq . big.json",
            "heapmark tune -a jemalloc --also 'MALLOC_CONF=narenas:4' -- ./program",
            "heapmark tune --server './server --port {port}' --client './load {port}' --ready 7391 --for idle",
            "heapmark tune -w trace:app.trace -- ./app input  # search on its recording, confirm on the program",
        ],
    ),
    (
        "check",
        &[
            "heapmark check                                # what a program may rely on, of each allocator",
            "heapmark check -a jemalloc --only alignment",
            "heapmark check --program calloc-overflow      # as a C program of its own",
        ],
    ),
    (
        "which",
        &[
            "heapmark which 4711                           # which allocator, which settings, what it holds",
            "heapmark which --expect jemalloc -- ./server  # exit code 3 if another one serves it",
            "heapmark which --watch 10s 4711               # a line each ten seconds",
        ],
    ),
    (
        "replay",
        &[
            "heapmark replay build.trace",
            "heapmark replay --retained build.trace        # memory for the live bytes",
            "heapmark replay perl-hash                     # a trace that heapmark carries",
        ],
    ),
    (
        "record",
        &["heapmark record -o build.trace python3 build.py"],
    ),
    (
        "doctor",
        &["heapmark doctor                               # what disturbs measurements here"],
    ),
    (
        "list",
        &[
            "heapmark list allocators",
            "heapmark list traces                          # that heapmark carries, for replay",
            "heapmark list workloads --format json",
        ],
    ),
    ("build", &["heapmark build jemalloc mimalloc"]),
    ("show", &["heapmark show latest"]),
    ("report", &["heapmark report latest -o result"]),
    (
        "compare",
        &[
            "heapmark compare latest --fail-on slower      # exit code 3 for a CI job",
            "heapmark compare run-1 run-2 --by cpu",
        ],
    ),
    (
        "history",
        &[
            "heapmark history mimalloc --versions 3.1.5..3.6.0 -w fan-in --retained",
            "heapmark history jemalloc -- python3 build.py",
        ],
    ),
    (
        "museum",
        &[
            "heapmark museum fan-in                        # memory times four, in a release of 2026",
        ],
    ),
    (
        "campaign",
        &[
            "heapmark campaign plan -o camp --machines 5 -- steady",
            "heapmark campaign submit camp --engine slurm",
            "heapmark campaign pool camp",
        ],
    ),
    (
        "campaign plan",
        &["heapmark campaign plan -o camp --machines 5 -- steady -a glibc,jemalloc"],
    ),
    (
        "campaign submit",
        &[
            "heapmark campaign submit camp                  # all on this machine",
            "heapmark campaign submit camp --engine slurm --partition quiet",
        ],
    ),
    (
        "campaign pool",
        &["heapmark campaign pool ours theirs friends/run-1 friends/run-2"],
    ),
    (
        "export",
        &[
            "heapmark export latest --to csv -o table.csv",
            "heapmark export latest --to json",
        ],
    ),
    ("claims", &["heapmark claims latest"]),
    ("open", &["heapmark open latest"]),
    ("explain", &["heapmark explain block"]),
    ("fetch", &["heapmark fetch"]),
    ("clean", &["heapmark clean cache"]),
    (
        "completions",
        &["heapmark completions bash > heapmark.bash"],
    ),
    ("man", &["heapmark man man1"]),
    ("noise", &["heapmark noise --minutes 5"]),
    ("selftest", &["heapmark selftest"]),
    ("trace finish", &["heapmark trace finish app.cap"]),
    (
        "trace import",
        &["heapmark trace import mtrace.log -o app.trace"],
    ),
    ("trace stats", &["heapmark trace stats build.trace"]),
    ("trace check", &["heapmark trace check build.trace"]),
    (
        "trace dump",
        &["heapmark trace dump build.trace --events 0..10"],
    ),
    (
        "trace cut",
        &["heapmark trace cut build.trace --events 0..10 -o first.trace"],
    ),
    (
        "trace export",
        &["heapmark trace export build.trace --sizes"],
    ),
];

/// Command lines that a newcomer should type first.
const FIRST: [&str; 4] = [
    "heapmark run                          # which allocator is the fastest here, in minutes",
    "heapmark try ./program --its-flags    # which one is the best for your program",
    "heapmark record -o app.trace ./program && heapmark replay app.trace",
    "heapmark show                         # the newest result again",
];

/// Rarely needed flags of commands that measure: only `--help` lists them.
const RARE: [&str; 27] = [
    "age",
    "alone",
    "cell",
    "cells",
    "check_again",
    "check_output",
    "expect_exit",
    "keep_env",
    "limit",
    "max_blocks",
    "no_aa_copy",
    "no_floor",
    "no_repeat",
    "pace",
    "packing",
    "precision",
    "rate",
    "replace",
    "seed",
    "skew",
    "strict",
    "target_ms",
    "timeout",
    "touch",
    "tree_may_differ",
    "turns",
    "warmup",
];

/// Returns the first example of the command at this path, without its comment.
pub fn example(path: &str) -> Option<&'static str> {
    let (_, lines) = EXAMPLES.iter().find(|(known, _)| *known == path)?;
    let line = lines.first()?;
    Some(line.split(" #").next().unwrap_or(line).trim_end())
}

/// Adds the groups and the examples to the help of the commands, and hides rare flags from the
/// short help.
pub fn arranged(line: Command) -> Command {
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        groups(&line)
    );
    let with_examples = |line: Command, (path, examples): &(&str, &[&str])| {
        let names: Vec<&str> = path.split(' ').collect();
        with_text(
            line,
            &names,
            format!("Examples:\n    {}", examples.join("\n    ")),
        )
    };
    let is_rare = |arg: &clap::Arg| RARE.contains(&arg.get_id().as_str());
    let short = |command: Command| {
        command.mut_args(|arg| match is_rare(&arg) {
            true => arg.hide_short_help(true),
            false => arg,
        })
    };
    let line = line
        .help_template(template)
        .after_help(format!(
            "Examples:\n    {}\n\n{EXIT_CODES}",
            FIRST.join("\n    ")
        ))
        .mut_subcommands(short);
    EXAMPLES.iter().fold(line, with_examples)
}

/// Adds a text below the help of the command at this path.
fn with_text(line: Command, path: &[&str], text: String) -> Command {
    match path {
        [] => {
            let own = line.get_after_help().map(|own| format!("{own}\n\n"));
            line.after_help(own.unwrap_or_default() + &text)
        }
        [name, rest @ ..] => line.mut_subcommand(name, |command| with_text(command, rest, text)),
    }
}

fn groups(line: &Command) -> String {
    let grouped: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let all = || line.get_subcommands().map(Command::get_name);
    let others: Vec<&str> = all().filter(|name| !grouped.contains(name)).collect();
    let groups = GROUPS.into_iter().chain([("Others", &others[..])]);
    let mut text = String::new();
    for (heading, names) in groups {
        let lines: String = names
            .iter()
            .filter_map(|name| line.find_subcommand(name))
            .map(line_of)
            .collect();
        if !lines.is_empty() {
            text += &format!("\n{heading}:\n{lines}");
        }
    }
    text
}

/// Returns a command's name and the first clause of what it is about; the command's own help has
/// the rest.
fn line_of(command: &Command) -> String {
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let about = about.split([':', ';']).next().unwrap_or_default();
    format!("  {:<11} {about}\n", command.get_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_a_group_stands_there_with_its_first_clause() {
        let line = Command::new("x").subcommand(Command::new("try").about("Run it: and more"));
        assert!(groups(&line).contains("  try         Run it\n"));
    }

    #[test]
    fn a_commands_own_last_words_stand_before_what_is_added() {
        let line = Command::new("x").subcommand(Command::new("try").after_help("Own."));
        let line = with_text(line, &["try"], "More.".into());
        let words = line.find_subcommand("try").unwrap().get_after_help();
        assert_eq!(words.unwrap().to_string(), "Own.\n\nMore.");
    }

    #[test]
    fn a_command_of_no_group_is_listed_all_the_same() {
        let line = Command::new("x").subcommand(Command::new("new").about("Do it"));
        assert_eq!(groups(&line), "\nOthers:\n  new         Do it\n");
    }
}
