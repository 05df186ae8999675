//! `trace dump`: an event as a line, as text or as JSON.

use heapmark_core::report::text::plain;
use heapmark_trace::{Event, Token};
use serde_json::{Map, Value, json};

/// Counts allocations, since a trace does not store the name of a new object.
#[derive(Default)]
pub struct Dump {
    events: u64,
    allocations: Vec<u64>,
}

impl Dump {
    /// An event as a line of text: `12 t0 realloc object=t0#3 size=48 -> t0#4`.
    pub fn line(&mut self, thread: u32, event: &Event) -> String {
        let mut line = String::new();
        for (key, value) in self.next(thread, event) {
            let value = value.as_str().map_or_else(|| value.to_string(), plain);
            line += &match key.as_str() {
                "event" => value,
                "thread" => format!(" t{value}"),
                "what" => format!(" {value}"),
                "new" => format!(" -> {value}"),
                _ => format!(" {key}={value}"),
            };
        }
        line + "\n"
    }

    /// An event as a JSON object on a line.
    pub fn json(&mut self, thread: u32, event: &Event) -> String {
        format!("{}\n", Value::Object(self.next(thread, event)))
    }

    /// The operation, its fields in order, and the object that it creates.
    fn next(&mut self, thread: u32, event: &Event) -> Map<String, Value> {
        let (what, fields) = told(event);
        let mut line = Map::new();
        let mut add = |key: &str, value: Value| line.insert(key.to_owned(), value);
        add("event", self.events.into());
        add("thread", thread.into());
        add("what", what.into());
        if let Some(token) = event.names() {
            add("object", name(token).into());
        }
        for (key, value) in fields.as_object().into_iter().flatten() {
            add(key, value.clone());
        }
        if event.begins().is_some() {
            let place = thread as usize;
            if place >= self.allocations.len() {
                self.allocations.resize(place + 1, 0);
            }
            let index = self.allocations[place];
            self.allocations[place] += 1;
            add("new", name(Token { thread, index }).into());
        }
        self.events += 1;
        line
    }
}

/// An object's name: `t3#17` is the eighteenth allocation of thread 3.
fn name(token: Token) -> String {
    format!("t{}#{}", token.thread, token.index)
}

/// The operation and its fields.
fn told(event: &Event) -> (&'static str, Value) {
    match *event {
        Event::Malloc { size, operator } => {
            let what = if operator { "operator new" } else { "malloc" };
            (what, json!({"size": size}))
        }
        Event::Calloc { count, size } => ("calloc", json!({"count": count, "size": size})),
        Event::Realloc { size, .. } => ("realloc", json!({"size": size})),
        Event::ReallocFree { .. } => ("realloc", json!({"size": 0, "freed": true})),
        Event::Aligned {
            align,
            size,
            variant,
        } => (variant.word(), json!({"align": align, "size": size})),
        Event::Free { .. } => ("free", Value::Null),
        Event::FreeSized { size, .. } => ("free_sized", json!({"size": size})),
        Event::FreeAlignedSized { align, size, .. } => {
            ("free_aligned_sized", json!({"align": align, "size": size}))
        }
        Event::FreeAligned { align, .. } => ("free_aligned", json!({"align": align})),
        Event::FreeNull => ("free", json!({"object": null})),
        Event::UsableSize { .. } => ("malloc_usable_size", Value::Null),
        Event::Failed { call, size } => ("failed", json!({"call": call.word(), "size": size})),
        Event::ThreadStart { child } => ("thread_start", json!({"child": child})),
        Event::ThreadExit => ("thread_exit", Value::Null),
        Event::Fork { pid } => ("fork", json!({"pid": pid})),
        Event::Clock { ns } => ("clock", json!({"ns": ns})),
        Event::Touch {
            resident_pages,
            extent_pages,
            pages,
            ..
        } => (
            "touch",
            json!({"resident_pages": resident_pages, "extent_pages": extent_pages, "pages": pages}),
        ),
        Event::Mark { ref text } => ("mark", json!({"text": plain(text)})),
        Event::Main => ("main", Value::Null),
        Event::Mallopt { parameter, value } => {
            ("mallopt", json!({"parameter": parameter, "value": value}))
        }
        Event::Trim { pad } => ("malloc_trim", json!({"pad": pad})),
        Event::Info => ("mallinfo", Value::Null),
        Event::Inherit { objects } => ("inherit", json!({"objects": objects})),
        Event::Dropped { count } => ("dropped", json!({"count": count})),
        Event::End { peak_rss_bytes } => ("end", json!({"peak_rss_bytes": peak_rss_bytes})),
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
