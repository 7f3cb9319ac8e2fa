"""Transcript: the conversation of a trace, turn by turn, with verdicts' quotations marked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.trace.span import Json

from .evidence import Evidence, Marker, Piece

MOST_TURNS = 200
MOST_CHARACTERS = 300_000
"""Characters of all turns together that are shown."""
_TURN = 6_000
"""Most characters of a turn that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTurn:
    """One turn; ``named`` are the numbers of the evidence that names it."""

    number: int
    speaker: str | None
    at: str | None
    text: Sequence[Piece]
    named: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The turns (``more`` are left out), and (title, text) of other inputs; or why there are none."""

    note: str = ""
    unavailable: str = ""
    turns: Sequence[ShownTurn] = ()
    more: int = 0
    folded: Sequence[tuple[str, str]] = ()


def transcript(case: Case, evidence: Sequence[Evidence], marker: Marker) -> Transcript:
    """The conversation of a case, with the quotations that ``marker`` finds in it."""
    # Here nothing is held against the application: of a trace that was cut short, what there is is shown.
    conversation = turns(replace(case, complete=True))
    if isinstance(conversation, Unavailable):
        return Transcript(unavailable=conversation.reason)
    named: dict[int, list[int]] = {}
    for each in evidence:
        if each.turn is not None:
            named.setdefault(each.turn, []).append(each.number)
    output, shown, left = text_or_json(case.model_output), [], MOST_CHARACTERS
    for number, turn in enumerate(conversation[:MOST_TURNS]):
        if left <= 0:
            break
        # Quotations of the output are looked up in the turns before it, not in itself.
        text = [_cut(_indented(case))] if turn.text == output else marker.mark(turn.text, _TURN)
        shown.append(ShownTurn(number=number, speaker=turn.speaker, at=turn.at, text=text, named=named.get(number, ())))
        left -= min(len(turn.text), _TURN)
    return Transcript(
        note=_note(evidence, marker), turns=shown, more=len(conversation) - len(shown), folded=_folded(case)
    )


def _note(evidence: Sequence[Evidence], marker: Marker) -> str:
    quoted = [each for each in evidence if each.quote]
    if not quoted:
        return ""
    found = sum(each.number in marker.found for each in quoted)
    note = f"{found} of {len(quoted)} quotations in verdicts and reasons are marked"
    return note + ("; the others do not stand here word for word" if found < len(quoted) else "")


def _cut(text: str) -> Piece:
    return Piece(text if len(text) <= _TURN else f"{text[:_TURN]}…")


def _indented(case: Case) -> str:
    """The output, over several lines where it is JSON."""
    content = case.output_content
    if not isinstance(content, dict | list):
        return text_or_json(content)
    try:
        return json.dumps(content, ensure_ascii=False, indent=2)
    except (RecursionError, ValueError):
        return text_or_json(content)


def _folded(case: Case) -> list[tuple[str, str]]:
    parts: tuple[tuple[str, Json], ...] = (
        ("Expected outcome", case.expected_outcome),
        ("System prompt", case.system_prompt),
        ("Context", list(case.context) if case.context else None),
    )
    return [(title, text_or_json(value)) for title, value in parts if value not in (None, "")]
