//! Compiles events into ops, one by one.

use super::ask::{Ask, MOST_BYTES, Words};
use super::slots::Slots;
use super::stream::WordWriter;
use super::thread_streams::{Moment, ThreadStreams};
use super::window::{self, ThreadEvent};
use super::{Order, Recorded};
use crate::Event::{self, *};
use crate::{Fault, FaultKind, Live, Token};
use anyhow::{Context, Result, bail};
use heapmark_wire::compiled::{self, ALL_PAGES, CompiledHead, HEAD_WORDS, MOST_SLOTS, Op, Rare};
use std::fs::File;

/// Bytes that are allocated between two memory points.
const POINT_EVERY_BYTES: u64 = 1 << 20;

/// A live object: its slot, and what must have happened before it is used.
#[derive(Clone, Copy)]
struct Object {
    slot: u32,
    /// The requested size.
    bytes: u64,
    /// The thread that played the op that made the object, and how many ops that thread must have done.
    born: Moment,
    /// The thread that used the object last, and how many ops that thread must have done.
    user: Option<Moment>,
    /// The place in the stream that holds the number of the object's touched pages; `None` for a small object.
    pages_at: Option<u64>,
    /// Whether `operator new` made the object, so that `operator delete` must free it.
    operator: bool,
    /// The alignment that the object was made with, as a power of two.
    align_log: Option<u8>,
}

struct Compiler {
    streams: ThreadStreams,
    objects: Live<Object>,
    live_bytes: u64,
    /// The live bytes of blocks of which a replay touches every page.
    whole_bytes: u64,
    slots: Slots,
    next_point: u64,
    head: CompiledHead,
}

/// Compiles the events of a trace into a file.
pub fn compile(
    events: &mut dyn Iterator<Item = Result<ThreadEvent, Fault>>,
    order: Order,
    program: Recorded,
    file: File,
) -> Result<CompiledHead> {
    let writer = WordWriter {
        file,
        words: HEAD_WORDS as u64,
    };
    let mut compiler = Compiler {
        streams: ThreadStreams::new(order, writer),
        objects: Live::default(),
        live_bytes: 0,
        whole_bytes: 0,
        slots: Slots::default(),
        next_point: POINT_EVERY_BYTES,
        head: CompiledHead::default(),
    };
    let mut window = Vec::with_capacity(window::EVENTS);
    for event in events {
        window.push(event?);
        if window.len() == window::EVENTS {
            compiler.play(&mut window)?;
        }
    }
    compiler.play(&mut window)?;
    compiler.finish(program)
}

impl Compiler {
    fn play(&mut self, window: &mut Vec<ThreadEvent>) -> Result<()> {
        window::put_ends_last(window);
        if self.streams.order.is_strict() {
            let allocations = &self.objects.allocations;
            *window = window::coalesce(std::mem::take(window), |thread| allocations.of(thread));
        }
        for (thread, event) in window.drain(..) {
            let at = self.streams.position;
            self.event(thread, &event)
                .with_context(|| format!("event {at}, thread {thread}"))?;
            self.streams.position += 1;
        }
        Ok(())
    }

    fn event(&mut self, thread: u32, event: &Event) -> Result<()> {
        match *event {
            Malloc { .. } | Calloc { .. } | Aligned { .. } => {
                self.begin(thread, Ask::of(event)?)?;
            }
            Realloc { token, .. } => {
                let (player, object) = self.reach(thread, token, true)?;
                // The old block is still live at the memory point.
                self.point(player)?;
                self.gone(&object);
                self.make(thread, player, object.slot, Ask::of(event)?)?;
            }
            Free { token } | FreeAligned { token, .. } | ReallocFree { token } => {
                self.end(thread, token, None)?;
            }
            FreeSized { token, size } | FreeAlignedSized { token, size, .. } => {
                self.end(thread, token, Some(size))?;
            }
            FreeNull => {
                let player = self.streams.player_of(thread)?;
                self.streams.prepare(player)?;
                self.call(player, &[Rare::FreeNull.word(0)])?;
            }
            UsableSize { token } => {
                let (player, object) = self.reach(thread, token, false)?;
                let (_, ops) = self.call(player, &[Rare::UsableSize.word(object.slot)])?;
                // This op waits for the previous user, and so does every op that waits for this
                // one.
                self.objects.get_mut(token)?.user = Some((player, ops));
            }
            Touch {
                token,
                resident_pages,
                extent_pages,
                pages,
            } => self.touch(token, [resident_pages, extent_pages, pages])?,
            ThreadStart { child } => self.streams.start(thread, child)?,
            ThreadExit => self.streams.exit(thread)?,
            Clock { ns } => self.streams.now_ns = ns,
            Main => self.streams.main = Some(thread),
            Mallopt { parameter, value } => {
                self.head.tunings += 1;
                let argument = |number: i32| i64::from(number) as u64;
                let words = [Rare::Mallopt.word(0), argument(parameter), argument(value)];
                self.tune(thread, &words)?;
            }
            Trim { pad } => {
                self.head.trims += 1;
                self.tune(thread, &[Rare::Trim.word(0), pad])?;
            }
            // `mallinfo` changes nothing, so it is not replayed.
            Info => {}
            Failed { .. } => self.head.failed += 1,
            Dropped { count } => self.head.dropped = self.head.dropped.saturating_add(count),
            Fork { .. } | Mark { .. } | Inherit { .. } | End { .. } => {}
        }
        Ok(())
    }

    /// Appends an op that is a call of the program; returns its place and the thread's number of
    /// ops, including this one.
    fn call(&mut self, player: u32, words: &[u64]) -> Result<(u64, u64)> {
        self.head.events += 1;
        self.streams.op(player, words)
    }

    /// Appends a call that changes the heap as a whole. The call does not count as an event: few allocators have it.
    fn tune(&mut self, thread: u32, words: &[u64]) -> Result<()> {
        let player = self.streams.player_of(thread)?;
        self.streams.prepare(player)?;
        self.streams.op(player, words).map(drop)
    }

    /// Prepares a use of an object, which must exist: waits until the thread that used it before is
    /// done. Returns the thread that plays the use, and the object.
    fn reach(&mut self, thread: u32, token: Token, ends: bool) -> Result<(u32, Object)> {
        let player = self.streams.player_of(thread)?;
        let object = if ends {
            self.objects.end(token)?
        } else {
            *self.objects.get_mut(token)?
        };
        self.streams.prepare(player)?;
        self.streams.wait_for(player, Some(object.born))?;
        self.streams.wait_for(player, object.user)?;
        Ok((player, object))
    }

    /// Removes an object's bytes from the live ones.
    fn gone(&mut self, object: &Object) {
        self.live_bytes -= object.bytes;
        if object.pages_at.is_none() {
            self.whole_bytes -= object.bytes;
        }
    }

    /// Returns the thread whose freed slots this one reuses: if one thread plays at a time, all threads
    /// share them.
    fn shelf(&self, player: u32) -> u32 {
        if self.streams.order.is_strict() {
            0
        } else {
            player
        }
    }

    /// Makes a new object in a slot of its own.
    fn begin(&mut self, thread: u32, ask: Ask) -> Result<()> {
        let player = self.streams.player_of(thread)?;
        let ops = self.streams.threads[player as usize].ops;
        let (slot, wait) = self.slots.take(self.shelf(player), ops);
        if u64::from(slot) >= MOST_SLOTS {
            bail!(
                "more than {MOST_SLOTS} objects are live at a time: no compiled trace has room for so many"
            );
        }
        self.streams.prepare(player)?;
        self.streams.wait_for(player, wait)?;
        self.point(player)?;
        self.make(thread, player, slot, ask)
    }

    /// Appends a memory point if one is due. The point stands before the op that makes an object: after the op,
    /// another thread may continue.
    fn point(&mut self, player: u32) -> Result<()> {
        if self.streams.order.is_strict() && self.head.bytes >= self.next_point {
            self.next_point = self.head.bytes + POINT_EVERY_BYTES;
            self.head.points += 1;
            let point = [
                Rare::Point.word(0),
                self.head.bytes,
                self.live_bytes,
                self.whole_bytes,
            ];
            self.streams.push(player, &point)?;
        }
        Ok(())
    }

    /// Appends the op that makes an object: the object belongs to `thread`, the op to `player`.
    fn make(&mut self, thread: u32, player: u32, slot: u32, ask: Ask) -> Result<()> {
        let bytes = ask.bytes;
        if bytes >= MOST_BYTES {
            bail!("an allocation of {bytes} bytes that did not fail");
        }
        // The sum is below 2^48, since both terms are below 2^47.
        self.live_bytes += bytes;
        if !ask.has_pages() {
            self.whole_bytes += bytes;
        }
        if self.live_bytes >= MOST_BYTES {
            bail!(
                "objects of {} bytes live at once: a process has addresses for {MOST_BYTES}",
                self.live_bytes
            );
        }
        let all_bytes = self.head.bytes.checked_add(bytes);
        self.head.bytes = all_bytes.context("more than 2^64 bytes are allocated in all")?;
        let (place, ops) = self.call(player, ask.words(slot).all())?;
        ask.count(&mut self.head);
        let object = Object {
            slot,
            bytes,
            // The object of a thread that has already ended is named by that thread, but made by
            // another.
            born: (player, ops),
            user: None,
            pages_at: ask.has_pages().then_some(place),
            operator: ask.operator,
            align_log: ask.align.checked_ilog2().map(|log| log as u8),
        };
        self.objects.begin(thread, object)?;
        let largest = bytes + ask.align;
        self.head.largest_bytes = self.head.largest_bytes.max(largest);
        if self.live_bytes > self.head.requested_peak_bytes {
            self.head.requested_peak_bytes = self.live_bytes;
            self.head.peak = (player.into(), ops);
        }
        Ok(())
    }

    fn end(&mut self, thread: u32, token: Token, size: Option<u64>) -> Result<()> {
        let (player, object) = self.reach(thread, token, true)?;
        self.gone(&object);
        let Object { slot, bytes, .. } = object;
        // Passing a wrong size is a bug in the program, with undefined behaviour.
        let is_sized = size.is_some_and(|size| size.max(1) == bytes);
        // The function that frees a block follows from the one that made it: a correct program does
        // the same, and the mistake of an incorrect one is not repeated.
        let mut words = Words::default();
        match (object.operator, object.align_log, is_sized) {
            (false, None, true) => words.add_sized(Op::FreeSized, Rare::FreeSized, slot, bytes),
            // With an alignment, the size would have to be passed, too: few allocators accept that.
            (false, ..) => words.add(&[Op::Free.word(slot, 0)]),
            (true, None, false) => words.add(&[Op::Delete.word(slot, 0)]),
            (true, None, true) => words.add_sized(Op::DeleteSized, Rare::DeleteSized, slot, bytes),
            (true, Some(log), false) => words.add(&[Rare::DeleteAligned.word(slot), 1 << log]),
            (true, Some(log), true) => {
                words.add(&[Rare::DeleteAlignedSized.word(slot), 1 << log, bytes]);
            }
        }
        let (_, ops) = self.call(player, words.all())?;
        self.head.free += 1;
        self.slots.give(self.shelf(player), slot, ops);
        Ok(())
    }

    fn touch(&mut self, token: Token, counts: [u64; 3]) -> Result<()> {
        let object = *self.objects.get_mut(token)?;
        let Some(place) = object.pages_at else {
            return Ok(());
        };
        let [resident_pages, extent_pages, pages] = counts;
        // Only pages that lie wholly in the block are counted. If all of them are in memory, so are
        // those that the block shares with its neighbours.
        let words = match resident_pages >= pages {
            true => [Rare::Pages.word(ALL_PAGES), 0],
            false => {
                let count = resident_pages.min(u64::from(ALL_PAGES) - 1) as u32;
                [Rare::Pages.word(count), extent_pages]
            }
        };
        self.streams.mend(object.born.0, place, &words)
    }

    /// Ends the streams, and writes the table of threads and the head.
    fn finish(mut self, program: Recorded) -> Result<CompiledHead> {
        if self.head.events == 0 {
            let why = "the trace has no call that could be replayed";
            return Err(Fault::new(FaultKind::Foreign, why).into());
        }
        let streams = &mut self.streams;
        let main = streams.player_of_main(program.one_is_main);
        let main = main.map_or(0, |player| u64::from(player) + 1);
        let table = streams.end()?;
        let free = self.head.free + self.objects.len();
        let objects = self.objects.into_objects().map(|(_, object)| object);
        let mut left: Vec<u64> = objects
            .filter(|object| object.operator)
            .map(|object| compiled::left(object.slot, object.align_log.map(|log| 1 << log)))
            .collect();
        // Live objects come in no fixed order; sorting them makes the same trace always give the
        // same compiled trace.
        left.sort_unstable();
        let writer = &mut streams.writer;
        let table = writer.append(&table)?;
        let left_at = writer.append(&left)?;
        writer
            .file
            .set_len(writer.words * 8)
            .context("cannot write the compiled trace")?;
        let head = CompiledHead {
            words: writer.words,
            checksum: super::checksum(&writer.file)?.into(),
            table,
            threads_at_a_time: streams.most_alive,
            strays: streams.strays,
            recorded_ns: streams.now_ns,
            threads: streams.threads.len() as u64,
            slots: self.slots.used,
            free,
            left: (left_at, left.len() as u64),
            main,
            thp_disabled: program.thp_disabled.into(),
            ..self.head
        };
        streams.writer.write(0, &head.encode())?;
        Ok(head)
    }
}
