"""Why an item was not accepted, by the remedy: waiting, or a person."""

from __future__ import annotations

from sidejudge.scoring.errors import SidejudgeError


class DestinationUnreachableError(SidejudgeError):
    """The receiver did not accept it now and may later: no part of the delivery is known to have arrived.

    ``retry_after_s`` is how long the receiver asks to be left alone, ``None`` when it names no time.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.retry_after_s = reason, retry_after_s


class RefusedError(SidejudgeError):
    """The receiver will never accept this; a person must correct the content or the configuration."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
