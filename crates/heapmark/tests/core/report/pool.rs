//! `heapmark campaign pool` through the built binary: real runs, as if of several machines.

use crate::support::stored::{change_head, measured_on};
use crate::support::{End, Place};
use serde_json::{Value, json};

fn pool(place: &Place, args: &[&str]) -> End {
    place.run(&[&["campaign", "pool"], args].concat())
}

#[test]
fn what_is_slower_on_each_machine_is_expected_to_be_slower_on_the_next() {
    let place = Place::new();
    for machine in ["a", "b", "c"] {
        measured_on(&place, machine, "sluggish");
    }
    let end = pool(&place, &["a", "b", "c", "--by", "cpu", "--to", "json"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let read: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(read["machines"].as_array().unwrap().len(), 3);
    let row = &read["rows"][0];
    assert_eq!(
        (
            &row["allocator"],
            &row["workload"],
            row["on"].as_array().unwrap().len()
        ),
        (&json!("mine"), &json!("churn"), 3)
    );
    // How far three machines at once differ is chance, but the order of the two intervals is not.
    let end_of = |key: &str, end: usize| row[key][end].as_f64().unwrap();
    assert!(end_of("next", 0) < end_of("mean", 0) && end_of("mean", 1) < end_of("next", 1));
    for on in row["on"].as_array().unwrap() {
        assert_eq!(on["verdict"]["word"], "slower", "{on}");
    }
    let shown = pool(&place, &["a", "b", "c", "--by", "cpu"]).stdout;
    for told in [
        "CPU time / glibc on 3 machines",
        "slower on all 3, too few machines",
        "churn@1",
        "Machine 2:",
    ] {
        assert!(shown.contains(told), "no `{told}` in {shown}");
    }
    // Three types of one machine each.
    let typed = ["a", "b", "c", "--by", "cpu", "--types", "x=a,y=b,z=c"];
    let shown = pool(&place, &typed).stdout;
    for told in [
        "next type",
        "Machine 2 (type 2):",
        "Type 2: y.",
        "slower on all 3, too few types",
    ] {
        assert!(shown.contains(told), "no `{told}` in {shown}");
    }
    // Two runs of one machine are one machine, of which nothing follows for others.
    change_head(&place.at("b"), |head| {
        head["machine"]["machine_id"] = json!("a")
    });
    let few = pool(&place, &["a", "b"]).stdout;
    assert!(few.contains("too few machines"), "{few}");
}

#[test]
fn what_cannot_be_pooled_is_refused_in_a_line() {
    let place = Place::new();
    measured_on(&place, "a", "honest");
    measured_on(&place, "b", "honest");
    change_head(&place.at("b"), |head| {
        head["machine"]["page_size_bytes"] = json!("65536")
    });
    for (words, why) in [
        (&["a"][..], "nothing to pool: give two runs or more"),
        (
            &["a", "b"],
            "b: it is no repetition of a: page_size_bytes is 4096 there and 65536 here",
        ),
        (&["a", "a"], "hold the same samples: name each run once"),
        (&["a", "nothing"], "nothing"),
        (
            &["a", "b", "--types", "x=d"],
            "--types x=d: no run or campaign to pool is called d",
        ),
        (&["a", "b", "--types", "=a"], "expected LABEL=RUN"),
        (&["a", "b", "--by", "instructions"], "--by instructions"),
    ] {
        let end = pool(&place, words);
        assert_eq!(end.code, Some(2), "{words:?}: {}", end.stderr);
        assert!(end.stderr.contains(why), "{words:?}: {}", end.stderr);
    }
    // Beside others that count, it is shown.
    measured_on(&place, "c", "honest");
    let shown = pool(&place, &["a", "b", "c"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.says("glibc on 2 machines"), "{}", shown.stdout);
    assert!(shown.says("page_size_bytes is"), "{}", shown.stdout);
}
