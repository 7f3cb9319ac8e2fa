"""Exposition: a registry as text, in the format that the scraper requests.

OpenMetrics 1.0 carries exemplars, the classic text format does not. The library would also claim OpenMetrics 2.0 when
requested, whose rules its text does not follow; so the choice is made here, among formats that are fully supported.
"""

from __future__ import annotations

from typing import cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_OPENMETRICS_VERSIONS = ("", "0.0.1", "1.0.0")
_MAX_ACCEPT = 4096


def expose(registry: CollectorRegistry, accept: str = "") -> tuple[bytes, str]:
    """The registry's metrics and their content type, negotiated from an HTTP ``Accept`` header."""
    if wants_openmetrics(accept):
        return cast("bytes", generate_openmetrics(registry)), OPENMETRICS  # type: ignore[no-untyped-call]  # the library's
    return generate_latest(registry), TEXT


def wants_openmetrics(accept: str) -> bool:
    """Whether a scraper that accepts this is sent OpenMetrics."""
    openmetrics = text = 0.0
    for entry in accept[:_MAX_ACCEPT].lower().split(","):
        name, *parts = (part.strip() for part in entry.split(";"))
        parameters = {key.strip(): value.strip(' "') for key, _, value in (part.partition("=") for part in parts)}
        quality = _quality(parameters.get("q", "1"))
        version = parameters.get("version", "")
        if name == "application/openmetrics-text" and version in _OPENMETRICS_VERSIONS:
            openmetrics = max(openmetrics, quality)
        elif name in ("text/plain", "text/*"):
            text = max(text, quality)
    return openmetrics > 0 and openmetrics >= text


def _quality(value: str) -> float:
    try:
        quality = float(value)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0
