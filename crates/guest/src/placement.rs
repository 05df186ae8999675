//! Where blocks lie, counted from their addresses in the order in which a program visits them: exact,
//! and the same on every machine that gives the same addresses.

use crate::memory::HarnessTable;

const LINE_SHIFT: u32 = 6;
const PAGE_SHIFT: u32 = 12;
const REGION_SHIFT: u32 = 21;

/// Entries of two typical TLBs for 4 KiB pages, and cache lines in 1 MiB.
const FIRST_TLB: u32 = 64;
const SECOND_TLB: u32 = 1536;
const CACHE_LINES: u32 = 16384;

/// Pages are counted over this many nodes in a row.
const WINDOW: u32 = 1000;

/// The figures of a visit of all nodes.
#[derive(Clone, Copy, Default)]
pub struct Placement {
    /// Mean number of distinct pages on which 1000 nodes in a row lie.
    pub pages_per_1000_nodes: f64,
    pub lines_per_node: f64,
    pub regions: u32,
    /// Shares of nodes whose successor lies within a line's, a page's and a region's distance.
    pub near_shares: [f64; 3],
    /// Misses per node in the second visit of all nodes.
    pub first_tlb_misses_per_node: f64,
    pub second_tlb_misses_per_node: f64,
    pub cache_misses_per_node: f64,
}

/// Counts the placement of `nodes` nodes. `visit` calls its argument with the address and bytes of each piece that is
/// read, and with whether a node begins there; `visit` is called several times.
pub fn of(nodes: usize, visit: impl Fn(&mut dyn FnMut(usize, usize, bool))) -> Placement {
    let mut pieces = 0;
    visit(&mut |from, bytes, _| pieces += lines(from, bytes).count());
    let accesses = 2 * pieces;
    let mut lines_seen = ReuseDistances::new(accesses);
    let mut pages_seen = ReuseDistances::new(accesses);
    let mut regions_seen = ReuseDistances::new(accesses);
    let mut placement = Placement::default();
    let (mut window, mut window_pages, mut in_window) = (0, 0u64, 0);
    let mut before = None;
    let mut near = [0u64; 3];
    for is_second in [false, true] {
        let (mut first_tlb, mut second_tlb, mut cache) = (0u64, 0u64, 0u64);
        visit(&mut |from, bytes, is_node| {
            if is_node && !is_second {
                if in_window == WINDOW {
                    (window, in_window) = (pages_seen.time, 0);
                }
                in_window += 1;
                if let Some(before) = before.replace(from) {
                    let shifts = [LINE_SHIFT, PAGE_SHIFT, REGION_SHIFT];
                    for (near, shift) in near.iter_mut().zip(shifts) {
                        *near += u64::from(from.abs_diff(before) <= 1 << shift);
                    }
                }
            }
            for line in lines(from, bytes) {
                let touched = lines_seen.touch(line);
                cache += u64::from(touched.misses(CACHE_LINES));
                let touched = pages_seen.touch(line >> (PAGE_SHIFT - LINE_SHIFT));
                window_pages += u64::from(!is_second && touched.is_new_since(window));
                first_tlb += u64::from(touched.misses(FIRST_TLB));
                second_tlb += u64::from(touched.misses(SECOND_TLB));
                regions_seen.touch(line >> (REGION_SHIFT - LINE_SHIFT));
            }
        });
        let per_node = |count: u64| count as f64 / nodes as f64;
        placement.first_tlb_misses_per_node = per_node(first_tlb);
        placement.second_tlb_misses_per_node = per_node(second_tlb);
        placement.cache_misses_per_node = per_node(cache);
    }
    let nodes = nodes as f64;
    placement.pages_per_1000_nodes = window_pages as f64 / nodes * f64::from(WINDOW);
    placement.lines_per_node = f64::from(lines_seen.distinct) / nodes;
    placement.regions = regions_seen.distinct;
    placement.near_shares = near.map(|near| near as f64 / (nodes - 1.0).max(1.0));
    placement
}

/// The cache lines that these bytes lie in.
fn lines(from: usize, bytes: usize) -> impl Iterator<Item = usize> {
    from >> LINE_SHIFT..=(from + bytes.max(1) - 1) >> LINE_SHIFT
}

/// Reuse distances: how many other keys were touched since a key was last touched. A cache that evicts the least
/// recently used entry misses exactly if this is not below the cache's number of entries.
struct ReuseDistances {
    /// Each key plus one, and when the key was last touched.
    last: HarnessTable<(usize, u32)>,
    /// A tree of sums over times: 1 at each time at which some key was last touched.
    sums: HarnessTable<u32>,
    time: u32,
    distinct: u32,
}

/// A touch of a key, with the previous touch of the same key.
#[derive(Clone, Copy)]
struct Touched {
    before: Option<Before>,
}

#[derive(Clone, Copy)]
struct Before {
    time: u32,
    /// Number of other keys touched since that time.
    distance: u32,
}

impl Touched {
    fn misses(self, entries: u32) -> bool {
        self.before.is_none_or(|before| before.distance >= entries)
    }

    fn is_new_since(self, time: u32) -> bool {
        self.before.is_none_or(|before| before.time < time)
    }
}

impl ReuseDistances {
    fn new(touches: usize) -> ReuseDistances {
        ReuseDistances {
            last: HarnessTable::zeroed((2 * touches).next_power_of_two()),
            sums: HarnessTable::zeroed(touches + 1),
            time: 0,
            distinct: 0,
        }
    }

    fn touch(&mut self, key: usize) -> Touched {
        let mask = self.last.len() - 1;
        let mut place = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & mask;
        while self.last[place].0 != 0 && self.last[place].0 != key + 1 {
            place = (place + 1) & mask;
        }
        let known = self.last[place].0 != 0;
        let time = self.time;
        let before = known.then(|| {
            let last = self.last[place].1;
            // All keys except those that have not been touched since then, this key among them.
            let distance = self.distinct - self.sum(last + 1);
            self.add(last, -1);
            Before {
                time: last,
                distance,
            }
        });
        self.distinct += u32::from(!known);
        self.last[place] = (key + 1, time);
        self.add(time, 1);
        self.time += 1;
        Touched { before }
    }

    /// Adds `by` to the entry at a time.
    fn add(&mut self, time: u32, by: i32) {
        let mut node = time as usize + 1;
        while node < self.sums.len() {
            self.sums[node] = self.sums[node].wrapping_add_signed(by);
            node += node & node.wrapping_neg();
        }
    }

    /// The sum of all entries before a time.
    fn sum(&self, time: u32) -> u32 {
        let (mut node, mut sum) = (time as usize, 0);
        while node > 0 {
            sum += self.sums[node];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix;

    #[test]
    fn distances_are_those_of_a_list_kept_in_order() {
        let mut random = SplitMix::new(1, 0);
        let mut seen = ReuseDistances::new(2000);
        let mut recent = [usize::MAX; 60];
        for _ in 0..2000 {
            let key = random.below(60) as usize;
            let place = recent.iter().position(|&entry| entry == key);
            let touched = seen.touch(key);
            assert_eq!(touched.before.map(|before| before.distance as usize), place);
            for entries in [1, 10, 59] {
                let misses = place.is_none_or(|place| place >= entries as usize);
                assert_eq!(touched.misses(entries), misses);
            }
            recent[..=place.unwrap_or(59)].rotate_right(1);
            recent[0] = key;
        }
        assert_eq!(seen.distinct, 60);
    }

    #[test]
    fn nodes_in_a_row_and_nodes_on_pages_of_their_own() {
        let strided = |stride: usize| {
            of(5000, |see| {
                (0..5000).for_each(|node| see((1 << 30) + node * stride, 24, true))
            })
        };
        let packed = strided(64);
        assert!((15.6..16.7).contains(&packed.pages_per_1000_nodes));
        assert_eq!(packed.lines_per_node, 1.0);
        assert_eq!(packed.regions, 1);
        assert_eq!(packed.near_shares, [1.0, 1.0, 1.0]);
        assert_eq!(packed.cache_misses_per_node, 0.0);
        // 79 pages in turn do not fit into 64 entries.
        assert_eq!(packed.first_tlb_misses_per_node, 79.0 / 5000.0);
        assert_eq!(packed.second_tlb_misses_per_node, 0.0);

        let apart = strided(4096);
        assert_eq!(apart.pages_per_1000_nodes, 1000.0);
        assert_eq!(apart.near_shares, [0.0, 1.0, 1.0]);
        assert_eq!(apart.regions, 10);
        assert_eq!(apart.second_tlb_misses_per_node, 1.0);
        assert_eq!(apart.cache_misses_per_node, 0.0);
        assert_eq!(strided(4160).near_shares, [0.0, 0.0, 1.0]);
    }
}
