"""Closed-form fields compared with the reference's: labels, scores, ids, booleans, short texts; not prose (rubrics §7).

The reference decides which of its fields are of closed form. Items of a list are matched by id, as everywhere
(rubrics §2); where they have none, by the first field that differs in all of the reference's items. Lists of plain
values have no order. The work is linear in both sides.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.lexical.text import normalise, pieces, tokens
from sidejudge.scoring.trace.jsontext import kind
from sidejudge.scoring.trace.span import Json

from .structure import match_by_id, strict_key

_MOST_WORDS = 3
_MOST_KEYS = 50
"""Most fields of an item that are tried as a key."""
_SENTENCE_MARKS = (".", "!", "?", "।", "。", "！", "？")
_MAX_PATH = 120
MAX_DEPTH = 100
"""Most levels of nesting that are compared; deeper values match nothing."""
_ABSENT = object()
"""The value of an absent field; ``None`` is a value."""


def is_id(key: str) -> bool:
    """Whether a key names an identifier."""
    return key == "id" or key.endswith("_id")


def is_closed(value: object) -> bool:
    """Whether a value is of closed form: anything but prose. A text of three words at most, not a sentence, is one.

    >>> [is_closed(value) for value in ("Refund approved", "It was paid.", 5, None, "a refund of $49")]
    [True, False, True, True, False]
    """
    if not isinstance(value, str):
        return kind(value) in ("null", "boolean", "number")
    words = list(pieces(tokens(value[:200])))
    return (
        0 < len(words) <= _MOST_WORDS
        and len(value) <= 200
        and not (len(words) > 1 and value.rstrip().endswith(_SENTENCE_MARKS))
    )


@dataclass(slots=True)
class FieldComparison:
    """Fields counted on both sides. ``places``: fields of either side; ``ids`` of them are ids of matched items.

    ``wrong`` are the paths of fields that do not match, ``strange`` the ids that the reference lacks or that occur
    twice. ``stated`` and ``wanted`` are the prose of the output and of the reference.
    """

    matched: int = 0
    expected: int = 0
    found: int = 0
    places: int = 0
    ids: int = 0
    wrong: list[str] = field(default_factory=list)
    strange: list[object] = field(default_factory=list)
    stated: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)


def compare(found: Json, expected: Json, *, echoes: frozenset[str] = frozenset()) -> FieldComparison:
    """Compare all fields at any depth. Prose under a key of ``echoes`` is not kept.

    >>> found = compare({"label": "Negative", "score": 4}, {"label": "negative", "score": 5})
    >>> (found.matched, found.places, found.wrong)
    (1, 2, ['score'])
    """
    made = FieldComparison()
    waiting: list[_Place] = [_Place(found, expected, "", kept=True)]
    while waiting:
        place = waiting.pop()
        left, right = place.found, place.expected
        if place.depth > MAX_DEPTH:
            _too_deep(place, made)
            continue
        if isinstance(left, dict) or isinstance(right, dict):
            waiting.extend(reversed(list(_fields(place, echoes))))
        if isinstance(left, list) or isinstance(right, list):
            waiting.extend(reversed(list(_items(place, made))))
        _plain(place, made)
    return made


def _too_deep(place: _Place, made: FieldComparison) -> None:
    """Count a value that is nested too deeply as one field, which matches nothing."""
    made.places += 1
    made.expected += place.expected is not _ABSENT
    made.found += place.found is not _ABSENT
    made.wrong.append(place.path)


@dataclass(frozen=True, slots=True)
class _Place:
    found: object
    expected: object
    path: str
    kept: bool
    depth: int = 0

    def below(self, key: str, found: object, expected: object, *, kept: bool = True) -> _Place:
        path = f"{self.path}.{label(key)}" if self.path else label(key)
        return _Place(
            found,
            expected,
            path if len(path) <= _MAX_PATH else self.path,
            kept=self.kept and kept,
            depth=self.depth + 1,
        )


def _fields(place: _Place, echoes: frozenset[str]) -> Iterator[_Place]:
    found = place.found if isinstance(place.found, dict) else {}
    expected = place.expected if isinstance(place.expected, dict) else {}
    for key in {**expected, **found}:
        yield place.below(key, found.get(key, _ABSENT), expected.get(key, _ABSENT), kept=key not in echoes)


def _items(place: _Place, made: FieldComparison) -> Iterator[_Place]:
    found = place.found if isinstance(place.found, list) else []
    expected = place.expected if isinstance(place.expected, list) else []
    deep = [item for item in expected or found if isinstance(item, dict | list)]
    if not deep:
        _count_values(place, found, expected, made)
        return
    key = _key_of(expected)
    if key is None:
        yield from _as_wholes(place, found, expected)
        return
    ids = [item.get(key) for item in expected if isinstance(item, dict)]
    matching = match_by_id(found, key, ids)
    made.strange.extend((*matching.unknown, *matching.repeated))
    for item in expected:
        if isinstance(item, dict):
            known = matching.by_id.get(strict_key(item.get(key)))
            if known is not None:
                made.ids += 1
            yield place.below(str(item.get(key)), _ABSENT if known is None else known, item)


def _key_of(expected: Sequence[Json]) -> str | None:
    """The field that differs in all of the reference's items: an id if one does, else the first that does."""
    if not expected or not all(isinstance(item, dict) for item in expected):
        return None
    first = expected[0]
    names = sorted(first, key=lambda name: not is_id(name)) if isinstance(first, dict) else []
    for name in names[:_MOST_KEYS]:
        values = [item[name] for item in expected if isinstance(item, dict) and name in item]
        reported = {strict_key(value) for value in values if isinstance(value, str | int) and is_closed(value)}
        if len(reported) == len(expected):
            return name
    return None


def _as_wholes(place: _Place, found: list[Json], expected: list[Json]) -> Iterator[_Place]:
    """Match items without a key where they are equal; the remaining ones on either side have no partner."""
    by_text: dict[str | None, list[Json]] = {}
    for item in found:
        # Nothing to be equal to on the other side: no need to look at all that the item holds, level by level.
        by_text.setdefault(_written(item) if expected else None, []).append(item)
    for at, item in enumerate(expected):
        text = _written(item) if found else None
        equal = by_text.get(text) if text is not None else None
        yield place.below(f"[{at}]", equal.pop() if equal else _ABSENT, item)
    for items in by_text.values():
        yield from (place.below("[]", item, _ABSENT) for item in items)


def _written(value: Json) -> str | None:
    """A text that equal values share; None for a value nested too deeply to equal anything."""
    try:
        return json.dumps(_evened(value), sort_keys=True)
    except RecursionError:
        return None


def _evened(value: Json) -> Json:
    """A value whose texts and numbers are written alike where they are equal (``_comparable``)."""
    match value:
        case dict():
            return {key: _evened(each) for key, each in value.items()}
        case list():
            return [_evened(each) for each in value]
        case str():
            return normalise(value)
        case float() if value.is_integer():
            return int(value)
    return value


def _count_values(place: _Place, found: list[Json], expected: list[Json], made: FieldComparison) -> None:
    """Plain values of a list, each matched at most once. One that is prose makes the list prose."""
    if not all(map(is_closed, expected or found)):
        for side, texts in ((found, made.stated), (expected, made.wanted)):
            if place.kept:
                texts.extend(item for item in side if isinstance(item, str))
        return
    given, wanted = Counter(map(_comparable, found)), Counter(map(_comparable, expected))
    matched = (given & wanted).total()
    made.matched += matched
    made.expected += len(expected)
    made.found += len(found)
    made.places += max(len(found), len(expected))
    if matched < max(len(found), len(expected)):
        made.wrong.append(place.path)


def _plain(place: _Place, made: FieldComparison) -> None:
    """Compare two values that hold no others."""
    found = _ABSENT if isinstance(place.found, dict | list) else place.found
    expected = _ABSENT if isinstance(place.expected, dict | list) else place.expected
    if found is _ABSENT and expected is _ABSENT:
        return
    if not is_closed(found if expected is _ABSENT else expected):
        if place.kept:
            made.stated.extend([found] if isinstance(found, str) else [])
            made.wanted.extend([expected] if isinstance(expected, str) else [])
        return
    made.places += 1
    made.expected += expected is not _ABSENT
    made.found += found is not _ABSENT
    if found is not _ABSENT and expected is not _ABSENT and _comparable(found) == _comparable(expected):
        made.matched += 1
    else:
        made.wrong.append(place.path)


def _comparable(value: object) -> object:
    """Texts as everywhere, numbers by value; ``true`` is not 1, and ``"5"`` is not 5 (rubrics §1.7, §1.8)."""
    if isinstance(value, str):
        return kind(value), normalise(value)
    return (kind(value), value) if is_closed(value) else object()  # equal to nothing
