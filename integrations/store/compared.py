"""Verdicts with what they may be compared by, read apart so that nobody waits for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from .connection import bounded_read
from .statements import queries

MOST: Final = 100_000
"""Verdicts that are read at most, the latest: about two seconds."""
NO_METRICS: Final[Mapping[str, tuple[float, bool]]] = MappingProxyType({})
NO_SLICES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFilter:
    """Which verdicts: closed in [since, until), ns since the epoch; ``None`` does not restrict; of too many the latest.

    ``metric`` names the metric whose values are wanted beside whether the verdicts passed; ``all_metrics``: of each.
    ``figure``: it is a figure of the application, of traces and of no rubric.
    """

    since_ns: int
    until_ns: int
    service: str | None = None
    environment: str | None = None
    rubric: str | None = None
    metric: str | None = None
    all_metrics: bool = False
    most: int = MOST
    figure: bool = False


class ComparedVerdict(NamedTuple):
    """One verdict. ``user`` is a digest, ``name`` the trace's, ``release`` the application's version.

    ``passed`` is None where it did neither. ``weight`` is how many traces it stands for. ``metrics`` are the values
    that were asked for and that there are, each with whether it fails or blocks. ``trace_id`` is in hex; of a session,
    its key. ``slices`` are the trace's values of ``alerts.slices``.
    """

    closed_ns: int
    service: str
    environment: str
    rubric: str
    passed: bool | None
    weight: float
    session: str | None = None
    user: str | None = None
    name: str | None = None
    release: str | None = None
    prompt: str | None = None
    model: str | None = None
    rubric_version: str | None = None
    trace_id: str = ""
    metrics: Mapping[str, tuple[float, bool]] = NO_METRICS
    slices: Mapping[str, str] = NO_SLICES


def read_compared(path: Path, wanted: ComparedFilter) -> list[ComparedVerdict]:
    """Those that match, the newest first. Raises ``StoreError``, ``SearchTooLong``."""
    values = {
        "since": wanted.since_ns, "until": wanted.until_ns, "service": wanted.service,
        "environment": wanted.environment, "rubric": wanted.rubric, "metric": wanted.metric,
        "all_metrics": wanted.all_metrics, "most": wanted.most,
    }  # fmt: skip
    with bounded_read(path) as connection:
        query = queries()["compared_figures" if wanted.figure else "compared"]
        rows = connection.execute(query, values).fetchall()
    return [
        ComparedVerdict._make((*where, None if passed is None else bool(passed), *of, _read(scores), _sliced(slices)))
        for where, passed, of, scores, slices in ((row[:4], row[4], row[5:-2], row[-2], row[-1]) for row in rows)
    ]


def _read(scores: str | None) -> Mapping[str, tuple[float, bool]]:
    return {of: (float(value), bool(fails)) for of, value, fails in json.loads(scores)} if scores else NO_METRICS


def _sliced(slices: str | None) -> Mapping[str, str]:
    return {str(by): str(value) for by, value in json.loads(slices).items()} if slices else NO_SLICES
