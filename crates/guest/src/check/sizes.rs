//! How often each size is requested, and how much is live at most: what ages a heap as this workload
//! would.

use crate::job::Job;
use crate::memory::{self, HarnessTable};
use core::fmt::{self, Arguments, Display, Formatter};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use heapmark_wire::{BUCKETS, bucket_of};

/// Sizes of so many neighbouring buckets are one class: 16 of each power of two.
const JOINED: usize = 4;
const CLASSES: usize = BUCKETS / JOINED + 1;

/// Of one class.
#[derive(Default)]
struct Requests {
    count: AtomicU64,
    bytes: AtomicU64,
}

struct Counted {
    requests: HarnessTable<Requests>,
    live_bytes: AtomicU64,
    most_live_bytes: AtomicU64,
}

static COUNTED: AtomicPtr<Counted> = AtomicPtr::new(ptr::null_mut());

fn counted() -> Option<&'static Counted> {
    // SAFETY: null, or set by `start` and never changed.
    unsafe { COUNTED.load(Ordering::Acquire).as_ref() }
}

/// Counts from now on, if the job asks for it.
pub fn start(job: &Job<'_>) {
    if !job.is("sizes", "1") {
        return;
    }
    let counted = memory::keep(Counted {
        requests: HarnessTable::zeroed(CLASSES),
        live_bytes: AtomicU64::new(0),
        most_live_bytes: AtomicU64::new(0),
    });
    COUNTED.store(counted, Ordering::Release);
}

/// A request that was served.
pub(super) fn add(size: usize) {
    let Some(counted) = counted() else {
        return;
    };
    let size = size as u64;
    let class = &counted.requests[bucket_of(size) / JOINED];
    class.count.fetch_add(1, Ordering::Relaxed);
    class.bytes.fetch_add(size, Ordering::Relaxed);
    let live = counted.live_bytes.fetch_add(size, Ordering::Relaxed) + size;
    counted.most_live_bytes.fetch_max(live, Ordering::Relaxed);
}

/// A block that is no longer live.
pub(super) fn remove(size: usize) {
    if let Some(counted) = counted() {
        counted.live_bytes.fetch_sub(size as u64, Ordering::Relaxed);
    }
}

/// Writes what was counted to the report.
pub fn report(say: impl Fn(&str, Arguments<'_>)) {
    if let Some(counted) = counted() {
        let most_live = counted.most_live_bytes.load(Ordering::Relaxed);
        say("figure", format_args!("most_live_bytes {most_live}"));
        say("note", format_args!("sizes {counted}"));
    }
}

/// `SIZE:COUNT,SIZE:COUNT`; a class is named by the mean of its sizes.
impl Display for Counted {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let mut comma = "";
        for class in self.requests.iter() {
            let count = class.count.load(Ordering::Relaxed);
            let bytes = class.bytes.load(Ordering::Relaxed);
            if let Some(mean) = (bytes + count / 2).checked_div(count) {
                write!(f, "{comma}{mean}:{count}")?;
                comma = ",";
            }
        }
        Ok(())
    }
}
