"""Microsoft Agent Framework: the GenAI conventions on spans, and the older events in log records beside them.

An agent's span holds all messages of its run among those it put out; its answer is the last text of them. Where OpenAI
keeps the conversation, its id is that of the response before, another one in each turn, and no session's.
"""

from __future__ import annotations

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span

from . import genai
from .reading import Dialect

NAME = "agent_framework"
SWITCH = "ENABLE_SENSITIVE_DATA=true"

_RESPONSE = "resp_"
"""How OpenAI's ids of responses begin."""


def speaks(raw: RawSpan) -> bool:
    """Whether the Agent Framework made the span."""
    return raw.scope_name.startswith("agent_framework")


def normalise(raw: RawSpan) -> Span:
    """An Agent Framework span in normal form."""
    span = genai.normalise(raw, name=NAME, switch=SWITCH)
    if span.session_id is not None and span.session_id.startswith(_RESPONSE):
        provenance = {field: source for field, source in span.provenance.items() if field != "session_id"}
        span = replace(span, session_id=None, provenance=provenance)
    return span


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise, switch=SWITCH)
