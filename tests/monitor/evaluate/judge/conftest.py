"""Parts of a live judge: a provider on a socket, litellm, a store on disk, and an observer that remembers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sidejudge.integrations.judge.client import JudgeClient, JudgeModel
from sidejudge.integrations.provider.attempt import JudgeAttempt
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.evaluators import JudgeSection
from sidejudge.monitor.evaluate.judge.judge_backend import JudgeBackend
from sidejudge.monitor.evaluate.judge.panel import JudgeSettings
from sidejudge.scoring.case.case import Case
from tests.fakes.judge import judges
from tests.fakes.openai import Provider

KEY = "sk-very-secret"


@dataclass
class Watched:
    """Counts what an observer is told."""

    attempts: list[str | None] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    repairs: list[tuple[int, int]] = field(default_factory=list)
    hits: int = 0
    misses: int = 0
    flags: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0

    def judging(self, case: Case) -> None:
        self.cases.append(case.case_id)

    def asking(self, questions) -> None: ...

    def attempted(self, attempt: JudgeAttempt) -> None:
        assert attempt.duration_s >= 0
        self.attempts.append(attempt.failure and str(attempt.failure))
        self.cost_usd += attempt.usage.cost_usd or 0.0

    def repaired(self, model: str, *, requested: int, answered: int) -> None:
        self.repairs.append((requested, answered))

    def looked_up(self, *, hits: int, misses: int) -> None:
        self.hits += hits
        self.misses += misses

    def flagged(self, model: str, flag: str) -> None:
        self.flags[flag] += 1


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(judges()) as running:
        yield running


@pytest.fixture
async def library() -> AsyncIterator[LiteLLM]:
    loaded = LiteLLM()
    yield loaded
    await loaded.close()


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    opened = Store(tmp_path / "s.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def watched() -> Watched:
    return Watched()


def judge_of(*models: JudgeModel, others: dict[str, JudgeSettings] | None = None, **section: object) -> JudgeSettings:
    """A judge of these models, with the section's values as they are given."""
    assert section.keys() <= JudgeSection.model_fields.keys(), section
    given = JudgeSection(model=models[0].name).model_copy(update=section)
    return JudgeSettings(section=given, models=models, others=others or {})


@pytest.fixture
def made(provider, library, store, watched) -> Callable[..., JudgeBackend]:
    """Makes a judge that asks the provider; retries come at once."""

    def make(*, names=("openai/gpt-4o-mini",), model: dict[str, Any] | None = None, **settings: Any) -> JudgeBackend:
        reported = {"api_base": provider.url, "api_key": KEY, "timeout_s": 20.0, **(model or {})}
        models = tuple(JudgeModel(name=name, **reported) for name in names)
        calls, on_answered = settings.pop("calls", None), settings.pop("on_answered", None)
        settings = {"retries": 2, **settings}
        others = {
            name: judge_of(JudgeModel(name=model, **reported), **settings)
            for name, model in settings.pop("others", {}).items()
        }
        return JudgeBackend(
            judge_of(*models, others=others, **settings),
            client=JudgeClient(library),
            memory=store.judged,
            observer=watched,
            calls=calls,
            on_answered=on_answered,
            jitter=lambda: 0.0,
        )

    return make
