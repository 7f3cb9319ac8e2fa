"""The outcome of a delivered request: a receipt, or one of two refusals that the protocol distinguishes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scoring.errors import SidejudgeError

Encoding: TypeAlias = Literal["protobuf", "json"]
"""The two encodings of an OTLP request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The request is accepted, and what is kept of it is committed.

    ``rejected`` is the number of spans or log records that were refused for good (OTLP partial success: the client
    must not send them again); ``message`` is the reason, or empty. A message without rejections is a warning.
    """

    rejected: int = 0
    message: str = ""


Consume: TypeAlias = Callable[[bytes, Encoding], Awaitable[Receipt]]
"""Consumes a decompressed request, and returns once what is kept of it is committed."""


class Undecodable(SidejudgeError, ValueError):  # noqa: N818  # it names what the data is
    """The request is not an OTLP trace request; sending it again cannot help."""


class Overloaded(SidejudgeError):  # noqa: N818  # it names what the receiver is
    """The request was not accepted and may be sent again after ``retry_after_s`` seconds; nothing of it was kept."""

    def __init__(self, retry_after_s: float, reason: str = "more is waiting to be committed than may wait") -> None:
        super().__init__(f"{reason}; send again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s
        self.reason = reason
