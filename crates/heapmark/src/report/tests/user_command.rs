//! Reports on a user's command.

use super::*;
use crate::analyse::analyse;
use crate::plan::{Client, RealCommand, Target, UserCommand};
use crate::report::{conclusion, programs};
use std::path::Path;

/// A command under glibc and under another allocator, which takes `times` as long, with malloc's
/// share of the CPU time.
fn tried(times: f64, share: f64) -> FakeRun {
    tried_under(
        |block| 10.0 * times * (1.0 + 0.0001 * f64::from(block % 7)),
        share,
    )
}

/// The same, with the other's time in each block.
fn tried_under(other: impl Fn(u32) -> f64, share: f64) -> FakeRun {
    let mut lab =
        FakeRun::new(&["glibc", "other"], &["build"], 20).fill(|_, name, block| match name {
            "other" => other(block),
            _ => 10.0,
        });
    let command = ["/usr/bin/python3", "build.py"].map(String::from).to_vec();
    let case = &mut lab.run.plan.cases[0];
    case.whole_process = true;
    case.target = Target::Command(Box::new(UserCommand {
        command,
        ..UserCommand::default()
    }));
    lab.told(
        "build@2/check/glibc",
        &[
            ("malloc_share", share),
            ("malloc_calls_per_cpu_s", 2e6),
            ("processes", 3.0),
        ],
    )
}

fn says(times: f64, share: f64) -> String {
    let lab = tried(times, share);
    conclusion(&analyse(&lab.run, &lab.records))
}

#[test]
fn an_allocator_is_recommended_where_it_is_faster_and_the_ceiling_stands_beside_it() {
    let sentence = says(0.8, 0.25);
    assert!(
        sentence
            .starts_with("Use other: it takes 0.800x the time of glibc (95 % interval 0.800-0.80"),
        "{sentence}"
    );
    assert!(
        sentence
            .contains("Calls of malloc and free take 25 % of its CPU time under glibc, 2.00 million of them a second")
    );
    assert!(
        sentence.contains("more than 33 % faster by being faster itself"),
        "{sentence}"
    );
}

#[test]
fn where_none_is_faster_the_sentence_says_stay_or_that_it_does_not_matter() {
    assert!(
        says(1.2, 0.25)
            .starts_with("Stay with glibc: no allocator is faster here, and 1 of 1 is slower")
    );
    assert!(
        says(1.001, 0.25)
            .starts_with("It does not matter here: every allocator takes the time of glibc")
    );
    let hardly = says(1.001, 0.002);
    assert!(hardly.starts_with(
        "It does not matter here which allocator is the fastest: none can win more than 0.2 %"
    ));
    assert!(hardly.contains("take 0.2 % of its CPU time"), "{hardly}");
    // Every fourth block is far off: the size of the difference is unclear, but not its direction.
    let wide = |times: f64| {
        let spread = |block: u32| {
            if block % 4 == 3 {
                times
            } else {
                1.0 + 0.001 * f64::from(block % 3)
            }
        };
        let lab = tried_under(|block| 10.0 * spread(block), 0.25);
        conclusion(&analyse(&lab.run, &lab.records))
    };
    let slower = wide(1.3);
    assert!(
        slower.starts_with("Stay with glibc: no allocator is faster here, and none was shown"),
        "{slower}"
    );
    let faster = wide(0.7);
    assert!(
        faster.starts_with("Stay with glibc until more is known")
            && faster.contains("other (95 % interval 0.8")
            && faster.contains(" of glibc's time) may be."),
        "{faster}"
    );
    // Too few blocks support no recommendation, whatever they show.
    let mut few = tried(0.5, 0.25);
    few.records.retain(|record| record.block < 5);
    let sentence = conclusion(&analyse(&few.run, &few.records));
    assert!(
        sentence.starts_with("Unclear: 5 blocks are too few")
            && sentence.contains("Calls of malloc"),
        "{sentence}"
    );
}

#[test]
fn below_a_ceiling_that_no_verdict_would_tell_none_may_be_faster() {
    let spread = |times: f64| {
        move |block: u32| {
            10.0 * if block % 4 == 3 {
                times
            } else {
                1.0 + 0.001 * f64::from(block % 3)
            }
        }
    };
    let lab = tried_under(spread(0.7), 0.004);
    let sentence = conclusion(&analyse(&lab.run, &lab.records));
    assert!(
        sentence.starts_with("It does not matter here which allocator is the fastest"),
        "{sentence}"
    );
    assert!(!sentence.contains("may be"), "{sentence}");
    // The requested precision is the smallest difference that this run could detect.
    let mut lab = tried_under(spread(0.7), 0.03);
    assert!(conclusion(&analyse(&lab.run, &lab.records)).contains("of glibc's time) may be."));
    lab.run.plan.precision = Some(0.05);
    assert!(!conclusion(&analyse(&lab.run, &lab.records)).contains("may be"));
    let slower = says(1.2, 0.004);
    assert!(
        slower.contains("It does not matter here")
            && slower.contains("But other is slower than glibc."),
        "{slower}"
    );
    let mut few = tried(0.999, 0.004);
    few.records.retain(|record| record.block < 5);
    let sentence = conclusion(&analyse(&few.run, &few.records));
    assert!(
        sentence.contains("It does not matter here") && !sentence.contains("ahead"),
        "{sentence}"
    );
}

/// A command under glibc and several others, each with its times over glibc's.
fn tried_under_several(others: &[(&str, &dyn Fn(u32) -> f64)]) -> FakeRun {
    let names = others.iter().map(|(name, _)| *name);
    let names: Vec<&str> = std::iter::once("glibc").chain(names).collect();
    let mut lab = FakeRun::new(&names, &["build"], 20).fill(|_, name, block| {
        let of = others.iter().find(|(other, _)| *other == name);
        10.0 * of.map_or(1.0, |(_, times)| times(block))
    });
    let case = &mut lab.run.plan.cases[0];
    case.whole_process = true;
    case.target = Target::Command(Box::new(UserCommand {
        command: vec!["/bin/x".into()],
        ..UserCommand::default()
    }));
    lab
}

/// Every `NAME (95 % interval LOW-HIGH` of a sentence, each name with its ends.
fn intervals_of(sentence: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = sentence.split(" (95 % interval ").collect();
    let named = |before: &str| before.rsplit(' ').next().unwrap_or_default().to_owned();
    parts
        .windows(2)
        .map(|pair| {
            let ends = pair[1].split([' ', ')']).next().unwrap_or_default();
            (named(pair[0]), ends.to_owned())
        })
        .collect()
}

#[test]
fn each_interval_of_the_sentence_is_that_of_the_row_that_it_names() {
    let far = |block: u32| 1.5 + 0.01 * f64::from(block % 5);
    // Most blocks are level, every fourth is quick: it may be faster, and by how much is unclear.
    let may_be = |least: f64| move |block: u32| if block % 4 == 3 { least } else { 1.002 };
    let (first, second) = (may_be(0.8), may_be(0.9));
    let lab = tried_under_several(&[
        ("slow", &far),
        ("maybe", &first),
        ("perhaps", &second),
        ("slower", &far),
    ]);
    let analysis = analyse(&lab.run, &lab.records);
    let sentence = conclusion(&analysis);
    let named = intervals_of(&sentence);
    assert_eq!(named.len(), 2, "{sentence}");
    for (name, ends) in &named {
        let row = analysis.cases[0]
            .rows
            .iter()
            .find(|row| row.allocator == *name);
        let ratio = row.unwrap().numbers().unwrap().time.ratio.unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert_eq!(*ends, format!("{low:.3}-{high:.3}"), "{name}: {sentence}");
    }
    assert!(!sentence.contains("1.5"), "no other row's end: {sentence}");
    assert!(
        sentence.contains("may be. 2 others are slower."),
        "{sentence}"
    );
}

/// Where other programs disturbed every part, `other` is slower by wall time and quicker by CPU time.
#[test]
fn of_a_command_that_was_always_disturbed_nothing_is_said_by_wall_time() {
    let mut lab = tried_under(|block| 10.0 * (1.5 + 0.01 * f64::from(block % 5)), 0.25);
    for record in &mut lab.records {
        let (Some(measurement), "other") = (&mut record.measurement, record.allocator.as_str())
        else {
            continue;
        };
        for iteration in &mut measurement.iterations {
            iteration.user_ns /= 3;
            iteration.sys_ns /= 3;
        }
    }
    let wall = conclusion(&analyse(&lab.run, &lab.records));
    assert!(wall.starts_with("Stay with glibc"), "{wall}");
    interference::disturb_all(&mut lab);
    let cpu = conclusion(&analyse(&lab.run, &lab.records));
    assert!(
        cpu.starts_with(
            "Noisy run: 20 of 20 parts were disturbed each time (other programs), so no winner is named by wall time. \
             By CPU time: Use other: it takes 0.5"
        ) && cpu.contains("x the CPU time of glibc"),
        "{cpu}"
    );
}

#[test]
fn a_span_of_many_rows_is_said_to_be_of_all() {
    let level = |times: f64| move |block: u32| times + 0.001 * f64::from(block % 3);
    let (one, other) = (level(1.3), level(1.2));
    let sentence = {
        let lab = tried_under_several(&[("one", &one), ("other", &other)]);
        conclusion(&analyse(&lab.run, &lab.records))
    };
    assert!(
        sentence.contains("2 of 2 are slower (95 % intervals of all 2 from 1.20"),
        "{sentence}"
    );
}

#[test]
fn a_ceiling_that_a_row_exceeds_is_withdrawn() {
    let sentence = says(0.8, 0.01);
    assert!(
        sentence.starts_with("Use other: it takes 0.800x"),
        "{sentence}"
    );
    assert!(
        sentence.contains("the gain is larger under other (at least 2"),
        "{sentence}"
    );
    assert!(
        sentence.contains("this is no ceiling here") && !sentence.contains("no allocator can"),
        "{sentence}"
    );
}

#[test]
fn the_table_has_the_order_of_the_sentence() {
    // By pairs `other` takes 0.998 of glibc's time; its median is 13, glibc's 12.
    let mut lab =
        FakeRun::new(&["glibc", "other"], &["build"], 3).fill(|_, name, block| match name {
            "other" => [9.9, 14.0, 13.0][block as usize],
            _ => [10.0, 12.0, 15.0][block as usize],
        });
    let case = &mut lab.run.plan.cases[0];
    case.whole_process = true;
    case.target = Target::Command(Box::new(UserCommand {
        command: vec!["/bin/x".into()],
        ..UserCommand::default()
    }));
    let sentence = conclusion(&analyse(&lab.run, &lab.records));
    let text = exported(Format::Markdown, &lab);
    let place = |name: &str| text.find(&format!("| {name} ")).unwrap();
    assert!(
        sentence.contains("So far other is ahead, then glibc"),
        "{sentence}"
    );
    assert!(place("other") < place("glibc"), "{text}");
}

#[test]
fn tables_speak_of_the_command_and_of_processes() {
    let text = exported(Format::Markdown, &tried(0.8, 0.25));
    for words in [
        "python3 build.py",
        "| allocator |",
        "wall s",
        "peak RSS",
        "ceiling: calls of malloc",
        "try: python3 build.py",
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    for words in ["ns/op", "2 threads", "longest pause"] {
        assert!(!text.contains(words), "{words} in {text}");
    }
}

#[test]
fn of_a_server_the_ceiling_is_that_of_its_cpu_time() {
    let mut lab = tried(0.8, 0.25);
    let client = Client {
        command: vec!["/usr/bin/ask".into()],
        port: 7,
    };
    let Target::Command(command) = &mut lab.run.plan.cases[0].target else {
        panic!()
    };
    command.client = Some(client);
    let sentence = conclusion(&analyse(&lab.run, &lab.records));
    assert!(
        sentence.contains("take 25 % of the server's CPU time while its client runs under glibc"),
        "{sentence}"
    );
    assert!(
        sentence.contains("no allocator can make the server more than 33 % faster"),
        "{sentence}"
    );
    assert!(exported(Format::Markdown, &lab).contains("driven by ask"));
}

#[test]
fn what_could_not_be_found_out_is_said() {
    let mut lab = tried(0.8, 0.25);
    let measurement = lab
        .cell("build@2/check/glibc")
        .measurement
        .as_mut()
        .unwrap();
    measurement.figures.clear();
    measurement.notes = [
        ("no_ceiling", "it broke off"),
        ("unsearched", "it was ended after 30 s"),
    ]
    .map(|(name, why)| (name.to_owned(), why.to_owned()))
    .into();
    let text = exported(Format::Markdown, &lab);
    for words in [
        "ceiling: not known; it broke off",
        "search was not completed: it was ended after 30 s",
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
}

#[test]
fn a_real_program_without_numbers_under_the_baseline_is_not_one_that_needs_no_allocator() {
    let mut lab = FakeRun::new(&["glibc", "other"], &["jq", "redis", "gs"], 12)
        .fill(|_, _, _| 10.0)
        .fail("redis@2/b03/glibc", crash());
    for case in &mut lab.run.plan.cases {
        case.whole_process = true;
        case.target = Target::Command(Box::new(UserCommand {
            command: vec![format!("/usr/bin/{}", case.workload)],
            real: Some(RealCommand::default()),
            ..UserCommand::default()
        }));
    }
    for (program, share) in [("jq", 0.3), ("redis", 0.3), ("gs", 0.001)] {
        let facts = [("malloc_share", share), ("malloc_calls_per_cpu_s", 2e6)];
        lab = lab.told(&format!("{program}@2/check/glibc"), &facts);
    }
    let analysis = analyse(&lab.run, &lab.records);
    let text = programs(&lab.run, &analysis, Path::new("runs/1"), WIDE).unwrap();
    for says in [
        "No numbers under glibc, and so in no mean: redis.",
        "less than 1 % of the CPU time is malloc and free): gs.",
        "over 1 program to which allocation matters",
    ] {
        assert!(text.contains(says), "{says} is missing in\n{text}");
    }
    let line = text.lines().find(|line| line.starts_with("redis")).unwrap();
    assert!(line.contains("fail"), "{line}");
}
