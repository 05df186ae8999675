//! The headings of the tables of cases.

use super::{factor, text, user_command};
use crate::analyse::Table;

/// Returns a table's heading: `larson, 2 threads (oversubscribed)`, or the user's command.
pub fn heading_of(table: &Table) -> String {
    let mark = if table.oversubscribed {
        " (oversubscribed)"
    } else {
        ""
    };
    let heading = match &table.command {
        Some(tried) if tried.real => {
            format!("{}: {}", table.workload, user_command::heading(tried))
        }
        Some(tried) => user_command::heading(tried),
        None => {
            let threads = text::count(table.threads, "thread");
            format!("{}, {threads}{mark}", table.workload)
        }
    };
    heading + &factor::words(table)
}
