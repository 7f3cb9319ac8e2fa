"""The paths that OTLP exporters send to: the protocol's own, and those of Langfuse."""

from __future__ import annotations

from typing import Final

from .response import Signal

LANGFUSE: Final = "/api/public/otel"
"""What Langfuse puts before the protocol's own paths."""
SIGNALS: Final[dict[str, Signal]] = {
    "/v1/traces": "traces",
    "/v1/logs": "logs",
    "/v1/metrics": "metrics",
    f"{LANGFUSE}/v1/traces": "traces",
    f"{LANGFUSE}/v1/logs": "logs",
    f"{LANGFUSE}/v1/metrics": "metrics",
}
"""The signal that is sent to a path."""


def signal_of(path: str) -> Signal | None:
    """The signal that an exporter sends to this path, if any does."""
    return SIGNALS.get(path.rstrip("/"))
