"""Verdict samples: the verdicts of one service under one rubric, each as what a comparison looks at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .bounded_read import bounded_read
from .statements import queries

MOST = 20_000
"""Verdicts that are read at most, the latest."""
VERSIONS = ("release", "prompt", "model")
"""What a trace may state a version of: the application, its prompt, its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSample:
    """One verdict. ``passed`` is None where it neither passed nor failed; ``weight`` is how many traces it stands for.

    ``versions`` are those that its trace states, by what they are of. ``metrics`` are the values that
    there are, each with whether it fails or blocks.
    """

    closed_ns: int
    passed: bool | None
    weight: float
    session_id: str | None
    name: str | None
    versions: Mapping[str, str]
    metrics: Mapping[str, tuple[float, bool]]


def read_samples(
    path: Path, *, service: str, environment: str, rubric: str, since_ns: int, until_ns: int
) -> list[VerdictSample]:
    """The latest ``MOST`` verdicts between two instants (ns, the second exclusive), newest first.

    Raises ``StoreError``, ``SearchTooLong``.
    """
    wanted = {
        "service": service, "environment": environment, "rubric": rubric, "since": since_ns, "until": until_ns,
        "most": MOST,
    }  # fmt: skip
    with bounded_read(path) as connection:
        rows = connection.execute(queries()["verdict_samples"], wanted).fetchall()
    return [
        VerdictSample(
            closed_ns=closed_ns,
            passed=None if passed is None else bool(passed),
            weight=1.0 / (probability or 1.0),
            session_id=session_id,
            name=name,
            versions={of: str(stated) for of, stated in zip(VERSIONS, versions, strict=True) if stated},
            metrics={metric: (float(value), bool(fails)) for metric, value, fails in json.loads(scores or "[]")},
        )
        for closed_ns, passed, probability, session_id, name, *versions, scores in rows
    ]
