"""configuration.md: every key, from the declarations of its sections; and the fields of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.environment import NOT_KEYS, name_of
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.section import meanings
from sidejudge.monitor.config.units import Address, Duration, size_text
from sidejudge.monitor.config.validation_messages import bare, item_of, keys_of
from sidejudge.scoring.trace.span import JsonRecord

from .markdown import page, table

_HEAD = ("key", "type", "default", "meaning", "environment")


def config_page() -> str:
    """The reference page of all configuration keys as Markdown."""
    variables = "\n".join(f"- `{name}`" for name in sorted(NOT_KEYS))
    return page("configuration", sections="\n".join(_sections(Config, ())), match=_match_section(), variables=variables)


def _sections(section: type[BaseModel], at: tuple[str, ...]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    inner: list[tuple[type[BaseModel], tuple[str, ...]]] = []
    for name, declared in section.model_fields.items():
        annotation = bare(declared.annotation)
        item = item_of(annotation)
        if annotation is MatchSection:
            rows.append(_row(section, name, (*at, name), "a [match](#match)"))
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            inner.append((annotation, (*at, name)))
        elif isinstance(item, type) and issubclass(item, BaseModel):
            mark = "[]" if _is_list(annotation) else ".ID"
            rows.append(_row(section, name, (*at, name), "list" if mark == "[]" else "map"))
            inner.append((item, (*at, name + mark)))
        else:
            rows.append(_row(section, name, (*at, name), "size" if name.endswith("_bytes") else _kind(annotation)))
    if rows:
        title = ".".join(at) or "top level"
        yield "\n".join((f"## {title}\n\n{_doc(section)}\n", table(_HEAD, rows), ""))
    elif at:
        yield f"## {'.'.join(at)}\n\n{_doc(section)}\n" if not inner else ""
    for deeper, path in inner:
        yield from (text for text in _sections(deeper, path) if text)


def _doc(section: type[BaseModel]) -> str:
    return " ".join((section.__doc__ or "").split()).replace("``", "`")


def _row(section: type[BaseModel], name: str, path: tuple[str, ...], kind: str) -> tuple[str, ...]:
    declared = section.model_fields[name]
    variable = "–" if any("[]" in part for part in path) else f"`{name_of(path).replace('.ID', '__ID')}`"
    default = _default(name, declared.get_default(call_default_factory=True))
    return f"`{'.'.join(path)}`", kind, default, meanings(section).get(name, ""), variable


def _default(name: str, value: object) -> str:
    if value is PydanticUndefined:
        return "*required*"
    if value is None or value in ((), {}):
        return "–"
    if name.endswith("_bytes") and isinstance(value, int):
        return f"`{size_text(value)}`"
    if isinstance(value, MatchSection):
        return "anything"
    if isinstance(value, tuple):
        shown = (
            item.model_dump(mode="json", exclude_none=True) if isinstance(item, BaseModel) else item for item in value
        )
        return "`" + ", ".join(map(str, shown)) + "`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _kind(annotation: object) -> str:
    if annotation is Duration:
        return "duration"
    if annotation is Address:
        return "address"
    known = {float: "number", int: "whole number", str: "text", Path: "path"}
    known |= {bool: "`true` · `false`", SecretStr: "secret"}
    if isinstance(annotation, type) and annotation in known:
        return known[annotation]
    arguments = getattr(annotation, "__args__", ())
    if arguments and all(isinstance(each, str) for each in arguments):
        return " · ".join(f"`{each}`" for each in arguments)
    return "list" if _is_list(annotation) else "map"


def _is_list(annotation: object) -> bool:
    return getattr(annotation, "__origin__", None) is tuple


def _match_section() -> str:
    text = (MatchSection.__doc__ or "").split("\n\n", 1)
    rows = [
        (f"`{shown}`", meanings(MatchSection)[name])
        for shown, name in zip(keys_of(MatchSection), MatchSection.model_fields, strict=True)
    ]
    head = " ".join(text[0].split()) + "\n\n" + " ".join(text[1].split())
    return "\n".join(("## match\n", f"{head.replace('``', '`')}\n", table(("key", "meaning"), rows), ""))


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


def schema_fields(
    schema: JsonRecord, document: JsonRecord, path: str = "", entered: tuple[str, ...] = ()
) -> Iterator[SchemaField]:
    """The fields of a schema, outer ones first. One that contains itself is not entered again.

    Args:
        schema: What stands at ``path``.
        document: Where references such as ``#/$defs/NAME`` and ``#/components/schemas/NAME`` lead.
        path: What the paths of the fields begin with.
        entered: References that led there.
    """
    for found, names in _alternatives(schema, document, entered):
        for name, inner in found.get("properties", {}).items():
            place = f"{path}.{name}" if path else name
            meaning = inner.get("description") or next(
                (each["description"] for each, _ in _alternatives(inner, document, names) if "description" in each), ""
            )
            yield SchemaField(place, _type(inner, document), " ".join(meaning.split()), _values(inner, document))
            yield from schema_fields(inner, document, place, names)
        if isinstance(items := found.get("items"), Mapping):
            yield from schema_fields(items, document, f"{path}[]", names)
        if isinstance(values := found.get("additionalProperties"), Mapping):
            yield from schema_fields(values, document, f"{path}{{}}", names)


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
