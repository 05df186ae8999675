//! Tables that are wider than the terminal.

use crate::metric::Unit;
use crate::report::document::{Block, Cell, Sheet};
use crate::report::render::terminal;
use crate::report::screen::Screen;

/// A table of four columns, and one of notes, at this width.
fn at(width: usize, name: &str) -> String {
    noted(width, name, "stalled in 1 of 10, purge 13 %")
}

fn noted(width: usize, name: &str, note: &str) -> String {
    let columns = [
        "allocator",
        "at peak RSS",
        "idle 0 s",
        "sparse pages",
        "notes",
    ];
    let mib = f64::from(1 << 20);
    let row = |name: &str, note: &str| {
        [
            name.into(),
            (1.64, Unit::Times).into(),
            (16.1 * mib, Unit::Bytes).into(),
            (0.004, Unit::Share).into(),
            Cell::text(note),
        ]
    };
    let rows = [row(name, ""), row("glibc", note)];
    let screen = Screen {
        width,
        colour: false,
    };
    terminal(
        &[Block::Sheet(Sheet::new("memory", &columns, rows))],
        screen,
    )
}

#[test]
fn titles_break_between_words_then_columns_follow_below_and_nothing_is_lost() {
    let whole = at(85, "mimalloc3");
    assert_eq!(
        whole,
        "\
memory
  allocator  at peak RSS  idle 0 s  sparse pages  notes
  mimalloc3        1.64x  16.1 MiB         0.4 %
  glibc            1.64x  16.1 MiB         0.4 %  stalled in 1 of 10, purge 13 %
"
    );
    assert_eq!(
        at(67, "mimalloc3"),
        "\
memory
                 at
               peak              sparse
  allocator     RSS  idle 0 s     pages  notes
  mimalloc3   1.64x  16.1 MiB     0.4 %
  glibc       1.64x  16.1 MiB     0.4 %  stalled in 1 of 10, purge
                                         13 %
"
    );
    for width in [60, 64, 70, 100] {
        let text = at(width, "mimalloc3, whose name takes forty characters");
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
        for word in ["1.64x", "16.1 MiB", "0.4 %", "stalled in 1 of", "sparse"] {
            assert!(text.contains(word), "{width}: {word} is missing in {text}");
        }
    }
}

#[test]
fn a_table_that_is_too_wide_for_a_phone_becomes_cards_with_all_numbers() {
    assert_eq!(
        at(40, "mimalloc3"),
        "\
memory
  mimalloc3
    at peak RSS   1.64x
    idle 0 s      16.1 MiB
    sparse pages  0.4 %
  glibc
    at peak RSS   1.64x
    idle 0 s      16.1 MiB
    sparse pages  0.4 %
    notes         stalled in 1 of 10,
                  purge 13 %
"
    );
}

#[test]
fn a_word_that_is_longer_than_a_column_of_sentences_is_whole() {
    let word = "tcmalloc/huge_page_aware_allocator.h:720]";
    for width in 40..=120 {
        let text = noted(width, "mimalloc3", &format!("died in {word} at once"));
        assert!(text.contains(word), "{text}");
    }
}
