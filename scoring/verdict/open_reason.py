"""Open reason: the parts of a reason that no person and no model wrote, for those who may not see contents.

Reasons quote: an answer, a claim, a name that a model made up. One sentence may hold a
quotation and a count, so a reason is split at its stops. Only parts of a closed set of sentences are kept
(``open_sentences.txt``, in which ``#`` is a number and ``@`` a metric of the verdict). Any other part is left out: a
new sentence is withheld until it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

GAP = "…"
"""Stands for what is left out."""
_STOP = re.compile(r"(; |: )")
_NUMBER = r"-?\d{1,9}(?:[.,]\d{1,9})?%?"
_MOST = 2000
_LONGEST = 5
"""Parts, stops included, that one sentence may have."""


def open_reason(reason: str, metrics: Iterable[str] = ()) -> str:
    """The parts of a reason that are ours; ``…`` for the others."""
    parts = _STOP.split(reason[:_MOST])
    kept: list[str] = []
    at = 0
    while at < len(parts):
        # the longest run of parts that is a sentence: some have stops of their own
        runs = ("".join(parts[at:end]) for end in range(min(len(parts), at + _LONGEST), at, -2))
        text = next((run for run in runs if _is_ours(run, frozenset(metrics))), GAP)
        at += 1 if text == GAP else len(_STOP.split(text))
        if text != GAP or GAP not in kept[-2:]:
            kept += [text, parts[at] if at < len(parts) else ""]
        at += 1
    return "".join(kept[:-1])


def _is_ours(text: str, metrics: frozenset[str]) -> bool:
    found = _sentences().fullmatch(text)
    return found is not None and all(name in metrics for name in found.groups() if name is not None)


@cache
def _sentences() -> re.Pattern[str]:
    """All sentences as one pattern; each ``@`` is a group. Those with one come last: it would take any word."""
    lines = Path(__file__).with_name("open_sentences.txt").read_text(encoding="utf-8").splitlines()
    lines.sort(key=lambda line: "@" in line)
    shapes = (
        re.escape(line).replace(r"\#", _NUMBER).replace("@", "([a-z0-9_]+)")
        for line in sorted(filter(None, lines), key=lambda line: "@" in line)
    )
    return re.compile("|".join(["", *shapes]))
