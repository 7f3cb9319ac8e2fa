"""Metrics: committed results count in the counters of Prometheus; where it is configured, all are pushed over OTLP.

That is for processes that live shorter than a scrape, and where nobody scrapes.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.post import Poster
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.monitor.config.sinks import OtelMetricsSink
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.evaluate.stages import FIGURES, TOOLS
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import run_health
from sidejudge.scoring.status.metric_status import APPLICATION
from sidejudge.scoring.verdict.documents import FiguresDocument
from sidejudge.scoring.verdict.verdict import Verdict

from .dispatcher import DeliveryStatus

if TYPE_CHECKING:
    from prometheus_client import Metric


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


OTEL_METRICS = "otel_metrics"
_HEADERS = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}


class MetricsPush:
    """``push`` sends the values of this moment; a value that was not taken is in the next ones."""

    def __init__(
        self,
        section: OtelMetricsSink,
        collect: Callable[[], Callable[[], Iterable[Metric]]],
        clock_ns: Callable[[], int],
    ) -> None:
        self._collect, self._clock_ns, self._began_ns = collect, clock_ns, clock_ns()
        self._poster = Poster(section.endpoint + "/v1/metrics", section.timeout.seconds)
        self._headers = {**_HEADERS, **section.sent_headers}
        self._instance, self._attributes = str(uuid.uuid4()), _resource_attributes(os.environ)
        self.status = DeliveryStatus(OTEL_METRICS)
        self.every_s = section.every.seconds

    async def push(self) -> None:
        """Send once; a failure is logged when it begins and when it ends."""
        from sidejudge.integrations.otel_events.metrics import metrics_request  # noqa: PLC0415  # only where it is configured

        now_ns, families = self._clock_ns(), self._collect()

        def body() -> bytes:
            return metrics_request(
                families(), version=version("sidejudge"), instance=self._instance, attributes=self._attributes,
                began_ns=self._began_ns, now_ns=now_ns,
            )  # fmt: skip

        try:
            await self._poster.post(await asyncio.to_thread(body), self._headers)
        except DestinationUnreachableError as error:
            self.status.change("retrying", error.reason)
        except RefusedError as error:
            self.status.change("stopped", f"{error.reason}; check sinks.otel_metrics")
        else:
            self.status.last_success_ns = now_ns
            self.status.change("ok")


def _resource_attributes(environ: Mapping[str, str]) -> dict[str, str]:
    """The Pod's attributes from the chart: only ``OTEL_RESOURCE_ATTRIBUTES`` of ``k8s.``."""
    pairs = (pair.partition("=") for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip().startswith("k8s.")}
