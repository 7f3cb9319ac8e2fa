"""Errors of Langfuse, by their remedy: waiting, another request, or a person.

Every status and body that is read here occurs in a recording of a real server (tests/fakes/langfuse is checked against
them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from sidejudge.integrations.backoff import requested_s
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label, struck
from sidejudge.scoring.trace.span import Json

_DAY_S: Final = 86_400.0
"""The longest wait: the limit of deletions is by the day."""
_LONGEST_MESSAGE: Final = 300


class LangfuseErrorKind(StrEnum):
    """Why a request to Langfuse failed. The values are labels of metrics: few and stable."""

    REFUSED = "refused"
    """400, 405, 409: the request is wrong, and repeating it is useless."""
    KEYS_REFUSED = "keys_refused"
    """401: the keys, or the host they belong to."""
    FORBIDDEN = "forbidden"
    """403: the keys may not, or ingestion is suspended."""
    NOT_FOUND = "not_found"
    """404: the object, or the endpoint on this version and write mode."""
    GONE = "gone"
    """410: the endpoint was switched off."""
    TOO_LARGE = "too_large"
    """413: more than about 1 MB."""
    TOO_EXPENSIVE = "too_expensive"
    """422: ClickHouse gave up on the query; ask for less."""
    RATE_LIMITED = "rate_limited"
    """429."""
    SERVER_ERROR = "server_error"
    """5xx."""
    NOT_LANGFUSE = "not_langfuse"
    """A page, a redirection or a body that is no JSON: something else answers at this address."""
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    """No connection, or one that broke off."""

    @property
    def transient(self) -> bool:
        """Whether waiting may help, without anybody doing anything."""
        return self in _PASSING


_PASSING: Final = frozenset(
    {
        LangfuseErrorKind.RATE_LIMITED,
        LangfuseErrorKind.SERVER_ERROR,
        LangfuseErrorKind.NOT_LANGFUSE,
        LangfuseErrorKind.TIMEOUT,
        LangfuseErrorKind.UNREACHABLE,
        LangfuseErrorKind.TOO_EXPENSIVE,
    }
)
_PERHAPS_ITS: Final = frozenset(
    {
        LangfuseErrorKind.SERVER_ERROR,
        LangfuseErrorKind.TIMEOUT,
        LangfuseErrorKind.TOO_EXPENSIVE,
        LangfuseErrorKind.REFUSED,
        # Something in between may refuse the contents of one thing, while it lets others by.
        LangfuseErrorKind.FORBIDDEN,
        LangfuseErrorKind.NOT_FOUND,
        LangfuseErrorKind.TOO_LARGE,
        LangfuseErrorKind.NOT_LANGFUSE,
    }
)
_BY_STATUS: Final = {
    401: LangfuseErrorKind.KEYS_REFUSED, 403: LangfuseErrorKind.FORBIDDEN, 404: LangfuseErrorKind.NOT_FOUND,
    408: LangfuseErrorKind.TIMEOUT, 410: LangfuseErrorKind.GONE,
    413: LangfuseErrorKind.TOO_LARGE, 422: LangfuseErrorKind.TOO_EXPENSIVE, 429: LangfuseErrorKind.RATE_LIMITED,
}  # fmt: skip


class LangfuseError(SidejudgeError):
    """A failed request. ``message`` is the server's own text, bounded.

    ``status`` is None where no answer came; ``retry_after_s`` is the wait that the server asked for, None without one;
    ``per_minute`` the limit that it named with a 429; ``body`` what it answered, as JSON, None for no JSON. ``broken``:
    an answer broke off, or is JSON that cannot be read.
    """

    def __init__(
        self,
        kind: LangfuseErrorKind,
        message: str = "",
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        per_minute: int | None = None,
        body: object = None,
        broken: bool = False,
    ) -> None:
        self.kind = kind
        self.message = label(struck(" ".join(message.split())), _LONGEST_MESSAGE)
        self.status = status
        self.retry_after_s = retry_after_s
        self.per_minute = per_minute
        self.body = body
        self.broken = broken
        reported = str(kind).replace("_", " ") if status is None else f"{str(kind).replace('_', ' ')} (HTTP {status})"
        super().__init__(f"{reported}: {self.message}" if self.message else reported)

    @property
    def perhaps_its(self) -> bool:
        """Whether the request itself may be at fault, so that other requests may succeed."""
        return self.broken or self.kind in _PERHAPS_ITS

    @property
    def missing(self) -> bool:
        """Whether Langfuse itself answers that there is no such thing: a path that it does not know brings a page."""
        return self.kind is LangfuseErrorKind.NOT_FOUND and self.body is not None


def read_refusal(status: int, headers: Mapping[str, str], content: bytes) -> LangfuseError:
    """The error that an answer other than 2xx means.

    A date in ``Retry-After`` is held against the server's own ``Date``: our clock may differ from its.
    """
    body = as_json(content)
    is_page = "html" in headers.get("content-type", "").lower()
    kind = _BY_STATUS.get(status)
    if 300 <= status < 400:
        where = label(headers.get("location", "nowhere"), 100)
        return LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, f"it redirects to {where}", status=status)
    if kind is None:
        kind = LangfuseErrorKind.SERVER_ERROR if status >= 500 else LangfuseErrorKind.REFUSED
    if status == 404 and is_page:
        # Paths that no Langfuse of this version knows are answered with the web application's page.
        message = "a page in place of an answer"
    elif isinstance(body, Mapping):
        message = _stated(body)
    else:
        message = "a page in place of an answer" if is_page else content[:200].decode("utf-8", "replace")
    limited = status == 429
    return LangfuseError(
        kind,
        message,
        status=status,
        retry_after_s=_retry_after(headers, body, date_of(headers) or datetime.now(UTC)),
        per_minute=_whole(headers.get("x-ratelimit-limit")) if limited else None,
        body=body,
    )


def as_json(content: bytes) -> Json:
    """The body as JSON; None where it is none."""
    try:
        found: Json = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found


def _stated(body: Mapping[str, object]) -> str:
    """Message and first issue of a refusal (issues name fields and rules, never values)."""
    message = str(body.get("message", ""))
    issues = body.get("error")
    if isinstance(issues, list) and issues and isinstance(issues[0], Mapping):
        path = issues[0].get("path")
        where = ".".join(map(str, path[:5])) if isinstance(path, list) and path else ""
        return f"{message}: {where + ': ' if where else ''}{issues[0].get('message', '')}"
    return f"{message}: {issues}" if isinstance(issues, str) and issues else message


def _retry_after(headers: Mapping[str, str], body: object, now: datetime) -> float | None:
    """Seconds to wait, from the header (seconds or a date) or from the body's details; a day at most."""
    seconds = requested_s(headers.get("retry-after"), now)
    if seconds is None and isinstance(body, Mapping) and isinstance(body.get("details"), Mapping):
        seconds = requested_s(str(body["details"].get("retryAfterSeconds", "")), now)
    return None if seconds is None else min(seconds, _DAY_S)


def date_of(headers: Mapping[str, str]) -> datetime | None:
    """When the server made an answer, by its own clock; None where it does not say."""
    try:
        at = parsedate_to_datetime(headers.get("date", ""))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _whole(text: str | None) -> int | None:
    return (
        int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 and int(text) else None
    )
