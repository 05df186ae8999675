//! The first screens of stored runs: how long they are, and that what their sentences say stands in their tables.

use crate::support::stored::unpacked;
use crate::support::words;

/// What `heapmark show` prints of a run: its answer, and what stands below.
fn screen(run: &str) -> (String, String) {
    let shown = unpacked().run(&["show", run]).stdout;
    let (answer, rest) = shown.split_once("\n\n").unwrap();
    (answer.to_owned(), rest.to_owned())
}

#[test]
fn a_default_run_is_answered_on_one_screen() {
    let (answer, rest) = screen("default");
    let lines = answer.lines().count() + 1 + rest.lines().count();
    assert!(lines <= 24, "{lines}: {answer}\n\n{rest}");
    assert!(answer.lines().count() <= 6, "{answer}");
    for told in [
        "is the fastest here",
        "Good compromise: ",
        "For pools of threads: ",
        "Smallest: ",
    ] {
        assert!(words(&answer).contains(told), "{told}: {answer}");
    }
    let rows = |name: &str| rest.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(
        ["mimalloc2 ", "glibc ", "scudo "].map(rows),
        [1; 3],
        "one table: {rest}"
    );
    assert!(
        rest.lines().all(|line| line.chars().count() <= 100),
        "{rest}"
    );
}

/// Numbers with two or more decimals, and what follows each; those of versions left out.
fn numbers(sentences: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let of_word = |word: &'_ str| -> Option<(usize, usize)> {
        let from = word.find(|c: char| c.is_ascii_digit())?;
        let length = word[from..]
            .find(|c| !is_part(c))
            .unwrap_or(word.len() - from);
        Some((from, length))
    };
    let all: Vec<&str> = sentences.split(' ').collect();
    let is_version = |place: usize| {
        all.get(place + 1)
            .is_some_and(|next| next.starts_with("20") && next.contains(')'))
            || all[place].starts_with('(') && all[place].trim_end_matches('.').ends_with(')')
    };
    let words = all
        .iter()
        .enumerate()
        .filter(|(place, _)| !is_version(*place));
    let found = words.filter_map(|(_, word)| {
        let (from, length) = of_word(word)?;
        Some(word[from..from + length].trim_end_matches('.'))
    });
    found
        .filter(|number| {
            number
                .split_once('.')
                .is_some_and(|(_, decimals)| decimals.len() >= 2 && !decimals.contains('.'))
        })
        .collect()
}

/// The intervals in brackets, each with what stands before it.
fn intervals(sentences: &str) -> Vec<(&str, &str)> {
    let opened = sentences.match_indices('[');
    let interval = |(from, _): (usize, &str)| {
        let length = sentences[from..].find(']')? + 1;
        Some((&sentences[..from], &sentences[from..from + length]))
    };
    opened.filter_map(interval).collect()
}

#[test]
fn each_number_of_a_sentence_stands_in_the_table_below_it_and_each_interval_in_its_own_row() {
    let (mut seen, mut in_rows) = (0, 0);
    for run in ["default", "timed", "tried", "retained", "whole"] {
        let (answer, rest) = screen(run);
        // Below where it was measured.
        let sentences = words(answer.split_once("\n  ").unwrap().1);
        // A share of the program's time stands in the full tables.
        let sentences = sentences.split(" In malloc and free: ").next().unwrap();
        for number in numbers(sentences) {
            assert!(
                rest.contains(number),
                "{run}: {number} of {sentences}\n{rest}"
            );
            seen += 1;
        }
        for (before, interval) in intervals(sentences) {
            let own = rest.lines().filter(|line| line.contains(interval));
            let names: Vec<&str> = own
                .filter_map(|line| line.split_whitespace().next())
                .collect();
            let last = |name: &str| before.rfind(name);
            assert!(
                names.iter().any(|name| last(name).is_some()),
                "{run}: {interval} of {names:?}"
            );
            in_rows += 1;
        }
    }
    assert!(
        seen >= 12 && in_rows >= 2,
        "{seen} numbers, {in_rows} intervals"
    );
    // What the two find if something is wrong.
    assert_eq!(
        numbers("a (2.36, 2022) takes 0.36 [0.34, 0.37], 1.64x; 40 of 9."),
        ["0.36", "0.34", "0.37", "1.64"]
    );
    assert_eq!(intervals("a [1, 2] b"), [("a ", "[1, 2]")]);
}
