"""Microsoft Agent Framework: the GenAI conventions on spans, and the older events in log records beside them.

An agent's span holds all messages of its run among those it put out; its answer is the last text of them.
"""

from __future__ import annotations

from integrations.raw import RawSpan
from scoring.span import Span

from . import genai
from .reading import Dialect

NAME = "agent_framework"
SWITCH = "ENABLE_SENSITIVE_DATA=true"


def speaks(raw: RawSpan) -> bool:
    """Whether the Agent Framework made the span."""
    return raw.scope_name.startswith("agent_framework")


def lift(raw: RawSpan) -> Span:
    """An Agent Framework span in normal form."""
    return genai.lift(raw, name=NAME, switch=SWITCH)


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, lift=lift, switch=SWITCH)
