"""Structure check: whether the output has exactly the keys and kinds of the expected outcome (seed 000; rubrics §2).

Shape is compared, content is not: the number of items in a list is free, and so are the keys of the two maps that
hold data. The comparison takes time linear in both sides, apart from items whose shape may fit an expected one
without being equal to it; the work on those is bounded (``MAX_STEPS``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from itertools import islice
from typing import Generic, TypeVar

from sidejudge.scoring.case.case import Case, ParsedOutput
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, own, quoted, together
from sidejudge.scoring.result.result import Result, Scored, Unavailable
from sidejudge.scoring.trace.jsontext import kind
from sidejudge.scoring.trace.span import Json

from .metric import Metric, pass_or_fail
from .settle import NoValueError, unavailable

T = TypeVar("T")

_SHOWN = 5
_SHOWN_IDS = 50
_EXACT = 1 << 53
_FREE_MAPS = ("$.summary.call_extracted_info", "$.emotion")
"""Maps whose keys are data: extracted fields, and emotion → percentage."""
_NULLABLE = "$.sentiment[].label"
"""The only place where null may stand for a string: missing labels have their own counter."""
_TEXTS = ("$.detected_keywords", "$.detected_topics", "$.valid_entity_set", "$.summary.highlights")
"""Lists of strings, whatever the reference's lists hold, because an empty list does not define its items."""
MAX_STEPS = 300_000
"""Most values that one check compares; a real scorecard has some hundred."""
_MAX_DEPTH = 100
"""Levels of nesting that an outline covers; deeper values are compared one by one."""
_MAX_PATH = 200
_NEAREST = 20
"""Most expected shapes that are compared with a wrong item; the most similar one shows its fault."""


class TooVariedError(SidejudgeError, ValueError):
    """The two sides cannot be compared within ``MAX_STEPS``."""


@dataclass(frozen=True, slots=True)
class Structure:
    """Outcome of the check: the first differences with their paths, none when the structure is right."""

    differences: tuple[str, ...]
    fenced: bool = False

    @property
    def matches(self) -> bool:
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Items of an output by id: ``by_id`` has the first item of each expected id; items with other ids are ignored.

    ``unknown`` and ``repeated`` are the ids of ignored items. ``answered``: the output has any item at all.
    """

    by_id: dict[object, dict[str, Json]] = field(default_factory=dict)
    unknown: tuple[object, ...] = ()
    repeated: tuple[object, ...] = ()
    answered: bool = False


def check(output: ParsedOutput, expected: Json) -> Structure:
    """Compare the shape of an output with that of the expected outcome; ``TooVariedError`` beyond ``MAX_STEPS``.

    >>> check(ParsedOutput({"a": 1, "c": []}), {"a": 2.5, "b": "x"}).differences
    ('$.b: missing', '$.c: not expected')
    """
    if output.error is not None:
        return Structure((f"$: {output.error}",), output.fenced)
    try:
        return Structure(tuple(islice(_Check().differences(output.value, expected, "$", "$"), _SHOWN)), output.fenced)
    except RecursionError:
        raise TooVariedError("the output and the expected outcome are nested too deeply to be compared") from None


_NO_REFERENCE = Unavailable(Reason("no expected_outcome"))


def reference(case: Case) -> Json:
    """The expected outcome as JSON; ``NoValueError`` where there is none, or a text that does not parse."""
    if case.expected_outcome is None:
        raise NoValueError(_NO_REFERENCE)
    parsed = case.expected
    if parsed.error:
        raise NoValueError(_unreadable(parsed.error))
    return parsed.value


@dataclass(frozen=True, slots=True)
class _Read(Generic[T]):
    """Reads a value of a case, or why it has none. Equal ones are one in what a case keeps, also where it was sent."""

    read: Callable[[Case], T]

    def __call__(self, case: Case) -> T | NoValueError:
        try:
            return case.once(self.read)
        except NoValueError as ended:
            return NoValueError(ended.result)  # one that was raised holds the frames, and with them the case


def over(read: Callable[[Case], T]) -> Callable[[Callable[[T], Result]], Callable[[Case], Result]]:
    """Make the measure of a case from a measure of a value read from it, read once for all metrics.

    So is why it cannot be read, which most traces of an application without references share.
    """
    found = _Read(read)

    def of(measure: Callable[[T], Result]) -> Callable[[Case], Result]:
        @wraps(measure)
        def measured(case: Case) -> Result:
            value = case.once(found)
            return value.result if isinstance(value, NoValueError) else measure(value)

        return measured

    return of


@lru_cache(maxsize=64)
def _unreadable(error: str) -> Unavailable:
    """One object for all references that fail in the same way: prose is not JSON from its first character on."""
    return Unavailable(Reason("expected_outcome is {error}", error=quoted(error)))


def items(value: Json, key: str) -> list[Json]:
    """The list that stands under ``key`` of an object; empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def match_by_id(found: Sequence[Json], id_key: str, wanted: Sequence[object]) -> Matched:
    """Items by their id, never by position; unknown and repeated ids are ignored and reported."""
    expected = set(map(strict_key, wanted))
    by_id: dict[object, dict[str, Json]] = {}
    unknown: list[object] = []
    repeated: list[object] = []
    for item in found:
        if not isinstance(item, dict):
            continue
        key = strict_key(item.get(id_key))
        if key not in expected:
            unknown.append(item.get(id_key))
        elif key in by_id:
            repeated.append(item.get(id_key))
        else:
            by_id[key] = item
    return Matched(by_id=by_id, unknown=tuple(unknown), repeated=tuple(repeated), answered=bool(found))


def items_by_id(
    case: Case, key: str, id_key: str, unusable: Callable[[Json], str | None], called: str = "an id"
) -> tuple[list[dict[str, Json]], Matched]:
    """The items that the reference lists under ``key``, and the output's items matched with them by id.

    Raises:
        NoValueError: The reference has no such list, an item of it is ``unusable`` (which returns the fault), or an id
            (``called`` so) occurs twice.
    """
    expected = reference(case)
    if not isinstance(expected, dict) or not isinstance(expected.get(key), list):
        raise unavailable(Reason("expected_outcome.{key} is not a list", key=own(key)))
    wanted: list[dict[str, Json]] = []
    for index, item in enumerate(items(expected, key)):
        fault = unusable(item)
        if fault or not isinstance(item, dict):
            raise unavailable(
                Reason("expected_outcome.{key}[{at}]: {fault}", key=own(key), at=index, fault=own(fault or ""))
            )
        wanted.append(item)
    ids = [item[id_key] for item in wanted]
    if len(set(map(strict_key, ids))) != len(ids):
        raise unavailable(Reason("expected_outcome.{key}: {id} stands twice", key=own(key), id=own(called)))
    return wanted, match_by_id(items(case.output.value, key), id_key, ids)


def strict_key(value: object) -> object:
    """A hashable form of an id in which ``1``, ``"1"`` and ``true`` differ."""
    return (kind(value), value if isinstance(value, str | int | float | None) else repr(value))


def shown_items(ids: Iterable[object]) -> list[str | int | float]:
    """Ids or texts as the details of a verdict hold them: the first few, each cut, whatever an output holds there."""
    return [_label(one) for one in islice(ids, _SHOWN_IDS)]


def shown_by_name(**ids: Iterable[object]) -> dict[str, object]:
    """Several lists of ids as a verdict shows them; empty ones are left out."""
    return {name: listed for name, each in ids.items() if (listed := shown_items(each))}


def _label(value: object) -> str | int | float:
    if isinstance(value, str):
        return label(value)
    if isinstance(value, int | float) and kind(value) == "number" and abs(value) < _EXACT:
        return value
    return kind(value)


class _Check:
    """One comparison: the cached outlines of lists' items, and the remaining steps."""

    def __init__(self) -> None:
        self._left = MAX_STEPS
        self._outlines: dict[int, Hashable] = {}  # by identity: both sides live, unchanged, as long as the check
        self._numbers: dict[Hashable, int] = {}
        self._shapes: dict[int, _Shapes] = {}

    def differences(self, found: Json, expected: Json, path: str, pattern: str) -> Iterator[str]:
        self._left -= 1
        if self._left < 0:
            raise TooVariedError(f"the output cannot be compared with the expected outcome in {MAX_STEPS:,} steps")
        if pattern in _FREE_MAPS and isinstance(expected, dict):
            yield from _free_map(found, path, pattern)
        elif kind(found) != kind(expected) or kind(found) == "not JSON":
            if not (found is None and pattern == _NULLABLE):
                yield f"{path}: {kind(found)}, expected {kind(expected)}"
        elif isinstance(found, dict) and isinstance(expected, dict):
            yield from (f"{_below(path, key)}: missing" for key in expected if key not in found)
            yield from (f"{_below(path, key)}: not expected" for key in found if key not in expected)
            for key in expected:
                if key in found:
                    yield from self.differences(found[key], expected[key], _below(path, key), f"{pattern}.{key}")
        elif isinstance(found, list) and isinstance(expected, list):
            yield from self._of_items(found, expected, path, pattern)

    def _of_items(self, found: list[Json], expected: list[Json], path: str, pattern: str) -> Iterator[str]:
        """Every item must have the shape of one of the expected items; an empty expected list defines no shape."""
        if pattern in _TEXTS:
            for index, item in enumerate(found):
                if not isinstance(item, str):
                    yield f"{path}[{index}]: {kind(item)}, expected string"
            return
        if not expected:
            return
        shapes = self._shapes_of(expected)
        for index, item in enumerate(found):
            if self._outline(item) in shapes.outlines:
                continue
            # Not equal to any; it may still fit one that has the same keys: null for a label, a shorter inner list.
            candidates = shapes.by_head.get(_head(item)) or [shapes.most_like(item)]
            reported: list[str] | None = None
            for shape in candidates:
                one = list(islice(self.differences(item, shape, f"{path}[{index}]", f"{pattern}[]"), _SHOWN))
                if reported is None or len(one) < len(reported):
                    reported = one
                if not one:
                    break
            yield from reported or ()

    def _shapes_of(self, expected: list[Json]) -> _Shapes:
        known = self._shapes.get(id(expected))
        if known is None:
            distinct = {self._outline(item): item for item in expected}
            known = self._shapes[id(expected)] = _Shapes(frozenset(distinct), list(distinct.values()))
        return known

    def _outline(self, value: Json, depth: int = 0) -> Hashable:
        """A hashable outline of a value: equal outlines, equal shape."""
        if not isinstance(value, dict | list):
            reported = kind(value)
            return reported if reported != "not JSON" else object()  # equal to nothing
        known = self._outlines.get(id(value))
        if known is not None:
            return known
        if depth == _MAX_DEPTH:
            return object()
        made: Hashable
        if isinstance(value, dict):
            made = frozenset((key, self._outline(item, depth + 1)) for key, item in value.items())
        else:
            made = ("array", frozenset(self._outline(item, depth + 1) for item in value))
        # Hashing an outline walks all of it: one number for each distinct outline keeps that to a single level.
        self._outlines[id(value)] = made = self._numbers.setdefault(made, len(self._numbers))
        return made


class _Shapes:
    """The distinct shapes of an expected list's items."""

    def __init__(self, outlines: frozenset[Hashable], items: list[Json]) -> None:
        self.outlines = outlines
        self._items = items
        self.by_head: dict[Hashable, list[Json]] = {}
        for item in items:
            self.by_head.setdefault(_head(item), []).append(item)

    def most_like(self, item: Json) -> Json:
        """The shape that a wrong item is compared with: of the same kind and with the most keys in common."""
        keys = item.keys() if isinstance(item, dict) else frozenset[str]()

        def likeness(shape: Json) -> tuple[bool, int, int]:
            if not isinstance(shape, dict):
                return kind(shape) == kind(item), 0, 0
            return isinstance(item, dict), len(shape.keys() & keys), -len(shape)

        return max(self._items[:_NEAREST], key=likeness)


def _head(value: Json) -> Hashable:
    """The kind and the keys of a value, which two values of the same shape share."""
    return frozenset(value) if isinstance(value, dict) else kind(value)


def _below(path: str, key: str) -> str:
    """The path of a value below another; beyond ``_MAX_PATH`` characters it ends in a mark of omission."""
    if path.endswith("….…"):
        return path
    return f"{path}.{label(key)}" if len(path) < _MAX_PATH else f"{path[:_MAX_PATH]}….…"


def _free_map(found: Json, path: str, pattern: str) -> Iterator[str]:
    if not isinstance(found, dict):
        yield f"{path}: {kind(found)}, expected object"
    elif pattern == "$.emotion":
        for key, value in found.items():
            if kind(value) != "number" or not isinstance(value, int | float) or value < 0:
                yield f"{_below(path, key)}: expected a number >= 0"


def structure_compliance(*reads: Callable[[Case], object]) -> Metric:
    """Response structure compliance, for a rubric whose reference can be used where all of these can read it.

    A fault of the reference never counts against the output.
    """

    def measure(case: Case) -> Result:
        for read in reads:
            case.once(read)
        return _measure(case)

    return replace(response_structure_compliance, measure=measure)


def _measure(case: Case) -> Result:
    try:
        outcome = check(case.output, reference(case))
    except TooVariedError as error:
        return Unavailable(Reason("{error}", error=own(str(error))))
    details: dict[str, object] = {"differences": list(outcome.differences)}
    if outcome.fenced:
        details["fenced"] = True
    return Scored(value=float(outcome.matches), reason=together(map(quoted, outcome.differences[:3])), details=details)


_UNDEFINED = "there is no expected outcome, or none that can be used; or the comparison would take too many steps"

response_structure_compliance = pass_or_fail(
    id="response_structure_compliance",
    short="structure_compliance",
    title="Response Structure Compliance",
    meaning="Whether the output has exactly the keys and JSON kinds of the expected outcome; 1 or 0.",
    formula="1 if structure matches expected_outcome exactly; 0 if any key is missing, renamed, or extra",
    source="seed 000, Prerequisite of every task; rubrics §2",
    measure=_measure,
    undefined=_UNDEFINED,
)
