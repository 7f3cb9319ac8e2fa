"""Settings: the configuration of the judge, as the judge backend takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sidejudge.integrations.judge.client import JudgeModel
from sidejudge.scoring.checks.redaction import Redaction

from .panel import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """A judge. ``models`` are the judge itself and the other members of its panel.

    ``others`` are further judges by name; budget, cache and redaction are those of the first one.

    ``retries`` are further attempts after the first. ``concurrency``, ``requests_per_minute`` and ``tokens_per_minute``
    are for each provider. ``context_tokens`` None: the least that is known of the models.
    """

    models: tuple[JudgeModel, ...]
    others: Mapping[str, JudgeSettings] = field(default_factory=dict)
    panel_rule: Rule = "majority"
    retries: int = 3
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    context_tokens: int | None = None
    outline: bool = False
    budget_usd_per_hour: float | None = None
    budget_usd_per_day: float | None = None
    cache_entries: int = 100_000
    redaction: Redaction | None = None
