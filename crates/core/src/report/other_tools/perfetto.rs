//! Memory over time as counter tracks, in Perfetto's own format: a stream of protobuf messages (`TracePacket`, `TrackDescriptor`,
//! `TrackEvent`, `CounterDescriptor` of its schema). Each process of a series appears as a process in Perfetto.

use crate::plan::row_name;
use crate::store::{Point, Series};

// Numbers of fields and values in Perfetto's schema.
const PACKET: u32 = 1;
const PACKET_TIMESTAMP: u32 = 8;
const PACKET_SEQUENCE: u32 = 10;
const PACKET_EVENT: u32 = 11;
const PACKET_TRACK: u32 = 60;
const TRACK_UUID: u32 = 1;
const TRACK_NAME: u32 = 2;
const TRACK_PROCESS: u32 = 3;
const TRACK_PARENT: u32 = 5;
const TRACK_COUNTER: u32 = 8;
const PROCESS_PID: u32 = 1;
const PROCESS_NAME: u32 = 6;
const COUNTER_UNIT: u32 = 3;
const UNIT_SIZE_BYTES: u64 = 3;
const EVENT_TYPE: u32 = 9;
const EVENT_TRACK: u32 = 11;
const EVENT_VALUE: u32 = 30;
const TYPE_COUNTER: u64 = 4;

/// A counter's name, and its value at a point.
type Counter = (&'static str, fn(&Point) -> Option<u64>);

const COUNTERS: [Counter; 3] = [
    ("resident set", |point| Some(point.rss_bytes)),
    ("requested and not freed", |point| {
        point.requested_live_bytes
    }),
    ("heap and mappings", |point| point.total_dynamic_bytes),
];

/// The content of the file. Times are in ns since the start of each process, or since its first sample.
pub fn perfetto(all: &[Series]) -> Vec<u8> {
    let mut trace = Message::default();
    for (place, series) in all.iter().enumerate() {
        let pid = place as u64 + 1;
        let parent = pid << 8;
        let name = row_name(&series.workload, series.threads, &series.allocator);
        let process = Message::default()
            .number(PROCESS_PID, pid)
            .bytes(PROCESS_NAME, name.as_bytes());
        let track = Message::default()
            .number(TRACK_UUID, parent)
            .bytes(TRACK_PROCESS, &process.0);
        trace = trace.packet(Message::default().bytes(PACKET_TRACK, &track.0));
        for (number, (name, value)) in COUNTERS.into_iter().enumerate() {
            if !series.points.iter().any(|point| value(point).is_some()) {
                continue;
            }
            let uuid = parent + number as u64 + 1;
            let counter = Message::default().number(COUNTER_UNIT, UNIT_SIZE_BYTES);
            let track = Message::default()
                .number(TRACK_UUID, uuid)
                .bytes(TRACK_NAME, name.as_bytes())
                .number(TRACK_PARENT, parent)
                .bytes(TRACK_COUNTER, &counter.0);
            trace = trace.packet(Message::default().bytes(PACKET_TRACK, &track.0));
            for point in &series.points {
                let Some(bytes) = value(point) else { continue };
                let event = Message::default()
                    .number(EVENT_TYPE, TYPE_COUNTER)
                    .number(EVENT_TRACK, uuid)
                    .number(EVENT_VALUE, bytes);
                let packet = Message::default()
                    .number(PACKET_TIMESTAMP, point.time_ns)
                    .bytes(PACKET_EVENT, &event.0);
                trace = trace.packet(packet);
            }
        }
    }
    trace.0
}

/// A protobuf message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Adds a packet to a trace, as part of its only sequence.
    fn packet(self, packet: Message) -> Message {
        let packet = packet.number(PACKET_SEQUENCE, 1);
        self.bytes(PACKET, &packet.0)
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_more_than_seven_bits_go_on_in_further_bytes() {
        let message = Message::default().number(1, 300).bytes(60, b"ab");
        assert_eq!(message.0, [0x08, 0xac, 0x02, 0xe2, 0x03, 0x02, b'a', b'b']);
    }
}
