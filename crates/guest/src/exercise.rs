//! Tests in every measured process, after the clock has stopped, that the allocator's blocks are
//! still sound: blocks of many sizes are filled with a byte of their own, half are replaced, and
//! all must keep their contents.

use crate::api::{self, Api};
use crate::report;
use crate::rng::SplitMix;

const BLOCKS: usize = 512;

#[derive(Clone, Copy)]
struct FilledBlock {
    address: *mut u8,
    size: usize,
    fill: u8,
}

/// Ends the process as `wrong-result` if blocks overlap, are misaligned, or lose their contents.
pub fn run(api: &Api) {
    let mut random = SplitMix::new(0x5eed, 0);
    let mut blocks = [FilledBlock {
        address: core::ptr::null_mut(),
        size: 0,
        fill: 0,
    }; BLOCKS];
    for (index, block) in blocks.iter_mut().enumerate() {
        *block = allocate(api, &mut random, index);
    }
    for index in (0..BLOCKS).step_by(2) {
        release(api, &blocks[index]);
        blocks[index] = allocate(api, &mut random, BLOCKS + index);
    }
    blocks.iter().for_each(|block| release(api, block));
}

fn allocate(api: &Api, random: &mut SplitMix, index: usize) -> FilledBlock {
    // Most sizes are small, and one in 16 is up to 64 KiB, which exercises small size classes,
    // medium ones and the page level.
    let size = 1 + random.below(if index.is_multiple_of(16) {
        65_536
    } else {
        1024
    }) as usize;
    // SAFETY: an ordinary call.
    let address = unsafe { (api.malloc)(size) };
    if address.is_null() {
        report::no_block("malloc", size);
    }
    let alignment = if size >= 16 { 16 } else { 8 };
    if !(address as usize).is_multiple_of(alignment) {
        api::misaligned(format_args!("malloc({size})"), address as usize, alignment);
    }
    let fill = random.next() as u8;
    // SAFETY: the block has that many bytes.
    unsafe { address.write_bytes(fill, size) };
    FilledBlock {
        address,
        size,
        fill,
    }
}

fn release(api: &Api, block: &FilledBlock) {
    // SAFETY: a live block of that size.
    let bytes = unsafe { core::slice::from_raw_parts(block.address, block.size) };
    if let Some(at) = bytes.iter().position(|&byte| byte != block.fill) {
        fail!(
            "wrong-result",
            "byte {at} of a live block of {} bytes changed: blocks overlap or are written to",
            block.size
        );
    }
    // SAFETY: a live block, released once.
    unsafe { (api.free)(block.address) };
}
