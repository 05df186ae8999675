//! CRC-32, the one of zip and zlib. The host has a library for it; the recorder, which must bring none into a foreign
//! process, has this. Eight bytes a step: a byte a step would cost more than the rest of an event.

/// `TABLES[k][b]` is the checksum of byte `b` with `k` zeros behind it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut tables = [[0; 256]; 8];
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
    while table < 8 {
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
    let entry = |table: usize, byte: u64| TABLES[table][(byte & 255) as usize];
    let (words, rest) = bytes.as_chunks::<8>();
    let mut crc = u32::MAX;
    for word in words {
        let word = u64::from_le_bytes(*word) ^ u64::from(crc);
        crc = (0..8).fold(0, |crc, byte| crc ^ entry(7 - byte, word >> (8 * byte)));
    }
    for byte in rest {
        crc = crc >> 8 ^ entry(0, u64::from(crc) ^ u64::from(*byte));
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
