"""The views of an OTLP request that the intake needs, as protobuf messages built at run time.

The generated classes of OTLP decode every attribute of every span. A sampler that drops 99 of 100 spans must not pay
for that, so here the same bytes are read through smaller descriptions of the same fields:

* ``Envelope`` leaves resources, scopes and spans as opaque bytes: enough to walk a request and to write a smaller one;
* ``Ids`` reads the first four fields of a span: enough to decide on one whose ids do not stand where they usually do;
* ``Delivery`` reads everything, and so finds damage anywhere; it is used for kept spans only.

Requests for log records are built alike, resource by resource and scope by scope, so ``Envelope`` walks them too.

All text is declared as bytes: invalid UTF-8 in an attribute is the reader's business, not a reason to refuse a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TYPES: Final = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in ("bytes", "bool", "double", "int32", "int64", "fixed32", "fixed64")
}
_ONE: Final = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
_MANY: Final = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED

# name of a message → "name:type=number", "*" marks a repeated field; other types are messages of this table.
_MESSAGES: Final = {
    "Envelope": "*resource_spans:ResourceSpans=1",
    "ResourceSpans": "resource:bytes=1 *scope_spans:ScopeSpans=2 schema_url:bytes=3",
    "ScopeSpans": "scope:bytes=1 *spans:bytes=2 schema_url:bytes=3",
    "Logs": "request:bytes=2",
    "RpcStatus": "code:int32=1 message:bytes=2",
    "LogIds": "trace_id:bytes=9 span_id:bytes=10",
    "Ids": "trace_id:bytes=1 span_id:bytes=2 trace_state:bytes=3 parent_span_id:bytes=4",
    "Delivery": "*resource_spans:WholeResourceSpans=1",
    "WholeResourceSpans": "resource:Resource=1 *scope_spans:WholeScopeSpans=2 schema_url:bytes=3",
    "WholeScopeSpans": "scope:Scope=1 *spans:Span=2 schema_url:bytes=3",
    "Resource": "*attributes:KeyValue=1",
    "Scope": "name:bytes=1 version:bytes=2 *attributes:KeyValue=3",
    "Span": "trace_id:bytes=1 span_id:bytes=2 trace_state:bytes=3 parent_span_id:bytes=4 name:bytes=5 kind:int32=6 "
    "start_time_unix_nano:fixed64=7 end_time_unix_nano:fixed64=8 *attributes:KeyValue=9 *events:Event=11 "
    "*links:Link=13 status:Status=15 flags:fixed32=16",
    "Event": "time_unix_nano:fixed64=1 name:bytes=2 *attributes:KeyValue=3",
    "Link": "trace_id:bytes=1 span_id:bytes=2 trace_state:bytes=3 *attributes:KeyValue=4",
    "Status": "message:bytes=2 code:int32=3",
    "KeyValue": "key:bytes=1 value:AnyValue=2",
    "AnyValue": "string_value:bytes=1 bool_value:bool=2 int_value:int64=3 double_value:double=4 "
    "array_value:ArrayValue=5 kvlist_value:KeyValueList=6 bytes_value:bytes=7",
    "ArrayValue": "*values:AnyValue=1",
    "KeyValueList": "*values:KeyValue=1",
}


_OPAQUE: Final = "(opaque)"


def _children() -> Mapping[str, Mapping[int, str]]:
    found: dict[str, dict[int, str]] = {_OPAQUE: {}}
    for message, fields in _MESSAGES.items():
        children = found[message] = {}
        for field in fields.split():
            name, _, number = field.rpartition("=")
            kind = name.rpartition(":")[2]
            if kind not in _TYPES:
                children[int(number)] = kind
            elif field[0] == "*":
                children[int(number)] = _OPAQUE
    return found


CHILDREN: Final = _children()
"""Per message, the fields of which each occurrence costs memory of its own: messages, and repeated bytes."""


def _declare() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="intake.proto", package="sidejudge.intake", syntax="proto3")
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for field in fields.split():
            name, _, rest = field.removeprefix("*").partition(":")
            kind, _, number = rest.partition("=")
            added = declared.field.add(name=name, number=int(number), label=_MANY if field[0] == "*" else _ONE)
            if kind in _TYPES:
                added.type = _TYPES[kind]
            else:
                added.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
                added.type_name = f".sidejudge.intake.{kind}"
    pool = descriptor_pool.DescriptorPool()  # a pool of our own: nothing is registered globally
    pool.Add(file)
    return pool


def _message(pool: descriptor_pool.DescriptorPool, name: str) -> Any:
    found = pool.FindMessageTypeByName(f"sidejudge.intake.{name}")
    return message_factory.GetMessageClass(found)


_POOL: Final = _declare()
Envelope: Final = _message(_POOL, "Envelope")
"""A request with its resources, scopes and spans as opaque bytes."""
Ids: Final = _message(_POOL, "Ids")
"""A span's trace id, span id, trace state and parent id, wherever in the span they stand."""
Logs: Final = _message(_POOL, "Logs")
"""A request for log records inside a field that a request for spans does not have: how log records are kept."""
RpcStatus: Final = _message(_POOL, "RpcStatus")
"""``google.rpc.Status``: why a server refused a request."""
LogIds: Final = _message(_POOL, "LogIds")
"""A log record's trace id and span id."""
Scope: Final = _message(_POOL, "Scope")
"""An instrumentation scope: its name, version and attributes."""
Delivery: Final = _message(_POOL, "Delivery")
"""A request read to the last attribute."""
Resource: Final = _message(_POOL, "Resource")
"""A resource: its attributes."""
