"""Raw body: a body from an OpenAI-compatible endpoint comes in, in any wrapping; the response inside it goes out.

Some servers stream without being asked, and some send a message in parts. litellm reads neither. Unambiguous bodies are
read; a stream that broke off before its end is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from sidejudge.integrations.provider.attempt import BodyShape
from sidejudge.scoring.case.case import parse_output
from sidejudge.scoring.trace.span import Json

_EVENT: Final = "data:"
_DONE: Final = "[DONE]"
_OF_THOUGHTS: Final = ("think", "thought", "reason")
"""Words in the types of parts that hold what a model thought before its answer."""
_LINE_END: Final = re.compile(r"\r\n|[\r\n]")
"""What ends a line of a stream: JSON may hold other separators of lines as they are."""
MAX_BODY: Final = 8 * 2**20
"""Characters of a body that are read."""


def read_body(text: str) -> tuple[Mapping[str, Json], tuple[BodyShape, ...]]:
    """The body as one response, and what was unusual about it.

    Raises:
        ValueError: it is none.
    """
    if len(text) > MAX_BODY:
        raise ValueError("the body is too long")
    parsed = parse_output(text)
    if isinstance(parsed.value, dict) and parsed.error is None:
        whole = _joined(parsed.value)
        return whole, ("parts",) if whole is not parsed.value else ()
    return _streamed(text), ("stream",)


def _joined(body: Mapping[str, Json]) -> Mapping[str, Json]:
    """A response whose message is one text. Parts are joined to one, without thoughts and pictures."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    parts = message.get("content") if isinstance(message, dict) else None
    if not (isinstance(choices, list) and isinstance(first, dict) and isinstance(message, dict)):
        return body
    if not isinstance(parts, list):
        return body
    whole: dict[str, Json] = {**message, "content": text_of(parts)}
    return {**body, "choices": [{**first, "message": whole}, *choices[1:]]}


def text_of(parts: Sequence[object]) -> str:
    """The text of a message in parts, without its thoughts."""
    stated = [each for each in parts if isinstance(each, dict) and isinstance(each.get("text"), str)]
    return "".join(each["text"] for each in stated if not any(word in str(each.get("type")) for word in _OF_THOUGHTS))


def _streamed(text: str) -> Mapping[str, Json]:
    """One response out of the chunks of a stream of events."""
    response: dict[str, Json] = {}
    content: list[str] = []
    finish: Json = None
    done = False
    for line in _LINE_END.split(text):
        if not line.startswith(_EVENT):
            if line.strip() and not line.startswith((":", "event:", "id:", "retry:")):
                raise ValueError("no event of a stream")
            continue
        stated = line.removeprefix(_EVENT).strip()
        if stated == _DONE:
            done = True
            continue
        chunk = parse_output(stated).value
        if not isinstance(chunk, dict):
            raise ValueError("an event that is no JSON object")  # noqa: TRY004  # one kind of error for every breach
        response |= {key: value for key, value in chunk.items() if key in ("id", "model", "usage", "error") and value}
        match chunk:
            case {"choices": [{"delta": {"content": str(piece)}}, *_]}:
                content.append(piece)
        match chunk:
            case {"choices": [{"finish_reason": str(reason)}, *_]}:
                finish = reason
    if finish is None and not done:
        raise ValueError("a stream that broke off")
    message: dict[str, Json] = {"role": "assistant", "content": "".join(content)}
    return {**response, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def error_in(body: Mapping[str, Json]) -> str | None:
    """The error in a body with status 200; None for a response."""
    stated = body.get("error")
    if stated is None:
        return None
    return str(stated.get("message", "")) if isinstance(stated, dict) else json.dumps(stated)
