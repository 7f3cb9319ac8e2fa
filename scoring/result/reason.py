"""Reason: why a result is what it is, as a text whose parts know their origin.

A reason is made of a template and of parts. The template's words, our numbers and our names are open to everybody.
``part(...)`` marks a name of the application's parts: a tool, an agent, a model, an argument, a type of exception, a
term of the configuration. ``quoted(...)`` marks content: what people and models wrote. So the place that makes the
reason decides who may see which part. An unmarked text is content.

>>> why = Reason("{n} calls of {tool} failed: {error}", n=3, tool=part("refund"), error=quoted("card 4111"))
>>> str(why), why.shown(Rights.NAMES), why.shown(Rights.OWN)
('3 calls of refund failed: card 4111', '3 calls of refund failed: …', '3 calls of … failed: …')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import lru_cache
from string import Formatter
from typing import Final, NamedTuple, Self, SupportsIndex, TypeAlias

from sidejudge.scoring.lexical.amount import decided
from sidejudge.scoring.lexical.shown_text import label

GAP: Final = "…"
"""Replaces a part that is left out."""
REASON_PARTS: Final = "reason_parts"
"""The field beside ``reason`` in the JSON form of a verdict and of a score: the reason without contents."""
_MOST_DIGITS: Final = 10**9
"""A number from this size on may be personal, such as a card number."""
_NOT_OF_A_NAME: Final = re.compile(r"[^\w ….:/()\[\]<>#+=,-]+")
_LONG_NUMBER: Final = re.compile(r"\d{9,}|(?:\d{3,}[ -]){2,}\d{3,}")


class Kind(StrEnum):
    """The origin of a part of a reason."""

    WORDS = "words"
    """Ours: the words of a template, and names of metrics, rubrics and fields of the documentation."""
    NUMBER = "number"
    """A count, a measure or a limit of ours."""
    NAME = "name"
    """The name of a part of the application."""
    CONTENT = "content"
    """Content: written by a person or a model, or possibly quoting it."""


class Rights(StrEnum):
    """The parts of a reason that a reader may see."""

    CONTENTS = "contents"
    """All of it."""
    NAMES = "names"
    """Everything but contents: the default for all that leaves the machine."""
    OWN = "own"
    """Neither contents nor names of the application's parts."""


class ReasonPart(NamedTuple):
    """A part of a reason: its origin and its text."""

    kind: Kind
    text: str


_WORDS: Final = Kind.WORDS  # a name of the module is found faster than a member of an enum


def part(name: str) -> ReasonPart:
    """Mark a name of the application's parts. Readers without rights to contents see it shortened (``shown``)."""
    return ReasonPart(Kind.NAME, name)


def quoted(text: str) -> ReasonPart:
    """Content: what a person or a model wrote, or what may quote it."""
    return ReasonPart(Kind.CONTENT, text)


def own(name: str) -> ReasonPart:
    """Mark a name of ours that is no literal of the template: a metric, a rubric, a field of the documentation."""
    return ReasonPart(_WORDS, name)


Value: TypeAlias = "Reason | ReasonPart | Enum | float | str"
"""The value of a template's field. An ``Enum`` is ours; a text of any other type is content."""


def decided_number(value: float, holds: Callable[[float], bool], decimals: int) -> ReasonPart:
    """A number of ours with as many decimals, ``decimals`` at least, as show whether it keeps its bound."""
    return ReasonPart(Kind.NUMBER, decided(value, holds, decimals))


class Reason(str):
    """The text of a reason with its ``parts``. It equals its text, and can be used like one.

    Conversion to a plain text (``str``, an f-string, a slice) turns all of it into content.

    Args:
        template: A literal of the code. Without ``values`` it is the text; else each ``{name}`` or ``{name:format}`` is
            replaced by the value of that name.
        values: Values by name; another reason is inserted with all of its parts.
    """

    __slots__ = ("_outline", "parts")
    parts: tuple[ReasonPart, ...]
    _outline: list[object] | None

    def __new__(cls, template: str = "", /, **values: Value) -> Self:
        if not values:
            return cls.of((own(template),))
        if cls is Reason and _COUNTS.issuperset(map(type, values.values())):
            return _counted(template, tuple(values.items()))  # type: ignore[return-value]  # ``cls`` is this class
        return cls._filled(template, values)

    @classmethod
    def _filled(cls, template: str, values: Mapping[str, Value]) -> Self:
        found: list[ReasonPart] = []
        for words, name, form in _layout(template):
            if words is not None:
                found.append(words)
            if name is not None:
                found += _parts(values[name], form)
        return cls.of(found)

    @classmethod
    def of(cls, parts: Iterable[ReasonPart]) -> Self:
        """The reason with these parts; empty ones are left out, and adjacent words become one part."""
        kept: list[ReasonPart] = []
        run: list[str] = []
        """Adjacent words of several parts that are not joined yet."""
        before = None
        for each in parts:
            kind, text = each
            if not text:
                continue
            if kind is not _WORDS:
                if run:
                    kept[-1] = own("".join(run))
                    run = []
                kept.append(each)
            elif before is not _WORDS:
                kept.append(each)
            elif run:
                run.append(text)
            else:
                run = [kept[-1].text, text]
            before = kind
        if run:
            kept[-1] = own("".join(run))
        made = super().__new__(cls, "".join([text for _, text in kept]))
        made.parts, made._outline = tuple(kept), None
        return made

    @property
    def template(self) -> str:
        """The words, with ``{}`` in place of every other part."""
        return "".join([each.text if each.kind is Kind.WORDS else "{}" for each in self.parts])

    @property
    def has_own_words(self) -> bool:
        """Whether any of it is ours; otherwise a judge or a person wrote the whole."""
        return any(each.kind is not Kind.CONTENT for each in self.parts)

    def shown(self, rights: Rights = Rights.NAMES) -> str:
        """The text for a reader with these rights; ``…`` for what is left out."""
        if rights is Rights.CONTENTS:
            return str(self)
        found: list[str] = []
        for kind, text in self.parts:
            hidden = kind is Kind.CONTENT or (kind is Kind.NAME and rights is Rights.OWN)
            if not hidden:
                found.append(shown_name(text) if kind is Kind.NAME else text)
            elif not found or found[-1] is not GAP:
                found.append(GAP)
        return "".join(found)

    def cut(self, most: int) -> Reason:
        """The first ``most`` characters, as ``label`` cuts a text."""
        if len(self) <= most and self.isascii():
            return self
        found, left = [], most
        for kind, text in self.parts:
            if left <= 0:
                break
            found.append(ReasonPart(kind, label(text[:left], left)))
            left -= len(text)
        return Reason.of([*found, ReasonPart(Kind.WORDS, GAP)] if len(self) > most else found)

    def alike(self) -> str:
        """The reason without parts that differ between cases: the template with the names, ``#`` for each number."""
        return "".join([_ALIKE[kind](text) for kind, text in self.parts])

    def to_json(self) -> list[object]:
        """The reason without contents: words as texts, null for content, ``{"number": …}`` and ``{"name": …}``.

        Cached, because a reason may be shared by many scores; do not change it.
        """
        if self._outline is None:
            self._outline = [_as_json(each) for each in self.parts]
        return self._outline

    def __add__(self, other: str) -> Reason:
        return Reason.of((*self.parts, *_parts(other)))

    def __radd__(self, other: str) -> Reason:
        return Reason.of((*_parts(other), *self.parts))

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        return Reason.of, (self.parts,)


def together(values: Iterable[Value], separator: str = "; ") -> Reason:
    """Several reasons or parts joined, with a separator of ours between them."""
    found: list[ReasonPart] = []
    between = own(separator)
    for value in values:
        if found:
            found.append(between)
        found += _parts(value)
    return Reason.of(found)


def cut(reason: str, most: int) -> str:
    """As ``label``; of a ``Reason`` the parts are kept."""
    return reason.cut(most) if isinstance(reason, Reason) else label(reason, most)


def shown_name(name: str) -> str:
    r"""A name of the application's parts for readers without rights to contents: short, and without long numbers.

    >>> shown_name("refund"), shown_name("call 0171 555 1234\u202e now!")
    ('refund', 'call #? now?')
    """
    return _NOT_OF_A_NAME.sub("?", _LONG_NUMBER.sub("#", label(name)))


_ALIKE: Final[Mapping[Kind, Callable[[str], str]]] = {
    Kind.WORDS: str, Kind.NUMBER: lambda _: "#", Kind.NAME: shown_name, Kind.CONTENT: lambda _: GAP,
}  # fmt: skip


def reason_fields(reason: str) -> dict[str, object]:
    """The fields ``reason`` and ``reason_parts`` of a verdict or a score; only a ``Reason`` has the second."""
    if not isinstance(reason, Reason) or not reason:
        return {"reason": reason}
    return {"reason": str(reason), REASON_PARTS: reason.to_json()}


def outline(fields: Mapping[str, object]) -> Reason:
    """The reason of a verdict or a score in its JSON form, without contents.

    A text that no ``Reason`` wrote (by an older version or a plugin) is content as a whole.
    """
    held = fields.get(REASON_PARTS)
    if isinstance(held, list | tuple):
        return Reason.of(map(_of_json, held))
    return Reason.of([quoted(GAP)] if fields.get("reason") else ())


@lru_cache(maxsize=1024)
def _layout(template: str) -> Sequence[tuple[ReasonPart | None, str | None, str]]:
    """The template as words, each followed by a value's name and format. Templates are few literals of the code."""
    parsed = Formatter().parse(template)
    return tuple((own(words) if words else None, name, form or "") for words, name, form, _ in parsed)


_COUNTS: Final = frozenset({int})


@lru_cache(maxsize=2048)
def _counted(template: str, values: tuple[tuple[str, Value], ...]) -> Reason:
    """A reason with a small number, cached because the same few recur."""
    return Reason._filled(template, dict(values))  # noqa: SLF001  # the rest of ``Reason.__new__``


def _parts(value: Value, form: str = "") -> Sequence[ReasonPart]:
    if isinstance(value, ReasonPart):
        return (value,)
    if isinstance(value, Reason):
        return value.parts
    if isinstance(value, Enum):
        return (own(str(value.value)),)
    if isinstance(value, (int, float)):  # a union takes twice as long
        written = format(value, form)
        return (ReasonPart(Kind.NUMBER, written) if -_MOST_DIGITS < value < _MOST_DIGITS else quoted(written),)
    return (quoted(value),)


def _as_json(one: ReasonPart) -> object:
    kind, text = one
    if kind is _WORDS:
        return text
    if kind is Kind.CONTENT:
        return None
    return {"name": shown_name(text)} if kind is Kind.NAME else {"number": text}


def _of_json(held: object) -> ReasonPart:
    if isinstance(held, str):
        return own(held)
    for kind in (Kind.NUMBER, Kind.NAME):
        if isinstance(held, Mapping) and isinstance(text := held.get(kind.value), str):
            return ReasonPart(kind, text)
    return quoted(GAP)
