"""Reported: evaluation results that arrive with the spans they are about, in events ``gen_ai.evaluation.result``.

Log records of that name are events of their span here (``contents_in_logs.py``). Anybody who can write telemetry can
write one: names and texts are cut, values are numbers or they are none. Our own events, which a Collector may send
back, are left out, and so is feedback of users, which has a place of its own (``feedback.py``).

After OpenTelemetry's GenAI conventions of November 2026:
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sidejudge.integrations.raw import EVALUATION, AttributeValue, RawEvent
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.trace.reported import LONGEST_NAME, LONGEST_TEXT, MOST_REPORTED, ReportedScore, number

_OWN: Final = "sidejudge."
_BY: Final = (
    "gen_ai.evaluation.evaluator.name", "gen_ai.evaluation.evaluator", "evaluator.name", "evaluator", "annotator",
    "gen_ai.agent.name", "gen_ai.provider.name",
)  # fmt: skip
"""Where an event says whose it is; the conventions have no attribute for it."""


def reported(events: Iterable[RawEvent], span_id: str) -> Iterator[ReportedScore]:
    """The evaluation results among a span's events, at most ``MOST_REPORTED``, in their order."""
    taken = 0
    for event in events:
        if event.name == EVALUATION and taken < MOST_REPORTED and (found := _score(event, span_id)) is not None:
            taken += 1
            yield found


def _score(event: RawEvent, span_id: str) -> ReportedScore | None:
    given = event.attributes
    name = given.get("gen_ai.evaluation.name")
    if not isinstance(name, str) or not name.strip() or "feedback" in name.lower():
        return None
    if any(key.startswith(_OWN) for key in given):
        return None
    value, invalid = number(given.get("gen_ai.evaluation.score.value"))
    if invalid is None and isinstance(given.get("error.type"), str):
        value, invalid = None, "an error of the evaluator"
    return ReportedScore(
        name=_one_line(name, LONGEST_NAME),
        value=value,
        label=_text(given, ("gen_ai.evaluation.score.label",), LONGEST_NAME),
        explanation=_text(given, ("gen_ai.evaluation.explanation",), LONGEST_TEXT),
        by=_text(given, _BY, LONGEST_NAME),
        at_ns=event.time_ns,
        span_id=span_id,
        invalid=invalid,
    )


def _text(given: Mapping[str, AttributeValue], keys: Iterable[str], most: int) -> str | None:
    found = next((value for key in keys if isinstance(value := given.get(key), str) and value.strip()), None)
    return None if found is None else _one_line(found, most)


def _one_line(text: str, most: int) -> str:
    return label(" ".join(text[: 4 * most].split()), most)
