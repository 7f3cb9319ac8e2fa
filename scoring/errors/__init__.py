"""The root of every error that the product raises; each package declares its own beside the code that raises it."""

from __future__ import annotations


class SidejudgeError(Exception):
    """Something that sidejudge cannot do, or refuses. ``str`` is the cause in one line."""
