//! Kernel threads that scan memory in the background.

use super::item::{ItemState, ItemSubject, PreflightItem, warning_if};
use super::processor::count;
use crate::observe::root::Root;

const KSM: ItemSubject = ItemSubject {
    name: "ksm",
    means: "a kernel thread compares pages and merges equal ones: CPU time, and a fault at the next write to each merged page",
    change: "echo 0 | sudo tee /sys/kernel/mm/ksm/run",
};

const DAMON: ItemSubject = ItemSubject {
    name: "damon",
    means: "a kernel thread samples which pages are used: CPU time, and where it reclaims, resident memory that shrinks on its own",
    change: "echo off | sudo tee /sys/kernel/mm/damon/admin/kdamonds/*/state; echo N | sudo tee /sys/module/damon_*/parameters/enabled",
};

const NUMA: ItemSubject = ItemSubject {
    name: "numa-balancing",
    means: "the kernel unmaps pages to see which CPU touches them, and moves them between nodes: faults and stalls at moments of its own",
    change: "echo 0 | sudo tee /proc/sys/kernel/numa_balancing",
};

pub(super) fn items(root: &Root) -> Vec<PreflightItem> {
    vec![ksm(root), damon(root), numa(root)]
}

fn ksm(root: &Root) -> PreflightItem {
    KSM.judged(
        root.number::<u8>("sys/kernel/mm/ksm/run"),
        |run| match run {
            // 2 means: unmerge the merged pages, then stop.
            1 => ("on".into(), ItemState::Warning),
            _ => ("off".into(), ItemState::Fine),
        },
    )
}

/// Threads that the administrator has set up, and modules with a thread of their own.
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
    let told = !all.is_empty() || root.text(&format!("{ADMIN}/nr_kdamonds")).is_some();
    DAMON.judged(told.then_some(all), |all| {
        let on: Vec<String> = all
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| name)
            .collect();
        if on.is_empty() {
            ("off".into(), ItemState::Fine)
        } else {
            (format!("on: {}", on.join(", ")), ItemState::Warning)
        }
    })
}

fn numa(root: &Root) -> PreflightItem {
    let nodes = root
        .text("sys/devices/system/node/online")
        .and_then(|list| count(&list));
    NUMA.judged(
        root.number::<u8>("proc/sys/kernel/numa_balancing"),
        |mode| {
            let words = if mode == 0 { "off" } else { "on" };
            let told =
                nodes.map(|nodes| format!(", {nodes} node{}", if nodes == 1 { "" } else { "s" }));
            // With one node there is no other node to move a page to.
            (
                format!("{words}{}", told.unwrap_or_default()),
                warning_if(mode != 0 && nodes != Some(1)),
            )
        },
    )
}
