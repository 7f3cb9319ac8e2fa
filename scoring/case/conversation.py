"""The conversation of an agent as numbered turns: a judge is shown them and refers to them by index."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.scoring.lexical.text import normalise
from sidejudge.scoring.result.reason import Reason, part
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.trace.span import Json

from .case import Case, Utterance
from .grounds import incomplete, text_or_json

_NOT_SPOKEN = frozenset(("system", "developer"))
_ASKING = frozenset(("user", "human", None))
"""Roles of the asking side; a message without a role counts as theirs."""


def turns(case: Case) -> tuple[Utterance, ...] | Unavailable:
    """The turns in order, numbered from 0: the transcript's turns, else the input's messages.

    In a transcript that is text each line is a turn. The output is the last turn unless the conversation already ends
    with it. An incomplete trace has no conversation to judge: a lost turn cannot be distinguished from one that did not
    happen.
    """
    if not case.complete:
        return incomplete(case)
    found = tuple(_spoken(case))
    if case.model_output not in (None, "", [], {}):
        last = Utterance(text_or_json(case.model_output), "agent")
        stated = normalise("\n".join(turn.text for turn in found))
        if not stated.endswith(normalise(last.text)):
            found = (*found, last)
    if found:
        return found
    if case.content_captured:
        return Unavailable(Reason("no conversation"))
    why = Reason("contents were not captured")
    if case.capture_switch:
        why += Reason("; {switch} would capture them", switch=part(case.capture_switch))
    return Unavailable(why)


def transcript_turns(case: Case) -> tuple[Utterance, ...]:
    """The turns of the transcript alone, one for each line of a text; empty when there is none."""
    if isinstance(case.transcript, str):
        return tuple(Utterance(line.strip()) for line in case.transcript.splitlines() if line.strip())
    return case.transcript or ()


def _spoken(case: Case) -> Iterator[Utterance]:
    if isinstance(case.transcript, tuple) or (case.transcript is not None and case.transcript != case.input):
        yield from transcript_turns(case)
    elif isinstance(case.input, list):
        yield from (turn for message in case.input if (turn := _of_message(message)) is not None)
    elif case.input not in (None, "", {}):
        yield Utterance(text_or_json(case.input), "user")


def question_of(case: Case) -> str:
    """The user's question: the input, or the last message of its user; empty when the case has neither."""
    if isinstance(case.input, list):
        requested = [turn for message in case.input if (turn := _of_message(message)) is not None]
        from_user = [turn.text for turn in requested if turn.speaker in _ASKING]
        return from_user[-1] if from_user else ""
    return "" if case.input is None else text_or_json(case.input)


def _of_message(message: Json) -> Utterance | None:
    """The turn of a message of a model's input; the application's system prompt is no turn."""
    if not isinstance(message, dict):
        return Utterance(text_or_json(message), "user")
    role = message.get("role")
    if role in _NOT_SPOKEN:
        return None
    content = message.get("content")
    text = content if isinstance(content, str) and content else text_or_json(message)
    return Utterance(text, role if isinstance(role, str) else None)
