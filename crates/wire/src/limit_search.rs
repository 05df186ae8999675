//! The search for the smallest limit on memory that suffices: the host searches for a workload's limit, and a guest for the
//! limit of processes that it starts itself.

/// Neighbouring limits differ by this factor, or by a page.
pub const STEP: f64 = 1.01;

/// Number of processes that decide about a limit if all of them end alike.
pub const ALIKE: u32 = 3;

/// Largest number of processes that are run under a limit if they do not all end alike; more than half of this number
/// decide.
const MOST: u32 = 9;

const PAGE_BYTES: u64 = 4096;
/// No process runs in less memory than this.
pub const LEAST_BYTES: u64 = 64 << 10;
/// Number of steps, about a factor of 2, after which a further limit is tried if the first one is too small or the
/// smallest one still suffices.
const FURTHER: i32 = 70;

/// Returns whether a limit suffices, given how many processes under it ended `ok` and how many did not; `None` if more
/// processes are needed. What a process needs depends on where the kernel puts its mappings, and on the allocator's own
/// random numbers. In `same-thread-5000` under `data`, one of 15 processes of jemalloc failed up to 9 % above the limit
/// below which all fail (none without address space randomization), and one of 7 of tcmalloc succeeded up to 6 % below
/// it. If all had to end `ok`, or one were enough, two searches would differ by that much.
pub fn does(ok: u32, failed: u32) -> Option<bool> {
    let is_settled = ok.max(failed) > MOST / 2 || (ok.min(failed) == 0 && ok + failed >= ALIKE);
    is_settled.then_some(ok > failed)
}

/// Limits in order: `anchor_bytes` times powers of [`STEP`], in whole pages.
#[derive(Clone, Copy)]
pub struct LimitSearch {
    /// The limit of power 0.
    pub anchor_bytes: u64,
    /// The power that is tried first. All powers between it and the anchor are tried before others.
    pub first: i32,
    /// How many times the limit may be raised beyond the first one.
    pub most_further: u32,
}

impl LimitSearch {
    fn bytes(&self, step: i32) -> u64 {
        let factor = if step < 0 { 1.0 / STEP } else { STEP };
        let powered =
            (0..step.unsigned_abs()).fold(self.anchor_bytes as f64, |bytes, _| bytes * factor);
        (powered as u64).next_multiple_of(PAGE_BYTES)
    }

    /// Finds the smallest limit under which most processes end `ok`, if they do so under all larger ones; `None` if
    /// there is none. `ends_ok` gets the limit of a process and its number among those under that limit, and returns
    /// whether it ends `ok`.
    pub fn smallest<E>(
        &self,
        mut ends_ok: impl FnMut(u64, u32) -> Result<bool, E>,
    ) -> Result<Option<u64>, E> {
        let mut survives = |step| {
            let mut ok = 0;
            let mut failed = 0;
            loop {
                if let Some(does) = does(ok, failed) {
                    return Ok(does);
                }
                match ends_ok(self.bytes(step), ok + failed)? {
                    true => ok += 1,
                    false => failed += 1,
                }
            }
        };
        let mut dead = -1;
        let mut alive = self.first;
        let mut dead_is_known = false;
        let mut further = 0;
        while !survives(alive)? {
            if further == self.most_further {
                return Ok(None);
            }
            further += 1;
            (dead, dead_is_known) = (alive, true);
            alive += FURTHER;
        }
        loop {
            while alive - dead > 1 {
                let middle = dead.midpoint(alive);
                if survives(middle)? {
                    alive = middle;
                } else {
                    (dead, dead_is_known) = (middle, true);
                }
            }
            if dead_is_known || self.bytes(dead) < LEAST_BYTES {
                return Ok(Some(self.bytes(alive)));
            }
            dead -= FURTHER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::convert::Infallible;

    const SEARCH: LimitSearch = LimitSearch {
        anchor_bytes: 1 << 20,
        first: 210,
        most_further: 28,
    };

    fn smallest(search: LimitSearch, ends_ok: impl Fn(u64, u32) -> bool) -> Option<u64> {
        let Ok(found) =
            search.smallest(|bytes, number| Ok::<_, Infallible>(ends_ok(bytes, number)));
        found
    }

    #[test]
    fn three_alike_decide_a_limit_and_else_most_of_nine() {
        for (ok, failed, decided) in [
            (0, 0, None),
            (2, 0, None),
            (3, 0, Some(true)),
            (0, 3, Some(false)),
            (2, 1, None),
            (4, 4, None),
            (5, 1, Some(true)),
            (4, 5, Some(false)),
        ] {
            assert_eq!(does(ok, failed), decided, "{ok} of {}", ok + failed);
        }
    }

    #[test]
    fn the_smallest_limit_is_found_to_a_hundredth_or_a_page_wherever_it_lies() {
        for first in [0, 210] {
            let search = LimitSearch { first, ..SEARCH };
            for needs in [100_000, 1 << 20, 3_500_000, 1 << 30, (256 << 30) + 1] {
                let found = smallest(search, |bytes, _| bytes >= needs).unwrap();
                let most = needs + needs / 99 + PAGE_BYTES;
                assert!((needs..=most).contains(&found), "{needs}: {found}");
            }
            assert_eq!(smallest(search, |_, _| false), None);
            // The search does not go on for ever below what any process has.
            assert!(smallest(search, |_, _| true).unwrap() <= LEAST_BYTES);
        }
    }

    #[test]
    fn what_a_third_of_the_processes_need_more_does_not_decide() {
        let usual = smallest(SEARCH, |bytes, _| bytes >= 3_500_000);
        for greedy in 0..3 {
            let needs = |number| 3_500_000 + u64::from(number % 3 == greedy) * 2_000_000;
            assert_eq!(
                smallest(SEARCH, |bytes, number| bytes >= needs(number)),
                usual
            );
        }
    }
}
