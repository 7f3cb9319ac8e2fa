"""Feedback: whether a user complained about an answer or praised it.

The metadata hold it under one of ``KEYS``; dialects copy there what clients write elsewhere
(``integrations/dialects/reported.py``). Numbers are thumbs: 1 is up, 0 and below are down. A scale of stars does not
define where a complaint ends, so that only zero and negative values count as one; for stars, match on
``metadata.feedback``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sidejudge.scoring.trace.span import Json

KEYS: Final = ("feedback", "user_feedback", "user-feedback", "userFeedback", "user.feedback")
"""Metadata keys that may hold it; the first one found counts."""
_WITHIN: Final = ("label", "sentiment", "value", "score", "rating", "thumbs")
_BAD: Final = frozenset((
    "negative", "bad", "wrong", "incorrect", "unhelpful", "not helpful", "not_helpful", "dislike", "disliked",
    "thumbs_down", "thumbs-down", "thumbs down", "thumbsdown", "down", "complaint", "no", "false", "fail", "👎",
))  # fmt: skip
_GOOD: Final = frozenset((
    "positive", "good", "right", "correct", "helpful", "like", "liked", "thumbs_up", "thumbs-up", "thumbs up",
    "thumbsup", "up", "praise", "yes", "true", "pass", "👍",
))  # fmt: skip


def negative(metadata: Mapping[str, Json]) -> bool | None:
    """Whether a user complained; False for praise, None without feedback that is understood.

    >>> negative({"feedback": "thumbs_down"}), negative({"feedback": 1}), negative({})
    (True, False, None)
    """
    return next((stated for key in KEYS if (stated := _complains(metadata.get(key))) is not None), None)


def _complains(value: Json, depth: int = 0) -> bool | None:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return None if value != value else value <= 0  # noqa: PLR0124  # not a number
    if isinstance(value, str):
        return _read(value.strip().casefold()) if len(value) <= 40 else None
    if depth:
        return None
    parts = value if isinstance(value, list) else [value.get(key) for key in _WITHIN] if isinstance(value, dict) else []
    reported = [stated for part in parts if (stated := _complains(part, 1)) is not None]
    if isinstance(value, list):
        return any(reported) if reported else None
    return reported[0] if reported else None


def _read(word: str) -> bool | None:
    if word in _BAD or word in _GOOD:
        return word in _BAD
    try:
        return _complains(float(word))
    except ValueError:
        return None
