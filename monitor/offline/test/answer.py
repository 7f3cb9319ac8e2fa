"""Answer: an agent's reply, read as fields of a case."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sidejudge.integrations.cases import field_errors
from sidejudge.integrations.jsonl import line
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import Json

from .plain import not_plain

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
