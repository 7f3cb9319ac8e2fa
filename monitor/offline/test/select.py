"""Select: the tests that --tag and --where name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sidejudge.monitor.config.document import plain_value
from sidejudge.monitor.config.errors import nearest
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.runs.test_set import TestSet
from sidejudge.scoring.trace.span import Json


class SelectionError(SidejudgeError, ValueError):
    """A tag or a field that no test has."""


def selected(tests: TestSet, tags: Sequence[str], where: Sequence[tuple[str, str]]) -> TestSet:
    """The tests that carry every tag and of which every field has its value, in order.

    A value is compared as it is written and as YAML reads it (``3``, ``true``, ``null``); a key with a dot looks into a
    map (``metadata.language``) unless a field has that very name.
    """
    index = tests.tags
    for tag in tags:
        if tag not in index:
            raise SelectionError(f"--tag: no test carries {tag!r}{_meant(tag, index)}")
    kept = set(range(len(tests.tests))).intersection(*(index[tag] for tag in tags))
    for key, value in where:
        fields = [_field(test, key) for test in tests.tests]
        if not any(fields):
            raise SelectionError(
                f"--where: no test has {key!r}{_meant(key, {name for t in tests.tests for name in t})}"
            )
        flat = TestSet(name=tests.name, tests=tuple(fields))
        wanted = {id(test) for given in (value, plain_value(value)) for test in flat.filter(field=given)}
        kept &= {place for place, test in enumerate(fields) if id(test) in wanted}
    return TestSet(name=tests.name, tests=tuple(tests.tests[place] for place in sorted(kept)))


def _field(test: Mapping[str, Json], key: str) -> dict[str, Json]:
    """The values of a test under a key, as a test of one ``field``; empty without any."""
    if key in test:
        return {"field": test[key]}
    head, dot, rest = key.partition(".")
    inner = test.get(head)
    return _field(inner, rest) if dot and isinstance(inner, dict) else {}


def _meant(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = nearest(word, names)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(names[:20])}" if names else ""
