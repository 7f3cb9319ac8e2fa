"""Shown: the parts of one case as a prompt shows them, each fenced and measured once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.token_estimate import estimate

from .layout import fence
from .parts import part

NOT_GIVEN = "(not given)"


class PromptMaterial:
    """One case. What it lacks, and what is ``left_out``, is marked as not given.

    ``in_place`` are texts in place of parts, each with a note of ours on what it is.
    """

    def __init__(
        self, case: Case, left_out: Collection[str] = (), in_place: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self._case, self._left_out, self._in_place = case, left_out, in_place or {}
        self._fenced: dict[str, str | None] = {}
        self._tokens: dict[str, int] = {}

    def fenced(self, name: str) -> str | None:
        """The part as data; None when the case does not have it."""
        if name not in self._fenced:
            found = None if name in self._left_out else part(self._case, name)
            self._fenced[name] = None if found is None else fence(name, found)
        return self._fenced[name]

    def titled(self, name: str) -> str:
        """The part under its name."""
        if name in self._in_place:
            note, text = self._in_place[name]
            return f"{name} ({note})" + (f":\n{fence(name, text)}" if text else "")
        fenced = self.fenced(name)
        return f"{name}: {NOT_GIVEN}" if fenced is None else f"{name}:\n{fenced}"

    def in_line(self, name: str) -> str:
        """The part where a line of a template goes on with it."""
        fenced = self.fenced(name)
        return NOT_GIVEN if fenced is None else f"\n{fenced}"

    def tokens(self, name: str) -> int:
        """Tokens of the part under its name."""
        if name not in self._tokens:
            self._tokens[name] = estimate(self.titled(name))
        return self._tokens[name]
