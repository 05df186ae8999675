//! A hash of addresses that keeps neighbours together: programs allocate and free in runs of
//! addresses, and a table that scatters them waits for memory at each one.

use foldhash::fast::{FoldHasher, RandomState};
use std::hash::{BuildHasher, Hasher};

/// The usual distance between neighbouring blocks, as a power of two.
const GRANULE_BITS: u32 = 4;
/// The number of granules in a region, as a power of two. Granules of one region stay together; the
/// place of a region is unpredictable.
const REGION_BITS: u32 = 5;
/// The table uses the highest seven bits of a hash to distinguish an entry from those beside it.
const TAG_SHIFT: u32 = 57;

/// The builder of a table's hashers.
#[derive(Default)]
pub struct Near(RandomState);

/// The hasher of an address.
pub struct Hash {
    region: FoldHasher<'static>,
    granule: u64,
}

impl BuildHasher for Near {
    type Hasher = Hash;

    #[inline]
    fn build_hasher(&self) -> Hash {
        Hash {
            region: self.0.build_hasher(),
            granule: 0,
        }
    }
}

impl Hasher for Hash {
    fn write(&mut self, _: &[u8]) {
        unreachable!("an address is a number");
    }

    #[inline]
    fn write_u64(&mut self, address: u64) {
        self.granule = address >> GRANULE_BITS;
        self.region.write_u64(self.granule >> REGION_BITS);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let within = (1 << REGION_BITS) - 1;
        (self.region.finish() & !within | self.granule & within) ^ self.granule << TAG_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn neighbours_lie_side_by_side_and_are_told_apart() {
        let near = Near::default();
        let hashes: Vec<u64> = (0..32u64)
            .map(|granule| near.hash_one(0x7f12_3456_0000 + granule * 16))
            .collect();
        let places: HashSet<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
        let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> TAG_SHIFT).collect();
        assert_eq!((places.len(), tags.len()), (32, 32));
        assert!(places.iter().max().unwrap() - places.iter().min().unwrap() == 31);
    }

    #[test]
    fn addresses_that_only_differ_below_a_granule_are_still_others() {
        let mut table: HashMap<u64, u64, Near> = HashMap::default();
        (0..100_000u64).for_each(|address| assert_eq!(table.insert(address, address), None));
        assert!(
            (0..100_000).all(|address| table.remove(&address) == Some(address)) && table.is_empty()
        );
    }
}
