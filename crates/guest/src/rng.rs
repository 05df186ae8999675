//! Random number generators that take a few cycles: one of our own choice, and two that reference
//! documents prescribe.

/// SplitMix64, for sizes and orders that no document prescribes: one chain of multiplications, and a counter as the
/// only state.
#[derive(Clone, Default)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Creates the stream of one thread; the streams of different threads or seeds are independent.
    pub fn new(seed: u64, stream: u64) -> SplitMix {
        let mut mix = SplitMix(seed);
        let start = mix.next();
        SplitMix(start ^ stream.wrapping_add(1).wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`. The bias is at most 2^-32, which does not matter for a workload.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Puts entries into random order.
    pub fn shuffle(&mut self, entries: &mut [u32]) {
        for last in (1..entries.len()).rev() {
            entries.swap(last, self.below(last as u32 + 1) as usize);
        }
    }

    /// Returns a uniform draw that is at least 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an exponential draw with mean 1, by comparisons alone (von Neumann, 1951): a logarithm would need a
    /// library.
    pub fn exponential(&mut self) -> f64 {
        let mut whole = 0.0;
        loop {
            let first = self.unit();
            // `falling` counts the draws after the first one that are each below their predecessor.
            let (mut last, mut falling) = (first, 0);
            loop {
                let next = self.unit();
                if next >= last {
                    break;
                }
                last = next;
                falling += 1;
            }
            if falling % 2 == 0 {
                return whole + first;
            }
            whole += 1.0;
        }
    }
}

/// The 32-bit Mersenne Twister (Matsumoto and Nishimura, 1998). micromalloc's programs use it with
/// seed 0.
pub struct MersenneTwister {
    state: [u32; 624],
    next: usize,
}

impl MersenneTwister {
    /// Starts the generator with this seed.
    pub fn new(start: u32) -> MersenneTwister {
        let mut state = [0u32; 624];
        state[0] = start;
        for i in 1..624 {
            let previous = state[i - 1];
            state[i] = (previous ^ (previous >> 30))
                .wrapping_mul(1_812_433_253)
                .wrapping_add(i as u32);
        }
        MersenneTwister { state, next: 624 }
    }

    /// The next 32 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u32 {
        if self.next == 624 {
            self.turn();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn turn(&mut self) {
        for i in 0..624 {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
            let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + 397) % 624] ^ (y >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// A uniform number in `0..=last`, without bias (Lemire's method, as in current C++ libraries).
    pub fn up_to(&mut self, last: u32) -> u32 {
        let range = u64::from(last) + 1;
        if range > u64::from(u32::MAX) {
            return self.next();
        }
        let reject = (1u64 << 32) % range;
        loop {
            let product = u64::from(self.next()) * range;
            if product & 0xffff_ffff >= reject {
                return (product >> 32) as u32;
            }
        }
    }
}

/// larson's generator: a linear congruential x <- (1366 x + 150889) mod 714025 behind a shuffle
/// table of 97 entries.
///
/// Two things keep the generator's latency out of the benchmark. Table entries carry `x mod 97` in their upper bits, so
/// the next position needs only a shift. And x is computed two steps ahead, so that two chains of multiplications
/// overlap.
#[derive(Clone)]
pub struct Larson {
    table: [u32; 97],
    y: u32,
    x: u32,
    ahead: u32,
}

impl Larson {
    const A: u32 = 1366;
    const C: u32 = 150_889;
    const M: u32 = 714_025;
    const BITS: u32 = 20;

    /// Starts the generator with this seed.
    pub fn new(start: u64) -> Larson {
        let mut x =
            ((i128::from(Self::C) - i128::from(start)) % i128::from(Self::M)).unsigned_abs() as u32;
        let mut table = [0; 97];
        for entry in &mut table {
            x = Self::step(x);
            *entry = Self::pack(x);
        }
        x = Self::step(x);
        Larson {
            table,
            y: Self::pack(x),
            x,
            ahead: Self::step(x),
        }
    }

    /// The next number, below 714025.
    #[allow(clippy::should_implement_trait)]
    #[inline(always)]
    pub fn next(&mut self) -> u32 {
        let x = self.ahead;
        self.ahead = Self::two_steps(self.x);
        self.x = x;
        // SAFETY: every y was packed, so its upper bits hold a remainder below 97. A bounds check
        // would lengthen the one chain of dependent loads that limits this generator.
        let entry = unsafe {
            self.table
                .get_unchecked_mut((self.y >> Self::BITS) as usize)
        };
        self.y = *entry;
        *entry = Self::pack(x);
        self.y & ((1 << Self::BITS) - 1)
    }

    fn step(x: u32) -> u32 {
        ((u64::from(Self::A) * u64::from(x) + u64::from(Self::C)) % u64::from(Self::M)) as u32
    }

    #[inline(always)]
    fn two_steps(x: u32) -> u32 {
        const A2: u64 = (Larson::A as u64 * Larson::A as u64) % Larson::M as u64;
        const C2: u64 = (Larson::A as u64 * Larson::C as u64 + Larson::C as u64) % Larson::M as u64;
        ((A2 * u64::from(x) + C2) % u64::from(Self::M)) as u32
    }

    #[inline(always)]
    fn pack(x: u32) -> u32 {
        x | (x % 97) << Self::BITS
    }
}

/// A divisor that is known before the clock starts, so that a remainder takes two multiplications instead of a division
/// (Lemire, Kaser and Kurz, 2019).
#[derive(Clone, Copy)]
pub struct Modulo {
    divisor: u32,
    inverse: u64,
}

impl Modulo {
    /// Prepares a divisor; 0 counts as 1.
    pub fn new(divisor: u32) -> Modulo {
        let divisor = divisor.max(1);
        Modulo {
            divisor,
            inverse: (u64::MAX / u64::from(divisor)).wrapping_add(1),
        }
    }

    /// Returns the remainder of a number divided by the prepared divisor.
    #[inline(always)]
    pub fn of(&self, number: u32) -> u32 {
        let fraction = self.inverse.wrapping_mul(u64::from(number));
        ((u128::from(fraction) * u128::from(self.divisor)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::memory::HarnessTable;

    #[test]
    fn larson_follows_the_recurrence_written_out_plainly() {
        for start in [0, 1, 12345, 4141, 150_889, 999_999] {
            let mut x = (150_889i64 - start as i64).abs() % 714_025;
            let mut advance = || {
                x = (1366 * x + 150_889) % 714_025;
                x as u32
            };
            let mut table = [0u32; 97];
            table.iter_mut().for_each(|entry| *entry = advance());
            let mut y = advance();
            let mut larson = Larson::new(start);
            for _ in 0..100_000 {
                let entry = &mut table[(y % 97) as usize];
                y = *entry;
                *entry = advance();
                assert_eq!(larson.next(), y);
            }
        }
    }

    #[test]
    fn mersenne_twister_gives_the_published_values() {
        // The 10,000th output for the default seed 5489, as given in the C++ standard.
        let mut twister = MersenneTwister::new(5489);
        let mut last = 0;
        (0..10_000).for_each(|_| last = twister.next());
        assert_eq!(last, 4_123_659_995);
    }

    #[test]
    fn mersenne_twister_reaches_both_ends_of_a_range() {
        let mut twister = MersenneTwister::new(0);
        let mut seen = [false; 4];
        (0..1000).for_each(|_| seen[twister.up_to(3) as usize] = true);
        assert_eq!(seen, [true; 4]);
        assert_eq!(twister.up_to(0), 0);
    }

    #[test]
    fn modulo_agrees_with_the_operator() {
        let mut random = SplitMix::new(7, 0);
        for _ in 0..100_000 {
            let (a, d) = (random.next() as u32, (random.next() >> 40) as u32 | 1);
            assert_eq!(Modulo::new(d).of(a), a % d);
        }
        assert_eq!(Modulo::new(1).of(5), 0);
        assert_eq!(Modulo::new(0).of(5), 0);
    }

    #[test]
    fn exponential_numbers_have_their_quantiles() {
        let mut random = SplitMix::new(1, 0);
        let mut drawn = HarnessTable::<f64>::zeroed(200_000);
        drawn.fill_with(|| random.exponential());
        let below =
            |bound: f64| drawn.iter().filter(|number| **number < bound).count() as f64 / 200_000.0;
        for bound in [0.1f64, 0.5, 1.0, 2.0, 3.0, 4.0] {
            let expected = 1.0 - (-bound).exp();
            assert!((below(bound) - expected).abs() < 0.005, "{bound}");
        }
        let mean = drawn.iter().sum::<f64>() / 200_000.0;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn streams_of_threads_differ() {
        let (mut a, mut b) = (SplitMix::new(1, 0), SplitMix::new(1, 1));
        assert!((0..100).all(|_| a.next() != b.next()));
    }
}
