"""Verdicts with what they may be compared by, read apart so that nobody waits for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import explain
from .statements import queries

MOST = 100_000
"""Verdicts that are read at most, the latest: about two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFilter:
    """Which verdicts: closed in [since, until), ns since the epoch; ``None`` does not restrict.

    ``metric`` names the metric whose values are wanted beside whether the verdicts passed.
    """

    since_ns: int
    until_ns: int
    service: str | None = None
    environment: str | None = None
    rubric: str | None = None
    metric: str | None = None


class ComparedVerdict(NamedTuple):
    """One verdict. ``user`` is a digest, ``name`` the trace's, ``release`` the application's version.

    ``passed`` is None where it did neither, ``value`` None where no metric is wanted or it has none.
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
    rubric_version: str | None = None
    value: float | None = None


def read_compared(path: Path, wanted: ComparedFilter) -> list[ComparedVerdict]:
    """The latest ``MOST`` that match, the newest first. Raises ``StoreError``."""
    values = {
        "since": wanted.since_ns, "until": wanted.until_ns, "service": wanted.service,
        "environment": wanted.environment, "rubric": wanted.rubric, "metric": wanted.metric, "most": MOST,
    }  # fmt: skip
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2.0)) as connection:
            rows = connection.execute(queries()["compared"], values).fetchall()
    except sqlite3.Error as error:
        raise explain(error, path) from error
    return [
        ComparedVerdict(closed_ns, service, environment, rubric, None if passed is None else bool(passed), *rest)
        for closed_ns, service, environment, rubric, passed, *rest in rows
    ]
