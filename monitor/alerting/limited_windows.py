"""Windows of verdicts, or of the application's figures, beside windows of the values of each limited metric."""

from __future__ import annotations

from collections.abc import Mapping

from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.metric_status import MetricLimit

from .observation import Key, Observation
from .windows import MOST_VERDICTS, Windows


class LimitedWindows(Windows):
    """Windows under a declaration that hold at most ``most`` verdicts, and in ``own`` those of each limit.

    Mode ``adaptive`` looks back until there is enough. A metric that a tenth of the verdicts have needs ten times as
    long for as many values, so its window reaches back by its own values: each of them counts, whatever became of its
    verdict. In the other modes all windows are equally long, and ``own`` is empty.
    """

    def __init__(self, declared: Declaration, most: int = MOST_VERDICTS) -> None:
        adaptive, least = declared.policy.mode == "adaptive", declared.policy.min_samples

        super().__init__(
            declared.window_ns, longest_ns=declared.longest_ns if adaptive else 0, enough=least if adaptive else 0.0,
            max_verdicts=most,
        )  # fmt: skip
        self.own: Mapping[MetricLimit, Windows] = {
            limit: Windows(
                declared.window_ns, longest_ns=declared.longest_ns, enough=limit.needed(least), max_verdicts=most
            )
            for limit in (declared.metrics if adaptive else ())
        }  # fmt: skip

    def of(self, limit: MetricLimit) -> Windows:
        """The windows of the values under a limit."""
        return self.own.get(limit, self)

    def add(self, key: Key, seen: Observation) -> bool:
        """Take in a verdict and its values; whether it counts. A revision without a value takes the earlier one out."""
        if not super().add(key, seen):
            return False
        for limit, windows in self.own.items():
            if limit.rubric != key.rubric or not limit.concerns(key.service):
                continue
            value = seen.metrics.get(limit.measure)
            if value is None:
                windows.withdraw(seen.identity, key.rubric)
                continue
            one = Observation(
                identity=seen.identity, at_ns=seen.at_ns, passed=True, weight=seen.weight, revision=seen.revision,
                metrics={limit.measure: value}, cluster=seen.cluster,
            )  # fmt: skip
            windows.add(self._where.get((seen.identity, key.rubric), key), one)
        return True

    def withdraw(self, identity: str, rubric: str) -> bool:
        """Remove the verdict on a trace by a rubric, and its values; return whether there was one."""
        for windows in self.own.values():
            windows.withdraw(identity, rubric)
        return super().withdraw(identity, rubric)

    def forget(self, rubric: str) -> None:
        """Drop all verdicts by a rubric, and their values."""
        for windows in self.own.values():
            windows.forget(rubric)
        super().forget(rubric)
