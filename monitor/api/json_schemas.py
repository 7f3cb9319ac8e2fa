"""JSON Schemas of what goes into sidejudge and comes out of it, from the declarations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from sidejudge.integrations.cases import case_schema
from sidejudge.monitor.config.summary import json_schema
from sidejudge.scoring.scenario.scenario_schema import scenario_schema

from .verdict_schemas import VerdictBody


def verdict_schema() -> dict[str, object]:
    """JSON Schema (draft 2020-12) of one line of a file of verdicts."""
    schema = VerdictBody.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "sidejudge verdict"}


SCHEMAS: Mapping[str, Callable[[], Mapping[str, object]]] = {
    "configuration": json_schema,
    "case": case_schema,
    "scenario": scenario_schema,
    "verdict": verdict_schema,
}
"""What has a schema, and what makes it."""


def schema_text(name: str) -> str:
    """A schema as indented JSON."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"
