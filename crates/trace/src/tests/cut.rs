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

#[test]
fn of_a_large_block_that_outlives_the_cut_it_is_told_how_much_was_touched() {
    const LARGE: u64 = 64 << 10;
    let malloc = |size| Event::Malloc {
        size,
        operator: false,
    };
    let touch = |token, resident_pages| Event::Touch {
        token,
        resident_pages,
        extent_pages: resident_pages,
        pages: 15,
    };
    let free = |token| Event::Free { token };
    let whole = written(&[
        (0, malloc(LARGE)),
        // The cut begins here,
        (1, malloc(8)),
        (1, malloc(LARGE)),
        (0, malloc(LARGE)),
        (0, touch(token(0, 1), 3)),
        (0, free(token(0, 1))),
        (0, malloc(LARGE - 1)),
        // and ends here.
        (2, touch(token(1, 1), 5)),
        (2, free(token(1, 1))),
        (0, malloc(LARGE)),
        (0, touch(token(0, 3), 4)),
        (0, touch(token(0, 0), 7)),
        (0, free(token(0, 0))),
    ]);
    let reader = Reader::new(&whole[..]).unwrap();
    let mut bytes = Vec::new();
    let cut = cut(reader, &mut bytes, &Stretch::Events(1..7), &Head::default()).unwrap();
    let (events, fault) = read(&bytes);
    assert!(fault.is_none() && cut.within == 6);
    assert_eq!(
        events,
        [
            (0, Event::Inherit { objects: 1 }),
            (0, malloc(LARGE)),
            (1, malloc(8)),
            (1, malloc(LARGE)),
            (0, malloc(LARGE)),
            (0, touch(token(0, 1), 3)),
            (0, free(token(0, 1))),
            (0, malloc(LARGE - 1)),
            (1, touch(token(1, 1), 5)),
            (0, touch(token(0, 0), 7)),
        ]
    );
}
