"""From replies to values: what a metric does with the answers to its questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from .effects import Answer, NoAnswer, Reply
from .result import Failed, Judgement, Method, Unavailable

T = TypeVar("T")


def settle(
    replies: Sequence[Reply], read: Callable[[object], T]
) -> tuple[list[T], Method, Judgement | None] | Unavailable | Failed:
    """All values with the least certain method among them; one missing answer leaves the metric without a value.

    ``read`` takes a value apart strictly and raises ``ValueError`` where it is not what the question asks for.
    """
    refused = [reply for reply in replies if isinstance(reply, NoAnswer)]
    if refused:
        told = next((reply for reply in refused if reply.failed), refused[0])
        return Failed(told.reason) if told.failed else Unavailable(told.reason)
    answers = [reply for reply in replies if isinstance(reply, Answer)]
    try:
        values = [read(answer.value) for answer in answers]
    except ValueError as error:
        return Failed(f"parse_error: {error}")
    order = list(Method)
    method = max((answer.method for answer in answers), key=order.index, default=Method.EXACT)
    judgement = next((answer.judgement for answer in answers if answer.judgement is not None), None)
    return values, method, judgement


def truth(value: object) -> bool:
    """A yes or a no, and nothing that merely looks like one."""
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004  # an answer that breaks the contract
    return value
