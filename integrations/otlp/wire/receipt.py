"""The outcome of a delivered request: a receipt, or one of two refusals that the protocol distinguishes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from sidejudge.scoring.errors import SidejudgeError

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


class Passage:
    """What became of a request that goes on: ``taken`` by the other side, refused (False), or not known yet (None)."""

    def __init__(self) -> None:
        self.taken: bool | None = None
        self._waiting: list[Callable[[], None]] = []

    def settle(self, *, taken: bool) -> None:
        """Record it, once."""
        if self.taken is None:
            self.taken = taken
            waiting, self._waiting = self._waiting, []
            for call in waiting if taken else ():
                call()

    def when_taken(self, call: Callable[[], None]) -> None:
        """Call this once it is taken, at once if it is; never if it is not."""
        if self.taken:
            call()
        elif self.taken is None:
            self._waiting.append(call)


class Consume(Protocol):
    """Consumes a decompressed request, and returns once what is kept of it is committed.

    ``passage`` is of a request that goes on as well.
    """

    async def __call__(self, body: bytes, encoding: Encoding, passage: Passage | None = None, /) -> Receipt: ...


class Undecodable(SidejudgeError, ValueError):  # noqa: N818  # it names what the data is
    """The request is not an OTLP trace request; sending it again cannot help."""


class Overloaded(SidejudgeError):  # noqa: N818  # it names what the receiver is
    """The request was not accepted and may be sent again after ``retry_after_s`` seconds; nothing of it was kept."""

    def __init__(self, retry_after_s: float, reason: str = "more is waiting to be committed than may wait") -> None:
        super().__init__(f"{reason}; send again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s
        self.reason = reason
