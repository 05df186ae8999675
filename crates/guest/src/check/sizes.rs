//! Counts how often each size is requested, and how many bytes are live at most: the figures that are needed to age a
//! heap as this workload would.

use crate::job::Job;
use crate::memory::{HarnessTable, SetOnce};
use crate::report;
use core::fmt::{self, Display, Formatter};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use heapmark_wire::{BUCKETS, bucket_of};

/// Sizes in this many neighbouring buckets form one class: each power of two has 16 classes.
const JOINED: usize = 4;
const CLASSES: usize = BUCKETS / JOINED + 1;

/// Requests of one class.
#[derive(Default)]
struct ClassCounts {
    count: AtomicU64,
    bytes: AtomicU64,
}

struct SizeCounts {
    requests: HarnessTable<ClassCounts>,
    live_bytes: AtomicU64,
    most_live_bytes: AtomicU64,
}

static COUNTED: SetOnce<SizeCounts> = SetOnce::unset();

/// Starts counting, if the job asks for it.
pub fn start(job: &Job<'_>) {
    if !job.is("sizes", "1") {
        return;
    }
    COUNTED.set(SizeCounts {
        requests: HarnessTable::zeroed(CLASSES),
        live_bytes: AtomicU64::new(0),
        most_live_bytes: AtomicU64::new(0),
    });
}

/// Counts a request that was served.
pub(super) fn add(size: usize) {
    let Some(counted) = COUNTED.get() else {
        return;
    };
    let size = size as u64;
    let class = &counted.requests[bucket_of(size) / JOINED];
    class.count.fetch_add(1, Relaxed);
    class.bytes.fetch_add(size, Relaxed);
    let live = counted.live_bytes.fetch_add(size, Relaxed) + size;
    counted.most_live_bytes.fetch_max(live, Relaxed);
}

/// Subtracts a block that is no longer live.
pub(super) fn remove(size: usize) {
    if let Some(counted) = COUNTED.get() {
        counted.live_bytes.fetch_sub(size as u64, Relaxed);
    }
}

/// Writes what was counted to the report.
pub fn report() {
    if let Some(counted) = COUNTED.get() {
        let most_live = counted.most_live_bytes.load(Relaxed);
        report::say("figure", format_args!("most_live_bytes {most_live}"));
        report::say("note", format_args!("sizes {counted}"));
    }
}

/// `SIZE:COUNT,SIZE:COUNT`; a class is named by the mean of its sizes.
impl Display for SizeCounts {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let mut comma = "";
        for class in self.requests.iter() {
            let count = class.count.load(Relaxed);
            let bytes = class.bytes.load(Relaxed);
            if let Some(mean) = (bytes + count / 2).checked_div(count) {
                write!(f, "{comma}{mean}:{count}")?;
                comma = ",";
            }
        }
        Ok(())
    }
}
