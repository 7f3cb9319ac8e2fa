"""Detail: what a scrape leaves out, and what it adds up, unless ``metrics.detail: full`` asks for all.

What the rules, the boards and the documentation ask for is always there. What none of them asks for is left out
where it has many series; what is asked for without its service is added up under the service ``__all__``; zeros of a
service and a rubric begin with the first verdict. A test holds declarations and what is asked for together.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from . import families as f
from .families import Family

Detail: TypeAlias = Literal["standard", "full"]
ALL: Final = "__all__"
"""The label value of all services together."""
LOST: Final = ("shed", "undecodable", "error", "crashed")
"""Reasons for which a trace that was drawn is missing from every estimate: by service also in the standard detail."""
LEFT_OUT: Final = frozenset(
    {
        f.VERDICTS_JUDGE_FAILED, f.EFFECTIVE_SAMPLES, f.WINDOW_REACH, f.STATUS_SINCE,
        f.COMPOSITE_MEAN, f.METRIC_MEAN, f.ALERT_EVENTS, f.BLOCKERS, f.EMBEDDING_DURATION,
    }
)  # fmt: skip
ADDED_UP: Final = frozenset({f.METRIC_SCORE, f.EVALUATION_LAG})
"""Families whose services are added up."""
COARSE: Final = {
    f.APPLICATION_DURATION: (0.5, 2.0, 5.0, 15.0, 60.0, 300.0), f.METRIC_SCORE: (0.1, 0.3, 0.5, 0.7, 0.9, 1.0),
}  # fmt: skip
"""Bounds of histograms, some of those that the family declares."""

ONLY: Final = {
    f.STATUS: "for the status in force, with zeros beside `warning` and `critical`",
    f.LAST_VERDICT: "while the status is `no_data`",
    **dict.fromkeys((f.PASS_LOWER_RATIO, f.PASS_UPPER_RATIO), "while the status is `warning` or `critical`"),
    **dict.fromkeys((f.CHANGE_SCORE, f.DRIFT_SCORE), "while it is not 0"),
    **dict.fromkeys((f.SLICE_PASS_RATIO, f.SLICE_OTHERS_PASS_RATIO), "for parts that are worse"),
}  # fmt: skip
"""Families of which the standard detail has some series, and which."""


def added_up(family: Family, labels: tuple[str, ...]) -> tuple[str, ...]:
    """The label values under which a series is counted in the standard detail."""
    if family in ADDED_UP or (family is f.TRACES and labels[1] not in LOST):
        return (ALL, *labels[1:])
    return labels
