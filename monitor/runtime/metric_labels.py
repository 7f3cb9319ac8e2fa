"""Known: every label value that can be known at the start, so that counters begin at 0 instead of being absent."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Final

from integrations.otlp.proxy.forward import UNJUDGED
from integrations.otlp.proxy.upstream import REASONS
from integrations.prometheus.exporter import KnownLabels
from monitor.alerting.watch import Watch
from monitor.api.queries import REJECTED
from monitor.config import Config
from monitor.config.notify import names
from monitor.config.rubrics import reached
from monitor.deliver.langfuse.delivery import DESTINATION as LANGFUSE
from monitor.deliver.langfuse.delivery import REASONS as LANGFUSE_REASONS
from monitor.deliver.otel_events.destination import DESTINATION as OTEL_EVENTS
from monitor.deliver.otel_events.destination import REASONS as OTEL_EVENTS_REASONS
from monitor.evaluate.build import known_judge
from monitor.ingest.langfuse.pull import REASONS as PULL_REASONS
from monitor.ingest.outcomes import Reason
from monitor.revise.failure import RevisionFailure
from scoring.rubrics.workflow import KINDS

NOT_WRITTEN: Final = "not_written"
"""Why a file did not take a verdict."""
NOT_DELIVERED: Final = "not_delivered"
"""Why a receiver did not take a notice."""


def known(config: Config, watch: Watch, version: str) -> KnownLabels:
    """What this configuration can ever count, by label."""
    return KnownLabels(
        rubrics=list(reached(config).values()),
        ended_reasons=[reason.value for reason in Reason],
        rejected_reasons=[REJECTED],
        destinations=_destinations(config),
        forward_failures=REASONS if config.forward else (),
        forward_unjudged=UNJUDGED if config.forward else (),
        pull_failures=PULL_REASONS if config.sources.langfuse else (),
        belated_failures=[why.value for why in RevisionFailure] if config.revised_within is not None else (),
        violations=dict.fromkeys(config.scenarios, KINDS),
        thresholds=watch.declared.policy.thresholds,
        own_thresholds=watch.declared.thresholds,
        conditions=watch.conditions,
        sampling_rate=config.sampling.rate,
        judge=known_judge(config),
        version=version,
        python=platform.python_version(),
        fingerprint=config.fingerprint[:12],
    )


def _destinations(config: Config) -> dict[str, Sequence[str]]:
    """Where verdicts go, and why each may not take what it is handed."""
    found: dict[str, Sequence[str]] = {}
    if config.sinks.jsonl:
        found["jsonl"] = [NOT_WRITTEN]
    if config.sinks.langfuse:
        found[LANGFUSE] = LANGFUSE_REASONS
    if config.sinks.otel_events:
        found[OTEL_EVENTS] = OTEL_EVENTS_REASONS
    found |= {name: [NOT_DELIVERED] for name in names(config.alerts.notify)}
    return found
