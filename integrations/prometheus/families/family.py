"""Family: the declaration of one metric family, the labels that there are, and what their values mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge", "histogram", "info"]
Label: TypeAlias = Literal[
    "alert", "severity", "stage", "turn", "connection",
    "code", "destination", "direction", "environment", "fingerprint", "flag", "group", "kind", "level", "like",
    "metric", "model", "outcome", "period", "priority", "python", "queue", "reason", "revision", "rubric", "scenario",
    "selection", "service", "signal", "slice", "state", "status", "tool", "value", "version",
]  # fmt: skip

LABELS: Mapping[Label, str] = MappingProxyType(
    {
        "service": "`service.name` of the trace; `unknown_service` when it names none; capped",
        "environment": "deployment environment of the trace; `unknown` when it names none; capped",
        "rubric": "a rubric of the configuration",
        "metric": "a metric of the rubric, or a limited one such as `latency_p95`",
        "selection": "`random`: drawn by the base rate; `forced`: kept only because a rule on its content demanded it",
        "reason": "why; a closed list",
        "status": "`healthy`, `warning`, `critical`, `insufficient_data` or, of a pass ratio, `no_data`",
        "level": "`warning` or `critical`",
        "like": "`passed` or `failed`: what becomes of traces if they are like those that were answered",
        "alert": "a condition that is watched; a closed list, see `/v1/alerts`",
        "severity": "of an alert: `critical`, `warning` or `info`",
        "stage": "of an alert: `pending` (not for long enough), `firing`, `unknown` (it fired; now data is missing)",
        "turn": "a change of an alert: `firing`, `unknown`, `resolved` or `expired` (unknown for a day)",
        "scenario": "a scenario of the configuration; capped",
        "kind": "what was violated, capped; or what is suspected, a closed list",
        "outcome": "what came of it; a closed list",
        "code": "HTTP status of the answer, or its class (`2xx`)",
        "signal": "`traces`, `logs`, `metrics`, or `other` for paths that are passed through",
        "queue": "a queue of the monitor; a closed list",
        "model": "a judge of the configuration; of an application the model that its spans name; capped",
        "direction": "`input`: prompts; `output`: answers",
        "flag": "`contradiction`: it contradicts what is decidable; `disagreement`: the members of a panel differ",
        "slice": "by what traffic is divided: `version`, `prompt`, `model`, `name` or `metadata.KEY` (`alerts.slices`)",
        "value": "a value of that, such as a version or a tenant; the worst few of each service",
        "tool": "a tool that runs called; capped",
        "state": "of a circuit breaker: `closed` (calls pass), `open` (none does), `half_open` (one does, as a probe)",
        "period": "`hour` or `day`, UTC",
        "priority": "`high`, `normal` or `low`, as the route sets it",
        "connection": "a destination, a source or a place of references of the configuration",
        "destination": "where verdicts and notices go; a closed list",
        "version": "sidejudge's version; of an application its `service.version`, `unknown` when it names none; capped",
        "revision": "commit that this build was made from; `unknown` when it was not recorded",
        "python": "version of the Python interpreter",
        "group": "first digits of the SHA-256 of a group of failures; the service page shows its words",
        "fingerprint": "first digits of the SHA-256 of the configuration in force",
    }
)
"""What each label means. None ever holds an id, a user, a prompt or other free text."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One metric family. ``name`` is as it is scraped (with ``_total``); ``note`` is for the reference page only."""

    name: str
    help: str
    _: KW_ONLY
    kind: Kind
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    note: str = ""


counter = partial(Family, kind="counter")
gauge = partial(Family, kind="gauge")
histogram = partial(Family, kind="histogram")
info = partial(Family, kind="info")
"""A family whose labels are what it says; its value is always 1."""

WHO: tuple[Label, ...] = ("service", "environment", "rubric")
PROCESS = "This process's window; do not average over processes, sum the verdict counters instead."
