//! Reorders events within a window. Events of a thread that come after its end (its C library frees
//! its own blocks) are put before its end. If one thread plays at a time, a thread's events are
//! brought together as far as they do not depend on the events between them, because each change of
//! threads costs microseconds.

use crate::{Event, Token};
use std::collections::{HashMap, HashSet, VecDeque};

/// The number of events in a window.
pub const EVENTS: usize = 1024;

/// An event and its thread.
pub type ThreadEvent = (u32, Event);

/// Moves the ends of threads behind their late events.
pub fn put_ends_last(events: &mut Vec<ThreadEvent>) {
    let mut ended: HashSet<u32> = events
        .iter()
        .filter(|(_, event)| *event == Event::ThreadExit)
        .map(|(thread, _)| *thread)
        .collect();
    if ended.is_empty() {
        return;
    }
    // In reverse order, the first event of a thread is its last one.
    let mut sorted = Vec::with_capacity(events.len());
    for (thread, event) in events.drain(..).rev() {
        if ended.remove(&thread) {
            sorted.push((thread, Event::ThreadExit));
        }
        if event != Event::ThreadExit {
            sorted.push((thread, event));
        }
    }
    sorted.reverse();
    *events = sorted;
}

/// Brings each thread's events together. `allocations` returns how many objects a thread had made
/// before these events.
pub fn coalesce(events: Vec<ThreadEvent>, allocations: impl Fn(u32) -> u64) -> Vec<ThreadEvent> {
    let before = dependences(&events, allocations);
    let mut queues: HashMap<u32, VecDeque<usize>> = HashMap::new();
    for (place, (thread, _)) in events.iter().enumerate() {
        queues.entry(*thread).or_default().push_back(place);
    }
    let mut done = vec![false; events.len()];
    let mut order = Vec::with_capacity(events.len());
    for first in 0..events.len() {
        // The first remaining event depends on no remaining event; its thread continues from there
        // as far as it can.
        if done[first] {
            continue;
        }
        let queue = queues.entry(events[first].0).or_default();
        while let Some(&place) = queue.front()
            && before[place].iter().all(|needed| done[*needed])
        {
            queue.pop_front();
            done[place] = true;
            order.push(place);
        }
    }
    let mut events: Vec<Option<ThreadEvent>> = events.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|place| events[place].take())
        .collect()
}

/// Returns, for each event, the events that must come before it: the last event of the same object,
/// the start of its thread, and the ends of other threads before a start. A call that changes the
/// heap as a whole keeps its place among all other events.
fn dependences(events: &[ThreadEvent], allocations: impl Fn(u32) -> u64) -> Vec<Vec<usize>> {
    let mut made = HashMap::new();
    let mut used = HashMap::new();
    let mut started = HashMap::new();
    let mut ends = Vec::new();
    let mut tuned = None;
    let mut before = Vec::with_capacity(events.len());
    for (place, (thread, event)) in events.iter().enumerate() {
        let mut needed: Vec<usize> = started.remove(thread).into_iter().chain(tuned).collect();
        if let Some(token) = event.names() {
            needed.extend(used.insert(token, place));
        }
        if event.begins().is_some() {
            let index = made.entry(*thread).or_insert_with(|| allocations(*thread));
            let token = Token {
                thread: *thread,
                index: *index,
            };
            used.insert(token, place);
            *index += 1;
        }
        match event {
            Event::ThreadStart { child } => {
                started.insert(*child, place);
                needed.extend(&ends);
            }
            Event::ThreadExit => ends.push(place),
            Event::Mallopt { .. } | Event::Trim { .. } => {
                // The previous such call has waited for all before it.
                needed.extend(tuned.unwrap_or(0)..place);
                tuned = Some(place);
            }
            _ => {}
        }
        before.push(needed);
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn malloc() -> Event {
        Event::Malloc {
            size: 8,
            operator: false,
        }
    }

    fn free(thread: u32, index: u64) -> Event {
        Event::Free {
            token: Token { thread, index },
        }
    }

    #[test]
    fn an_end_comes_after_all_that_its_thread_does() {
        let mut events = vec![
            (1, Event::ThreadExit),
            (0, malloc()),
            (1, free(1, 0)),
            (2, Event::ThreadExit),
            (0, malloc()),
        ];
        put_ends_last(&mut events);
        let threads: Vec<u32> = events.iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads, [0, 1, 1, 2, 0]);
        assert_eq!(
            (&events[2].1, &events[3].1),
            (&Event::ThreadExit, &Event::ThreadExit)
        );
    }

    #[test]
    fn threads_come_together_but_nothing_is_freed_before_it_is_made() {
        let events = vec![
            (0, malloc()),
            (1, malloc()),
            (0, malloc()),
            (1, free(0, 3)),
            (0, free(1, 5)),
            (1, malloc()),
        ];
        let order = coalesce(events, |thread| if thread == 0 { 2 } else { 5 });
        let threads: Vec<u32> = order.iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads, [0, 0, 1, 1, 1, 0], "{order:?}");
        assert_eq!(order[5].1, free(1, 5));
    }

    #[test]
    fn a_call_that_changes_the_heap_as_a_whole_keeps_its_place_among_the_threads() {
        let events = vec![
            (0, malloc()),
            (1, malloc()),
            (1, free(1, 0)),
            (0, Event::Trim { pad: 0 }),
            (1, malloc()),
        ];
        assert_eq!(coalesce(events.clone(), |_| 0), events);
    }

    #[test]
    fn a_thread_does_nothing_before_it_is_started_and_none_is_started_before_others_have_ended() {
        let start = Event::ThreadStart { child: 2 };
        let events = vec![
            (1, malloc()),
            (0, malloc()),
            (1, Event::ThreadExit),
            (0, start.clone()),
            (2, malloc()),
        ];
        let order = coalesce(events, |_| 0);
        let place = |wanted: &Event| order.iter().position(|(_, event)| event == wanted).unwrap();
        assert!(place(&Event::ThreadExit) < place(&start));
        assert_eq!(order.last().unwrap().0, 2);
    }
}
