//! Writing cache lines back to memory, with the best instruction of this processor.

use core::arch::asm;

/// The instruction that writes lines back. Each variant exists only on its architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteBack {
    /// No write-back.
    None,
    /// Writes the line back and may keep it in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// Writes the line back and drops it from the cache.
    #[cfg(target_arch = "x86_64")]
    Clflushopt,
    /// Does the same as `Clflushopt`, but one line after the other.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// Cleans the line to the point of coherency.
    #[cfg(target_arch = "aarch64")]
    DcCvac,
}

const LINE_BYTES: usize = 64;

impl WriteBack {
    /// Returns the best instruction on this machine, according to the processor's feature flags.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> WriteBack {
        use core::arch::x86_64::{__cpuid, __cpuid_count};
        // Leaf 7 exists if leaf 0 reports that many leaves; every x86-64 processor has clflush.
        let features = if __cpuid(0).eax >= 7 {
            __cpuid_count(7, 0).ebx
        } else {
            0
        };
        match features {
            _ if features & 1 << 24 != 0 => WriteBack::Clwb,
            _ if features & 1 << 23 != 0 => WriteBack::Clflushopt,
            _ => WriteBack::Clflush,
        }
    }

    /// Returns the best instruction on this machine, which Linux lets every program use.
    #[cfg(target_arch = "aarch64")]
    pub fn detect() -> WriteBack {
        WriteBack::DcCvac
    }

    /// Ends the process, since no instruction is known for this architecture.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn detect() -> WriteBack {
        fail!(
            "unsupported",
            "no instruction is known here that writes cache lines back"
        )
    }

    /// Returns the instruction's name.
    pub fn word(self) -> &'static str {
        match self {
            WriteBack::None => "none",
            #[cfg(target_arch = "x86_64")]
            WriteBack::Clwb => "clwb",
            #[cfg(target_arch = "x86_64")]
            WriteBack::Clflushopt => "clflushopt",
            #[cfg(target_arch = "x86_64")]
            WriteBack::Clflush => "clflush",
            #[cfg(target_arch = "aarch64")]
            WriteBack::DcCvac => "dc-cvac",
        }
    }

    /// Writes back every line that holds a byte of the block (one more than its size suggests if it
    /// does not begin on a line), then waits with one fence.
    ///
    /// # Safety
    /// The block must have that many bytes.
    #[inline(always)]
    pub unsafe fn lines(self, block: *const u8, size: usize) {
        if self == WriteBack::None {
            return;
        }
        let end = block as usize + size;
        let mut line = block as usize & !(LINE_BYTES - 1);
        while line < end {
            // SAFETY: the line belongs to a mapped page, and none of these instructions changes
            // what memory holds.
            unsafe {
                match self {
                    WriteBack::None => {}
                    #[cfg(target_arch = "x86_64")]
                    WriteBack::Clwb => {
                        asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags))
                    }
                    #[cfg(target_arch = "x86_64")]
                    WriteBack::Clflushopt => {
                        asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags))
                    }
                    #[cfg(target_arch = "x86_64")]
                    WriteBack::Clflush => {
                        asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags))
                    }
                    #[cfg(target_arch = "aarch64")]
                    WriteBack::DcCvac => {
                        asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags))
                    }
                }
            }
            line += LINE_BYTES;
        }
        // SAFETY: barriers.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("sfence", options(nostack, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("dsb sy", options(nostack, preserves_flags));
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn the_instruction_is_the_best_that_the_kernel_lists_for_this_processor() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let has = |flag: &str| info.split_whitespace().any(|word| word == flag);
        let expected = ["clwb", "clflushopt", "clflush"]
            .into_iter()
            .find(|name| has(name))
            .unwrap_or("dc-cvac");
        assert_eq!(WriteBack::detect().word(), expected);
    }

    #[test]
    fn lines_of_any_block_are_written_back_and_keep_their_contents() {
        let bytes: [u8; 255] = core::array::from_fn(|at| at as u8);
        for (start, size) in [(0, 0), (0, 1), (3, 64), (7, 200)] {
            // SAFETY: within the vector.
            unsafe { WriteBack::detect().lines(bytes[start..].as_ptr(), size) };
        }
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, &byte)| usize::from(byte) == at)
        );
    }
}
