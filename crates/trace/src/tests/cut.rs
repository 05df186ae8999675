//! What a cut makes of the time before it.

use super::*;

#[test]
fn a_thread_that_ended_before_the_cut_ends_again_after_its_objects() {
    let malloc = |size| Event::Malloc {
        size,
        operator: false,
    };
    let whole = written(&[
        (0, Event::Main),
        (0, Event::ThreadStart { child: 1 }),
        (0, Event::ThreadStart { child: 2 }),
        (0, Event::ThreadStart { child: 3 }),
        (1, malloc(8)),
        (1, malloc(16)),
        (1, Event::Free { token: token(1, 0) }),
        (2, malloc(24)),
        (2, Event::Free { token: token(2, 0) }),
        (3, malloc(32)),
        (1, Event::ThreadExit),
        (2, Event::ThreadExit),
        (0, malloc(40)),
        (0, Event::Free { token: token(1, 1) }),
        (3, Event::ThreadExit),
    ]);
    let reader = Reader::new(&whole[..]).unwrap();
    let mut bytes = Vec::new();
    let stretch = Stretch::Events(12..u64::MAX);
    cut(reader, &mut bytes, &stretch, &Head::default()).unwrap();
    let (events, fault) = read(&bytes);
    assert!(fault.is_none());
    assert_eq!(
        events,
        [
            (0, Event::Inherit { objects: 2 }),
            (1, malloc(16)),
            (3, malloc(32)),
            (0, Event::Main),
            // Nothing of thread 2 is left.
            (1, Event::ThreadExit),
            (0, malloc(40)),
            (0, Event::Free { token: token(1, 0) }),
            (3, Event::ThreadExit),
        ]
    );
}
