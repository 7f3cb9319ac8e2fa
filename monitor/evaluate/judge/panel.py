"""Jury: the judge, or all members of its panel, asked the same request at the same time; and what they agree upon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from scoring.judging.request import JudgedValue, JudgeRequest
from scoring.questions.question import NoAnswer, Question
from scoring.verdict.review_reason import JUDGES_DISAGREE

from .answer_cache import CachedAnswer
from .breaker import CONSECUTIVE, Breaker, BreakerState, Circuit
from .budget import JudgeBudget
from .observer import JudgeObserver
from .panel_member import Client, JudgeBill, PanelMember, UnansweredError
from .rate_limits import RateLimits
from .settings import JudgeSettings
from .vote import SplitError, agree, disagrees


class JudgePanel:
    """One member for each model. Members of one provider share its limits; each has a breaker of its own."""

    def __init__(
        self,
        settings: JudgeSettings,
        *,
        client: Client,
        budget: JudgeBudget,
        remember: Callable[[float, float], Awaitable[None]],
        observer: JudgeObserver,
        clock: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self._rule = settings.panel_rule
        self._observer = observer
        limits = {
            provider: RateLimits(
                concurrency=settings.concurrency,
                requests_per_minute=settings.requests_per_minute,
                tokens_per_minute=settings.tokens_per_minute,
                clock=time.monotonic,
            )
            for provider in {model.provider for model in settings.models}
        }
        self._members = [
            PanelMember(
                model=model,
                client=client,
                limits=limits[model.provider],
                budget=budget,
                remember=remember,
                observer=observer,
                retries=settings.retries,
                clock=clock,
                jitter=jitter,
                breaker=Breaker(
                    clock(), consecutive=max(CONSECUTIVE, settings.retries + 2)
                ),  # more than one request fails
            )
            for model in settings.models
        ]
        names = [model.name for model in settings.models]
        self.name: Final = names[0] if len(names) == 1 else f"{settings.panel_rule} of {', '.join(names)}"
        self._quorum: Final = len(names) // 2 + 1

    def states(self) -> dict[str, BreakerState]:
        """The circuit breaker of each model."""
        return {member.model.name: member.state() for member in self._members}

    @property
    def outage(self) -> str | None:
        """Why no answer can be had now: so many breakers are open that no majority is left. None when one can."""
        shut = [state for state in self.states().values() if state.circuit is Circuit.OPEN]
        return shut[0].reason if len(self._members) - len(shut) < self._quorum else None

    async def ask(self, request: JudgeRequest, bill: JudgeBill) -> dict[Question, CachedAnswer | NoAnswer]:
        """What a majority of the members answered, question by question. Raises ``UnansweredError`` without one."""
        said = await asyncio.gather(*(member.ask(request, bill) for member in self._members), return_exceptions=True)
        for each in said:
            if isinstance(each, BaseException) and not isinstance(each, UnansweredError):
                raise each
        answers = [each for each in said if not isinstance(each, BaseException)]
        if len(answers) < self._quorum:
            raise next(each for each in said if isinstance(each, UnansweredError))
        return {question: self._agreed([each[question] for each in answers]) for question in request.questions}

    def _agreed(self, judged: list[JudgedValue]) -> CachedAnswer | NoAnswer:
        values = [each.value for each in judged]
        flags: tuple[str, ...] = ()
        if disagrees(values):
            self._observer.flagged(self.name, "disagreement")
            flags = (JUDGES_DISAGREE,)
        try:
            value, spokesman = agree(values, self._rule)
        except SplitError as error:
            return NoAnswer(str(error), failed=True)
        told = judged[spokesman or 0]
        reason = told.reason if spokesman is not None else f"median of {len(values)} judges"
        return CachedAnswer(value=value, reason=reason, prompt_version=told.prompt_version, flags=flags)
