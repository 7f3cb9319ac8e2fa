"""Statements of an output: sentences and filled fields, without labels, scores, ids and echoes of the input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from sidejudge.scoring.lexical.text import tokens
from sidejudge.scoring.trace.jsontext import kind
from sidejudge.scoring.trace.span import Json

from .closed_form import is_closed, is_id
from .summary import SummaryField, is_filled, read_summary

ECHOES = frozenset(("sentiment", "source_text"))
"""Keys under which an output repeats its input: sentences with their labels, sentences with translations."""
_JUDGED = frozenset(("label", "type", "score", "max_score", "emotion"))
"""Keys of an output's own judgements of the input; they are right or wrong, and state nothing."""
_SENTENCE_END = re.compile(r"(?<=[.!?。！？।])\s+|(?<=[。！？।])|\n")
_LEAST_WORDS = 2
"""A shorter part (*Mr.*, *1.*) is no sentence; the next one begins with it."""


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a prose text, as they are written; marks alone are none.

    >>> list(sentences("Mr. Rao called. 1. Refund of $49!"))
    ['Mr. Rao called.', '1. Refund of $49!']
    """
    begun = counted = words = 0
    for end in _SENTENCE_END.finditer(text):
        words += len(tokens(text[counted : end.start()]))
        counted = end.end()
        if words >= _LEAST_WORDS:
            yield text[begun : end.start()].strip()
            begun, words = counted, 0
    if words or tokens(text[counted:]):
        yield text[begun:].strip()


def stated(value: Json) -> Iterator[SummaryField]:
    """The statements of a value in order; a summary of a call as in the text rubric. A question states nothing.

    >>> [str(fact) for fact in stated({"reason": "It was paid. It was late.", "score": 5, "by": "Priya"})]
    ['It was paid.', 'It was late.', 'by: Priya']
    """
    summary = value.get("summary") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(summary, dict) and "call_purpose" in summary:
        rest = {key: item for key, item in value.items() if key != "summary"}
        yield from read_summary(value).facts
        yield from _of_leaves(rest)
    else:
        yield from _of_leaves(value)


def _of_leaves(value: Json) -> Iterator[SummaryField]:
    for key, leaf in leaves(value, without=ECHOES | _JUDGED):
        if is_id(key):
            continue
        if isinstance(leaf, str) and is_filled(leaf):
            if key and is_closed(leaf):
                yield SummaryField(leaf, key)
            else:
                yield from (SummaryField(each) for each in sentences(leaf) if not each.endswith(("?", "？")))
        elif kind(leaf) == "number":
            yield SummaryField(json.dumps(leaf), key)


def leaves(value: Json, *, without: frozenset[str] = frozenset()) -> Iterator[tuple[str, Json]]:
    """All values that hold no others, in order, with the key of their field; empty for an item of a list.

    Values under a key of ``without`` are left out.
    """
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:
        key, found = waiting.pop()
        if isinstance(found, dict):
            waiting.extend((name, found[name]) for name in reversed(found) if name not in without)
        elif isinstance(found, list):
            waiting.extend(("", item) for item in reversed(found))
        else:
            yield key, found
