"""Rule: recording and alerting rules as values, in groups that Prometheus evaluates in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sidejudge.scoring.alerts.condition import Severity, alert_name
from sidejudge.scoring.notices.notice import runbook_link

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_NS = 10**9


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """A series that is computed once an interval. ``labels`` are added to the results of ``expr``."""

    record: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As Prometheus reads it."""
        return {"record": self.record, "expr": self.expr, **({"labels": dict(self.labels)} if self.labels else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingRule:
    """An alert. ``stated`` is a template of Prometheus that puts labels and value into words.

    ``id`` is its condition's id, or its own where only Prometheus computes it; ``title``, ``when`` and ``meaning`` are
    for people, as in a condition. ``muted_by``: ids of alerts that explain it. ``labels`` are added to the severity.
    ``stated_alone`` replaces ``stated`` where a template cannot query, as in Grafana; empty where both are equal.
    """

    id: str
    severity: Severity
    title: str
    when: str
    meaning: str
    expr: str
    stated: str
    for_ns: int = 0
    keep_ns: int = 0
    muted_by: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    stated_alone: str = ""

    @property
    def name(self) -> str:
        """Its name in Prometheus: ``SidejudgePassRateCritical``."""
        return alert_name(self.id)

    @property
    def runbook(self) -> str:
        """The slug of its runbook, by the rule of ``Condition.runbook``."""
        return self.id.replace("_", "-")

    def to_json(self, runbooks: str | None = None) -> dict[str, object]:
        """As Prometheus reads it; ``runbooks`` says where runbooks lie (``runbook_link``), where that is known."""
        return {
            "alert": self.name,
            "expr": self.expr,
            **({"for": prometheus_duration(self.for_ns)} if self.for_ns else {}),
            **({"keep_firing_for": prometheus_duration(self.keep_ns)} if self.keep_ns else {}),
            "labels": {"severity": self.severity.value, **self.labels},
            "annotations": self.annotations(self.stated, runbooks),
        }

    def annotations(self, stated: str, runbooks: str | None = None) -> dict[str, str]:
        """Its text for people, with this template for the measured value."""
        return {
            "summary": f"{self.title}.",
            "description": f"{stated} {_sentence(self.meaning)}",
            **({"runbook_url": runbook_link(runbooks, self.runbook)} if runbooks else {"runbook": self.runbook}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that are evaluated one after the other, at the same moment."""

    name: str
    interval_ns: int
    rules: tuple[RecordingRule | AlertingRule, ...]

    def to_json(self, runbooks: str | None = None) -> dict[str, object]:
        """As Prometheus reads it."""
        rules = [rule.to_json(runbooks) if isinstance(rule, AlertingRule) else rule.to_json() for rule in self.rules]
        return {"name": self.name, "interval": prometheus_duration(self.interval_ns), "rules": rules}


def prometheus_duration(ns: int) -> str:
    """``90 s`` → ``1m30s``: a time as Prometheus writes it, in whole seconds, at least one."""
    left, text = max(1, round(ns / _NS)), ""
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        text += f"{count}{unit}" if count else ""
    return text


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
