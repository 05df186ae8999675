//! Event by event into ops.

use super::super::{Event, Fault, Kind, Live, MOST_THREADS, Token};
use super::object::Object;
use super::slots::Slots;
use super::stream::{Paper, Stream};
use super::window::{self, Told};
use anyhow::{Context, Result, bail};
use heapmark_wire::score::{
    ALL_PAGES, HEAD_WORDS, Head, MOST_SLOTS, Op, PAGES_FROM_BYTES, POSITION_EVERY, Rare, Thread,
};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// How the threads of a replay keep to the recorded order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A thread waits for what its next op needs.
    Dependent,
    /// As that, and for the recorded time.
    Timed,
    /// One thread plays at a time.
    Strict,
}

/// The clock is told to a thread when so much time has passed since it was last told.
const CLOCK_EVERY_NS: u64 = 50_000;
/// Bytes that are allocated from one point to the next.
const POINT_EVERY_BYTES: u64 = 1 << 20;
/// No machine has so much; what asks for it did not get it.
const MOST_BYTES: u64 = 1 << 47;

struct Actor {
    stream: Stream,
    /// What other threads wait for.
    ops: u64,
    is_started: bool,
    has_ended: bool,
    /// Its last position and clock that were written.
    position: Option<u64>,
    clock_ns: Option<u64>,
    /// Ends of other threads that it has waited for.
    ends_seen: usize,
}

struct Compiler {
    order: Order,
    paper: Paper,
    actors: Vec<Actor>,
    objects: Live<Object>,
    live_bytes: u64,
    slots: Slots,
    /// What a thread knows of another one's ops.
    known: HashMap<(u32, u32), u64, foldhash::fast::RandomState>,
    /// Threads that have ended, and what to wait for.
    ends: Vec<(u32, u64)>,
    alive: u64,
    /// The thread that played last, and what to wait for.
    last: Option<(u32, u64)>,
    now_ns: u64,
    position: u64,
    next_point: u64,
    head: Head,
}

/// Compiles the events of a trace into a file.
pub fn compile(events: impl Iterator<Item = Result<Told, Fault>>, order: Order, file: File) -> Result<Head> {
    let mut compiler = Compiler {
        order,
        paper: Paper { file, words: HEAD_WORDS as u64 },
        actors: Vec::new(),
        objects: Live::default(),
        live_bytes: 0,
        slots: Slots::default(),
        known: HashMap::default(),
        ends: Vec::new(),
        alive: 0,
        last: None,
        now_ns: 0,
        position: 0,
        next_point: POINT_EVERY_BYTES,
        head: Head::default(),
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
    fn play(&mut self, window: &mut Vec<Told>) -> Result<()> {
        window::put_ends_last(window);
        if self.order == Order::Strict {
            *window = window::coalesce(std::mem::take(window), |thread| self.objects.allocations(thread));
        }
        for (thread, event) in window.drain(..) {
            let at = self.position;
            self.event(thread, &event).with_context(|| format!("event {at}, thread {thread}"))?;
            self.position += 1;
        }
        Ok(())
    }

    fn event(&mut self, thread: u32, event: &Event) -> Result<()> {
        match *event {
            Event::Malloc { size, .. } => self.begin(thread, size, |slot, words| {
                words.extend(sized(Op::Malloc, Rare::Malloc, slot, size));
            }),
            Event::Calloc { count, size } => {
                let bytes = count.checked_mul(size).with_context(|| format!("calloc({count}, {size}) overflows"))?;
                self.begin(thread, bytes, |slot, words| match (count, u32::try_from(size)) {
                    (1, Ok(size)) => words.push(Op::Calloc.word(slot, size)),
                    _ => words.extend([Rare::Calloc.word(slot), count, size]),
                })
            }
            Event::Aligned { align, size, .. } => {
                // What posix_memalign takes: powers of two that hold a pointer.
                let align = align.clamp(8, MOST_BYTES).next_power_of_two();
                self.begin(thread, size, |slot, words| words.extend([Rare::Aligned.word(slot), align, size]))
            }
            Event::Realloc { token, size } => self.realloc(thread, token, size),
            Event::Free { token }
            | Event::FreeAligned { token, .. }
            | Event::FreeAlignedSized { token, .. }
            | Event::ReallocFree { token } => self.end(thread, token, None),
            Event::FreeSized { token, size } => self.end(thread, token, Some(size)),
            Event::FreeNull => self.call(thread, &[Rare::FreeNull.word(0)]).map(|_| ()),
            Event::UsableSize { token } => self.use_of(thread, token),
            Event::Touch { token, resident_pages, .. } => self.touch(token, resident_pages),
            Event::ThreadStart { child } => self.start(thread, child),
            Event::ThreadExit => self.exit(thread),
            Event::Clock { ns } => {
                self.now_ns = ns;
                Ok(())
            }
            Event::Failed { .. } => {
                self.head.failed += 1;
                Ok(())
            }
            Event::Dropped { count } => {
                self.head.dropped += count;
                Ok(())
            }
            Event::Fork { .. } | Event::Mark { .. } | Event::Inherit { .. } | Event::End { .. } => Ok(()),
        }
    }

    /// The number of the thread that plays an event of this thread: another one, where it has ended.
    fn actor(&mut self, thread: u32) -> Result<u32> {
        if thread >= MOST_THREADS {
            bail!("thread {thread}: a replay has {MOST_THREADS} threads at most");
        }
        while self.actors.len() <= thread as usize {
            self.actors.push(Actor {
                stream: Stream::new(&mut self.paper),
                ops: 0,
                is_started: false,
                has_ended: false,
                position: None,
                clock_ns: None,
                ends_seen: 0,
            });
            self.alive += 1;
        }
        self.head.threads_at_a_time = self.head.threads_at_a_time.max(self.alive);
        if !self.actors[thread as usize].has_ended {
            return Ok(thread);
        }
        self.head.strays += 1;
        let other = self.actors.iter().position(|actor| !actor.has_ended);
        other.map(|other| other as u32).context("it goes on after all threads have ended")
    }

    fn push(&mut self, thread: u32, words: &[u64]) -> Result<u64> {
        let stream = &mut self.actors[thread as usize].stream;
        stream.push(&mut self.paper, words).context("cannot write the score")
    }

    /// What stands before an op of this thread: what it waits for besides its object, and where it is.
    fn prepare(&mut self, thread: u32) -> Result<()> {
        if self.order == Order::Strict {
            if let Some((other, ops)) = self.last.filter(|(other, _)| *other != thread) {
                self.wait_for(thread, other, ops)?;
            }
            return Ok(());
        }
        let (position, now_ns) = (self.position, self.now_ns);
        let actor = &mut self.actors[thread as usize];
        if actor.position.is_none_or(|last| position >= last + POSITION_EVERY) {
            actor.position = Some(position);
            self.push(thread, &[Op::position(position)])?;
        }
        let actor = &mut self.actors[thread as usize];
        if self.order == Order::Timed && actor.clock_ns.map_or(now_ns > 0, |last| now_ns >= last + CLOCK_EVERY_NS) {
            actor.clock_ns = Some(now_ns);
            self.push(thread, &[Rare::Clock.word(0), now_ns])?;
        }
        Ok(())
    }

    /// Appends an op that counts; returns how many the thread has then.
    fn call(&mut self, thread: u32, words: &[u64]) -> Result<u64> {
        let thread = self.actor(thread)?;
        self.prepare(thread)?;
        self.push(thread, words)?;
        self.head.events += 1;
        Ok(self.count(thread))
    }

    fn count(&mut self, thread: u32) -> u64 {
        let actor = &mut self.actors[thread as usize];
        actor.ops += 1;
        self.last = Some((thread, actor.ops));
        actor.ops
    }

    fn wait_for(&mut self, thread: u32, other: u32, ops: u64) -> Result<()> {
        let known = self.known.entry((thread, other)).or_insert(0);
        if thread == other || *known >= ops {
            return Ok(());
        }
        *known = ops;
        let count = u32::try_from(ops).ok().context("more than 4294967295 operations of one thread")?;
        self.push(thread, &[Op::Wait.word(other, count)]).map(|_| ())
    }

    /// Before a thread uses an object: it must be there, and whoever used it before must be done.
    fn wait_for_object(&mut self, thread: u32, owner: u32, object: &Object) -> Result<()> {
        // In strict order everything waits for everything.
        if self.order == Order::Strict {
            return Ok(());
        }
        self.wait_for(thread, owner, object.born)?;
        object.user.map_or(Ok(()), |(user, ops)| self.wait_for(thread, user, ops))
    }

    /// A new object in a slot of its own.
    fn begin(&mut self, thread: u32, bytes: u64, op: impl FnOnce(u32, &mut Vec<u64>)) -> Result<()> {
        if bytes >= MOST_BYTES {
            bail!("an allocation of {bytes} bytes that did not fail");
        }
        let actor = self.actor(thread)?;
        let owner = if self.order == Order::Strict { 0 } else { actor };
        let (slot, wait) = self.slots.take(owner, self.actors[actor as usize].ops);
        if u64::from(slot) >= MOST_SLOTS {
            bail!("more than {MOST_SLOTS} objects are live at a time: no score has room for so many");
        }
        self.prepare(actor)?;
        if let Some((other, ops)) = wait.filter(|_| self.order != Order::Strict) {
            self.wait_for(actor, other, ops)?;
        }
        let is_aligned = self.make(thread, actor, slot, bytes, op)?;
        let head = &mut self.head;
        match is_aligned {
            Some(Rare::Aligned) => head.aligned += 1,
            Some(Rare::Calloc) => head.calloc += 1,
            _ => head.malloc += 1,
        }
        Ok(())
    }

    /// The op that makes an object, of `thread` by `actor`; returns what kind of op it is, where it is not malloc's.
    fn make(
        &mut self,
        thread: u32,
        actor: u32,
        slot: u32,
        bytes: u64,
        op: impl FnOnce(u32, &mut Vec<u64>),
    ) -> Result<Option<Rare>> {
        let mut words = Vec::with_capacity(4);
        let is_large = bytes >= PAGES_FROM_BYTES;
        words.extend(is_large.then(|| Rare::Pages.word(ALL_PAGES)));
        op(slot, &mut words);
        let word = words[usize::from(is_large)];
        let kind = match Op::of(word) {
            Op::Calloc => Some(Rare::Calloc),
            Op::Rare => Rare::of(word),
            _ => None,
        };
        // Before the op: after it somebody else may go on.
        if self.order == Order::Strict && self.head.bytes >= self.next_point {
            let (volume, live) = (self.head.bytes, self.live_bytes);
            self.next_point = volume + POINT_EVERY_BYTES;
            self.head.points += 1;
            self.push(actor, &[Rare::Point.word(0), volume, live])?;
        }
        let place = self.push(actor, &words)?;
        self.head.events += 1;
        let ops = self.count(actor);
        self.objects.begin(
            thread,
            Object {
                slot,
                bytes,
                // A stray's object is its thread's by name, and another one's by deed.
                born: if actor == thread { ops } else { 0 },
                user: (actor != thread).then_some((actor, ops)),
                pages_at: is_large.then_some(place),
                is_aligned: kind == Some(Rare::Aligned),
            },
        )?;
        self.live_bytes += bytes;
        let head = &mut self.head;
        head.bytes += bytes;
        if self.live_bytes > head.requested_peak_bytes {
            (head.requested_peak_bytes, head.peak) = (self.live_bytes, (actor.into(), ops));
        }
        Ok(kind)
    }

    fn realloc(&mut self, thread: u32, token: Token, size: u64) -> Result<()> {
        if size >= MOST_BYTES {
            bail!("a reallocation to {size} bytes that did not fail");
        }
        let actor = self.actor(thread)?;
        let object = self.objects.end(token)?;
        self.live_bytes -= object.bytes;
        self.prepare(actor)?;
        self.wait_for_object(actor, token.thread, &object)?;
        // A size of 0 frees in some libraries; the recorded program got a block.
        let size = size.max(1);
        self.make(thread, actor, object.slot, size, |slot, words| {
            words.extend(sized(Op::Realloc, Rare::Realloc, slot, size));
        })?;
        self.head.realloc += 1;
        Ok(())
    }

    fn end(&mut self, thread: u32, token: Token, size: Option<u64>) -> Result<()> {
        let actor = self.actor(thread)?;
        let object = self.objects.end(token)?;
        self.live_bytes -= object.bytes;
        self.prepare(actor)?;
        self.wait_for_object(actor, token.thread, &object)?;
        // To say a wrong size, or of a block whose alignment must be said too, is another program's fault and undefined.
        let is_sized = size.is_some_and(|size| size == object.bytes && size > 0 && !object.is_aligned);
        match (is_sized, u32::try_from(object.bytes)) {
            (false, _) => self.push(actor, &[Op::Free.word(object.slot, 0)])?,
            (true, Ok(bytes)) => self.push(actor, &[Op::FreeSized.word(object.slot, bytes)])?,
            (true, Err(_)) => self.push(actor, &[Rare::FreeSized.word(object.slot), object.bytes])?,
        };
        self.head.events += 1;
        let ops = self.count(actor);
        let owner = if self.order == Order::Strict { 0 } else { actor };
        self.slots.give(owner, object.slot, ops);
        self.head.free += 1;
        Ok(())
    }

    fn use_of(&mut self, thread: u32, token: Token) -> Result<()> {
        let actor = self.actor(thread)?;
        let object = *self.objects.get_mut(token)?;
        self.prepare(actor)?;
        self.wait_for_object(actor, token.thread, &object)?;
        self.push(actor, &[Rare::UsableSize.word(object.slot)])?;
        self.head.events += 1;
        let ops = self.count(actor);
        // Who used it before is waited for by this one, and so by whoever waits for this one.
        self.objects.get_mut(token)?.user = Some((actor, ops));
        Ok(())
    }

    fn touch(&mut self, token: Token, resident_pages: u64) -> Result<()> {
        let object = self.objects.get_mut(token)?;
        let (Some(place), user) = (object.pages_at, object.user) else { return Ok(()) };
        let pages = u32::try_from(resident_pages).unwrap_or(ALL_PAGES).min(ALL_PAGES - 1);
        // A stray's block was made in another stream, whose own buffer may hold the place.
        let actors = [Some(token.thread), user.map(|(user, _)| user)];
        for actor in actors.into_iter().flatten() {
            let stream = &mut self.actors[actor as usize].stream;
            stream.mend(&self.paper, place, Rare::Pages.word(pages)).context("cannot write the score")?;
        }
        Ok(())
    }

    fn start(&mut self, thread: u32, child: u32) -> Result<()> {
        let actor = self.actor(thread)?;
        let is_new = child as usize >= self.actors.len()
            || self.actors[child as usize].ops == 0 && !self.actors[child as usize].is_started;
        if !is_new || actor == child {
            return Ok(());
        }
        if child >= MOST_THREADS {
            bail!("thread {child}: a replay has {MOST_THREADS} threads at most");
        }
        // Not more threads at a time than were: those that had ended by now have ended.
        if self.order != Order::Strict {
            let seen = std::mem::replace(&mut self.actors[actor as usize].ends_seen, self.ends.len());
            for place in seen..self.ends.len() {
                let (ended, ops) = self.ends[place];
                self.wait_for(actor, ended, ops)?;
            }
        }
        self.actor(child)?;
        self.actors[child as usize].is_started = true;
        self.prepare(actor)?;
        self.push(actor, &[Rare::Start.word(child)])?;
        self.count(actor);
        Ok(())
    }

    fn exit(&mut self, thread: u32) -> Result<()> {
        let actor = self.actor(thread)?;
        if actor != thread {
            return Ok(());
        }
        self.prepare(thread)?;
        self.push(thread, &[Rare::Exit.word(0)])?;
        let actor = &mut self.actors[thread as usize];
        actor.has_ended = true;
        actor.stream.end(&self.paper).context("cannot write the score")?;
        // It has one op more when the thread is gone.
        self.ends.push((thread, actor.ops + 1));
        self.last = Some((thread, actor.ops + 1));
        self.alive -= 1;
        Ok(())
    }

    /// Ends the streams, writes the table of threads and the head.
    fn finish(mut self) -> Result<Head> {
        if self.head.events == 0 {
            return Err(Fault::new(Kind::Impossible, "the trace has no call that could be replayed").into());
        }
        let mut table = Vec::new();
        for actor in &mut self.actors {
            if !actor.has_ended {
                actor.stream.push(&mut self.paper, &[Rare::End.word(0)])?;
                actor.stream.end(&self.paper)?;
            }
            table.extend(Thread { first: actor.stream.first, is_started: actor.is_started }.encode());
        }
        let head = &mut self.head;
        head.free += self.objects.len();
        head.threads = self.actors.len() as u64;
        head.slots = self.slots.used;
        head.recorded_ns = self.now_ns;
        head.table = self.paper.reserve(table.len());
        head.words = self.paper.words;
        self.paper.write(head.table, &table).context("cannot write the score")?;
        self.paper.file.set_len(head.words * 8).context("cannot write the score")?;
        head.checksum = checksum(&self.paper.file)?.into();
        self.paper.write(0, &head.encode()).context("cannot write the score")?;
        Ok(self.head)
    }
}

/// One word where the size fits, two where it does not.
fn sized(op: Op, wide: Rare, slot: u32, size: u64) -> Vec<u64> {
    match u32::try_from(size) {
        Ok(size) => vec![op.word(slot, size)],
        Err(_) => vec![wide.word(slot), size],
    }
}

/// CRC-32 of all words behind the head.
pub fn checksum(file: &File) -> Result<u32> {
    let mut hash = crc32fast::Hasher::new();
    let mut at = HEAD_WORDS as u64 * 8;
    let mut room = vec![0; 1 << 20];
    loop {
        let read = file.read_at(&mut room, at).context("cannot read the score")?;
        if read == 0 {
            return Ok(hash.finalize());
        }
        hash.update(&room[..read]);
        at += read as u64;
    }
}
