//! Processes in which nothing is timed, side by side.

use super::child::{end_orphans, own_descriptors};
use anyhow::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::scope;

/// The most lanes that share one table of file descriptors: usually it has room for 1024, of which each lane takes about ten.
const MOST_SHARING: usize = 16;

/// Calls `one` with each item, this many at a time, and `ended` with the item's index and its result as
/// soon as that is there. After a failure of either, no further item is begun.
pub fn side_by_side<T: Sync, R: Send>(
    lanes: usize,
    work: &[T],
    one: impl Fn(&T) -> Result<R> + Sync,
    ended: impl FnMut(usize, R) -> Result<()>,
) -> Result<()> {
    let done = spread(lanes, work, one, ended);
    end_orphans();
    done
}

/// [`side_by_side`], but what the processes leave behind is not ended.
pub fn spread<T: Sync, R: Send>(
    lanes: usize,
    work: &[T],
    one: impl Fn(&T) -> Result<R> + Sync,
    mut ended: impl FnMut(usize, R) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let (sender, endings) = channel();
    let lane = |number: usize, sender: Sender<_>| {
        // With tables of their own there may be any number of lanes. No process inherits another lane's files either way.
        if !own_descriptors() && number >= MOST_SHARING {
            return;
        }
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = work.get(index) else {
                return;
            };
            // If the receiver is gone, something else has failed.
            _ = sender.send((index, one(item)));
        }
    };
    scope(|scope| {
        for number in 0..lanes.min(work.len()) {
            let lane = &lane;
            let sender = sender.clone();
            scope.spawn(move || lane(number, sender));
        }
        drop(sender);
        let done = endings
            .into_iter()
            .try_for_each(|(index, made)| ended(index, made?));
        // A failure ends the lanes now, not after all that remains.
        next.store(work.len(), Ordering::Relaxed);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{bail, ensure};
    use std::time::{Duration, Instant};

    /// Makes `unshare` fail in this thread and in those that it starts, as the rules of a container do.
    fn forbid_unshare() {
        let step = |code: u32, no: u8, operand: u32| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: no,
            k: operand,
        };
        let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let answer = libc::BPF_RET | libc::BPF_K;
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let mut filter = [
            step(load, 0, 0),
            step(is, 1, libc::SYS_unshare as u32),
            step(answer, 0, refused),
            step(answer, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        let mode = libc::SECCOMP_MODE_FILTER;
        // SAFETY: plain system calls; the kernel copies the filter.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                + libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program)
        };
        assert_eq!(failed, 0);
    }

    #[test]
    fn lanes_work_at_the_same_time_even_if_they_must_share_their_descriptors() {
        let begun = AtomicUsize::new(0);
        let one = |_: &u32| {
            begun.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            while begun.load(Ordering::Relaxed) < 2 {
                let is_early = began.elapsed() < Duration::from_secs(60);
                ensure!(is_early, "the other one does not begin");
                std::thread::yield_now();
            }
            Ok(())
        };
        let done = scope(|scope| {
            let forbidden = scope.spawn(|| {
                forbid_unshare();
                assert!(!own_descriptors());
                spread(2, &[0, 1], one, |_, ()| Ok(()))
            });
            forbidden.join().unwrap()
        });
        done.unwrap();
    }

    #[test]
    fn each_item_is_done_once_and_a_failure_ends_all() {
        let work: Vec<u32> = (0..50).collect();
        let mut doubled = vec![0; 50];
        let keep = |index: usize, made| {
            doubled[index] += made;
            Ok(())
        };
        spread(4, &work, |number| Ok(number * 2), keep).unwrap();
        assert!(doubled.into_iter().eq(work.iter().map(|number| number * 2)));
        let mut done = 0;
        let one = |number: &u32| match number {
            3 => bail!("three"),
            _ => Ok(()),
        };
        let count = |_, ()| {
            done += 1;
            Ok(())
        };
        let error = spread(1, &work, one, count).unwrap_err();
        assert_eq!((error.to_string().as_str(), done), ("three", 3));
    }
}
