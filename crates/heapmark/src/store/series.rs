//! Reads the files in `series/`: memory over time of one process, column by column.

use super::{SERIES, file_of};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Memory over time of one process, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Phase of each point.
    pub phases: Vec<String>,
    /// The other columns by name; `None` where the process did not publish a number.
    pub columns: BTreeMap<String, Vec<Option<u64>>>,
}

impl Series {
    /// A column whose points are all there; `None` for one that is not.
    pub fn column(&self, name: &str) -> Option<Vec<u64>> {
        self.columns.get(name)?.iter().copied().collect()
    }
}

/// The series of a cell; `None` where none was recorded.
pub fn series(dir: &Path, cell: &str) -> Result<Option<Series>> {
    let path = file_of(dir, SERIES, cell);
    match fs::read_to_string(&path) {
        Ok(text) => parse(&text).map(Some).with_context(|| format!("{} is damaged", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn parse(text: &str) -> Result<Series> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers()?.clone();
    let mut series = Series::default();
    for line in reader.records() {
        for (head, cell) in heads.iter().zip(line?.iter()) {
            match (head, cell) {
                ("phase", phase) => series.phases.push(phase.into()),
                (head, "") => series.columns.entry(head.into()).or_default().push(None),
                (head, number) => match number.parse() {
                    Ok(number) => series.columns.entry(head.into()).or_default().push(Some(number)),
                    Err(_) => bail!("`{number}` is no number of {head}"),
                },
            }
        }
    }
    if series.phases.is_empty() {
        bail!("it has no point");
    }
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_a_gap_stays_one() {
        let series = parse("time_ns,phase,requested_live_bytes\n1,setup,\n2,run,30\n").unwrap();
        assert_eq!(series.phases, ["setup", "run"]);
        assert_eq!(series.column("time_ns"), Some(vec![1, 2]));
        assert_eq!(series.columns["requested_live_bytes"], [None, Some(30)]);
        assert_eq!((series.column("requested_live_bytes"), series.column("nothing")), (None, None));
    }

    #[test]
    fn a_cell_without_a_file_has_none_and_a_damaged_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(series(dir.path(), "memory@2/b00/glibc").unwrap(), None);
        fs::create_dir(dir.path().join(SERIES)).unwrap();
        for text in ["", "time_ns,phase\n", "time_ns,phase\nsoon,run\n", "time_ns,phase\n1,run,3\n"] {
            fs::write(dir.path().join("series/memory@2_b00_glibc.csv"), text).unwrap();
            let error = series(dir.path(), "memory@2/b00/glibc").unwrap_err();
            assert!(error.to_string().contains("series/memory@2_b00_glibc.csv is damaged"), "{text}");
        }
    }
}
