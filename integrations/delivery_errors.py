"""Why something was not taken, by what helps against it: waiting, or a person."""

from __future__ import annotations

from sidejudge.scoring.errors import SidejudgeError


class DestinationUnreachableError(SidejudgeError):
    """The receiver did not take it now and may later: nothing of what was handed over is known to have arrived.

    ``retry_after_s`` is how long the receiver asks to be left alone, ``None`` when it names no time.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.retry_after_s = reason, retry_after_s


class RefusedError(SidejudgeError):
    """The receiver will not take this however often it is sent; a person must mend the content or the configuration."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
