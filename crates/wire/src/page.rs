//! The shared page: a memory file that host and guest both map. The host writes the job before the
//! guest starts; the guest writes its phase and its report, which survive any death of the guest.

use crate::{Phase, Watched};
use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes for the job: a table of lifetimes has up to 4096 rows.
pub const JOB_BYTES: usize = 256 << 10;
/// Bytes for the report: many times the lines of 512 threads.
pub const REPORT_BYTES: usize = 448 << 10;

/// The memory that host and guest share. Zeroed memory is a valid empty page.
#[repr(C)]
pub struct Page {
    phase: AtomicU32,
    job_len: AtomicU32,
    report_len: AtomicU32,
    job: UnsafeCell<[u8; JOB_BYTES]>,
    report: UnsafeCell<[u8; REPORT_BYTES]>,
    watched: Watched,
}

// SAFETY: the job is written once before the guest exists and only read afterwards; the report is append-only by one
// thread at a time, and readers read only the part that `report_len` has published with release order.
unsafe impl Sync for Page {}

/// The error that a text does not fit into its part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextFull;

impl Page {
    /// The guest's present phase.
    pub fn phase(&self) -> Phase {
        Phase::from_number(self.phase.load(Ordering::Acquire))
    }

    /// Stores the phase that the guest enters.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
    }

    /// Writes the job; called by the host before it starts the guest.
    pub fn set_job(&self, text: &str) -> Result<(), TextFull> {
        if text.len() > JOB_BYTES {
            return Err(TextFull);
        }
        // SAFETY: no guest runs yet, so the job is not being read, and the length was checked.
        unsafe {
            self.job
                .get()
                .cast::<u8>()
                .copy_from(text.as_ptr(), text.len())
        };
        self.job_len.store(text.len() as u32, Ordering::Release);
        Ok(())
    }

    /// Lets the host look at the guest's memory: returns what `read` returns, provided that the guest was at its
    /// workload before and after. A guest that went on to heapmark's checks meanwhile may have changed what was read.
    pub fn look<T>(&self, read: impl FnOnce(Phase, &Watched) -> Option<T>) -> Option<T> {
        let phase = self.phase();
        if !phase.is_of_workload() {
            return None;
        }
        let seen = read(phase, &self.watched).filter(|_| self.phase().is_of_workload());
        // The look is counted last, since a guest that waits for it then goes on.
        self.watched.count_look();
        seen
    }

    /// The part that a host may read while the guest runs.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// The job's text; empty if it is not valid UTF-8. Called by the guest, which alone uses the job by then.
    pub fn job(&self) -> &str {
        let len = (self.job_len.load(Ordering::Acquire) as usize).min(JOB_BYTES);
        // SAFETY: `len` is within the job, whose bytes are all initialised and no longer written.
        core::str::from_utf8(unsafe { core::slice::from_raw_parts(self.job.get().cast(), len) })
            .unwrap_or("")
    }

    /// The bytes of the report so far, each as it is when it is read: any process with the page may
    /// still write there.
    pub fn report(&self) -> impl Iterator<Item = u8> {
        let len = (self.report_len.load(Ordering::Acquire) as usize).min(REPORT_BYTES);
        // SAFETY: `len` is within the report, whose bytes are all initialised.
        (0..len).map(|at| unsafe { self.report.get().cast::<u8>().add(at).read_volatile() })
    }

    /// Appends one line to the report; only one thread at a time may do so. A line that does not fit is left out
    /// completely.
    pub fn say(&self, line: fmt::Arguments<'_>) -> Result<(), TextFull> {
        let mut tail = Tail {
            page: self,
            len: self.report_len.load(Ordering::Relaxed) as usize,
        };
        fmt::Write::write_fmt(&mut tail, line).map_err(|_| TextFull)?;
        fmt::Write::write_char(&mut tail, '\n').map_err(|_| TextFull)?;
        self.report_len.store(tail.len as u32, Ordering::Release);
        Ok(())
    }
}

struct Tail<'a> {
    page: &'a Page,
    len: usize,
}

impl fmt::Write for Tail<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > REPORT_BYTES.saturating_sub(self.len) {
            return Err(fmt::Error);
        }
        // SAFETY: the space was checked; the bytes beyond the published length belong to the one
        // thread that appends.
        unsafe {
            let end = self.page.report.get().cast::<u8>().add(self.len);
            end.copy_from(text.as_ptr(), text.len());
        }
        self.len += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;

    fn page() -> Box<Page> {
        // SAFETY: zeroed memory is a valid empty page.
        unsafe { Box::<Page>::new_zeroed().assume_init() }
    }

    #[test]
    fn what_is_said_is_read_in_order() {
        let page = page();
        page.set_job("kernel=churn\n").unwrap();
        page.say(format_args!("purge={}", "none")).unwrap();
        page.say(format_args!("ops={}", 7)).unwrap();
        assert_eq!(page.job(), "kernel=churn\n");
        assert!(page.report().eq(*b"purge=none\nops=7\n"));
    }

    #[test]
    fn a_look_that_reaches_into_the_checks_after_the_workload_is_dropped_and_counted() {
        let page = page();
        let at = |before, after| {
            page.enter(before);
            let seen = page.look(|phase, _| {
                page.enter(after);
                Some(phase)
            });
            (seen, page.watched().looks())
        };
        assert_eq!(at(Phase::Prove, Phase::Setup), (None, 0));
        assert_eq!(at(Phase::Run, Phase::After), (Some(Phase::Run), 1));
        assert_eq!(at(Phase::After, Phase::After), (Some(Phase::After), 2));
        assert_eq!(at(Phase::After, Phase::Verify), (None, 3));
        assert_eq!(at(Phase::Verify, Phase::Done), (None, 3));
    }

    #[test]
    fn a_line_that_does_not_fit_leaves_the_report_whole() {
        let page = page();
        page.say(format_args!("first=1")).unwrap();
        let long = "x".repeat(REPORT_BYTES);
        assert_eq!(page.say(format_args!("{long}")), Err(TextFull));
        assert!(page.report().eq(*b"first=1\n"));
    }

    #[test]
    fn a_scribbled_length_is_cut() {
        let page = page();
        page.report_len.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(page.report().count(), REPORT_BYTES);
    }
}
