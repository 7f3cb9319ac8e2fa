"""What Haystack's pipelines and agents look like, whoever reports them."""

from __future__ import annotations

import re

from sidejudge.scoring.trace.span import Json

from .reading import SpanReading

_SELF_INTRODUCTION = re.compile(r"\s*You are (?:the |an? )?([\w-]+)(?: agent)?[.,;:]")


def component(value: Json) -> Json:
    """Input and output of a pipeline stand under the component's name, the input under ``data`` too."""
    for _ in range(3):
        if not isinstance(value, dict) or "messages" in value or "replies" in value:
            break
        inner = [item for item in value.values() if isinstance(item, dict)]
        held = [item for item in inner if "messages" in item or "replies" in item]
        value = held[-1] if held else inner[0] if len(inner) == 1 else None
    return value


def introduced(reading: SpanReading, system_prompt: str | None) -> str | None:
    """The name by which a system prompt opens (``You are the research agent.``): the only place that has an agent's."""
    found = _SELF_INTRODUCTION.match(system_prompt or "")
    if not found:
        return None
    reading.note("agent", "opening of the system prompt")
    return found[1]


def sole_text(value: Json) -> str | None:
    """The one text that is given to a pipeline's components, or to one of them, however many times it is given."""
    if isinstance(value, dict) and isinstance(held := value.get("data"), dict):
        value = held
    texts = [text for part in value.values() for text in _texts(part)] if isinstance(value, dict) else []
    return texts[0] if texts and len(set(texts)) == 1 else None


def _texts(part: Json) -> list[str]:
    values = list(part.values()) if isinstance(part, dict) else [part]
    return [text for text in values if isinstance(text, str) and text]
