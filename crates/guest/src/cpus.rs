//! The CPUs that this process may use, and pinning of threads to them.

use crate::launch::OutputFile;
use crate::memory::{self, HarnessTable};
use crate::scheduled;
use crate::text::c_str_in;
use core::ffi::{CStr, c_int};
use core::fmt::Write;

/// Usable CPUs in the order in which workers get them: first one CPU of each core, then the siblings.
pub struct Cpus(HarnessTable<Cpu>);

#[derive(Clone, Copy)]
struct Cpu {
    number: usize,
    /// The first hardware thread of this CPU's core.
    core: usize,
    /// How many usable hardware threads of the same core come before this one.
    turn: usize,
}

impl Cpus {
    /// The CPUs that the calling thread may run on; empty if there are more than the kernel's call
    /// can hold.
    pub fn usable() -> Cpus {
        // SAFETY: fills a local; a set is valid when it is zero.
        let (set, error) = unsafe {
            let mut set: libc::cpu_set_t = core::mem::zeroed();
            let error = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            (set, error)
        };
        // SAFETY: the number is within the set.
        let usable = |number: &usize| error == 0 && unsafe { libc::CPU_ISSET(*number, &set) };
        let numbers = || (0..libc::CPU_SETSIZE as usize).filter(usable);
        let mut cpus = HarnessTable::<Cpu>::zeroed(numbers().count());
        for (index, number) in numbers().enumerate() {
            let core = first_sibling(number).unwrap_or(number);
            let turn = cpus[..index]
                .iter()
                .filter(|other| other.core == core)
                .count();
            cpus[index] = Cpu { number, core, turn };
        }
        cpus.sort_unstable_by_key(|cpu| (cpu.turn, cpu.number));
        Cpus(cpus)
    }

    /// Number of usable CPUs.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Number of different cores among the first `count` CPUs.
    pub fn cores(&self, count: usize) -> usize {
        self.0
            .iter()
            .take(count)
            .filter(|cpu| cpu.turn == 0)
            .count()
    }

    /// Pins the calling thread to the CPU of this worker.
    pub fn pin(&self, worker: usize) {
        let Some(cpu) = self.0.get(worker) else {
            return;
        };
        scheduled::pins();
        // SAFETY: a set on the stack; the number came from one of the same size.
        unsafe {
            let mut set: libc::cpu_set_t = core::mem::zeroed();
            libc::CPU_SET(cpu.number, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
}

/// The command-line word with which this program prints how many CPUs it may use, and the list of online CPUs.
pub const WORD: &CStr = c"cpus";

/// Makes the calls that heapmark answers (see `answered`); returns the exit code.
pub fn ask() -> c_int {
    let mut room = [0; 256];
    let online = memory::read_file(c"/sys/devices/system/cpu/online", &mut room).unwrap_or("");
    let count = Cpus::usable().count();
    c_int::from(write!(OutputFile(1), "{count} {online}").is_err())
}

/// The lowest hardware thread of a CPU's core, with which lists such as `0,48` and `0-1` begin.
fn first_sibling(cpu: usize) -> Option<usize> {
    let mut room = [0; 96];
    let path = c_str_in(
        &mut room,
        format_args!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
    )?;
    let mut room = [0; 64];
    let text = memory::read_file(path, &mut room)?;
    text.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usable_cpu_is_there_once_and_cores_come_first() {
        let cpus = Cpus::usable();
        // SAFETY: a plain call.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as usize;
        assert!((1..=online).contains(&cpus.count()));
        assert!(cpus.0.is_sorted_by_key(|cpu| (cpu.turn, cpu.number)));
        assert_eq!(cpus.cores(1), 1);
        assert!(cpus.cores(cpus.count()) <= cpus.count());
    }

    #[test]
    fn a_pinned_thread_has_one_usable_cpu() {
        let cpus = Cpus::usable();
        let last = cpus.count() - 1;
        cpus.pin(last);
        let left = Cpus::usable();
        assert_eq!((left.count(), left.0[0].number), (1, cpus.0[last].number));
    }
}
