"""Error cause: what ended a step, as parts of a reason: kinds of ours, classes of exceptions, messages."""

from __future__ import annotations

import re
from typing import Final

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, ReasonPart, own, part, quoted

_MESSAGE: Final = 200
"""Characters of an error's message that a reason quotes."""
_TRACEBACK: Final = "Traceback (most recent call last)"
_CLASS: Final = re.compile(
    r"\s*(?:[A-Za-z_][\w$]*[.:]+)*([A-Z][A-Za-z]*(?:Error|Exception|Timeout|Failure|Fault|Interrupt|Exit|Warning|Refused|Denied"
    r"|Exceeded|Unavailable|Cancelled|Canceled|Aborted|Rejected|NotFound|Expired))\s*(?:[:(\n]|$)"
)
"""The class of an exception at the head of a message. Other words there may be what somebody wrote."""
_KNOWN_CAUSES: Final = (
    ("rate limit", re.compile(r"rate.?limit|too many requests|\b429\b|quota|overloaded", re.IGNORECASE)),
    ("context length", re.compile(r"context.{0,20}(?:length|window)|maximum context|too many tokens", re.IGNORECASE)),
    ("content filter", re.compile(r"content.?(?:filter|policy)|safety", re.IGNORECASE)),
    ("timeout", re.compile(r"timed? ?out", re.IGNORECASE)),
    ("authentication", re.compile(r"authenti|api.?key|\b401\b|\b403\b|permission", re.IGNORECASE)),
)


def cause(error: str) -> ReasonPart:
    """What kind of error a message reports, in few words and without its contents.

    >>> cause("RateLimitError: slow down, customer 4711").text
    'rate limit'
    """
    known = _known(error)
    return own(known) if known is not None else _class_of(error) or own("error")


def stated_cause(error: str) -> Reason:
    """The class of the exception, else the kind of error, and the first line of its message.

    >>> str(stated_cause("RuntimeError: database is down")), stated_cause("RuntimeError: database is down").shown()
    ('RuntimeError (database is down)', 'RuntimeError (…)')
    """
    kind = _class_of(error) or cause(error)
    return with_message(Reason.of([kind]), kind.text, error)


def with_message(stated: Reason, kind: str, text: str) -> Reason:
    """A sign with what the error says: the first line that names more than its kind, of a traceback the last one."""
    lines = text.strip().splitlines() or [""]
    line = lines[-1 if lines[0].startswith(_TRACEBACK) else 0].strip()
    head, colon, rest = line.partition(":")
    if colon and head.rpartition(".")[2].strip().casefold() == kind.casefold():
        line = rest.strip()
    if not line or line == kind:
        return stated
    return Reason("{stated} ({message})", stated=stated, message=quoted(label(line, _MESSAGE)))


def failure_part(failure: str) -> ReasonPart:
    """What ``failure_of`` returned, as a part of a reason: a class of exceptions is the application's."""
    return own(failure) if " " in failure else part(failure)


def _known(error: str) -> str | None:
    return next((name for name, pattern in _KNOWN_CAUSES if pattern.search(error[:500])), None)


def _class_of(error: str) -> ReasonPart | None:
    found = _CLASS.match(error)
    return part(label(found[1])) if found else None
