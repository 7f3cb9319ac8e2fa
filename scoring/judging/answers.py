"""Answers: a judge's text comes in; valid answers by question id, and the others' faults, go out.

A value that was not offered is no answer. A fault names the place and the rule, never the content, because a judge's
answer may repeat the material.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.scoring.case.case import parse_output
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.question import Question

from .shapes import Shape, ShapedItems, items_of

MAX_ANSWER = 1_000_000
"""Most characters of a judge's text that are read."""
MAX_WORDS = 80
"""Most words of an explanation (seed 002 §2.2; rubrics §8)."""


class ParseError(SidejudgeError, ValueError):
    """A judge's text breaks its contract; the message is the cause in a few words."""


REASON_CUT: Final = f"reason cut to {MAX_WORDS} words"
"""The flag of an answer whose explanation was too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedValue:
    """One answer. ``value`` has the type named in the question's docstring; ``reason`` is the judge's own text.

    ``prompt_version`` is the SHA-256 of the prompt files of this question, independent of other questions in the same
    call. ``flags`` note repairs made in reading it. ``certainty`` is its probability by the model's tokens, None where
    unknown.
    """

    value: object
    reason: str
    prompt_version: str
    flags: tuple[str, ...] = ()
    certainty: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReading:
    """What one answer text holds: valid ``answers`` by question, and why each other question has none.

    ``shapes`` counts answers read in another form than the requested one (``shapes.SHAPES``).
    """

    answers: Mapping[Question, JudgedValue]
    faults: Mapping[Question, str]
    shapes: Mapping[Shape, int] = field(default_factory=dict)


def decode(text: str, *, fenced: bool = False) -> Mapping[str, object]:
    """Read a text that is one JSON object.

    Args:
        text: what the judge wrote.
        fenced: whether a Markdown fence around the object is accepted.

    Raises:
        ParseError: the text is anything else.
    """
    if len(text) > MAX_ANSWER:
        raise ParseError(f"longer than {MAX_ANSWER} characters")
    parsed = parse_output(text)
    if parsed.fenced and not fenced:
        raise ParseError("in a Markdown fence")
    if parsed.error is not None:
        raise ParseError("not JSON" if text.strip() else "empty")
    if not isinstance(parsed.value, dict):
        raise ParseError("not a JSON object")
    return parsed.value


def read_items(text: str) -> ShapedItems:
    """The items of a judge's text in any shape; where the text breaks off, the complete items.

    Raises:
        ParseError: the text holds no items.
    """
    if len(text) > MAX_ANSWER:
        raise ParseError(f"longer than {MAX_ANSWER} characters")
    stated = _after_thoughts(text)
    if complete := _complete_items(stated):
        return ShapedItems(complete)
    found = items_of(stated)
    if not found.items and found.fault:
        raise ParseError(found.fault)
    if stated is not text:
        found.shapes["prose"] = 1
    return found


def _after_thoughts(text: str) -> str:
    """The text after the thoughts that some models write before their answer; a draft in them is no answer.

    A server may have put the opening tag into the prompt. ``ParseError`` where thoughts are not closed.
    """
    opening = _THOUGHTS.match(text)
    closing = None if text.lstrip(_BEFORE).startswith(_OF_ANSWERS) else _AFTER_THOUGHTS.search(text)
    if closing is not None:
        return text[closing.end() :]
    if opening is not None:
        raise ParseError("thoughts that do not end")
    return text


def _complete_items(text: str) -> list[Mapping[str, object]]:
    """The complete objects at the beginning of a cut-off list of answers; none for a whole text.

    Where the list ends, or is left open, and the text goes on, what follows may answer otherwise: its objects count as
    well.
    """
    opening = _OPENING.match(text[:MAX_ANSWER])
    if opening is not None and parse_output(text).error is None:
        return []
    items: list[Mapping[str, object]] = []
    at = opening.end() if opening else len(text)
    while at < len(text):
        try:
            _, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        one = parse_output(text[at:end])  # again, strictly: the decoder takes NaN and doubled keys
        if isinstance(one.value, dict):
            items.append(one.value)
        separator = _SEPARATOR.match(text, end)
        if separator is None:
            closing = _CLOSING.match(text, end)
            return items + items_of(text[end if closing is None else closing.end() :]).items
        at = separator.end()
    return items


def by_id(items: Sequence[object], ids: Sequence[str]) -> tuple[dict[str, Mapping[str, object]], dict[str, str]]:
    """The answers of a list by question id, and the faults of the ids that have none.

    Items with other ids are left out. A repeated id has an answer where both items are equal.
    """
    answers: dict[str, Mapping[str, object]] = {}
    faults: dict[str, str] = {}
    for one in items:
        name = one.get("id") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(name, str) or name not in ids:
            continue
        if name in answers and answers[name] != one:
            faults[name] = "is answered twice, differently"
        answers.setdefault(name, one)
    kept = {name: answers[name] for name in ids if name in answers and name not in faults}
    return kept, {name: faults.get(name, "has no answer") for name in ids if name not in kept}


def shortened(found: Mapping[str, object]) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """The object of one answer with its explanation cut to the allowed length, and the flag for it."""
    for key in _EXPLANATIONS:
        text = found.get(key)
        if isinstance(text, str) and _too_long(text):
            cut = " ".join(text.split()[:MAX_WORDS])[: contract.MAX_TEXT]
            return {**found, key: cut}, (REASON_CUT,)
    return found, ()


_THOUGHTS: Final = re.compile(r"\s*<(think(ing)?|thought|reasoning)>", re.IGNORECASE)
_AFTER_THOUGHTS: Final = re.compile(r"</(think(ing)?|thought|reasoning)>", re.IGNORECASE)
_BEFORE: Final = "\ufeff \t\r\n"
_OF_ANSWERS: Final = ("{", "[", "`", "~")
"""The beginnings of texts that are JSON, or a fence around it."""
_OPENING: Final = re.compile(r'\s*\{\s*"answers"\s*:\s*\[\s*')
_SEPARATOR: Final = re.compile(r"\s*,\s*")
_CLOSING: Final = re.compile(r"\s*\]")
_DECODER: Final = json.JSONDecoder()
_EXPLANATIONS: Final = ("reason", "reasoning")


def _too_long(text: str) -> bool:
    return len(text.split()) > MAX_WORDS or len(text.strip()) > contract.MAX_TEXT


def having(found: Mapping[str, object], keys: Sequence[str]) -> None:
    """Raise ``ParseError`` unless the object has these keys; others are ignored."""
    for key in keys:
        if key not in found:
            raise ParseError(f"{key} is missing")


def explanation(found: Mapping[str, object], key: str) -> str:
    """An explanation: not blank, and within the allowed length."""
    text = contract.text(found, key)
    whole = found[key]
    if isinstance(whole, str) and _too_long(whole):
        raise ParseError(f"{key} has more than {MAX_WORDS} words")
    return text


def texts(found: Mapping[str, object], key: str, *, least: int, most: int) -> tuple[str, ...]:
    """A list of non-blank texts."""
    items = contract.required(found, key)
    if not isinstance(items, list) or not least <= len(items) <= most:
        raise ParseError(f"{key} is not a list of {least} to {most} texts")
    return tuple(contract.text({key: one}, key) for one in items)


def objects(found: Mapping[str, object], key: str, keys: Sequence[str], most: int) -> tuple[Mapping[str, object], ...]:
    """A list of objects, each with at least these keys."""
    items = contract.required(found, key)
    if not isinstance(items, list) or len(items) > most:
        raise ParseError(f"{key} is not a list of at most {most} objects")
    for one in items:
        if not isinstance(one, dict):
            raise ParseError(f"{key} holds something that is not an object")
        having(one, keys)
    return tuple(items)


def level(found: Mapping[str, object], key: str, allowed: Sequence[float]) -> float:
    """One of a few numbers; ``true`` is not a number, and 1.0 is not accepted where all are whole."""
    value = contract.required(found, key)
    types = (int,) if all(type(one) is int for one in allowed) else (int, float)
    if type(value) not in types or value not in allowed:
        raise ParseError(f"{key} is not one of {', '.join(f'{one:g}' for one in allowed)}")
    return float(value)  # type: ignore[arg-type]  # a number, by its type


Reader = Callable[[Mapping[str, object], Question], tuple[object, str]]
"""Reads the object of one answer, its keys already checked, as the question's value and the judge's reason."""
