"""A judge that keeps to the schema: what a model says that does exactly as it was asked, and nothing else.

It reads the questions out of the prompt as a model would, and the form of the answer from the schema of the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.openai import Act, Behaviour, Seen, completion

Choose = Callable[[str, str], Any]
"""What to say for a field of a metric; None: whatever the schema lets one say."""
_QUESTION = re.compile(r"^id: (q\d+\S*)\nmetric: (\S+)$", re.MULTILINE)


def judges(choose: Choose = lambda _metric, _field: None, *, delay_s: float = 0.0) -> Behaviour:
    """Answers every question of the request."""

    def act(seen: Seen) -> Act:
        body = completion(seen, {"content": json.dumps(judgement(seen, choose))})
        return Act(body=json.dumps(body).encode(), delay_s=delay_s)

    return act


def judgement(seen: Seen, choose: Choose = lambda _metric, _field: None) -> dict[str, Any]:
    schema = seen.body["response_format"]["json_schema"]["schema"]
    if "answers" not in schema["properties"]:
        return _made(schema, "", choose)
    items = schema["properties"]["answers"]["items"]
    forms = {name: form for form in items.get("anyOf", [items]) for name in form["properties"]["metric"]["enum"]}
    _, _, requested = seen.messages[1]["content"].rpartition("\nQUESTIONS\n")
    return {"answers": [{**_made(forms[m], m, choose), "id": i, "metric": m} for i, m in _QUESTION.findall(requested)]}


def _made(schema: Mapping[str, Any], metric: str, choose: Choose) -> dict[str, Any]:
    chosen = {name: choose(metric, name) for name in schema["properties"]}
    return {name: _least(form) if chosen[name] is None else chosen[name] for name, form in schema["properties"].items()}


def _least(schema: Mapping[str, Any]) -> Any:
    """The plainest value that a schema allows."""
    if "enum" in schema:
        return schema["enum"][-1]
    if "anyOf" in schema:
        return _least(schema["anyOf"][-1])
    kind = schema["type"]
    if "null" in kind:
        return None
    if kind == "object":
        return {name: _least(form) for name, form in schema["properties"].items()}
    if kind == "array":
        return [] if schema["items"].get("type") == "integer" else [_least(schema["items"])]
    return {"boolean": True, "number": 1.0, "integer": 0, "string": "as it says"}[kind]
