from __future__ import annotations

from sidejudge.dashboards.pages.plain_pages import api_page

DOCUMENT = {
    "info": {"title": "sidejudge", "version": "1.2.3"},
    "paths": {
        "/v1/things": {
            "get": {
                "description": "Things; `none` of them <b>bold</b>.",
                "parameters": [
                    {"name": "limit", "schema": {"type": "integer", "minimum": 1, "maximum": 9}, "required": True},
                    {"name": "state", "schema": {"anyOf": [{"$ref": "#/components/schemas/State"}, {"type": "null"}]}},
                ],
                "responses": {
                    "200": {
                        "description": "Yes.",
                        "content": {"application/json": {"schema": {"type": "array", "items": {}}}},
                    },
                    "404": {"description": "No."},
                },
            }
        }
    },
    "components": {
        "schemas": {
            "State": {"enum": ["good", "bad"], "type": "string"},
            "Thing": {
                "description": "A thing.",
                "properties": {"means": {"type": "object", "additionalProperties": {"type": "number"}}},
            },
        }
    },
}


def test_paths_parameters_answers_and_models_are_shown():
    page = api_page(DOCUMENT)
    for part in (
        'GET <a href="/v1/things">/v1/things</a>', "integer, &gt;= 1, &lt;= 9, required",
        '<a href="#State">State</a> or null',
        "application/json list of any", "404", "map to number", 'id="State"', "A thing.", "<code>none</code>",
    ):  # fmt: skip
        assert part in page, part


def test_descriptions_are_escaped():
    assert "&lt;b&gt;bold&lt;/b&gt;" in api_page(DOCUMENT)


def test_a_document_without_paths_or_models_is_a_page_too():
    assert "sidejudge API" in api_page({"info": {"title": "sidejudge", "version": "0"}})
