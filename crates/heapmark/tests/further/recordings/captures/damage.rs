//! Captures and files that are damaged, or are none at all.

use super::{capture, check, dump, finish, free, malloc};
use crate::support::Place;
use heapmark_trace::{Mended, Reader, finish as stage};
use heapmark_wire::capture::{CHUNK_BYTES, Event, HEADER_BYTES, MOST_OPEN_BYTES};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn of_a_damaged_capture_all_but_the_damaged_chunk_is_read() {
    let place = Place::new();
    let events: Vec<_> = (0..200_000u64)
        .flat_map(|n| [(0, malloc(n * 64, n), 0), (0, free(n * 64), 0)])
        .collect();
    capture(&place, "a.cap", &[], &events);
    let mut bytes = fs::read(place.at("a.cap")).unwrap();
    assert!(bytes.len() > 4 * CHUNK_BYTES);
    bytes[2 * CHUNK_BYTES + 5000] ^= 1;
    fs::write(place.at("a.cap"), &bytes).unwrap();
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("damaged: chunk 2: the chunk's checksum is wrong\n"),
        "{}",
        end.stderr
    );
    assert!(
        end.stderr.contains(" are missing\n") && end.stderr.contains(" events are lost\n"),
        "{}",
        end.stderr
    );
    check(&place, "a.trace");
    // Cut off within a chunk, as after a full disk.
    fs::write(place.at("a.cap"), &bytes[..3 * CHUNK_BYTES + 100]).unwrap();
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    assert!(
        end.stderr.contains("chunk 3: the chunk is cut off"),
        "{}",
        end.stderr
    );
    check(&place, "a.trace");
}

#[test]
fn a_capture_with_too_many_threads_is_a_trace_up_to_the_first_further_one() {
    let place = Place::new();
    let mut events: Vec<_> = (0..500)
        .flat_map(|n| [(0, malloc(n * 64, n), 0), (0, free(n * 64), 0)])
        .collect();
    events.push((0, Event::ThreadStart { child: 65_535 }, 0));
    events.push((0, malloc(0x1000, 1), 0));
    capture(&place, "a.cap", &[], &events);
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    for told in ["a trace has 65535 threads at most", "2 events are lost"] {
        assert!(end.stderr.contains(told), "{}", end.stderr);
    }
    check(&place, "a.trace");
    let events = dump(&place, "a.trace").len();
    assert!((1000..1020).contains(&events), "{events}");
}

#[test]
fn a_capture_of_another_version_ends_in_one_line() {
    let place = Place::new();
    capture(&place, "a.cap", &[], &[(0, malloc(0x1000, 1), 0)]);
    let mut bytes = fs::read(place.at("a.cap")).unwrap();
    bytes[8] = 9;
    fs::write(place.at("a.cap"), &bytes).unwrap();
    let end = finish(&place);
    end.is_one_line(2);
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
    let names = [
        "empty",
        "byte",
        "text",
        "zeros",
        "elf",
        "directory",
        "missing",
    ];
    let commands: [&[&str]; 4] = [
        &["finish", "-o", "out.trace"],
        &["check"],
        &["dump"],
        &["cut", "--events", "..9", "-o", "out.trace"],
    ];
    for name in names {
        for command in commands {
            let end = place.run(&[&["trace"], &command[..1], &[name], &command[1..]].concat());
            let seen = format!("{command:?} {name}: {}", end.stderr);
            assert_eq!(
                (end.code, end.stderr.lines().count(), end.stdout.as_str()),
                (Some(2), 1, ""),
                "{seen}"
            );
            assert!(end.stderr.contains(name), "{seen}");
            assert!(
                !place.at("out.trace").exists() && !has_draft(&place),
                "{seen}"
            );
        }
    }
}

fn has_draft(place: &Place) -> bool {
    let names = fs::read_dir(place.at("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names
        .into_iter()
        .any(|name| name.to_string_lossy().starts_with(".heapmark-"))
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
    let events: Vec<_> = (0..400_000u64)
        .map(|n| ((n % 2) as u32, malloc(n * 64, n), n))
        .collect();
    capture(&place, "a.cap", &[], &events);
    let path = place.at("a.cap");
    let whole = stage::finish(&path, &mut std::io::sink()).unwrap();
    assert_eq!(whole.damage, [""; 0]);
    let length = 3 * CHUNK_BYTES as u64 + 100;
    assert!(fs::metadata(&path).unwrap().len() > length + 2 * CHUNK_BYTES as u64);
    let part = stage::finish(&path, &mut Shortens(path.clone(), length)).unwrap();
    let line = format!(
        "the file became shorter while it was read: what stood behind byte {length} is lost"
    );
    assert_eq!(part.damage, [line]);
    assert!(part.totals.events > 0 && part.totals.events < whole.totals.events);
}

#[test]
fn any_damage_to_a_capture_gives_a_trace_that_holds_together_or_one_line() {
    const SEED: u64 = 7;
    let place = Place::new();
    let mut events = Vec::new();
    // No stream is longer than may be unsealed.
    for n in 0..900u64 {
        let (stream, stamp) = ((n % 3) as u32, n * 20);
        events.push((stream, malloc(0x1000 + n * 64, n), stamp));
        events.push(match n % 5 {
            0 => (
                stream,
                Event::Realloc {
                    old: 0x1000 + n * 64,
                    new: 0x1000 + n * 64 + 8,
                    size: n,
                    entered: Some(stamp + 1),
                },
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
    for round in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..random.random_range(1..4) {
            // Where the bytes are that say something: headers, the first events of a chunk, and sometimes a whole header gone.
            let chunk = random.random_range(0..bytes.len().div_ceil(CHUNK_BYTES)) * CHUNK_BYTES;
            let at = (chunk + random.random_range(0..264)).min(bytes.len() - 1);
            match random.random_range(0..6) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[chunk..]
                    .iter_mut()
                    .take(128)
                    .for_each(|byte| *byte = 0),
                // Not sealed: nothing but the events themselves shows the damage.
                2 | 3 => {
                    bytes[chunk + 64..chunk + 72].fill(0);
                    bytes[at] = random.random();
                }
                _ => bytes[at] = random.random(),
            }
            if bytes.len() <= chunk + 72 {
                break;
            }
        }
        fs::write(place.at("b.cap"), &bytes).unwrap();
        let mut trace = Vec::new();
        match stage::finish(&place.at("b.cap"), &mut trace) {
            Err(fault) => {
                assert!(
                    !fault.to_string().contains('\n'),
                    "seed {SEED}, round {round}: {fault}"
                );
                refused += 1;
            }
            Ok(finished) => {
                let checked = heapmark_trace::check(Reader::new(&trace[..]).unwrap());
                // Sizes that were damaged may be impossible; lives and deaths may not.
                let dead = checked
                    .faults
                    .iter()
                    .find(|fault| fault.to_string().contains("alive"));
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
    assert!(
        refused > 10 && damaged > 50 && mended > 20,
        "the damage is too tame"
    );
}

/// Two threads after another, and a third that is there at the end; then it is killed, or not.
const BUSY: &str = "#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n
static void *work(void *count) {
    void *blocks[64] = {0};
    for (long i = 0; i < (long)count; i++) {
        void **block = blocks + i * 7 % 64;
        if (i % 5 == 0) *block = realloc(*block, i % 3000);
        else { free(*block); *block = malloc(i % 3000); }
    }
    return NULL;
}
int main(int words, char **word) {
    pthread_t thread;
    work((void *)12000);
    for (int i = 0; words > 1 && i < 3; i++) {
        pthread_create(&thread, NULL, work, (void *)8000);
        if (i < 2) pthread_join(thread, NULL);
    }
    work((void *)9000);
    if (words > 1) pthread_join(thread, NULL);
    if (words > 2) raise(SIGKILL);
    return 0;
}\n";

/// What a recorder wrote of it.
fn recorded(place: &Place, words: &[&str]) -> Vec<u8> {
    fs::write(place.at("busy.c"), BUSY).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-fno-builtin", "-pthread", "-o"])
        .args([place.at("busy"), place.at("busy.c")]);
    assert!(compiler.status().unwrap().success());
    let end = place.run(&[&["record", "--raw", "--", "./busy"], words].concat());
    let capture = end
        .stderr
        .split([':', '\n'])
        .find(|name| name.ends_with(".cap"))
        .unwrap();
    fs::read(place.at(capture)).unwrap()
}

/// A flipped bit, a cut, bytes put in, taken out, repeated or zeroed.
fn damage(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) -> String {
    let length = bytes.len();
    // Half of it where headers and the first events are: much of a file is a hole.
    let near = |random: &mut ChaCha8Rng| match random.random_range(0..2) {
        0 => random.random_range(0..length),
        _ => (random.random_range(0..length.div_ceil(CHUNK_BYTES)) * CHUNK_BYTES
            + random.random_range(0..4000))
        .min(length - 1),
    };
    let (at, kind) = (near(random), random.random_range(0..6));
    let end = (at + random.random_range(1..20_000)).min(length);
    match kind {
        0 => bytes[at] ^= 1 << random.random_range(0..8),
        1 => bytes.truncate(at.max(1)),
        2 => drop(bytes.splice(at..at, (at..end).map(|n| n as u8).collect::<Vec<_>>())),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let (piece, to) = (bytes[at..end].to_vec(), near(random));
            let end = (to + piece.len()).min(length);
            bytes[to..end].copy_from_slice(&piece[..end - to]);
        }
        _ => bytes[at..end].fill(0),
    }
    format!("{kind} at {at}..{end}")
}

/// A trace, and what was said of it.
type Traced = (Vec<u8>, stage::Finished);

fn traced(capture: &Path) -> Result<Traced, String> {
    let mut trace = Vec::new();
    let finished = stage::finish(capture, &mut trace).map_err(|fault| fault.to_string())?;
    Ok((trace, finished))
}

/// Damages the capture of such a program 200 times, and hands on what was finished all the same, first as it was. Returns how often that
/// was, and how often the damage was noticed.
fn damaged(
    seed: u64,
    words: &[&str],
    end: Option<&str>,
    mut unnoticed: impl FnMut(&Traced, &Traced, String),
) -> (u32, u32) {
    let place = Place::new();
    let whole = recorded(&place, words);
    let path = place.at("b.cap");
    fs::write(&path, &whole).unwrap();
    let first = traced(&path).unwrap();
    let finished = &first.1;
    assert_eq!(
        (finished.damage.len(), finished.head.get("end")),
        (0, end),
        "{:?}",
        finished.damage
    );
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut same, mut noticed) = (0, 0);
    for round in 0..200 {
        let mut bytes = whole.clone();
        let what = damage(&mut bytes, &mut random);
        fs::write(&path, &bytes).unwrap();
        match traced(&path) {
            Ok(found) if found.1.damage.is_empty() => {
                unnoticed(
                    &first,
                    &found,
                    format!("seed {seed}, round {round}: {what}"),
                );
                same += 1;
            }
            _ => noticed += 1,
        }
    }
    (same, noticed)
}

#[test]
fn no_damage_to_a_capture_of_a_program_that_ended_goes_unnoticed() {
    for words in [&[][..], &["threads"]] {
        let (same, noticed) = damaged(11, words, Some("exit"), |(first, _), (found, _), what| {
            assert!(found == first, "{what}")
        });
        assert!(
            same > 10 && noticed > 60,
            "{same} the same, {noticed} noticed"
        );
    }
}

#[test]
fn of_a_program_that_was_killed_only_the_last_events_of_a_thread_can_be_damaged_unnoticed() {
    // Each event takes two bytes and more, in each of its streams.
    let most = 3 * MOST_OPEN_BYTES as u64 / 2;
    let (_, noticed) = damaged(
        13,
        &["threads", "killed"],
        None,
        |(first, finished), (found, other), what| {
            let events = other.totals.events.abs_diff(finished.totals.events);
            assert!(found == first || events <= most, "{what}: {events} events");
        },
    );
    assert!(noticed > 60, "{noticed} noticed");
}

#[test]
fn a_capture_that_says_it_is_terabytes_long_is_read_at_once() {
    let place = Place::new();
    capture(&place, "a.cap", &[], &[(0, malloc(0x1000, 24), 0)]);
    let file = File::options().write(true).open(place.at("a.cap")).unwrap();
    file.set_len(8 << 40).unwrap();
    let end = finish(&place);
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert!(dump(&place, "a.trace")[0].contains("malloc"));
}

#[test]
fn a_capture_of_more_streams_than_there_is_memory_for_is_refused() {
    let place = Place::new();
    capture(&place, "a.cap", &[], &[(0, malloc(0x1000, 24), 0)]);
    let whole = fs::read(place.at("a.cap")).unwrap();
    let mut header: [u8; HEADER_BYTES] = whole[CHUNK_BYTES..][..HEADER_BYTES].try_into().unwrap();
    let file = File::options().write(true).open(place.at("a.cap")).unwrap();
    // Headers alone: the file has holes behind them.
    for place in 2..17_000_u32 {
        header[16..20].copy_from_slice(&place.to_le_bytes());
        header[48..52].copy_from_slice(&place.to_le_bytes());
        let crc = heapmark_wire::capture::crc32c(&header[..56]);
        header[56..60].copy_from_slice(&crc.to_le_bytes());
        file.write_all_at(&header, u64::from(place) * CHUNK_BYTES as u64)
            .unwrap();
    }
    let end = finish(&place);
    end.is_one_line(2);
    assert!(
        end.stderr.contains("streams") && end.stderr.contains("to be read at once"),
        "{}",
        end.stderr
    );
}

#[test]
fn what_cannot_have_happened_is_noticed_by_finish_and_by_stats_too() {
    let place = Place::new();
    let events = [
        (0, malloc(0x1000, 1 << 60), 0),
        (
            0,
            Event::Touch {
                address: 0x1000,
                resident: 9,
                extent: 9,
                pages: 3,
            },
            0,
        ),
    ];
    capture(&place, "a.cap", &[], &events);
    let end = finish(&place);
    assert_eq!(end.code, Some(6), "{}", end.stderr);
    assert!(end.stderr.contains(
        "damaged: 2 events cannot have happened: an allocation of 1152921504606846976 bytes"
    ));
    for command in ["check", "stats"] {
        let end = place.run(&["trace", command, "a.trace"]);
        assert_eq!(end.code, Some(7), "{command}: {}", end.stderr);
        assert!(
            end.stderr.contains("more than a process has addresses"),
            "{command}: {}",
            end.stderr
        );
    }
}
