//! CRC-32, the one of zip and zlib. The host has a library for it; the recorder, which must bring none into a foreign
//! process, has this. Sixteen bytes a step: a byte a step would cost more than the rest of an event.

/// Bytes that are looked up at a time.
const STEP: usize = 16;

/// `TABLES[k][b]` is the checksum of byte `b` with `k` zeros behind it.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
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
pub fn crc32(bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let mut crc = u32::MAX;
    for step in steps {
        let word = u128::from_le_bytes(*step) ^ u128::from(crc);
        crc = (0..STEP).fold(0, |crc, byte| crc ^ TABLES[STEP - 1 - byte][(word >> (8 * byte)) as usize & 255]);
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][(crc as u8 ^ byte) as usize];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_that_everybody_publishes() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
    }
}
