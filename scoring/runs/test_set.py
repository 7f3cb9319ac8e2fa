"""Test set: tests with tags and complexity, and how some of them are chosen (seed 004, Test Set Management)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidejudge.scoring.trace.span import Json

DEFAULT_COMPLEXITY = "medium"
"""The complexity of a test that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSet:
    """Tests in order, each a map of fields: ``input``, ``expected``, ``tags``, ``complexity``, and what else it has."""

    __test__ = False  # pytest takes every class of this name for one of its own

    name: str
    tests: tuple[Mapping[str, Json], ...]

    @property
    def tags(self) -> dict[str, list[int]]:
        """Each tag with the places (from 0) of the tests that carry it, in order."""
        index: dict[str, list[int]] = {}
        for place, test in enumerate(self.tests):
            for tag in tags_of(test):
                index.setdefault(tag, []).append(place)
        return index

    def filter(self, **criteria: Json) -> list[Mapping[str, Json]]:
        """The tests of which every field named equals the value given; a field that is absent equals null.

        Equality is Python's, as in the seed: ``1`` equals ``1.0`` and true. Without criteria: all tests.
        """
        return [test for test in self.tests if all(test.get(key) == value for key, value in criteria.items())]


def tags_of(test: Mapping[str, Json]) -> list[str]:
    """The tags of a test, as they stand."""
    tags = test.get("tags", [])
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def complexity_of(test: Mapping[str, Json]) -> str:
    """The complexity of a test; ``medium`` when it names none."""
    return str(test.get("complexity", DEFAULT_COMPLEXITY))
