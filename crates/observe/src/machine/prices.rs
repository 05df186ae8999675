//! What this machine's kernel and memory cost: the prices of events that some allocators cause more
//! often than others. On a virtual machine a page fault may cost many times as much as elsewhere,
//! and allocators that give memory back then lose by it what they would not lose on other machines.
//!
//! Measured in this process, in well under 200 ms. A price is the median of several repetitions,
//! each the mean of many events, by the wall clock: other programs make the largest repetition
//! large, and hardly the median.

use super::facts::allowed_cpus;
use super::root::Root;
use crate::clock::usage;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

/// Repetitions of each price: an odd number has a median.
const REPETITIONS: u32 = 7;
/// Repetitions with huge pages: fewer, since a huge page that the host must fetch takes
/// milliseconds.
const HUGE_REPETITIONS: u32 = 5;
/// Pages of one repetition.
const PAGES: usize = 128;
/// Events of one repetition: calls, threads, instructions, passes of a line.
const CALLS: u32 = 50;
const THREADS: u32 = 10;
const INSTRUCTIONS: u32 = 10_000;
const PASSES: u32 = 200;
/// The size of the mapping that is made and removed again: usual for a block that has a mapping of its own.
const MAPPED_BYTES: usize = 64 << 10;
/// The largest huge page that is tried; larger ones (512 MiB with pages of 64 KiB) are not.
const MOST_HUGE_BYTES: usize = 32 << 20;
/// The most time for passing a line: two threads may have to share a CPU, and a pass then takes a
/// time slice.
const MOST_PASSING: Duration = Duration::from_millis(50);
/// The typical price of a page fault: a few thousand cycles (Tirumalasetty et al.,
/// docs/COMPARISON.md), 3,000 at 3 GHz.
const TYPICAL_FAULT_NS: f64 = 1_000.0;

/// Something that has a price.
struct PricedEvent {
    name: &'static str,
    /// What the price is of, in one line.
    means: &'static str,
    /// The price above which it is unusual; `None` if no source names one.
    typical_ns: Option<f64>,
    /// Nanoseconds per event in each repetition; `None` if this machine cannot measure the price.
    measure: fn() -> Option<Vec<f64>>,
}

/// Every price, in the order of tables.
static EVENTS: [PricedEvent; 10] = [
    PricedEvent {
        name: "page-fault-first",
        means: "first write to a page of a new mapping, small pages only. Whether the kernel has the \
                page at hand, and whether the host backs it, is not known",
        typical_ns: Some(TYPICAL_FAULT_NS),
        measure: || page_faults(false),
    },
    PricedEvent {
        name: "page-fault-again",
        means: "first write to a page that was given back (MADV_DONTNEED) just before",
        typical_ns: Some(TYPICAL_FAULT_NS),
        measure: || page_faults(true),
    },
    PricedEvent {
        name: "huge-page-first",
        means: "first write to a transparent huge page of a new mapping",
        typical_ns: None,
        measure: || huge_pages(false),
    },
    PricedEvent {
        name: "huge-page-again",
        means: "first write to a huge page that was given back just before",
        typical_ns: None,
        measure: || huge_pages(true),
    },
    PricedEvent {
        name: "mmap-munmap",
        means: "both calls, for 64 KiB that were not touched",
        typical_ns: None,
        measure: mmap_munmap,
    },
    PricedEvent {
        name: "madvise-dontneed",
        means: "giving back with MADV_DONTNEED, for each touched page; one call gives back 128",
        typical_ns: None,
        measure: || given_back(Advice::LinuxDontNeed),
    },
    PricedEvent {
        name: "madvise-free",
        means: "the same with MADV_FREE",
        typical_ns: None,
        measure: || given_back(Advice::LinuxFree),
    },
    PricedEvent {
        name: "locked-instruction",
        means: "an atomic addition to a word that no other thread uses",
        typical_ns: None,
        measure: locked_instructions,
    },
    PricedEvent {
        name: "line-between-cores",
        means: "a cache line passed from the first usable CPU to the last, or back; two CPUs may be \
                one core",
        typical_ns: None,
        measure: line_passes,
    },
    PricedEvent {
        name: "thread",
        means: "starting a thread that does nothing, until it is joined",
        typical_ns: None,
        measure: threads,
    },
];

/// The price of an event on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// The event's name, short and unique.
    pub name: String,
    /// The median of the repetitions; of an even number, the upper one of the two in the middle.
    pub median_ns: f64,
    /// The smallest of the repetitions, in nanoseconds per event.
    pub least_ns: f64,
    /// The largest of the repetitions, in nanoseconds per event.
    pub most_ns: f64,
    /// The number of repetitions.
    pub repetitions: u32,
    /// The usual price elsewhere, if a source states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical_ns: Option<f64>,
    /// What the price is of, in words.
    pub means: String,
}

impl Price {
    fn new(event: &PricedEvent, samples: Vec<f64>) -> Option<Price> {
        // Rounded to hundredths of a nanosecond, so that no digit in a file is meaningless.
        let mut samples: Vec<f64> = samples
            .iter()
            .map(|ns| (ns * 100.0).round() / 100.0)
            .collect();
        samples.sort_by(f64::total_cmp);
        Some(Price {
            name: event.name.into(),
            median_ns: *samples.get(samples.len() / 2)?,
            least_ns: *samples.first()?,
            most_ns: *samples.last()?,
            repetitions: samples.len() as u32,
            // The typical price is that of pages of 4 KiB: larger ones take longer, but less for
            // each byte.
            typical_ns: event.typical_ns.filter(|_| page_size() == 4096),
            means: event.means.into(),
        })
    }

    /// Returns whether the price is unusual.
    fn is_above_typical(&self) -> bool {
        self.typical_ns
            .is_some_and(|typical_ns| self.median_ns > typical_ns)
    }
}

/// All prices of this machine at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// When the prices were measured: UTC, RFC 3339.
    pub measured: String,
    /// What could be measured: no huge pages without the kernel's permission, no line between cores
    /// on a single CPU.
    pub prices: Vec<Price>,
}

impl Prices {
    /// Measures this machine; `None` if `root` is a copy of another one's files.
    pub fn measure(root: &Root) -> Option<Prices> {
        let price = |event: &PricedEvent| Price::new(event, (event.measure)()?);
        root.planted().is_none().then(|| Prices {
            measured: jiff::Timestamp::now().to_string(),
            prices: EVENTS.iter().filter_map(price).collect(),
        })
    }

    /// Returns the highest of the prices that are above the typical one. Only page faults have a
    /// typical price.
    pub fn unusual(&self) -> Option<&Price> {
        self.prices
            .iter()
            .filter(|price| price.is_above_typical())
            .max_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
    }
}

/// A private anonymous mapping.
struct Mapping {
    begin: *mut u8,
    bytes: usize,
}

impl Mapping {
    fn new(bytes: usize) -> Option<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let begin = unsafe { mmap_anonymous(null_mut(), bytes, protection, MapFlags::PRIVATE) };
        let begin = begin.ok()?.cast();
        Some(Mapping { begin, bytes })
    }

    /// Returns a mapping of small pages only, none of them touched.
    fn of_small_pages() -> Option<Mapping> {
        let mapping = Mapping::new(PAGES * page_size())?;
        // A kernel without huge pages refuses this advice, and gives small pages anyway.
        _ = mapping.advise(0, mapping.bytes, Advice::LinuxNoHugepage);
        Some(mapping)
    }

    fn advise(&self, offset: usize, bytes: usize, advice: Advice) -> Option<()> {
        assert!(offset + bytes <= self.bytes);
        // SAFETY: a part of this mapping, to whose content nothing refers.
        unsafe { madvise(self.begin.add(offset).cast(), bytes, advice) }.ok()
    }

    /// Writes to every page of a part.
    fn touch(&self, offset: usize, bytes: usize) {
        assert!(offset + bytes <= self.bytes);
        for place in (offset..offset + bytes).step_by(page_size()) {
            // SAFETY: within this mapping, which is writable.
            unsafe { self.begin.add(place).write_volatile(1) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and ends with it.
        _ = unsafe { munmap(self.begin.cast(), self.bytes) };
    }
}

/// Repeats a measurement; `None` unless all repetitions succeed.
fn repeated(times: u32, one: impl FnMut() -> Option<f64>) -> Option<Vec<f64>> {
    std::iter::repeat_with(one).take(times as usize).collect()
}

/// Returns the nanoseconds per event since a moment.
fn each_ns(began: Instant, events: u32) -> f64 {
    began.elapsed().as_nanos() as f64 / f64::from(events)
}

fn page_faults(again: bool) -> Option<Vec<f64>> {
    repeated(REPETITIONS, || {
        let pages = Mapping::of_small_pages()?;
        if again {
            pages.touch(0, pages.bytes);
            pages.advise(0, pages.bytes, Advice::LinuxDontNeed)?;
        }
        let began = Instant::now();
        pages.touch(0, pages.bytes);
        Some(each_ns(began, PAGES as u32))
    })
}

fn huge_pages(again: bool) -> Option<Vec<f64>> {
    let size = "sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    let bytes: usize = Root::machine().number(size)?;
    if !bytes.is_power_of_two() || bytes > MOST_HUGE_BYTES {
        return None;
    }
    repeated(HUGE_REPETITIONS, || {
        let mapping = Mapping::new(2 * bytes)?;
        let address = mapping.begin as usize;
        let offset = address.next_multiple_of(bytes) - address;
        mapping.advise(offset, bytes, Advice::LinuxHugepage)?;
        if again {
            mapping.touch(offset, bytes);
            mapping.advise(offset, bytes, Advice::LinuxDontNeed)?;
        }
        let began = Instant::now();
        mapping.touch(offset, 1);
        let price = each_ns(began, 1);
        // If the kernel had only small pages, the other pages fault, too.
        let before = faults_of_thread();
        mapping.touch(offset, bytes);
        (faults_of_thread() - before < 8).then_some(price)
    })
}

/// Returns the number of page faults of this thread that read nothing from a disk.
fn faults_of_thread() -> i64 {
    usage(libc::RUSAGE_THREAD).ru_minflt
}

fn mmap_munmap() -> Option<Vec<f64>> {
    repeated(REPETITIONS, || {
        let began = Instant::now();
        for _ in 0..CALLS {
            drop(Mapping::new(MAPPED_BYTES)?);
        }
        Some(each_ns(began, CALLS))
    })
}

fn given_back(advice: Advice) -> Option<Vec<f64>> {
    repeated(REPETITIONS, || {
        let pages = Mapping::of_small_pages()?;
        pages.touch(0, pages.bytes);
        let began = Instant::now();
        pages.advise(0, pages.bytes, advice)?;
        Some(each_ns(began, PAGES as u32))
    })
}

fn locked_instructions() -> Option<Vec<f64>> {
    let word = AtomicU64::new(0);
    let word = black_box(&word);
    repeated(REPETITIONS, || {
        let began = Instant::now();
        for _ in 0..INSTRUCTIONS {
            word.fetch_add(1, Ordering::Relaxed);
        }
        Some(each_ns(began, INSTRUCTIONS))
    })
}

/// A word that shares neither its cache line nor the line that is fetched beside it.
#[repr(align(128))]
struct LineOfItsOwn(AtomicU32);

/// Measures passes of a cache line: two threads on two CPUs write a word in turns. They have their
/// own affinity: that of this thread stays as it is.
fn line_passes() -> Option<Vec<f64>> {
    let cpus = allowed_cpus();
    let first = *cpus.first()?;
    let last = *cpus.last()?;
    if first == last {
        return None;
    }
    let line = LineOfItsOwn(AtomicU32::new(0));
    let until = Instant::now() + MOST_PASSING;
    let rounds = (REPETITIONS + 1) * PASSES / 2;
    let lead = || -> Vec<f64> {
        let mut samples = Vec::new();
        if !pin(first) {
            return samples;
        }
        let mut began = Instant::now();
        for round in 0..rounds {
            line.0.store(2 * round + 1, Ordering::Release);
            if !is_written(&line.0, 2 * round + 2, until) {
                break;
            }
            if (round + 1) % (PASSES / 2) == 0 {
                samples.push(each_ns(began, PASSES));
                began = Instant::now();
            }
        }
        // Leaves out the first repetition, in which the other thread was still starting.
        samples.split_off(samples.len().min(1))
    };
    let follow = || {
        if !pin(last) {
            return;
        }
        for round in 0..rounds {
            if !is_written(&line.0, 2 * round + 1, until) {
                return;
            }
            line.0.store(2 * round + 2, Ordering::Release);
        }
    };
    let samples = scope(|scope| {
        let leader = Builder::new().spawn_scoped(scope, lead).ok()?;
        Builder::new().spawn_scoped(scope, follow).ok()?;
        leader.join().ok()
    })?;
    // There are too few samples if the two threads had to share a CPU.
    (samples.len() >= 3).then_some(samples)
}

/// Waits until the other thread has written a value; false if that takes too long. Without a pause
/// instruction, whose length differs between CPUs by a factor of ten.
fn is_written(word: &AtomicU32, value: u32, until: Instant) -> bool {
    let mut reads = 0_u32;
    while word.load(Ordering::Acquire) != value {
        reads = reads.wrapping_add(1);
        if reads.is_multiple_of(4096) && Instant::now() > until {
            return false;
        }
    }
    true
}

/// Keeps this thread on an allowed CPU; false if that does not work.
fn pin(cpu: usize) -> bool {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).is_ok()
}

fn threads() -> Option<Vec<f64>> {
    repeated(REPETITIONS, || {
        let began = Instant::now();
        for _ in 0..THREADS {
            Builder::new().spawn(|| ()).ok()?.join().ok()?;
        }
        Some(each_ns(began, THREADS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose page faults cost this much when memory is taken again.
    fn planted(fault_ns: f64) -> Prices {
        let price = |event: &PricedEvent| {
            let ns = match event.typical_ns {
                Some(_) => fault_ns,
                None => 5_000.0,
            };
            Price::new(event, vec![ns * 0.9, ns, ns * 1.5])
        };
        Prices {
            measured: "2026-01-02T03:04:05Z".into(),
            prices: EVENTS.iter().filter_map(price).collect(),
        }
    }

    #[test]
    fn every_price_is_a_positive_number_and_in_order() {
        let Prices { prices, .. } = Prices::measure(&Root::machine()).unwrap();
        for price in &prices {
            let (least, median, most) = (price.least_ns, price.median_ns, price.most_ns);
            assert!(
                least > 0.0 && least <= median && median <= most && most.is_finite(),
                "{price:?}"
            );
            assert!(price.repetitions >= 3, "{price:?}");
        }
        let has = |name: &str| prices.iter().any(|price| price.name == name);
        let on_request = ["huge-page-first", "huge-page-again", "line-between-cores"];
        for event in &EVENTS {
            assert!(
                has(event.name) || on_request.contains(&event.name),
                "{}",
                event.name
            );
        }
    }

    #[test]
    fn copies_of_another_machines_files_have_no_prices() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Prices::measure(&Root::at(folder.path())), None);
    }

    #[test]
    fn only_a_page_fault_above_the_typical_price_is_unusual() {
        let (dear, cheap) = (planted(4_400.0), planted(250.0));
        assert!(
            dear.unusual()
                .is_some_and(|price| price.name.starts_with("page-fault-"))
        );
        assert_eq!(cheap.unusual(), None);
        assert_eq!(planted(TYPICAL_FAULT_NS).unusual(), None);
    }

    #[test]
    fn what_is_written_is_read() {
        let prices = planted(1234.56);
        let text = serde_json::to_string(&prices).unwrap();
        assert_eq!(serde_json::from_str::<Prices>(&text).unwrap(), prices);
    }
}
