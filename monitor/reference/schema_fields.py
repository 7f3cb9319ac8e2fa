"""Schema fields: the fields of a JSON Schema as rows, each with its path, its type and its meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sidejudge.scoring.trace.span import JsonRecord


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field of a document.

    Attributes:
        path: From the document's root; ``[]`` are the elements of a list, ``{}`` the values of a map.
        type: JSON's word for its type, several with ``or``.
        meaning: Its description; empty where it has none.
        values: What it may be, where its schema lists that.
    """

    path: str
    type: str
    meaning: str
    values: tuple[str, ...] = ()


def schema_fields(schema: JsonRecord, document: JsonRecord, path: str = "") -> Iterator[SchemaField]:
    """The fields of a schema, outer ones first. One that contains itself is not entered again.

    Args:
        schema: What stands at ``path``.
        document: Where references such as ``#/$defs/NAME`` and ``#/components/schemas/NAME`` lead.
        path: What the paths of the fields begin with.
    """
    yield from _fields(schema, document, path, ())


def _fields(schema: JsonRecord, document: JsonRecord, path: str, entered: tuple[str, ...]) -> Iterator[SchemaField]:
    for found, names in _alternatives(schema, document, entered):
        for name, inner in found.get("properties", {}).items():
            place = f"{path}.{name}" if path else name
            meaning = inner.get("description") or next(
                (each["description"] for each, _ in _alternatives(inner, document, names) if "description" in each), ""
            )
            yield SchemaField(place, _type(inner, document), " ".join(meaning.split()), _values(inner, document))
            yield from _fields(inner, document, place, names)
        if isinstance(items := found.get("items"), Mapping):
            yield from _fields(items, document, f"{path}[]", names)
        if isinstance(values := found.get("additionalProperties"), Mapping):
            yield from _fields(values, document, f"{path}{{}}", names)


def _alternatives(
    schema: JsonRecord, document: JsonRecord, entered: tuple[str, ...]
) -> Iterator[tuple[JsonRecord, tuple[str, ...]]]:
    """What a schema may be, references followed, with the references that led there."""
    if (reference := schema.get("$ref")) is not None:
        if reference not in entered:
            yield from _alternatives(_at(document, reference), document, (*entered, reference))
        return
    several = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    for each in several:
        yield from _alternatives(each, document, entered)
    if not several or "properties" in schema:
        yield schema, entered


def _at(document: JsonRecord, reference: str) -> JsonRecord:
    found = document
    for key in reference.removeprefix("#/").split("/"):
        found = found[key]
    return found


def _values(schema: JsonRecord, document: JsonRecord) -> tuple[str, ...]:
    """What a field may be; of a list, its elements."""
    found = [each for each, _ in _alternatives(schema, document, ())]
    found += [inner for each in found if "items" in each for inner, _ in _alternatives(each["items"], document, ())]
    listed = (
        value for each in found for value in (*each.get("enum", ()), *([each["const"]] if "const" in each else ()))
    )
    return tuple(dict.fromkeys(str(value) for value in listed if value is not None))


def _type(schema: JsonRecord, document: JsonRecord) -> str:
    stated = [found.get("type", "any") for found, _ in _alternatives(schema, document, ())]
    types = {word for each in stated for word in ([each] if isinstance(each, str) else each)}
    return " or ".join(sorted(types - {"null"}) + (["null"] if "null" in types else []))
