"""Thin traffic: where a configuration asks for more verdicts than there are, before anybody waits for a status."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.trends import read_courses, read_first
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.units import Duration
from sidejudge.scoring.alerts.declaration import DAY_NS, HOUR_NS, MINUTE_NS, Declaration
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE

from .build import declaration

_OFTEN = 0.2
"""Share of the time without an answer that is worth a warning."""
_SHOWN = 3


def thin_traffic(config: Config) -> Iterator[tuple[str, str]]:
    """(cause, remedy): too little for the windows, by the configuration or by the last day of the store."""
    declared = declaration(config)
    if declared.policy.mode == "sequence":
        return
    reach_ns = declared.longest_ns if declared.policy.mode == "adaptive" else declared.window_ns
    needed = declared.policy.min_samples / (reach_ns / HOUR_NS)
    key = "alerts.longest_window" if declared.policy.mode == "adaptive" else "alerts.window"
    sampling = config.sampling
    if sampling.rate is None and not sampling.rules and sampling.traces_per_hour < needed:
        cause = (
            f"sampling.traces_per_hour: {sampling.traces_per_hour} verdicts an hour never make alerts.min_samples "
            f"({declared.policy.min_samples:g}) within {key} ({Duration(reach_ns)}): every status is insufficient_data"
        )
        yield cause, _remedy(declared, float(sampling.traces_per_hour))
    thin = sorted(_thin(config, needed))
    for per_hour, name in thin[:_SHOWN]:
        more = f", and {len(thin) - _SHOWN} more" if len(thin) > _SHOWN and name == thin[_SHOWN - 1][1] else ""
        cause = (
            f"alerts: {name} had {per_hour:.3g} verdicts an hour in the last day; mode {declared.policy.mode} needs "
            f"{needed:.3g} an hour, so the status is mostly insufficient_data{more}"
        )
        yield cause, _remedy(declared, per_hour)


def _thin(config: Config, needed: float) -> Iterator[tuple[float, str]]:
    if not config.store.path.is_file():
        return
    now_ns = time.time_ns()
    try:
        sums, _ = read_courses(config.store.path, now_ns - DAY_NS, now_ns)
        first_ns = read_first(config.store.path, now_ns - DAY_NS)
    except StoreError:
        return  # the check of the store names what is wrong with it
    # A store that is younger than a day is divided by its age: a minute's traffic is not that of a day.
    hours = min(24.0, max(now_ns - (first_ns or now_ns), MINUTE_NS) / HOUR_NS)
    for each in sums:
        per_hour = (each.passed + each.failed) / hours
        if 0 < per_hour < needed * (1 + _OFTEN):
            yield per_hour, f"{each.service or UNKNOWN_SERVICE} under {each.rubric}"


def _remedy(declared: Declaration, per_hour: float) -> str:
    setting = "raise alerts.longest_window" if declared.policy.mode == "adaptive" else "set alerts.mode: adaptive"
    return f"{setting}, or sample more; 'sidejudge plan --rate {per_hour:.3g}/h' shows what to expect"
