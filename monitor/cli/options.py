"""Options that have a form of their own: times, and conditions on traces."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidejudge.integrations.langfuse.observations import Window
    from sidejudge.monitor.config.match import MatchSection


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


def match_of(where: Iterable[str], option: str) -> MatchSection:
    """The condition that all of them make; ``CommandError`` names the option and the key of a wrong one."""
    from pydantic import ValidationError

    from sidejudge.monitor.config.match import MatchSection

    given: dict[str, object] = {}
    for text in where:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandError(f"{option}: {text!r} is not KEY=GLOB", f"for example {option} environment=production")
        given[key] = value
    try:
        return MatchSection.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CommandError(f"{option}: {place}: {first['msg']}", "the keys are those of a route's match") from None
