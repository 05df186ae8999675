//! The text that Android's memory_replay reads, as its malloc debug writes it: `THREAD: malloc ADDRESS
//! BYTES`; newer versions add the nanoseconds at which the call began and ended.

use super::*;
use std::collections::HashMap;

pub const NAME: &str = "Android memory_replay";

/// Returns whether a file that begins like this may be of this format.
pub fn is(start: &[u8]) -> bool {
    let mut words = first_line(start).split_whitespace();
    let thread = words.next().and_then(|word| word.strip_suffix(':'));
    thread.is_some_and(|word| word.parse::<u32>().is_ok()) && words.next().is_some()
}

#[derive(Default)]
pub struct MemoryReplay {
    /// Live threads by their numbers in the text, which are reused.
    threads: HashMap<u32, u32>,
    next: u32,
    began_ns: Option<u64>,
    now_ns: u64,
}

impl MemoryReplay {
    fn thread(&mut self, number: u32, to: &mut Import) -> Result<u32> {
        if let Some(thread) = self.threads.get(&number) {
            return Ok(*thread);
        }
        let thread = self.next;
        self.next += 1;
        self.threads.insert(number, thread);
        if thread > 0 {
            // The text does not record which thread started this one.
            to.write(0, &Event::ThreadStart { child: thread })?;
        }
        Ok(thread)
    }
}

impl Format for MemoryReplay {
    fn line(&mut self, line: &str, to: &mut Import) -> Result<()> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            return Ok(());
        }
        let number = words[0]
            .strip_suffix(':')
            .and_then(|word| word.parse().ok());
        let (Some(number), Some(function)) = (number, words.get(1).copied()) else {
            return damaged("no `THREAD: FUNCTION ADDRESS`");
        };
        let fields = match function {
            "malloc" => 4,
            "calloc" | "memalign" | "realloc" => 5,
            "free" | "thread_done" => 3,
            _ => {
                return damaged(format!(
                    "`{function}`: it has malloc, calloc, memalign, realloc, free, thread_done"
                ));
            }
        };
        let thread = self.thread(number, to)?;
        // The start and the end of a call; for the end of a thread, only its time.
        let began = match (&words[fields.min(words.len())..], function) {
            ([began, _], _) | ([began], "thread_done") => Some(*began),
            _ => None,
        };
        if let Some(began) = began {
            let ns = decimal(began)?;
            let since = ns.saturating_sub(*self.began_ns.get_or_insert(ns));
            if since > self.now_ns {
                self.now_ns = since;
                to.write(thread, &Event::Clock { ns: since })?;
            }
            words.truncate(fields);
        }
        if words.len() != fields {
            return damaged(format!(
                "`{function}` with other words behind it than it has"
            ));
        }
        let address = hexadecimal(words[2])?;
        let begin = |to: &mut Import, call, event: Event| {
            if address != 0 {
                return to.begin(thread, address, event);
            }
            let size = event.begins().unwrap_or(0);
            to.write(thread, &Event::Failed { call, size })
        };
        match function {
            "malloc" => begin(to, Call::Malloc, moved(None, decimal(words[3])?)),
            "calloc" => {
                let (count, size) = (decimal(words[3])?, decimal(words[4])?);
                begin(to, Call::Calloc, Event::Calloc { count, size })
            }
            "memalign" => {
                let aligned = Event::Aligned {
                    align: decimal(words[3])?,
                    size: decimal(words[4])?,
                    variant: crate::Variant::Memalign,
                };
                begin(to, Call::Aligned, aligned)
            }
            "realloc" => {
                let old = hexadecimal(words[3])?;
                to.realloc(thread, old, address, decimal(words[4])?)
            }
            "free" => to.free(thread, address),
            _ => {
                self.threads.remove(&number);
                to.write(thread, &Event::ThreadExit)
            }
        }
    }
}
