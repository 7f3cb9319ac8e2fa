"""The JSON Schema (draft 2020-12) of a tool's argument: without references to elsewhere, bounded, with strict numbers.

Numbers are strict (rubrics §1.8): ``2.0`` is no ``integer``, ``true`` is no number, and a ``const`` 2 is not 2.0.
Patterns are those of ``scoring/scenario/pattern.py``. A ``$ref`` names an entry of the schema's own ``$defs``. Keywords
that apply one part of a schema repeatedly (recursive references, ``unevaluated…``) are refused, so that the work of a
check is proportional to ``Schema.steps`` and the size of the argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sidejudge.scoring.lexical.nearest import nearest
from sidejudge.scoring.result.reason import Kind, Reason, ReasonPart, own, part
from sidejudge.scoring.trace.jsontext import kind
from sidejudge.scoring.trace.span import Json

from .pattern import PatternError, compile_pattern

if TYPE_CHECKING:
    import jsonschema_rs

_ONE: Final = ("items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else")
_SEVERAL: Final = ("anyOf", "allOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions")
_PLAIN: Final = (
    "type", "enum", "const", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains",
    "minProperties", "maxProperties", "dependentRequired", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "$comment", "$ref",
)  # fmt: skip
KEYWORDS: Final = (*_PLAIN, *_ONE, *_SEVERAL, *_NAMED)
_REFERENCES: Final = ("#/$defs/", "#/definitions/")
MAX_STEPS: Final = 10_000
"""Most steps of a schema: keywords, listed values, patterns' steps, and references counted as their targets."""
_MAX_DEPTH: Final = 50


@dataclass(frozen=True, slots=True)
class Schema:
    """A valid schema. ``steps`` bounds the work for each value and byte."""

    source: Json
    steps: int = field(default=1, compare=False)
    _validator: jsonschema_rs.Draft202012Validator | None = field(default=None, repr=False, compare=False)

    def violations(self, value: Json, path: str = "value") -> Iterator[Reason]:
        """The breaches of a value, each with its path; none when it conforms."""
        if self._validator is None:
            return
        try:
            for error in self._validator.iter_errors(value):
                yield _breach(error, path)
        except ValueError:
            yield Reason("{path} is nested too deep, or is not JSON", path=part(path))


def parse_schema(data: Json, path: str, problems: list[str]) -> Schema:
    """Read a schema; every fault is added to ``problems`` as ``path: what is wrong``."""
    if not isinstance(data, dict):
        problems.append(f"{path}: a JSON Schema must be an object")
        return Schema(data)
    known = len(problems)
    steps = _Size(data, problems).of(data, path)
    if steps > MAX_STEPS:
        problems.append(f"{path}: needs {steps:,} steps, at most {MAX_STEPS:,}; write a smaller schema")
    if len(problems) > known:
        return Schema(data)
    import jsonschema_rs  # noqa: PLC0415  # 4.5 MB, for those who have schemas

    try:
        validator = jsonschema_rs.Draft202012Validator(
            data, keywords=_STRICT, validate_formats=True, ignore_unknown_formats=False, offline=True
        )
    except jsonschema_rs.ValidationError as error:
        problems.append(f"{_joined(path, error.instance_path)}: {error.message[:200]}")
        return Schema(data)
    return Schema(data, steps, validator)


def json_equal(found: Json, wanted: Json) -> bool:
    """Equality of JSON values with strict types: where an integer is required, neither ``2.0`` nor ``true`` is one."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and found.keys() == wanted.keys() and all(
            json_equal(found[key], wanted[key]) for key in wanted
        )  # fmt: skip
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(json_equal, found, wanted))
    if isinstance(wanted, float):
        return kind(found) == "number" and found == wanted
    return type(found) is type(wanted) and found == wanted


class _Size:
    """The steps of a schema: each keyword and listed value counts, a reference as its target."""

    def __init__(self, root: Mapping[str, Json], problems: list[str]) -> None:
        self._root = root
        self._problems = problems
        self._of_reference: dict[str, int | None] = {}

    def of(self, schema: Json, path: str, depth: int = 0) -> int:
        if not isinstance(schema, dict):
            return 1  # true and false are schemas; the library refuses what is none
        if depth > _MAX_DEPTH:
            self._problems.append(f"{path}: nested too deep")
            return 1
        steps = 1
        for key, value in schema.items():
            if key not in KEYWORDS:
                self._problems.append(f"{path}.{key[:60]}: not supported{nearest(key, KEYWORDS)}")
            elif key == "$ref":
                steps += self._referred(value, f"{path}.$ref", depth)
            elif key in _ONE:
                steps += self.of(value, f"{path}.{key}", depth + 1)
            elif key in _SEVERAL and isinstance(value, list):
                steps += sum(self.of(one, f"{path}.{key}[{at}]", depth + 1) for at, one in enumerate(value))
            elif key in _NAMED and isinstance(value, dict):
                below = {name: self.of(one, f"{path}.{key}.{name[:60]}", depth + 1) for name, one in value.items()}
                steps += sum(below.values()) if key == "properties" else 0
            else:
                steps += self._plain(key, value, f"{path}.{key}")
        return steps

    def _plain(self, key: str, value: Json, path: str) -> int:
        if key == "pattern" and isinstance(value, str):
            try:
                return compile_pattern(value).steps
            except PatternError as error:
                self._problems.append(f"{path}: {error}")
        return _values(value)

    def _referred(self, value: Json, path: str, depth: int) -> int:
        start = next((one for one in _REFERENCES if isinstance(value, str) and value.startswith(one)), None)
        entries = self._root.get(start[2:-1]) if start is not None else None
        if start is None or not isinstance(value, str) or not isinstance(entries, dict):
            self._problems.append(f"{path}: must be {_REFERENCES[0]}NAME, an entry of the schema itself")
            return 1
        if value not in self._of_reference:
            self._of_reference[value] = None
            steps = self.of(entries.get(value.removeprefix(start)), path, depth + 1)
            self._of_reference[value] = min(steps, MAX_STEPS + 1)
        known = self._of_reference[value]
        if known is None:
            self._problems.append(f"{path}: {value[:60]} refers to itself; write out the levels that are needed")
        return known or 1


def _values(value: Json) -> int:
    """Values in a keyword's operand, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_values, inner))


_NO_MATCH: Final = "does not match"


class _Strict:
    """A keyword with a stricter meaning than in the standard; ``ValueError`` states the breach."""

    def __init__(self, _parent: dict[str, Any], value: Any, _path: list[str | int]) -> None:  # the library's types
        self._operand: Json = value


class _Type(_Strict):
    def validate(self, instance: Any) -> None:
        wanted = self._operand if isinstance(self._operand, list) else [self._operand]
        if not any(_is_of(instance, str(one)) for one in wanted):
            raise ValueError(f"is {kind(instance)}, expected {' or '.join(map(str, wanted))}")


class _Enum(_Strict):
    def validate(self, instance: Any) -> None:
        allowed = self._operand if isinstance(self._operand, list) else []
        if not any(json_equal(instance, one) for one in allowed):
            raise ValueError("is none of the allowed values")


class _Const(_Strict):
    def validate(self, instance: Any) -> None:
        if not json_equal(instance, self._operand):
            raise ValueError("is none of the allowed values")


class _Pattern(_Strict):
    def validate(self, instance: Any) -> None:
        if isinstance(instance, str) and not compile_pattern(str(self._operand)).search(instance):
            raise ValueError(f"{_NO_MATCH} {self._operand}")


_STRICT: Final[dict[str, type[jsonschema_rs.KeywordValidator]]] = {
    "type": _Type, "enum": _Enum, "const": _Const, "pattern": _Pattern,
}  # fmt: skip


def _is_of(value: Json, wanted: str) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) if wanted == "integer" else kind(value) == wanted


def _breach(error: jsonschema_rs.ValidationError, path: str) -> Reason:
    """The breach in words without anything of the value, because more people may see a verdict's reason."""
    import jsonschema_rs  # noqa: PLC0415  # 4.5 MB, for those who have schemas

    where = part(_joined(path, error.instance_path))
    kinds = jsonschema_rs.ValidationErrorKind
    match error.kind:
        case kinds.Custom():
            of_operator = error.message.startswith(_NO_MATCH)  # it repeats the pattern of the scenario
            breach = part(error.message) if of_operator else own(error.message)
            return Reason("{where} {breach}", where=where, breach=breach)
        case kinds.Required() as required:
            return Reason("{where}.{key} is missing", where=where, key=part(required.property))
        case kinds.Minimum() | kinds.Maximum() as bound:
            side = own("below" if isinstance(bound, kinds.Minimum) else "above")
            return Reason(
                "{where} is {side} {limit}", where=where, side=side, limit=ReasonPart(Kind.NUMBER, f"{bound.limit:g}")
            )
        case kinds.MinLength() | kinds.MaxLength():
            return Reason("{where} has {n} characters", where=where, n=len(str(error.instance)))
    return Reason("{where} breaks {rule}", where=where, rule=own(error.kind.name))


def _joined(path: str, below: list[str | int]) -> str:
    return path + "".join(f"[{one}]" if isinstance(one, int) else f".{one[:60]}" for one in below)
