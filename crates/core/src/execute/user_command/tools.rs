//! Readers for what known tools print, one for each tool. The number is what the tool itself shows as its result; if a
//! text has several repetitions, the number of each is read.

use regex_lite::Regex;
use serde_json::Value;

/// Numbers in one text, each with the name of its benchmark.
pub type Named = Vec<(String, f64)>;

/// A tool whose output can be read.
pub struct Tool {
    /// The tool's name on the command line.
    pub name: &'static str,
    /// The name of the tool's number.
    pub value: &'static str,
    /// The unit of the tool's number.
    pub unit: &'static str,
    /// Whether a higher number is better.
    pub higher: bool,
    /// The function that reads the tool's numbers from a text.
    pub read: fn(&str) -> Result<Named, String>,
}

/// Describes a tool whose number is better if it is lower.
const fn time(
    name: &'static str,
    unit: &'static str,
    read: fn(&str) -> Result<Named, String>,
) -> Tool {
    Tool {
        name,
        value: "time",
        unit,
        higher: false,
        read,
    }
}

/// Describes a tool whose number is better if it is higher.
const fn rate(
    name: &'static str,
    value: &'static str,
    read: fn(&str) -> Result<Named, String>,
) -> Tool {
    Tool {
        name,
        value,
        unit: "1/s",
        higher: true,
        read,
    }
}

/// The tools whose output is known.
pub const TOOLS: [Tool; 11] = [
    time("hyperfine", "s", hyperfine),
    time("criterion", "ns", criterion),
    time("google-benchmark", "ns", google_benchmark),
    time("pytest-benchmark", "s", pytest_benchmark),
    time("jmh", "s", jmh_times),
    rate("jmh-throughput", "operations", jmh_rates),
    rate("wrk", "requests", |text| {
        by_regex(r"Requests/sec:\s+([0-9.]+)", text)
    }),
    rate("oha", "requests", oha),
    rate("redis-benchmark", "requests", redis_benchmark),
    rate("pgbench", "transactions", pgbench),
    rate("ab", "requests", |text| {
        by_regex(r"Requests per second:\s+([0-9.]+)", text)
    }),
];

/// Returns the tool of this name.
pub fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the entries of an array; fails if there is no such array.
fn entries<'v>(document: &'v Value, key: &str) -> Result<&'v Vec<Value>, String> {
    let array = if key.is_empty() {
        document
    } else {
        &document[key]
    };
    array
        .as_array()
        .ok_or_else(|| format!("no array {key} in its JSON"))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the numbers of an array, or `or` if there is no array, each multiplied by `times`.
fn each(name: &str, numbers: &Value, or: &Value, times: f64) -> Result<Named, String> {
    let pair = |number: f64| (name.to_owned(), number * times);
    let many = numbers.as_array().filter(|many| !many.is_empty());
    match (many, or.as_f64()) {
        (Some(many), _) => {
            let read = |one: &Value| one.as_f64().map(pair);
            let all = many
                .iter()
                .map(|one| read(one).ok_or_else(|| format!("{one} of {name} is no number")));
            all.collect()
        }
        (None, Some(one)) => Ok(vec![pair(one)]),
        (None, None) => Err(format!("{name} has no number")),
    }
}

fn joined(all: impl Iterator<Item = Result<Named, String>>) -> Result<Named, String> {
    let all: Vec<Named> = all.collect::<Result<_, _>>()?;
    Ok(all.into_iter().flatten().collect())
}

fn hyperfine(document: &str) -> Result<Named, String> {
    let document = json(document)?;
    let results = entries(&document, "results")?.iter();
    joined(results.map(|one| each(text(one, "command"), &one["times"], &one["median"], 1.0)))
}

fn criterion(document: &str) -> Result<Named, String> {
    let document = json(document)?;
    let slope = &document["slope"]["point_estimate"];
    let mean = &document["mean"]["point_estimate"];
    let estimate = if slope.is_number() { slope } else { mean };
    each("criterion's estimate", &Value::Null, estimate, 1.0)
}

fn google_benchmark(document: &str) -> Result<Named, String> {
    let document = json(document)?;
    let all = entries(&document, "benchmarks")?.iter();
    // Without aggregates: those are means and medians of the other entries.
    let iterations = all.filter(|one| text(one, "run_type") != "aggregate");
    joined(iterations.map(|one| {
        let name = match text(one, "run_name") {
            "" => text(one, "name"),
            name => name,
        };
        if one["error_occurred"] == true {
            return Err(format!("{name} failed: {}", text(one, "error_message")));
        }
        let ns = match text(one, "time_unit") {
            "s" => 1e9,
            "ms" => 1e6,
            "us" => 1e3,
            _ => 1.0,
        };
        each(name, &Value::Null, &one["real_time"], ns)
    }))
}

fn pytest_benchmark(document: &str) -> Result<Named, String> {
    let document = json(document)?;
    let all = entries(&document, "benchmarks")?.iter();
    joined(all.map(|one| {
        let stats = &one["stats"];
        each(text(one, "name"), &stats["data"], &stats["median"], 1.0)
    }))
}

fn jmh_times(document: &str) -> Result<Named, String> {
    jmh(document, false)
}

fn jmh_rates(document: &str) -> Result<Named, String> {
    jmh(document, true)
}

/// Reads the results of JMH, in seconds or in operations per second.
fn jmh(document: &str, rates: bool) -> Result<Named, String> {
    let document = json(document)?;
    let all = entries(&document, "")?;
    let is_read = |one: &&Value| (text(one, "mode") == "thrpt") == rates;
    if let Some(one) = all.first().filter(|_| !all.iter().any(|one| is_read(&one))) {
        let other = if rates { "jmh" } else { "jmh-throughput" };
        let [name, mode] = ["benchmark", "mode"].map(|key| text(one, key));
        return Err(format!("{name} has mode {mode}: --value-of {other}"));
    }
    joined(all.iter().filter(is_read).map(|one| {
        let name = text(one, "benchmark");
        let metric = &one["primaryMetric"];
        let unit = text(metric, "scoreUnit");
        let second = |unit: &str| match unit {
            "s" => Some(1.0),
            "ms" => Some(1e-3),
            "us" => Some(1e-6),
            "ns" => Some(1e-9),
            "min" => Some(60.0),
            _ => None,
        };
        let seconds = match rates {
            true => unit.strip_prefix("ops/").and_then(second).map(f64::recip),
            false => unit.strip_suffix("/op").and_then(second),
        };
        let times = seconds.ok_or_else(|| format!("{name} is in {unit:?}"))?;
        // JMH reports an array for each fork.
        let forks = metric["rawData"].as_array();
        let raw = forks.map(|forks| {
            forks
                .iter()
                .filter_map(Value::as_array)
                .flatten()
                .cloned()
                .collect()
        });
        each(
            name,
            &Value::Array(raw.unwrap_or_default()),
            &metric["score"],
            times,
        )
    }))
}

fn oha(document: &str) -> Result<Named, String> {
    match json(document) {
        Ok(document) => each(
            "oha",
            &Value::Null,
            &document["summary"]["requestsPerSec"],
            1.0,
        ),
        Err(_) => by_regex(r"Requests/sec:\s+([0-9.]+)", document),
    }
}

fn redis_benchmark(document: &str) -> Result<Named, String> {
    let lines =
        r#"(?m)^(?:.*\r)?"?([^"\r\n:]+?)(?:: |","|" *, *")([0-9.]+)(?: requests per second|")"#;
    let lines = Regex::new(lines).map_err(|error| error.to_string())?;
    let found = lines.captures_iter(document);
    found
        .map(|found| Ok((found[1].trim().to_owned(), number(&found[2])?)))
        .collect()
}

fn pgbench(document: &str) -> Result<Named, String> {
    // Before version 14, pgbench printed two such lines.
    let without = r"tps = ([0-9.]+) \((?:without initial connection time|excluding connections establishing)\)";
    by_regex(without, document)
}

/// Returns all numbers that the expression's group captures.
pub(super) fn by_regex(expression: &str, text: &str) -> Result<Named, String> {
    let regex = Regex::new(expression).map_err(|error| error.to_string())?;
    let numbers = regex.captures_iter(text).filter_map(|found| found.get(1));
    numbers
        .map(|found| Ok((String::new(), number(found.as_str())?)))
        .collect()
}

/// Parses a number as programs print it.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let plain = text.trim();
    plain.parse().map_err(|_| format!("{plain:?} is no number"))
}

pub(super) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What these tools of Debian 12, PyPI, crates.io and Maven Central wrote; the part about the machine is cut off
    /// two JSON documents.
    macro_rules! written {
        ($name:literal) => {
            include_str!(concat!("outputs/", $name))
        };
    }

    /// The number of a benchmark, and how many repetitions it is the median of.
    fn read(tool: &str, text: &str, benchmark: &str) -> (f64, usize) {
        let found = (named(tool).unwrap().read)(text).unwrap();
        let of_benchmark = found.iter().filter(|(name, _)| name == benchmark);
        let numbers: Vec<f64> = of_benchmark.map(|(_, number)| *number).collect();
        (heapmark_stats::median(&numbers).unwrap(), numbers.len())
    }

    #[test]
    fn what_each_tool_writes_is_read_as_it_shows_it() {
        assert_eq!(
            read("hyperfine", written!("hyperfine.json"), "ls /usr/bin"),
            (0.007_797_174, 5)
        );
        let google = written!("google-benchmark.json");
        let (ns, repetitions) = read("google-benchmark", google, "BM_vector/4096");
        assert_eq!(
            ((ns * 1e3).round(), repetitions),
            (6_030_641.0, 3),
            "microseconds there"
        );
        let (s, rounds) = read(
            "pytest-benchmark",
            written!("pytest-benchmark.json"),
            "test_list",
        );
        assert_eq!(((s * 1e9).round(), rounds), (15_037.0, 5));
        assert_eq!(read("oha", written!("oha.txt"), ""), (957.7668, 1));
        assert_eq!(
            read("oha", written!("oha.json"), "oha"),
            (1_075.522_779_357_362_2, 1)
        );
        let jmh = written!("jmh.json");
        let (s, iterations) = read("jmh", jmh, "b.Copying.average");
        assert_eq!(((s * 1e9).round(), iterations), (54_791.0, 3));
        let (rate, _) = read("jmh-throughput", jmh, "b.Copying.throughput");
        assert_eq!(rate.round(), 18_360.0, "0.018 per microsecond there");
        assert_eq!(read("wrk", written!("wrk.txt"), ""), (989.22, 1));
        assert_eq!(read("ab", written!("ab.txt"), ""), (1096.96, 1));
        assert_eq!(
            read("pgbench", written!("pgbench.txt"), ""),
            (164.098525, 1)
        );
        for text in [
            written!("redis-benchmark.txt"),
            written!("redis-benchmark.csv"),
        ] {
            assert_eq!(read("redis-benchmark", text, "GET"), (62500.0, 1));
        }
        assert_eq!(
            read("redis-benchmark", written!("redis-benchmark.csv"), "SET"),
            (60606.06, 1)
        );
        let (ns, _) = read(
            "criterion",
            written!("criterion.json"),
            "criterion's estimate",
        );
        assert!((1.0..1e6).contains(&ns), "{ns}");
    }

    #[test]
    fn jmh_is_read_by_its_mode() {
        let rate = written!("jmh.json").replace("avgt", "thrpt");
        let other = (named("jmh").unwrap().read)(&rate);
        assert_eq!(
            other.unwrap_err(),
            "b.Copying.throughput has mode thrpt: --value-of jmh-throughput"
        );
    }

    #[test]
    fn a_text_of_something_else_has_no_number() {
        for tool in &TOOLS {
            let found = (tool.read)("{\"results\": 3}");
            assert!(
                found.as_ref().map_or(true, Vec::is_empty),
                "{}: {found:?}",
                tool.name
            );
            assert!(
                (tool.read)("").map_or(true, |found| found.is_empty()),
                "{}",
                tool.name
            );
        }
    }
}
