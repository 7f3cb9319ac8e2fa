"""Protobuf descriptors of an export request in which every text is declared as bytes.

The published descriptors declare texts as ``string``: a single invalid UTF-8 byte anywhere makes the whole request
unreadable. On the wire the two types are the same, so we declare bytes and decode each text ourselves, leniently.
Fields that nothing here reads are left out; protobuf skips them.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_Field = descriptor_pb2.FieldDescriptorProto
_BYTES, _BOOL, _INT64, _DOUBLE = _Field.TYPE_BYTES, _Field.TYPE_BOOL, _Field.TYPE_INT64, _Field.TYPE_DOUBLE
_FIXED64, _INT32 = _Field.TYPE_FIXED64, _Field.TYPE_INT32

# message → fields as (name, number, type or message name, repeated)
_MESSAGES: dict[str, list[tuple[str, int, int | str, bool]]] = {
    "Request": [("resource_spans", 1, "ResourceSpans", True)],
    "ResourceSpans": [("resource", 1, "Resource", False), ("scope_spans", 2, "ScopeSpans", True)],
    "Resource": [("attributes", 1, "KeyValue", True)],
    "ScopeSpans": [("scope", 1, "Scope", False), ("spans", 2, "Span", True)],
    "Scope": [("name", 1, _BYTES, False), ("version", 2, _BYTES, False)],
    "Span": [
        ("trace_id", 1, _BYTES, False), ("span_id", 2, _BYTES, False), ("trace_state", 3, _BYTES, False),
        ("parent_span_id", 4, _BYTES, False), ("name", 5, _BYTES, False), ("kind", 6, _INT32, False),
        ("start", 7, _FIXED64, False), ("end", 8, _FIXED64, False), ("attributes", 9, "KeyValue", True),
        ("dropped_attributes", 10, _INT32, False), ("events", 11, "Event", True), ("status", 15, "Status", False),
    ],
    "Event": [("time", 1, _FIXED64, False), ("name", 2, _BYTES, False), ("attributes", 3, "KeyValue", True)],
    "Status": [("message", 2, _BYTES, False), ("code", 3, _INT32, False)],
    "LogRequest": [("resource_logs", 1, "ResourceLogs", True)],
    "ResourceLogs": [("scope_logs", 2, "ScopeLogs", True)],
    "ScopeLogs": [("log_records", 2, "LogRecord", True)],
    "LogRecord": [
        ("time", 1, _FIXED64, False), ("body", 5, "AnyValue", False), ("attributes", 6, "KeyValue", True),
        ("trace_id", 9, _BYTES, False), ("span_id", 10, _BYTES, False), ("observed", 11, _FIXED64, False),
        ("event_name", 12, _BYTES, False),
    ],
    "KeyValue": [("key", 1, _BYTES, False), ("value", 2, "AnyValue", False)],
    "Values": [("values", 1, "AnyValue", True)],
    "Pairs": [("values", 1, "KeyValue", True)],
    "AnyValue": [
        ("string_value", 1, _BYTES, False), ("bool_value", 2, _BOOL, False), ("int_value", 3, _INT64, False),
        ("double_value", 4, _DOUBLE, False), ("array_value", 5, "Values", False), ("kvlist_value", 6, "Pairs", False),
        ("bytes_value", 7, _BYTES, False),
    ],
}  # fmt: skip

_OPAQUE = {
    ("KeyValue", "value"), ("AnyValue", "array_value"), ("AnyValue", "kvlist_value"), ("Values", "values"),
    ("LogRecord", "body"),
}  # fmt: skip
"""What the second schema leaves as bytes, so that nesting is walked under our own bound, not under protobuf's."""


_FLAT = {
    ("ResourceSpans", "resource"), ("Resource", "attributes"), ("ScopeSpans", "scope"), ("Span", "attributes"),
    ("Event", "attributes"),
}  # fmt: skip
"""What the third schema leaves as bytes: attributes, so that one costs no message, and what comes again and again."""


def request_class() -> type[Message]:
    """The whole request in one parse: fast, and refuses values nested deeper than protobuf's limit (100 messages)."""
    return whole_classes()["Request"]


def log_request_class() -> type[Message]:
    """The same of a request with log records."""
    return whole_classes()["LogRequest"]


@cache
def whole_classes() -> dict[str, type[Message]]:
    """Every message of both requests by its name."""
    return _classes("whole", frozenset())


@cache
def opaque_classes() -> dict[str, type[Message]]:
    """The same messages with every attribute value left as bytes, to be parsed one level at a time."""
    return _classes("opaque", _OPAQUE)


@cache
def flat_classes() -> dict[str, type[Message]]:
    """The same messages with every attribute left as bytes, for attributes in the layout that encoders write."""
    return _classes("flat", _FLAT)


def _classes(package: str, opaque: AbstractSet[tuple[str, str]]) -> dict[str, type[Message]]:
    """Build the classes in a pool of their own: nothing is registered where other code could meet it."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for name, number, kind, repeated in fields:
            field = declared.field.add(name=name, number=number)
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if isinstance(kind, int):
                field.type = kind  # type: ignore[assignment]  # an enum of the stubs, an int at run time
            elif (message, name) in opaque:
                field.type = _BYTES
            else:
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{package}.{kind}"
            if message == "AnyValue":
                field.oneof_index = 0
        if message == "AnyValue":
            declared.oneof_decl.add(name="value")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in _MESSAGES
    }
