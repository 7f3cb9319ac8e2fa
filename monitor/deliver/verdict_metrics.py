"""Committed results come in, counters of Prometheus go up."""

from __future__ import annotations

from collections.abc import Mapping

from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.evaluate.stages import FIGURES, TOOLS
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import run_health
from sidejudge.scoring.status.metric_status import APPLICATION
from sidejudge.scoring.verdict.documents import FiguresDocument
from sidejudge.scoring.verdict.verdict import Verdict


class VerdictMetrics:
    """Counts verdicts. ``committed`` is a listener of the commit."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def committed(self, result: TraceResult) -> None:
        """Count a result: the trace once, its first verdicts once, revisions as such."""
        if result.verdicts and result.revision == 1 and not result.session:
            self._exporter.trace_kept(result.service, result.verdicts[0].selection)
        if result.revision == 1 and isinstance(figures := result.details.get(FIGURES), Mapping):
            self._application(result, figures)
        release = result.details.get("release")
        for verdict in result.changed:
            self._exporter.verdict(verdict, release if isinstance(release, str) else None)
            if verdict.revision == 1:
                for kind in verdict.violations:
                    self._exporter.workflow_violation(result.scenario or "inline", kind, verdict.trace_id)
            if verdict.rubric == run_health.RUBRIC.id and verdict.revision == 1 and verdict.selection == "random":
                self._run(result, verdict)
        if result.lag_s is not None:
            self._exporter.evaluation_lag(result.service, result.lag_s)

    def _application(self, result: TraceResult, figures: FiguresDocument) -> None:
        sampling = result.details.get("sampling", {})
        if not (probability := sampling.get("probability")):
            return
        named = result.details.get("environment")
        environment, weight = named if isinstance(named, str) else None, 1.0 / probability
        self._exporter.limits.values(result.service, environment, APPLICATION, figures["values"], weight)
        self._exporter.application.trace(
            result.service, environment, figures["version"], weight=weight, latency_s=figures["values"].get("latency"),
            models=figures["models"], drawn=sampling.get("selection") == "random", trace_id=result.trace_id.hex(),
        )  # fmt: skip

    def _run(self, result: TraceResult, verdict: Verdict) -> None:
        """Traces that a rule kept for their content are left out, so that shares hold for all traffic."""
        tools = result.details.get(TOOLS)
        self._exporter.runs.run(
            verdict.service,
            {each.metric: each.result.value < 1.0 for each in verdict.scores if isinstance(each.result, Scored)},
            tools if isinstance(tools, dict) else {},
        )
