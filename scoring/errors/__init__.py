"""The root of the errors that reach a caller; each room declares its own beside the code that raises it."""

from __future__ import annotations


class SidejudgeError(Exception):
    """Something that sidejudge cannot do, or refuses. ``str`` is the cause."""
