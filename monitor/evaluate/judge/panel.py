"""Panel: one request in, to every member at the same time; for each question what they agree upon out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Final

from sidejudge.scoring.judging.layout import form_for
from sidejudge.scoring.judging.request import JudgedValue, JudgeRequest
from sidejudge.scoring.questions.question import NoAnswer, Question
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.verdict.review_reason import JUDGES_DISAGREE

from .answer_cache import CachedAnswer
from .breaker import BreakerState, Circuit
from .observer import JudgeObserver
from .panel_member import JudgeBill, PanelMember, UnansweredError
from .vote import Rule, SplitError, vote, votes


class JudgePanel:
    """The members that are asked together, one for each model."""

    def __init__(
        self,
        members: Sequence[PanelMember],
        *,
        rule: Rule = "majority",
        context_tokens: int | None = None,
        observer: JudgeObserver,
    ) -> None:
        self._members, self._rule, self._observer = members, rule, observer
        self.models: Final = tuple(member.model for member in members)
        self.context_tokens: Final = context_tokens
        """As configured; None: the least that is known of the models."""
        names = [model.name for model in self.models]
        self.name: Final = names[0] if len(names) == 1 else f"{rule} of {', '.join(names)}"
        self.identity: Final = json.dumps([rule if len(names) > 1 else "", *(model.identity for model in self.models)])
        """All that changes an answer, beside the prompt; ``name`` is what people call it."""
        self._quorum: Final = len(names) // 2 + 1

    def states(self) -> dict[str, BreakerState]:
        """The circuit breaker of each model."""
        return {member.model.name: member.state() for member in self._members}

    @property
    def estimating(self) -> frozenset[str]:
        """The models that give no account of their tokens, so that their cost is estimated."""
        return frozenset(member.model.name for member in self._members if member.estimating)

    @property
    def outage(self) -> str | None:
        """Why no answer is possible now: so many breakers are open that no majority is left. None when one is."""
        shut = [state for state in self.states().values() if state.circuit is Circuit.OPEN]
        return shut[0].reason if len(self._members) - len(shut) < self._quorum else None

    @property
    def cause(self) -> str:
        """What opened the breaker of a model that cannot be asked, in the provider's words; empty without one."""
        shut = (each.breaker.cause for each in self._members if each.state().circuit is Circuit.OPEN)
        return next(shut, "")

    async def ask(self, request: JudgeRequest, bill: JudgeBill) -> dict[Question, CachedAnswer | NoAnswer]:
        """Ask every member and combine their answers question by question.

        Args:
            request: the same for all members.
            bill: what it costs is added as it is spent.

        Raises:
            UnansweredError: fewer than a majority of the members could be asked.
        """
        given = await asyncio.gather(*(member.ask(request, bill) for member in self._members), return_exceptions=True)
        for each in given:
            if isinstance(each, BaseException) and not isinstance(each, UnansweredError):
                raise each
        readings = {
            member.model.name: each
            for member, each in zip(self._members, given, strict=True)
            if not isinstance(each, BaseException)
        }
        if len(readings) < self._quorum:
            raise next(each for each in given if isinstance(each, UnansweredError))
        combined: dict[Question, CachedAnswer | NoAnswer] = {}
        for question in request.questions:
            answers = {name: each.answers[question] for name, each in readings.items() if question in each.answers}
            if len(answers) < self._quorum:
                faults = (each.faults[question] for each in readings.values() if question in each.faults)
                combined[question] = NoAnswer(next(faults), failed=True)
            else:
                combined[question] = self._combine(answers, form_for(question).apart)
        return combined

    def _combine(self, judged: Mapping[str, JudgedValue], apart: Sequence[str]) -> CachedAnswer | NoAnswer:
        """The panel's answer. Fields that stand ``apart`` are values of their own: one that is split costs no other."""
        answers = list(judged.values())
        if len(self._members) == 1:
            (one,) = answers
            return CachedAnswer(value=one.value, reason=one.reason, prompt_version=one.prompt_version, flags=one.flags)
        try:
            decision = vote([each.value for each in answers], self._rule)
        except SplitError as error:
            if error.decided is None or not set(error.split) < set(apart):
                self._observer.flagged(self.name, "disagreement")
                return NoAnswer(
                    Reason("{error} ({votes})", error=own(str(error)), votes=quoted(_listed(judged))), failed=True
                )
            decision = error.decided
        side = answers[decision.side]
        flags = side.flags
        if decision.dissent > 0:
            self._observer.flagged(self.name, "disagreement")
            flags = (JUDGES_DISAGREE, *flags)
        return CachedAnswer(
            value=decision.value,
            reason=side.reason,
            prompt_version=side.prompt_version,
            flags=flags,
            votes=_ballots(judged),
            dissent=decision.dissent,
        )


def _ballots(judged: Mapping[str, JudgedValue]) -> tuple[tuple[str, str], ...]:
    """Each member's vote as JSON, by model; texts are left out."""
    return tuple((name, _written(list(votes(each.value).items()))) for name, each in judged.items())


def _written(fields: Sequence[tuple[str, object]]) -> str:
    alone = len(fields) == 1 and not fields[0][0]
    return json.dumps(fields[0][1] if alone else dict(fields))


def _listed(judged: Mapping[str, JudgedValue]) -> str:
    return "; ".join(f"{name}: {ballot}" for name, ballot in _ballots(judged))
