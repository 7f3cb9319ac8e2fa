"""Verdict search for people, also by fields without an index, on a connection of its own."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import msgspec

from sidejudge.scoring.verdict.documents import FAILING, VerdictDocument

from .archive import stored_verdict
from .connection import bounded_read, select

MOST = 20_000
"""Verdicts that are searched and counted at most, the latest that the indexed filters leave."""
MOST_FAILED = 1_000
"""Verdicts whose failing metrics are counted where nothing inside of verdicts was asked for."""
_LISTED = 100
"""Values that are counted apart, of each kind."""
_INSIDE = ("state", "metric", "below", "text", "release", "prompt", "model")
"""Filters for which verdicts, or the details of their traces, have to be read."""


class _Rating(msgspec.Struct):
    metric: str
    rating: str | None = None


class _Ratings(msgspec.Struct):
    scores: list[_Rating] = []


_RATINGS: Final = msgspec.json.Decoder(_Ratings)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFilter:
    """A search; ``None`` does not restrict.

    ``until_ns`` is exclusive. ``release``, ``prompt`` and ``model`` are versions that the trace states.
    ``metric`` failed or blocks. ``below`` is the composite in [0, 1]. ``text`` stands in the trace's name, and with
    ``in_reasons`` in the beginning of the input and in the reasons of the verdict and its scores, whatever the case of
    its letters.
    """

    rubric: str | None = None
    service: str | None = None
    environment: str | None = None
    passed: str | None = None
    state: str | None = None
    since_ns: int | None = None
    metric: str | None = None
    below: float | None = None
    text: str | None = None
    in_reasons: bool = False
    release: str | None = None
    prompt: str | None = None
    model: str | None = None
    until_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundVerdicts:
    """``verdicts`` in their JSON form with ``closed_ns`` and the trace's ``name``; ``counts`` of all that match.

    With ``in_reasons`` each has its trace's ``input_beginning`` where that is stored.

    ``counts`` maps ``passed``, ``service``, ``environment``, ``rubric`` and ``metric`` (those that fail) to how many
    verdicts there are by value, most first. ``capped``: older verdicts were not looked at.
    ``failing_of``: metrics were counted in so many of the verdicts alone, the latest; None: in all.
    """

    verdicts: list[VerdictDocument]
    counts: Mapping[str, Mapping[str, int]]
    capped: bool
    failing_of: int | None = None


def search_verdicts(
    path: Path, wanted: VerdictFilter, *, after: tuple[int, str, str] | None, limit: int, counted: bool = True,
    shown: Callable[[VerdictDocument], VerdictDocument] = lambda verdict: verdict,
) -> FoundVerdicts:  # fmt: skip
    """The latest verdicts that match, newest first. Raises ``StoreError``.

    Args:
        path: The store.
        wanted: What is looked for.
        after: ``closed_ns``, key (32 hex digits) and rubric of the last verdict of the page before.
        limit: Verdicts at most.
        counted: Whether ``counts`` are wanted.
        shown: What is kept of each verdict: all of ten thousand takes 200 MB, their text a sixth of it.
    """
    after_ns, after_id, after_rubric = after or (None, None, None)
    given = {each.name: getattr(wanted, each.name) for each in fields(VerdictFilter)}
    values = {
        **given, "since": wanted.since_ns, "until": wanted.until_ns, "most": MOST,
        "text": wanted.text.casefold() if wanted.text else None,
        "limit": limit, "after_ns": after_ns, "after_id": bytes.fromhex(after_id) if after_id else None,
        "after_rubric": after_rubric,
    }  # fmt: skip
    inside = any(given[name] is not None for name in _INSIDE)
    with bounded_read(path) as connection:
        connection.create_function("folded", 1, lambda text: str(text or "").casefold(), deterministic=True)
        looked_at = values if inside else values | {"most": limit}
        rows = select(connection, "search_verdicts", looked_at).fetchall()
        counts, capped, failing_of = (
            _counts(connection, values, wanted, inside=inside) if counted else ({}, False, None)
        )
        found: list[VerdictDocument] = []
        rows.reverse()
        while rows:  # each text goes once it is read
            text, at, name, begins = rows.pop()
            verdict: VerdictDocument = {**stored_verdict(text, at), "name": name}
            if begins is not None:
                verdict["input_beginning"] = begins
            found.append(shown(verdict))
    return FoundVerdicts(verdicts=found, counts=counts, capped=capped, failing_of=failing_of)


def _counts(
    connection: sqlite3.Connection, values: Mapping[str, object], wanted: VerdictFilter, *, inside: bool
) -> tuple[dict[str, dict[str, int]], bool, int | None]:
    """Counts of matches by each choice; whether older ones were left out; how many verdicts the metrics cover."""
    counts: dict[str, dict[str, int]] = {}
    if inside:
        for of, value, number in select(connection, "count_verdicts", values):
            counts.setdefault(of, {})[value] = number
        return counts, sum(counts.pop("looked_at", {}).values()) >= MOST, None
    chosen: dict[str, Counter[str]] = {of: Counter() for of in ("passed", "service", "environment", "rubric")}
    looked_at = 0
    for service, environment, rubric, passed, number in select(connection, "count_columns", values):
        looked_at += number
        chosen["passed"][passed] += number
        if wanted.passed in (None, passed):
            for of, value in (("service", service), ("environment", environment), ("rubric", rubric)):
                chosen[of][value] += number
    failed = select(connection, "failed_verdicts", {**values, "failed": MOST_FAILED}).fetchall()
    chosen["metric"] = Counter(metric for (text,) in failed for metric in _failing(text))
    found = {of: dict(numbers.most_common(_LISTED)) for of, numbers in chosen.items() if numbers}
    return found, looked_at >= MOST, MOST_FAILED if len(failed) == MOST_FAILED else None


def _failing(verdict: str) -> Iterator[str]:
    """The metrics that fail or block. SQLite takes three times as long to find them. Raises ``ValueError``."""
    try:
        scores = _RATINGS.decode(verdict).scores
    except msgspec.DecodeError as error:
        raise ValueError("no verdict") from error
    for score in scores:
        if score.rating in FAILING:
            yield score.metric
