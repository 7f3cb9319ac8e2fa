"""Answer: an agent's reply, read as fields of a case.

Plain: whether a value is one that JSON can hold, and hold as deeply as everybody can read again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from sidejudge.integrations.cases import field_errors
from sidejudge.integrations.jsonl import line
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import Json

MAX_DEPTH = 100
"""Levels of lists and objects."""
MAX_VALUES = 1_000_000


def not_plain(value: object) -> str | None:
    """Why a value is not JSON, as the end of a sentence about it; ``None`` when it is. Tuples are taken for lists."""
    waiting = [(value, 0)]
    seen = 0
    while waiting:
        found, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            return f"is nested more than {MAX_DEPTH} levels deep" if depth > MAX_DEPTH else "holds too many values"
        if isinstance(found, dict) and all(isinstance(key, str) for key in found):
            waiting.extend((each, depth + 1) for each in found.values())
        elif isinstance(found, list | tuple):
            waiting.extend((each, depth + 1) for each in found)
        elif isinstance(found, float) and not math.isfinite(found):
            return f"holds the number {found}, which JSON does not have"
        elif found is not None and not isinstance(found, str | bool | int | float):
            return f"holds a {type(found).__name__}, which JSON does not have"
    return None


FIELDS = (
    "agents_called", "tools_used", "context", "input_tokens", "output_tokens", "cost_usd", "model", "trace_id",
    "latency_model_ms",
)  # fmt: skip
"""The fields of an answer beside its ``output``, each as in a case. Anything else is ignored."""


class AnswerError(SidejudgeError, ValueError):
    """The agent's reply is no answer; the message states why."""


def read_answer(stated: object) -> dict[str, Json]:
    """The fields of a case that an answer makes: ``model_output`` and what it holds beside it.

    An answer is text, or a map with ``output``, which may be any JSON but null.
    """
    if isinstance(stated, str):
        return {"model_output": stated}
    if not isinstance(stated, Mapping):
        raise AnswerError(f"the answer is {_kind(stated)}, neither text nor an object with output")
    if stated.get("output") is None:
        raise AnswerError("the answer has no output" if "output" not in stated else "output is null")
    reported = {name: stated[name] for name in ("output", *FIELDS) if stated.get(name) is not None}
    for name, value in reported.items():
        if (why := not_plain(value)) is not None:
            raise AnswerError(f"{name} {why}")
    # As a file would hold it: an answer that is judged now and one that is read again are the same.
    fields: dict[str, Json] = json.loads(line(reported))
    for wrong in field_errors(fields):
        raise AnswerError(f"{wrong.field} {wrong.message}; {wrong.remedy}")
    return {"model_output": fields.pop("output"), **fields}


def _kind(value: object) -> str:
    kinds = {list: "a list", tuple: "a list", int: "a number", float: "a number", type(None): "null"}
    return kinds.get(type(value), f"a {type(value).__name__}")
