"""Whatever no other dialect speaks: an HTTP call, a database, an application's own span.

Its place in the tree, its times, its error and the labels on it count; so do an input and an output under the plain
names. What it did is not guessed.
"""

from __future__ import annotations

from integrations.raw import RawSpan
from scoring.trace.span import Span, SpanKind

from . import unwrap
from .reading import Dialect, SpanReading

NAME = "generic"


def speaks(raw: RawSpan) -> bool:
    """Always: this is the last resort."""
    del raw
    return True


def normalise(raw: RawSpan) -> Span:
    """A span of which only the plainest things are known."""
    reading = SpanReading(raw)
    requested = unwrap.task(reading.value("input", "input.value", "input"))
    answered = unwrap.answer(reading.value("output", "output.value", "output"))
    unread = reading.unread() if requested is None and answered is None else ()
    return reading.span(NAME, SpanKind.OTHER, input=requested, output=answered, unread=unread)


DIALECT = Dialect(name=NAME, speaks=speaks, by_names=True, normalise=normalise)
