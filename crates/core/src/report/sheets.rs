//! The tables of a run of any kind, in their order.

use super::sheet::Sheet;
use super::{count, footprint, latency, limit, timed};
use crate::analyse::Analysis;

/// All tables.
pub fn all(analysis: &Analysis) -> Vec<Sheet> {
    timed::sheets(analysis)
        .into_iter()
        .chain(latency::sheets(analysis))
        .chain(count::sheets(analysis))
        .chain(footprint::sheets(analysis))
        .chain(limit::sheets(analysis))
        .collect()
}
