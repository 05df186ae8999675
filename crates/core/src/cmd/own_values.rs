//! `heapmark try --value`, `--value-json`, `--value-of`: judges by a number that the command reports about itself, instead of by time.

use crate::catalog::allocators::is_name;
use crate::catalog::{did_you_mean, joined};
use crate::execute::user_command::{TOOLS, Tool, tool_named, unreadable};
use crate::plan::{OwnValue, ReadValue, ValueFrom};
use anyhow::{Result, anyhow, bail};

/// Flags that cannot be combined with these: they judge by something else, or interfere with a clock inside the command.
const ELSEWHERE: [&str; 5] = ["check_output", "turns", "age", "cpus_seen", "limit"];

/// Numbers that the command reports.
#[derive(clap::Args)]
pub struct ValueFlags {
    /// Judge by a number that the command reports, not by its time: what the only group of REGEX captures, as in
    /// `ops:higher:1/s=Throughput = ([0-9.]+)`. Say whether higher or lower is better; the unit may be left out. The first number
    /// is judged, further ones are shown. Of several matches the median counts
    #[arg(long, value_name = "NAME:higher|lower[:UNIT]=REGEX", conflicts_with_all = ELSEWHERE, help_heading = "What is measured")]
    value: Vec<String>,
    /// The same out of JSON, by a path: `p99:lower:ms=results[0].p99`; `[*]` is each element, and an array all that it holds
    #[arg(long, value_name = "NAME:higher|lower[:UNIT]=PATH", hide_short_help = true, conflicts_with_all = ELSEWHERE, help_heading = "What is measured")]
    value_json: Vec<String>,
    /// The same as a known tool writes it: hyperfine, criterion, google-benchmark, pytest-benchmark, jmh, jmh-throughput, wrk, oha,
    /// redis-benchmark, pgbench, ab. Of a text with several benchmarks, name one
    #[arg(long, value_name = "TOOL[:BENCHMARK]", conflicts_with_all = ELSEWHERE, help_heading = "What is measured")]
    value_of: Vec<String>,
    /// Where the numbers stand: stdout, stderr, or a file that each process writes [default: stdout; of a server, what its client
    /// prints]
    #[arg(
        long,
        value_name = "WHERE",
        hide_short_help = true,
        conflicts_with_all = ELSEWHERE,
        help_heading = "What is measured"
    )]
    value_from: Option<String>,
}

impl ValueFlags {
    /// All values that the flags ask for, those of `--value` first.
    pub fn values(&self, of_server: bool) -> Result<Vec<OwnValue>> {
        let from = match self.value_from.as_deref() {
            None | Some("stdout") => ValueFrom::Stdout,
            Some("stderr") if of_server => {
                bail!(
                    "--value-from stderr: of a server the numbers stand in what its client prints, or in a file"
                )
            }
            Some("stderr") => ValueFrom::Stderr,
            Some(file) => ValueFrom::File(file.into()),
        };
        let expressions = self
            .value
            .iter()
            .map(|text| of_text("--value", text, ReadValue::Regex, &from));
        let paths = self
            .value_json
            .iter()
            .map(|text| of_text("--value-json", text, ReadValue::Json, &from));
        let tools = self.value_of.iter().map(|text| of_tool(text, &from));
        let all: Vec<OwnValue> = expressions
            .chain(paths)
            .chain(tools)
            .collect::<Result<_>>()?;
        for (place, value) in all.iter().enumerate() {
            if all[place + 1..]
                .iter()
                .any(|other| other.name == value.name)
            {
                bail!("--value {}: two have this name", value.name);
            }
        }
        if all.is_empty() && self.value_from.is_some() {
            bail!("--value-from: name the number, by --value, --value-json or --value-of");
        }
        Ok(all)
    }
}

/// Parses a value with an expression: `ops:higher:1/s=...`.
fn of_text(
    flag: &str,
    text: &str,
    read: fn(String) -> ReadValue,
    from: &ValueFrom,
) -> Result<OwnValue> {
    let form = || {
        anyhow!(
            "{flag} {text:?}: expected NAME:higher=... or NAME:lower=..., with a unit NAME:higher:UNIT=..."
        )
    };
    let (head, rest) = text.split_once('=').ok_or_else(form)?;
    let mut parts = head.splitn(3, ':');
    let name = parts.next().filter(|name| is_name(name)).ok_or_else(form)?;
    let higher = match parts.next() {
        Some("higher") => true,
        Some("lower") => false,
        _ => return Err(form()),
    };
    let read = read(rest.to_owned());
    if let Some(why) = unreadable(&read) {
        bail!("{flag} {name}: {why}");
    }
    Ok(OwnValue {
        name: name.to_owned(),
        higher,
        unit: parts.next().unwrap_or_default().to_owned(),
        read,
        from: from.clone(),
    })
}

/// Parses a tool's name, with a benchmark if one is chosen: `wrk`, `google-benchmark:BM_sort/1000`.
fn of_tool(text: &str, from: &ValueFrom) -> Result<OwnValue> {
    let (name, benchmark) = match text.split_once(':') {
        Some((name, benchmark)) => (name, Some(benchmark.to_owned())),
        None => (text, None),
    };
    let names = || TOOLS.iter().map(|tool| tool.name);
    let Some(tool) = tool_named(name) else {
        let hint = did_you_mean(name, names());
        let known = joined(names(), ", ");
        bail!("--value-of {name}: no such tool{hint}; there are {known}");
    };
    let Tool { value, unit, .. } = tool;
    Ok(OwnValue {
        name: (*value).to_owned(),
        higher: tool.higher,
        unit: (*unit).to_owned(),
        read: ReadValue::Tool {
            tool: name.to_owned(),
            benchmark,
        },
        from: from.clone(),
    })
}
