"""Contents that a client's limit cut off, as ``OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`` does.

What is left of messages in JSON is no answer and no request: a judge would be shown half of an envelope. Such a text is
unread, and named. A cut text without an envelope stays, for it cannot be distinguished from one that a model left off.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec.structs import replace

from sidejudge.scoring.trace.span import Span, SpanKind, Unread

from . import jsontext

_OPENS: Final = frozenset('{["')
_SPOKEN: Final = r"""role["']: ?["'](?:assistant|user|system|developer|model|ai|human|tool)["']"""
_ENVELOPE: Final = re.compile(
    rf""""{_SPOKEN}|'{_SPOKEN}|role=|ChatMessage\("""
    r"""|"lc": ?1\b|"lc_agent_name"|"type": ?"(?:human|ai|tool|system|function_call|tool_use|chat_messages)\""""
    r"""|"(?:messages|choices|generations|candidates|finish_reason|replies|parts)":"""
)
"""What stands around the texts of messages, and not in an answer that is JSON itself.

Each begins with one character, as in ``contents_in_logs.CHAT``.
"""
_WRAPPED: Final = re.compile(
    r"""\{"(?:text|raw|output|result|response|content|answer)": ?"|\{"type": ?"\w+", ?"value": ?|\{"files": ?\["""
    r"""|\{"trajectory": ?\{|"[\[{](?:\\"|')"""
)
"""How an answer begins that a client wrote as JSON: under a key of a map of its own, or JSON in a quoted text."""
_PRINTED: Final = re.compile(r"ToolCall\(\w+=|[A-Z]\w*\(\w+=.{0,200}?(?:ChatMessage\(|role=)", re.DOTALL)
_FIELDS: Final[tuple[Literal["input", "output"], ...]] = ("input", "output")
_HEAD: Final = 1_000
"""Characters that suffice to recognise an envelope."""


def without_cut(span: Span, client: str) -> Span:
    """The span without an input or output that a client's limit cut inside its envelope."""
    if not is_cut(span.input, span.kind) and not is_cut(span.output, span.kind):
        return span
    cut = {field: value for field in _FIELDS if is_cut(value := getattr(span, field), span.kind)}
    found = []
    for field, value in cut.items():
        shape, source = f"text of {len(str(value))} characters, cut off", span.provenance.get(field, field)
        found.append(Unread(source=source, shape=shape, field=field, client=client, cut=True))
    return replace(span, unread=(*span.unread, *found), **dict.fromkeys(cut))


def is_cut(value: object, kind: SpanKind) -> bool:
    """Whether a value of a span of this kind is a part of an envelope.

    Of a model's own words only what stands around messages counts: JSON that it left off is its answer.
    """
    if not isinstance(value, str) or not value:
        return False
    if value[0].isupper():
        return _PRINTED.match(value) is not None and not value.rstrip().endswith(")")
    if value[0] not in _OPENS:
        return False
    wrapped = kind is not SpanKind.LLM and _WRAPPED.match(value) is not None
    return (wrapped or _ENVELOPE.search(value, 0, _HEAD) is not None) and jsontext.loads(value) is None
