//! Writes events into a chunk. All code here runs between the calls of another program, some ten
//! million times a second: [`Writer::put`] is inlined where the kind of event is known, and only a
//! few shifts and stores remain.
//!
//! The end of a chunk's events is not stored: zeros follow them, and no number ends with a byte of
//! zeros. So an event is valid as soon as its last number is stored, and a reader detects one that
//! lacks numbers.

use super::chunk::{Chunk, ChunkKind, HEADER_BYTES, Header, Start};
use super::event::{Event, MOST_EVENT_BYTES, MOST_MARK_BYTES, further, op};
use crate::varint::{put, zigzag};

/// The place of a stream's next event, and the state that it is encoded relative to. If all bytes
/// are zero, the writer has no chunk.
#[repr(C)]
pub struct Writer {
    at: *mut u8,
    /// The previous address, in units of eight bytes.
    word: u64,
    /// The previous stamp.
    stamp: u64,
    /// Number of events so far, in all chunks.
    events: u64,
    header: *mut Header,
}

impl Writer {
    /// A writer without a chunk.
    pub const fn nowhere() -> Writer {
        Writer {
            at: core::ptr::null_mut(),
            word: 0,
            stamp: 0,
            events: 0,
            header: core::ptr::null_mut(),
        }
    }

    /// Continues in a fresh chunk. The writer sets `start.first_event` itself.
    ///
    /// # Safety
    /// `chunk` must be `start.bytes` of zeros, aligned to eight, which only the caller writes until
    /// the writer leaves it.
    pub unsafe fn begin(&mut self, chunk: *mut u8, start: &Start) {
        let header = chunk.cast::<Header>();
        // SAFETY: as the caller guarantees.
        unsafe {
            Header::begin(
                header,
                ChunkKind::Events,
                &Start {
                    first_event: self.events,
                    ..*start
                },
            )
        };
        *self = Writer {
            at: chunk.wrapping_add(HEADER_BYTES),
            word: 0,
            stamp: start.stamp,
            events: self.events,
            header,
        };
    }

    /// The address of the next event.
    #[inline(always)]
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// The last place in the chunk where an event may begin.
    ///
    /// # Safety
    /// The writer has a chunk.
    pub unsafe fn last_place(&self) -> *mut u8 {
        // SAFETY: as the caller guarantees.
        let bytes = unsafe { (*self.header).bytes() };
        self.header
            .cast::<u8>()
            .wrapping_add(bytes - MOST_EVENT_BYTES)
    }

    /// The chunk that is being written.
    pub fn chunk(&self) -> *mut u8 {
        self.header.cast()
    }

    /// Returns the number of events so far; if another thread is using the writer, there may
    /// already be more.
    ///
    /// # Safety
    /// `writer` points to a writer.
    pub unsafe fn events(writer: *const Writer) -> u64 {
        // SAFETY: as the caller guarantees; a number that is written with one store.
        unsafe { (&raw const (*writer).events).read_volatile() }
    }

    /// Goes back to the last whole event, after a jump out of [`Writer::put`]. Returns whether
    /// events there have stamps.
    ///
    /// # Safety
    /// The writer has a chunk.
    pub unsafe fn recover(&mut self) -> bool {
        // SAFETY: a chunk of ours, with no other writer.
        let bytes = unsafe { core::slice::from_raw_parts(self.chunk(), (*self.header).bytes()) };
        let Ok(Some(chunk)) = Chunk::parse(bytes) else {
            return false;
        };
        let mut records = chunk.records();
        let mut end = records.end();
        while records.next().is_some() {
            end = records.end();
        }
        self.at = self.chunk().wrapping_add(HEADER_BYTES + end.at);
        // SAFETY: a torn event lies in the chunk, too.
        unsafe { self.at.write_bytes(0, chunk.payload.len() - end.at) };
        (self.word, self.stamp, self.events) = (end.word, end.stamp, end.number);
        end.clocked
    }

    /// Seals the events so far. With `end`, more may be put only after another [`Writer::begin`].
    ///
    /// # Safety
    /// The writer has a chunk, and is not in the middle of an event.
    pub unsafe fn seal(&self, end: bool) {
        let payload = self.header.cast::<u8>().wrapping_add(HEADER_BYTES);
        // SAFETY: as the caller guarantees.
        unsafe {
            let written = self.at.offset_from_unsigned(payload);
            (*self.header).seal(core::slice::from_raw_parts(payload, written), end);
        }
    }

    /// Writes an event. `stamp` is for clocked streams, and for `Clock` and `ClockedOn`. A stamp
    /// earlier than the previous one is written as equal to it.
    ///
    /// # Safety
    /// The writer has a chunk, and [`Writer::at`] is not after [`Writer::last_place`].
    #[inline(always)]
    pub unsafe fn put(&mut self, event: &Event<'_>, stamp: Option<u64>) {
        // SAFETY: each event takes at most MOST_EVENT_BYTES: a prefix of two bytes, one number with
        // an address, and up to four further ones of nine bytes; or one with the text of a mark.
        unsafe {
            match *event {
                Event::Malloc {
                    address,
                    size,
                    operator,
                } => {
                    self.address(if operator { op::NEW } else { op::MALLOC }, address);
                    self.number(size);
                }
                Event::Calloc {
                    address,
                    count,
                    size,
                } => {
                    self.address(op::CALLOC, address);
                    self.number(count);
                    self.number(size);
                }
                Event::Realloc {
                    old,
                    new,
                    size,
                    entered,
                } => {
                    self.realloc(old, new, size);
                    // If the clock was switched on during the call, the call's start is unknown,
                    // and the stamp of the previous event is written.
                    if stamp.is_some() {
                        self.time(entered.unwrap_or(0));
                    }
                }
                Event::Aligned {
                    address,
                    align,
                    size,
                    variant,
                } => {
                    self.address(op::ALIGNED, address);
                    self.number(variant as u64);
                    self.number(align);
                    self.number(size);
                }
                Event::Free { address, operator } => {
                    self.address(if operator { op::DELETE } else { op::FREE }, address);
                }
                Event::FreeSized {
                    address,
                    size,
                    operator,
                } => {
                    self.address(
                        if operator {
                            op::DELETE_SIZED
                        } else {
                            op::FREE_SIZED
                        },
                        address,
                    );
                    self.number(size);
                }
                Event::FreeAlignedSized {
                    address,
                    align,
                    size,
                    operator,
                } => {
                    self.address(
                        if operator {
                            op::DELETE_ALIGNED_SIZED
                        } else {
                            op::FREE_ALIGNED_SIZED
                        },
                        address,
                    );
                    self.number(align);
                    self.number(size);
                }
                Event::FreeAligned { address, align } => {
                    self.address(op::DELETE_ALIGNED, address);
                    self.number(align);
                }
                Event::UsableSize { address } => self.address(op::USABLE_SIZE, address),
                Event::FreeNull => self.further(further::FREE_NULL),
                Event::Clock => self.further(further::CLOCK),
                Event::ClockedOn => self.further(further::CLOCKED_ON),
                Event::ThreadExit => self.further(further::THREAD_EXIT),
                Event::Main => self.further(further::MAIN),
                Event::Info => self.further(further::INFO),
                Event::Mallopt { parameter, value } => {
                    self.further_with(further::MALLOPT, u64::from(parameter as u32));
                    self.number(u64::from(value as u32));
                }
                Event::Trim { pad } => self.further_with(further::TRIM, pad),
                Event::Begin { thread } => self.further_with(further::BEGIN, u64::from(thread)),
                Event::ThreadStart { child } => {
                    self.further_with(further::THREAD_START, u64::from(child))
                }
                Event::Forking { moment } => self.further_with(further::FORKING, moment),
                Event::Fork { pid } => self.further_with(further::FORK, u64::from(pid)),
                Event::Time { ns } => self.further_with(further::TIME, ns),
                Event::Failed { call, size } => {
                    self.further_with(further::FAILED, call as u64);
                    self.number(size);
                }
                Event::Touch {
                    address,
                    resident,
                    extent,
                    pages,
                } => {
                    self.further_with(further::TOUCH, address);
                    self.number(resident);
                    self.number(extent);
                    self.number(pages);
                }
                Event::Mark { text } => {
                    let text = &text[..text.len().min(MOST_MARK_BYTES)];
                    self.further_with(further::MARK, text.len() as u64);
                    self.at.copy_from_nonoverlapping(text.as_ptr(), text.len());
                    self.at = self.at.add(text.len());
                }
            }
            if let Some(stamp) = stamp {
                self.time(stamp);
            }
        }
        self.events += 1;
    }

    /// The unsafe functions below are parts of [`Writer::put`], and have its safety conditions.
    #[inline(always)]
    unsafe fn number(&mut self, value: u64) {
        // SAFETY: see `put`.
        self.at = unsafe { put(self.at, value) };
    }

    #[inline(always)]
    unsafe fn address(&mut self, op: u64, address: u64) {
        if address & 7 != 0 {
            // SAFETY: see `put`.
            unsafe { self.low_bits(address & 7) };
        }
        // SAFETY: see `put`.
        unsafe { self.distance(op, address) };
    }

    #[inline(always)]
    unsafe fn distance(&mut self, op: u64, address: u64) {
        let word = address >> 3;
        let distance = zigzag(word.wrapping_sub(self.word) as i64);
        self.word = word;
        // SAFETY: see `put`.
        unsafe { self.number(distance << 4 | op) };
    }

    #[cold]
    unsafe fn low_bits(&mut self, bits: u64) {
        // SAFETY: see `put`.
        unsafe { self.number(bits << 4 | op::LOW_BITS) };
    }

    #[inline(always)]
    unsafe fn realloc(&mut self, old: u64, new: u64, size: u64) {
        let low = (old & 7) | (new & 7) << 3;
        // SAFETY: see `put`.
        unsafe {
            if low != 0 {
                self.low_bits(low);
            }
            if old == 0 {
                self.distance(op::REALLOC_NULL, new);
            } else {
                self.distance(op::REALLOC, old);
                let word = new >> 3;
                self.number(zigzag(word.wrapping_sub(self.word) as i64));
                self.word = word;
            }
            self.number(size);
        }
    }

    #[inline(always)]
    unsafe fn time(&mut self, stamp: u64) {
        let passed = stamp.saturating_sub(self.stamp);
        self.stamp += passed;
        // SAFETY: see `put`.
        unsafe { self.number(passed) };
    }

    #[inline(always)]
    unsafe fn further(&mut self, code: u64) {
        // SAFETY: see `put`.
        unsafe { self.number(code << 4 | op::FURTHER) };
    }

    #[inline(always)]
    unsafe fn further_with(&mut self, code: u64, value: u64) {
        // SAFETY: see `put`.
        unsafe {
            self.further(code);
            self.number(value);
        }
    }
}
