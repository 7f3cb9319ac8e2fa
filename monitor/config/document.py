"""A YAML text as plain values, with the line of each and every mistake in it.

Stricter and plainer than YAML 1.1: doubled keys are mistakes, ``yes`` and ``12:30`` are text, ``1e-3`` is a number,
aliases may not multiply, and ``${NAME}`` is taken from the environment (``${NAME:-default}``, ``$${`` for itself).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from sidejudge.scoring.trace.span import Json

from .errors import Problem, path_of
from .read_files import MAX_BYTES

Location = tuple[str | int, ...]
Place = Callable[[Sequence[str | int]], tuple[str | None, int | None]]
"""From a location to the source that sets it (a file, a variable) and the line in that file."""

MAX_VALUES = 200_000
MAX_DEPTH = 100
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# In a flow mapping ({key: ${NAME}}) YAML would take the brace as its own. Same-length stand-ins keep every column.
_OPEN, _BRACE, _CLOSE = "\ue000", "\ue001", "\ue002"
_TEMPLATE = re.compile(r"""^[^"']*\{\{\s*\w+\s*\}\}""")
"""A variable of a question without a quotation mark before it."""
_VARIABLE = re.compile(rf"(?<!\$)\$\{{({_NAME}(?::-[^}}\n]*)?)\}}")
_STAND_IN = re.compile(f"{_OPEN}{_BRACE}(.*?){_CLOSE}")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIGITS = 100
"""Characters of a whole number; what is longer is no number that anything here takes, and may fit no float."""
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_STANDARD = "tag:yaml.org,2002:"
_TAGS = frozenset(
    _STANDARD + name for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Document:
    """A document as read: ``value``, the 1-based ``lines`` of its parts, and its ``problems``."""

    value: Json = None
    lines: dict[Location, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line_of(self, location: Sequence[str | int]) -> int | None:
        """The line of the value at a location, else of the nearest one above it."""
        where = tuple(location)
        return next(
            (self.lines[where[:depth]] for depth in range(len(where), -1, -1) if where[:depth] in self.lines), None
        )


def read_document(text: str, environ: Mapping[str, str] | None, source: str) -> Document:
    """Read one YAML document. Never raises for the content of the text; ``problems`` holds all of it.

    Without an environment ``${NAME}`` is text like any other.
    """
    document = Document()
    if len(text) > MAX_BYTES:
        document.problems.append(Problem(path="", message=f"is larger than {MAX_BYTES} characters", source=source))
        return document
    if not _is_unicode(text):
        document.problems.append(Problem(path="", message="is not UTF-8", source=source))
        return document
    masked = text
    if environ is not None:
        masked = _VARIABLE.sub(lambda found: f"{_OPEN}{_BRACE}{found[1]}{_CLOSE}", text)
    try:
        if _depth(masked) > MAX_DEPTH:
            message = f"is nested more than {MAX_DEPTH} levels deep"
            document.problems.append(Problem(path="", message=message, source=source))
            return document
        root = yaml.compose(masked, Loader=_Loader)
        if root is not None:
            document.value = _Reader(document, environ, source).read(root, ())
    except yaml.MarkedYAMLError as error:
        document.problems.append(_not_yaml(error, text, source))
    except yaml.YAMLError as error:
        document.problems.append(
            Problem(path="", message=f"is not YAML: {' '.join(str(error).split())}", source=source)
        )
    except _TooManyError:
        message = f"aliases expand to more than {MAX_VALUES} values"
        document.problems.append(Problem(path="", message=message, source=source))
    return document


def _depth(text: str) -> int:
    """A text's depth of nesting, checked before it is composed, because composing recurses in C without limit."""
    depth = deepest = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            deepest = max(deepest, depth)
            if deepest > MAX_DEPTH:
                break
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return deepest


class _TooManyError(Exception):
    """More values than any configuration has: an alias bomb."""


class _Reader:
    """Builds values from YAML nodes, noting lines and mistakes."""

    def __init__(self, document: Document, environ: Mapping[str, str] | None, source: str) -> None:
        self._document = document
        self._environ = environ
        self._source = source
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: yaml.Node, at: Location) -> Json:
        self._count += 1
        if self._count > MAX_VALUES:
            raise _TooManyError
        self._document.lines.setdefault(at, node.start_mark.line + 1)
        if node.tag not in _TAGS:
            self._complain(at, node, f"has the tag {_short(node.tag)}, and tags are not supported")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, at)
        if id(node) in self._open:
            self._complain(at, node, "is an alias of something that contains it")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.read(item, (*at, index)) for index, item in enumerate(node.value)]
            return self._mapping(node, at)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.Node, at: Location) -> Json:
        found: dict[str, Json] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                template = isinstance(key_node, yaml.MappingNode)
                remedy = "; a text with {{…}} stands in quotes" if template else ""
                self._complain(at, key_node, f"has a key that is not text{remedy}")
                continue
            key = self._text(key_node, at)
            if key in found:
                first = self._document.lines[*at, key]
                self._complain((*at, key), key_node, f"stands twice; first on line {first}")
                continue
            self._document.lines[*at, key] = key_node.start_mark.line + 1
            found[key] = self.read(value_node, (*at, key))
        return found

    def _scalar(self, node: yaml.ScalarNode, at: Location) -> Json:
        text = self._text(node, at)
        return text if node.style else plain_value(text)

    def _text(self, node: yaml.ScalarNode, at: Location) -> str:
        """A value or a key, with the variables that it names."""
        text, environ = str(node.value), self._environ
        if environ is None:
            return text
        if "\0" in text:  # it ends a text of C: no file, host or header can be named so
            self._complain(at, node, r"holds a NUL character; write \x00 in a pattern, and none elsewhere")
            return ""
        return _STAND_IN.sub(lambda found: self._variable(found[1], environ, node, at), text).replace("$${", "${")

    def _variable(self, reference: str, environ: Mapping[str, str], node: yaml.Node, at: Location) -> str:
        name, default, fallback = reference.partition(":-")
        value = environ.get(name)
        if value is None and not default:
            self._complain(at, node, f"needs the environment variable {name}, which is not set")
            return ""
        if value is not None and not _is_unicode(value):
            self._complain(at, node, f"needs the environment variable {name}, which is not UTF-8")
            return ""
        return fallback if value is None or (default and not value) else value

    def _complain(self, at: Location, node: yaml.Node, message: str) -> None:
        line = node.start_mark.line + 1
        self._document.problems.append(Problem(path=path_of(at), message=message, source=self._source, line=line))


def _is_unicode(text: str) -> bool:
    """Whether it is; bytes of the environment that are not UTF-8 are halves of surrogate pairs in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_value(text: str) -> Json:
    """The value of an unquoted scalar by YAML 1.2's core rules."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text) and len(text) <= _DIGITS:
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_STANDARD)}" if tag.startswith(_STANDARD) else tag


def _not_yaml(error: yaml.MarkedYAMLError, text: str, source: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark is not None else None
    stated = " ".join(part for part in (error.context, error.problem) if part)
    here = text.split("\n")[line - 1] if line is not None and line <= text.count("\n") + 1 else ""
    if "\t" in here[: len(here) - len(here.lstrip())]:
        return Problem(path="", message="indents with a tab; YAML wants spaces", source=source, line=line)
    if "but found another document" in stated:
        return Problem(path="", message="holds more than one YAML document", source=source, line=line)
    if _TEMPLATE.search(here):
        stated += '; a text with {{…}} stands in quotes: ask: "Is {{output}} polite?"'
    elif "unknown escape character" in stated:
        stated += r"; a pattern stands in single quotes ('\d+'): in double quotes a backslash is YAML's"
    return Problem(path="", message=f"is not YAML: {stated}", source=source, line=line)
