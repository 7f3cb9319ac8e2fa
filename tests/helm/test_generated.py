"""What is generated is what lies in the repository."""

from __future__ import annotations

import json

from tests.helm.generate import ROOT, copies, references, renders


def test_what_needs_no_engine_is_up_to_date():
    made = {**references(), **copies()}
    stale = [str(path.relative_to(ROOT)) for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "python -m tests.helm.generate"


def test_what_is_rendered_is_up_to_date(engine):
    stale = [
        str(path.relative_to(ROOT))
        for path, text in renders(engine).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "python -m tests.helm.generate"


def test_every_value_is_described():
    for path, text in references().items():
        if path.name == "values.schema.json":

            def undescribed(schema, at=""):
                for name, inner in schema.get("properties", {}).items():
                    here = f"{at}.{name}".lstrip(".")
                    if "properties" in inner:
                        yield from undescribed(inner, here)
                    elif "description" not in inner and here not in ("global", "enabled", "sidejudge-sidecar"):
                        yield here

            assert list(undescribed(json.loads(text))) == [], path
