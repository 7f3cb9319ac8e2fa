"""Tally: the figures that a run reports, in constant memory.

These are the totals of verdicts by rubric, remarks on lines (in order, whichever process judged the line), the reasons
of incomplete verdicts, and the cost of requests to judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sidejudge.integrations.provider.attempt import JudgeAttempt, JudgeObserver
from sidejudge.monitor.alerting.cascade_sums import CascadeSums
from sidejudge.monitor.config.warnings import only_judged
from sidejudge.scoring.lexical.amount import amount
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.statistics.estimate import from_sums
from sidejudge.scoring.statistics.sums import ExactSum, FewCounts, OfParts
from sidejudge.scoring.statistics.two_phase import corrected
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.verdict.escalation import Escalation

from .resume import Duplicates

_IGNORED = 50
"""The most unknown fields that are reported: their names come from the file."""


@dataclass(slots=True)
class ReportedRemarks:
    """Passes each message to ``write``; of an ignored field, and of repeated case ids, only the first."""

    write: Callable[[str], None]
    _ignored: set[str] = field(default_factory=set)
    _duplicates: Duplicates = field(default_factory=Duplicates)

    @property
    def repeated(self) -> int:
        """How many lines repeat a case id."""
        return self._duplicates.count

    def complain(self, message: str) -> None:
        """Report a message unchanged."""
        self.write(message)

    def ignored(self, name: str, number: int) -> None:
        """Report a field that no case has, the first time that it occurs."""
        if name not in self._ignored and len(self._ignored) < _IGNORED:
            self._ignored.add(name)
            self.write(f"line {number}: {name}: is no field of a case and is ignored, here and further on")

    def case(self, case_id: str, number: int) -> None:
        """Take note of the id of a case."""
        first = self._duplicates.first_line(case_id, number)
        if first is not None and self._duplicates.count == 1:
            self.write(
                f"warning: line {number}: case_id: {case_id[:100]!r} stands on line {first} already; both are judged, "
                "but their verdicts have the same name (further ones are only counted)"
            )


@dataclass(slots=True)
class RecordedRemarks:
    """Keeps the remarks of a few lines for the process that reports them."""

    kept: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)

    def complain(self, message: str) -> None:
        self.kept.append(("complain", (message,)))

    def ignored(self, name: str, number: int) -> None:
        self.kept.append(("ignored", (name, number)))

    def case(self, case_id: str, number: int) -> None:
        self.kept.append(("case", (case_id, number)))

    def replay(self, remarks: Remarks) -> None:
        """Make the same remarks again, in their order."""
        for kind, stated in self.kept:
            getattr(remarks, kind)(*stated)


Remarks: TypeAlias = ReportedRemarks | RecordedRemarks
"""The remarks of a run on its lines."""


_MOST_KNOWN = 500
"""The most different gaps that are counted. Reasons may quote the case, so that their number is not bounded."""
_MOST_REPORTED = 10
_REASON = 300


_JUDGE_WANTED, _EMBEDDINGS_WANTED = "needs a judge", "needs embeddings"
"""The lexical evaluator's answer to a question for another evaluator."""


@dataclass(slots=True)
class Gaps(OfParts):
    """Counts why verdicts are incomplete: by rubric, metric and reason.

    ``count`` is the number of incomplete verdicts, ``times`` how often each gap occurred, the first of them.
    """

    count: int = 0
    times: FewCounts[tuple[str, str, str]] = field(default_factory=lambda: FewCounts(_MOST_KNOWN))

    def add(self, verdict: JsonRecord) -> None:
        """Count the gaps of a verdict that neither passed nor failed; others are ignored."""
        if verdict.get("passed") is not None:
            return
        self.count += 1
        for score in verdict.get("scores", ()):
            if score["status"] in ("unavailable", "error") and _matters(str(verdict["rubric"]), str(score["metric"])):
                gap = (str(verdict["rubric"]), str(score["metric"]), str(score["reason"]))
                self.times.count(gap)

    def reported(self) -> Iterator[str]:
        """A line for each reason, the most frequent first, and one of remedy where another evaluator would help."""
        metrics: dict[tuple[str, str, int], list[str]] = {}
        for (rubric, metric, reason), times in Counter(self.times).most_common():
            metrics.setdefault((rubric, reason, times), []).append(metric)
        for (rubric, reason, times), names in list(metrics.items())[:_MOST_REPORTED]:
            often = "" if times == 1 else f" ({times} times)"
            yield f"{rubric}: {', '.join(names)}: {label(reason, _REASON)}{often}"
        if len(metrics) > _MOST_REPORTED:
            yield f"… and {len(metrics) - _MOST_REPORTED} more reasons"
        if any(_JUDGE_WANTED in reason and _only_judged(rubric, name) for rubric, name, reason in self.times):
            without = ", ".join(name for name in RUBRICS if not only_judged(name))
            yield f"remedy: configure a judge (evaluators.judge); rubrics that need none (--rubric NAME) are {without}"
        if any(_EMBEDDINGS_WANTED in reason for _, _, reason in self.times):
            yield "remedy: configure embeddings (evaluators.embedding)"


def _only_judged(rubric: str, metric: str) -> bool:
    """Whether only a judge can evaluate a metric; of a declared rubric the reason alone shows it."""
    return rubric not in RUBRICS or metric in only_judged(rubric)


def _matters(rubric: str, metric: str) -> bool:
    """Whether a verdict can be incomplete because this metric is: not for a metric that is only shown."""
    criteria = RUBRICS[rubric].criteria if rubric in RUBRICS else ()
    return all(c.weight or c.blocker or c.prerequisite for c in criteria if c.metric.id == metric)


@dataclass(slots=True)
class Count(OfParts):
    """Verdicts of one rubric. ``composites`` is the sum of ``with_composite`` composites.

    ``errors`` counts incomplete verdicts in which a score ended in an error. ``cascade`` sums what a stronger judge
    changed, each verdict with weight 1.
    """

    passed: int = 0
    failed: int = 0
    incomplete: int = 0
    errors: int = 0
    composites: ExactSum = field(default_factory=ExactSum)
    with_composite: int = 0
    cascade: CascadeSums = field(default_factory=CascadeSums)

    def add(self, passed: object, composite: object) -> None:
        """Count a verdict that passed, failed, or (``None``) is incomplete. A composite may be missing."""
        if passed is None:
            self.incomplete += 1
        elif passed:
            self.passed += 1
        else:
            self.failed += 1
        if isinstance(composite, int | float):
            self.composites.add(composite)
            self.with_composite += 1

    def cascade_line(self) -> str:
        """What a stronger judge changed, and the pass rate by its answers, in one line; empty without one."""
        n = self.passed + self.failed
        plain = from_sums(n=n, failures=self.failed, weight=n, failed_weight=self.failed, squared_weight=n)
        seen = self.cascade.snapshot(plain)
        if plain is None or seen is None:
            return ""
        asked, turned = seen.verdicts["doubt"] + seen.verdicts["drawn"], sum(seen.changed.values())
        line = f"the stronger judge was asked about {asked} of {n} and turned {turned}"
        if seen.unanswered:
            line += f"; {amount(seen.unanswered, 'time')} it gave no answer"
        mended = corrected(plain, self.cascade.drawn_sums)
        if mended is None:
            return f"{line}; none was drawn, so that its pass rate is not known"
        low, high = mended.lower, mended.upper
        return f"{line}; its pass rate on all is estimated at {mended.pass_ratio:.1%} ({low:.1%} to {high:.1%})"

    @property
    def n(self) -> int:
        return self.passed + self.failed + self.incomplete

    @property
    def pass_rate(self) -> float | None:
        """The share that passed among verdicts that passed or failed; ``None`` if there are none."""
        decided = self.passed + self.failed
        return self.passed / decided if decided else None

    @property
    def mean_composite(self) -> float | None:
        """Mean of the composites on the rubric's scale; ``None`` when there is none."""
        return self.composites.value / self.with_composite if self.with_composite else None


@dataclass(slots=True)
class ScoreTally(OfParts):
    """The verdicts of a run by rubric, and its lines without a verdict."""

    rubrics: dict[str, Count] = field(default_factory=dict)
    bad_lines: int = 0
    unrouted: int = 0
    excluded: int = 0
    gaps: Gaps = field(default_factory=Gaps)

    @property
    def broken(self) -> list[str]:
        """Rubrics whose verdicts all ended in errors."""
        return [name for name, count in self.rubrics.items() if count.errors == count.n]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many verdicts passed, failed, and are incomplete."""
        found = self.rubrics.values()
        return sum(c.passed for c in found), sum(c.failed for c in found), sum(c.incomplete for c in found)

    def add(self, verdict: Mapping[str, object]) -> None:
        """Count one verdict, given as JSON."""
        self.gaps.add(verdict)
        name = str(verdict["rubric"])
        count = self.rubrics.get(name)
        if count is None:
            count = self.rubrics[name] = Count()
        count.add(verdict.get("passed"), verdict.get("composite"))
        if isinstance(cascade := verdict.get("cascade"), Mapping):
            passed = verdict.get("passed")
            count.cascade.move(passed if isinstance(passed, bool) else None, 1.0, Escalation.from_json(cascade), 1)
        count.errors += verdict.get("passed") is None and _failed(verdict.get("scores"))


def _failed(scores: object) -> bool:
    return isinstance(scores, list) and any(score.get("status") == "error" for score in scores)


@dataclass(slots=True)
class Expense(JudgeObserver):
    """Counts every request to a judge, including failed ones; ``unpriced`` of them have no known price."""

    requests: int = 0
    failed: int = 0
    hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def attempted(self, attempt: JudgeAttempt) -> None:
        usage = attempt.usage
        self.requests += 1
        self.failed += attempt.failure is not None
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.usd += usage.cost_usd or 0.0
        self.unpriced += usage.cost_usd is None

    def looked_up(self, *, hits: int, misses: int) -> None:  # noqa: ARG002  # the observer's signature
        self.hits += hits

    def reported(self) -> str | None:
        """One line for people; None without a judge.

        >>> Expense(requests=1200, failed=3, input_tokens=519000, output_tokens=24000, usd=0.0923).reported()
        'judge: 1,200 requests (3 in vain), 519,000 + 24,000 tokens, 0.0923 USD'
        """
        if not self.requests and not self.hits:
            return None
        parts = [f"{self.requests:,} {'request' if self.requests == 1 else 'requests'}"]
        parts[0] += f" ({self.failed:,} in vain)" if self.failed else ""
        parts.append(f"{self.input_tokens:,} + {self.output_tokens:,} tokens")
        parts.append("cost not known" if self.unpriced == self.requests > 0 else f"{self.usd:.4f} USD")
        if 0 < self.unpriced < self.requests:
            parts[-1] += f", and {self.unpriced:,} of unknown price"
        if self.hits:
            parts.append(f"{self.hits:,} answers out of the cache")
        return "judge: " + ", ".join(parts)
