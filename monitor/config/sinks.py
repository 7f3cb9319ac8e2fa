"""Section ``sinks``: where verdicts go, besides metrics and the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, field_validator

from sidejudge.scoring.trace.span import Json  # noqa: F401  # pydantic looks here for what JsonMap names

from .langfuse import LangfuseSink
from .otel_events import OtelEventsSink, OtelMetricsSink
from .section import DestinationName, FilePath, JsonMap, Section
from .units import PositiveDuration, parse_duration

FileMode: TypeAlias = Annotated[str, StringConstraints(pattern=r"^0?[0-7]{3}$")]
"""Permissions of a file, in octal and in quotes."""


class JsonlSink(Section):
    """Every verdict as a JSON line."""

    path: FilePath = Field(description="file to append to, relative to the working directory")
    mode: FileMode = Field(default="0600", description="who may read a file that is made, in octal")


class ParquetSink(Section):
    """Verdicts and outcomes as Parquet files (extra `parquet`), to be kept and read for years.

    Quotations are kept where `api.contents` is `always`, or `loopback` and `path` a directory of this machine; what
    `evaluators.judge.redact` names is replaced in them.
    """

    path: str = Field(
        min_length=1,
        description="directory, relative to the working directory, or `s3://bucket/folder`, `gs://bucket/folder`; "
        "options of pyarrow.fs follow a `?`. Credentials come from the environment",
    )
    mode: FileMode = Field(default="0600", description="who may read a file that is made, in octal")
    partition: Literal["day"] = Field(default="day", description="one folder a day (UTC)")
    every: PositiveDuration = Field(
        default=parse_duration("1m"), description="how long results wait, so that a file holds many"
    )

    @field_validator("path")
    @classmethod
    def _known_scheme(cls, path: str) -> str:
        scheme, found, _ = path.partition("://")
        if found and scheme not in ("s3", "gs"):
            raise ValueError(f"{scheme}:// is not read here; use a directory, s3:// or gs://")
        return path


class PluginSink(Section):
    """A sink that an installed package brings by its entry point in `sidejudge.sinks`."""

    use: str | None = Field(default=None, min_length=1, description="name of the entry point (default: this key)")
    arguments: JsonMap = Field(default_factory=dict, description="keyword arguments that it is made with")


class SinksSection(Section):
    """Where verdicts go, besides metrics and the API."""

    jsonl: JsonlSink | None = Field(default=None, description="append verdicts to a JSON Lines file")
    langfuse: LangfuseSink | None = Field(default=None, description="write scores back to Langfuse")
    otel_events: OtelEventsSink | None = Field(
        default=None, description="the judge's own traces, and scores as events, over OTLP"
    )
    otel_metrics: OtelMetricsSink | None = Field(default=None, description="push the metrics over OTLP")
    parquet: ParquetSink | None = Field(default=None, description="keep verdicts and outcomes as Parquet files")
    plugins: Mapping[DestinationName, PluginSink] = Field(
        default_factory=dict, description="sinks of installed packages, by the name that metrics and logs give them"
    )

    @field_validator("plugins")
    @classmethod
    def _no_kind(cls, plugins: Mapping[str, PluginSink]) -> Mapping[str, PluginSink]:
        if taken := sorted(plugins.keys() & (cls.model_fields.keys() - {"plugins"})):
            raise ValueError(f"{taken[0]} is a sink that ships; give the plugin another name")
        return plugins
