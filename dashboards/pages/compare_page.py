"""Compare page: one service under one rubric before and after a change, with the difference and its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import Difference
from sidejudge.scoring.statistics.estimate import Estimate

from .rendering import query_of, render

KINDS = {"release": "Version of the application", "prompt": "Version of the prompt", "model": "Model", "time": "Time"}
"""The ways in which the two sides may differ, by the parameter's value."""
_RANGES = ("1h", "6h", "1d", "7d", "30d")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSide:
    """The verdicts of one side. ``estimate`` is None where none passed or failed.

    ``unanswered`` of the incomplete ones are so because nobody could be asked.

    ``first_ns`` and ``last_ns`` (since the epoch) are None without a verdict. ``failed`` is the address of its failed
    verdicts, empty where there is none.
    """

    name: str
    verdicts: int
    incomplete: int
    unanswered: int
    estimate: Estimate | None
    first_ns: int | None
    last_ns: int | None
    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """A metric on both sides: the weighted shares of verdicts that it fails, and its weighted means.

    ``difference`` is the difference of the shares; None where it fails on neither side, or too few values are known. A
    mean is None without a value.
    """

    metric: str
    failing: tuple[float | None, float | None]
    means: tuple[float | None, float | None]
    difference: Difference | None

    @property
    def shown(self) -> bool:
        """Whether it fails more or less often than before, beyond what chance explains."""
        return self.difference is not None and is_shown(self.difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage:
    """``options`` are the comparable versions with their numbers of verdicts, the first seen one first.

    ``by`` is what the sides differ in; ``at`` the instant between two periods as it was given. ``unversioned`` verdicts
    state no version. ``difference`` is None where there are no two sides. ``capped``: older verdicts were left out.
    """

    service: str
    environment: str
    rubric: str
    by: str
    last: str
    now_ns: int
    at: str = ""
    options: Mapping[str, int]
    before: ShownSide | None
    after: ShownSide | None
    difference: Difference | Unavailable | None
    metrics: Sequence[ComparedMetric] = ()
    unversioned: int = 0
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableService:
    """A service under a rubric, and how its verdicts are comparable: by two versions, or with ``time`` by two times."""

    service: str
    environment: str
    rubric: str
    by: str
    before: str
    after: str
    verdicts: int


def compare_list_page(services: Sequence[ComparableService], *, capped: bool) -> str:
    """The services to choose from, as HTML. Every value is escaped."""
    shown = [
        (each, "/compare?" + query_of({
            "service": each.service, "environment": each.environment, "rubric": each.rubric,
            **({} if each.by == "time" else {"by": each.by, "before": each.before, "after": each.after}),
        }))
        for each in services
    ]  # fmt: skip
    return render(
        "compare_list.html", title="Before and after · sidejudge", here="/compare", services=shown, kinds=KINDS,
        capped=capped,
    )  # fmt: skip


def compare_page(page: ComparePage) -> str:
    """The page as HTML. Every value is escaped."""
    ranges = dict.fromkeys([*_RANGES, page.last])
    about = {"service": page.service, "environment": page.environment, "rubric": page.rubric}
    found = page.difference if isinstance(page.difference, Difference) else None
    drawn = [each for each in (found, *(row.difference for row in page.metrics)) if each is not None]
    return render(
        "compare.html", title=f"Before and after · {page.service} · {page.rubric} · sidejudge", here="/compare",
        page=page, about=about, service_page="/services?" + query_of(about), kinds=list(KINDS.items()),
        ranges=[(each, each) for each in ranges],
        sides=[(name, f"{name} ({count:,})") for name, count in page.options.items()],
        stated=in_words(page), json_at=_json_at(page, about), found=found,
        reach=max([0.05, *(max(-each.lower, each.upper) for each in drawn)]),
    )  # fmt: skip


def _json_at(page: ComparePage, about: Mapping[str, str]) -> str:
    """The address of the same in JSON; empty where the API has no such comparison."""
    if page.by not in ("release", "prompt") or page.before is None or page.after is None:
        return ""
    return "/v1/compare?" + query_of(
        {**about, "by": page.by, "a": page.before.name, "b": page.after.name, "before": page.last}
    )


def is_shown(found: Difference) -> bool:
    """Whether zero lies outside the bounds."""
    return found.lower > 0 or found.upper < 0


def in_words(page: ComparePage) -> str:
    """The result of the comparison in a sentence or two."""
    if page.before is None or page.after is None:
        if page.by == "time":
            return "There is no verdict in these times."
        what = KINDS[page.by].lower()
        known = "only one is known" if page.options else "no trace states one"
        return f"A comparison needs two values of “{what}”, and {known} in this time."
    found = page.difference
    if not isinstance(found, Difference):
        return f"Nothing can be compared yet: {found.reason}." if found else "Nothing can be compared yet."
    before, after, low, high = page.before.name, page.after.name, 100 * found.lower, 100 * found.upper
    if not is_shown(found):
        return (
            f"No difference is shown. “{after}” may pass up to {max(0.0, -low):.1f} points less often than “{before}”, "
            f"or up to {max(0.0, high):.1f} points more often."
        )
    least, most = sorted((abs(low), abs(high)))
    word = "more" if found.difference > 0 else "less"
    moved = f"{100 * abs(found.difference):.1f} points {word} often"
    return f"“{after}” passes {moved} than “{before}”: between {least:.1f} and {most:.1f} points."
