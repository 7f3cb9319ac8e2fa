"""The paths that OTLP exporters send to: the protocol's own and Langfuse's."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from .response import Signal

LANGFUSE: Final = "/api/public/otel"
"""Langfuse's prefix for the protocol's own paths."""
SIGNALS: Final[dict[str, Signal]] = {
    "/v1/traces": "traces",
    "/v1/logs": "logs",
    "/v1/metrics": "metrics",
    f"{LANGFUSE}/v1/traces": "traces",
    f"{LANGFUSE}/v1/logs": "logs",
    f"{LANGFUSE}/v1/metrics": "metrics",
}
"""The signal that is sent to a path."""


_NO_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})").search
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]").search
_DECODED: Final = 3
"""How often a path is decoded: servers behind servers each may do it once."""


def is_unambiguous(path: str) -> bool:
    """Whether a path, still percent-encoded, keeps its meaning for any number of decodings.

    It may not hold ``.`` or ``..`` as a segment, behind a slash or a backslash, with parameters or without. Nor may it
    hold control characters or incomplete escapes.
    """
    if _NO_ESCAPE(path):
        return False
    for _ in range(_DECODED):
        path = unquote(path, "latin-1")
        segments = path.replace("\\", "/").split("/")
        if _CONTROL(path) or any(segment.partition(";")[0] in (".", "..") for segment in segments):
            return False
    return True


def signal_of(path: str) -> Signal | None:
    """The signal that an exporter sends to this path, if any does."""
    return SIGNALS.get(path.rstrip("/"))
