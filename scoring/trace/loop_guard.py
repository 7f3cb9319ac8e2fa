"""Loop guard: recognises an evaluator's own traffic. Only this file knows the marks.

Judging a judge would never end: each verdict would make the next trace. Everything that takes in traces asks here,
whether they come from an exporter, through a Collector, or from Langfuse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Final

OWN_SERVICE: Final = "sidejudge"
"""``service.name`` of the resource of a monitor's own spans and events."""
OWN_SCOPE: Final = "sidejudge.judge"
"""Name of their instrumentation scope: it stays where a Collector overwrites the service."""
OWN_TAG: Final = "sidejudge"
"""Tag of these traces in Langfuse: it stays where neither resource nor scope is sent."""
EVALUATOR_ENVIRONMENTS: Final = "langfuse"
"""Prefix of the environments of Langfuse's evaluators, which applications may not use."""
_OTHERS: Final = frozenset({"llm-as-a-judge", "code-eval", "sdk-experiment"})
"""These environments without the prefix, and the environments of experiments by Langfuse's SDKs."""


def own_trace_id(judged: str) -> str:
    """The id of the monitor's own trace about a trace or another case; the same each time that it is judged.

    >>> own_trace_id("36524d221566b94755e27265a6220988")
    'bd4f09c49d38d5cbe1dfa8ef8a250191'
    """
    return hashlib.sha256(f"sidejudge.judge\x00{judged}".encode()).hexdigest()[:32]


def is_own(*, service: str | None = None, scope: str | None = None, tags: Collection[str] = ()) -> bool:
    """Whether a span or log record is a monitor's own, by the name of its resource's service, its scope, or its tags.

    Langfuse gives the first two as metadata: ``resourceAttributes.service.name`` and ``scope.name``.

    >>> is_own(service="shop", scope="sidejudge.judge")
    True
    >>> is_own(service="shop", scope="openinference.instrumentation.openai")
    False
    """
    return service == OWN_SERVICE or scope == OWN_SCOPE or OWN_TAG in tags


def evaluator_traffic(service: str | None, environment: str | None, *, tags: Collection[str] = ()) -> str | None:
    """Why a trace belongs to an evaluator, ours or another; None when it may be judged."""
    if environment is not None and (environment.startswith(EVALUATOR_ENVIRONMENTS) or environment in _OTHERS):
        return f"environment {environment!r} is where evaluators run"
    if service == OWN_SERVICE:
        return f"service {service!r} is this monitor"
    if OWN_TAG in tags:
        return f"tag {OWN_TAG!r} marks this monitor's own judge"
    return None
