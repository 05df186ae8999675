//! CRC-32C, as in iSCSI and ext4. The host has libraries for checksums; the recorder has this code,
//! since it must bring no library into a foreign process. The CPU's instruction is used if there is
//! one: with tables, the checksum took a quarter of the cost of an event.

#[cfg(target_arch = "x86_64")]
use core::sync::atomic::{AtomicU8, Ordering};

/// Number of bytes that are looked up at a time.
const STEP: usize = 16;

/// `TABLES[k][b]` is the checksum of byte `b` followed by `k` zeros.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 255) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The checksum of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    continued(0, bytes)
}

/// Continues the checksum `crc` with `bytes`.
pub fn continued(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if has_instruction() {
        // SAFETY: the instruction exists.
        return unsafe { by_instruction(crc, bytes) };
    }
    by_tables(crc, bytes)
}

fn by_tables(crc: u32, bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let mut crc = !crc;
    for step in steps {
        let word = u128::from_le_bytes(*step) ^ u128::from(crc);
        crc = (0..STEP).fold(0, |crc, byte| {
            crc ^ TABLES[STEP - 1 - byte][(word >> (8 * byte)) as usize & 255]
        });
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][(crc as u8 ^ byte) as usize];
    }
    !crc
}

/// Returns whether the CPU has the instruction. CPUID is executed only once, since it takes
/// microseconds under a hypervisor.
#[cfg(target_arch = "x86_64")]
fn has_instruction() -> bool {
    const UNKNOWN: u8 = 0;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    if ANSWER.load(Ordering::Relaxed) == UNKNOWN {
        let sse4_2 = core::arch::x86_64::__cpuid(1).ecx >> 20 & 1;
        ANSWER.store(1 + sse4_2 as u8, Ordering::Relaxed);
    }
    ANSWER.load(Ordering::Relaxed) == 2
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn by_instruction(crc: u32, bytes: &[u8]) -> u32 {
    use core::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(u64::from(!crc), |crc, word| {
        _mm_crc32_u64(crc, u64::from_le_bytes(*word))
    });
    !rest
        .iter()
        .fold(crc as u32, |crc, byte| _mm_crc32_u8(crc, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        for crc in [continued, by_tables] {
            assert_eq!(crc(0, b"123456789"), 0xe306_9283);
            assert_eq!(crc(0, b""), 0);
            assert_eq!(crc(0, &[0; 32]), 0x8a91_36aa);
            assert_eq!(crc(crc(0, b"1234"), b"56789"), 0xe306_9283);
        }
    }

    #[test]
    fn the_instruction_and_the_tables_agree_at_every_length() {
        let bytes: [u8; 100] = core::array::from_fn(|at| (at * 37 % 251) as u8);
        for length in 0..bytes.len() {
            assert_eq!(
                crc32c(&bytes[..length]),
                by_tables(0, &bytes[..length]),
                "{length} bytes"
            );
        }
    }
}
