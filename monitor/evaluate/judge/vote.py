"""Panel: several judges answer the same question, and one answer comes of it, or none.

``majority``: what more than half of them say. ``median``: the answer in the middle. A yes or no is decided by majority
and plain numbers by their median (of two in the middle, their mean) under either rule. An answer of several parts (a
score, a failure code, a rationale) is never mixed from several judges: the member whose decisive parts lie closest to
all others' speaks, so that its parts belong together. Decisive are numbers, truth values and words; a text with white
space is wording.

A panel that is split has no answer.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

Rule = Literal["majority", "median"]
Decisive = tuple[tuple[str, object], ...]

SPLIT: Final = "the panel is split"


class SplitError(ValueError):
    """No answer has the panel behind it."""


def agree(values: Sequence[object], rule: Rule) -> tuple[object, int | None]:
    """The panel's answer, and the index of the member who gave it (None: the mean of two).

    ``values`` holds what each member answered, at least one. Raises ``SplitError``.
    """
    decisive = [_decisive(value) for value in values]
    (most, votes), *_ = Counter(decisive).most_common()
    if 2 * votes > len(values):
        spokesman = decisive.index(most)
        return values[spokesman], spokesman
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        middle = statistics.median(numbers)
        return (middle, numbers.index(middle)) if middle in numbers else (middle, None)
    if rule == "majority" or any(isinstance(value, bool) for value in values):
        raise SplitError(f"{SPLIT}: no answer has more than half of {len(values)} votes")
    return _closest(values, decisive)


def disagrees(values: Sequence[object]) -> bool:
    """Whether the members differ in anything decisive."""
    return len({_decisive(value) for value in values}) > 1


def _closest(values: Sequence[object], decisive: Sequence[Decisive]) -> tuple[object, int]:
    distances = _distances([dict(each) for each in decisive])
    least = min(distances)
    nearest = [index for index, distance in enumerate(distances) if distance <= least]
    if len({decisive[index] for index in nearest}) > 1:
        raise SplitError(f"{SPLIT}: {len(values)} answers, and none in the middle")
    return values[nearest[0]], nearest[0]


def _distances(members: Sequence[Mapping[str, object]]) -> list[float]:
    """How far each member is from all others: by part, numbers by their share of the range, the rest 0 or 1."""
    total = [0.0] * len(members)
    for part in dict.fromkeys(name for member in members for name in member):
        said = [member.get(part) for member in members]
        numbers = [float(each) for each in said if isinstance(each, int | float)]
        spread = max(numbers) - min(numbers) if len(numbers) == len(said) else 0.0
        for index, own in enumerate(said):
            for other in said:
                if spread and isinstance(own, int | float) and isinstance(other, int | float):
                    total[index] += abs(own - other) / spread
                else:
                    total[index] += own != other
    return total


def _decisive(value: object) -> Decisive:
    """The parts of an answer that decide something, by their place; of a list of verdicts the share that is true."""
    found: dict[str, object] = {}
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        place, part = waiting.pop()
        match part:
            case Mapping():
                waiting.extend((f"{place}.{name}", each) for name, each in part.items())
            case [*items] if verdicts := [item for item in items if isinstance(item, Mapping)]:
                told = [each for item in verdicts for each in item.values() if isinstance(each, bool)]
                found[place] = sum(told) / len(told) if told else len(items)
            case [*items] if any(_is_wording(item) for item in items):
                pass
            case [*items]:
                found[place] = repr(items)
            case _ if not _is_wording(part):
                found[place] = part
    return tuple(sorted(found.items()))


def _is_wording(part: object) -> bool:
    return isinstance(part, str) and any(mark.isspace() for mark in part)
