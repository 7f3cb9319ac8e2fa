"""Serial dependence: how much less information successive verdicts carry where their clusters are not named.

Turns of a session without an id, answers about one bad document and retries of one client fail in runs. The
verdicts are cut into blocks of ``BLOCK`` in their order. If they were independent, the shares of failures f of two
blocks that follow each other would differ by::

    E (f − f')² = q·(1 − q)·(1/n + 1/n')                  (q: the share of failures of both)

Their actual difference, divided by that and averaged, is the design effect (``design_effect`` has it for named
clusters). Differences of neighbours are blind to slow changes of the pass ratio (von Neumann 1941,
doi:10.1214/aoms/1177731677), as by day and night.

An outage is one run and no clustering: the ``_LARGEST`` differences are left out, as are verdicts while a detector is
alarmed. Where the quotient is within ``_SURE`` standard errors of 1 the verdicts count as independent: chance must not
delay a service's status. The price is that the first clusters of a service count as independent.
"""

from __future__ import annotations

import math
from typing import Final

from sidejudge.scoring.trace.span import JsonRecord

BLOCK: Final = 30
"""Verdicts of a block: clusters of up to ten are measured in full."""
MEMORY: Final = 20_000
"""Verdicts after which an observation counts for half."""
MOST: Final = 10.0
_LARGEST: Final = 2
_SURE: Final = 2.5


class SerialDependence:
    """The design effect of successive verdicts of one service under one rubric."""

    __slots__ = ("_before", "_expected", "_failed", "_failures", "_found", "_largest", "_n", "_pairs", "_seen")

    def __init__(self) -> None:
        self._n = self._failed = 0.0
        self._before: tuple[float, float] | None = None
        self._found = self._expected = self._pairs = self._failures = self._seen = 0.0
        self._largest: list[tuple[float, float]] = []

    def add(self, failed: float, n: float = 1.0) -> None:
        """Take in ``n`` verdicts, ``failed`` of them failing, in an unknown order; if it is known, one by one."""
        self._n += n
        self._failed += failed
        if self._n < BLOCK:
            return
        block = self._n, self._failed
        if self._before is not None:
            self._compare(self._before, block)
        self._before = block
        self._n = self._failed = 0.0

    def skip(self) -> None:
        """Skip after an event: drop the current block and compare it with nothing."""
        self._n = self._failed = 0.0
        self._before = None

    @property
    def value(self) -> float:
        """The design effect, in [1, ``MOST``]."""
        found = self._found - sum(each for each, _ in self._largest)
        expected = self._expected - sum(each for _, each in self._largest)
        if expected <= 0 or self._failures <= 0:
            return 1.0
        quotient = found / expected
        # The variance of a squared difference of two Poisson counts, of pairs that share a block with the next.
        error = math.sqrt(3 / self._pairs + 0.75 / self._failures)
        return min(MOST, quotient) if quotient > 1 + _SURE * error else 1.0

    def _compare(self, before: tuple[float, float], block: tuple[float, float]) -> None:
        (n, failed), (m, lost) = before, block
        both = n + m
        share = (failed + lost) / both
        # Scaled so that both sides are the variance of one verdict, whatever the sizes of the blocks.
        found = (failed / n - lost / m) ** 2 / (1 / n + 1 / m)
        expected = share * (1 - share) * both / (both - 1)
        self._found += found
        self._expected += expected
        self._pairs += 1
        self._failures += (failed + lost) / 2
        self._seen += m
        self._largest = sorted([*self._largest, (found, expected)], reverse=True)[:_LARGEST]
        if self._seen >= MEMORY:
            for name in ("_found", "_expected", "_pairs", "_failures", "_seen"):
                setattr(self, name, getattr(self, name) / 2)
            self._largest = [(one / 2, other / 2) for one, other in self._largest]

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "n": self._n, "failed": self._failed, "before": None if self._before is None else list(self._before),
            "found": self._found, "expected": self._expected, "pairs": self._pairs, "failures": self._failures,
            "seen": self._seen, "largest": [list(each) for each in self._largest],
        }  # fmt: skip

    def restore(self, record: JsonRecord) -> None:
        """Restore the state that ``to_json`` wrote."""
        self._found, self._expected, self._pairs, self._failures, self._seen = (
            float(record[name]) for name in ("found", "expected", "pairs", "failures", "seen")
        )
        self._largest = [(float(found), float(expected)) for found, expected in record["largest"]]
        self._n, self._failed = float(record["n"]), float(record["failed"])
        self._before = None if record["before"] is None else (float(record["before"][0]), float(record["before"][1]))
