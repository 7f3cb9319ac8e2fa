"""Failure metrics: groups of failures as gauges, of which there are few however many groups there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.service_status import OTHER

from . import families as f
from .collect import Series

MOST: Final = 20
"""Groups that have a series of their own; the others share one for each rubric."""


def failure_gauges(groups: Sequence[FailureGroup], label: Callable[[str, str], str]) -> Iterator[Series]:
    """The gauges of the last day's groups, the largest first; ``label`` makes a value of a label fit to be one."""
    current = [group for group in groups if group.count]
    for group in current[:MOST]:
        yield f.FAILURE_GROUP_VERDICTS, _labels(group, label), float(group.count)
    others = Counter[str]()
    for group in current[MOST:]:
        others[label("rubric", group.rubric)] += group.count
    for rubric, count in others.items():
        yield f.FAILURE_GROUP_VERDICTS, (rubric, OTHER, OTHER), float(count)


def _labels(group: FailureGroup, label: Callable[[str, str], str]) -> tuple[str, str, str]:
    return label("rubric", group.rubric), label("metric", group.metric), group.group
