"""Histories under other keys than ``role`` and ``content``: ``{"from": "human", "value": …}`` and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sidejudge.integrations.dialects import messages, unwrap
from sidejudge.scoring.trace.span import Json, Message

_CALLING: Final = ("function_call", "tool_call")
_SPEAKERS: Final = {
    **messages.ROLES,
    **dict.fromkeys(("customer", "client", "caller", "prompter", "person", "visitor"), "user"),
    **dict.fromkeys(("gpt", "chatgpt", "bot", "llm", "ai_assistant", "agent", *_CALLING), "assistant"),
    **dict.fromkeys(("observation", "function_response"), "tool"),
    "instructions": "system",
}
_WHOSE: Final[tuple[str, ...]] = (
    "role", "from", "speaker", "author", "who", "sender", "by", "participant", "party", "actor", "source",
)  # fmt: skip
_STATED: Final = (
    "content", "text", "value", "message", "utterance", "body", "says", "words", "msg", "statement",
)  # fmt: skip
_BESIDE: Final = frozenset({
    "finish_reason", "finishReason", "stop_reason", "id", "type", "kind", "status", "name", "timestamp", "time",
    "created_at", "date", "model", "channel", "event.name",
})  # fmt: skip
"""Keys whose texts are not spoken."""
_MOST_KEYS, _DEEPEST, _WIDEST = 8, 4, 40
SPOKEN: Final = re.compile(
    r"""[:\[,]\s*["'](?:user|human|customer|caller|prompter|visitor|assistant|gpt|chatgpt|bot|chatbot|ai_assistant)["']""",
    re.IGNORECASE,
)
"""Parts that the text of every such history contains."""


def history(value: Json) -> tuple[Message, ...]:
    """The messages of a history, or of the only one in a map of maps; none for another value."""
    found = list(_histories(value, _DEEPEST))
    return found[0] if len(found) == 1 else ()


def _histories(value: Json, depth: int) -> Iterator[tuple[Message, ...]]:
    if isinstance(value, list):
        if read := _read(value):
            yield read
    elif isinstance(value, dict) and depth > 0 and len(value) <= _WIDEST:
        if read := _read([value]):
            yield read
        else:
            for held in value.values():
                yield from _histories(held, depth - 1)


def _read(items: Sequence[Json]) -> tuple[Message, ...]:
    turns = [item for item in items if isinstance(item, dict) and 1 < len(item) <= _MOST_KEYS]
    if not turns or len(turns) != len(items):
        return ()
    shared = [key for key in turns[0] if all(key in turn for turn in turns)]
    whose = [key for key in shared if all(_speaker(turn[key]) for turn in turns)]
    spoken = {_speaker(turn[key]) for key in whose for turn in turns}
    whose = [key for key in _WHOSE if key in whose][:1] or (whose if {"user", "assistant"} <= spoken else [])
    others = [key for key in shared if key not in whose and key not in _BESIDE]
    texts = [key for key in others if all(isinstance(turn[key], str) for turn in turns)]
    stated = [key for key in _STATED if key in texts] or (texts if len(texts) == 1 else [])
    if len(whose) != 1 or not stated or spoken <= {"system", "tool"}:
        return ()
    plain = [_plain(turn, turn[whose[0]], turn[stated[0]]) for turn in turns]
    return messages.stated(plain)


def _plain(turn: dict[str, Json], whose: Json, stated: Json) -> Json:
    """A turn as a message; a ``function_call`` has the call in place of a text."""
    if whose in _CALLING and isinstance(call := unwrap.decoded(stated), dict):
        return {"role": "assistant", "tool_calls": [call]}
    return {**turn, "role": _speaker(whose), "content": stated}


def speaker(value: unwrap.Content) -> str | None:
    """The role that a speaker's word means, in upper or lower case; None for another value, and for a tool call."""
    return None if value in _CALLING else _speaker(value)


def _speaker(value: unwrap.Content) -> str | None:
    return _SPEAKERS.get(value.lower()) if isinstance(value, str) else None
