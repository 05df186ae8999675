//! A small model of the guest: checks that the slots and waits of a compiled trace are correct.

use heapmark_wire::compiled::{self, CompiledHead, CompiledThread, Op, Rare};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Plays a compiled trace as the guest does, with threads taking turns at random. Returns what went
/// wrong, if anything.
pub(super) struct Stage<'s> {
    words: &'s [u64],
    pub(super) slots: Vec<bool>,
    threads: Vec<ThreadStream>,
    pub(super) live_bytes_at_strict_points: Vec<u64>,
    pub(super) calls: u64,
    pub(super) starts: u64,
    /// How often a call follows one of another thread.
    pub(super) changes: u64,
    last: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Unborn,
    Playing,
    Over,
}

struct ThreadStream {
    at: usize,
    done: u64,
    state: State,
}

impl<'s> Stage<'s> {
    pub(super) fn new(words: &'s [u64]) -> Stage<'s> {
        let head = CompiledHead::decode(words).unwrap();
        let threads = (0..head.threads as usize).map(|number| {
            let thread = CompiledThread::of(words, &head, number).unwrap();
            let state = match thread {
                _ if !thread.plays() => State::Over,
                CompiledThread {
                    is_started: true, ..
                } => State::Unborn,
                _ => State::Playing,
            };
            ThreadStream {
                at: thread.first as usize,
                done: 0,
                state,
            }
        });
        let slots = vec![false; head.slots as usize];
        Stage {
            words,
            slots,
            threads: threads.collect(),
            live_bytes_at_strict_points: Vec::new(),
            calls: 0,
            starts: 0,
            changes: 0,
            last: usize::MAX,
        }
    }

    fn fill(&mut self, slot: usize) -> Result<(), String> {
        if std::mem::replace(&mut self.slots[slot], true) {
            Err(format!("slot {slot} is full"))
        } else {
            Ok(())
        }
    }

    fn empty(&mut self, slot: usize) -> Result<(), String> {
        if std::mem::replace(&mut self.slots[slot], false) {
            Ok(())
        } else {
            Err(format!("slot {slot} is empty"))
        }
    }

    /// Runs one op of a thread; `false` if it has to wait.
    fn step(&mut self, who: usize) -> Result<bool, String> {
        let at = self.threads[who].at;
        let word = self.words[at];
        let (slot, size) = (compiled::slot(word), compiled::size(word));
        let mut length = 1;
        let mut counts = true;
        match Op::of(word) {
            Op::Malloc | Op::Calloc | Op::New => self.fill(slot)?,
            Op::Free | Op::FreeSized | Op::Delete | Op::DeleteSized => self.empty(slot)?,
            Op::Realloc => self.empty(slot).and_then(|()| self.fill(slot))?,
            Op::Wait if self.threads[compiled::wait(word).0].done < compiled::wait(word).1 => {
                return Ok(false);
            }
            Op::Wait | Op::Position => counts = false,
            Op::Rare => match Rare::of(word).ok_or("no op")? {
                Rare::Jump => {
                    self.threads[who].at = self.words[at + 1] as usize;
                    return Ok(true);
                }
                Rare::End | Rare::Exit => {
                    self.threads[who].state = State::Over;
                    // The exit of the thread counts as one more op.
                    self.threads[who].done += 1;
                    return Ok(true);
                }
                Rare::Start => {
                    if std::mem::replace(&mut self.threads[size].state, State::Playing)
                        != State::Unborn
                    {
                        return Err(format!("thread {size} is started twice"));
                    }
                    self.starts += 1;
                }
                Rare::Pages | Rare::Clock => (counts, length) = (false, 2),
                Rare::Point => {
                    self.live_bytes_at_strict_points.push(self.words[at + 2]);
                    (counts, length) = (false, 4);
                }
                Rare::FreeNull => {}
                Rare::Mallopt => length = 3,
                Rare::Trim => length = 2,
                Rare::UsableSize => self.empty(size).and_then(|()| self.fill(size))?,
                Rare::Malloc | Rare::New => (_, length) = (self.fill(size)?, 2),
                Rare::Calloc | Rare::Aligned | Rare::NewAligned => {
                    (_, length) = (self.fill(size)?, 3)
                }
                Rare::Realloc => {
                    (_, length) = (self.empty(size).and_then(|()| self.fill(size))?, 2)
                }
                Rare::FreeSized | Rare::DeleteSized | Rare::DeleteAligned => {
                    (_, length) = (self.empty(size)?, 2)
                }
                Rare::DeleteAlignedSized => (_, length) = (self.empty(size)?, 3),
            },
        }
        let thread = &mut self.threads[who];
        thread.at += length;
        if counts {
            thread.done += 1;
            self.calls += 1;
            self.changes += u64::from(std::mem::replace(&mut self.last, who) != who);
        }
        Ok(true)
    }

    pub(super) fn play(mut self, seed: u64) -> Result<Stage<'s>, String> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut idle = 0;
        while self
            .threads
            .iter()
            .any(|thread| thread.state != State::Over)
        {
            let who = random.random_range(0..self.threads.len());
            let turns = random.random_range(1..200);
            let mut moved = false;
            let until = self.threads[who].done + turns;
            while self.threads[who].done < until
                && self.threads[who].state == State::Playing
                && self.step(who)?
            {
                moved = true;
            }
            idle = if moved { 0 } else { idle + 1 };
            if idle > 100_000 {
                return Err("no thread can go on".into());
            }
        }
        Ok(self)
    }
}
