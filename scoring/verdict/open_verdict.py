"""Open verdict: a verdict without anything that people or models wrote, for those who may not see contents.

Reasons quote: an answer, a claim, a name that a model made up. One sentence may hold a
quotation and a count, so a reason is split at its stops. Only parts of a closed set of sentences are kept
(``open_sentences.txt``, in which ``#`` is a number and ``@`` a metric of the verdict). Any other part is left out: a
new sentence is withheld until it is listed. Of details, numbers are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

GAP = "…"
"""Stands for what is left out."""
_STOP = re.compile(r"(; |: )")
_NUMBER = r"-?\d{1,9}(?:[.,]\d{1,9})?%?"
_MOST = 2000
_LONGEST = 5
"""Parts, stops included, that one sentence may have."""
_FIGURE = 10**9
"""A number from here on may be one that somebody wrote, such as that of a card."""
_NAMED = ("agents", "tools", "order")
"""Metrics of a workflow whose details name agents and tools: the application's parts, not what was written."""
_OPEN = frozenset({
    "case_id", "trace_id", "trace_url", "task", "rubric", "rubric_version", "state", "rating", "blockers", "judge",
    "service", "environment", "session_id", "selection", "created_at", "closed_ns", "metric", "status", "method",
    "cascade",
})  # fmt: skip
"""Fields that are shown as they are, besides numbers: none of them is content."""


def open_verdict(verdict: Mapping[str, object]) -> dict[str, object]:
    """A verdict in its JSON form without contents.

    Returns:
        The same fields; ``reason`` and ``details`` hold only what is ours. ``withheld`` names the fields of the verdict
        or of a score of which something is left out; it is absent where nothing is.
    """
    scores = verdict.get("scores")
    listed = [each for each in scores if isinstance(each, Mapping)] if isinstance(scores, list | tuple) else []
    metrics = frozenset(str(each.get("metric")) for each in listed)
    workflow = verdict.get("rubric") == "workflow"
    return {
        **_opened(verdict, metrics, named=False),
        "scores": [_opened(each, metrics, named=workflow and each.get("metric") in _NAMED) for each in listed],
    }


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


def _opened(fields: Mapping[str, object], metrics: frozenset[str], *, named: bool) -> dict[str, object]:
    shown: dict[str, object] = {}
    withheld: list[str] = []
    for name, value in fields.items():
        if name == "reason":
            shown[name] = open_reason(str(value or ""), metrics)
        elif name == "details" and isinstance(value, Mapping):
            shown[name] = dict(value) if named else {key: each for key, each in value.items() if _is_figure(each)}
        elif name in _OPEN or _is_figure(value):
            shown[name] = value
        elif name == "scores":
            continue
        if shown.get(name) != value:
            withheld.append(name)
    return {**shown, "withheld": withheld} if withheld else shown


def _is_figure(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(type(each) is int and abs(each) < 10_000 for each in value)  # numbers of turns
    return value is None or (isinstance(value, bool | int | float) and abs(value) < _FIGURE)


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
