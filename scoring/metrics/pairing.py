"""Pairing: the model's statements are matched with the expected ones, one to one, as many as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass

from sidejudge.scoring.lexical.text import normalise
from sidejudge.scoring.questions.question import Answer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Judgement, Method

from .settle import settled, truth, unavailable

MAX_PAIRS = 2500
"""Most pairs that are compared: fifty statements on either side. A summary has some five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """``missed``: the expected statements that none of the model's matches, in order."""

    missed: tuple[str, ...]
    method: Method = Method.EXACT
    judgements: tuple[Judgement, ...] = ()


def pair_up(
    wanted: Sequence[str], found: Sequence[str], ask: Callable[[str, str], Question], what: str
) -> Generator[tuple[Question, ...], Sequence[Reply], Pairing]:
    """A largest matching. Equal texts need no answer; for other pairs ``ask(expected, found)`` asks for a bool.

    A pair without an answer ends the metric (``NoValueError``), unless it cannot change the number. ``what`` names the
    statements.
    """
    missed, spare = _unequal(wanted, found)
    if not missed or not spare:
        return Pairing(missed=tuple(missed))
    if len(missed) * len(spare) > MAX_PAIRS:
        raise unavailable(Reason("more than {most} pairs of {what} to compare", most=MAX_PAIRS, what=own(what)))
    replies = yield tuple(ask(one, other) for one in missed for other in spare)
    _, method, judgements = settled([reply for reply in replies if isinstance(reply, Answer)], truth)
    certain = _largest(len(missed), replies, open_ones=False)
    if len(certain) < len(_largest(len(missed), replies, open_ones=True)):
        settled(replies, truth)  # a pair that nobody could judge would matter: there is no value
    left = tuple(one for at, one in enumerate(missed) if at not in certain)
    return Pairing(missed=left, method=method, judgements=judgements)


def _unequal(wanted: Sequence[str], found: Sequence[str]) -> tuple[list[str], list[str]]:
    """The unmatched texts of either side once equal texts are matched.

    That loses no match: a partner of one of two equal texts is a partner of the other.
    """
    by_text = Counter(map(normalise, wanted)) & Counter(map(normalise, found))
    return _without(wanted, by_text.copy()), _without(found, by_text.copy())


def _without(statements: Sequence[str], matched: Counter[str]) -> list[str]:
    left: list[str] = []
    for one in statements:
        if matched[normalise(one)] > 0:
            matched[normalise(one)] -= 1
        else:
            left.append(one)
    return left


def _largest(wanted: int, replies: Sequence[Reply], *, open_ones: bool) -> dict[int, int]:
    """A largest matching of pairs that hold; with ``open_ones``, of pairs without an answer too."""
    across = len(replies) // wanted
    holds = [reply.value is True if isinstance(reply, Answer) else open_ones for reply in replies]
    return maximum_matching([[j for j in range(across) if holds[i * across + j]] for i in range(wanted)])


def maximum_matching(edges: Sequence[Collection[int]]) -> dict[int, int]:
    """A largest one-to-one matching, left → right. ``edges[i]`` are the right items that left item ``i`` fits.

    Augmenting paths, breadth first: O(items × edges), and no recursion however long the lists are.

    >>> maximum_matching([(0, 1), (0,)])
    {1: 0, 0: 1}
    """
    partner: dict[int, int] = {}
    for start in range(len(edges)):
        end, came_from = _free_right(start, edges, partner)
        while end is not None:
            left, end_before = came_from[end]
            partner[end] = left
            end = end_before
    return {left: right for right, left in partner.items()}


def _free_right(
    start: int, edges: Sequence[Collection[int]], partner: dict[int, int]
) -> tuple[int | None, dict[int, tuple[int, int | None]]]:
    """A free right item at the end of an alternating path, and for each right item how it was reached.

    The way is the left item, and the right item that this left item would have to give up.
    """
    came_from: dict[int, tuple[int, int | None]] = {}
    queue: list[tuple[int, int | None]] = [(start, None)]
    for left, given_up in queue:
        for right in edges[left]:
            if right in came_from:
                continue
            came_from[right] = (left, given_up)
            if right not in partner:
                return right, came_from
            queue.append((partner[right], right))
    return None, came_from
