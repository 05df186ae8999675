//! Which allocators had transparent huge pages, if the run measured memory: these make page faults
//! rarer and memory use larger, and depend on a setting of the machine as much as on the allocator.

use super::Table;

/// The key of the metric for the share of memory in huge pages.
const SHARE: &str = "huge_share";

/// The largest share of huge pages of each allocator that ranks and has such a share, over the
/// cases without a factor, in the order of the tables.
pub(super) fn shares(tables: &[Table]) -> Vec<(String, f64)> {
    let plain = tables.iter().filter(|table| table.factor.is_none());
    let rows = plain.flat_map(|table| &table.rows);
    let mut shares: Vec<(String, f64)> = Vec::new();
    for row in rows.filter(|row| row.role.ranks()) {
        let Some(cell) = row.cell(SHARE) else {
            continue;
        };
        let share = cell.spread.max;
        match shares.iter_mut().find(|(name, _)| *name == row.allocator) {
            Some((_, most)) => *most = most.max(share),
            None => shares.push((row.allocator.clone(), share)),
        }
    }
    shares
}
