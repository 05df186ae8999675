//! Tables of timed processes, as they are in the JSON document.

use super::table::{Table, TableRow};
use serde::Serializer;
use serde_json::{Value, json};

/// Serializes tables of timed processes, for serde.
pub fn tables<S: Serializer>(tables: &[Table], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(tables.iter().map(of_table))
}

fn of_table(table: &Table) -> Value {
    let document = json!({
        "workload": table.workload,
        "baseline": table.baseline,
        "threads": table.threads,
        "oversubscribed": table.oversubscribed,
        "counts_purge": table.counts_purge,
        "whole_process": table.whole_process,
        "paced": table.paced,
        "took_turns": table.took_turns.then_some(true),
        "factor": table.factor,
        "command": table.command,
        "caution": table.caution,
        "aa_copy": table.aa_copy,
        "aa_copy_differs": table.aa_copy_differs,
        "won_at_most": table.won_at_most,
        "floor_is_high": table.floor_is_high,
        "rows": table.rows.iter().map(of_row).collect::<Vec<Value>>(),
    });
    without(&["took_turns", "factor"], document)
}

fn of_row(row: &TableRow) -> Value {
    let state = match (&row.failed, row.cells.split_first()) {
        (Some(failed), _) => json!({
            "kind": "failed",
            "counts": failed.counts,
            "of": failed.of,
            "first": failed.first,
        }),
        (None, None) => json!({ "kind": "missing", "unusable": row.unusable }),
        (None, Some((time, cells))) => json!({
            "kind": "measured",
            "samples": row.samples,
            "blocks": row.blocks,
            "unusable": row.unusable,
            "stalled": row.stalled,
            "time": time,
            "cells": cells,
            "factor": row.factor,
            "modes": row.modes,
            "floor_share": row.floor_share,
            "ratio_is_bound": row.ratio_is_bound,
            "net_ns_per_op": row.net_ns_per_op,
            "parts": row.parts,
            "figures": row.figures,
        }),
    };
    json!({
        "allocator": row.allocator,
        "tier": row.tier,
        "role": row.role,
        "left_to_libc": row.left_to_libc,
        "findings": row.findings,
        "purge": row.purge,
        "purged_as": row.purged_as,
        "served": row.served,
        "left_behind": row.left_behind,
        "sources": row.sources,
        "parameters": row.parameters,
        "state": without(&["factor"], state),
    })
}

/// Removes from a document those of these keys that have no value.
fn without(keys: &[&str], mut document: Value) -> Value {
    if let Some(map) = document.as_object_mut() {
        map.retain(|key, value| !(value.is_null() && keys.contains(&key.as_str())));
    }
    document
}
