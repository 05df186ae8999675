//! Converts a record to the input of metrics.

use crate::metric::{Process, Sample};
use crate::store::Record;

/// Converts a record to the input of metrics; `None` without a measurement.
pub fn sample(record: &Record) -> Option<Sample<'_>> {
    let measurement = record.measurement.as_ref()?;
    Some(Sample {
        measurement,
        process: Process::new(measurement, record.threads),
        memory: record.memory.as_deref(),
        mean_heap: record.mean_heap.as_deref(),
    })
}
