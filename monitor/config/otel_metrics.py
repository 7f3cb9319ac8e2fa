"""The section of the configuration on where the monitor's metrics are pushed to."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from .forward import BaseUrl
from .section import Section
from .sources import Secret, sent_headers
from .units import PositiveDuration, parse_duration


class OtelMetricsSink(Section):
    """The monitor's metrics, pushed over OTLP/HTTP under the names that Prometheus shows (extra `otel`).

    For processes that live shorter than a scrape, and where nobody scrapes. The last values go when the process ends.
    """

    endpoint: BaseUrl = Field(
        description="where to, a Collector, Prometheus (`http://prometheus:9090/api/v1/otlp`) or any OTLP/HTTP "
        "endpoint: `/v1/metrics` is put after it"
    )
    authorization: Secret | None = Field(default=None, description="the `Authorization` header, as `${NAME}`")
    headers: Mapping[str, Secret] = Field(default_factory=dict, description="further headers, as `${NAME}`")
    every: PositiveDuration = Field(default=parse_duration("60s"), description="time between two pushes")
    timeout: PositiveDuration = Field(default=parse_duration("5s"), description="of one request")

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers, self.authorization)
