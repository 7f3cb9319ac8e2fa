"""Request params: read from their text, or refused with cause and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus

from fastapi import Request

from monitor.config.errors import nearest
from monitor.config.units import parse_duration
from monitor.config.values import rubric_named
from monitor.ingest.outcomes import Reason

from .errors import ProblemError
from .report import Position, TracePosition

_HEX = frozenset("0123456789abcdef")
_MOST_NS = 2**63 - 1


def trace_id_of(text: str) -> str:
    """A trace id as 32 lower-case hex digits; ``ProblemError`` when it is none."""
    known = text.strip().lower()
    if len(known) != 32 or set(known) - _HEX or known == "0" * 32:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "trace_id: a trace id is 32 hex digits, not all of them 0",
            "copy it from a verdict's trace_id, or from the application's trace",
        )
    return known


def unknown_trace(known: str) -> ProblemError:
    """The response for an unknown trace."""
    return ProblemError(
        HTTPStatus.NOT_FOUND,
        f"nothing is known of trace {known}",
        "it was not drawn by sampling, never arrived, or is past store.retention; "
        f"'sidejudge explain {known} --config FILE' shows how sampling treats it",
    )


def rubric_of(name: str | None, known: Sequence[str]) -> str | None:
    """The name of a rubric that exists; an alias is read for it."""
    name = None if name is None else rubric_named(name)
    if name is not None and name not in known:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "rubric: there is no such rubric", f"choose from {', '.join(known)}"
        )
    return name


def nanoseconds_of(at: datetime | None) -> int | None:
    """An instant as ns since the epoch; UTC without an offset. One beyond 64 bits is the first or last that fits."""
    if at is None:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    since = aware - datetime.fromtimestamp(0, UTC)
    ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    return max(-_MOST_NS, min(ns, _MOST_NS))


def duration_of(name: str, text: str) -> int:
    """A duration in ns."""
    try:
        return parse_duration(text).ns
    except ValueError:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"{name}: cannot be read", f"write {name}=12h, {name}=7d"
        ) from None


def reason_of(name: str | None) -> str | None:
    """A reason that traces end with."""
    if name is not None and name not in set(Reason):
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "reason: there is no such reason", f"choose from {', '.join(Reason)}"
        )
    return name


def trace_position_of(cursor: str | None) -> TracePosition | None:
    """Where a page of traces begins."""
    if cursor is None:
        return None
    try:
        return TracePosition.parse(cursor)
    except ValueError as error:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"cursor: {error}", "leave it out for the first page"
        ) from None


def position_of(cursor: str | None) -> Position | None:
    """Where a page of verdicts begins."""
    if cursor is None:
        return None
    try:
        return Position.parse(cursor)
    except ValueError as error:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"cursor: {error}", "leave it out for the first page"
        ) from None


def only_known(request: Request) -> None:
    """Refuse a parameter that the path does not have: ignored, it would give an answer to another question."""
    known = [str(parameter.alias) for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            near = nearest(name[:80], known)
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"{name[:80]}: there is no such parameter",
                f"did you mean {near}?" if near is not None else f"the parameters are {', '.join(known)}",
            )
