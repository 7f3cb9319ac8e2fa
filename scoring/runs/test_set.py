"""Test set: tests with tags and complexity, and their selection (seed 004, Test Set Management).

A judged case makes a test with the same request and the right outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sidejudge.scoring.trace.jsontext import mapping, objects
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.documents import FAILING

DEFAULT_COMPLEXITY = "medium"
"""The complexity of a test that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSet:
    """Tests in order, each a map of fields: ``input``, ``expected``, ``tags``, ``complexity`` and others."""

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
        """The tests whose named fields all equal the given values; an absent field equals null.

        Equality is Python's, as in the seed: ``1`` equals ``1.0`` and true. Without criteria: all tests.
        """
        return [test for test in self.tests if all(test.get(key) == value for key, value in criteria.items())]


def tags_of(test: Mapping[str, Json]) -> list[str]:
    """The tags of a test, unchanged."""
    tags = test.get("tags", [])
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def complexity_of(test: Mapping[str, Json]) -> str:
    """The complexity of a test; ``medium`` when it names none."""
    return str(test.get("complexity", DEFAULT_COMPLEXITY))


_KEPT = ("task", "input", "config", "evaluation_criteria_override", "name", "service", "environment")
"""The fields that an agent receives again. The findings and answer of one run are left out."""
_MOST_METRICS = 10


def case_as_test(
    case: Mapping[str, Json], expected: Json, failing: Iterable[str], *, name: str | None = None
) -> dict[str, Json]:
    """A test as a line of a test set.

    Args:
        case: a case in its JSON form, with an ``input``.
        expected: the right outcome.
        failing: names of the metrics that failed.
        name: the test's id; None: made from the trace's id.
    """
    trace_id = str(case.get("trace_id") or case.get("case_id") or "")
    metrics = list(dict.fromkeys(failing))[:_MOST_METRICS]
    found: dict[str, Json] = {"id": name or f"trace-{trace_id[:12]}"}
    found |= {key: value for key in _KEPT if (value := case.get(key)) not in (None, "", [], {})}
    found["expected"] = expected
    found["tags"] = ["regression", *metrics]
    found["metadata"] = {"trace_id": trace_id}
    return found


def failing_metrics_of(verdicts: Iterable[object]) -> list[str]:
    """The failing metrics of verdicts in their JSON form, without repeats."""
    found: dict[str, None] = {}
    for verdict in verdicts:
        for score in objects(mapping(verdict).get("scores")):
            if score.get("rating") in FAILING:
                found[str(score.get("metric"))] = None
    return list(found)
