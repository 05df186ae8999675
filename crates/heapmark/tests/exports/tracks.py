"""Reads a trace by Perfetto's own schema and says, as JSON, which counter tracks it has; fails if a field is not in the schema.

    tracks.py FILE
"""

import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


def unknown(message):
    own = len(UnknownFieldSet(message))
    children = [value for field, value in message.ListFields() if field.type == field.TYPE_MESSAGE]
    lists = [child if hasattr(child, "append") else [child] for child in children]
    return own + sum(unknown(child) for all in lists for child in all)


trace = Trace.FromString(open(sys.argv[1], "rb").read())
assert unknown(trace) == 0, "fields that the schema does not have"
processes, tracks = {}, {}
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        if track.HasField("process"):
            processes[track.uuid] = track.process.process_name
        else:
            told = {"process": processes[track.parent_uuid], "name": track.name, "unit": track.counter.Unit.Name(track.counter.unit)}
            tracks[track.uuid] = told | {"points": []}
    else:
        event = packet.track_event
        assert event.Type.Name(event.type) == "TYPE_COUNTER"
        tracks[event.track_uuid]["points"].append([packet.timestamp, event.counter_value])
print(json.dumps(list(tracks.values())))
