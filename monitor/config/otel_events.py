"""The sections of the configuration on where the monitor's own traces, events and metrics go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from .forward import BaseUrl
from .section import GIVEN_AS_LIST, Section
from .sources import Secret, sent_headers
from .units import PositiveDuration, parse_duration

_ENVIRONMENT = re.compile(r"[a-z0-9_-]{1,40}")


def _is_environment(name: str) -> str:
    if not _ENVIRONMENT.fullmatch(name) or name.startswith("langfuse"):
        raise ValueError(f"must be 1 to 40 of a-z, 0-9, - and _, and not begin with langfuse, got {name!r}")
    return name


Environment: TypeAlias = Annotated[str, AfterValidator(_is_environment)]


class OtelEventsSink(Section):
    """The judge's calls as OpenTelemetry spans, and each score as a `gen_ai.evaluation.result` event (extra `otel`).

    Over OTLP/HTTP, marked so that no monitor judges it. Neither prompts nor answers are sent; an explanation may quote
    a trace.
    """

    endpoint: BaseUrl = Field(
        description="where to, a Collector or any OTLP/HTTP endpoint: `/v1/traces` and `/v1/logs` are put after it; "
        "Langfuse: `https://cloud.langfuse.com/api/public/otel`"
    )
    authorization: Secret | None = Field(
        default=None, description="the `Authorization` header, as `${NAME}`; Langfuse: `Basic` and base64 of the keys"
    )
    headers: Mapping[str, Secret] = Field(
        default_factory=dict, description='further headers; Langfuse: `x-langfuse-ingestion-version: "4"`'
    )
    signals: Annotated[tuple[Literal["traces", "logs"], ...], GIVEN_AS_LIST] = Field(
        default=("traces", "logs"),
        min_length=1,
        description="`traces`: the requests to the judge; `logs`: the scores, as events (Langfuse takes only traces)",
    )
    environment: Environment | None = Field(
        default=None,
        description="deployment environment of the monitor's own traces, such as `sidejudge`; it keeps them apart in "
        "Langfuse",
    )
    timeout: PositiveDuration = Field(default=parse_duration("10s"), description="of one request")

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers, self.authorization)


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
