"""Words of what a run is asked: runs of one name differ by them."""

from __future__ import annotations

import re
from typing import Final

from sidejudge.scoring.trace.tool_spans import canonical

from .case import Case

_READ: Final = 20_000
"""Characters of the input that are read."""
_WORD: Final = re.compile(r"[^\W\d_]{3,40}")


def asked_words(case: Case) -> frozenset[str]:
    """The words of the input, of three letters or more, case-folded; none where the input is not known."""
    given = case.input
    text = given if isinstance(given, str) else "" if given is None else canonical(given)
    return frozenset(_WORD.findall(text[:_READ].casefold()))
