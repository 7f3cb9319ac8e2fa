"""Checks of form: JSON (with a schema), XML, SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final
from xml.parsers import expat

from sidejudge.scoring.case.case import parse_output
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, ReasonPart, own, quoted
from sidejudge.scoring.result.result import Scored, Unavailable
from sidejudge.scoring.trace.jsontext import no_constant
from sidejudge.scoring.trace.span import Json

from .check import Check, CheckError, Finding, TextTest, flag, keys, library, text

_MOST_TRIES: Final = 100
"""Most opening brackets of a text that are tried as the beginning of JSON."""
_MOST_XML: Final = 1_000_000
_MOST_SQL: Final = 20_000
_MOST_REGEX: Final = 1_000_000
_BEGINS: Final = re.compile(r"[\s\ufeff]*[\[{\"\d\-tfn`~]")
"""The beginning of JSON or of a fence around it: prose is recognised by its first letter."""


_DECODER: Final = json.JSONDecoder(parse_constant=no_constant)


def schema(
    value: Json, path: str = "schema", *, mark: Callable[[str], ReasonPart] = quoted
) -> Callable[[Json], Reason | None]:
    """The error of a value under a JSON Schema (draft 2020-12 unless it names another); None where it is valid.

    References to other documents are refused, because nothing is fetched. Patterns run in linear time.
    """
    if not isinstance(value, dict):
        raise CheckError("must be a JSON Schema, or the path of a file with one", path)

    import jsonschema_rs  # noqa: PLC0415  # 4.5 MB, for those who have schemas

    elsewhere: list[str] = []

    def refuse(uri: str) -> Json:
        elsewhere.append(uri)
        raise LookupError(uri)

    try:
        options = jsonschema_rs.RegexOptions(size_limit=_MOST_REGEX, dfa_size_limit=_MOST_REGEX)
        validator = jsonschema_rs.validator_for(value, retriever=refuse, pattern_options=options)
    except ValueError as error:
        if elsewhere:
            stated = f"refers to {label(elsewhere[0])}, and nothing is fetched: put what it needs under $defs"
            raise CheckError(stated, path) from None
        raise CheckError(f"is not a JSON Schema that can be used: {label(str(error), 200)}", path) from None

    def fault(found: Json) -> Reason | None:
        try:
            error = next(validator.iter_errors(found), None)
        except (ValueError, RecursionError):
            return Reason("it is nested too deeply to be checked")
        if error is None:
            return None
        # Where and which rule: the message would repeat what stands there.
        path = "/".join(label(str(key), 40) for key in error.instance_path)
        rule = "/".join(label(str(key), 40) for key in error.schema_path)
        return Reason("at {path}: against {rule}", path=mark(path) if path else own("the whole"), rule=mark(rule))

    return fault


def _is_json(value: Json) -> TextTest:
    if value is None or value is True:
        return lambda found: _BEGINS.match(found) is not None and parse_output(found).error is None
    fault = schema(keys(value, ("schema",)).get("schema"))

    def test(found: str) -> Finding:
        parsed = parse_output(found) if _BEGINS.match(found) else None
        if parsed is None or parsed.error is not None:
            return False
        wrong = fault(parsed.value)
        return True if wrong is None else Scored(value=0.0, reason=wrong)

    return test


def _contains_json(value: Json) -> TextTest:
    fault = None
    if value is not None and value is not True:
        fault = schema(keys(value, ("schema",)).get("schema"))

    def test(found: str) -> Finding:
        tries, at = 0, 0
        while tries < _MOST_TRIES:
            starts = [place for place in (found.find("{", at), found.find("[", at)) if place >= 0]
            if not starts:
                return False
            at, tries = min(starts), tries + 1
            try:
                inner, end = _DECODER.raw_decode(found, at)
            except (ValueError, RecursionError):
                at += 1
                continue
            if fault is None or fault(inner) is None:
                return True
            at = end
        return Unavailable(Reason("more than {most} brackets open without JSON behind them", most=_MOST_TRIES))

    return test


def _is_xml(value: Json) -> TextTest:
    flag(value)
    return _well_formed


def _well_formed(found: str) -> Finding:
    if len(found) > _MOST_XML:
        return Unavailable(Reason("longer than {most} characters", most=_MOST_XML))
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError("a document type is not taken")  # where entities are declared that multiply

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(found.strip().encode(errors="surrogatepass"), True)
    except (expat.ExpatError, ValueError):
        return False
    return True


def _is_sql(value: Json) -> TextTest:
    sqlglot = library("sqlglot", "checks", "is-sql")
    given = keys(value if value is not True else None, ("dialect", "tables", "read_only"), short="dialect")
    dialect = text(given["dialect"], "dialect") if given.get("dialect") is not None else None
    known = sorted(each for each in sqlglot.Dialect.classes if each)
    if dialect is not None and dialect not in known:
        raise CheckError(f"is not a dialect: {dialect!r}; valid here: {', '.join(known)}", "dialect")
    tables = given.get("tables")
    if tables is not None and not (isinstance(tables, list) and all(isinstance(each, str) for each in tables)):
        raise CheckError("must be a list of names of tables", "tables")
    allowed = None if tables is None else {str(each).lower() for each in tables}
    read_only = given.get("read_only") is True
    exp = sqlglot.exp
    # The parser takes an expression for a statement, and any two words for one with its name.
    no_statement = (exp.Command, exp.Condition, exp.Alias, exp.Tuple, exp.Interval, exp.Star)

    def test(found: str) -> Finding:
        if len(found) > _MOST_SQL:
            return Unavailable(Reason("longer than {most} characters", most=_MOST_SQL))
        try:
            statements = [each for each in sqlglot.parse(_unfenced(found), read=dialect) if each is not None]
        except (sqlglot.errors.SqlglotError, RecursionError):
            return False
        # A statement that the parser does not know is kept whole as a command, whatever it holds.
        if not statements or any(isinstance(each, no_statement) for each in statements):
            return False
        if read_only and not all(isinstance(each, exp.Query) for each in statements):
            return Scored(value=0.0, reason=Reason("a statement that is not a query"))
        if read_only and any(each.find(exp.DML, exp.DDL, exp.Into) for each in statements):
            return Scored(value=0.0, reason=Reason("a query that writes"))
        named = [table for each in statements for table in each.find_all(exp.Table)]
        applied = (each.this for statement in statements for each in statement.find_all(exp.Lateral))
        named += [each for each in applied if isinstance(each, exp.Identifier)]  # what stands after APPLY
        used = {table.name.lower() for table in named if table.args.get("db") or not _is_defined(table, exp)}
        strange = len(used - allowed) if allowed is not None else 0
        return Scored(value=0.0, reason=Reason("{n} tables that are not allowed", n=strange)) if strange else True

    return test


def _is_defined(table: Any, exp: ModuleType) -> bool:  # the library's types
    """Whether a table's name is one that a ``WITH`` around it defines: not by its own definition or a later one."""
    node, definition = table.parent, None
    while node is not None:
        if isinstance(node, exp.CTE):
            definition = node
        around = node.args.get("with_")
        if around is not None:
            names = [each.alias.lower() for each in around.expressions]
            if definition is not None and definition.parent is around:
                names = names[: definition.index + bool(around.args.get("recursive"))]
            if table.name.lower() in names:
                return True
        node = node.parent
    return False


def _unfenced(found: str) -> str:
    stripped = found.strip()
    if not (stripped.startswith("```") and stripped.endswith("```") and len(stripped) > 6):
        return stripped
    _, _, body = stripped[:-3].partition("\n")
    return body


CHECKS: Final = (
    Check("is-json", "JSON", "it is JSON, strictly (one code fence around it is taken off), and meets the schema where "
          "one is given", "true, or {schema: a JSON Schema or the path of a file with one}", _is_json,
          source="promptfoo's assertion of this name; JSON Schema draft 2020-12"),
    Check("contains-json", "JSON in a text", "a JSON object or list stands in it, which meets the schema where one is "
          "given", "true, or {schema: …}", _contains_json,
          undefined="its target is not known, or has 100 opening brackets without JSON behind them"),
    Check("is-xml", "XML", "it is well-formed XML without a document type", "true", _is_xml,
          undefined="its target is not known, or longer than 1,000,000 characters"),
    Check("is-sql", "SQL", "it is statements of SQL of the dialect; with `tables` it names no others, with `read_only` "
          "it is queries that write nothing", "true, a dialect, or {dialect, tables, read_only}", _is_sql,
          extra="checks", undefined="its target is not known, or longer than 20,000 characters"),
)  # fmt: skip
"""The checks of form."""
