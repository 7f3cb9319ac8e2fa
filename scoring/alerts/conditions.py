"""Conditions: the whole list of what is watched under a declaration."""

from __future__ import annotations

from .condition import Condition
from .declaration import Declaration
from .monitoring import monitoring
from .quality import metric_conditions, quality


def conditions(declared: Declaration) -> tuple[Condition, ...]:
    """Every condition, those on quality first. Ids are unique and never change: dashboards and runbooks name them."""
    return (*quality(declared), *metric_conditions(declared), *monitoring(declared))
