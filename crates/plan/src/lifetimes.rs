//! Models of a steady heap: sizes, how long their blocks live, and how many of them other threads
//! free. A mixture of our own, or a table from a file.

use super::distribution::{FLEET, MOST_CLASSES, number};
use anyhow::{Context, Result, anyhow, bail};
use heapmark_catalog::file::read_named;
use heapmark_catalog::joined;
use std::collections::BTreeMap;
use std::path::Path;

/// The parameter that names a model, and the one that the guest gets instead.
pub const MODEL: &str = "model";
pub const LIFETIMES: &str = "lifetimes";

/// Mean lifetimes of short-, medium- and long-lived blocks, in births of their thread. The last two
/// are multiplied by a factor that follows from how much is to be live.
const MEAN_BIRTHS: [f64; 3] = [50.0, 20_000.0, 400_000.0];

/// The chances of these three lifetimes for blocks up to a size. The numbers are our own: short lives prevail, as in
/// recorded programs, and each size has long ones, too.
const CHANCES: [(u32, [f64; 3]); 3] = [
    (256, [0.80, 0.15, 0.05]),
    (4096, [0.60, 0.30, 0.10]),
    (u32::MAX, [0.40, 0.40, 0.20]),
];

/// Blocks of one size whose lifetimes have the same mean.
struct Row {
    size: u32,
    /// The mean lifetime, in births of the blocks' thread.
    lifetime: f64,
    /// The share of all births.
    share: f64,
    is_short: bool,
}

/// Returns what the guest gets: `UNIT SIZE:LIFETIME:WEIGHT:REMOTE,…`, with the lifetimes for a process of this many threads; `None` for
/// workloads without a model, or if the model comes from a file.
pub fn of_mixture(parameters: &BTreeMap<String, String>, threads: u32) -> Result<Option<String>> {
    if parameters.get(MODEL).map(String::as_str) != Some("fleet") {
        return Ok(None);
    }
    let live = number(parameters, "live")?;
    let remote = remote(parameters)?;
    let bytes = |short: bool| {
        let rows = mixture(1.0);
        let of_kind = rows.iter().filter(|row| row.is_short == short);
        of_kind
            .map(|row| row.share * row.lifetime * f64::from(row.size))
            .sum::<f64>()
    };
    let factor = (live / f64::from(threads) - bytes(true)) / bytes(false);
    if factor < 0.001 {
        bail!(
            "live = {live}: too little for {threads} threads, of which each needs {:.0}",
            bytes(true) + 0.001 * bytes(false)
        );
    }
    let rows = mixture(factor).into_iter().map(|row| {
        let lifetime = row.lifetime * f64::from(threads);
        format!("{}:{lifetime}:{}:{remote}", row.size, row.share)
    });
    Ok(Some(format!("births {}", joined(rows, ","))))
}

/// The forms of a file with a model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `size,lifetime_bytes,weight`, and `remote`: what `heapmark trace export --joint` writes. A block lives until exactly
    /// this many bytes were allocated, including its own.
    Joint,
    /// The columns of fleetbench's profiles, without a header: `size,rate,live`. By Little's law a block
    /// lives for live / rate on average, as if each birth ended it with the same probability.
    Fleetbench,
}

/// The possible headers of a file, each with the form of the file.
const HEADERS: [(&[&str], Form); 3] = [
    (&["size", "lifetime_bytes", "weight"], Form::Joint),
    (&["size", "lifetime_bytes", "weight", "remote"], Form::Joint),
    (&["size", "rate", "live"], Form::Fleetbench),
];

/// A line of a file with a model.
struct Line {
    size: u32,
    /// The line's other columns.
    numbers: Vec<f64>,
}

/// Returns the same as [`of_mixture`], from a file that is read once, with the plan. Later changes to the file affect no run.
pub fn of_file(parameters: &BTreeMap<String, String>) -> Result<Option<String>> {
    let model = parameters.get(MODEL);
    let Some(path) = model.filter(|word| word.ends_with(".csv")) else {
        return Ok(None);
    };
    let text =
        read_named(Path::new(path)).with_context(|| format!("{MODEL} = {path}: cannot be read"))?;
    let rows = rows_of(&text, remote(parameters)?).map_err(|fault| match fault {
        (Some(line), why) => anyhow!("{MODEL} = {path}, line {line}: {why}"),
        (None, why) => anyhow!("{MODEL} = {path}: {why}"),
    })?;
    Ok(Some(rows))
}

/// The line of a fault in a file, if known, and what is wrong there.
type FileFault = (Option<usize>, String);

fn rows_of(text: &str, remote: f64) -> Result<String, FileFault> {
    let (form, lines) = lines_of(text)?;
    // Births per unit of time; a block of a joint table counts as often as its weight says.
    let place_of_weight = usize::from(form == Form::Joint);
    let all: f64 = lines.iter().map(|line| line.numbers[place_of_weight]).sum();
    if lines.len() > MOST_CLASSES {
        let why = format!("{} rows, {MOST_CLASSES} at most", lines.len());
        return Err((None, why));
    }
    if all <= 0.0 {
        return Err((None, "no row has a weight above 0".into()));
    }
    let rows = lines.iter().map(|Line { size, numbers }| {
        let (lifetime, weight) = match form {
            Form::Joint => (numbers[0], numbers[1]),
            // A size that is never allocated has no lifetime.
            Form::Fleetbench if numbers[0] > 0.0 => (numbers[1] / numbers[0] * all, numbers[0]),
            Form::Fleetbench => (0.0, 0.0),
        };
        let remote = numbers.get(2).unwrap_or(&remote);
        format!("{size}:{lifetime}:{weight}:{remote}")
    });
    let unit = match form {
        Form::Joint => "bytes",
        Form::Fleetbench => "births",
    };
    Ok(format!("{unit} {}", joined(rows, ",")))
}

fn lines_of(text: &str) -> Result<(Form, Vec<Line>), FileFault> {
    // The profiles of fleetbench have no header.
    let (mut names, mut form) = HEADERS[2];
    let mut lines = Vec::new();
    let full = text
        .lines()
        .enumerate()
        .map(|(place, line)| (place + 1, line));
    let full = full.filter(|(_, line)| !line.trim().is_empty());
    for (place, (number, line)) in full.enumerate() {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        let fault = |why: String| (Some(number), why);
        if place == 0 && words[0].parse::<f64>().is_err() {
            let found = HEADERS.iter().find(|(names, _)| words == *names);
            (names, form) = *found.ok_or_else(|| {
                let known = joined(HEADERS.iter().map(|(names, _)| names.join(",")), " or ");
                fault(format!("expected the columns {known}"))
            })?;
            continue;
        }
        if words.len() != names.len() {
            let (has, names) = (words.len(), names.join(","));
            return Err(fault(format!("{has} columns, expected {names}")));
        }
        let size = words[0].parse().map_err(|_| {
            let word = words[0];
            fault(format!(
                "size = `{word}`: expected a whole number of bytes below 4 GiB"
            ))
        })?;
        let numbers: Result<Vec<f64>, String> = (names.iter().zip(words).skip(1))
            .map(|(name, word)| number_of(name, word))
            .collect();
        let numbers = numbers.map_err(fault)?;
        if form == Form::Fleetbench && numbers[0] == 0.0 && numbers[1] > 0.0 {
            return Err(fault(
                "live blocks, and none that are born: rate is 0".into(),
            ));
        }
        lines.push(Line { size, numbers });
    }
    Ok((form, lines))
}

fn number_of(column: &str, word: &str) -> Result<f64, String> {
    let (most, says) = match column {
        "remote" => (100.0, "0 to 100"),
        _ => (f64::MAX, "0 or more"),
    };
    let number = word
        .parse()
        .ok()
        .filter(|number| (0.0..=most).contains(number));
    number.ok_or_else(|| format!("{column} = `{word}`: expected a number, {says}"))
}

fn mixture(factor: f64) -> Vec<Row> {
    let classes = FLEET.split(',').filter_map(|class| {
        let (size, per_100_000) = class.split_once(':')?;
        Some((size.parse().ok()?, per_100_000.parse::<f64>().ok()?))
    });
    let mut rows = Vec::new();
    for (size, per_100_000) in classes {
        let of_size = CHANCES.iter().find(|(largest, _)| size <= *largest);
        let chances = of_size.map_or([0.0; 3], |(_, chances)| *chances);
        for (place, (mean, chance)) in MEAN_BIRTHS.into_iter().zip(chances).enumerate() {
            let is_short = place == 0;
            rows.push(Row {
                size,
                lifetime: if is_short { mean } else { mean * factor },
                share: per_100_000 / 1e5 * chance,
                is_short,
            });
        }
    }
    rows
}

/// Returns the percentage of the blocks that other threads free.
fn remote(parameters: &BTreeMap<String, String>) -> Result<f64> {
    let remote = number(parameters, "remote")?;
    if remote > 100.0 {
        bail!("remote = {remote}: 100 at most");
    }
    Ok(remote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(set: &[(&str, &str)]) -> BTreeMap<String, String> {
        let base = [("model", "fleet"), ("live", "23068672"), ("remote", "20")];
        base.iter()
            .chain(set)
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn the_mixture_has_its_check_values() {
        let rows = mixture(1.0);
        let sum = |value: &dyn Fn(&Row) -> f64| rows.iter().map(value).sum::<f64>();
        let live = sum(&|row| row.share * row.lifetime);
        let bytes = sum(&|row| row.share * row.lifetime * f64::from(row.size));
        let short = sum(&|row| row.share * f64::from(u8::from(row.is_short)));
        assert_eq!((live / 100.0).round(), 264.0, "{live}");
        assert_eq!((bytes / (1 << 20) as f64 * 10.0).round(), 219.0, "{bytes}");
        assert_eq!((short * 100.0).round(), 77.0, "{short}");
    }

    #[test]
    fn what_is_live_does_not_depend_on_the_number_of_threads() {
        for threads in [1, 2, 7] {
            let text = of_mixture(&parameters(&[]), threads).unwrap().unwrap();
            let rows = text.strip_prefix("births ").unwrap().split(',');
            let (mut live, mut births) = (0.0, 0.0);
            for row in rows {
                let words: Vec<f64> = row.split(':').map(|word| word.parse().unwrap()).collect();
                live += words[0] * words[1] * words[2];
                births += words[2];
                assert_eq!(words[3], 20.0);
            }
            let live = live / births / 23_068_672.0;
            assert!((live - 1.0).abs() < 0.001, "{threads}: {live}");
        }
    }

    #[test]
    fn a_file_gives_its_rows() {
        let rows = |text: &str| rows_of(text, 20.0).unwrap();
        assert_eq!(
            rows("size,lifetime_bytes,weight\n16,16,3\n4096,1000000.5,1\n"),
            "bytes 16:16:3:20,4096:1000000.5:1:20"
        );
        assert_eq!(
            rows("size, lifetime_bytes, weight, remote\n8, 1, 1, 0\n9, 2, 1, 12.5\n"),
            "bytes 8:1:1:0,9:2:1:12.5"
        );
        // 4 births in all per unit of time: 2 / 1 of it, and 6 / 3.
        for header in ["", "size,rate,live\n"] {
            assert_eq!(
                rows(&format!("{header}8, 1.0, 2.0\n24, 3, 6\n7, 0, 0\n")),
                "births 8:8:1:20,24:8:3:20,7:0:0:20"
            );
        }
    }

    #[test]
    fn a_fault_of_a_file_is_named_with_its_line() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("m.csv");
        let path = file.to_str().unwrap();
        let fault_of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let error = of_file(&parameters(&[("model", path)])).unwrap_err();
            format!("{error:#}")
        };
        let joint = "size,lifetime_bytes,weight\n";
        for (text, expected) in [
            ("", ": no row has a weight above 0"),
            (joint, ": no row has a weight above 0"),
            (
                "size,count\n1,2\n",
                ", line 1: expected the columns size,lifetime_bytes",
            ),
            (
                &format!("{joint}16,1,1\n16,1\n"),
                ", line 3: 2 columns, expected size,lifetime",
            ),
            (&format!("{joint}16,1,1,1\n"), ", line 2: 4 columns"),
            (&format!("{joint}-1,1,1\n"), ", line 2: size = `-1`"),
            (
                &format!("{joint}5000000000,1,1\n"),
                ", line 2: size = `5000000000`",
            ),
            (
                &format!("{joint}\n16,-1,1\n"),
                ", line 3: lifetime_bytes = `-1`",
            ),
            (&format!("{joint}16,1,nan\n"), ", line 2: weight = `nan`"),
            (&format!("{joint}16,1,inf\n"), ", line 2: weight = `inf`"),
            (&format!("{joint}16,1,0\n"), ": no row has a weight above 0"),
            (
                "size,lifetime_bytes,weight,remote\n1,1,1,101\n",
                ", line 2: remote = `101`",
            ),
            ("8, 1.0, x\n", ", line 1: live = `x`"),
            ("8, 0, 1\n", ", line 1: live blocks, and none that are born"),
        ] {
            let fault = fault_of(text);
            assert!(fault.starts_with(&format!("model = {path}")), "{fault}");
            assert!(
                fault.contains(expected) && !fault.contains('\n'),
                "{text:?}: {fault}"
            );
        }
        let most = "16,1,1\n".repeat(MOST_CLASSES + 1);
        assert!(fault_of(&format!("{joint}{most}")).contains("4097 rows, 4096 at most"));
        let gone = of_file(&parameters(&[("model", "/nowhere/m.csv")])).unwrap_err();
        assert!(format!("{gone:#}").contains("cannot be read"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |set: &[(&str, &str)]| {
            let fault = of_mixture(&parameters(set), 2).unwrap_err();
            fault.to_string()
        };
        assert!(error(&[("live", "1000")]).contains("too little for 2 threads"));
        assert!(error(&[("remote", "101")]).contains("100 at most"));
        assert_eq!(of_mixture(&BTreeMap::new(), 1).unwrap(), None);
    }
}
