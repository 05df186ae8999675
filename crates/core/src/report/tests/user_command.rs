//! Reports on a user's command.

use super::*;
use crate::analyse::Verdict;
use crate::analyse::analyse;
use crate::plan::{Client, CommandVariant, RealCommand, Target, UserCommand};
use crate::report::conclusion;
use crate::store::Record;

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
    let time = |name: &str, block| match name {
        "other" => other(block),
        _ => 10.0,
    };
    command_under(&["glibc", "other"], time, share)
}

fn command_under(names: &[&str], time: impl Fn(&str, u32) -> f64, share: f64) -> FakeRun {
    let mut lab = FakeRun::new(names, &["build"], 20).fill(|_, name, block| time(name, block));
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
fn a_command_whose_later_runs_hang_under_every_allocator_is_sent_to_prepare() {
    let says = |hangs: fn(&Record) -> bool| {
        let mut lab = tried(0.8, 0.25);
        let hung = lab
            .records
            .iter_mut()
            .filter(|record| record.purpose == Purpose::Sample && hangs(record));
        hung.for_each(|record| {
            record.outcome = Outcome::Hang {
                after_s: 20.0,
                phase: "run".into(),
                threads: Vec::new(),
            };
            record.measurement = None;
        });
        let analysis = analyse(&lab.run, &lab.records);
        first(WIDE, &lab.run, &analysis).contains("later ones under none")
    };
    assert!(says(|record| record.block > 2));
    assert!(!says(
        |record| record.block > 2 && record.allocator == "other"
    ));
    assert!(!says(|_| false));
}

#[test]
fn a_command_that_leaves_more_work_is_seen_if_its_first_blocks_were_measured_last() {
    let mut lab = tried(0.8, 0.25);
    lab.records.sort_by_key(|record| (record.block + 10) % 20);
    let mut runs = 0.0;
    for record in &mut lab.records {
        if record.purpose == Purpose::Sample {
            runs += 1.0;
            record.measurement = Some(measurement(runs));
        }
    }
    let facts = analyse(&lab.run, &lab.records).cases[0].command.clone();
    let (first_ns, last_ns) = facts.unwrap().grows_ns.unwrap();
    assert!(last_ns > 3.0 * first_ns, "{first_ns} {last_ns}");
}

#[test]
fn a_recommendation_names_the_release_it_holds_for() {
    let of = |times: f64| {
        let mut lab = tried(times, 0.25);
        lab.allocator("glibc").release = "glibc 2.36, 2022".into();
        lab.allocator("other").release = "other 1.4.3, 2021".into();
        conclusion(&analyse(&lab.run, &lab.records))
    };
    assert!(
        of(0.8).starts_with("Use other (1.4.3, 2021): 0.8"),
        "{}",
        of(0.8)
    );
    assert!(
        of(1.2).starts_with("Stay with glibc (2.36, 2022): "),
        "{}",
        of(1.2)
    );
}

#[test]
fn an_allocator_is_recommended_where_it_is_faster_and_the_time_in_malloc_stands_beside_it() {
    let sentence = says(0.8, 0.25);
    assert!(
        sentence.starts_with("Use other: 0.800 of glibc's time [0.800, 0.80"),
        "{sentence}"
    );
    let share =
        "In malloc and free: 25 % of its CPU time under glibc, 2.00 million calls a second.";
    assert!(sentence.contains(share), "{sentence}");
}

/// Of what certainly holds less, the fastest of the equally small ones.
#[test]
fn the_least_memory_is_what_certainly_is_less() {
    let names = ["glibc", "slow", "fast", "unsteady"];
    let time = |name: &str, _| if name == "slow" { 12.0 } else { 10.0 };
    let mut lab = command_under(&names, time, 0.25);
    let mib = |name: &str, block: u32| match name {
        "glibc" => 47.0,
        "slow" => 40.0,
        "fast" => 40.1,
        _ if block.is_multiple_of(2) => 30.0,
        _ => 60.0,
    };
    for record in &mut lab.records {
        let bytes = (mib(&record.allocator, record.block) * 1_048_576.0) as u64;
        if let Some(measurement) = &mut record.measurement {
            measurement.peak_rss_bytes = bytes;
        }
    }
    let said = conclusion(&analyse(&lab.run, &lab.records));
    let least = "Least memory: fast, 40.1 MiB at the peak (glibc 47.0 MiB; slow as well).";
    assert!(said.contains(least), "{said}");
}

#[test]
fn what_differs_by_no_more_than_the_copy_of_the_baseline_may_be_faster() {
    let names = ["glibc", "near", "slow", "glibc (copy)"];
    let time = |name: &str, block| {
        let scatter = 1.0 + 0.0001 * f64::from(block % 7);
        match name {
            "near" => 9.7 * scatter,
            "slow" => 20.0 * scatter,
            "glibc (copy)" => 10.5 * scatter,
            _ => 10.0,
        }
    };
    let mut lab = command_under(&names, time, 0.25);
    lab.run.plan.aa_copy = lab.run.plan.allocators.pop();
    lab.allocator("glibc (copy)").tier = "aa-copy".into();
    let analysis = analyse(&lab.run, &lab.records);
    let sentence = conclusion(&analysis);
    let expected =
        "Stay with glibc until more is known: no allocator was shown to be faster; near (0.97";
    assert!(sentence.starts_with(expected), "{sentence}");
    assert!(
        sentence.contains("may be. 1 other is slower."),
        "{sentence}"
    );
}

#[test]
fn where_none_is_faster_the_sentence_says_stay_and_how_far_the_others_are() {
    assert!(
        says(1.2, 0.25)
            .starts_with("Stay with glibc: no allocator is faster here, and 1 of 1 is slower")
    );
    let alike = says(1.001, 0.25);
    assert!(
        alike.starts_with("Stay with glibc: no allocator differs from it by more than 0.2 % (95 %"),
        "{alike}"
    );
    // The share decides nothing.
    let hardly = says(0.8, 0.002);
    assert!(hardly.starts_with("Use other: 0.800 of"), "{hardly}");
    assert!(hardly.contains("free: 0.2 % of its CPU time"), "{hardly}");
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
            && faster.contains("other (")
            && faster.contains("]) may be."),
        "{faster}"
    );
    // Too few blocks support no recommendation, whatever they show.
    let mut few = tried(0.5, 0.25);
    few.records.retain(|record| record.block < 5);
    let sentence = conclusion(&analyse(&few.run, &few.records));
    assert!(
        sentence.starts_with("Unclear: 5 blocks are too few")
            && sentence.contains("In malloc and free: 25 %"),
        "{sentence}"
    );
}

/// The same, with these further figures and notes of the baseline's check.
fn with_reach(figures: &[(&str, f64)], notes: &[(&str, &str)]) -> FakeRun {
    let mut lab = tried(0.8, 0.0004);
    let cell = lab.cell("build@2/check/glibc");
    let check = cell.measurement.as_mut().unwrap();
    let own = |(name, value): &(&str, f64)| ((*name).to_owned(), *value);
    check.figures.extend(figures.iter().map(own));
    let own = |(name, words): &(&str, &str)| ((*name).to_owned(), (*words).to_owned());
    check.notes.extend(notes.iter().map(own));
    lab
}

#[test]
fn what_allocators_reach_only_in_part_is_said_above_the_table() {
    const MIB: f64 = 1048576.0;
    let memory = |reached| {
        [
            ("anonymous_bytes", 100.0 * MIB),
            ("reached_bytes", reached * MIB),
        ]
    };
    let text = exported(Format::Markdown, &with_reach(&memory(2.0), &[]));
    let sentence = "No row's allocator reaches all of it: at most 2.00 MiB of its 100 MiB of memory come from malloc.";
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("no {words} in {text}"))
    };
    assert!(place(sentence) < place("| allocator |"));
    let text = exported(Format::Markdown, &with_reach(&memory(60.0), &[]));
    assert!(
        text.contains("memory from malloc: at most 60.0 MiB of 100 MiB"),
        "{text}"
    );
    assert!(!text.contains("reaches all"), "{text}");
    let beyond = [("beyond", "/x/plugin.so in /x/host (calls another malloc)")];
    let text = exported(Format::Markdown, &with_reach(&[], &beyond));
    let sentence =
        "No row's allocator reaches all of it: it does not serve /x/plugin.so in /x/host (calls";
    assert!(text.contains(sentence), "{text}");
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
    let parts: Vec<&str> = sentence.split(" (").collect();
    let named = |before: &str| before.rsplit(' ').next().unwrap_or_default().to_owned();
    let ends = |after: &str| Some(after.split_once('[')?.1.split_once(']')?.0.to_owned());
    parts
        .windows(2)
        .filter_map(|pair| Some((named(pair[0]), ends(pair[1])?)))
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
        let ratio = row.unwrap().time().ratio.unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert_eq!(*ends, format!("{low:.3}, {high:.3}"), "{name}: {sentence}");
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
             By CPU time: Use other: 0.5"
        ) && cpu.contains(" of glibc's CPU time ["),
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
fn few_calls_of_malloc_are_counted_and_none_is_said() {
    let says = |calls| {
        let lab = with_reach(&[("malloc_calls", calls)], &[]);
        conclusion(&analyse(&lab.run, &lab.records))
    };
    let words = "In malloc and free: less than 0.1 % of its CPU time under glibc, ";
    for (calls, more) in [
        (0.0, "which makes no call."),
        (1.0, "in 1 call in all."),
        (3.0, "in 3 calls in all."),
        (1e6, "2.00 million calls a second."),
    ] {
        let sentence = says(calls);
        assert!(sentence.contains(&format!("{words}{more}")), "{sentence}");
    }
}

#[test]
fn a_fault_of_the_program_that_its_check_shows_stands_beside_a_crash() {
    let text = |figures: &[_], notes: &[_]| {
        let lab = with_reach(figures, notes).fail("build@2/check/other", crash());
        exported(Format::Markdown, &lab)
    };
    let mixed = text(&[], &[("mixed_heaps", "/x/plugin.so")]);
    assert!(
        mixed.contains(
            "frees blocks that its malloc did not give: they cross between /x/plugin.so and the"
        ),
        "{mixed}"
    );
    let sized = text(&[("deletes_of_other_size", 800_000.0)], &[]);
    assert!(
        sized.contains("deletes blocks with another size than they have, 800000 times"),
        "{sized}"
    );
    assert!(!text(&[], &[]).contains("The program"));
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
        "time in malloc and free: 25 % of its CPU time",
        "try: python3 build.py",
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    for words in ["ns/op", "2 threads", "longest pause"] {
        assert!(!text.contains(words), "{words} in {text}");
    }
}

#[test]
fn of_a_server_the_time_in_malloc_is_a_share_of_its_own_cpu_time() {
    let mut lab = tried(0.8, 0.25);
    let client = Client {
        command: vec!["/usr/bin/ask".into()],
        ready: crate::plan::Ready::Port(7),
        ..Client::default()
    };
    let Target::Command(command) = &mut lab.run.plan.cases[0].target else {
        panic!()
    };
    command.client = Some(client);
    let sentence = conclusion(&analyse(&lab.run, &lab.records));
    assert!(
        sentence.contains("free: 25 % of the server's CPU time while its client runs under glibc"),
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
        ("untimed", "it broke off"),
        ("unsearched", "it was ended after 30 s"),
    ]
    .map(|(name, why)| (name.to_owned(), why.to_owned()))
    .into_iter()
    .collect();
    let text = exported(Format::Markdown, &lab);
    for words in [
        "time in malloc and free: not known; it broke off",
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
    let text = first(WIDE, &lab.run, &analysis);
    for says in [
        "No numbers under glibc, and so in no mean: redis.",
        "Mean: geometric, over 2 programs.",
    ] {
        assert!(text.contains(says), "{says} is missing in\n{text}");
    }
    let line = text
        .lines()
        .find(|line| line.starts_with("  redis"))
        .unwrap();
    assert!(line.contains("fail"), "{line}");
}

/// Two builds under two allocators, which take these times.
fn crossed(of: impl Fn(&str, &str) -> f64) -> (String, Verdict) {
    let rows = ["old+glibc", "old+je", "new+glibc", "new+je"];
    let noise = |name: &str, block: u32| crate::analyse::fake_run::noise(name, block);
    let mut lab = FakeRun::new(&rows, &["build"], 15).fill(|_, name, block| {
        let (build, allocator) = name.trim_end_matches(" (copy)").split_once('+').unwrap();
        of(build, allocator) * noise(name, block)
    });
    lab.run.plan.baseline = rows[0].into();
    let case = &mut lab.run.plan.cases[0];
    case.whole_process = true;
    let variant = |name: &str| CommandVariant {
        name: name.into(),
        command: vec![format!("/bin/{name}")],
        ..CommandVariant::default()
    };
    case.target = Target::Command(Box::new(UserCommand {
        command: vec!["/bin/old".into()],
        variants: vec![variant("old"), variant("new")],
        ..UserCommand::default()
    }));
    let analysis = analyse(&lab.run, &lab.records);
    let facts = analysis.cases[0].command.clone().unwrap();
    let [found] = &facts.interactions[..] else {
        panic!("{:?}", facts.interactions);
    };
    let sheets = crate::report::run::sheets(&analysis);
    let both = sheets
        .iter()
        .find(|it| it.heading.contains("builds by allocators"));
    let told = both.unwrap().notes[0].text.clone();
    (told, found.verdict)
}

#[test]
fn a_build_that_spoils_an_allocators_gain_is_an_interaction_and_one_that_keeps_it_is_none() {
    let build = |name: &str| if name == "new" { 6.0 } else { 10.0 };
    let allocator = |name: &str| if name == "je" { 0.5 } else { 1.0 };
    let (told, verdict) = crossed(|new, je| build(new) * allocator(je));
    assert_eq!(verdict, Verdict::Same, "{told}");
    assert!(told.ends_with("the gains of the two add up"), "{told}");
    // The new build makes no calls that an allocator could make faster.
    let (told, verdict) = crossed(|new, je| match new {
        "new" => 6.0,
        _ => 10.0 * allocator(je),
    });
    assert_eq!(verdict, Verdict::Slower, "{told}");
    let start = "interaction of new and je: 2.00";
    assert!(
        told.starts_with(start) && told.ends_with("they gain less than new and je each"),
        "{told}"
    );
}
