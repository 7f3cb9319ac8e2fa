"""Prompt snapshot: which text of prompt management a question is asked with, and why no newer one could be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot:
    """One prompt. ``requested`` is its label or version as configured; ``used`` the version in use, None for none.

    ``reason`` is why it cannot be read now, empty when it can.
    """

    name: str
    requested: str
    used: str | None
    reason: str = ""

    @property
    def state(self) -> Literal["read", "fallback", "missing"]:
        """Read; the last one that was read is used in its place; there is none, and its metric is unavailable."""
        if not self.reason:
            return "read"
        return "missing" if self.used is None else "fallback"
