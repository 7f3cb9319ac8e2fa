"""Backends: the evaluators that answer the metrics' questions, in a configured order.

The first answer wins. A backend that omits a question, or replies with a ``NoAnswer`` that is neither failed nor final,
passes it to the next one. A failed ``NoAnswer`` is final: another method must not hide an outage of the judge. A
question may be addressed to a judge other than the default one; other backends are asked the question itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from sidejudge.monitor.config.evaluators import Priority
from sidejudge.monitor.config.judge_choice import JudgeChoice
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.questions.question import NoAnswer, Question, Reply
from sidejudge.scoring.result.result import OUTAGES

if TYPE_CHECKING:
    from sidejudge.integrations.embed import EmbeddingError


@dataclass(frozen=True, slots=True)
class Addressed(Question):
    """A question for the judge of this name. It is answered as ``question`` is.

    ``permuted``: its prompt has the material and the questions in another order.
    """

    question: Question
    judge: str
    permuted: bool = False


def plain(question: Question) -> Question:
    """The question itself, without an address."""
    return question.question if isinstance(question, Addressed) else question


class Backend(Protocol):
    """Answers questions about a case, all of a round together. It never raises: a failure is a failed ``NoAnswer``."""

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:
        """Replies by question; questions that are not for this backend are omitted."""


class EmbeddingBackendProtocol(Backend, Protocol):
    """A backend whose endpoint may be out for a while."""

    @property
    def outage(self) -> EmbeddingError | None:
        """Why it cannot be asked now; None when it can."""


@dataclass(slots=True)
class JudgeAccount:
    """The cost record of one case. One object serves all rounds of questions about the case.

    ``counted`` is set by the judge once the case is in the forecast of its ``priority``: costs of later rounds are
    added to that case. ``run``: the case is judged several times, and this one takes no answers of the others.
    ``waits``: where embeddings are out the case is judged later.
    """

    priority: Priority = "normal"
    counted: bool = False
    run: int | None = None
    waits: bool = False


class JudgeBackendProtocol(Protocol):
    """A backend that costs money and may be unreachable."""

    def can_answer(self, question: Question) -> bool:
        """Whether a judge can be asked this question."""

    @property
    def outage(self) -> str | None:
        """Why the judge, or one of several, cannot be asked now; None when it can."""

    @property
    def reachable(self) -> bool:
        """Whether the judge, or one of several, can be asked now."""

    @property
    def outage_cause(self) -> str | None:
        """The cause in the provider's words, which may quote a trace; None when it can be asked."""

    def share(self, priority: Priority) -> float:
        """Count a case that needs the judge. Call it once a case.

        Returns:
            The share in [0, 1] of such cases that the budget can pay for now.
        """

    async def answer(
        self, case: Case, questions: Sequence[Question], account: JudgeAccount
    ) -> Mapping[Question, Reply]:
        """As ``Backend.answer``; the cost is recorded on ``account``."""


OVER_BUDGET: Final = "over budget"
"""Prefix of the reason of a failed ``NoAnswer``: the judge's budget is spent (the hard stop)."""
OUTAGE: Final = OUTAGES[0]
"""Prefix of the reason of a failed ``NoAnswer`` that does not depend on the case: a later attempt may succeed."""
EMBEDDINGS_OUT: Final = OUTAGES[1]
"""The same of embeddings."""
FILTERED: Final = "filtered"
"""Prefix of the reason of a final ``NoAnswer``: the judge would not read what the question shows."""
ATTEMPTS: Final = 3
"""Attempts per trace while the judge fails and no breaker is open."""

Admit: TypeAlias = Callable[[], NoAnswer | None]
"""Called before each round of questions to a judge.

Returns None to proceed, or a ``NoAnswer`` that replaces the judge's replies. It may raise :class:`PostponedError`.
"""


class PostponedError(SidejudgeError):
    """The judge cannot be asked now; the evaluation starts again later."""


class EmbeddingsOutError(PostponedError):
    """Embeddings cannot be had now; likewise."""


@dataclass(frozen=True, slots=True)
class Synchronous:
    """A plain function as a backend; it runs in the event loop's default thread pool."""

    answer_one: Callable[[Case, Question], Reply]

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:
        return await asyncio.to_thread(lambda: {question: self.answer_one(case, question) for question in questions})


@dataclass(slots=True, kw_only=True)
class Backends:
    """The backends in the order in which they are asked. ``judge`` and ``embedding`` are None if not among them.

    ``choice`` names the judge of each metric; a reload replaces it. Questions for another than the default one are
    ``Addressed``.
    """

    order: tuple[Backend | JudgeBackendProtocol, ...]
    judge: JudgeBackendProtocol | None = None
    embedding: EmbeddingBackendProtocol | None = None
    choice: JudgeChoice = field(default_factory=JudgeChoice)

    async def ask(
        self, case: Case, questions: Sequence[Question], admit: Admit, account: JudgeAccount
    ) -> dict[Question, Reply]:
        """Ask the backends in order until every question has an answer.

        Args:
            case: the case that the questions are about.
            questions: all open questions of the round.
            admit: called before the judge is asked.
            account: records the judge's cost.

        Returns:
            Replies by question. A question that no backend replied to is omitted.

        Raises:
            EmbeddingsOutError: they are needed and out, and the case waits for them. A judge that comes after them in
                the order has not been asked, so that it costs nothing.
        """
        final: dict[Question, Reply] = {}
        passed: dict[Question, Reply] = {}
        for backend in self.order:
            left = [question for question in questions if question not in final]
            if backend is self.judge:
                left = [question for question in left if self.judge.can_answer(question)]
            if not left:
                continue
            replies: Mapping[Question, Reply]
            if backend is not self.judge:
                found = await cast("Backend", backend).answer(case, list(dict.fromkeys(map(plain, left))))
                if account.waits and any(map(_is_out, found.values())):
                    raise EmbeddingsOutError
                replies = {question: found[plain(question)] for question in left if plain(question) in found}
            elif (refusal := admit()) is not None:
                replies = dict.fromkeys(left, refusal)
            else:
                replies = await self.judge.answer(case, left, account)
            for question in left:
                reply = replies.get(question)
                if isinstance(reply, NoAnswer) and not reply.failed and not reply.final:
                    passed[question] = reply
                elif reply is not None:
                    final[question] = reply
        return {**passed, **final}


def _is_out(reply: Reply) -> bool:
    return isinstance(reply, NoAnswer) and reply.failed and reply.reason.startswith(EMBEDDINGS_OUT)
