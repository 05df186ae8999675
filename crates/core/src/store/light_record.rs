//! Records reduced to what tables need: most bytes of a million samples are evidence, which is
//! skipped.

use super::{Purpose, Record};
use crate::execute::{Iteration, Thin};
use serde::Deserialize;
use serde::de::value::{CowStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;

/// Keys that prove a record, but that no table shows.
const EVIDENCE: [&str; 3] = ["usage", "proof", "environment"];

/// Reads the identity and measurement of a process. A sample keeps only the figures that `reads` accepts.
pub fn record(line: &[u8], reads: fn(&str) -> bool) -> serde_json::Result<Record> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let mut record = json.deserialize_map(Shorter)?;
    json.end()?;
    forget_details(&mut record, reads);
    Ok(record)
}

fn forget_details(record: &mut Record, reads: fn(&str) -> bool) {
    record.started = String::new();
    let Some(measurement) = &mut record.measurement else {
        return;
    };
    (measurement.calls, measurement.threads) = (Thin::default(), Thin::default());
    if record.purpose == Purpose::Sample {
        measurement.notes = Thin::default();
        // Collected into a new map: a map that was emptied keeps its memory.
        let figures = std::mem::take(&mut measurement.figures).into_iter();
        measurement.figures = figures.filter(|(name, _)| reads(name)).collect();
    }
    measurement.iterations = sum(&measurement.iterations).into_iter().collect();
}

/// Sums the iterations that count, because tables divide sums by sums.
fn sum(iterations: &[Iteration]) -> Option<Iteration> {
    iterations
        .iter()
        .filter(|iteration| !iteration.cold)
        .cloned()
        .reduce(|sum, one| Iteration {
            cold: false,
            wall_ns: sum.wall_ns.saturating_add(one.wall_ns),
            purge_ns: sum.purge_ns.saturating_add(one.purge_ns),
            user_ns: sum.user_ns.saturating_add(one.user_ns),
            sys_ns: sum.sys_ns.saturating_add(one.sys_ns),
            minor_faults: sum.minor_faults.saturating_add(one.minor_faults),
            ops: sum.ops.saturating_add(one.ops),
        })
}

/// A deserializer that reads a [`Record`] without its evidence.
struct Shorter;

impl<'de> Visitor<'de> for Shorter {
    type Value = Record;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Record, A::Error> {
        Record::deserialize(MapAccessDeserializer::new(WithoutEvidence(map)))
    }
}

struct WithoutEvidence<A>(A);

/// A key of a record, borrowed from the line if it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutEvidence<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(Key(key)) = self.0.next_key()? {
            if !EVIDENCE.contains(&&*key) {
                return seed.deserialize(CowStrDeserializer::new(key)).map(Some);
            }
            self.0.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}
