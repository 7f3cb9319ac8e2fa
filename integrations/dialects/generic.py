"""Whatever no other dialect speaks: an HTTP call, a database, an application's own span, an unknown client.

Its place in the tree, its times, its error and the labels on it count. What else it holds is read by shape alone.
"""

from __future__ import annotations

from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.span import Span, SpanKind

from .reading import Dialect, SpanReading

NAME = "generic"


def speaks(raw: RawSpan) -> bool:
    """Always: this is the last resort."""
    del raw
    return True


def normalise(raw: RawSpan) -> Span:
    """A span of which only the plainest things are known."""
    return SpanReading(raw).span(NAME, SpanKind.OTHER)


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise)
