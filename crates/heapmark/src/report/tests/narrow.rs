//! Tables that are wider than the terminal.

use crate::report::screen::Screen;
use crate::report::sheet::{Column, Sheet, Spare};
use crate::report::terminal::sheet_text;

/// A table of four columns at this width, and the columns that were left out.
fn at(width: usize) -> (String, Vec<String>) {
    let numbers = |title: &str, cell: &str| Column::numbers(title, [cell.to_owned()]);
    let columns = vec![
        Column::words("allocator", ["mimalloc3".to_owned()]),
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
    let (whole, none) = at(48);
    assert!(
        whole.contains("allocator  at peak RSS  idle 0 s  sparse pages") && none.is_empty(),
        "{whole}"
    );
    let (dropped, early) = at(47);
    assert!(
        dropped.contains("allocator  at peak RSS  idle 0 s\n"),
        "{dropped}"
    );
    assert_eq!(early, ["sparse pages"]);
    let (broken, early) = at(30);
    assert!(
        broken.contains("mimalloc3    1.64x  16.1 MiB\n") && broken.contains("at peak"),
        "{broken}"
    );
    assert_eq!(early, ["sparse pages"]);
    let (narrow, all) = at(24);
    assert!(
        narrow.contains("mimalloc3  ") && narrow.contains("1.64x\n"),
        "{narrow}"
    );
    assert_eq!(all, ["sparse pages", "idle 0 s"]);
}

#[test]
fn what_room_there_is_goes_to_the_headings_that_are_broken_most() {
    let numbers = |title: &str| Column::numbers(title, ["1.00x".to_owned()]);
    let columns = vec![
        Column::words("allocator", ["glibc".to_owned()]),
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
            width: 32,
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
