//! Captures and files that are damaged, or are none at all.

use super::{capture, check, finish, free, malloc};
use crate::support::Place;
use heapmark::trace::{Mended, Reader, finish as stage};
use heapmark_wire::capture::{CHUNK_BYTES, Event};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

#[test]
fn of_a_damaged_capture_all_but_the_damaged_chunk_is_read() {
    let place = Place::new();
    let events: Vec<_> = (0..200_000u64).flat_map(|n| [(0, malloc(n * 64, n), 0), (0, free(n * 64), 0)]).collect();
    capture(&place, "a.cap", &[], &events);
    let mut bytes = fs::read(place.at("a.cap")).unwrap();
    assert!(bytes.len() > 4 * CHUNK_BYTES);
    bytes[2 * CHUNK_BYTES + 5000] ^= 1;
    fs::write(place.at("a.cap"), &bytes).unwrap();
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    assert!(end.stderr.contains("damaged: chunk 2: the chunk's checksum is wrong\n"), "{}", end.stderr);
    assert!(end.stderr.contains(" are missing\n") && end.stderr.contains(" events are lost\n"), "{}", end.stderr);
    check(&place, "a.trace");
    // Cut off within a chunk, as after a full disk.
    fs::write(place.at("a.cap"), &bytes[..3 * CHUNK_BYTES + 100]).unwrap();
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    assert!(end.stderr.contains("chunk 3: the chunk is cut off"), "{}", end.stderr);
    check(&place, "a.trace");
}

#[test]
fn a_capture_of_another_version_or_with_too_many_threads_ends_in_one_line() {
    let place = Place::new();
    let events = [(0, Event::Begin { thread: 65_535 }, 0), (0, malloc(0x1000, 1), 0)];
    capture(&place, "a.cap", &[], &events);
    let end = finish(&place);
    assert_eq!((end.code, end.stderr.lines().count()), (Some(7), 1), "{}", end.stderr);
    assert!(
        end.stderr.contains("a trace has 65535 threads at most") && !place.at("a.trace").exists(),
        "{}",
        end.stderr
    );
    let mut bytes = fs::read(place.at("a.cap")).unwrap();
    bytes[8] = 9;
    fs::write(place.at("a.cap"), &bytes).unwrap();
    let end = finish(&place);
    assert_eq!((end.code, end.stderr.lines().count()), (Some(1), 1), "{}", end.stderr);
    assert!(end.stderr.contains("version 9"), "{}", end.stderr);
}

#[test]
fn a_file_that_is_none_ends_in_one_line() {
    let place = Place::new();
    let files: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("byte", b"h"),
        ("text", b"hello\nworld\n"),
        ("zeros", &[0; 4096]),
        ("elf", b"\x7fELF\x02\x01\x01"),
    ];
    for (name, bytes) in files {
        fs::write(place.at(name), bytes).unwrap();
    }
    fs::create_dir(place.at("directory")).unwrap();
    let names = ["empty", "byte", "text", "zeros", "elf", "directory", "missing"];
    let commands: [&[&str]; 4] =
        [&["finish", "-o", "out.trace"], &["check"], &["dump"], &["cut", "--events", "..9", "-o", "out.trace"]];
    for name in names {
        for command in commands {
            let end = place.run(&[&["trace"], &command[..1], &[name], &command[1..]].concat());
            let seen = format!("{command:?} {name}: {}", end.stderr);
            assert_eq!((end.code, end.stderr.lines().count(), end.stdout.as_str()), (Some(1), 1, ""), "{seen}");
            assert!(end.stderr.contains(name), "{seen}");
            assert!(!place.at("out.trace").exists() && !has_draft(&place), "{seen}");
        }
    }
}

fn has_draft(place: &Place) -> bool {
    let names = fs::read_dir(place.at(".")).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|name| name.to_string_lossy().starts_with(".heapmark-"))
}

/// Shortens a file as soon as anything is written.
struct Shortens(PathBuf, u64);

impl Write for Shortens {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        File::options().write(true).open(&self.0)?.set_len(self.1)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_that_becomes_shorter_while_it_is_read_is_read_up_to_there() {
    let place = Place::new();
    let events: Vec<_> = (0..400_000u64).map(|n| ((n % 2) as u32, malloc(n * 64, n), n)).collect();
    capture(&place, "a.cap", &[], &events);
    let path = place.at("a.cap");
    let whole = stage::finish(&path, std::io::sink()).unwrap();
    assert_eq!(whole.damage, [""; 0]);
    let length = 3 * CHUNK_BYTES as u64 + 100;
    assert!(fs::metadata(&path).unwrap().len() > length + 2 * CHUNK_BYTES as u64);
    let part = stage::finish(&path, Shortens(path.clone(), length)).unwrap();
    let line = format!("the file became shorter while it was read: what stood behind byte {length} is lost");
    assert_eq!(part.damage, [line]);
    assert!(part.totals.events > 0 && part.totals.events < whole.totals.events);
}

#[test]
fn any_damage_to_a_capture_gives_a_trace_that_holds_together_or_one_line() {
    const SEED: u64 = 7;
    let place = Place::new();
    let mut events = Vec::new();
    for n in 0..3000u64 {
        let (stream, stamp) = ((n % 3) as u32, n * 20);
        events.push((stream, malloc(0x1000 + n * 64, n), stamp));
        events.push(match n % 5 {
            0 => (
                stream,
                Event::Realloc { old: 0x1000 + n * 64, new: 0x1000 + n * 64 + 8, size: n, entered: Some(stamp + 1) },
                stamp + 2,
            ),
            1 => (stream, Event::ThreadStart { child: 9 }, stamp + 2),
            _ => (stream, free(0x1000 + n * 64), stamp + 2),
        });
    }
    capture(&place, "a.cap", &[("argv.0", "x")], &events);
    let whole = fs::read(place.at("a.cap")).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut refused, mut damaged, mut mended) = (0, 0, 0);
    for round in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..random.random_range(1..4) {
            // Where the bytes are that say something: headers, the first events of a chunk, and sometimes a whole header gone.
            let chunk = random.random_range(0..bytes.len().div_ceil(CHUNK_BYTES)) * CHUNK_BYTES;
            let at = (chunk + random.random_range(0..200)).min(bytes.len() - 1);
            match random.random_range(0..6) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[chunk..].iter_mut().take(64).for_each(|byte| *byte = 0),
                // Not sealed: nothing but the events themselves shows the damage.
                2 | 3 => {
                    bytes[chunk + 11] &= !1;
                    bytes[at] = random.random();
                }
                _ => bytes[at] = random.random(),
            }
            if bytes.len() <= chunk + 11 {
                break;
            }
        }
        fs::write(place.at("b.cap"), &bytes).unwrap();
        let mut trace = Vec::new();
        match stage::finish(&place.at("b.cap"), &mut trace) {
            Err(fault) => {
                assert!(!fault.to_string().contains('\n'), "seed {SEED}, round {round}: {fault}");
                refused += 1;
            }
            Ok(finished) => {
                let checked = heapmark::trace::check(Reader::new(&trace[..]).unwrap());
                // Sizes that were damaged may be impossible; lives and deaths may not.
                let dead = checked.faults.iter().find(|fault| fault.to_string().contains("alive"));
                assert!(
                    dead.is_none() && checked.events == finished.totals.events,
                    "seed {SEED}, round {round}: {dead:?}"
                );
                damaged += usize::from(!finished.damage.is_empty());
                mended += usize::from(finished.mended != Mended::default());
            }
        }
    }
    println!("{refused} refused, {damaged} damaged, {mended} mended");
    assert!(refused > 10 && damaged > 50 && mended > 20, "the damage is too tame");
}
