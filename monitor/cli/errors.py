"""How a command reports that it cannot continue: one line of cause, one line of remedy, and the exit code."""

from __future__ import annotations

DATA = 1
"""Exit code: done, and something is wrong with the data."""
CALL = 2
"""Exit code: the call or the configuration is wrong."""


class CommandError(Exception):
    """Ends a command. ``cause`` may hold several lines when several things are wrong; ``remedy`` is one."""

    def __init__(self, cause: str, remedy: str, code: int = CALL) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.code = code
