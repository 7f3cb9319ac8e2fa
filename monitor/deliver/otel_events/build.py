"""Setup: own traces and events as the configuration asks for them. Where it does not, nothing of it is imported."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from monitor.config import Config
from monitor.config.rubrics import configured

if TYPE_CHECKING:
    from monitor.evaluate.judge.observer import JudgeObserver

    from .delivery import SignalCounters
    from .sink import OtelEvents

log = logging.getLogger("sidejudge.otel")


def otel_events(config: Config, *, counted: SignalCounters, clock_ns: Callable[[], int]) -> OtelEvents | None:
    """The configured sink, not started yet; None without one, and where the environment forbids OpenTelemetry's SDK."""
    section = config.sinks.otel_events
    if section is None:
        return None
    from integrations.otel_events.providers import DisabledError  # noqa: PLC0415  # imported only where it is configured

    from .sink import OtelEvents  # noqa: PLC0415  # imported only where it is configured

    try:
        return OtelEvents(section, rubrics=configured(config), counted=counted, clock_ns=clock_ns)
    except DisabledError as error:
        log.warning("sinks.otel_events is configured and tells nothing", extra={"cause": str(error)})
        return None


def observing(counting: JudgeObserver | None, own: OtelEvents | None) -> JudgeObserver | None:
    """Who is told what judging does: who counts it, and who writes it down. None without a judge."""
    if own is None or counting is None:
        return counting
    from monitor.evaluate.judge.observer import JudgeObservers  # noqa: PLC0415  # imported only where it is configured

    return JudgeObservers(counting, own.recorder)
