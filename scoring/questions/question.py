"""Questions: a metric asks questions and receives answers; it never learns who answered.

A metric that needs more than arithmetic is a generator. It *yields* a tuple of all questions that it can ask at once,
and *receives* the answers in the same order. Network, retries, budget and cache belong to the runtime, so a judged
metric is tested with plain data. Questions are frozen values: two metrics that ask the same thing ask it once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from types import GeneratorType
from typing import Final, Generic, TypeAlias, TypeVar

from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Judgement, Method, Result


@dataclass(frozen=True, slots=True)
class Question:
    """**Base of all questions about a case.** Subclasses define the question; they hold only hashable text."""


def prompt_text(name: str) -> str:
    """The text of ``scoring/prompts/NAME.md``: the question to a judge, with the possible levels of its answers."""
    return files("sidejudge.scoring").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer and its method; the question's docstring names the type of ``value``."""

    value: object
    method: Method
    reason: str = ""
    judgement: Judgement | None = None


TOO_LONG: Final = "more than the judge's context of"
"""Words in the reason of a ``NoAnswer``: its judge cannot be asked, though another may."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No evaluator answered. ``failed``: one tried and failed; otherwise none is configured that could answer.

    ``judgement`` is the cost without an answer, where a judge was asked. ``final``: nothing failed, but no other
    evaluator is asked, because the material does not decide the question or the judge may not see it.
    """

    reason: str
    failed: bool = False
    judgement: Judgement | None = None
    final: bool = False


Reply: TypeAlias = Answer | NoAnswer
Steps: TypeAlias = Generator[tuple[Question, ...], Sequence[Reply], Result]
Begun: TypeAlias = Result | Steps
"""A metric of a case: its result where it needs no question, else the steps to it."""


K = TypeVar("K", bound=Hashable)
"""The caller's name of a metric: its id, or rubric and id."""


class PendingMetrics(Generic[K]):
    """Several metrics of one case, advanced together round by round.

    ``questions`` are the open questions without repeats; ``give`` answers all of them and advances every metric; when
    none is open, ``results`` holds one result for each name. ``judgements`` holds by name the calls to judges for this
    metric, with or without a value.
    """

    def __init__(self, started: Mapping[K, Begun]) -> None:
        self.results: dict[K, Result] = {}
        self.judgements: dict[K, tuple[Judgement, ...]] = {}
        self._running: dict[K, tuple[Steps, tuple[Question, ...]]] = {}
        for name, begun in started.items():
            self.begin(name, begun)

    def begin(self, name: K, begun: Begun) -> None:
        """Add a metric; one that has ended begins anew. The calls to judges so far stay in ``judgements``."""
        self.results.pop(name, None)
        if isinstance(begun, GeneratorType):
            self._advance(name, begun, None)
        else:
            self.results[name] = begun  # type: ignore[assignment]  # all steps are generators of Python's own

    @property
    def questions(self) -> tuple[Question, ...]:
        """Open questions in the order in which they were first asked."""
        if not self._running:
            return ()
        return tuple(dict.fromkeys(q for _, requested in self._running.values() for q in requested))

    def give(self, replies: Mapping[Question, Reply]) -> None:
        """Answer every open question. A question without a reply counts as unanswered."""
        nobody = NoAnswer(Reason("no evaluator is configured for this question"))
        self.advance({question: replies.get(question, nobody) for question in self.questions})

    def advance(self, replies: Mapping[Question, Reply]) -> bool:
        """Advance the metrics whose open questions are all answered here; return whether any advanced."""
        ready = {name: running for name, running in self._running.items() if all(q in replies for q in running[1])}
        for name, (steps, requested) in ready.items():
            del self._running[name]
            received = [replies[q] for q in requested]
            judged = [reply.judgement for reply in received if reply.judgement is not None]
            if judged:
                self.judgements[name] = tuple(dict.fromkeys((*self.judgements.get(name, ()), *judged)))
            self._advance(name, steps, received)
        return bool(ready)

    def rounds(self) -> Generator[tuple[Question, ...], Sequence[Reply], dict[K, Result]]:
        """Steps that ask all open questions, round by round, until every metric has ended; they return the results."""
        while questions := self.questions:
            replies = yield questions
            self.give(dict(zip(questions, replies, strict=True)))
        return self.results

    @property
    def running(self) -> tuple[K, ...]:
        """The names of the metrics that wait for answers."""
        return tuple(self._running)

    def _advance(self, name: K, steps: Steps, replies: Sequence[Reply] | None) -> None:
        try:
            requested = next(steps) if replies is None else steps.send(replies)
            while not requested:  # nothing left to ask in this round
                requested = steps.send(())
        except StopIteration as done:
            self.results[name] = done.value
        else:
            self._running[name] = (steps, requested)


def run(started: Mapping[K, Begun], answer: Callable[[Question], Reply]) -> PendingMetrics[K]:
    """Run metrics to their end with a plain function as the only evaluator (tests, offline use)."""
    evaluation = PendingMetrics(started)
    while questions := evaluation.questions:
        evaluation.advance({question: answer(question) for question in questions})
    return evaluation
