"""Was a tool's result used? A lexical estimate: something that only the result brought in shows in the output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .case import Case
from .facts import numbers
from .lexicon import STOPWORDS
from .span import Json, ToolCall
from .text import pieces, tokens

_ENOUGH_WORDS = 3
"""Words that must be shared; of a result with fewer, all. One or two are shared by chance."""
_MAX_CHARACTERS = 200_000


def unused_results(case: Case, calls: Sequence[ToolCall]) -> list[str]:
    """Names of the tools among ``calls`` whose result the output bears out nothing of.

    A result is used when the output has one of its numbers of two or more digits, or at least three of its content
    words, that stand neither in the case's input nor in the call's own arguments. A result that brings nothing new
    cannot be told to be unused.
    """
    said_words, said_numbers = _content(case.model_output)
    asked_words, asked_numbers = _content(case.input)
    unused: list[str] = []
    for call in calls:
        words, figures = _content(call.result)
        own_words, own_numbers = _content(call.arguments)
        words -= asked_words | own_words
        figures -= asked_numbers | own_numbers
        if not words and not figures:
            continue
        enough = min(_ENOUGH_WORDS, len(words))
        used = not figures.isdisjoint(said_numbers) or (words and len(words & said_words) >= enough)
        if not used:
            unused.append(call.name)
    return list(dict.fromkeys(unused))


def _content(value: Json) -> tuple[set[str], set[str]]:
    """Content words (three letters or more), and values of numbers of two digits or more, of all leaves."""
    text = "\n".join(_leaves(value))[:_MAX_CHARACTERS]
    figures = {reading for number in numbers(text) if len(number.text) > 1 for reading in number.values}
    words = {
        word
        for word in pieces(tokens(text))
        if not word.isdigit() and (len(word) > 2 or not word.isascii()) and word not in STOPWORDS
    }
    return words, figures


def _leaves(value: Json) -> Iterator[str]:
    """Texts and numbers anywhere in a JSON value; keys are names of fields, not content."""
    todo: list[Json] = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield str(one)
        else:
            todo.extend(_inside(one))


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return reversed(value.values())
    return reversed(value) if isinstance(value, list) else ()
