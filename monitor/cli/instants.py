"""Options that are times, as people write them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from sidejudge.integrations.langfuse.observations import Window

_WHOLE_NS = 30 * 60 * 10**9
"""Traces of Langfuse that began this long ago are taken for whole."""


def instant_of(option: str, text: str) -> int:
    """The time in ns since the epoch, UTC where it names no zone; ``CommandError`` names the option."""
    from sidejudge.integrations.langfuse.observations import instant_ns

    found = instant_ns(text)
    if found is None:
        raise CommandError(f"{option}: {text!r} is no time", f"for example {option} 2026-11-01T12:00Z")
    return found


def window_of(since: str, until: str | None) -> Window:
    """The start times of ``--from`` and ``--to``, which is half an hour ago where it is not given."""
    from sidejudge.integrations.langfuse.observations import Window

    from_ns = instant_of("--from", since)
    to_ns = time.time_ns() - _WHOLE_NS if until is None else instant_of("--to", until)
    if to_ns <= from_ns:
        raise CommandError("--to: is not after --from", "name a later time")
    return Window(from_ns=from_ns, to_ns=to_ns)
