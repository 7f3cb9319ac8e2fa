"""Vote: the answers of several judges to one question in, one answer out, or none.

Each field of an answer is decided by itself. A yes or no and a word of a scale take the majority, fractions the median.
Whole numbers take the majority, and under the rule ``median`` the lower one in the middle where there is no majority.
Texts, failure codes and turns are not voted on: they are copied from the member that agrees with the most decided
fields. A field without a majority leaves the panel split: it has no value, and the others stand beside it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.errors import SidejudgeError

Rule = Literal["majority", "median"]
Field: TypeAlias = bool | int | float | str

SPLIT: Final = "the panel is split"
_NOT_VOTED: Final = frozenset({"failure_code", "turns", "reason", "reasoning", "rationale"})
_LIST: Final = "*"
"""Ends the name of a list of findings, which is taken whole from the member in the middle."""
_WHOLE: Final = ""
"""The name of the only field of an answer that is no object."""


class SplitError(SidejudgeError, ValueError):
    """No answer has the panel behind it. ``decided`` is the vote, with None for each of the ``split`` fields."""

    def __init__(self, message: str, split: Sequence[str] = (), decided: Vote | None = None) -> None:
        super().__init__(message)
        self.split, self.decided = tuple(split), decided


@dataclass(frozen=True, slots=True)
class Vote:
    """The panel's answer. ``side`` is the index of the member whose texts it carries.

    ``dissent`` is the share in [0, 1] of the members' votes, over all fields, that differ from what was decided.
    """

    value: object
    side: int
    dissent: float


def vote(values: Sequence[object], rule: Rule) -> Vote:
    """Combine what each member answered.

    Args:
        values: at least one answer, all to the same question.
        rule: what decides whole numbers without a majority.

    Raises:
        SplitError: a field has no majority; what the others come to is in it.
    """
    ballots = [votes(value) for value in values]
    names = tuple(dict.fromkeys(name for ballot in ballots for name in ballot))
    decided: dict[str, Field | None] = {}
    splits: dict[str, SplitError] = {}
    for name in names:
        try:
            decided[name] = _decide(name, [ballot.get(name) for ballot in ballots], rule)
        except SplitError as error:
            splits[name] = error
    agreeing = [sum(ballot.get(name) == value for name, value in decided.items()) for ballot in ballots]
    side = agreeing.index(max(agreeing))
    dissent = 1 - sum(agreeing) / (len(ballots) * len(names)) if names else 0.0
    value = _with(values[side], decided)
    if splits:
        rest = {**value, **dict.fromkeys(splits)} if isinstance(value, Mapping) and decided else None
        found = None if rest is None else Vote(rest, side, dissent)
        raise SplitError(str(next(iter(splits.values()))), tuple(splits), found)
    return Vote(value, side, dissent)


def votes(value: object) -> dict[str, Field]:
    """The fields of an answer that are voted on, by name.

    A list of findings counts as the share of them that is true, a list of steps as the mean of their scores.
    """
    if not isinstance(value, Mapping):
        return _ballot(_WHOLE, value)
    found: dict[str, Field] = {}
    for name, part in value.items():
        if name not in _NOT_VOTED:
            found |= _ballot(str(name), part)
    return found


def _ballot(name: str, part: object) -> dict[str, Field]:
    match part:
        case bool() | int() | float():
            return {name: part}
        case str() if part and not any(mark.isspace() for mark in part):
            return {name: part}
        case [*items] if items and all(isinstance(item, bool) for item in items):
            return {f"{name}[{at}]": bool(item) for at, item in enumerate(items)}
        case [*items] if findings := [item for item in items if isinstance(item, Mapping)]:
            numbers = [float(each) for one in findings for each in one.values() if isinstance(each, bool | int | float)]
            return {name + _LIST: statistics.fmean(numbers)} if numbers else {}
        case _:
            return {}


def _decide(name: str, given: Sequence[Field | None], rule: Rule) -> Field | None:
    """The value of a field; None where most members leave it out."""
    ballots = [each for each in given if each is not None]
    if 2 * len(ballots) <= len(given):
        return None
    numbers = [each for each in ballots if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) == len(ballots) and any(isinstance(each, float) for each in numbers):
        middle = statistics.median(numbers)
        if name.endswith(_LIST) and middle not in numbers:
            raise SplitError(f"{SPLIT}: {len(ballots)} lists of findings, and none in the middle")
        return middle
    (most, count), *_ = Counter(ballots).most_common()
    if 2 * count > len(ballots):
        return most
    if rule == "median" and len(numbers) == len(ballots):
        return statistics.median_low(numbers)
    raise SplitError(f"{SPLIT}: no answer has more than half of {len(ballots)} votes")


def _with(chosen: object, decided: Mapping[str, Field | None]) -> object:
    """The chosen member's answer with the decided fields in place of its own."""
    if isinstance(chosen, Mapping):
        return {name: _field(str(name), part, decided) for name, part in chosen.items()}
    return _field(_WHOLE, chosen, decided)


def _field(name: str, own: object, decided: Mapping[str, Field | None]) -> object:
    if isinstance(own, list | tuple):
        if own and all(isinstance(item, bool) for item in own):
            return type(own)(decided.get(f"{name}[{at}]", item) for at, item in enumerate(own))
        return own
    value = decided.get(name)
    return own if value is None else value
