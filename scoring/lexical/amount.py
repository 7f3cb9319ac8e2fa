"""Numbers as people write them: one with its noun, one beside the mark that it reaches or not, and ranges of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def amount(number: float, noun: str, several: str = "") -> str:
    """``1 trace``, ``2 traces``, ``1,200 traces``; ``several`` is the plural where it is not the noun with an s.

    >>> amount(1, "verdict"), amount(2.5, "verdict"), amount(1200, "entry", "entries")
    ('1 verdict', '2.5 verdicts', '1,200 entries')
    """
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"
    return f"{shown} {noun if number == 1 else several or noun + 's'}"


def beside(value: float, mark: float | None, decimals: int = 3) -> str:
    """A value with so many decimals, or with more where these would put it on the other side of its mark.

    >>> beside(0.8696, 0.87), beside(0.8692, 0.87), beside(0.87, 0.87), beside(0.5, None)
    ('0.8696', '0.869', '0.870', '0.500')
    """
    return decided(value, lambda each: mark is None or round(each, 9) >= round(mark, 9), decimals)


def decided(value: float, holds: Callable[[float], bool], decimals: int) -> str:
    """A value with so many decimals, or with as many more, up to nine, as it takes for the text to hold as it does."""
    texts = [f"{value:.{each}f}" for each in range(decimals, 10)]
    return next((text for text in texts if holds(float(text)) == holds(value)), texts[-1])


def apart(lower: float, higher: float) -> tuple[str, str]:
    """Two numbers with six digits each, or with as many more as it takes for the first to read as the lower one.

    >>> apart(0.5, 0.7), apart(0.69999996, 0.7)
    (('0.5', '0.7'), ('0.69999996', '0.7'))
    """
    texts = [(f"{lower:.{digits}g}", f"{higher:.{digits}g}") for digits in (6, 9, 12, 15)]
    return next((both for both in texts if float(both[0]) < float(both[1])), texts[-1])


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers, those in a row as first and last.

    >>> ranges([1, 2, 3, 7, 9, 10])
    '1-3, 7, 9-10'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
