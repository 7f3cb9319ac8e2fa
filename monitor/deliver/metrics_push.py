"""Pushes the monitor's metrics over OTLP: for processes that live shorter than a scrape, and where nobody scrapes."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.post import Poster
from sidejudge.monitor.config.sinks import OtelMetricsSink

from .dispatcher import DeliveryStatus

if TYPE_CHECKING:
    from prometheus_client import Metric

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
