"""From replies to values: a metric's use of the answers to its questions.

Semantic similarity is read as the cosine of two texts' embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.questions.question import Answer, NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Failed, Judgement, Method, NotApplicable, Proven, Scored, Unavailable
from sidejudge.scoring.trace.jsontext import kind

T = TypeVar("T")
Q = TypeVar("Q", bound=Question)


def settle(
    replies: Sequence[Reply], read: Callable[[object], T]
) -> tuple[list[T], Method, tuple[Judgement, ...]] | Unavailable | Failed:
    """All values, the least certain method among them, and the judgements that they rest on.

    One missing answer leaves the metric without a value; ``refuted`` gives what the others prove about it.

    ``read`` reads a value strictly and raises ``ValueError`` where it is not of the question's type.
    """
    refused = [reply for reply in replies if isinstance(reply, NoAnswer)]
    if refused:
        reported = next((reply for reply in refused if reply.failed), refused[0])
        return Failed(reported.reason) if reported.failed else Unavailable(reported.reason)
    answers = [reply for reply in replies if isinstance(reply, Answer)]
    try:
        values = [read(answer.value) for answer in answers]
    except ValueError as error:
        return Failed(Reason("parse_error: {error}", error=quoted(str(error))))
    return values, least_certain(answer.method for answer in answers), judgements_of(answers)


class NoValueError(SidejudgeError):
    """Ends a metric that has no value: ``result`` states why."""

    def __init__(self, result: NotApplicable | Unavailable | Failed) -> None:
        super().__init__(result)  # as it is, for a copy is made of it
        self.result = result

    def __str__(self) -> str:
        return str(self.result.reason)


def unavailable(why: Reason) -> NoValueError:
    """The error that ends a metric without the data that it needs."""
    return NoValueError(Unavailable(why))


def known(found: T | Unavailable) -> T:
    """What was found; where it is unavailable, the metric ends."""
    if isinstance(found, Unavailable):
        raise NoValueError(found)
    return found


def settled(replies: Sequence[Reply], read: Callable[[object], T]) -> tuple[list[T], Method, tuple[Judgement, ...]]:
    """As ``settle``, for a metric that can prove nothing without all answers: raises ``NoValueError``."""
    found = settle(replies, read)
    if not isinstance(found, tuple):
        raise NoValueError(found)
    return found


def refuted(questions: Sequence[Q], replies: Sequence[Reply]) -> dict[Q, Answer]:
    """The questions that were answered with *no*, whether or not the others have an answer."""
    answered = zip(questions, replies, strict=True)
    return {question: reply for question, reply in answered if isinstance(reply, Answer) and reply.value is False}


def bounded(
    gap: Unavailable | Failed,
    stated: Reason,
    against: Collection[Answer],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Unavailable | Failed:
    """A result without a value, with bounds that its answered questions prove.

    Args:
        gap: Why there is no value.
        stated: What is proven, in words.
        against: The answers that prove it; without any, nothing is proven.
        at_least: The value's lower bound.
        at_most: Its upper bound.
    """
    if not against:
        return gap
    method = least_certain(answer.method for answer in against)
    proven = Proven(at_least=at_least, at_most=at_most, method=method, judgements=judgements_of(against))
    return type(gap)(stated + Reason("; not all are decided: {why}", why=gap.reason), proven)


def settled_field(
    replies: Sequence[Reply], field: str, fields: Sequence[str], read: Callable[[object], T]
) -> tuple[list[T], Method, tuple[Judgement, ...]]:
    """As ``settled``, for one of several independent ``fields``: the judges of a panel may be split on others.

    A field on which they are split is None in their answer, and fails alone.
    """
    whole: list[Reply] = []
    for reply in replies:
        if isinstance(reply, Answer) and isinstance(reply.value, Mapping) and reply.judgement and reply.judgement.votes:
            split = [name for name in fields if reply.value.get(name, name) is None]
            if field in split:
                raise NoValueError(Failed(Reason("the panel is split on {field}", field=own(field))))
            # What nobody uses is filled in, so that the answer is read as strictly as any.
            whole.append(replace(reply, value={**reply.value, **{name: reply.value.get(field) for name in split}}))
        else:
            whole.append(reply)
    return settled(whole, read)


def least_certain(methods: Iterable[Method]) -> Method:
    """The least certain of these methods; without any, the value was exact."""
    return max(methods, key=list(Method).index, default=Method.EXACT)


def carried(scored: Iterable[Scored]) -> tuple[Judgement, ...]:
    """The judgements of several results without repeats, in order, for a result that is made of them."""
    return tuple(dict.fromkeys(judgement for result in scored for judgement in result.judgements))


def methods_of(replies: Iterable[Reply]) -> tuple[Method, ...]:
    """The methods by which the answered replies were found."""
    return tuple(reply.method for reply in replies if isinstance(reply, Answer))


def judgements_of(replies: Iterable[Reply]) -> tuple[Judgement, ...]:
    """The judgements of these replies without repeats, in order."""
    judged = (reply.judgement for reply in replies if isinstance(reply, Answer) and reply.judgement is not None)
    return tuple(dict.fromkeys(judged))


def truth(value: object) -> bool:
    """A yes or a no, and nothing that merely looks like one."""
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004  # an answer that breaks the contract
    return value


_SLACK = 1e-6


def read_cosines(value: object, count: int) -> list[float]:
    """``count`` cosines clamped to [0, 1] (rubrics §6); ``ValueError`` where the answer is anything else.

    >>> read_cosines((0.5, -0.25), 2)
    [0.5, 0.0]
    """
    if not isinstance(value, list | tuple) or len(value) != count:
        raise ValueError(f"expected {count} similarities")
    return [min(1.0, max(0.0, read_number(cosine, -1.0, 1.0))) for cosine in value]


def read_number(value: object, low: float, high: float) -> float:
    """A number within bounds, with room for the rounding of single precision."""
    if kind(value) != "number" or not isinstance(value, int | float) or not low - _SLACK <= value <= high + _SLACK:
        raise ValueError(f"not a number in [{low:g}, {high:g}]")
    return float(value)
