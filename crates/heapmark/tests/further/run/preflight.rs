//! Each warning of the preflight fires on a machine where it is planted, and none on a clean one.

use crate::support::Place;
use crate::support::machine::{self, Machine};
use heapmark::observe::preflight::{ItemState, Preflight, PreflightItem, When};
use heapmark::observe::root::Root;
use std::path::Path;

fn look(machine: &Machine, when: When) -> Preflight {
    Preflight::look(&Root::at(machine.root()), when)
}

fn item(machine: &Machine, name: &str) -> PreflightItem {
    let items = look(machine, When::Before).items;
    items
        .into_iter()
        .find(|item| item.name == name)
        .unwrap_or_else(|| panic!("no item {name}"))
}

/// What becomes of an item of a clean machine where these files say something else.
fn planted(name: &str, files: &[(&str, &str)]) -> (ItemState, String) {
    let place = Place::new();
    let machine = Machine::clean(place.at("machine"));
    files
        .iter()
        .for_each(|(file, text)| machine.plant(file, text));
    let item = item(&machine, name);
    (item.state, item.found.unwrap_or_else(|| "not told".into()))
}

#[test]
fn a_clean_machine_has_no_warnings() {
    let place = Place::new();
    let look = look(&Machine::clean(place.at("machine")), When::Before);
    assert_eq!(look.warnings(), Vec::<String>::new());
    // A folder cannot count instructions; everything else is reported.
    let rest: Vec<&str> = look
        .in_state(ItemState::Note)
        .map(|item| item.name.as_str())
        .collect();
    assert_eq!(
        rest.iter()
            .filter(|name| **name != "page-size")
            .collect::<Vec<_>>(),
        [&"hardware-counters"]
    );
    assert_eq!(look.items.len(), 27);
}

#[test]
fn every_planted_warning_fires_and_says_what_was_found() {
    let swap = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2 partition\t1048576\t\t2048\t\t-2\n";
    let busy = "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n";
    let user = "sys/fs/cgroup/user.slice";
    let thp = "sys/kernel/mm/transparent_hugepage";
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let governor = "sys/devices/system/cpu/cpufreq/policy1/scaling_governor";
    let cpu_stat = "nr_periods 90\nnr_throttled 7\nthrottled_usec 2500000\n";
    let cases: &[(&str, &str, &str, &str)] = &[
        (
            "governor",
            governor,
            "powersave\n",
            "performance, powersave (intel_pstate)",
        ),
        (
            "boost",
            "sys/devices/system/cpu/intel_pstate/no_turbo",
            "0\n",
            "on",
        ),
        (
            "usable-cpus",
            "proc/self/status",
            "Cpus_allowed_list:\t2\n",
            "1 of 4",
        ),
        ("clock-source", clock, "hpet\n", "hpet"),
        (
            "aslr",
            "proc/sys/kernel/randomize_va_space",
            "0\n",
            "0 (off)",
        ),
        (
            "aslr",
            "proc/sys/kernel/randomize_va_space",
            "1\n",
            "1 (all but the heap)",
        ),
        (
            "aslr",
            "proc/self/personality",
            "00040000\n",
            "off for this process (setarch -R)",
        ),
        (
            "huge-pages-defrag",
            &format!("{thp}/defrag"),
            "[always] defer madvise never\n",
            "always",
        ),
        (
            "overcommit",
            "proc/sys/vm/overcommit_memory",
            "2\n",
            "2 (strict)",
        ),
        (
            "free-memory",
            "proc/meminfo",
            "MemTotal: 24684280 kB\nMemAvailable: 1949312 kB\n",
            "1903 MiB of 24105 MiB",
        ),
        (
            "free-memory",
            "proc/meminfo",
            "MemTotal: 2097152 kB\nMemAvailable: 1048000 kB\n",
            "1023 MiB of 2048 MiB",
        ),
        ("swap", "proc/swaps", swap, "1024 MiB, 2 MiB used"),
        ("ksm", "sys/kernel/mm/ksm/run", "1\n", "on"),
        (
            "ld-so-preload",
            "etc/ld.so.preload",
            "# monitoring\n/opt/lib/libwatch.so:/opt/lib/libmore.so # both\n",
            "/opt/lib/libwatch.so, /opt/lib/libmore.so",
        ),
        (
            "damon",
            "sys/kernel/mm/damon/admin/kdamonds/0/state",
            "on\n",
            "on: kdamond 0",
        ),
        (
            "damon",
            "sys/module/damon_reclaim/parameters/enabled",
            "Y\n",
            "on: damon_reclaim",
        ),
        (
            "numa-balancing",
            "proc/sys/kernel/numa_balancing",
            "1\n",
            "on, 2 nodes",
        ),
        (
            "cpu-limit",
            &format!("{user}/cpu.max"),
            "150000 100000\n",
            "1.50 CPUs (/sys/fs/cgroup/user.slice)",
        ),
        (
            "throttled",
            &format!("{user}/cpu.stat"),
            cpu_stat,
            "7 times, 2500 ms",
        ),
        (
            "memory-limit",
            &format!("{user}/memory.high"),
            "1048576000\n",
            "1000 MiB, 999 MiB left (/sys/fs/cgroup/user.slice)",
        ),
        ("cpu-pressure", "proc/pressure/cpu", busy, "12.50 % of 10 s"),
        (
            "memory-pressure",
            "proc/pressure/memory",
            busy,
            "12.50 % of 10 s",
        ),
        ("io-pressure", "proc/pressure/io", busy, "12.50 % of 10 s"),
        (
            "steal",
            "proc/stat",
            "cpu  900 0 60 5000 0 0 20 20 0 0\n",
            "2.00 % of CPU time since boot",
        ),
        (
            "load",
            "proc/loadavg",
            "0.80 0.10 0.10 1/88 1\n",
            "0.80 over a minute",
        ),
    ];
    for (name, file, text, found) in cases {
        assert_eq!(
            planted(name, &[(file, text)]),
            (ItemState::Warning, found.to_string()),
            "{name} by {file}"
        );
    }
    let zswap = ("sys/module/zswap/parameters/enabled", "Y\n");
    assert_eq!(
        planted("zswap", &[zswap, ("proc/swaps", swap)]),
        (ItemState::Warning, "on".into())
    );
}

#[test]
fn what_results_depend_on_without_wandering_is_a_note() {
    let thp = "sys/kernel/mm/transparent_hugepage";
    let unused = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2 partition\t1048576\t\t0\t\t-2\n";
    let limit = "sys/fs/cgroup/user.slice/memory.max";
    let cases: &[(&str, &str, &str, &str)] = &[
        ("smt", "sys/devices/system/cpu/smt/active", "1\n", "on"),
        (
            "usable-cpus",
            "proc/self/status",
            "Cpus_allowed_list:\t0,2-3\n",
            "3 of 4",
        ),
        (
            "huge-pages",
            &format!("{thp}/enabled"),
            "[always] madvise never\n",
            "always",
        ),
        (
            "huge-pages",
            &format!("{thp}/enabled"),
            "always madvise [never]\n",
            "never",
        ),
        (
            "huge-pages",
            &format!("{thp}/hugepages-64kB/enabled"),
            "[always] inherit never\n",
            "madvise, 64kB always",
        ),
        (
            "huge-pages",
            &format!("{thp}/hugepages-2048kB/enabled"),
            "always inherit madvise [never]\n",
            "madvise, 2048kB never",
        ),
        (
            "huge-pages",
            "proc/self/status",
            "Cpus_allowed_list:\t0-3\nTHP_enabled:\t0\n",
            "none for this process (THP_enabled: 0)",
        ),
        (
            "overcommit",
            "proc/sys/vm/overcommit_memory",
            "1\n",
            "1 (everything is granted)",
        ),
        ("swap", "proc/swaps", unused, "1024 MiB, 0 MiB used"),
        ("zswap", "sys/module/zswap/parameters/enabled", "Y\n", "on"),
        (
            "memory-limit",
            limit,
            "4294967296\n",
            "4096 MiB, 4095 MiB left (/sys/fs/cgroup/user.slice)",
        ),
        (
            "perf_event_paranoid",
            "proc/sys/kernel/perf_event_paranoid",
            "3\n",
            "3",
        ),
        (
            "clock-source",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "sundial\n",
            "sundial",
        ),
    ];
    for (name, file, text, found) in cases {
        assert_eq!(
            planted(name, &[(file, text)]),
            (ItemState::Note, found.to_string()),
            "{name} by {file}"
        );
    }
}

#[test]
fn what_disturbs_no_measurement_is_fine() {
    let one_node = [
        ("proc/sys/kernel/numa_balancing", "1\n"),
        ("sys/devices/system/node/online", "0\n"),
    ];
    assert_eq!(
        planted("numa-balancing", &one_node),
        (ItemState::Fine, "on, 1 node".into())
    );
    assert_eq!(
        planted("ksm", &[("sys/kernel/mm/ksm/run", "2\n")]),
        (ItemState::Fine, "off".into())
    );
    let large = [
        ("proc/loadavg", "1.50 0 0 1/1 1\n"),
        ("sys/devices/system/cpu/online", "0-31\n"),
    ];
    assert_eq!(planted("load", &large).0, ItemState::Fine);
}

#[test]
fn limits_of_version_1_of_control_groups_are_found() {
    let mounts = "\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
";
    let files = [
        (
            "proc/self/cgroup",
            "4:memory:/docker/abc\n1:cpu:/jobs/7\n0::/\n",
        ),
        ("proc/self/mountinfo", mounts),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/jobs/7/cpu.cfs_quota_us", "50000\n"),
        ("sys/fs/cgroup/cpu/jobs/7/cpu.cfs_period_us", "100000\n"),
        (
            "sys/fs/cgroup/cpu/jobs/7/cpu.stat",
            "nr_periods 9\nnr_throttled 2\nthrottled_time 3000000\n",
        ),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        ),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "4439678976\n"),
    ];
    assert_eq!(
        planted("cpu-limit", &files),
        (
            ItemState::Warning,
            "0.50 CPUs (/sys/fs/cgroup/cpu/jobs/7)".into()
        )
    );
    assert_eq!(
        planted("throttled", &files),
        (ItemState::Warning, "2 times, 3 ms".into())
    );
    assert_eq!(
        planted("memory-limit", &files),
        (ItemState::Fine, "none".into())
    );
}

#[test]
fn at_the_root_of_all_groups_nothing_limits() {
    let place = Place::new();
    let machine = Machine::clean(place.at("machine"));
    machine.plant("proc/self/cgroup", "0::/\n");
    assert_eq!(item(&machine, "cpu-limit").found.as_deref(), Some("none"));
    // The root of a container only looks like that: what is above it cannot be seen.
    machine.plant("sys/fs/cgroup/cgroup.type", "domain\n");
    assert_eq!(
        (
            item(&machine, "cpu-limit").found,
            item(&machine, "memory-limit").found
        ),
        (None, None)
    );
}

#[test]
fn what_a_machine_does_not_tell_is_never_called_fine() {
    let place = Place::new();
    let machine = Machine::clean(place.at("machine"));
    machine::files().for_each(|file| machine.remove(file));
    for item in look(&machine, When::Before).items {
        if item.name != "page-size" {
            assert_eq!(
                (item.found, item.state),
                (None, ItemState::Note),
                "{}",
                item.name
            );
        }
    }
}

#[test]
fn after_a_run_its_own_work_warns_of_nothing() {
    let place = Place::new();
    let machine = Machine::clean(place.at("machine"));
    machine.plant("proc/loadavg", "9.00 0.10 0.10 1/88 1\n");
    machine.plant(
        "proc/pressure/cpu",
        "some avg10=50.00 avg60=0.00 avg300=0.00 total=1\n",
    );
    machine.plant("sys/kernel/mm/ksm/run", "1\n");
    assert_eq!(
        look(&machine, When::Before).warnings(),
        ["ksm", "cpu-pressure", "load"]
    );
    let after = look(&machine, When::After);
    assert_eq!(after.warnings(), ["ksm"], "settings still warn");
    assert!(
        after
            .in_state(ItemState::Note)
            .any(|item| item.found.as_deref() == Some("9.00 over a minute"))
    );
}

#[test]
fn the_document_has_a_heading_for_every_item() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/REDUCING-NOISE.md");
    let text = std::fs::read_to_string(document).unwrap();
    let place = Place::new();
    for item in look(&Machine::clean(place.at("machine")), When::Before).items {
        assert!(
            text.lines()
                .any(|line| line == format!("### {}", item.name)),
            "no heading {}",
            item.name
        );
    }
}
