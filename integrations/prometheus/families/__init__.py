"""Families: every Prometheus metric that sidejudge exports, declared once, by subject.

The exporter builds its collectors from these declarations, the reference page is generated from them, and rules and
dashboards may only name what stands here. Rules of naming: https://prometheus.io/docs/practices/naming/.
"""

# ruff: noqa: F403  # each subject gives all that it declares; FAMILIES lists it
from __future__ import annotations

from . import intake, judge, metrics, people, process, status, traces
from .family import LABELS as LABELS
from .family import Family as Family
from .family import Label as Label
from .intake import *
from .judge import *
from .metrics import *
from .people import *
from .process import *
from .status import *
from .traces import *

_SUBJECTS = (traces, status, people, metrics, intake, judge, process)

FAMILIES = tuple(each for subject in _SUBJECTS for each in vars(subject).values() if isinstance(each, Family))
"""All families in order of declaration, as on the reference page."""
