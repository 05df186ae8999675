//! Reads records again, complete and one by one: all of a million samples at once would be too
//! many.

use super::checksum::is_intact;
use super::line::next_line;
use super::{Paths, Record, latency, open_samples, samples_of};
use crate::file::WithPath;
use anyhow::{Result, bail};
use std::io::BufReader;
use std::path::PathBuf;

/// The positions of a run's records in its `samples.jsonl`.
pub struct Lines {
    pub(super) dir: PathBuf,
    pub(super) paths: Paths,
    /// The first byte of each record's line, in the order of [`Run::records`](super::Run::records).
    pub(super) places: Vec<u64>,
}

impl Lines {
    /// Returns the records as [`read`](super::read) returns them, in the same order.
    pub fn records(&self) -> impl Iterator<Item = Result<Record>> {
        let mut samples = None;
        let mut line = Vec::new();
        let mut at = 0;
        self.places.iter().map(move |place| {
            let path = samples_of(&self.dir);
            let mut read = || -> std::io::Result<()> {
                let samples = match &mut samples {
                    Some(open) => open,
                    none => none.insert(BufReader::new(open_samples(&self.dir)?)),
                };
                samples.seek_relative(*place as i64 - at as i64)?;
                at = place + next_line(samples, &mut line)?;
                Ok(())
            };
            read().with_path("cannot read", &path)?;
            match serde_json::from_slice::<Record>(&self.paths.of(&line)) {
                Ok(mut record) if is_intact(&line) => {
                    latency::count(&self.dir, &mut record);
                    Ok(record)
                }
                _ => bail!("{} has changed while it was read", path.display()),
            }
        })
    }
}
