"""A scenario: what Prometheus is given, which rules are tried on it, and what must come out; as promtool reads it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sidejudge.scoring.statistics.interval import Z_95_ONE_SIDED, Interval, wilson, wilson_pair

PODS = ("a", "b")
SITE = {"cluster": "c1", "namespace": "ai", "job": "sidejudge"}
PLACE = {**SITE, "service": "shop", "environment": "prod", "rubric": "qa"}


def seconds(duration: str) -> int:
    """A duration of Prometheus, as ``1d2h30m``."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([dhms])", duration))


def labelled(name: str, labels: Mapping[str, str]) -> str:
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def target(pod: str) -> dict[str, str]:
    """The labels that tell processes apart; all of them differ."""
    return {"instance": f"{pod}:1", "pod": pod, "container": f"c{pod}", "endpoint": f"e{pod}", "node": f"n{pod}"}


def constant(name: str, labels: Mapping[str, str], value: float, steps: int = 210) -> dict[str, str]:
    return {labelled(name, labels): f"{value:g}x{steps}"}


def points(name: str, labels: Mapping[str, str], values: Iterable[float | None]) -> dict[str, str]:
    """A series sample by sample; ``None`` is a missed scrape."""
    return {labelled(name, labels): " ".join("_" if value is None else f"{value:.12g}" for value in values)}


def counted(name: str, labels: Mapping[str, str], growth: Sequence[float]) -> dict[str, str]:
    """A counter that begins at 0 and grows by ``growth``, one sample each."""
    return points(name, labels, (0, *accumulate(growth)))


def on_both_pods(name: str, labels: Mapping[str, str], growth: Sequence[float]) -> dict[str, str]:
    """A counter whose growth is shared by two pods, unevenly."""
    return {
        **counted(name, {**labels, **target("a")}, [each * 0.75 for each in growth]),
        **counted(name, {**labels, **target("b")}, [each * 0.25 for each in growth]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """At a time, an expression answers one value, or nothing (``None``)."""

    at: str
    expr: str
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """``under`` names the rules it tries, by record or alert; series that are given are not recorded."""

    name: str
    under: tuple[str, ...]
    given: Mapping[str, str]
    checks: tuple[Check, ...]
    step: str = "1m"

    @property
    def series(self) -> set[str]:
        """The names of what is given."""
        return {key.partition("{")[0] for key in self.given}

    @property
    def cost(self) -> int:
        """Roughly what it takes to play it: how often its rules are tried, and the samples that it is given."""
        looks = max(seconds(check.at) for check in self.checks) // seconds(self.step)
        return (100 * looks + sum(map(len, self.given.values()))) * len(self.under)

    def document(self, rule_file: str) -> dict[str, Any]:
        """The file for ``promtool test rules``."""
        return {
            "rule_files": [rule_file],
            "evaluation_interval": self.step,
            "tests": [
                {
                    "interval": self.step,
                    "input_series": [{"series": key, "values": value} for key, value in self.given.items()],
                    "promql_expr_test": [
                        {
                            "expr": check.expr,
                            "eval_time": check.at,
                            "exp_samples": [] if check.value is None else [{"labels": "{}", "value": check.value}],
                        }
                        for check in self.checks
                    ],
                }
            ],
        }

    def needs(self, rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The rules under test and those that they read, without what is given."""
        return needed(rules, self.under, self.series)


def needed(
    rules: Sequence[Mapping[str, Any]], under: Iterable[str], given: Container[str] = ()
) -> list[Mapping[str, Any]]:
    """The rules of these names and those that they read, without what is given, in their order."""
    wanted, taken = set(under), set[str]()
    while wanted - taken:
        name = (wanted - taken).pop()
        taken.add(name)
        for rule in rules:
            if name in {rule.get("record"), rule.get("alert")}:
                wanted |= {read for read in re.findall(r"\w+(?::\w+)+", rule["expr"]) if read not in given}
    return [rule for rule in rules if rule.get("record", rule.get("alert")) in wanted]


def firing(alert: str, **labels: str) -> str:
    """How many alerts of this name fire, without labels that they are not to have."""
    wanted = {"alertname": alert, "alertstate": "firing", "stage": "", "state": "", **labels}
    return f"count({labelled('ALERTS', wanted)})"


def number(series: str, **labels: str) -> str:
    """A recorded value without its labels, to six digits after the point."""
    return f"round(max({labelled(series, labels)}), 1e-6)"


def fires(alert: str, at: str, **labels: str) -> Check:
    return Check(at=at, expr=firing(alert, **labels), value=1)


def silent(alert: str, at: str, **labels: str) -> Check:
    return Check(at=at, expr=firing(alert, **labels), value=None)


def is_number(series: str, at: str, value: float | None, **labels: str) -> Check:
    return Check(at=at, expr=number(series, **labels), value=None if value is None else round(value, 6))


WORKFLOW = {**PLACE, "rubric": "workflow"}
RUBRIC = {**SITE, "rubric": "qa"}
SERVICE = {**SITE, "service": "shop", "rubric": "qa"}
METRIC = {**PLACE, "metric": "accuracy"}
THRESHOLDS = {
    **constant("rubric_level:sidejudge_pass_ratio_threshold:max", {**RUBRIC, "level": "warning"}, 0.85),
    **constant("rubric_level:sidejudge_pass_ratio_threshold:max", {**RUBRIC, "level": "critical"}, 0.70),
}


def limit_of(id_: str, value: float) -> dict[str, str]:
    labels = {**SITE, "alert": id_}
    return {
        **constant("sidejudge_alert_limit", {**labels, **target("a")}, value),
        **constant("sidejudge_alert_limit", {**labels, **target("b")}, value * 0.1),
    }


def shown(share: float, n: float) -> Interval:
    """The interval of a pass ratio as the process computes it."""
    reported = wilson_pair(share * n, n)
    assert reported is not None
    return reported


def lower_bound(share: float, n: float) -> float:
    """The bound as the process computes it."""
    reported = wilson(share * n, n, Z_95_ONE_SIDED)
    assert reported is not None
    return reported.lower


def upper_bound(share: float, n: float, z: float = Z_95_ONE_SIDED) -> float:
    reported = wilson(share * n, n, z)
    assert reported is not None
    return reported.upper
