"""What a person probably meant: by an unknown key, and by a percentage where a number from 0 to 1 is required."""

from __future__ import annotations

import difflib
import re
from typing import Final


def nearest(key: str, valid: tuple[str, ...]) -> str:
    """The end of a message about an unknown key: the nearest valid one, else all of them."""
    near = difflib.get_close_matches(key, valid, 1)
    return f"; did you mean {near[0]}?" if near else f"; valid are {', '.join(valid)}"


_PERCENT: Final = re.compile(r"\s*(\d{1,3}(?:\.\d{1,6})?)\s*%\s*")


def ratio_meant(value: object) -> str:
    """A remedy for ``85`` and ``"85%"``, to append to a message; empty for anything else.

    >>> ratio_meant(85), ratio_meant("5 %"), ratio_meant(250), ratio_meant("high")
    ('; for 85 % write 0.85', '; for 5 % write 0.05', '', '')
    """
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    given = float(found[1]) if found else value
    if isinstance(given, bool) or not isinstance(given, int | float) or not (found or given > 1):
        return ""
    return f"; for {given:g} % write {given / 100:g}" if given <= 100 else ""
