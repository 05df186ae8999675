//! Compiles events into ops, one by one.

use super::super::{Event, Fault, FaultKind, Live, Token, Variant};
use super::Order;
use super::ask::{Ask, has_pages};
use super::object::{Maker, Object};
use super::slots::Slots;
use super::stream::WordWriter;
use super::thread_streams::ThreadStreams;
use super::window::{self, ThreadEvent};
use anyhow::{Context, Result, bail};
use heapmark_wire::compiled::{
    self, ALL_PAGES, CompiledHead, HEAD_WORDS, MOST_SIZE, MOST_SLOTS, Op, Rare,
};
use std::fs::File;

/// Bytes that are allocated between two memory points.
const POINT_EVERY_BYTES: u64 = 1 << 20;
/// No process has this many addresses, so no request for that many bytes succeeded.
const MOST_BYTES: u64 = 1 << 47;

struct Compiler {
    streams: ThreadStreams,
    objects: Live<Object>,
    live_bytes: u64,
    slots: Slots,
    next_point: u64,
    head: CompiledHead,
}

/// Compiles the events of a trace into a file.
pub fn compile(
    events: impl Iterator<Item = Result<ThreadEvent, Fault>>,
    order: Order,
    file: File,
) -> Result<CompiledHead> {
    let mut compiler = Compiler {
        streams: ThreadStreams::new(
            order,
            WordWriter {
                file,
                words: HEAD_WORDS as u64,
            },
        ),
        objects: Live::default(),
        live_bytes: 0,
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
    compiler.finish()
}

impl Compiler {
    fn play(&mut self, window: &mut Vec<ThreadEvent>) -> Result<()> {
        window::put_ends_last(window);
        if self.streams.order.is_strict() {
            *window = window::coalesce(std::mem::take(window), |thread| {
                self.objects.allocations(thread)
            });
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
            Event::Malloc {
                size,
                operator: false,
            } => self.begin(thread, size, Ask::Malloc)?,
            // As the C++ library does if the allocator has no operators of its own.
            Event::Malloc {
                size,
                operator: true,
            } => self.begin(thread, size.max(1), Ask::New)?,
            Event::Calloc { count, size } => {
                let bytes = count
                    .checked_mul(size)
                    .with_context(|| format!("calloc({count}, {size}) overflows"))?;
                self.begin(thread, bytes, Ask::Calloc { count, size })?;
            }
            Event::Aligned {
                align,
                size,
                variant,
            } => {
                // What posix_memalign accepts: powers of two that are at least as large as a
                // pointer.
                let align = align.clamp(8, MOST_BYTES).next_power_of_two();
                let operator = variant == Variant::Operator;
                let ask = if operator {
                    Ask::NewAligned { align }
                } else {
                    Ask::Aligned { align }
                };
                self.begin(thread, if operator { size.max(1) } else { size }, ask)?;
            }
            Event::Realloc { token, size } => self.realloc(thread, token, size)?,
            Event::Free { token }
            | Event::FreeAligned { token, .. }
            | Event::ReallocFree { token } => {
                self.end(thread, token, None)?;
            }
            Event::FreeSized { token, size } | Event::FreeAlignedSized { token, size, .. } => {
                self.end(thread, token, Some(size))?;
            }
            Event::FreeNull => {
                let player = self.streams.player_of(thread)?;
                self.streams.prepare(player)?;
                self.call(player, &[Rare::FreeNull.word(0)])?;
            }
            Event::UsableSize { token } => self.use_of(thread, token)?,
            Event::Touch {
                token,
                resident_pages,
                ..
            } => self.touch(token, resident_pages)?,
            Event::ThreadStart { child } => self.streams.start(thread, child)?,
            Event::ThreadExit => self.streams.exit(thread)?,
            Event::Clock { ns } => self.streams.now_ns = ns,
            Event::Failed { .. } => self.head.failed += 1,
            Event::Dropped { count } => self.head.dropped = self.head.dropped.saturating_add(count),
            Event::Fork { .. } | Event::Mark { .. } | Event::Inherit { .. } | Event::End { .. } => {
            }
        }
        Ok(())
    }

    /// Appends an op that is a call of the program; returns its place and the thread's number of
    /// ops, including this one.
    fn call(&mut self, player: u32, words: &[u64]) -> Result<(u64, u64)> {
        self.head.events += 1;
        self.streams.op(player, words)
    }

    /// Called before a thread uses an object: the object must exist, and the thread that used it
    /// before must be done.
    fn wait_for_object(&mut self, player: u32, owner: u32, object: &Object) -> Result<()> {
        self.streams.prepare(player)?;
        self.streams.wait_for(player, owner, object.born)?;
        object.user.map_or(Ok(()), |(user, ops)| {
            self.streams.wait_for(player, user, ops)
        })
    }

    /// Whose freed slots a thread reuses: if one thread plays at a time, all threads share them.
    fn shelf(&self, player: u32) -> u32 {
        if self.streams.order.is_strict() {
            0
        } else {
            player
        }
    }

    /// Makes a new object in a slot of its own.
    fn begin(&mut self, thread: u32, bytes: u64, ask: Ask) -> Result<()> {
        let player = self.streams.player_of(thread)?;
        let (slot, wait) = self
            .slots
            .take(self.shelf(player), self.streams.ops(player));
        if u64::from(slot) >= MOST_SLOTS {
            bail!(
                "more than {MOST_SLOTS} objects are live at a time: no compiled trace has room for so many"
            );
        }
        self.streams.prepare(player)?;
        wait.map_or(Ok(()), |(other, ops)| {
            self.streams.wait_for(player, other, ops)
        })?;
        self.make(thread, player, slot, bytes, ask)
    }

    /// Appends the op that makes an object: the object is of `thread`, the op of `player`.
    fn make(&mut self, thread: u32, player: u32, slot: u32, bytes: u64, ask: Ask) -> Result<()> {
        if bytes >= MOST_BYTES {
            bail!("an allocation of {bytes} bytes that did not fail");
        }
        // Below 2^48, since both are below 2^47.
        let live_bytes = self.live_bytes + bytes;
        if live_bytes >= MOST_BYTES {
            bail!(
                "objects of {live_bytes} bytes live at once: a process has addresses for {MOST_BYTES}"
            );
        }
        let all_bytes = self
            .head
            .bytes
            .checked_add(bytes)
            .context("more than 2^64 bytes are allocated in all")?;
        // Before the op: after it another thread may continue.
        if self.streams.order.is_strict() && self.head.bytes >= self.next_point {
            let (allocated, live) = (self.head.bytes, self.live_bytes);
            self.next_point = allocated + POINT_EVERY_BYTES;
            self.head.points += 1;
            self.streams
                .push(player, &[Rare::Point.word(0), allocated, live])?;
        }
        let (place, ops) = self.call(player, ask.words(slot, bytes).all())?;
        ask.count(&mut self.head);
        let object = Object {
            slot,
            bytes,
            // A stray's object keeps its thread's name, but another thread makes it.
            born: if player == thread { ops } else { 0 },
            user: (player != thread).then_some((player, ops)),
            pages_at: has_pages(bytes).then_some(place),
            maker: ask.maker(),
        };
        self.objects.begin(thread, object)?;
        (self.live_bytes, self.head.bytes) = (live_bytes, all_bytes);
        self.head.largest_bytes = self.head.largest_bytes.max(bytes + ask.alignment());
        if self.live_bytes > self.head.requested_peak_bytes {
            (self.head.requested_peak_bytes, self.head.peak) =
                (self.live_bytes, (player.into(), ops));
        }
        Ok(())
    }

    fn realloc(&mut self, thread: u32, token: Token, size: u64) -> Result<()> {
        let player = self.streams.player_of(thread)?;
        let object = self.objects.end(token)?;
        self.live_bytes -= object.bytes;
        self.wait_for_object(player, token.thread, &object)?;
        // A size of 0 frees in some libraries; the recorded program got a block.
        self.make(thread, player, object.slot, size.max(1), Ask::Realloc)
    }

    fn end(&mut self, thread: u32, token: Token, size: Option<u64>) -> Result<()> {
        let player = self.streams.player_of(thread)?;
        let object = self.objects.end(token)?;
        self.live_bytes -= object.bytes;
        self.wait_for_object(player, token.thread, &object)?;
        let Object {
            slot, bytes, maker, ..
        } = object;
        // To pass a wrong size is a fault of the program, and undefined.
        let is_sized = size.is_some_and(|size| size.max(1) == bytes);
        // What frees a block follows from what made it: a correct program frees it so, and the
        // mistake of an incorrect one is not repeated.
        let (_, ops) = match (maker, is_sized) {
            (Maker::C, true) if bytes <= MOST_SIZE => {
                self.call(player, &[Op::FreeSized.word(slot, bytes)])?
            }
            (Maker::C, true) => self.call(player, &[Rare::FreeSized.word(slot), bytes])?,
            // With its alignment the size would have to be passed, too: few allocators accept that.
            (Maker::C | Maker::Aligned, _) => self.call(player, &[Op::Free.word(slot, 0)])?,
            (Maker::New, false) => self.call(player, &[Op::Delete.word(slot, 0)])?,
            (Maker::New, true) if bytes <= MOST_SIZE => {
                self.call(player, &[Op::DeleteSized.word(slot, bytes)])?
            }
            (Maker::New, true) => self.call(player, &[Rare::DeleteSized.word(slot), bytes])?,
            (Maker::NewAligned(log), false) => {
                self.call(player, &[Rare::DeleteAligned.word(slot), 1 << log])?
            }
            (Maker::NewAligned(log), true) => self.call(
                player,
                &[Rare::DeleteAlignedSized.word(slot), 1 << log, bytes],
            )?,
        };
        self.head.free += 1;
        self.slots.give(self.shelf(player), slot, ops);
        Ok(())
    }

    fn use_of(&mut self, thread: u32, token: Token) -> Result<()> {
        let player = self.streams.player_of(thread)?;
        let object = *self.objects.get_mut(token)?;
        self.wait_for_object(player, token.thread, &object)?;
        let (_, ops) = self.call(player, &[Rare::UsableSize.word(object.slot)])?;
        // This op waits for the previous user, and so does every op that waits for this one.
        self.objects.get_mut(token)?.user = Some((player, ops));
        Ok(())
    }

    fn touch(&mut self, token: Token, resident_pages: u64) -> Result<()> {
        let object = self.objects.get_mut(token)?;
        let (Some(place), user) = (object.pages_at, object.user) else {
            return Ok(());
        };
        let pages = u32::try_from(resident_pages)
            .unwrap_or(ALL_PAGES)
            .min(ALL_PAGES - 1);
        // A stray's block was made in another stream, whose own buffer may hold the place.
        self.streams
            .mend(token.thread, place, Rare::Pages.word(pages))?;
        user.map_or(Ok(()), |(user, _)| {
            self.streams.mend(user, place, Rare::Pages.word(pages))
        })
    }

    /// Ends the streams, writes the table of threads and the head.
    fn finish(mut self) -> Result<CompiledHead> {
        if self.head.events == 0 {
            return Err(Fault::new(
                FaultKind::Foreign,
                "the trace has no call that could be replayed",
            )
            .into());
        }
        let table = self.streams.end()?;
        let free = self.head.free + self.objects.len();
        let left = self
            .objects
            .into_objects()
            .filter_map(|(_, Object { slot, maker, .. })| match maker {
                Maker::C | Maker::Aligned => None,
                Maker::New => Some(compiled::left(slot, None)),
                Maker::NewAligned(log) => Some(compiled::left(slot, Some(1 << log))),
            });
        let mut left: Vec<u64> = left.collect();
        // Live objects come in no fixed order; sorted, so that the same trace always gives the same
        // compiled trace.
        left.sort_unstable();
        let ThreadStreams {
            writer,
            most_alive,
            strays,
            now_ns,
            ..
        } = &mut self.streams;
        let (at, left_at, words) = (
            writer.reserve(table.len()),
            writer.reserve(left.len()),
            writer.words,
        );
        let written = writer
            .write(at, &table)
            .and_then(|()| writer.write(left_at, &left));
        written
            .and_then(|()| writer.file.set_len(words * 8))
            .context("cannot write the compiled trace")?;
        let head = CompiledHead {
            words,
            checksum: super::checksum(&writer.file)?.into(),
            table: at,
            threads_at_a_time: *most_alive,
            strays: *strays,
            recorded_ns: *now_ns,
            threads: self.streams.count(),
            slots: self.slots.used,
            free,
            left: (left_at, left.len() as u64),
            ..self.head
        };
        self.streams
            .writer
            .write(0, &head.encode())
            .context("cannot write the compiled trace")?;
        Ok(head)
    }
}
