//! Kernel threads that scan memory in the background.

use super::Root;
use super::item::{PreflightItem, item, switch, warning_if};
use super::processor::count;

pub fn items(root: &Root) -> Vec<PreflightItem> {
    vec![
        item(
            "ksm",
            "a kernel thread compares pages and merges equal ones: CPU time, and a fault at the next write to each merged page",
            "echo 0 | sudo tee /sys/kernel/mm/ksm/run",
            root.number("sys/kernel/mm/ksm/run"),
            // The value 2 unmerges the merged pages, then stops.
            |run: u8| (switch(run == 1), warning_if(run == 1)),
        ),
        damon(root),
        numa(root),
    ]
}

/// Reports threads that the administrator has set up, and modules with a thread of their own.
fn damon(root: &Root) -> PreflightItem {
    const ADMIN: &str = "sys/kernel/mm/damon/admin/kdamonds";
    let threads = root.names(ADMIN, "").into_iter().filter_map(|thread| {
        let state = root.text(&format!("{ADMIN}/{thread}/state"))?;
        Some((format!("kdamond {thread}"), state == "on"))
    });
    let modules = root
        .names("sys/module", "damon_")
        .into_iter()
        .filter_map(|module| {
            let enabled = root.text(&format!("sys/module/{module}/parameters/enabled"))?;
            Some((module, enabled == "Y"))
        });
    let all: Vec<(String, bool)> = threads.chain(modules).collect();
    let is_reported = !all.is_empty() || root.text(&format!("{ADMIN}/nr_kdamonds")).is_some();
    item(
        "damon",
        "a kernel thread samples which pages are used: CPU time, and where it reclaims, resident memory that shrinks on its own",
        "echo off | sudo tee /sys/kernel/mm/damon/admin/kdamonds/*/state; echo N | sudo tee /sys/module/damon_*/parameters/enabled",
        is_reported.then_some(all),
        |all| {
            let on: Vec<String> = all
                .into_iter()
                .filter(|(_, on)| *on)
                .map(|(name, _)| name)
                .collect();
            let words = match on[..] {
                [] => "off".into(),
                _ => format!("on: {}", on.join(", ")),
            };
            (words, warning_if(!on.is_empty()))
        },
    )
}

fn numa(root: &Root) -> PreflightItem {
    let nodes = root
        .text("sys/devices/system/node/online")
        .and_then(|list| count(&list));
    item(
        "numa-balancing",
        "the kernel unmaps pages to see which CPU touches them, and moves them between nodes: faults and stalls at moments of its own",
        "echo 0 | sudo tee /proc/sys/kernel/numa_balancing",
        root.number("proc/sys/kernel/numa_balancing"),
        |mode: u8| {
            let suffix = match nodes {
                None => String::new(),
                Some(1) => ", 1 node".into(),
                Some(nodes) => format!(", {nodes} nodes"),
            };
            // With one node there is no other node to move a page to.
            (
                format!("{}{suffix}", switch(mode != 0)),
                warning_if(mode != 0 && nodes != Some(1)),
            )
        },
    )
}
