//! Size distributions of the llheap workloads: classes and how often each is drawn. The
//! distributions are those of LL, or come from a file that `heapmark trace export --sizes` writes.

use anyhow::{Context, Result, bail};
use heapmark_catalog::file::read_named;
use heapmark_catalog::joined;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use std::collections::BTreeMap;
use std::path::Path;

/// The approximate sum of all weights; the guest draws with 32 bits.
const SCALE: f64 = 1e9;

/// The most classes of a distribution: a whole job must fit into [`heapmark_wire::JOB_BYTES`].
pub const MOST_CLASSES: usize = 4096;

/// One line of a file with sizes.
#[derive(serde::Deserialize)]
struct Line {
    size: u32,
    count: u64,
}

/// Returns `SIZE:WEIGHT,…` of a file with the columns `size` and `count`; `None` if `distribution`
/// names no file. The file is read once, with the plan: later changes to it affect no run.
pub fn of_file(parameters: &BTreeMap<String, String>) -> Result<Option<String>> {
    let Some(path) = parameters
        .get("distribution")
        .filter(|word| word.ends_with(".csv"))
    else {
        return Ok(None);
    };
    let text = read_named(Path::new(path))
        .with_context(|| format!("distribution = {path}: cannot be read"))?;
    let lines: Result<Vec<Line>, csv::Error> = csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect();
    let lines = lines.with_context(|| {
        format!("distribution = {path}: expected lines SIZE,COUNT below `size,count`")
    })?;
    let all: f64 = lines.iter().map(|line| line.count as f64).sum();
    if all <= 0.0 || lines.len() > MOST_CLASSES {
        bail!(
            "distribution = {path}: {} sizes that come {all} times; 1 to {MOST_CLASSES} are needed",
            lines.len()
        );
    }
    // Every size that occurs keeps a chance of at least one in a billion.
    let weight = |count: u64| {
        (count as f64 / all * SCALE)
            .round()
            .max(f64::from(count > 0))
    };
    let classes = lines
        .iter()
        .map(|line| format!("{}:{}", line.size, weight(line.count)));
    Ok(Some(joined(classes, ",")))
}

/// The sizes that servers request, within the ten production profiles of fleetbench (`TCMALLOC_0` to `9`): each size, and how many of
/// 100,000 requests have it.
pub const FLEET: &str = "8:4000,16:10000,24:8000,32:16000,48:14000,64:12000,96:8000,128:6000,192:5000,256:4000,384:3000,\
                     512:2500,768:1800,1024:1500,2048:1800,4096:1500,8192:600,16384:180,32768:80,65536:30,262144:8,\
                     1048576:2";

/// Returns `SIZE:WEIGHT,…` for workloads that draw from classes; `None` for others. (scatter-loops
/// has distributions of its own.)
pub fn classes(parameters: &BTreeMap<String, String>) -> Result<Option<String>> {
    let word = parameters.get("distribution").map(String::as_str);
    if word == Some("fleet") {
        return Ok(Some(FLEET.into()));
    }
    let Some(distribution) = word.filter(|word| matches!(*word, "fisher" | "uniform")) else {
        return Ok(None);
    };
    let number = |name| number(parameters, name);
    let min = number("min-size")?;
    let max = number("max-size")?;
    let step = number("step")?;
    if max < min {
        bail!("max-size = {max} is below min-size = {min}");
    }
    let count = if step > 0.0 {
        ((max - min) / step).floor() as usize + 1
    } else {
        1
    };
    if count > MOST_CLASSES {
        bail!(
            "{count} size classes from {min} to {max} by {step}: {MOST_CLASSES} at most, raise `step`"
        );
    }
    let weights = match distribution {
        "uniform" => vec![1.0 / count as f64; count],
        _ => fisher(
            count,
            number("fisher-d1")?,
            number("fisher-d2")?,
            number("fisher-cut")?,
        )?,
    };
    let classes = weights.iter().enumerate().map(|(class, weight)| {
        format!("{}:{}", min + class as f64 * step, (weight * SCALE).round())
    });
    Ok(Some(joined(classes, ",")))
}

/// Returns a numeric parameter's value.
pub fn number(parameters: &BTreeMap<String, String>, name: &str) -> Result<f64> {
    let text = parameters
        .get(name)
        .with_context(|| format!("parameter `{name}` is missing"))?;
    text.parse()
        .with_context(|| format!("parameter `{name}` = `{text}` is no number"))
}

/// Returns the F distribution, cut at a quantile Q and divided into `count` equal stretches: class
/// i has the probability of the stretch from i Q / count to (i + 1) Q / count.
fn fisher(count: usize, d1: f64, d2: f64, cut: f64) -> Result<Vec<f64>> {
    let f = FisherSnedecor::new(d1, d2)
        .with_context(|| format!("fisher-d1 = {d1}, fisher-d2 = {d2}: both must be above 0"))?;
    if !(cut > 0.0 && cut < 1.0) {
        bail!("fisher-cut = {cut}: must be above 0 and below 1");
    }
    let quantile = f.inverse_cdf(cut);
    let below = |class: usize| f.cdf(class as f64 * quantile / count as f64);
    Ok((0..count)
        .map(|class| (below(class + 1) - below(class)) / cut)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(distribution: &str, set: &[(&str, &str)]) -> BTreeMap<String, String> {
        let base = [
            ("distribution", distribution),
            ("min-size", "50"),
            ("max-size", "500"),
            ("step", "50"),
            ("fisher-d1", "10"),
            ("fisher-d2", "10"),
            ("fisher-cut", "0.99"),
        ];
        base.iter()
            .chain(set)
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    }

    #[test]
    fn fisher_has_its_probabilities() {
        let expected = [
            0.1360, 0.3500, 0.2391, 0.1279, 0.0669, 0.0361, 0.0203, 0.0119, 0.0072, 0.0046,
        ];
        let weights = fisher(10, 10.0, 10.0, 0.99).unwrap();
        for (weight, expected) in weights.iter().zip(expected) {
            assert!((weight - expected).abs() < 5e-5, "{weight} {expected}");
        }
        assert!((FisherSnedecor::new(10.0, 10.0).unwrap().inverse_cdf(0.99) - 4.8491).abs() < 1e-4);
    }

    #[test]
    fn fleet_has_its_check_values() {
        let text = classes(&parameters("fleet", &[])).unwrap().unwrap();
        let all: Vec<(f64, f64)> = (text.split(','))
            .map(|class| class.split_once(':').unwrap())
            .map(|(size, weight)| (size.parse().unwrap(), weight.parse().unwrap()))
            .collect();
        let sum = |value: fn(&(f64, f64)) -> f64| all.iter().map(value).sum::<f64>();
        let (calls, bytes) = (sum(|class| class.1), sum(|class| class.0 * class.1));
        assert_eq!((calls, (bytes / calls).round()), (100_000.0, 377.0));
        let small = |value: fn(&(f64, f64)) -> f64| {
            let small = all.iter().filter(|class| class.0 <= 1024.0);
            small.map(value).sum::<f64>()
        };
        assert_eq!((small(|class| class.1) / calls * 1000.0).round(), 958.0);
        let of_bytes = small(|class| class.0 * class.1) / bytes;
        assert_eq!((of_bytes * 1000.0).round(), 297.0);
    }

    #[test]
    fn one_class_and_class_of_size_zero_are_fine() {
        assert_eq!(
            classes(&parameters("uniform", &[("max-size", "50")]))
                .unwrap()
                .unwrap(),
            "50:1000000000"
        );
        let zero = classes(&parameters(
            "uniform",
            &[("min-size", "0"), ("max-size", "0")],
        ))
        .unwrap()
        .unwrap();
        assert_eq!(zero, "0:1000000000");
        assert_eq!(classes(&BTreeMap::new()).unwrap(), None);
    }

    #[test]
    fn a_file_gives_its_sizes_with_their_weights_or_says_what_it_lacks() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("x.csv");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            of_file(&parameters(file.to_str().unwrap(), &[])).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(
            of("size,count\n16,3\n48,1\n0,0\n").unwrap().unwrap(),
            "16:750000000,48:250000000,0:0"
        );
        assert_eq!(
            of("count,size\n1,16\n99999999999999,32\n")
                .unwrap()
                .unwrap(),
            "16:1,32:1000000000"
        );
        for wrong in [
            "",
            "size,count\n",
            "size,count\n16,0\n",
            "size\n16\n",
            "size,count\n-1,2\n",
            "size,count\n1,2,3\n",
        ] {
            assert!(of(wrong).is_err_and(|why| why.contains("x.csv")), "{wrong}");
        }
        assert!(of_file(&parameters("/nowhere/x.csv", &[])).is_err());
        assert_eq!(of_file(&parameters("fisher", &[])).unwrap(), None);
    }

    #[test]
    fn nonsense_is_refused() {
        let error = |set| classes(&parameters("fisher", set)).unwrap_err().to_string();
        assert!(error(&[("max-size", "10")]).contains("below min-size"));
        assert!(error(&[("fisher-d1", "0")]).contains("above 0"));
        assert!(error(&[("fisher-cut", "1")]).contains("below 1"));
        assert!(error(&[("max-size", "500000")]).contains("4096 at most"));
    }
}
