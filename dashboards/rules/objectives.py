"""Objectives: the pass rate of each rubric as a service level objective, for programs that track such.

The objective is the rubric's warning threshold, over 30 days, as that of the alerts on the burnt budget. Their own
alerts are switched off: the generated rules know sample sizes and minimum failures, and one incident is one page. The
indicator is made of weighted counters, so uneven sampling does not bend it; it is the pass rate as judged, also where
``alerts.corrected`` moves thresholds.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import yaml

import sidejudge.integrations.prometheus.families as f
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.lexical.shown_text import clean

DAYS: Final = 30
_LABELS: Final = {"app.kubernetes.io/name": "sidejudge"}
_ALL: Final = "sidejudge"
_Object: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The share of a service's traffic that should pass a rubric. ``service`` None: of all services.

    ``service`` is the name that spans give it; series have it made fit for a label.
    """

    service: str | None
    rubric: str
    target: float

    @property
    def name(self) -> str:
        """A name that objects of Kubernetes may have, of this service and rubric alone."""
        return ".".join(_slug(part) for part in (self.service, self.rubric) if part)

    @property
    def about(self) -> str:
        """A sentence about it."""
        of = f"the traffic of {clean(self.service)}" if self.service else "all traffic"
        return f"{self.target:.6g} of {of} passes the rubric {self.rubric}, as judged; the warning threshold."

    def counter(self, family: f.Family) -> str:
        """The series of one of its counters."""
        chosen = {"service": clean(self.service or ""), "rubric": self.rubric}
        # Sloth reads two braces as the beginning of a variable.
        stated = {k: json.dumps(v, ensure_ascii=False).replace("{{", r"\x7b\x7b") for k, v in chosen.items() if v}
        return f"{family.name}{{{','.join(f'{k}={v}' for k, v in stated.items())}}}"


def objectives(declared: Declaration, rubrics: Iterable[str], services: Sequence[str] = ()) -> tuple[Objective, ...]:
    """One for each service and rubric; without services one for each rubric, of all services together.

    A rubric whose warning threshold is 1 has no budget of failures, and so no objective.
    """
    return tuple(
        Objective(service=service, rubric=rubric, target=target)
        for service in services or (None,)
        for rubric in rubrics
        if (target := declared.policy_of(rubric).thresholds.warning) < 1
    )


def openslo(found: Sequence[Objective]) -> list[_Object]:
    """Objects of OpenSLO v1 (https://github.com/OpenSLO/OpenSLO): the services, and an SLO with its indicator each."""
    services = dict.fromkeys(each.service for each in found)
    return [
        *(
            _object(
                "openslo/v1",
                "Service",
                _slug(service or _ALL),
                {"description": f"Traces of {clean(service or 'all')}."},
            )
            for service in services
        ),
        *(_object("openslo/v1", "SLO", each.name, _openslo(each)) for each in found),
    ]


def sloth(found: Sequence[Objective]) -> list[_Object]:
    """Objects of Sloth's operator (https://sloth.dev), one a service; ``sloth generate`` reads them too."""
    services = dict.fromkeys(each.service for each in found)
    return [
        _object(
            "sloth.slok.dev/v1", "PrometheusServiceLevel", _slug(service or _ALL),
            {
                "service": _slug(service or _ALL),
                "slos": [_sloth(each) for each in found if each.service == service],
            },
        )
        for service in services
    ]  # fmt: skip


def pyrra(found: Sequence[Objective]) -> list[_Object]:
    """Objects of Pyrra (https://github.com/pyrra-dev/pyrra), each by service and environment."""
    return [_object("pyrra.dev/v1alpha1", "ServiceLevelObjective", each.name, _pyrra(each)) for each in found]


FORMS: Final[Mapping[str, Callable[[Sequence[Objective]], list[_Object]]]] = {
    "openslo": openslo, "sloth": sloth, "pyrra": pyrra,
}  # fmt: skip


def written_objectives(form: str, found: Sequence[Objective]) -> str:
    """The objects as YAML documents."""
    return yaml.safe_dump_all(FORMS[form](found), sort_keys=False, width=1000, allow_unicode=True, explicit_start=True)


def _openslo(each: Objective) -> _Object:
    def source(family: f.Family) -> _Object:
        return {"metricSource": {"type": "Prometheus", "spec": {"query": f"sum({each.counter(family)})"}}}

    ratio = {"counter": True, "bad": source(f.VERDICT_FAILED_WEIGHT), "total": source(f.VERDICT_WEIGHT)}
    return {
        "description": each.about, "service": _slug(each.service or _ALL),
        "indicator": {"metadata": {"name": each.name}, "spec": {"ratioMetric": ratio}},
        "timeWindow": [{"duration": f"{DAYS}d", "isRolling": True}], "budgetingMethod": "Occurrences",
        "objectives": [{"displayName": "Pass rate", "target": each.target}],
    }  # fmt: skip


def _sloth(each: Objective) -> _Object:
    def increased(family: f.Family) -> str:
        return f"sum(increase({each.counter(family)}[{{{{.window}}}}]))"

    return {
        "name": _slug(each.rubric), "objective": _percent(each.target), "description": each.about,
        "sli": {
            "events": {"errorQuery": increased(f.VERDICT_FAILED_WEIGHT), "totalQuery": increased(f.VERDICT_WEIGHT)}
        },
        "alerting": {
            "name": "SidejudgeErrorBudgetBurn", "pageAlert": {"disable": True}, "ticketAlert": {"disable": True},
        },
    }  # fmt: skip


def _pyrra(each: Objective) -> _Object:
    ratio = {
        "errors": {"metric": each.counter(f.VERDICT_FAILED_WEIGHT)},
        "total": {"metric": each.counter(f.VERDICT_WEIGHT)},
        "grouping": ["service", "environment"],
    }  # fmt: skip
    return {
        "target": f"{_percent(each.target):g}", "window": f"{DAYS}d", "description": each.about,
        "indicator": {"ratio": ratio}, "alerting": {"burnrates": False, "absent": False},
    }  # fmt: skip


def _object(version: str, kind: str, name: str, spec: _Object) -> _Object:
    # OpenSLO's labels have rules of their own, and nothing selects by them.
    labels = {} if version.startswith("openslo") else {"labels": dict(_LABELS)}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **labels}, "spec": spec}


def _percent(share: float) -> float:
    return float(f"{100 * share:.10g}")


def _slug(text: str) -> str:
    """A DNS label. A name that needs more changes than ``_`` gets a digest, to stay distinct."""
    plain = text.replace("_", "-")
    made = re.sub(r"[^a-z0-9-]+", "-", plain.lower()).strip("-")
    if made == plain and len(made) <= 63:
        return made
    return f"{made[:54].strip('-') or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
