"""Transcript: the conversation of a trace, turn by turn, with the quotations of verdicts found again and marked.

Reasons quote in quotation marks, and grades name turns. A quotation is searched as written, except for case and white
space; an absent one is not marked. The number and length of quotations are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sidejudge.scoring.case.case import Case, texts_in
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.facts import quotes
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.trace.span import Json

from .failing_metrics import scores_of

MOST_QUOTATIONS = 40
"""Quotations that are looked for."""
_LEAST, _LONGEST = 3, 400
"""Most characters of a quotation."""
_CITES = "evidence_backed_reasoning"
_OFTEN = 5
"""Places of one quotation in one text that are marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A quotation of a verdict's reason, or a turn that it names. ``number`` counts from 1, over all verdicts."""

    number: int
    rubric: str
    metric: str
    quote: str = ""
    turn: int | None = None


def evidence_of(verdicts: Sequence[Mapping[str, object]], output: Json = None) -> list[Evidence]:
    """Everything that the reasons and grades of these verdicts (in their JSON form) point to, in order, each once.

    Where a metric asks whether the reasons of the ``output`` cite evidence, their quotations are its evidence.
    """
    found: dict[tuple[str, str, str, int | None], None] = {}
    for verdict in verdicts:
        for score in scores_of(verdict):
            about = (str(verdict.get("rubric")), str(score.get("metric")))
            for text in (str(score.get("reason") or ""), *(texts_in(output) if about[1] == _CITES else ())):
                for quote in quotes(text):
                    if _LEAST <= len(quote.text.strip()) <= _LONGEST:
                        found.setdefault((*about, quote.text.strip(), None))
            for turn in _turns(score):
                found.setdefault((*about, "", turn))
    return [
        Evidence(number=number, rubric=rubric, metric=metric, quote=quote, turn=turn)
        for number, (rubric, metric, quote, turn) in enumerate(islice(found, MOST_QUOTATIONS), 1)
    ]


def _turns(score: Mapping[str, object]) -> Iterator[int]:
    details = score.get("details")
    named = details.get("turns") if isinstance(details, Mapping) else None
    yield from (turn for turn in named if type(turn) is int) if isinstance(named, list | tuple) else ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text. One with ``numbers`` is quoted by that evidence; ``anchor``: links to this number lead here."""

    text: str
    numbers: Sequence[int] = ()
    anchor: int | None = None


class Marker:
    """Marks quotations in texts, and remembers which of them it found."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.found: set[int] = set()
        self._wanted = [
            (each.number, max(each.quote.casefold().split(), key=len), _as_written(each.quote))
            for each in evidence
            if each.quote.strip()
        ]

    def mark(self, text: str, limit: int) -> list[Piece]:
        """The text, cut to ``limit`` characters, in quoted pieces and pieces between."""
        shown, pieces, done = text[:limit], [], 0
        for start, end, numbers in self._places(shown):
            anchor = numbers[0] if numbers[0] not in self.found else None
            self.found.update(numbers)
            pieces += [Piece(shown[done:start]), Piece(shown[start:end], numbers, anchor)]
            done = end
        return [*pieces, Piece(shown[done:] + ("…" if len(text) > limit else ""))]

    def _places(self, text: str) -> list[tuple[int, int, list[int]]]:
        """The places of quotations, in order without overlaps; of two that overlap, the one that begins first."""
        spans: dict[tuple[int, int], list[int]] = {}
        folded = text.casefold()
        for number, word, wanted in self._wanted:
            if word not in folded:  # nearly always, and at a hundredth of the cost
                continue
            for place in islice(wanted.finditer(text), _OFTEN):
                spans.setdefault(place.span(), []).append(number)
        apart: list[tuple[int, int, list[int]]] = []
        for (start, end), numbers in sorted(spans.items(), key=lambda item: (item[0][0], -item[0][1])):
            if not apart or start >= apart[-1][1]:
                apart.append((start, end, numbers))
            else:
                apart[-1][2].extend(n for n in numbers if n not in apart[-1][2])
        return apart


def _as_written(quote: str) -> re.Pattern[str]:
    """Its words, whatever their case and the white space between them. Takes time in proportion to a text's length."""
    return re.compile(r"\s+".join(map(re.escape, quote.split())), re.IGNORECASE)


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
