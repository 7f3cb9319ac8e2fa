"""Examples: the failing traces that show best what an alert is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from scoring.alerts.event import Example
from scoring.alerts.finding import Labels
from scoring.alerts.quality import place_of
from scoring.lexical.label import label
from scoring.status.service_status import UNKNOWN_ENVIRONMENT, UNKNOWN_SERVICE
from scoring.verdict.open_reason import open_reason
from scoring.verdict.verdict_document import VerdictDocument

MOST = 3
_LOOKED_AT = 200
"""The number of latest failures of which the worst are shown."""
_REASON = 300


class Failures(Protocol):
    """The part of the store that is read."""

    @property
    def verdicts(self) -> Callable[..., list[VerdictDocument]]: ...


def examples(store: Failures, labels: Labels, since_ns: int) -> tuple[Example, ...]:
    """The worst of the latest failures that the labels speak of, the worst first; none without a rubric in the labels.

    A verdict without a composite (invalid, disqualified) is worse than any with one.
    """
    about = dict(labels)
    if "rubric" not in about:
        return ()
    found = store.verdicts(rubric=about["rubric"], passed="false", since_ns=since_ns, limit=_LOOKED_AT)
    mine = [verdict for verdict in found if _speaks_of(verdict, about)]
    mine.sort(key=lambda stated: -1.0 if stated["composite_norm"] is None else float(stated["composite_norm"]))
    return tuple(_example(stated) for stated in mine[:MOST])


def _example(verdict: VerdictDocument) -> Example:
    reason = str(verdict["reason"])
    shown = open_reason(reason, (str(score["metric"]) for score in verdict.get("scores") or ()))
    return Example(
        trace_id=str(verdict["trace_id"] or verdict["case_id"]),
        reason=label(shown, _REASON),
        composite=verdict["composite"],
        closed_ns=int(verdict["closed_ns"]),
        quoted=label(reason, _REASON) if reason != shown else None,
    )


def _speaks_of(verdict: VerdictDocument, about: Mapping[str, str]) -> bool:
    where = place_of(
        str(verdict["service"] or UNKNOWN_SERVICE),
        str(verdict["environment"] or UNKNOWN_ENVIRONMENT),
        str(verdict["rubric"]),
    )
    if any(about.get(name, value) != value for name, value in where):
        return False
    return "metric" not in about or about["metric"] in verdict["blockers"]
