"""Answerers: who is asked what metrics ask, one after another.

The first that answers wins. One that leaves a question out, or says that it cannot tell, passes it on to the next; one
that tried and failed ends the matter, for an outage of the judge must not be papered over by another method.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from monitor.config.evaluators import Priority
from scoring.case.case import Case
from scoring.questions.question import NoAnswer, Question, Reply


class Backend(Protocol):
    """Answers questions about a case, all of a round together. It never raises: what fails is a failed ``NoAnswer``."""

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:
        """Replies to those questions that it knows something of; the others are left out."""


class JudgeBackendProtocol(Backend, Protocol):
    """An answerer that costs money and may be out of reach."""

    def can_answer(self, question: Question) -> bool:
        """Whether it is a question for a judge at all."""

    @property
    def outage(self) -> str | None:
        """Why it cannot be asked at the moment; None when it can."""

    def share(self, priority: Priority) -> float:
        """A case has come that needs it: the share in [0, 1] of such cases that its budget can pay for now.

        Asked once a case, in the task that then has it answered.
        """


OVER_BUDGET: Final = "over budget"
"""How the reason of a failed ``NoAnswer`` begins where the budget of the judge is spent: the hard stop."""
OUTAGE: Final = "judge unavailable"
"""How the reason of a failed ``NoAnswer`` begins that says nothing of the case: asked later, it may be answered."""

Admit: TypeAlias = Callable[[], NoAnswer | None]
"""Asked before each round of questions to a judge.

None: go ahead. A ``NoAnswer`` is the reply to all of them in its stead. It may raise :class:`PostponedError`.
"""


class PostponedError(Exception):
    """Not now: the judge cannot be asked, and what was begun is to be begun again later."""


@dataclass(frozen=True, slots=True)
class Synchronous:
    """A plain function as an answerer; it runs in a worker thread."""

    answer_one: Callable[[Case, Question], Reply]

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:
        return await asyncio.to_thread(lambda: {question: self.answer_one(case, question) for question in questions})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """The answerers in the order in which they are asked. ``judge`` is the one of them that is a judge, if any is."""

    order: tuple[Backend, ...]
    judge: JudgeBackendProtocol | None = None

    async def ask(self, case: Case, questions: Sequence[Question], admit: Admit) -> dict[Question, Reply]:
        """Replies to as many questions as anybody said something of."""
        final: dict[Question, Reply] = {}
        passed: dict[Question, Reply] = {}
        for answerer in self.order:
            left = [question for question in questions if question not in final]
            if answerer is self.judge:
                left = [question for question in left if self.judge.can_answer(question)]
            if not left:
                continue
            refusal = admit() if answerer is self.judge else None
            said = dict.fromkeys(left, refusal) if refusal is not None else await answerer.answer(case, left)
            for question in left:
                reply = said.get(question)
                if isinstance(reply, NoAnswer) and not reply.failed:
                    passed[question] = reply
                elif reply is not None:
                    final[question] = reply
        return {**passed, **final}
