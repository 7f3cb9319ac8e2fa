"""Labels: text of a case as a verdict shows it. A case may be of any size; its label is short and writable."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

MAX_LABEL = 60
"""Characters of one name, key or id."""
MAX_LABELS = 20
"""Names in one list of a result's details."""
MAX_REASON = 2000
"""Characters of a reason as a whole, whoever gave it."""


def label(text: str, most: int = MAX_LABEL) -> str:
    """The text, cut; half a surrogate pair, which no output can carry, becomes ``?``.

    >>> label("a very long name", 6)
    'a very…'
    """
    if len(text) > most:
        text = text[:most] + "…"
    return text if text.isascii() else text.encode(errors="replace").decode()


def labels(names: Iterable[str], most: int = MAX_LABELS) -> list[str]:
    """The first of many names, each cut."""
    # Nearly every name is shown as it is, so it is not worth a call.
    return [name if len(name) <= MAX_LABEL and name.isascii() else label(name) for name in islice(names, most)]
