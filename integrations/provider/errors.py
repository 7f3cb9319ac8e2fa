"""Provider errors: the kind of failure behind an exception of litellm, for operators and the circuit breaker.

The classes of litellm's exceptions do not suffice: a refused connection, an answer that is no JSON and a missing key
all come as ``InternalServerError``. So the chain of causes is read, down to the HTTP response. (litellm 1.106; the
tests call it over a socket, so a change of its behaviour shows.)
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

from sidejudge.integrations.addresses import way, why_not
from sidejudge.integrations.backoff import requested_s
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label, struck

_LONGEST_MESSAGE: Final = 300
_NO_QUOTA: Final = ("insufficient_quota", "credit balance is too low", "insufficient balance")
_NO_KEY: Final = ("missing credentials", "api_key client option must be set", "api key is missing", "missing api key")
_TOO_LONG: Final = (
    "context_length_exceeded", "maximum context length", "context window", "exceeds the available context",
    "exceed_context_size", "prompt is too long", "input is too long", "too many input tokens", "reduce the length",
)  # fmt: skip
"""What providers and local servers write when a prompt does not fit; litellm knows only some of them."""
_REFUSED: Final = ("content_policy_violation", "content_filter", "responsibleaipolicyviolation")
HTTP_CLIENTS: Final = ("httpx", "httpx2")
"""Libraries whose exceptions hold the response that came over the wire; openai from 3 on has the second."""
_DEEPEST: Final = 20
_SHORTEST_SECRET: Final = 6
"""A shorter key ("x", for a server that wants none) guards nothing, and striking it out would spoil the message."""


class ProviderErrorKind(StrEnum):
    """Why a call to a provider failed, as messages name it."""

    AUTHENTICATION_FAILED = "authentication failed"
    MODEL_NOT_FOUND = "model not found"
    CREDIT_EXHAUSTED = "credit exhausted"
    RATE_LIMITED = "rate limited"
    TIMEOUT = "timeout"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    BAD_ANSWER = "bad answer"
    BAD_REQUEST = "bad request"
    CONTEXT_OVERFLOW = "context overflow"
    CONTENT_REFUSED = "content refused"
    NOT_INSTALLED = "litellm is not installed"


IN_PASSING: Final[Mapping[int, ProviderErrorKind]] = {
    408: ProviderErrorKind.TIMEOUT,
    409: ProviderErrorKind.OVERLOADED,
    425: ProviderErrorKind.OVERLOADED,
    429: ProviderErrorKind.RATE_LIMITED,
    504: ProviderErrorKind.TIMEOUT,
}
"""Statuses of HTTP after which the same request may succeed; every other from 500 on is ``OVERLOADED``."""
OF_CONTENTS: Final = (403, 404)
"""Statuses that a firewall in between may give for one request's contents, while it lets others by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderUsage:
    """Tokens and dollars of a call. ``cost_usd`` is None where no price is known: unknown is not free.

    ``estimated``: the provider gave no account, so the tokens are ours, rather too many.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    estimated: bool = False


class _Response(Protocol):
    status_code: int


@runtime_checkable
class _Answered(Protocol):
    response: _Response | None


class ProviderError(SidejudgeError):
    """A call without an answer. ``message`` is the provider's own text, bounded, without anything like a key.

    ``retry_after_s`` is the wait that the provider asked for, or None. ``status`` is that of its HTTP answer, None
    where none came. ``connection`` is why there was no connection, by the system or TLS; empty where there was one.
    ``usage`` is what was consumed all the same: a refusal is paid for.
    """

    def __init__(
        self,
        kind: ProviderErrorKind,
        message: str = "",
        *,
        retry_after_s: float | None = None,
        status: int | None = None,
        connection: str = "",
        usage: ProviderUsage | None = None,
    ) -> None:
        message = connection or message
        super().__init__(f"{kind}: {message}" if message else str(kind))
        self.kind = kind
        self.message = message
        self.retry_after_s = retry_after_s
        self.status = status
        self.connection = connection
        self.usage = usage or ProviderUsage()

    @property
    def cause(self) -> str:
        """What went wrong, without the provider's own text, which may quote the request: ``overloaded (HTTP 503)``."""
        more = self.connection if self.status is None else f"HTTP {self.status}"
        return f"{self.kind} ({more})" if more else str(self.kind)


def read_error(error: BaseException, *, secret: str | None, now: datetime | None = None) -> ProviderError:
    """The error that an exception of litellm means. ``secret`` (the key) is struck out of the message."""
    links = _chain(error)
    if (ours := next((link for link in links if isinstance(link, ProviderError)), None)) is not None:
        return ours
    # litellm makes up responses of its own; only that of the HTTP client came over a wire.
    response = next(
        (link.response for link in links if isinstance(link, _Answered) and _library(link) in HTTP_CLIENTS), None
    )
    status = response.status_code if response is not None else None
    kind = _kind({type(link).__name__ for link in links}, {_library(link) for link in links}, status, _messages(links))
    headers = [getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)]
    waits = (_asked_s(each, now) for each in headers if isinstance(each, Mapping))
    return ProviderError(
        kind, _message(error, secret), status=status,
        connection=_no_connection(links) if kind is ProviderErrorKind.UNREACHABLE else "",
        retry_after_s=next((wait for wait in waits if wait is not None), None),
    )  # fmt: skip


def _asked_s(headers: Mapping[object, object], now: datetime | None) -> float | None:
    """The seconds that headers ask for: in ``retry-after-ms`` (OpenAI, Azure), else in ``Retry-After``."""
    stated = {str(name).lower(): str(value) for name, value in headers.items()}
    with suppress(KeyError, ValueError):
        return requested_s(str(float(stated["retry-after-ms"]) / 1000))
    return requested_s(stated.get("retry-after"), now)


def _kind(names: set[str], modules: set[str], status: int | None, text: str) -> ProviderErrorKind:  # noqa: C901, PLR0912  # a table
    if any(word in text for word in _NO_QUOTA) or status == 402:
        return ProviderErrorKind.CREDIT_EXHAUSTED
    if (
        "ContextWindowExceededError" in names
        or status == 413
        or (status in {400, 422} and any(word in text for word in _TOO_LONG))
    ):
        return ProviderErrorKind.CONTEXT_OVERFLOW
    if "ContentPolicyViolationError" in names or any(word in text for word in _REFUSED):
        return ProviderErrorKind.CONTENT_REFUSED
    if names & {"AuthenticationError", "PermissionDeniedError"} or status in {401, 403}:
        return ProviderErrorKind.AUTHENTICATION_FAILED
    if "NotFoundError" in names or status == 404 or "llm provider not provided" in text:
        return ProviderErrorKind.MODEL_NOT_FOUND
    if "RateLimitError" in names:
        return ProviderErrorKind.RATE_LIMITED
    if status is not None and status in IN_PASSING:
        return IN_PASSING[status]
    if names & {"Timeout", "APITimeoutError", "ReadTimeout", "ConnectTimeout", "TimeoutError"}:
        return ProviderErrorKind.TIMEOUT
    if status is not None and status >= 500:
        return ProviderErrorKind.OVERLOADED
    if status is not None and status >= 400:
        return ProviderErrorKind.BAD_REQUEST
    if names & {"ServiceUnavailableError", "BadGatewayError"}:
        return ProviderErrorKind.OVERLOADED
    if any(word in text for word in _NO_KEY):
        return ProviderErrorKind.AUTHENTICATION_FAILED
    if modules & {*HTTP_CLIENTS, "aiohttp", "socket"} or names & {"ConnectionError", "ConnectionResetError"}:
        return ProviderErrorKind.UNREACHABLE
    if names & {"BadRequestError", "UnsupportedParamsError", "UnprocessableEntityError"}:
        return ProviderErrorKind.BAD_REQUEST
    return ProviderErrorKind.BAD_ANSWER


def _chain(error: BaseException) -> list[BaseException]:
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in links and len(links) < _DEEPEST:
        links.append(link)
        link = link.__cause__ or link.__context__
    return links


def _no_connection(links: list[BaseException]) -> str:
    """Why there was no connection: what TLS has against the certificate, or the system's message; empty: not known."""
    below = next((link for link in reversed(links) if isinstance(link, OSError) and link.errno), None)
    if below is None:
        return ""
    why = label(getattr(below, "verify_message", ""), _LONGEST_MESSAGE).rstrip(".") or why_not(below)
    return why + next(filter(None, map(way, links)), "")


def _library(link: BaseException) -> str:
    return type(link).__module__.partition(".")[0]


def _messages(links: list[BaseException]) -> str:
    """The beginnings of the messages; further on, a provider may quote the request."""
    return " ".join(f"{getattr(link, 'code', '')} {str(link)[:_LONGEST_MESSAGE]}" for link in links).lower()


def _message(error: BaseException, secret: str | None) -> str:
    body = getattr(error, "body", None)
    text = str(body["message"]) if isinstance(body, Mapping) and "message" in body else str(error)
    text = text.replace(secret, "…") if secret and len(secret) >= _SHORTEST_SECRET else text
    first, _, _ = text.rpartition("Exception - ")[2].strip().partition("\n")
    return label(struck(first), _LONGEST_MESSAGE)
