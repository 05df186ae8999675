//! One event as one line, as text or as JSON.

use crate::report::text::plain;
use heapmark_trace::{Event, Token};
use serde_json::{Map, Value};

/// Counts allocations, since a trace does not store the name of a new object.
#[derive(Default)]
pub struct Dump {
    events: u64,
    allocations: Vec<u64>,
}

/// The operation, its fields in order, and the object that it creates.
struct EventLine {
    number: u64,
    thread: u32,
    what: &'static str,
    fields: Vec<(&'static str, Value)>,
    begins: Option<Token>,
}

impl Dump {
    /// `12 t0 realloc object=t0#3 size=48 -> t0#4`
    pub fn line(&mut self, thread: u32, event: &Event) -> String {
        let EventLine {
            number,
            thread,
            what,
            fields,
            begins,
        } = self.next(thread, event);
        let mut line = format!("{number} t{thread} {what}");
        for (name, value) in fields {
            let value = value.as_str().map_or_else(|| value.to_string(), plain);
            line.push_str(&format!(" {name}={value}"));
        }
        if let Some(token) = begins {
            line.push_str(&format!(" -> {}", name(token)));
        }
        line.push('\n');
        line
    }

    /// The same as an object of JSON.
    pub fn json(&mut self, thread: u32, event: &Event) -> String {
        let EventLine {
            number,
            thread,
            what,
            fields,
            begins,
        } = self.next(thread, event);
        let head = [
            ("event", number.into()),
            ("thread", thread.into()),
            ("what", what.into()),
        ];
        let new = begins.map(|token| ("new", name(token).into()));
        let all = head
            .into_iter()
            .chain(fields)
            .chain(new)
            .map(|(key, value): (&str, Value)| (key.to_owned(), value));
        format!("{}\n", Value::Object(Map::from_iter(all)))
    }

    fn next(&mut self, thread: u32, event: &Event) -> EventLine {
        let begins = event.begins().map(|_| {
            let place = thread as usize;
            if place >= self.allocations.len() {
                self.allocations.resize(place + 1, 0);
            }
            self.allocations[place] += 1;
            Token {
                thread,
                index: self.allocations[place] - 1,
            }
        });
        let (what, own) = told(event);
        let object = event.names().map(|token| ("object", name(token).into()));
        let line = EventLine {
            number: self.events,
            thread,
            what,
            fields: object.into_iter().chain(own).collect(),
            begins,
        };
        self.events += 1;
        line
    }
}

/// `t3#17`: the eighteenth allocation of thread 3.
fn name(token: Token) -> String {
    format!("t{}#{}", token.thread, token.index)
}

fn told(event: &Event) -> (&'static str, Vec<(&'static str, Value)>) {
    match *event {
        Event::Malloc {
            size,
            operator: false,
        } => ("malloc", vec![("size", size.into())]),
        Event::Malloc {
            size,
            operator: true,
        } => ("operator new", vec![("size", size.into())]),
        Event::Calloc { count, size } => (
            "calloc",
            vec![("count", count.into()), ("size", size.into())],
        ),
        Event::Realloc { size, .. } => ("realloc", vec![("size", size.into())]),
        Event::ReallocFree { .. } => ("realloc", vec![("size", 0.into()), ("freed", true.into())]),
        Event::Aligned {
            align,
            size,
            variant,
        } => (
            variant.word(),
            vec![("align", align.into()), ("size", size.into())],
        ),
        Event::Free { .. } => ("free", vec![]),
        Event::FreeSized { size, .. } => ("free_sized", vec![("size", size.into())]),
        Event::FreeAlignedSized { align, size, .. } => (
            "free_aligned_sized",
            vec![("align", align.into()), ("size", size.into())],
        ),
        Event::FreeAligned { align, .. } => ("free_aligned", vec![("align", align.into())]),
        Event::FreeNull => ("free", vec![("object", Value::Null)]),
        Event::UsableSize { .. } => ("malloc_usable_size", vec![]),
        Event::Failed { call, size } => (
            "failed",
            vec![("call", call.word().into()), ("size", size.into())],
        ),
        Event::ThreadStart { child } => ("thread_start", vec![("child", child.into())]),
        Event::ThreadExit => ("thread_exit", vec![]),
        Event::Fork { pid } => ("fork", vec![("pid", pid.into())]),
        Event::Clock { ns } => ("clock", vec![("ns", ns.into())]),
        Event::Touch {
            resident_pages,
            pages,
            ..
        } => (
            "touch",
            vec![
                ("resident_pages", resident_pages.into()),
                ("pages", pages.into()),
            ],
        ),
        Event::Mark { ref text } => ("mark", vec![("text", plain(text).into())]),
        Event::Inherit { objects } => ("inherit", vec![("objects", objects.into())]),
        Event::Dropped { count } => ("dropped", vec![("count", count.into())]),
        Event::End { peak_rss_bytes } => ("end", vec![("peak_rss_bytes", peak_rss_bytes.into())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_ends_and_what_begins() {
        let (mut people, mut programs) = (Dump::default(), Dump::default());
        let malloc = Event::Malloc {
            size: 24,
            operator: false,
        };
        assert_eq!(people.line(2, &malloc), "0 t2 malloc size=24 -> t2#0\n");
        programs.json(2, &malloc);
        let realloc = Event::Realloc {
            token: Token {
                thread: 2,
                index: 0,
            },
            size: 48,
        };
        assert_eq!(
            people.line(0, &realloc),
            "1 t0 realloc object=t2#0 size=48 -> t0#0\n"
        );
        let json =
            r#"{"event":1,"thread":0,"what":"realloc","object":"t2#0","size":48,"new":"t0#0"}"#;
        assert_eq!(programs.json(0, &realloc).trim_end(), json);
        let mark = Event::Mark {
            text: "a\u{1b}[31m\nb".into(),
        };
        assert_eq!(people.line(0, &mark), "2 t0 mark text=a[31m b\n");
    }
}
