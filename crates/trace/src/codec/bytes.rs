//! Numbers and texts: appended to a buffer when written, taken off its front when read.

use super::{MOST_MARK, OPERATION_BITS};
use crate::fault::{Fault, damaged};
use heapmark_wire::varint;

/// A buffer that events are written to.
pub(crate) struct Pen {
    bytes: Box<[u8]>,
    used: usize,
}

impl Pen {
    pub(crate) fn new(room: usize) -> Pen {
        Pen {
            bytes: vec![0; room].into(),
            used: 0,
        }
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.used
    }

    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    #[inline(always)]
    pub(crate) fn number(&mut self, number: u64) {
        let rest = &mut self.bytes[self.used..];
        assert!(
            rest.len() >= varint::MOST_BYTES,
            "the caller looks at `left`"
        );
        let start = rest.as_mut_ptr();
        // SAFETY: it has room for the longest number, as was just seen, and both pointers are into it.
        self.used += unsafe { varint::put(start, number).offset_from_unsigned(start) };
    }

    #[inline(always)]
    pub(super) fn first(&mut self, operation: u64, field: u64) {
        self.number(field << OPERATION_BITS | operation);
    }

    pub(super) fn rare(&mut self, which: u64, fields: &[u64]) {
        self.first(super::RARE, which);
        fields.iter().for_each(|field| self.number(*field));
    }

    pub(super) fn text(&mut self, text: &str) {
        let bytes = &text.as_bytes()[..text.floor_char_boundary(MOST_MARK)];
        self.number(bytes.len() as u64);
        self.bytes[self.used..][..bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }
}

/// A payload; events are taken off its front.
pub(crate) struct Bytes<'a> {
    pub(crate) all: &'a [u8],
    pub(crate) at: usize,
}

impl Bytes<'_> {
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Result<u64, Fault> {
        let Some((number, length)) = varint::get(&self.all[self.at..]) else {
            return Err(damaged("the chunk ends within an event"));
        };
        self.at += length;
        Ok(number)
    }

    pub(super) fn text(&mut self) -> Result<Box<str>, Fault> {
        let length = self.number()?;
        let rest = &self.all[self.at..];
        if length > MOST_MARK as u64 || length > rest.len() as u64 {
            return Err(damaged(format!(
                "a mark of {length} bytes in a chunk that has {} left",
                rest.len()
            )));
        }
        self.at += length as usize;
        Ok(String::from_utf8_lossy(&rest[..length as usize]).into())
    }
}
