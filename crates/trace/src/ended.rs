//! Describes, from a trace's head, why its recording ended.

use super::Head;

/// Returns why the recording ended before the program did; `None` if it did not, or if that is
/// unknown.
pub fn ended_early(head: &Head) -> Option<String> {
    let why = match head.get("end")? {
        "exit" => return None,
        "max-bytes" => "--max-bytes was reached",
        "duration" => "--duration was over",
        "no-space" => "the disk is full",
        "quota" => "the disk quota is used up",
        "file-size-limit" => "files may not get larger (ulimit -f)",
        "no-permission" => "the program gave up the right to write its file",
        "file-gone" => "its file is out of reach (removed, or the program changed its root)",
        "no-descriptor" => "the program has no file descriptor left",
        "no-memory" => "the program has no address space left",
        _ => "its file cannot be written to",
    };
    Some(format!("recording ended early: {why}"))
}

/// Returns how the program or its recording ended, if not normally.
pub fn ended(head: &Head) -> Option<String> {
    let signal = head.text("end.signal");
    let signal = signal.map(|signal| format!("the program was killed by {signal}"));
    match (ended_early(head), signal) {
        (Some(early), Some(signal)) => Some(format!("{early}; {signal}")),
        // A head without the program's start was made from another tool's trace, which does not
        // record the end either.
        (None, None) if head.get("started-unix-ns").is_some() && head.get("end").is_none() => Some(
            "the program ended without its destructors (killed, _exit, exec), or goes on; what it did until then is here".into(),
        ),
        (early, signal) => early.or(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_a_recording_is_said_and_a_regular_end_is_none() {
        let of = |pairs: &[(&str, &str)]| {
            let mut head = Head::default();
            pairs.iter().for_each(|(key, value)| head.set(key, value));
            (ended_early(&head), ended(&head))
        };
        let full = Some("recording ended early: the disk is full".to_owned());
        assert_eq!(of(&[("end", "no-space")]), (full.clone(), full));
        assert_eq!(
            [of(&[("end", "exit")]), of(&[])],
            [(None, None), (None, None)]
        );
        let (early, reason) = of(&[("started-unix-ns", "7")]);
        assert!(early.is_none() && reason.unwrap().contains("ended without its destructors"));
        let killed = Some("the program was killed by SIGSEGV".to_owned());
        assert_eq!(
            of(&[("started-unix-ns", "7"), ("end.signal", "SIGSEGV")]),
            (None, killed)
        );
    }
}
