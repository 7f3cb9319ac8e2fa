"""Answer: what an agent said, read as fields of a case."""

from __future__ import annotations

from collections.abc import Mapping

from integrations.cases import field_errors
from scoring.span import Json

FIELDS = (
    "agents_called", "tools_used", "context", "input_tokens", "output_tokens", "cost_usd", "model", "trace_id",
    "latency_model_ms",
)  # fmt: skip
"""What an answer may tell beside its ``output``, each as in a case. Anything else in it is left alone."""


class AnswerError(ValueError):
    """What the agent said is no answer, and why."""


def read_answer(said: object) -> dict[str, Json]:
    """The fields of a case that an answer makes: ``model_output`` and what it tells beside it.

    An answer is text, or a map with ``output``, which may be any JSON but null.
    """
    if isinstance(said, str):
        return {"model_output": said}
    if not isinstance(said, Mapping):
        raise AnswerError(f"the answer is {_kind(said)}, neither text nor an object with output")
    if said.get("output") is None:
        raise AnswerError("the answer has no output" if "output" not in said else "output is null")
    told = {name: said[name] for name in FIELDS if said.get(name) is not None}
    for value, path in ((said["output"], "output"), *((value, name) for name, value in told.items())):
        _require_json(value, path)
    for wrong in field_errors(told):
        raise AnswerError(f"{wrong.field} {wrong.message}; {wrong.remedy}")
    return {"model_output": said["output"], **told}


def _require_json(value: object, path: str) -> None:
    """Refuse what JSON cannot hold: a callable may return anything."""
    waiting = [value]
    seen = 0
    while waiting:
        found = waiting.pop()
        seen += 1
        if seen > _MOST_VALUES:
            raise AnswerError(f"{path} holds more than {_MOST_VALUES} values, or itself")
        if isinstance(found, dict) and all(isinstance(key, str) for key in found):
            waiting.extend(found.values())
        elif isinstance(found, list | tuple):
            waiting.extend(found)
        elif not (
            found is None or isinstance(found, str | bool | int) or (isinstance(found, float) and _finite(found))
        ):
            raise AnswerError(f"{path} holds {_kind(found)}, which JSON does not have")


_MOST_VALUES = 1_000_000


def _finite(value: float) -> bool:
    return value - value == 0


def _kind(value: object) -> str:
    kinds = {list: "a list", tuple: "a list", int: "a number", bool: "true or false", type(None): "null"}
    return kinds.get(
        type(value), f"a {type(value).__name__}" if not isinstance(value, float) else f"the number {value}"
    )
