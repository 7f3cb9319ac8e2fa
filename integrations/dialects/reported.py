"""Reported: evaluation results that arrive with the spans they are about, in events ``gen_ai.evaluation.result``.

Log records of that name are events of their span here (``contents_in_logs.py``). Anybody who can write telemetry can
write one: names and texts are cut, and only numbers are values. Our own events, which a Collector may send back, are
left out, as is users' feedback, which is read below.

After OpenTelemetry's GenAI conventions of November 2026:
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md.

Feedback: a user's rating or comment on an answer, where clients write it on a span; kept as ``metadata.feedback``.

| client | where |
|---|---|
| any that has metadata (Langfuse, OpenInference, OpenLLMetry, LangSmith, AI SDK, …) | its key ``feedback``, as it is |
| any | the attributes ``feedback``, ``user_feedback``, ``user.feedback`` |
| OpenInference | ``evaluations.N.evaluation.*``, ``trace.evaluations.N.evaluation.*`` by an annotator ``HUMAN`` |
| Logfire | an annotation: ``logfire.feedback.name`` names the attribute that holds the value |
| GenAI conventions | a span event ``gen_ai.evaluation.result`` whose name speaks of feedback |

Scores that Langfuse, LangSmith or MLflow take through an API of their own travel on no span. Those in Langfuse that a
rubric asks for are read there (``monitor/evaluate/references``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sidejudge.integrations.raw import EVALUATION, AttributeValue, RawEvent
from sidejudge.scoring.case.feedback import KEYS
from sidejudge.scoring.lexical.shown_text import one_line
from sidejudge.scoring.trace.reported import LONGEST_NAME, LONGEST_TEXT, MOST_REPORTED, ReportedScore, number
from sidejudge.scoring.trace.span import Json

from . import unwrap

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
        name=one_line(name, LONGEST_NAME),
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
    return None if found is None else one_line(found, most)


_EVALUATION = re.compile(r"((?:trace\.)?evaluations\.\d{1,4}\.evaluation\.)annotator_kind")
_LOGFIRE = "logfire.feedback.name"
_NAMES = frozenset((*KEYS, _LOGFIRE))
_EVENT = "gen_ai.evaluation.result"


def may_hold(keys: Iterable[str]) -> bool:
    """Whether attributes of these keys may hold it."""
    return any(key in _NAMES or _EVALUATION.fullmatch(key) for key in keys)


def in_attributes(attributes: Mapping[str, AttributeValue]) -> tuple[str, Json] | None:
    """The attribute that holds it and its value; None when none does."""
    for key in KEYS:
        if (value := attributes.get(key)) is not None:
            return key, unwrap.decoded(value, scalars=True)
    named = attributes.get(_LOGFIRE)
    if isinstance(named, str) and attributes.get(named) is not None:
        return named, unwrap.decoded(attributes[named], scalars=True)
    for key, kind in attributes.items():
        found = _EVALUATION.fullmatch(key) if key.endswith(".annotator_kind") else None
        if found and isinstance(kind, str) and kind.upper() == "HUMAN":
            stated = _stated(attributes, f"{found[1]}label", f"{found[1]}score")
            if stated is not None:
                return stated
    return None


def in_events(events: Iterable[RawEvent]) -> tuple[str, Json] | None:
    """The same of the first event that is one of feedback."""
    for event in events:
        if event.name == _EVENT:
            name = event.attributes.get("gen_ai.evaluation.name")
            if isinstance(name, str) and "feedback" in name.lower():
                return _stated(event.attributes, "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value")
    return None


def _stated(attributes: Mapping[str, AttributeValue], *keys: str) -> tuple[str, Json] | None:
    return next(((key, unwrap.decoded(attributes[key])) for key in keys if attributes.get(key) is not None), None)
