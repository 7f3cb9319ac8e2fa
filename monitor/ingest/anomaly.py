"""Anomaly: a property of the traffic that makes verdicts fewer, or other, than the configuration asks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AnomalyKind(StrEnum):
    """The kinds of anomalies of the traffic."""

    SKEWED_SAMPLING = "skewed_sampling"
    """The randomness of trace ids is not uniform: the sample is not the share that it is taken for."""
    SPLIT_TRACES = "split_traces"
    """Spans of one trace arrive in different places, or are lost: what arrives here are fragments."""
    ROOTLESS_TRACES = "rootless_traces"
    """Traces begin in processes whose spans do not arrive here."""
    DISBELIEVED_CLAIMS = "disbelieved_claims"
    """Traces claim to stand for more than is believed: their senders may choose what they claim."""
    SILENT_ROUTES = "silent_routes"
    """A route of the configuration matches none of the traces that arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One line of cause, one of remedy. ``service`` is None when it is about all of them."""

    kind: AnomalyKind
    service: str | None
    cause: str
    remedy: str
