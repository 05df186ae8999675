//! Tables that are wider than the terminal.

use crate::report::screen::Screen;
use crate::report::sheet::{Column, Sheet, Spare};
use crate::report::terminal::sheet_text;

/// A table of four columns at this width, and the columns that were left out.
fn at(width: usize, name: &str) -> (String, Vec<String>) {
    let numbers = |title: &str, cell: &str| Column::numbers(title, [cell.to_owned()]);
    let columns = vec![
        Column::words("allocator", [name.to_owned()]),
        numbers("at peak RSS", "1.64x"),
        Column {
            spare: Spare::Late,
            ..numbers("idle 0 s", "16.1 MiB")
        },
        numbers("sparse pages", "0.4 %").spare(),
    ];
    let (sheet, mut dropped) = (
        Sheet {
            heading: "memory".into(),
            columns,
            ..Sheet::default()
        },
        Vec::new(),
    );
    (
        sheet_text(
            sheet,
            Screen {
                width,
                colour: false,
            },
            &mut dropped,
        ),
        dropped,
    )
}

#[test]
fn a_narrow_table_drops_what_it_can_do_without_then_breaks_headings_between_words_and_never_a_cell()
{
    let name = "mimalloc3, whose name takes forty-nine characters";
    assert_eq!(name.len(), "mimalloc3".len() + 40);
    let (whole, none) = at(88, name);
    assert!(
        whole.contains("  at peak RSS  idle 0 s  sparse pages") && none.is_empty(),
        "{whole}"
    );
    let (dropped, early) = at(87, name);
    assert!(dropped.contains("  at peak RSS  idle 0 s\n"), "{dropped}");
    assert_eq!(early, ["sparse pages"]);
    let (broken, early) = at(70, name);
    assert!(
        broken.contains("characters    1.64x  16.1 MiB\n") && broken.contains("at peak"),
        "{broken}"
    );
    assert_eq!(early, ["sparse pages"]);
    let (narrow, all) = at(64, name);
    assert!(
        narrow.contains("characters  ") && narrow.contains("1.64x\n"),
        "{narrow}"
    );
    assert_eq!(all, ["sparse pages", "idle 0 s"]);
}

#[test]
fn what_room_there_is_goes_to_the_headings_that_are_broken_most() {
    let numbers = |title: &str| Column::numbers(title, ["1.00x".to_owned()]);
    let columns = vec![
        Column::words("allocator", ["glibc".repeat(9) + "1.23"]),
        numbers("at peak demand"),
        numbers("at peak RSS"),
    ];
    let sheet = Sheet {
        heading: "memory".into(),
        columns,
        ..Sheet::default()
    };
    let text = sheet_text(
        sheet,
        Screen {
            width: 72,
            colour: false,
        },
        &mut Vec::new(),
    );
    assert_eq!(
        text.lines().count(),
        4,
        "the heading, two lines of titles, a row: {text}"
    );
}

#[test]
fn a_table_that_is_too_wide_for_a_phone_becomes_cards_with_all_numbers() {
    let (table, none) = at(48, "mimalloc3");
    assert!(
        table.contains("allocator  at peak RSS  idle 0 s"),
        "{table}"
    );
    let (cards, all) = at(47, "mimalloc3");
    assert_eq!((none.len(), all.len()), (0, 0));
    assert_eq!(
        cards,
        "memory\n  mimalloc3\n    at peak RSS   1.64x\n    idle 0 s      16.1 MiB\n    sparse pages  0.4 %\n"
    );
}
