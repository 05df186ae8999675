//! Numbers and texts: appended to a payload when written, taken off its front when read.

use super::{MOST_MARK, OPERATION_BITS};
use crate::fault::{Result, damaged};
use heapmark_wire::varint;

/// Appends a number to a payload.
#[inline(always)]
pub fn put_number(payload: &mut Vec<u8>, number: u64) {
    payload.reserve(varint::MOST_BYTES);
    let used = payload.len();
    // SAFETY: the payload has room for the longest number, and both pointers point into it.
    unsafe {
        let start = payload.as_mut_ptr().add(used);
        let length = varint::put(start, number).offset_from_unsigned(start);
        payload.set_len(used + length);
    }
}

/// Appends the first number of an event: its operation, and a field above that.
#[inline(always)]
pub fn put_first(payload: &mut Vec<u8>, operation: u64, field: u64) {
    put_number(payload, field << OPERATION_BITS | operation);
}

/// Takes a number off the front of a payload.
#[inline(always)]
pub fn take_number(payload: &mut &[u8]) -> Result<u64> {
    let Some((number, length)) = varint::get(payload) else {
        return damaged("the chunk ends within an event");
    };
    *payload = &payload[length..];
    Ok(number)
}

/// Takes a text off the front of a payload.
pub fn take_text(payload: &mut &[u8]) -> Result<Box<str>> {
    let length = take_number(payload)?;
    let left = payload.len();
    if length > MOST_MARK as u64 || length > left as u64 {
        return damaged(format!(
            "a mark of {length} bytes in a chunk that has {left} left"
        ));
    }
    let (text, rest) = payload.split_at(length as usize);
    *payload = rest;
    Ok(String::from_utf8_lossy(text).into())
}
