//! The purge rule: returns all memory to the operating system, and counts the time, as the
//! reference document MM prescribes.

use crate::api::AnyCall;
use crate::job::Job;
use crate::objects::Objects;
use core::ffi::{CStr, c_void};
use core::mem::transmute;

/// How the allocator of this process is asked to purge.
#[derive(Clone, Copy)]
pub struct PurgeCall {
    call: Option<AnyCall>,
    args: [usize; 6],
    per_thread: bool,
    /// `called`, `configured` or `none`, as written in every record.
    pub word: &'static str,
}

impl PurgeCall {
    /// Reads `purge.kind`, `purge.symbol`, `purge.args` and `purge.per_thread`. A function that
    /// libc would serve instead of the library counts as none: trimming glibc's heap shows nothing
    /// about the allocator under test.
    pub fn from_job(job: &Job<'_>) -> PurgeCall {
        let none = PurgeCall {
            call: None,
            args: [0; 6],
            per_thread: false,
            word: "none",
        };
        match job.get("purge.kind") {
            Some("configured") => PurgeCall {
                word: "configured",
                ..none
            },
            Some("call") => {
                let mut name = [0u8; 128];
                let (malloc, also) = (libc::malloc as *mut c_void, job.get("purge.owner"));
                let found = job.c_str("purge.symbol", &mut name);
                let Some(address) =
                    found.and_then(|name| Objects::loaded().find_beside(malloc, name, also))
                else {
                    return none;
                };
                // SAFETY: on the supported ABIs a function ignores surplus integer arguments.
                let function = unsafe { transmute::<*mut c_void, AnyCall>(address) };
                let mut purge = PurgeCall {
                    call: Some(function),
                    word: "called",
                    ..none
                };
                purge.per_thread = job.is("purge.per_thread", "1");
                // `i:N` is an integer, `s:TEXT` a string; the job's text ends each with a blank.
                let args = job
                    .get("purge.args")
                    .unwrap_or("")
                    .split(' ')
                    .filter(|arg| !arg.is_empty());
                for (slot, arg) in purge.args.iter_mut().zip(args) {
                    *slot = match arg.split_once(':') {
                        Some(("i", number)) => number.parse::<i64>().unwrap_or(0) as usize,
                        Some(("s", text)) => keep(text) as usize,
                        _ => 0,
                    };
                }
                purge
            }
            _ => none,
        }
    }

    /// Purges the process. Called once by the main thread.
    pub fn process(&self) {
        if let Some(call) = self.call {
            let [a, b, c, d, e, f] = self.args;
            // SAFETY: the catalogue guarantees symbol and arguments, the owner was checked.
            unsafe { call(a, b, c, d, e, f) };
        }
    }

    /// Purges for the calling thread, if the allocator needs that. Called by every worker before it
    /// ends.
    pub fn thread(&self) {
        if self.per_thread {
            self.process();
        }
    }
}

/// Copies a text into a C string that lives as long as the process.
fn keep(text: &str) -> *const u8 {
    let table = crate::memory::HarnessTable::<u8>::zeroed(text.len() + 1);
    let mut table = core::mem::ManuallyDrop::new(table);
    table[..text.len()].copy_from_slice(text.as_bytes());
    debug_assert!(CStr::from_bytes_with_nul(&table).is_ok());
    table.as_ptr()
}
