//! The files in `latency/`: how many calls took how long, one line per function and non-empty
//! bucket.

use super::{Record, tables};
use crate::execute::Latency;
use crate::execute::latency::Bucket;
use std::path::Path;

/// Returns the counts as a table.
pub fn table(latency: &Latency) -> String {
    let mut text = String::from("function,from_ns,to_ns,count\n");
    for calls in &latency.functions {
        for bucket in &calls.buckets {
            let from_ns = bucket.from_ns;
            let to_ns = bucket.to_ns;
            text += &format!("{},{from_ns},{to_ns},{}\n", calls.function, bucket.count);
        }
    }
    text
}

/// Adds the counts to a record; a record whose file lacks them loses its latency.
pub fn count(dir: &Path, record: &mut Record) {
    let Some(latency) = record
        .measurement
        .as_mut()
        .and_then(|measurement| measurement.latency.take())
    else {
        return;
    };
    let table = tables::read(dir, tables::LATENCY, record);
    if let Some(measurement) = &mut record.measurement {
        measurement.latency = table
            .and_then(|table| with_counts(*latency, &table))
            .map(Box::new);
    }
}

/// Returns the record's latency with the counts of its file; `None` if the file does not hold all
/// calls that the record counts: part of a tail is no tail.
fn with_counts(mut latency: Latency, table: &str) -> Option<Latency> {
    for line in csv::Reader::from_reader(table.as_bytes()).into_records() {
        // By position: after the function the columns are the fields of a bucket, in their order.
        let (function, bucket): (String, Bucket) = line.ok()?.deserialize(None).ok()?;
        latency
            .functions
            .iter_mut()
            .find(|calls| calls.function == function)?
            .buckets
            .push(bucket);
    }
    latency
        .functions
        .iter()
        .all(|calls| {
            calls
                .buckets
                .iter()
                .map(|bucket| bucket.count)
                .try_fold(0u64, u64::checked_add)
                == Some(calls.count)
        })
        .then_some(latency)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::latency::{Calls, Stall};

    fn latency() -> Latency {
        let bucket = |from_ns, to_ns, count| Bucket {
            from_ns,
            to_ns,
            count,
        };
        let calls = |function: &str, buckets: Vec<Bucket>| Calls {
            function: function.into(),
            count: buckets.iter().map(|bucket| bucket.count).sum(),
            longest: Stall {
                ns: 300,
                bytes: None,
                at_ns: 5,
            },
            buckets,
        };
        let functions = vec![
            calls("malloc", vec![bucket(7, 7, 3), bucket(300, 303, 1)]),
            calls("free", vec![bucket(8, 8, 1)]),
        ];
        Latency {
            every: 1,
            clock: "rdtsc".into(),
            functions,
            ..Latency::default()
        }
    }

    /// Latencies as read from a line of `samples.jsonl`.
    fn told() -> Latency {
        serde_json::from_str(&serde_json::to_string(&latency()).unwrap()).unwrap()
    }

    #[test]
    fn record_and_file_together_are_what_was_stored() {
        assert!(
            told()
                .functions
                .iter()
                .all(|calls| calls.buckets.is_empty())
        );
        assert_eq!(with_counts(told(), &table(&latency())), Some(latency()));
    }

    #[test]
    fn a_file_that_is_gone_torn_or_anothers_is_no_result() {
        let whole = table(&latency());
        let torn = &whole[..whole.len() - 4];
        for text in [
            "",
            torn,
            &whole.replace("7,7,3", "7,7,2"),
            &whole.replace("free", "fred"),
            &format!("{whole}x"),
        ] {
            assert_eq!(with_counts(told(), text), None, "{text}");
        }
    }
}
