"""How a command reports that it cannot continue: one line of cause, one line of remedy, and the exit code."""

from __future__ import annotations

EXIT_CODES: tuple[tuple[int, str, str], ...] = (
    (0, "all commands", "done, and nothing is wrong"),
    (1, "all commands", "done, and something is wrong with the data: a case, a gate, a difference, an unknown trace"),
    (1, "status", "the worst that is known is a warning"),
    (2, "all commands", "the call or the configuration is wrong, or what it needs is not there"),
    (3, "status", "critical"),
    (4, "status", "too little data to describe any service"),
    (130, "all commands", "interrupted by Ctrl-C"),
)
"""Every exit code: the number, which commands end with it, and what it means."""
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
