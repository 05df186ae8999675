//! One event as one line, as text or as JSON.

use crate::report::text::plain;
use heapmark_trace::{Event, Token};
use serde_json::{Map, Value};

/// A key and its value.
type Field = (&'static str, Value);

/// Counts allocations, since a trace does not store the name of a new object.
#[derive(Default)]
pub struct Dump {
    events: u64,
    allocations: Vec<u64>,
}

impl Dump {
    /// `12 t0 realloc object=t0#3 size=48 -> t0#4`
    pub fn line(&mut self, thread: u32, event: &Event) -> String {
        let mut line = String::new();
        for (key, value) in self.next(thread, event) {
            let value = value.as_str().map_or_else(|| value.to_string(), plain);
            line += &match key {
                "event" => value,
                "thread" => format!(" t{value}"),
                "what" => format!(" {value}"),
                "new" => format!(" -> {value}"),
                _ => format!(" {key}={value}"),
            };
        }
        line + "\n"
    }

    /// The same as an object of JSON.
    pub fn json(&mut self, thread: u32, event: &Event) -> String {
        let fields: Map<String, Value> = self
            .next(thread, event)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        format!("{}\n", Value::Object(fields))
    }

    /// The operation, its fields in order, and the object that it creates.
    fn next(&mut self, thread: u32, event: &Event) -> Vec<Field> {
        let (what, own) = told(event);
        let mut line: Vec<Field> = vec![
            ("event", self.events.into()),
            ("thread", thread.into()),
            ("what", what.into()),
        ];
        if let Some(token) = event.names() {
            line.push(("object", name(token).into()));
        }
        line.extend(own);
        if event.begins().is_some() {
            let place = thread as usize;
            if place >= self.allocations.len() {
                self.allocations.resize(place + 1, 0);
            }
            let index = self.allocations[place];
            self.allocations[place] += 1;
            line.push(("new", name(Token { thread, index }).into()));
        }
        self.events += 1;
        line
    }
}

/// `t3#17`: the eighteenth allocation of thread 3.
fn name(token: Token) -> String {
    format!("t{}#{}", token.thread, token.index)
}

/// The operation and its fields.
fn told(event: &Event) -> (&'static str, Vec<Field>) {
    match *event {
        Event::Malloc { size, operator } => {
            let what = if operator { "operator new" } else { "malloc" };
            (what, vec![("size", size.into())])
        }
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
