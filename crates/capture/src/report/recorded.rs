//! The report of `heapmark record` when a program has ended.

use heapmark_core::metric::Unit;
use heapmark_core::report::document::Block;
use heapmark_core::report::sheet::SheetOf;

/// A process that was recorded.
#[derive(Clone, Debug)]
pub struct RecordedProcess {
    /// The process's command.
    pub program: String,
    /// The process's ID.
    pub pid: String,
    /// The path of the process's trace.
    pub trace: String,
    /// The number of events of the process itself.
    pub events: u64,
    /// The number of threads in the process.
    pub threads: u64,
    /// Bytes per event in the capture.
    pub bytes_per_event: f64,
    /// The cost of recording an event on this machine, in nanoseconds.
    pub ns_per_event: f64,
    /// The peak of live bytes.
    pub peak_live_bytes: u64,
    /// Whether the process is the recorded command itself.
    pub main: bool,
    /// Problems with the process's recording.
    pub remarks: Vec<String>,
}

/// A shell script can start hundreds of processes: this many lines show the ones that matter.
const MOST_ROWS: usize = 12;

/// The report: a table, the main process first and then those with the most events; how many processes are left out, and
/// with how many events; problems; the estimated cost.
pub fn recorded(processes: &mut [RecordedProcess], left_out: (usize, u64)) -> Vec<Block> {
    processes.sort_by_key(|process| (!process.main, std::cmp::Reverse(process.events)));
    let (shown, rest) = processes.split_at(processes.len().min(MOST_ROWS));
    let mut table = SheetOf::new("", shown);
    table.add("program", |process| &process.program);
    table.add("pid", |process| &process.pid);
    table.add("events", |process| process.events);
    table.add("threads", |process| process.threads);
    table.add("B/event", |process| process.bytes_per_event);
    table.add("~ns/event", |process| process.ns_per_event);
    table.add("~cost", |process| {
        (process.ns_per_event * process.events as f64, Unit::Ns)
    });
    table.add("peak live", |process| {
        (process.peak_live_bytes as f64, Unit::Bytes)
    });
    table.add("trace", |process| &process.trace);
    let mut remarks = Vec::new();
    if !rest.is_empty() {
        let events: u64 = rest.iter().map(|process| process.events).sum();
        remarks.push(format!(
            "and {} processes more, with {events} events; their traces lie there, too",
            rest.len()
        ));
    }
    match left_out {
        (0, _) => {}
        (1, events) => remarks.push(format!(
            "another process of the program, with {events} events, is in no trace: --children makes it one"
        )),
        (others, events) => remarks.push(format!(
            "{others} other processes of the program, with {events} events, are in no trace: --children makes them some"
        )),
    }
    for process in &*processes {
        let remark = |problem| format!("{} {}: {problem}", process.program, process.pid);
        remarks.extend(process.remarks.iter().map(remark));
    }
    remarks.push(
        "~ is an estimate of CPU time: the cost of recording one call in a short loop on this machine, and that times the events"
            .into(),
    );
    table.sheet.remark(remarks);
    vec![Block::Sheet(table.sheet)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_core::report::Screen;
    use heapmark_core::report::render::terminal;

    fn process(pid: &str, events: u64, main: bool) -> RecordedProcess {
        RecordedProcess {
            program: "program".into(),
            pid: pid.into(),
            trace: format!("{pid}.trace"),
            events,
            threads: 2,
            bytes_per_event: 4.0,
            ns_per_event: 10.0,
            peak_live_bytes: 3 << 20,
            main,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn the_program_comes_first_and_what_is_small_is_summed_up() {
        let mut all: Vec<_> = (0..20)
            .map(|n| process(&format!("10{n}"), 1000 + n, n == 3))
            .collect();
        all[5]
            .remarks
            .push("recording ended\u{1b}[31m early".into());
        let screen = Screen {
            width: 100,
            colour: false,
        };
        let text = terminal(&recorded(&mut all, (7, 123)), screen);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].contains("103.trace")
                && lines[1].contains("1003")
                && lines[1].contains("10.0 us"),
            "{text}"
        );
        assert!(lines[2].contains("1019.trace"), "{text}");
        assert_eq!(
            lines[13],
            "and 8 processes more, with 8033 events; their traces lie there, too"
        );
        assert_eq!(
            lines[14],
            "7 other processes of the program, with 123 events, are in no trace: --children makes them some"
        );
        assert_eq!(lines[15], "program 105: recording ended[31m early");
    }
}
