//! Runs processes side by side, if nothing is timed in them.

use super::child::{end_orphans, own_descriptors};
use anyhow::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::scope;

/// The most lanes that share one table of file descriptors: the table usually has room for 1024, and each lane takes about ten.
const MOST_SHARING: usize = 16;

/// Calls `one` with each item, `lanes` at a time, and `ended` with the item's index and its result as
/// soon as the result is available. After a failure of either, no further item is begun.
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

/// Works like [`side_by_side`], but does not end what the processes leave behind.
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
        // After a failure, no lane begins another item.
        next.store(work.len(), Ordering::Relaxed);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

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
