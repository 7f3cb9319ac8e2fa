"""Feedback: a user's rating or comment on an answer, where clients write it on a span; kept as ``metadata.feedback``.

| client | where |
|---|---|
| any that has metadata (Langfuse, OpenInference, OpenLLMetry, LangSmith, AI SDK, …) | its key ``feedback``, as it is |
| any | the attributes ``feedback``, ``user_feedback``, ``user.feedback`` |
| OpenInference | ``evaluations.N.evaluation.*``, ``trace.evaluations.N.evaluation.*`` by an annotator ``HUMAN`` |
| Logfire | an annotation: ``logfire.feedback.name`` names the attribute that holds the value |
| GenAI conventions | a span event ``gen_ai.evaluation.result`` whose name speaks of feedback |

Scores that Langfuse, LangSmith or MLflow take through an API of their own travel on no span and are not seen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sidejudge.integrations.raw import AttributeValue, RawEvent
from sidejudge.scoring.case.feedback import KEYS
from sidejudge.scoring.trace.span import Json

from . import unwrap

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
