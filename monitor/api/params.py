"""Request params: read from their text, or refused with cause and remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from fastapi import Request
from pydantic import BaseModel

from sidejudge.monitor.config.errors import nearest
from sidejudge.monitor.config.section import rubric_named
from sidejudge.monitor.config.units import parse_span
from sidejudge.monitor.ingest.outcomes import EndReason

from .errors import ProblemError
from .view import TracePosition

if TYPE_CHECKING:
    from fastapi._compat import ModelField

P = TypeVar("P", bound=TracePosition)
T = TypeVar("T", bound=str)
_HEX = frozenset("0123456789abcdef")
_MOST_NS = 2**63 - 1
_LEAST_NS = -(2**62)
"""From here a store's integer still reaches back by any span (``parse_span``)."""


def trace_id_of(text: str) -> str:
    """A trace id as 32 lower-case hex digits; ``ProblemError`` when it is none."""
    known = text.strip().lower()
    if len(known) != 32 or set(known) - _HEX or known == "0" * 32:
        raise ProblemError(
            "trace_id: a trace id is 32 hex digits, not all of them 0",
            "copy it from a verdict's trace_id, or from the application's trace",
        )
    return known


def unknown_trace(known: str) -> ProblemError:
    """The response for an unknown trace."""
    return ProblemError(
        f"nothing is known of trace {known}",
        "it was not drawn by sampling, was shed under load, never arrived, or is past store.retention; "
        f"'sidejudge explain {known} --config FILE' shows how sampling treats it",
        HTTPStatus.NOT_FOUND,
    )


def one_of(parameter: str, name: str | None, known: Collection[T]) -> T | None:
    """The known value of this name; None where no name is given."""
    if name is not None and name not in known:
        raise ProblemError(f"{parameter}: there is no such {parameter}", f"choose from {', '.join(known)}")
    return next((each for each in known if each == name), None)


def rubric_of(name: str | None, known: Sequence[str]) -> str | None:
    """The name of a rubric that exists; an alias is read for it."""
    return one_of("rubric", None if name is None else rubric_named(name), known)


def nanoseconds_of(at: datetime | None) -> int | None:
    """An instant as ns since the epoch; UTC without an offset. One before 1823 or after 2262 is the first or last."""
    if at is None:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    since = aware - datetime.fromtimestamp(0, UTC)
    ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    return max(_LEAST_NS, min(ns, _MOST_NS))


def duration_of(name: str, text: str) -> int:
    """A duration in ns."""
    try:
        return parse_span(text)
    except ValueError:
        raise ProblemError(f"{name}: cannot be read", f"write {name}=12h, {name}=7d") from None


def span_of(last: str) -> int:
    """How far back a page looks, in ns, by its parameter ``last``."""
    try:
        return parse_span(last)
    except ValueError:
        raise ProblemError("last: cannot be read", "write 30m, 6h or 2d") from None


def reason_of(name: str | None) -> str | None:
    """A reason that traces end with."""
    return one_of("reason", name, list(EndReason))


def position_of(kind: type[P], cursor: str | None) -> P | None:
    """Where a page of verdicts or traces begins; None at the first."""
    try:
        return None if cursor is None else kind.parse(cursor)
    except ValueError as error:
        raise ProblemError(f"cursor: {error}", "leave it out for the first page") from None


def only_known(request: Request) -> None:
    """Refuse an unknown or a repeated parameter: ignoring it would answer a different question.

    Pages stay lenient: they show what they are filtered by, and old links to them go on.
    """
    known = [name for parameter in request.scope["route"].dependant.query_params for name in _names(parameter)]
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counts.items():
        if name not in known:
            near = nearest(name[:80], known)
            named = f"the parameters are {', '.join(known)}" if known else "leave it out: this path takes none"
            raise ProblemError(
                f"{name[:80]}: there is no such parameter", named if near is None else f"did you mean {near}?"
            )
        if count > 1:
            raise ProblemError(f"{name}: it is given {count} times", "give it once; ask once for each value")


def _names(parameter: ModelField) -> Iterable[str]:
    """The name of a parameter; of one that is a model, the names of its fields."""
    kind = parameter.field_info.annotation
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else [parameter.alias]
