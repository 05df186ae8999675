//! The schedule by which blocks are born, read and freed, and by which thread. It is drawn before the clock starts, so
//! that the same calls come in the same order under every allocator.

use super::*;
use crate::lifetimes::{Drawn, Lifetimes};

/// The parameters from which each thread's schedule is drawn.
#[derive(Clone, Copy)]
pub struct Draws {
    pub threads: usize,
    /// Number of blocks that live at the start.
    pub survivors: usize,
    pub births: usize,
    /// Number of live blocks that are read after each birth.
    pub uses: usize,
    pub seed: u64,
}

/// The schedules of all threads.
pub struct Schedule {
    draws: Draws,
    born: HarnessTable<Birth>,
    deaths_before: HarnessTable<u32>,
    deaths: HarnessTable<Death>,
    reads: HarnessTable<u32>,
    sums: HarnessTable<Sums>,
}

/// A block, and the slot that it takes.
#[derive(Clone, Copy)]
pub struct Birth {
    pub size: u32,
    pub slot: u32,
}

/// A slot whose block dies, and the thread that frees it.
#[derive(Clone, Copy)]
pub struct Death {
    pub slot: u32,
    pub by: u32,
}

#[derive(Clone, Copy)]
struct Sums {
    slots: usize,
    bytes: u64,
    peak: u64,
    reads: u64,
}

/// The schedule of one thread.
#[derive(Clone, Copy)]
pub struct ThreadSchedule<'s> {
    /// Blocks that live at the start, the oldest first, and blocks that are born later.
    pub born: &'s [Birth],
    /// For each birth, the number of entries of `deaths` that come before the birth's own entries.
    deaths_before: &'s [u32],
    deaths: &'s [Death],
    reads: &'s [u32],
    /// Bytes of all blocks.
    pub bytes: u64,
    /// The sum of the bytes that all reads find.
    pub reads_sum: u64,
}

impl ThreadSchedule<'_> {
    /// Returns the deaths just before a birth.
    pub fn deaths(&self, birth: usize) -> &[Death] {
        let [from, to] = [birth, birth + 1].map(|at| self.deaths_before[at] as usize);
        &self.deaths[from..to]
    }

    /// Returns the slots that are read after a birth.
    pub fn reads(&self, birth: usize) -> &[u32] {
        let uses = self.reads.len() / (self.deaths_before.len() - 1);
        &self.reads[birth * uses..][..uses]
    }
}

/// Computes the stamp of a thread's block from the block's number and size.
pub fn stamp(number: usize, size: u32) -> u32 {
    let mixed = (number as u32 ^ size << 8).wrapping_mul(0x9e37_79b1);
    mixed >> 16
}

/// Returns the byte that is read from a block.
fn read_byte(number: usize, size: u32) -> u64 {
    u64::from(stamp(number, size) as u8)
}

/// A block while the schedule is being made.
#[derive(Clone, Copy)]
struct Lifespan {
    size: u32,
    /// The birth before which the block dies.
    death: u32,
    by: u32,
    slot: u32,
}

/// A survivor before its place in the order is known.
struct Survivor {
    age: f64,
    drawn: Drawn,
}

impl Schedule {
    /// Returns the bytes of a schedule's tables, and of the tables that are needed while the schedule is drawn.
    pub fn table_bytes(draws: &Draws) -> u64 {
        let blocks = draws.survivors + draws.births;
        let kept = blocks * (size_of::<Birth>() + size_of::<Death>())
            + draws.births * (1 + draws.uses) * size_of::<u32>();
        let used = blocks * (size_of::<Lifespan>() + 3 * size_of::<u32>())
            + draws.births * size_of::<u64>();
        (draws.threads * kept + used) as u64
    }

    /// Draws the schedules of all threads.
    pub fn new(lifetimes: &Lifetimes, draws: Draws) -> Schedule {
        let Draws {
            threads,
            survivors,
            births,
            uses,
            ..
        } = draws;
        let mut schedule = Schedule {
            draws,
            born: HarnessTable::zeroed(threads * (survivors + births)),
            deaths_before: HarnessTable::zeroed(threads * (births + 1)),
            deaths: HarnessTable::zeroed(threads * (survivors + births)),
            reads: HarnessTable::zeroed(threads * births * uses),
            sums: HarnessTable::zeroed(threads),
        };
        let mut objects = HarnessTable::<Lifespan>::zeroed(survivors + births);
        for thread in 0..threads {
            let mut random = SplitMix::new(draws.seed, thread as u64);
            draw_objects(lifetimes, &draws, thread, &mut random, &mut objects);
            schedule.play(thread, &mut random, &mut objects);
        }
        schedule
    }

    /// Returns the schedule of one thread.
    pub fn of(&self, thread: usize) -> ThreadSchedule<'_> {
        let Draws {
            survivors,
            births,
            uses,
            ..
        } = self.draws;
        let blocks = survivors + births;
        ThreadSchedule {
            born: self.born.part(thread, blocks),
            deaths_before: &self.deaths_before[thread * (births + 1)..][..births + 1],
            deaths: self.deaths.part(thread, blocks),
            reads: &self.reads[thread * births * uses..][..births * uses],
            bytes: self.sums[thread].bytes,
            reads_sum: self.sums[thread].reads,
        }
    }

    /// Returns the number of slots that the thread with the most live blocks needs.
    pub fn slots(&self) -> usize {
        self.sums.iter().map(|sums| sums.slots).max().unwrap_or(0)
    }

    /// Returns the most bytes that are live: the sum of the threads' peaks. For one thread, the result is exact. For
    /// several threads, it is an estimate: peaks need not come together, and a block that waits for the thread that
    /// frees it counts as dead.
    pub fn peak_bytes(&self) -> u64 {
        self.sums.iter().map(|sums| sums.peak).sum()
    }

    /// Finds the slots of a thread's blocks, in the order of the births.
    fn play(&mut self, thread: usize, random: &mut SplitMix, objects: &mut [Lifespan]) {
        let Draws {
            survivors,
            births,
            uses,
            ..
        } = self.draws;
        let blocks = survivors + births;
        let born = &mut self.born[thread * blocks..][..blocks];
        let before = &mut self.deaths_before[thread * (births + 1)..][..births + 1];
        let deaths = &mut self.deaths[thread * blocks..][..blocks];
        let reads = &mut self.reads[thread * births * uses..][..births * uses];
        let order = in_order_of_death(objects, before);
        let mut free = HarnessTable::<u32>::zeroed(blocks);
        // The number of the block in each slot, plus one.
        let mut held = HarnessTable::<u32>::zeroed(blocks);
        let (mut free_slots, mut slots) = (0, 0);
        let mut live = 0u64;
        let mut sums = Sums {
            slots: 0,
            bytes: 0,
            peak: 0,
            reads: 0,
        };
        for number in 0..blocks {
            if let Some(birth) = number.checked_sub(survivors) {
                let dead = before[birth] as usize..before[birth + 1] as usize;
                for (death, &dying) in deaths[dead.clone()].iter_mut().zip(&order[dead]) {
                    let Lifespan { size, slot, by, .. } = objects[dying as usize];
                    *death = Death { slot, by };
                    live -= u64::from(size);
                    held[slot as usize] = 0;
                    free[free_slots] = slot;
                    free_slots += 1;
                }
            }
            let slot = if free_slots > 0 {
                free_slots -= 1;
                free[free_slots]
            } else {
                slots += 1;
                slots - 1
            };
            let object = &mut objects[number];
            object.slot = slot;
            held[slot as usize] = number as u32 + 1;
            sums.bytes += u64::from(object.size);
            live += u64::from(object.size);
            sums.peak = sums.peak.max(live);
            born[number] = Birth {
                size: object.size,
                slot,
            };
            let Some(birth) = number.checked_sub(survivors) else {
                continue;
            };
            for read in &mut reads[birth * uses..][..uses] {
                let number = loop {
                    *read = random.below(slots);
                    if let Some(number) = held[*read as usize].checked_sub(1) {
                        break number as usize;
                    }
                };
                sums.reads += read_byte(number, objects[number].size);
            }
        }
        sums.slots = slots as usize;
        self.sums[thread] = sums;
    }
}

/// Draws a thread's blocks: when they die, and which thread frees them.
fn draw_objects(
    lifetimes: &Lifetimes,
    draws: &Draws,
    thread: usize,
    random: &mut SplitMix,
    objects: &mut [Lifespan],
) {
    let threads = draws.threads as u32;
    let by = |random: &mut SplitMix, drawn: &Drawn| {
        if threads > 1 && drawn.is_freed_remotely {
            (thread as u32 + 1 + random.below(threads - 1)) % threads
        } else {
            thread as u32
        }
    };
    let mut living = HarnessTable::<Survivor>::zeroed(draws.survivors);
    for survivor in living.iter_mut() {
        let drawn = lifetimes.survivor(random);
        let age = drawn.age;
        *survivor = Survivor { age, drawn };
    }
    living.sort_unstable_by(|one, other| other.age.total_cmp(&one.age));
    // For each birth, the bytes of all births before it, if lifetimes are in bytes.
    let volumes = if lifetimes.are_bytes() {
        draws.births + 1
    } else {
        0
    };
    let mut volumes = HarnessTable::<u64>::zeroed(volumes);
    let (survivors, births) = objects.split_at_mut(draws.survivors);
    let mut lefts = HarnessTable::<f64>::zeroed(births.len());
    for (birth, (object, left)) in births.iter_mut().zip(lefts.iter_mut()).enumerate() {
        let drawn = lifetimes.birth(random);
        *left = drawn.left;
        *object = Lifespan {
            size: drawn.size,
            death: 0,
            by: by(random, &drawn),
            slot: 0,
        };
        if let Some(after) = volumes.get_mut(birth + 1) {
            *after = u64::from(drawn.size);
        }
    }
    for birth in 1..volumes.len() {
        volumes[birth] += volumes[birth - 1];
    }
    let never = births.len() as f64;
    let death = |random: &mut SplitMix, from: usize, left: f64| {
        let at = if lifetimes.are_bytes() {
            death_at(&volumes, volumes[from] as f64 + left, random) as f64
        } else {
            from as f64 + left
        };
        at.min(never) as u32
    };
    for (object, Survivor { drawn, .. }) in survivors.iter_mut().zip(living.iter()) {
        *object = Lifespan {
            size: drawn.size,
            death: death(random, 0, drawn.left),
            by: by(random, drawn),
            slot: 0,
        };
    }
    for (birth, (object, left)) in births.iter_mut().zip(lefts.iter()).enumerate() {
        object.death = if lifetimes.are_bytes() {
            // A block's own bytes are not part of its remaining lifetime.
            death(random, birth + 1, *left)
        } else {
            death(random, birth, *left)
        };
    }
}

/// Returns the birth before which a block dies if it lives until this many bytes have been allocated: the birth that
/// comes at that point or the next one, drawn so that the mean lifetime is right.
fn death_at(volumes: &[u64], bytes: f64, random: &mut SplitMix) -> usize {
    let birth = volumes.partition_point(|before| *before as f64 <= bytes) - 1;
    let Some(after) = volumes.get(birth + 1) else {
        return birth;
    };
    let before = volumes[birth];
    let share = (bytes - before as f64) / (after - before) as f64;
    birth + usize::from(random.unit() < share)
}

/// Returns the blocks that die, in the order of the births before which they die. `before` receives, for each birth,
/// how many blocks die earlier.
fn in_order_of_death(objects: &[Lifespan], before: &mut [u32]) -> HarnessTable<u32> {
    before.fill(0);
    let births = before.len() - 1;
    let dies = |object: &&Lifespan| (object.death as usize) < births;
    for object in objects.iter().filter(dies) {
        before[object.death as usize + 1] += 1;
    }
    for birth in 0..births {
        before[birth + 1] += before[birth];
    }
    let mut order = HarnessTable::<u32>::zeroed(before[births] as usize);
    let mut next = HarnessTable::<u32>::zeroed(births + 1);
    next.copy_from_slice(before);
    for (number, object) in objects.iter().enumerate() {
        if dies(&object) {
            let place = &mut next[object.death as usize];
            order[*place as usize] = number as u32;
            *place += 1;
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem;

    fn draws(survivors: usize, births: usize) -> Draws {
        Draws {
            threads: 2,
            survivors,
            births,
            uses: 1,
            seed: 7,
        }
    }

    /// Live blocks before each birth of the first thread; no slot is taken twice.
    fn live(schedule: &Schedule, draws: &Draws) -> HarnessTable<usize> {
        let thread = schedule.of(0);
        let mut held = HarnessTable::<bool>::zeroed(schedule.slots());
        let take = |held: &mut [bool], birth: &Birth| {
            assert!(!mem::replace(&mut held[birth.slot as usize], true));
        };
        let (survivors, births) = thread.born.split_at(draws.survivors);
        survivors.iter().for_each(|birth| take(&mut held, birth));
        let mut counts = HarnessTable::zeroed(draws.births);
        for (number, birth) in births.iter().enumerate() {
            for death in thread.deaths(number) {
                assert!(mem::replace(&mut held[death.slot as usize], false));
            }
            counts[number] = held.iter().filter(|held| **held).count();
            take(&mut held, birth);
            assert!(thread.reads(number).iter().all(|read| held[*read as usize]));
        }
        counts
    }

    #[test]
    fn a_block_that_lives_for_its_own_bytes_dies_before_the_next_birth() {
        let lifetimes = Lifetimes::parse("bytes 100:100:1:0", 2);
        let draws = draws(0, 50);
        let schedule = Schedule::new(&lifetimes, draws);
        assert_eq!(live(&schedule, &draws)[..], [0; 50]);
        assert_eq!(schedule.slots(), 1);
        // The sum over two threads.
        assert_eq!(schedule.peak_bytes(), 2 * 100);
    }

    #[test]
    fn blocks_of_one_size_and_lifetime_are_as_many_at_any_time() {
        // Ten more blocks of the thread are born while one block lives.
        let lifetimes = Lifetimes::parse("bytes 100:2100:1:0", 2);
        let [blocks, bytes] = lifetimes.live();
        assert_eq!([blocks, bytes], [10.0, 1000.0]);
        let draws = draws(0, 50);
        let counts = live(&Schedule::new(&lifetimes, draws), &draws);
        assert_eq!(counts[20..], [10; 30]);
    }

    #[test]
    fn as_many_live_as_the_rates_say_from_the_first_birth_on() {
        for text in [
            "births 16:8000:3:20,600:400:1:20,64:1:4:20",
            "bytes 16:500000:3:20,6000:200000:1:20,64:64:4:20",
        ] {
            let lifetimes = Lifetimes::parse(text, 2);
            let expected = lifetimes.live()[0];
            let draws = draws(expected as usize, 40_000);
            let counts = live(&Schedule::new(&lifetimes, draws), &draws);
            for part in counts.chunks(10_000) {
                let mean = part.iter().sum::<usize>() as f64 / part.len() as f64;
                assert!(
                    (mean / expected - 1.0).abs() < 0.1,
                    "{text}: {mean}, {expected}"
                );
            }
        }
    }

    #[test]
    fn the_share_that_others_free_is_the_models() {
        let lifetimes = Lifetimes::parse("births 16:100:1:25", 2);
        let schedule = Schedule::new(&lifetimes, draws(50, 40_000));
        let thread = schedule.of(1);
        let all = (0..40_000).flat_map(|birth| thread.deaths(birth));
        let (remote, deaths) = all.fold((0, 0), |(remote, all), death| {
            (remote + u32::from(death.by == 0), all + 1)
        });
        let share = f64::from(remote) / f64::from(deaths);
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }
}
