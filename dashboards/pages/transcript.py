"""Transcript: what was said in a trace, turn by turn, with what verdicts quote of it marked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from scoring.case.case import Case
from scoring.case.conversation import turns
from scoring.case.grounds import written
from scoring.result.result import Unavailable
from scoring.trace.span import Json

from .evidence import Evidence, Marker
from .html import escape, prose

MOST_TURNS = 200
MOST_SAID = 300_000
"""Characters of all turns together that are shown."""
_TURN, _LONG = 6_000, 20_000
"""Characters of a turn, and of what lies folded away."""


def transcript(case: Case, evidence: Sequence[Evidence], marker: Marker) -> str:
    """The conversation as HTML, and folded below it what else was given. All is foreign text, and escaped."""
    # Here nothing is held against the application: of a trace that was cut short, what there is is shown.
    conversation = turns(replace(case, complete=True))
    if isinstance(conversation, Unavailable):
        return f'<div class="empty">{escape(conversation.reason)}</div>'
    named: dict[int, list[int]] = {}
    for each in evidence:
        if each.turn is not None:
            named.setdefault(each.turn, []).append(each.number)
    output, shown, left = written(case.model_output), [], MOST_SAID
    for number, turn in enumerate(conversation[:MOST_TURNS]):
        if left <= 0:
            break
        # What the output quotes is looked for in what was said before it, not in itself.
        is_output = turn.text == output
        text = prose(_laid_out(case), _TURN) if is_output else marker.mark(turn.text, _TURN)
        shown.append(_turn(number, turn.speaker, turn.at, text, named.get(number, [])))
        left -= min(len(turn.text), _TURN)
    rest = len(conversation) - len(shown)
    more = f'<p class="rest">{rest:,} more turns</p>' if rest else ""
    return f'<ol class="turns" start="0">{"".join(shown)}</ol>{more}{_folded(case)}'


def _laid_out(case: Case) -> str:
    """The output, over several lines where it is JSON."""
    content = case.output_content
    if not isinstance(content, dict | list):
        return written(content)
    try:
        return json.dumps(content, ensure_ascii=False, indent=2)
    except (RecursionError, ValueError):
        return written(content)


def _turn(number: int, speaker: str | None, at: str | None, text: str, named: Sequence[int]) -> str:
    head = " · ".join(filter(None, (str(number), escape(speaker or "", limit=40), escape(at or "", limit=20))))
    style = ' class="named"' if named else ""
    ids = "".join(f'<span id="evidence-{each}"></span>' for each in named)
    signs = f' <span class="signs">named by {", ".join(map(str, named))}</span>' if named else ""
    return f'<li{style}>{ids}<div class="speaker">{head}{signs}</div><div class="text">{text}</div></li>'


def _folded(case: Case) -> str:
    parts: tuple[tuple[str, Json], ...] = (
        ("Expected outcome", case.expected_outcome),
        ("System prompt", case.system_prompt),
        ("Context", list(case.context) if case.context else None),
    )
    return "".join(
        f'<details class="folded"><summary>{name}</summary><pre>{prose(written(value), _LONG)}</pre></details>'
        for name, value in parts
        if value not in (None, "")
    )
