"""Answers: a judge's text taken apart, strictly. What is not exactly what was asked for is no answer.

A cause names the place and the fault, never the content: what a judge writes may repeat what it was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scoring.case.case import parse_output
from scoring.questions import contract
from scoring.questions.question import Question

MAX_ANSWER = 1_000_000
"""Characters of a judge's text that are read."""
MAX_WORDS = 80
"""Words of an explanation (seed 002 §2.2; rubrics §8)."""


class ParseError(ValueError):
    """A judge's text that breaks its contract; the message is the cause, a few words long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedValue:
    """One answer. ``value`` is of the type that the question's docstring says; ``reason`` is the judge's own.

    ``prompt_version`` is the SHA-256 of the prompt files that this question was asked with, whatever others were asked
    in the same call.
    """

    value: object
    reason: str
    prompt_version: str


def decode(text: str) -> Mapping[str, object]:
    """The one JSON object that the text is; a code fence around it, or anything else, is a breach."""
    if len(text) > MAX_ANSWER:
        raise ParseError(f"longer than {MAX_ANSWER} characters")
    parsed = parse_output(text)
    if parsed.fenced:
        raise ParseError("in a Markdown fence")
    if parsed.error is not None:
        raise ParseError("not JSON" if text.strip() else "empty")
    if not isinstance(parsed.value, dict):
        raise ParseError("not a JSON object")
    return parsed.value


def by_id(found: Mapping[str, object], ids: Sequence[str]) -> dict[str, Mapping[str, object]]:
    """The objects of the list ``answers`` by their ids: each of ``ids`` once, and no other."""
    exactly(found, ("answers",))
    listed = found["answers"]
    if not isinstance(listed, list):
        raise ParseError("answers is not a list")
    answers: dict[str, Mapping[str, object]] = {}
    for at, one in enumerate(listed):
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            raise ParseError(f"answers[{at}] is not an object with an id")
        if one["id"] in answers:
            raise ParseError(f"answers[{at}]: its id stands twice")
        if one["id"] not in ids:
            raise ParseError(f"answers[{at}]: its id was not asked")
        answers[one["id"]] = one
    missing = [name for name in ids if name not in answers]
    if missing:
        raise ParseError(f"{missing[0]} has no answer" + (f", nor have {len(missing) - 1} more" if missing[1:] else ""))
    return answers


def exactly(found: Mapping[str, object], keys: Sequence[str]) -> None:
    """Raise ``ParseError`` unless these are the object's keys, all of them and no others."""
    for key in keys:
        if key not in found:
            raise ParseError(f"{key} is missing")
    if len(found) > len(keys):
        raise ParseError("a key that was not asked for")


def explanation(found: Mapping[str, object], key: str) -> str:
    """An explanation: not blank, and no longer than it may be."""
    text = contract.text(found, key)
    whole = found[key]
    if len(text.split()) > MAX_WORDS or (isinstance(whole, str) and len(whole.strip()) > contract.MAX_TEXT):
        raise ParseError(f"{key} has more than {MAX_WORDS} words")
    return text


def texts(found: Mapping[str, object], key: str, *, least: int, most: int) -> tuple[str, ...]:
    """A list of texts, none of them blank."""
    listed = contract.required(found, key)
    if not isinstance(listed, list) or not least <= len(listed) <= most:
        raise ParseError(f"{key} is not a list of {least} to {most} texts")
    return tuple(contract.text({key: one}, key) for one in listed)


def objects(found: Mapping[str, object], key: str, keys: Sequence[str], most: int) -> tuple[Mapping[str, object], ...]:
    """A list of objects, each with exactly these keys."""
    listed = contract.required(found, key)
    if not isinstance(listed, list) or len(listed) > most:
        raise ParseError(f"{key} is not a list of at most {most} objects")
    for one in listed:
        if not isinstance(one, dict):
            raise ParseError(f"{key} holds something that is not an object")
        exactly(one, keys)
    return tuple(listed)


def level(found: Mapping[str, object], key: str, allowed: Sequence[float]) -> float:
    """One of a few numbers; ``true`` is none, and where all are whole, neither is 1.0."""
    value = contract.required(found, key)
    types = (int,) if all(type(one) is int for one in allowed) else (int, float)
    if type(value) not in types or value not in allowed:
        raise ParseError(f"{key} is not one of {', '.join(f'{one:g}' for one in allowed)}")
    return float(value)  # type: ignore[arg-type]  # a number, by its type


Reader = Callable[[Mapping[str, object], Question], tuple[object, str]]
"""From the object of one answer, its keys checked, to the question's value and the judge's reason."""
