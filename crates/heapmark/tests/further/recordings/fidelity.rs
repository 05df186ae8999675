//! A real program, recorded and replayed under the allocator that it ran under: does its heap come back as large as it was?

use crate::support::{End, Place, of_purpose, samples};
use std::process::Command;

/// Builds objects, writes them as JSON and reads them back, and says while it holds all of that how much of its heap is in
/// memory, in KiB: of `[heap]` and of anonymous memory, by the kernel's own account.
const JSON: &str = r#"
import json, random
random.seed(1)
# Only its program writes it: what a replay moves for realloc it writes even where it touches nothing.
held = b"x" * (2 << 20)
rows = [{"id": i, "name": "item%d" % i, "tags": [random.random() for _ in range(5)], "sub": {"a": str(i), "b": [1, 2, 3]}}
        for i in range(8000)]
text = json.dumps(rows)
again = json.loads(text)
total, ours = 0, False
for line in open("/proc/self/smaps"):
    words = line.split()
    if "-" in words[0]:
        ours = len(words) == 5 or words[5] == "[heap]"
    elif words[0] == "Rss:" and ours:
        total += int(words[1])
print(total)
"#;

fn python(place: &Place, mut command: Command) -> End {
    command
        .current_dir(place.at(""))
        .env("PYTHONMALLOC", "malloc")
        .env("PYTHONHASHSEED", "1");
    let end = End::of(command.output().unwrap());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    end
}

#[test]
fn the_heap_of_a_replayed_program_peaks_within_three_per_cent_of_the_programs() {
    let place = Place::new();
    std::fs::write(place.at("rows.py"), JSON).unwrap();
    let mut alone = Command::new("/usr/bin/python3");
    alone.arg("rows.py");
    let heap_bytes = 1024.0 * python(&place, alone).stdout.trim().parse::<f64>().unwrap();
    assert!(heap_bytes > 8e6, "too small to tell 3 %: {heap_bytes}");

    python(
        &place,
        place.heapmark(&[
            "record",
            "-o",
            "rows.trace",
            "--",
            "/usr/bin/python3",
            "rows.py",
        ]),
    );
    let flags = [
        "-a", "glibc", "--mode", "memory", "--blocks", "1", "-o", "run",
    ];
    let end = place.run(&[&["replay", "rows.trace"], &flags[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let course = &of_purpose(&records, "memory")[0]["memory"];
    let replayed = course["peak_footprint"]["heap_bytes"].as_u64().unwrap() as f64;
    let ratio = replayed / heap_bytes;
    assert!(
        (0.97..1.03).contains(&ratio),
        "the program's heap had {heap_bytes} bytes, the replay's {replayed}: {ratio}"
    );

    // The planted fault: a replay that writes to nothing it allocates must be told from the program.
    let untouched = place.run(&[
        "replay",
        "rows.trace",
        "--touch",
        "none",
        "-a",
        "glibc",
        "--mode",
        "memory",
        "--blocks",
        "1",
        "-o",
        "bare",
    ]);
    assert_eq!(
        untouched.code,
        Some(0),
        "{}{}",
        untouched.stdout,
        untouched.stderr
    );
    let records = samples(&place.at("bare"));
    let bare = of_purpose(&records, "memory")[0]["memory"]["peak_footprint"]["heap_bytes"]
        .as_u64()
        .unwrap() as f64;
    assert!(
        bare < 0.97 * heap_bytes,
        "untouched memory was counted: {bare} of {heap_bytes}"
    );
}
