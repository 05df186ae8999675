//! A record as metrics see it.

use crate::metric::{Process, Sample};
use crate::store::Record;

/// A record as metrics see it; `None` without a measurement.
pub fn sample(record: &Record) -> Option<Sample<'_>> {
    let measurement = record.measurement.as_ref()?;
    Some(Sample {
        measurement,
        process: Process::new(measurement, record.threads),
        memory: record.memory.as_deref(),
        mean_heap: record.mean_heap.as_deref(),
    })
}
