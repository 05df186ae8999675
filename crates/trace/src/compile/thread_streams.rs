//! The threads of a compiled trace and their waits, independent of objects.

use super::Order;
use super::stream::{Stream, WordWriter};
use crate::MOST_THREADS;
use crate::grown::grown;
use anyhow::{Result, bail};
use heapmark_wire::compiled::{CompiledThread, Op, POSITION_EVERY, Rare};
use std::collections::HashMap;

/// The recorded time, in nanoseconds, after which a thread's stream gets the clock again.
const CLOCK_EVERY_NS: u64 = 50_000;

/// A thread, and how many of its ops are done.
pub type Moment = (u32, u64);

#[derive(Default)]
pub struct ThreadStream {
    stream: Stream,
    /// Whether an event names the thread; other entries only fill the numbers below a thread that is named.
    plays: bool,
    /// The number of the thread's ops, for which other threads may wait.
    pub ops: u64,
    is_started: bool,
    has_ended: bool,
    /// The position and the time from which on the stream gets a new position and the clock.
    next_position: u64,
    next_clock_ns: u64,
    /// The number of ends of other threads that this thread has waited for.
    ends_seen: usize,
}

/// The streams of all threads.
pub struct ThreadStreams {
    pub order: Order,
    pub writer: WordWriter,
    /// The position of the current event in the recorded order, and its time.
    pub position: u64,
    pub now_ns: u64,
    pub most_alive: u64,
    /// Calls of threads that had already ended.
    pub strays: u64,
    /// The program's main thread, once an event has identified it.
    pub main: Option<u32>,
    /// The threads by their numbers.
    pub threads: Vec<ThreadStream>,
    /// For each pair of threads, how many ops of one of them the other has already waited for.
    known: HashMap<(u32, u32), u64, foldhash::fast::RandomState>,
    /// Threads that have ended.
    ends: Vec<Moment>,
    alive: u64,
    /// The thread that played last, and the number of its ops.
    last: Option<Moment>,
}

impl ThreadStreams {
    pub fn new(order: Order, writer: WordWriter) -> ThreadStreams {
        ThreadStreams {
            order,
            writer,
            position: 0,
            now_ns: 0,
            most_alive: 0,
            strays: 0,
            main: None,
            threads: Vec::new(),
            known: HashMap::default(),
            ends: Vec::new(),
            alive: 0,
            last: None,
        }
    }

    /// Returns the thread that plays an event of this thread: another one if this one has ended.
    pub fn player_of(&mut self, thread: u32) -> Result<u32> {
        if thread >= MOST_THREADS {
            bail!("thread {thread}: a replay has {MOST_THREADS} threads at most");
        }
        let thread = self.player(thread);
        let entry = grown(&mut self.threads, thread as usize);
        if !entry.plays {
            entry.plays = true;
            entry.stream = Stream::new(&mut self.writer);
            self.alive += 1;
            self.most_alive = self.most_alive.max(self.alive);
        }
        if !entry.has_ended {
            return Ok(thread);
        }
        self.strays += 1;
        let mut threads = self.threads.iter();
        match threads.position(|entry| entry.plays && !entry.has_ended) {
            Some(other) => Ok(other as u32),
            // A process that ends with its last thread may make calls after that: an additional thread plays them.
            None => self.player_of(self.threads.len() as u32),
        }
    }

    /// Returns the thread whose stream holds a thread's events until the thread ends.
    fn player(&self, thread: u32) -> u32 {
        if self.order == Order::Alone {
            0
        } else {
            thread
        }
    }

    /// Appends words that are not ops; returns the place of the first.
    pub fn push(&mut self, thread: u32, words: &[u64]) -> Result<u64> {
        self.threads[thread as usize]
            .stream
            .push(&mut self.writer, words)
    }

    /// Appends an op, which other threads may wait for; returns its place and the thread's number
    /// of ops, including this one.
    pub fn op(&mut self, thread: u32, words: &[u64]) -> Result<(u64, u64)> {
        let place = self.push(thread, words)?;
        let entry = &mut self.threads[thread as usize];
        entry.ops += 1;
        self.last = Some((thread, entry.ops));
        Ok((place, entry.ops))
    }

    /// Replaces the words at a place in the stream of this thread.
    pub fn mend(&mut self, thread: u32, place: u64, words: &[u64]) -> Result<()> {
        let stream = &mut self.threads[thread as usize].stream;
        stream.mend(&self.writer, place, words)
    }

    /// Writes what precedes any op of this thread: a wait for the previous turn, its position, and
    /// the clock.
    pub fn prepare(&mut self, thread: u32) -> Result<()> {
        if self.order.is_strict() {
            return self.wait(thread, self.last);
        }
        let position = self.position;
        let now_ns = self.now_ns;
        let entry = &mut self.threads[thread as usize];
        if position >= entry.next_position {
            entry.next_position = position + POSITION_EVERY;
            entry
                .stream
                .push(&mut self.writer, &[Op::position(position)])?;
        }
        // At the start the time is 0 for every thread, so no clock is needed.
        if self.order == Order::Timed && now_ns >= entry.next_clock_ns.max(1) {
            entry.next_clock_ns = now_ns.saturating_add(CLOCK_EVERY_NS);
            entry
                .stream
                .push(&mut self.writer, &[Rare::Clock.word(0), now_ns])?;
        }
        Ok(())
    }

    /// Makes a thread wait for a moment of another thread, if one is given. In strict order, every
    /// op has already waited for all earlier ones.
    pub fn wait_for(&mut self, thread: u32, moment: Option<Moment>) -> Result<()> {
        if self.order.is_strict() {
            return Ok(());
        }
        self.wait(thread, moment)
    }

    fn wait(&mut self, thread: u32, moment: Option<Moment>) -> Result<()> {
        if let Some((other, ops)) = moment
            && other != thread
        {
            let known = self.known.entry((thread, other)).or_insert(0);
            if *known < ops {
                *known = ops;
                self.push(thread, &[Op::wait(other, ops)])?;
            }
        }
        Ok(())
    }

    /// Makes a thread start another one, unless that has already been started.
    pub fn start(&mut self, thread: u32, child: u32) -> Result<()> {
        if self.order == Order::Alone {
            return Ok(());
        }
        let player = self.player_of(thread)?;
        let known = self.threads.get(child as usize);
        let is_known =
            known.is_some_and(|child| child.ops > 0 || child.is_started || child.has_ended);
        if player == child || is_known {
            return Ok(());
        }
        // The starting thread publishes its position before it waits: the threads that it waits for
        // may wait for that position.
        self.prepare(player)?;
        // No more threads may run at a time than were recorded: the starting thread waits for all threads that had
        // ended by now.
        let seen = std::mem::replace(
            &mut self.threads[player as usize].ends_seen,
            self.ends.len(),
        );
        for place in seen..self.ends.len() {
            self.wait_for(player, Some(self.ends[place]))?;
        }
        self.player_of(child)?;
        let started = &mut self.threads[child as usize];
        started.is_started = true;
        // What its starter has waited for is over for it, too.
        started.ends_seen = self.ends.len();
        self.op(player, &[Rare::Start.word(child)]).map(|_| ())
    }

    /// Ends the stream of a thread with its exit.
    pub fn exit(&mut self, thread: u32) -> Result<()> {
        if self.order == Order::Alone || self.player_of(thread)? != thread {
            return Ok(());
        }
        self.prepare(thread)?;
        let entry = &mut self.threads[thread as usize];
        entry.has_ended = true;
        entry.stream.end(&mut self.writer, Rare::Exit.word(0))?;
        // The exit of the thread counts as one more op.
        let gone = (thread, entry.ops + 1);
        self.ends.push(gone);
        self.last = Some(gone);
        self.alive -= 1;
        Ok(())
    }

    /// Returns the thread that plays what the main thread did; `None` if another thread starts it.
    /// If no event identifies the main thread and `one_is_main` is set, the only thread is the main
    /// one.
    pub fn player_of_main(&self, one_is_main: bool) -> Option<u32> {
        let mut playing = (0..).zip(&self.threads).filter(|(_, entry)| entry.plays);
        let main = match (self.main, playing.next(), playing.next()) {
            (Some(main), ..) => Some(self.player(main)),
            (None, Some((only, _)), None) if one_is_main => Some(only),
            _ => None,
        };
        main.filter(|main| {
            let entry = self.threads.get(*main as usize);
            entry.is_some_and(|entry| entry.plays && !entry.is_started)
        })
    }

    /// Ends all streams; returns the table of threads.
    pub fn end(&mut self) -> Result<Vec<u64>> {
        let mut table = Vec::new();
        for entry in &mut self.threads {
            if entry.plays && !entry.has_ended {
                // The program's last call may have come long before its end.
                if self.order == Order::Timed && self.now_ns > 0 {
                    let clock = [Rare::Clock.word(0), self.now_ns];
                    entry.stream.push(&mut self.writer, &clock)?;
                }
                entry.stream.end(&mut self.writer, Rare::End.word(0))?;
            }
            let thread = CompiledThread {
                first: entry.stream.first,
                is_started: entry.is_started,
            };
            table.extend(thread.encode());
        }
        Ok(table)
    }
}
