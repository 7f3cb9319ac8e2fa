"""What SUPPORT.md promises is pinned, name by name: what is removed or changed without an alias fails here."""

from __future__ import annotations

import pytest

from sidejudge.monitor.reference import promised
from sidejudge.monitor.reference.config_page import SchemaField, schema_fields
from sidejudge.monitor.reference.promises import KINDS, broken, pins

PROMISED = promised()


@pytest.mark.parametrize("path", PROMISED, ids=lambda path: path.stem)
def test_every_pinned_name_is_provided(path):
    lost = broken(path.read_text("utf-8"), set(PROMISED[path]()))
    message = f"promised in {path.name}, and gone or changed: keep it, under an alias where it has a new name"
    assert not lost, "\n".join([message, *lost])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("api", "GET /v1/status 200 services[].pass_ratio: number or null"),
        ("api", "GET /v1/verdicts parameter trace_id"),
        ("commands", "score --rubric"),
        ("commands", "exit codes | `status` | healthy | warning |"),
        ("configuration", "alerts.thresholds.warning"),
        ("configuration-values", "alerts.thresholds.warning: number"),
        ("configuration-values", "alerts.mode = point"),
        ("commands", "score requires cases, --out"),
        ("commands", "score --overwrite takes no value"),
        ("commands", "score --format = parquet"),
        ("files", "verdict composite_norm: number or null"),
        ("files", "verdict state = disqualified"),
        ("api", "GET /v1/traces/{trace_id} 200 dialects: array or null"),
        ("api", "GET /v1/status 200 services[].status = insufficient_data"),
        ("files", "verdict passed: boolean or null"),
        ("files", "parquet verdicts passed: bool"),
        ("metrics", "sidejudge_pass_ratio label rubric"),
        ("python", "sidejudge.score requires case, rubric"),
        ("python", "sidejudge.Case attribute model_output"),
        ("scores", "workflow_pass"),
    ],
)
def test_each_kind_of_name_is_pinned(kind, name):
    (path,) = (path for path in PROMISED if path.stem == kind)
    assert [line for line in path.read_text("utf-8").splitlines() if line.startswith(name)]


def test_a_name_that_is_gone_is_named_and_stays_pinned():
    assert broken("a\nb: number\n", {"a", "b: string", "c"}) == ["b: number"]
    assert pins("a\nb: number\n", {"a", "b: string", "c"}) == "a\nb: number\nb: string\nc\n"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_provided_does_not_depend_on_the_call(kind):
    assert sorted(set(KINDS[kind]())) == sorted(set(KINDS[kind]()))


def test_fields_of_a_schema_are_found_through_references_lists_maps_and_choices():
    document = {
        "$defs": {
            "Node": {"properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}, "type": "object"}
        }
    }
    schema = {
        "properties": {
            "nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "description": "all  of\nthem"},
            "by": {"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            "one": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
            "few": {"type": "array", "items": {"enum": ["a", 2]}},
            "mode": {"anyOf": [{"const": "off", "type": "string"}, {"type": "null"}]},
        }
    }
    assert list(schema_fields(schema, document)) == [
        SchemaField("nodes", "array", "all of them"),
        SchemaField("nodes[].name", "string", ""),
        SchemaField("nodes[].next", "object", ""),
        SchemaField("by", "object", ""),
        SchemaField("by{}.name", "string", ""),
        SchemaField("by{}.next", "object", ""),
        SchemaField("one", "object or null", ""),
        SchemaField("one.name", "string", ""),
        SchemaField("one.next", "object", ""),
        SchemaField("few", "array", "", ("a", "2")),
        SchemaField("mode", "string or null", "", ("off",)),
    ]
