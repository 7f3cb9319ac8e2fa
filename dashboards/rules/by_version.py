"""By version: the pass ratio of each version of an application, and its difference from all other traffic.

The window is fixed, a day. The difference has Newcombe's hybrid interval, of Wilson's bounds of both sides at their
effective sample sizes. It holds with 95 % at one look, not at any: repeated looks, or an alert, need the interval of
``sidejudge compare``, which also compares within strata. A version and the rest share the design effect of their
process, because sessions are not counted by version.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED

from .promql import PLACE, bound, fleet
from .recordings import DAY, clustered
from .rule import RecordingRule

_VERSION = f"{PLACE}_version:sidejudge_version"
_NAMED = '{version!~"unknown|__other__"}'
_OF_ALL = "ignoring (version) group_right ()"
_WEIGHT = f"{_VERSION}_verdict_weight:increase{DAY}"
_FAILED = f"{_VERSION}_verdict_failed_weight:increase{DAY}"
_CLUSTERED = f"{_VERSION}_verdict_weight_squared_clustered:increase{DAY}"
_REST_WEIGHT = f"{_VERSION}_rest_verdict_weight:increase{DAY}"
EFFECTIVE = f"{_VERSION}_effective_samples:increase{DAY}"
"""Effective sample size of a version; absent where it had no verdict."""
PASS_RATIO = f"{_VERSION}_pass:ratio_increase{DAY}"
"""Its pass ratio."""
REST_EFFECTIVE = f"{_VERSION}_rest_effective_samples:increase{DAY}"
"""Effective sample size of all other traffic of its service, environment and rubric."""
REST_PASS_RATIO = f"{_VERSION}_rest_pass:ratio_increase{DAY}"
"""The pass ratio of that."""
DIFFERENCE = f"{_VERSION}_pass_difference:ratio_increase{DAY}"
"""The version's pass ratio minus the rest's; absent for traces without a version, and without a rest."""
LOWER = f"{_VERSION}_pass_difference:ratio_lower975_{DAY}"
"""Lower bound of the difference, one-sided 97.5 %: with the upper one 95 %."""
UPPER = f"{_VERSION}_pass_difference:ratio_upper975_{DAY}"
"""Upper bound of it. Below 0, the version is worse."""


def by_version() -> list[RecordingRule]:
    """Ratios and sample sizes of each version and of the rest, and their difference with its bounds."""
    return [
        RecordingRule(_WEIGHT, fleet(f.VERSION_WEIGHT, window=DAY)),
        RecordingRule(_FAILED, fleet(f.VERSION_FAILED_WEIGHT, window=DAY)),
        RecordingRule(_CLUSTERED, clustered(f.VERSION_WEIGHT_SQUARED, DAY, times="* ignoring (version) group_left ()")),
        RecordingRule(EFFECTIVE, f"{_WEIGHT} * {_WEIGHT} / ({_CLUSTERED} > 0)"),
        RecordingRule(PASS_RATIO, f"1 - {_FAILED} / ({_WEIGHT} > 0)"),
        RecordingRule(_REST_WEIGHT, _rest(_WEIGHT)),
        RecordingRule(REST_EFFECTIVE, f"{_REST_WEIGHT} * {_REST_WEIGHT} / (({_rest(_CLUSTERED)}) > 0)"),
        RecordingRule(REST_PASS_RATIO, f"1 - ({_rest(_FAILED)}) / ({_REST_WEIGHT} > 0)"),
        RecordingRule(DIFFERENCE, f"{PASS_RATIO}{_NAMED} - {REST_PASS_RATIO}"),
        RecordingRule(LOWER, f"{DIFFERENCE} - {_reach(PASS_RATIO, EFFECTIVE, REST_PASS_RATIO, REST_EFFECTIVE)}"),
        RecordingRule(UPPER, f"{DIFFERENCE} + {_reach(REST_PASS_RATIO, REST_EFFECTIVE, PASS_RATIO, EFFECTIVE)}"),
    ]


def _rest(record: str) -> str:
    """The sum over all versions of a service, environment and rubric but the version itself."""
    return f"sum without (version) ({record}) - {_OF_ALL} {record}"


def _reach(low: str, n_low: str, high: str, n_high: str) -> str:
    """How far a difference may be from where it is, where one share is as low and the other as high as may be."""
    lowest = bound(low, n_low, upper=False, z=Z_95_TWO_SIDED)
    highest = bound(high, n_high, upper=True, z=Z_95_TWO_SIDED)
    return f"sqrt(\n  ({low} - {lowest}) ^ 2\n  +\n  ({highest} - {high}) ^ 2\n)"
