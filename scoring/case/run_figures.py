"""Run figures: latency, tokens and cost of one request to the application, without a pass mark.

They come from the application's telemetry. What it does not report is absent, never 0: a trace without a price was not
free. An incomplete trace has no figures, because each sum would lack the missing part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from sidejudge.scoring.lexical.shown_text import label_of
from sidejudge.scoring.trace import usage
from sidejudge.scoring.trace.trace import Trace

from .case import Case

UNITS: Final[Mapping[str, str]] = {"latency": "seconds", "cost": "US dollars", "tokens": "tokens"}
"""The figures of a run, with their units."""
NO_MODEL: Final = "unknown"
"""The model of a span that names neither the one that answered nor the one that was asked for."""
MOST_MODELS: Final = 20
"""Most models of one trace that are counted separately; further ones count under ``NO_MODEL``."""

Usage: TypeAlias = tuple[int, int, float]
"""Tokens of input and of output, and US dollars."""


class RunFigures(NamedTuple):
    """``values`` by name (``UNITS``); ``models``: the usage by model, for totals; ``version``: the application's."""

    values: Mapping[str, float]
    models: Mapping[str, Usage]
    version: str | None


def tokens(case: Case) -> int | None:
    """Tokens of input and output together; None where either is unknown."""
    return None if case.input_tokens is None or case.output_tokens is None else case.input_tokens + case.output_tokens


def duration_s(case: Case) -> float | None:
    """The end-to-end latency in seconds; None where it is unknown."""
    return None if case.latency_e2e_ms is None else case.latency_e2e_ms / 1e3


def run_figures(case: Case) -> RunFigures | None:
    """The figures of a case's trace; None where there is no trace, or it was cut short."""
    trace = case.trace
    if trace is None or not case.complete or trace.root is None:
        return None
    count = tokens(case)
    found = {
        "latency": duration_s(case), "cost": case.cost_usd, "tokens": None if count is None else float(count),
    }  # fmt: skip
    values = {name: value for name, value in found.items() if value is not None and 0 <= value < float("inf")}
    release = next((span.release for span in trace.spans if span.release), None)
    return RunFigures(values, _models(trace), None if release is None else label_of(release))


def _models(trace: Trace) -> Mapping[str, Usage]:
    found: dict[str, Usage] = {}
    for span in usage.reporting_usage(trace):
        if span.usage is not None:
            _add(found, span.model or span.requested_model, span.usage.input or 0, span.usage.output or 0, 0.0)
    for span in usage.reporting_cost(trace):
        _add(found, span.model or span.requested_model, 0, 0, span.cost_usd or 0.0)
    return found


def _add(found: dict[str, Usage], model: str | None, read: int, written: int, usd: float) -> None:
    name = label_of(model) if model else NO_MODEL
    if name not in found and len(found) >= MOST_MODELS:
        name = NO_MODEL
    before = found.get(name, (0, 0, 0.0))
    found[name] = (before[0] + read, before[1] + written, before[2] + usd)
