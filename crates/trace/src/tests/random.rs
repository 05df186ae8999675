//! Everything written comes back, and whatever is done to the bytes afterwards, nothing is read
//! that was not written.

use super::*;
use crate::check;
use proptest::prelude::*;

/// Possible sequences of events, of a few threads.
fn traces() -> impl Strategy<Value = Vec<(u32, Event)>> {
    let step = (
        0..4u32,
        0..20u8,
        prop_oneof![0..5000u64, 0..1u64 << 47],
        any::<prop::sample::Index>(),
    );
    prop::collection::vec(step, 0..400).prop_map(|steps| {
        let (mut live, mut born, mut ns) = (Vec::<Token>::new(), [0u64; 4], 0);
        let mut events = Vec::new();
        for (thread, kind, number, which) in steps {
            let taken = |live: &mut Vec<Token>| {
                (!live.is_empty()).then(|| live.swap_remove(which.index(live.len())))
            };
            let event = match (kind, live.len()) {
                (0..6, _) | (_, 0) => Event::Malloc {
                    size: number,
                    operator: kind == 1,
                },
                (6..10, _) => Event::Free {
                    token: taken(&mut live).unwrap(),
                },
                (10, _) => Event::FreeSized {
                    token: taken(&mut live).unwrap(),
                    size: number,
                },
                (11 | 12, _) => Event::Realloc {
                    token: taken(&mut live).unwrap(),
                    size: number,
                },
                (13, _) => Event::Aligned {
                    align: 1 << (number % 12 + 3),
                    size: number,
                    variant: Variant::ALL[number as usize % 6],
                },
                (14, _) => Event::Calloc {
                    count: 1,
                    size: number,
                },
                (15, count) => Event::UsableSize {
                    token: live[which.index(count)],
                },
                (16, _) => {
                    ns += number;
                    Event::Clock { ns }
                }
                (17, _) => Event::Failed {
                    call: Call::ALL[number as usize % 5],
                    size: number,
                },
                (18, _) => Event::FreeAlignedSized {
                    token: taken(&mut live).unwrap(),
                    align: 64,
                    size: number,
                },
                _ => Event::Mark {
                    text: number.to_string().into(),
                },
            };
            if event.begins().is_some() {
                live.push(token(thread, born[thread as usize]));
                born[thread as usize] += 1;
            }
            events.push((thread, event));
        }
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_read(events in traces()) {
        let bytes = written(&events);
        prop_assert_eq!(read(&bytes), (events, None));
        prop_assert_eq!(check(Reader::new(&bytes[..]).unwrap()).impossible, 0);
    }

    #[test]
    fn damage_is_seen_and_what_stands_before_it_is_what_was_written(
        events in traces(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..4),
    ) {
        let whole = written(&events);
        let mut bytes = whole.clone();
        for (at, byte, how) in damages {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.truncate(at),
                _ => bytes.insert(at, byte),
            }
        }
        let (found, fault) = read(&bytes);
        prop_assert_eq!(fault.is_some(), bytes != whole);
        prop_assert_eq!(&found[..], &events[..found.len()]);
    }

    #[test]
    fn any_payload_under_a_true_checksum_is_events_or_a_fault(payload in prop::collection::vec(any::<u8>(), 1..300), events in 1..300u32) {
        let bytes = super::crafted::crafted(events.min(payload.len() as u32), &payload, |_| ());
        let (found, fault) = read(&bytes);
        // There is no end, so there is always a fault.
        prop_assert!(fault.is_some() && found.len() <= payload.len());
        drop(check(Reader::new(&bytes[..]).unwrap()));
    }
}
