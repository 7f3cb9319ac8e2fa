"""From replies to values: what a metric does with the answers to its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from scoring.questions.question import Answer, NoAnswer, Reply
from scoring.result.result import Failed, Judgement, Method, Scored, Unavailable

T = TypeVar("T")


def settle(
    replies: Sequence[Reply], read: Callable[[object], T]
) -> tuple[list[T], Method, tuple[Judgement, ...]] | Unavailable | Failed:
    """All values, the least certain method among them, and the judgements that they rest on.

    One missing answer leaves the metric without a value.

    ``read`` takes a value apart strictly and raises ``ValueError`` where it is not what the question asks for.
    """
    refused = [reply for reply in replies if isinstance(reply, NoAnswer)]
    if refused:
        reported = next((reply for reply in refused if reply.failed), refused[0])
        return Failed(reported.reason) if reported.failed else Unavailable(reported.reason)
    answers = [reply for reply in replies if isinstance(reply, Answer)]
    try:
        values = [read(answer.value) for answer in answers]
    except ValueError as error:
        return Failed(f"parse_error: {error}")
    return values, least_certain(answer.method for answer in answers), judgements_of(answers)


def least_certain(methods: Iterable[Method]) -> Method:
    """The least certain of these methods; without any, the value was exact."""
    return max(methods, key=list(Method).index, default=Method.EXACT)


def carried(scored: Iterable[Scored]) -> tuple[Judgement, ...]:
    """The judgements of several results, each once, in order: those of a result that is made of them."""
    return tuple(dict.fromkeys(judgement for result in scored for judgement in result.judgements))


def methods_of(replies: Iterable[Reply]) -> tuple[Method, ...]:
    """How these replies were come by, as far as there are answers."""
    return tuple(reply.method for reply in replies if isinstance(reply, Answer))


def judgements_of(replies: Iterable[Reply]) -> tuple[Judgement, ...]:
    """The judgements of these replies, each once, in order."""
    judged = (reply.judgement for reply in replies if isinstance(reply, Answer) and reply.judgement is not None)
    return tuple(dict.fromkeys(judged))


def truth(value: object) -> bool:
    """A yes or a no, and nothing that merely looks like one."""
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004  # an answer that breaks the contract
    return value
