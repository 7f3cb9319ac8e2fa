"""Certainty: a judge's text with the probabilities of its tokens comes in, the probability of each answer goes out.

For answers that are a yes, a no or a category. Grades have none: probability on the digits of a neighbouring grade
proves no doubt. An answer in another form than the requested one has none either: which tokens are the answer would be
a guess.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from sidejudge.scoring.questions.kinds import CANNOT_TELL
from sidejudge.scoring.trace.span import Json

Tokens: TypeAlias = Sequence[tuple[str, float]]
"""Each token of a text, in order, with the natural logarithm of its probability."""
_DECODER: Final = json.JSONDecoder()


def certainties(text: str, tokens: Tokens, asked: Mapping[str, Mapping[str, Mapping[str, Json]]]) -> dict[str, float]:
    """The probability of each answer by its id: that of its least probable field among yes, no and category fields.

    Args:
        text: the judge's text, as it was read.
        tokens: the tokens of that text; where they do not add up to it, nothing is known.
        asked: the fields of each answer by id, with their schemas.
    """
    if not tokens or "".join(token for token, _ in tokens) != text:
        return {}
    found: dict[str, float] = {}
    try:
        for item in _items(text):
            fields = dict(_members(text, item))
            name = _read(text, fields["id"]) if "id" in fields else None
            if not isinstance(name, str) or name not in asked:
                continue
            places = [
                fields[key]
                for key, schema in asked[name].items()
                if key in fields and _is_choice(_read(text, fields[key]), schema)
            ]
            if places:
                found[name] = min(_probability(tokens, *place) for place in places)
    except (ValueError, RecursionError):
        return {}
    return found


def _is_choice(value: Json, schema: Mapping[str, Json]) -> bool:
    """Whether a value is a yes, a no or a category; a grade of several levels is not."""
    if isinstance(value, bool):
        return True
    listed = schema.get("enum")
    if isinstance(value, str):
        variants = schema.get("anyOf")
        return value == CANNOT_TELL or (isinstance(listed, list) and CANNOT_TELL in listed) or variants is not None
    return isinstance(value, int) and listed == [0, 1]


def _items(text: str) -> Iterator[tuple[int, int]]:
    """The places of the objects in ``{"answers": [ … ]}``."""
    whole = dict(_members(text, (_past(text, 0), len(text))))
    at = whole["answers"][0] if "answers" in whole else len(text)
    if text[at : at + 1] != "[":
        return
    at = _past(text, at + 1)
    while text[at : at + 1] == "{":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _past(text, end)
        at = _past(text, at + 1) if text[at : at + 1] == "," else len(text)


def _members(text: str, place: tuple[int, int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The members of an object with the places of their values."""
    at = _past(text, place[0] + 1) if text[place[0] : place[0] + 1] == "{" else len(text)
    while text[at : at + 1] == '"':
        key, at = _DECODER.raw_decode(text, at)
        at = _past(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("no member")
        begin = _past(text, at + 1)
        _, end = _DECODER.raw_decode(text, begin)
        yield str(key), (begin, end)
        at = _past(text, end)
        at = _past(text, at + 1) if text[at : at + 1] == "," else len(text)


def _read(text: str, place: tuple[int, int]) -> Json:
    found: Json = _DECODER.raw_decode(text, place[0])[0]
    return found


def _past(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _probability(tokens: Tokens, begin: int, end: int) -> float:
    """The joint probability of all tokens that touch the place from ``begin`` to ``end``."""
    at, logarithms = 0, []
    for token, logarithm in tokens:
        if at < end and at + len(token) > begin:
            logarithms.append(logarithm)
        at += len(token)
    return min(1.0, math.exp(min(0.0, math.fsum(logarithms))))
