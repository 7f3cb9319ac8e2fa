"""The messages of OTLP, declared once, as protobuf classes built at run time that parse more or less of a request.

The generated classes of OTLP declare texts as ``string``: a single invalid UTF-8 byte anywhere makes the whole request
unreadable. On the wire ``string`` and ``bytes`` are the same, so texts are declared as bytes here, and each is decoded
leniently by itself. A view leaves some fields as bytes, to be parsed later or never, and others out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

View: TypeAlias = Literal["envelope", "complete", "whole", "opaque", "flat"]
"""Which fields the classes parse:

- ``envelope``: down to resources, scopes and spans, which stay bytes. A request for log records has the same layout.
- ``complete``: all of a request for spans, to find damage.
- ``whole``: what is read of requests. Refuses values nested deeper than protobuf's limit of 100 messages.
- ``opaque``: the same, each value of an attribute as bytes, so that nesting is bounded here and not by protobuf.
- ``flat``: the same, each attribute, resource and scope as bytes, so that most take no message.
"""

_SCALARS: Final = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in ("bytes", "bool", "double", "int32", "int64", "fixed32", "fixed64")
}
_ONE: Final = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
_MANY: Final = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
_MESSAGE: Final = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE

# Name of a message → "name:type=number", "*" marks a repeated field; other types are messages of this table.
_IDS: Final = "trace_id:bytes=1 span_id:bytes=2 trace_state:bytes=3 parent_span_id:bytes=4"
_LOG_IDS: Final = "trace_id:bytes=9 span_id:bytes=10"
_MESSAGES: Final = {
    "Request": "*resource_spans:ResourceSpans=1",
    "ResourceSpans": "resource:Resource=1 *scope_spans:ScopeSpans=2 schema_url:bytes=3",
    "Resource": "*attributes:KeyValue=1",
    "ScopeSpans": "scope:Scope=1 *spans:Span=2 schema_url:bytes=3",
    "Scope": "name:bytes=1 version:bytes=2 *attributes:KeyValue=3",
    "Ids": _IDS,  # the first fields of a span, for a decision on it
    "Span": f"{_IDS} name:bytes=5 kind:int32=6 start:fixed64=7 end:fixed64=8 *attributes:KeyValue=9 "
    "dropped_attributes:int32=10 *events:Event=11 *links:Link=13 status:Status=15 flags:fixed32=16",
    "Event": "time:fixed64=1 name:bytes=2 *attributes:KeyValue=3",
    "Link": "trace_id:bytes=1 span_id:bytes=2 trace_state:bytes=3 *attributes:KeyValue=4",
    "Status": "message:bytes=2 code:int32=3",
    "LogRequest": "*resource_logs:ResourceLogs=1",
    "ResourceLogs": "*scope_logs:ScopeLogs=2",
    "ScopeLogs": "*log_records:LogRecord=2",
    "LogIds": _LOG_IDS,
    "LogRecord": f"{_LOG_IDS} time:fixed64=1 body:AnyValue=5 *attributes:KeyValue=6 observed:fixed64=11 "
    "event_name:bytes=12",
    "KeptLogs": "request:bytes=2",  # how a request for log records is kept: in a field that one for spans has not
    "KeyValue": "key:bytes=1 value:AnyValue=2",
    "AnyValue": "string_value:bytes=1 bool_value:bool=2 int_value:int64=3 double_value:double=4 "
    "array_value:ArrayValue=5 kvlist_value:KeyValueList=6 bytes_value:bytes=7",
    "ArrayValue": "*values:AnyValue=1",
    "KeyValueList": "*values:KeyValue=1",
    "RpcStatus": "code:int32=1 message:bytes=2",  # google.rpc.Status: why a server refused a request
}
_AS_BYTES: Final[Mapping[View, frozenset[str]]] = {
    "envelope": frozenset({"ResourceSpans.resource", "ScopeSpans.scope", "ScopeSpans.spans"}),
    "complete": frozenset(),
    "whole": frozenset(),
    "opaque": frozenset(
        {"KeyValue.value", "AnyValue.array_value", "AnyValue.kvlist_value", "ArrayValue.values", "LogRecord.body"}
    ),
    "flat": frozenset(
        {"ResourceSpans.resource", "Resource.attributes", "ScopeSpans.scope", "Span.attributes", "Event.attributes"}
    ),
}
_UNREAD: Final = frozenset({"Scope.attributes", "Span.links"})
"""Left out of the views that read: nothing here uses them, and damage in them must not cost the request."""
_OPAQUE: Final = "(opaque)"


@cache
def classes(view: View) -> Mapping[str, Any]:
    """Every message by its name, in a descriptor pool of its own: nothing is registered globally."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{view}.proto", package=view, syntax="proto3")
    for message in _MESSAGES:
        declared = file.message_type.add(name=message)
        if message == "AnyValue":
            declared.oneof_decl.add(name="value")
        for name, kind, number, repeated in _fields(view, message):
            added = declared.field.add(name=name, number=number, label=_MANY if repeated else _ONE)
            if kind in _SCALARS:
                added.type = _SCALARS[kind]
            else:
                added.type, added.type_name = _MESSAGE, f".{view}.{kind}"
            if message == "AnyValue":
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{view}.{name}")) for name in _MESSAGES}


@cache
def children(view: View) -> Mapping[str, Mapping[int, str]]:
    """By message, the fields that take memory for each occurrence: messages, and repeated bytes."""
    found: dict[str, dict[int, str]] = {_OPAQUE: {}}
    for message in _MESSAGES:
        found[message] = {
            number: _OPAQUE if kind in _SCALARS else kind
            for _, kind, number, repeated in _fields(view, message)
            if repeated or kind not in _SCALARS
        }
    return found


def _fields(view: View, message: str) -> list[tuple[str, str, int, bool]]:
    """Name, type, number of a message's fields, and whether they are repeated."""
    fields = []
    for field in _MESSAGES[message].split():
        name, _, rest = field.removeprefix("*").partition(":")
        kind, _, number = rest.partition("=")
        path = f"{message}.{name}"
        if path not in _UNREAD or view in ("envelope", "complete"):
            fields.append((name, "bytes" if path in _AS_BYTES[view] else kind, int(number), field[0] == "*"))
    return fields


def varint(number: int) -> bytes:
    """Encode a whole number, not negative, as protobuf's varint."""
    written = b""
    while number > 0x7F:
        written += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return written + bytes((number,))
