use super::*;
use crate::faults;

fn problems(text: &str) -> String {
    let mut faults = Vec::new();
    parse("x.toml", text, &mut faults);
    faults::Faults(faults).to_string()
}

const CHURN: &str = include_str!("../../../../workloads/llheap/churn.toml");

#[test]
fn variants_take_what_they_do_not_change_from_their_workload() {
    let mut faults = Vec::new();
    let all = parse("x.toml", CHURN, &mut faults);
    assert_eq!(faults, []);
    let private = &all[1];
    assert_eq!(
        (private.name.as_str(), private.kernel.as_deref()),
        ("churn-private", Some("churn"))
    );
    let values = private.values("quick").unwrap();
    assert_eq!(
        (values["sharing"].as_str(), values["objects"].as_str()),
        ("private", "100000")
    );
}

#[test]
fn rows_of_programs_may_stand_alone_and_a_variant_may_have_others_or_none() {
    let rows = "[[rows]]\nname = \"PMDK:zalloc\"\nprogram = \"zalloc-pmdk\"\n";
    let alone = CHURN
        .replace("kernel = \"churn\"\n", "")
        .replace("[parameters.spots]", &format!("{rows}[parameters.spots]"));
    let mut faults = Vec::new();
    let all = parse("x.toml", &alone, &mut faults);
    assert_eq!(faults, []);
    assert_eq!(
        (all[0].kernel.as_ref(), all[0].rows.len(), all[1].rows.len()),
        (None, 1, 1)
    );
    let none = alone.replace(
        "name = \"churn-private\"",
        "name = \"churn-private\"\nrows = []",
    );
    assert!(problems(&none).contains("churn-private: kernel: nothing runs it"));
    assert!(
        problems(&alone.replace("PMDK:zalloc", "pmdk")).contains("could be an allocator's name")
    );
    assert!(problems(&alone.replace("PMDK:zalloc", "PMDK/zalloc")).contains("cannot name a row"));
    assert!(
        problems(&alone.replace(
            "about = \"all",
            "kernel = \"churn\"\nprogram = \"x\"\nabout = \"all"
        ))
        .contains("keep one")
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert!(
        problems(&CHURN.replace("kernel = \"churn\"", "kernel = \"chrun\""))
            .contains("did you mean `churn`")
    );
    assert!(
        problems(&CHURN.replace("step = 50", "stepp = 50")).contains("parameters.step: no value")
    );
    assert!(
        problems(&CHURN.replace("sharing = \"shared\"", "sharing = \"no\""))
            .contains("expected shared or private")
    );
    assert!(problems(&CHURN.replace("spots = 16", "spots = 0")).contains("1 or more"));
    assert!(
        problems(&CHURN.replace("[presets.paper]", "[presets.papers]"))
            .contains("presets `quick` and `paper`")
    );
    assert!(problems(&CHURN.replace("hides =", "hide =")).contains("hide: unknown"));
    let with = |line: &str| problems(&CHURN.replace("hides =", &format!("{line}\nhides =")));
    assert!(with("threads = \"spots * sharing\"").contains("`sharing` is no number"));
    assert!(with("threads = \"objects\"").contains("from 1 to 4096"));
    assert!(with("series = \"soon\"").contains("expected a time from 100µs"));
    assert!(
        problems(&CHURN.replace("kernel = \"churn\"", "kernel = \"larson\""))
            .contains("parameters.thread: kernel `larson` never works on the main thread alone")
    );
}

const SAME_THREAD: &str = include_str!("../../../../workloads/micromalloc/same-thread.toml");

#[test]
fn a_preset_that_swaps_the_first_round_for_later_ones_is_refused() {
    assert_eq!(problems(SAME_THREAD), "");
    let quick = |cold: &str, iterations: &str| {
        let lines = format!("[presets.quick]\ncold = {cold}\niterations = {iterations}");
        problems(&SAME_THREAD.replace("[presets.quick]\ncold = 0\niterations = 1", &lines))
    };
    assert!(quick("1", "1").contains("presets.quick.cold: discards the first round"));
    assert!(
        quick("0", "2").contains("presets.quick.iterations: measures rounds that reuse memory")
    );
    assert!(
        quick("0", "\"calibrated\"")
            .contains("presets.quick.iterations: measures rounds that reuse memory")
    );
    // A workload that declares continued rounds may discard rounds; one that declares reuse must.
    assert!(
        problems(&CHURN.replace("rounds = \"continued\"\n", ""))
            .contains("presets.quick.cold: discards")
    );
    assert!(
        problems(&CHURN.replace("\"continued\"", "\"reuse\""))
            .contains("presets.paper.cold: measures the first")
    );
}

#[test]
fn a_variant_that_reuses_memory_does_so_in_every_preset() {
    let all = parse("x.toml", SAME_THREAD, &mut Vec::new());
    let reuse = all
        .iter()
        .find(|workload| workload.name == "same-thread-reuse")
        .unwrap();
    for preset in ["quick", "paper"] {
        let Preset {
            cold, iterations, ..
        } = reuse.presets[preset];
        assert_eq!(
            (cold, iterations),
            (1, Iterations::Calibrated(Calibrated::Calibrated)),
            "{preset}"
        );
    }
}

const SHIFT: &str = include_str!("../../../../workloads/memory-shapes/shift.toml");

#[test]
fn a_figure_is_read_once_with_its_place_and_a_faulty_one_is_refused() {
    let variant = "\n[[variants]]\nname = \"shift-more\"\nabout = \"more\"\n";
    let all = parse("x.toml", &format!("{SHIFT}{variant}"), &mut Vec::new());
    let [figure] = &all[0].figures[..] else {
        panic!("{:?}", all[0].figures);
    };
    assert_eq!(
        (figure.file.as_str(), figure.workload.as_str()),
        ("x.toml", "shift")
    );
    assert_eq!(
        (figure.unit, figure.role),
        (Unit::Share, Some(FigureRole::GrowingAbove(0.1)))
    );
    assert_eq!(all[1].figures, [], "of a variant");

    let with = |from: &str, to: &str| problems(&SHIFT.replace(from, to));
    assert!(with("unit = \"share\"", "unit = \"shares\"").contains("did you mean `share`?"));
    assert!(with("noun =", "nuon =").contains("nuon: unknown"));
    assert!(with("growing-above", "growing").contains("growing: unknown"));
    assert!(
        with("key = \"cycle_", "key = \"Cycle ")
            .contains("shift: figures.Cycle growth_share: cannot name a figure")
    );
    assert!(
        with(
            "unit = \"share\"",
            "unit = \"share\"\njudged = true\nbetter = \"neither\""
        )
        .contains("neither direction is better")
    );
}
