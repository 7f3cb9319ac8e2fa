"""Section ``sinks``: where verdicts go, besides metrics and the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from sidejudge.scoring.trace.span import Json  # noqa: F401  # pydantic looks here for what JsonMap names

from .langfuse import LangfuseSink
from .section import GIVEN_AS_LIST, DestinationName, FilePath, JsonMap, Section
from .sources import BaseUrl, OwnHeaders, OwnHeaderValue, sent_headers
from .units import PositiveDuration, parse_duration

FileMode: TypeAlias = Annotated[str, StringConstraints(pattern=r"^0?[0-7]{3}$")]
"""Permissions of a file, in octal and in quotes."""


class JsonlSink(Section):
    """Every verdict as a JSON line."""

    path: FilePath
    """file to append to, relative to the working directory"""
    mode: FileMode = "0600"
    """who may read a file that is made, in octal"""


class ParquetSink(Section):
    """Verdicts and outcomes as Parquet files (extra `parquet`), to be kept and read for years.

    Quotations are kept where `api.contents` is `always`, or `loopback` and `path` is a directory of this machine; kinds
    in `evaluators.judge.redact` are replaced in them.
    """

    path: str = Field(min_length=1)
    """directory, relative to the working directory, or `s3://bucket/folder`, `gs://bucket/folder`; options of
    pyarrow.fs follow a `?`. Credentials come from the environment"""
    mode: FileMode = "0600"
    """who may read a file that is made, in octal"""
    partition: Literal["day"] = "day"
    """one folder a day (UTC)"""
    every: PositiveDuration = parse_duration("1m")
    """how long results wait, so that a file holds many"""

    @field_validator("path")
    @classmethod
    def _known_scheme(cls, path: str) -> str:
        scheme, found, _ = path.partition("://")
        if found and scheme not in ("s3", "gs"):
            raise ValueError(f"{scheme}:// is not read here; use a directory, s3:// or gs://")
        return path


class PluginSink(Section):
    """A sink that an installed package brings by its entry point in `sidejudge.sinks`."""

    use: str | None = Field(default=None, min_length=1)
    """name of the entry point (default: this key)"""
    arguments: JsonMap = Field(default_factory=dict)
    """keyword arguments that it is made with"""


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

    endpoint: BaseUrl
    """where to, a Collector or any OTLP/HTTP endpoint: `/v1/traces` and `/v1/logs` are put after it; Langfuse:
    `https://cloud.langfuse.com/api/public/otel`"""
    authorization: OwnHeaderValue | None = None
    """the `Authorization` header, as `${NAME}`; Langfuse: `Basic` and base64 of the keys"""
    headers: OwnHeaders = Field(default_factory=dict)
    """further headers; Langfuse: `x-langfuse-ingestion-version: "4"`"""
    signals: Annotated[tuple[Literal["traces", "logs"], ...], GIVEN_AS_LIST] = Field(
        default=("traces", "logs"), min_length=1
    )
    """`traces`: the requests to the judge; `logs`: the scores, as events (Langfuse takes only traces)"""
    environment: Environment | None = None
    """deployment environment of the monitor's own traces, such as `sidejudge`, to distinguish them in Langfuse"""
    timeout: PositiveDuration = parse_duration("10s")
    """of one request"""

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers, self.authorization)


class OtelMetricsSink(Section):
    """The monitor's metrics, pushed over OTLP/HTTP under the names that Prometheus shows (extra `otel`).

    For processes that live shorter than a scrape, and where nobody scrapes. The last values go when the process ends.
    """

    endpoint: BaseUrl
    """where to, a Collector, Prometheus (`http://prometheus:9090/api/v1/otlp`) or any OTLP/HTTP endpoint: `/v1/metrics`
    is put after it"""
    authorization: OwnHeaderValue | None = None
    """the `Authorization` header, as `${NAME}`"""
    headers: OwnHeaders = Field(default_factory=dict)
    """further headers, as `${NAME}`"""
    every: PositiveDuration = parse_duration("60s")
    """time between two pushes"""
    timeout: PositiveDuration = parse_duration("5s")
    """of one request"""

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers, self.authorization)


class SinksSection(Section):
    """Where verdicts go, besides metrics and the API."""

    jsonl: JsonlSink | None = None
    """append verdicts to a JSON Lines file"""
    langfuse: LangfuseSink | None = None
    """write scores back to Langfuse"""
    otel_events: OtelEventsSink | None = None
    """the judge's own traces, and scores as events, over OTLP"""
    otel_metrics: OtelMetricsSink | None = None
    """push the metrics over OTLP"""
    parquet: ParquetSink | None = None
    """keep verdicts and outcomes as Parquet files"""
    plugins: Mapping[DestinationName, PluginSink] = Field(default_factory=dict)
    """sinks of installed packages, by the name that metrics and logs give them"""

    @field_validator("plugins")
    @classmethod
    def _no_kind(cls, plugins: Mapping[str, PluginSink]) -> Mapping[str, PluginSink]:
        if taken := sorted(plugins.keys() & (cls.model_fields.keys() - {"plugins"})):
            raise ValueError(f"{taken[0]} is a sink that ships; give the plugin another name")
        return plugins
