"""Daily report: the results of a day (or of another period), as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from sidejudge.scoring.status.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDay:
    """One (service, environment, rubric): its verdicts of the period, and its status at the end.

    The pass ratio is the weighted estimate with the 95 % interval of the pages; ``None`` where nothing passed or
    failed.
    """

    service: str
    environment: str
    rubric: str
    status: Status
    passed: int
    failed: int
    incomplete: int
    pass_ratio: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakMetric:
    """A metric whose weighted mean over ``n`` verdicts, in its own unit, is outside its acceptable band."""

    service: str
    environment: str
    rubric: str
    metric: str
    mean: float
    n: int
    acceptable: float
    higher_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLine:
    """A group of similar failures of the day, with the number ``before`` of the day before; ``words`` hold no contents.

    ``nameless`` are the words without names of the application's parts, None where they are the same.
    """

    group: str
    rubric: str
    metric: str
    words: str
    count: int
    before: int
    examples: tuple[str, ...]
    nameless: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedOn:
    """The judge's agreement with people on a rubric: kappa from ``n`` pairs."""

    rubric: str
    kappa: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyReportText:
    """The report of the period from ``begin_ns`` to ``end_ns``.

    ``courses`` are its services, the worst first, and ``more`` counts those that are left out. ``cost_usd`` is what
    judging cost; None without a judge. ``share_of`` names the monitor of a fleet whose verdicts and cost these are;
    None where there are no others. ``firing`` are the titles and subjects of the alerts that fire at its end, and
    ``firing_nameless`` the same without names of the application's parts.
    """

    begin_ns: int
    end_ns: int
    courses: tuple[ServiceDay, ...] = ()
    more: int = 0
    weakest: tuple[WeakMetric, ...] = ()
    agreements: tuple[AgreedOn, ...] = ()
    cost_usd: float | None = None
    failures: tuple[FailureLine, ...] = ()
    firing: tuple[str, ...] = ()
    firing_nameless: tuple[str, ...] = ()
    share_of: str | None = None
