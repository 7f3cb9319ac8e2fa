"""Names that other tools give to the fields of a case: deepeval, Ragas, MLflow and Langfuse's datasets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sidejudge.scoring.trace.span import Json

OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "case_id": ("id",),
    "model_output": ("actual_output", "response", "answer", "output", "outputs", "prediction"),
    "input": ("user_input", "question", "query", "inputs"),
    "expected_outcome": (
        "expected_output", "expectedOutput", "ground_truth", "reference", "expected_response", "expected", "target",
    ),
    "context": ("retrieval_context", "retrieved_contexts", "contexts"),
    "tools_used": ("tools_called",),
    "metadata": ("additional_metadata",),
    "cost_usd": ("token_cost",),
})  # fmt: skip
"""Our field → the names that are read for it, the first that is there. Our own name goes before all of them."""
_OTHERS: Final = frozenset(other for others in OTHER_NAMES.values() for other in others)
_CALL = {"input_parameters": "arguments", "output": "result"}
"""deepeval's names within a tool call."""


def in_our_names(data: Mapping[str, Json]) -> dict[str, Json]:
    """The fields under our names. What has its field already keeps its own name, and so is not read."""
    expectations = data.get("expectations")
    if isinstance(expectations, dict) and isinstance(expectations.get("expected_response"), str):
        data = {**{key: value for key, value in data.items() if key != "expectations"}, **expectations}
    if _OTHERS.isdisjoint(data):
        return dict(data)
    chosen: dict[str, str] = {}
    for field, others in OTHER_NAMES.items():
        found = next((other for other in others if data.get(other) is not None), None)
        if found is None and field == "model_output":
            found = next((other for other in others if other in data and field not in data), None)  # no answer: null
        if found is not None and data.get(field) is None:
            chosen[found] = field
    taken = set(chosen.values())
    return {
        chosen.get(name, name): _value(chosen.get(name), name, value)
        for name, value in data.items()
        if name in chosen or name not in taken
    }


def _value(field: str | None, name: str, value: Json) -> Json:
    if field == "case_id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if field == "context" and isinstance(value, str):
        return [value]
    if name == "tools_called" and isinstance(value, list):
        return [_call(call) for call in value]
    return value


def _call(call: Json) -> Json:
    if not isinstance(call, dict):
        return call
    return {_CALL.get(key, key): value for key, value in call.items() if key not in {"description", "reasoning"}}
